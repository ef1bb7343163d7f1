//! The tools around evaluation, as their users meet them: completions that the shell takes, pages that are complete, pictures
//! that are well formed, a line on the terminal that says how far the jobs are.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

fn firn(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(arguments).env_clear().env("HOME", "/homeless").env("FIRN_MEMO", "off").env("NIX_REMOTE", "dummy://");
    command.env("NIX_CONF_DIR", "/nonexistent").current_dir(fixtures());
    command
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cli/fixtures")
}

fn printed(arguments: &[&str]) -> String {
    let done = firn(arguments).output().expect("firn runs");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn bash_completes_commands_and_flags() {
    let script = printed(&["completions", "bash"]);
    let ask = |words: &[&str]| {
        let line = words.join(" ");
        let last = words.len() - 1;
        let text = format!("{script}\nCOMP_WORDS=({line}); COMP_CWORD={last}; _firn; printf '%s\\n' \"${{COMPREPLY[@]}}\"");
        let done = Command::new("bash").args(["--norc", "-c", &text]).current_dir(fixtures()).output();
        let Ok(done) = done else {
            eprintln!("SKIPPED: no bash on PATH");
            return None;
        };
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let Some(commands) = ask(&["firn", "pro"]) else { return };
    assert_eq!(commands, "profile\n");
    assert_eq!(ask(&["firn", "jobs", "--shar"]).as_deref(), Some("--shard\n"));
    assert_eq!(ask(&["firn", "eval", "--shard"]).as_deref(), Some("\n"));
    assert_eq!(ask(&["firn", "completions", "z"]).as_deref(), Some("zsh\n"));
}

#[test]
fn every_command_is_completed_and_has_a_page() {
    let overview = printed(&["help"]);
    let listed = overview.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let (zsh, fish) = (printed(&["completions", "zsh"]), printed(&["completions", "fish"]));
    let scratch = std::env::temp_dir().join(format!("firn-man-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("a scratch directory");
    printed(&["man", "--output", &scratch.to_string_lossy()]);
    for command in listed.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(zsh.contains(&format!("        '{command}:")), "{command}");
        assert!(fish.contains(&format!("-a {command} -d")), "{command}");
        let page = std::fs::read_to_string(scratch.join(format!("firn-{command}.1"))).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS") && page.contains(".SH SEE ALSO"), "{command}");
    }
    let _ = std::fs::remove_dir_all(&scratch);
}

#[test]
fn graphs_show_files_variables_and_derivations() {
    let expression = "let set = import ./compare { }; in set.user // { env = builtins.getEnv \"HOME\"; list = builtins.readDir ./conf; }";
    let dot = printed(&["graph", "--impure", "--expr", expression]);
    for part in ["label=\"tool\", shape=ellipse", "shape=box", "n0 -> "] {
        assert!(dot.contains(part), "{part} in {dot}");
    }
    let svg = printed(&["graph", "--svg", "--all", "--file", "compare", "user"]);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("<title>tool</title>"), "{svg}");
    assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
}

#[test]
fn a_terminal_shows_how_far_the_jobs_are() {
    let pty = unix::pty::openpty(None, None).expect("a pty");
    let slow = "let work = n: builtins.foldl' (a: b: a + b) 0 (builtins.genList (x: x + n) 300000); in builtins.listToAttrs \
                (builtins.genList (n: { name = \"j${toString n}\"; value = derivation { name = \"j\"; system = \"s\"; builder = \"b\"; v = \
                toString (work n); }; }) 150)";
    let mut command = firn(&["jobs", "--no-instantiate", "--workers", "2", "--expr", slow]);
    command.env("TERM", "xterm").stdout(Stdio::null()).stderr(Stdio::from(pty.slave));
    let mut child = command.spawn().expect("firn starts");
    drop(command);
    let mut screen = std::fs::File::from(pty.master);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    // The pty fails to read when its other end is gone.
    while let Ok(count @ 1..) = screen.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..count]);
    }
    assert!(child.wait().expect("firn ends").success());
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains(" done, 0 failed, ") && shown.contains("150 jobs, 0 failed, 0:"), "{shown:?}");
}
