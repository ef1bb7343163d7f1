//! Ctrl-C: every command ends soon, with Nix's message and the status that shells expect; the second one kills.
#![allow(clippy::disallowed_methods, reason = "a test starts programs itself")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Evaluates for much longer than the test waits, one way or another.
const ENDLESS: [&str; 4] = [
    "let f = n: if n == 0 then 0 else f (n - 1); in builtins.foldl' (a: _: a + f 500) 0 (builtins.genList (x: x) 1000000)",
    "builtins.length (builtins.filter (x: x) (builtins.genList (x: builtins.length (builtins.genList (y: y) 1000) == 0) 1000000))",
    "builtins.foldl' (a: b: a // { \"${toString b}\" = b; }) { } (builtins.genList (x: x) 1000000)",
    "(builtins.tryEval (builtins.foldl' (a: _: a + builtins.length (builtins.genList (y: y) 100000)) 0 (builtins.genList (x: x) 1000000))).value",
];

fn firn(arguments: &[&str]) -> Command {
    // Ctrl-C is ignored by what a script starts in the background, and by all that it starts.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_firn")]);
    command.env_clear().env("HOME", "/homeless").env("FIRN_MEMO", "off").env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn interrupt(child: &Child) {
    let done = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(done.success());
}

fn check(mut command: Command) {
    let shown = format!("{command:?}");
    let child = command.spawn().expect("firn starts");
    std::thread::sleep(Duration::from_millis(600));
    interrupt(&child);
    let began = Instant::now();
    let output = child.wait_with_output().expect("firn ends");
    assert!(began.elapsed() < Duration::from_secs(5), "{shown} took {:?}", began.elapsed());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted by the user\n", "{shown}");
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{shown}");
}

#[test]
fn evaluation_ends_soon() {
    for text in ENDLESS {
        check(firn(&["instantiate", "--eval", "-E", text]));
    }
    check(firn(&["eval", "--expr", ENDLESS[0]]));
    check(firn(&["instantiate", "--cores", "2", "--eval", "--strict", "-E", &format!("[ ({}) ({}) ]", ENDLESS[0], ENDLESS[1])]));
    check(firn(&["compare", "--print", "--expr", &format!("{{ a = {}; }}", ENDLESS[0])]));
}

#[test]
fn jobs_end_without_lines_for_what_was_under_way() {
    check(firn(&["jobs", "--no-instantiate", "-E", &format!("{{ a = {}; b = {}; }}", ENDLESS[0], ENDLESS[1])]));
}

#[test]
fn the_memory_is_in_order_afterwards() {
    let cache = tempfile::tempdir().expect("a scratch directory");
    let mut command = firn(&["eval", "--memo", "disk", "--expr", ENDLESS[0]]);
    command.env("FIRN_CACHE_DIR", cache.path());
    check(command);
    let mut command = firn(&["cache", "verify"]);
    command.env("FIRN_CACHE_DIR", cache.path());
    let output = command.output().expect("firn runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0 parts looked at, all whole\n");
}

#[test]
fn what_reads_from_a_pipe_ends_too() {
    let mut command = firn(&["repl"]);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().expect("firn starts");
    let input = child.stdin.take().expect("piped");
    std::thread::sleep(Duration::from_millis(300));
    interrupt(&child);
    let status = child.wait().expect("firn ends");
    assert_eq!(status.code(), Some(130));
    drop(input);
}

#[test]
fn a_background_process_that_ignores_signals_goes_on() {
    let program = env!("CARGO_BIN_EXE_firn");
    let script = format!("trap '' INT; exec {program} eval --expr 'builtins.foldl'\\'' (a: b: a + b) 0 (builtins.genList (x: x) 3000000)'");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("NIX_REMOTE", "dummy://").stdout(Stdio::piped());
    let child = command.spawn().expect("sh starts");
    std::thread::sleep(Duration::from_millis(50));
    interrupt(&child);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4499998500000\n");
}
