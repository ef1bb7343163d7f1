//! `firn profile` and its relatives: counts are exact, the files can be read by other programs, the answer is unchanged.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

use std::path::PathBuf;
use std::process::{Command, Output};

const PROGRAM: &str =
    "let fib = n: if n < 2 then n else fib (n - 1) + fib (n - 2); twice = builtins.map (x: x * 2); in twice [ (fib 15) (fib 3) ]";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("firn-profile-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path)
    }

    fn run(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.args(arguments).current_dir(&self.0).env_clear().env("HOME", "/homeless").env("FIRN_MEMO", "off").env("NIX_REMOTE", "dummy://");
        command.env("NIX_CONF_DIR", "/nonexistent").envs(variables.iter().copied());
        let done = command.output().expect("firn runs");
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        done
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_exact_profile_counts_every_call() {
    let scratch = Scratch::new("exact");
    let files = ["--svg", "flame.svg", "--collapsed", "stacks", "--exact"];
    let done = scratch.run(&[], &[&["profile"], &files[..], &["eval", "--expr", PROGRAM]].concat());
    assert_eq!(text(&done.stdout), "[\n  1220\n  4\n]\n".replace("\n  ", " ").replace('\n', " ").trim_end().to_owned() + "\n");
    let told = text(&done.stderr);
    // fib 15 makes 1973 calls, fib 3 makes 5.
    let fib = told.lines().find(|line| line.contains("fib «string»:1:11")).unwrap_or_else(|| panic!("{told}"));
    assert!(fib.contains(" 1978 "), "{fib}");
    assert!(told.lines().any(|line| line.contains("builtins.map") && line.contains(" 1 ")), "{told}");
    let stacks = scratch.read("stacks");
    assert!(stacks.lines().any(|line| line.starts_with("evaluation;") && line.contains("fib «string»:1:11;fib")), "{stacks}");
    assert!(stacks.lines().all(|line| line.rsplit(' ').next().is_some_and(|n| n.parse::<u64>().is_ok())), "{stacks}");
    let svg = scratch.read("flame.svg");
    assert!(svg.starts_with("<svg") && svg.contains("fib «string»:1:11") && svg.ends_with("</svg>\n"));
}

#[test]
fn a_sampled_profile_finds_the_busy_function() {
    let scratch = Scratch::new("sampled");
    let busy = "let busy = n: builtins.foldl' (a: b: a + b) 0 (builtins.genList (x: x * n) 1000); in builtins.foldl' (a: n: a + busy n) 0 (builtins.genList (n: n) 600)";
    let done = scratch.run(&[], &["profile", "--collapsed", "stacks", "eval", "--expr", busy]);
    assert!(text(&done.stderr).contains("samples in all"), "{}", text(&done.stderr));
    assert!(scratch.read("stacks").contains("busy «string»:1:12"));
    let done = scratch.run(&[], &["eval", "--eval-profiler", "flamegraph", "--eval-profiler-frequency", "2000", "--expr", busy]);
    assert_eq!(text(&done.stderr), "");
    assert!(scratch.read("nix.profile").contains("busy «string»:1:12"));
}

#[test]
fn calls_are_counted_and_traced_as_in_nix() {
    let scratch = Scratch::new("count");
    let count = [("NIX_SHOW_STATS", "1"), ("NIX_COUNT_CALLS", "1"), ("NIX_SHOW_STATS_PATH", "stats.json")];
    scratch.run(&count, &["eval", "--expr", PROGRAM]);
    let stats = scratch.read("stats.json");
    let entry = stats.find("\"count\": 1978").unwrap_or_else(|| panic!("{stats}"));
    assert!(stats[entry..entry + 200].contains("\"name\": \"fib\""), "{stats}");
    assert!(stats.contains("\"map\": 1") && stats.contains("\"derivations\"") && stats.contains("\"parse\""), "{stats}");
    let done = scratch.run(&[], &["eval", "--trace-function-calls", "--expr", "(x: x + 1) 2"]);
    let told = text(&done.stderr);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert!(lines[0].starts_with("function-trace entered «string»:1:1 at "), "{told}");
    assert!(lines[1].starts_with("function-trace exited «string»:1:1 at "), "{told}");
}

#[test]
fn a_profile_evaluates_what_memory_knows_and_tells_what_it_would_have_saved() {
    let scratch = Scratch::new("memory");
    std::fs::write(scratch.0.join("fib.nix"), "let fib = n: if n < 2 then n else fib (n - 1) + fib (n - 2); in { a = fib 15; }").expect("a file");
    let memory = [("FIRN_CACHE_DIR", "memo"), ("FIRN_MEMO_LEAST", "0")];
    let eval = ["eval", "-f", "./fib.nix", "a"];
    let profiled = || {
        let done = scratch.run(&memory, &[&["profile", "--exact", "--memo", "disk"], &eval[..]].concat());
        assert_eq!(text(&done.stdout), "610\n");
        text(&done.stderr)
    };
    let told = profiled();
    assert!(told.contains("0 of 1 answers") && told.contains("a: not asked before"), "{told}");
    let told = profiled();
    assert!(told.contains("1 of 1 answers"), "{told}");
    assert!(told.lines().any(|line| line.contains("fib /")), "known, and evaluated: {told}");
    // Neither is anything else measured that was not evaluated.
    let stats = [&memory[..], &[("FIRN_MEMO", "disk"), ("NIX_SHOW_STATS", "1"), ("NIX_COUNT_CALLS", "1"), ("NIX_SHOW_STATS_PATH", "stats.json")]].concat();
    scratch.run(&stats, &eval);
    assert!(scratch.read("stats.json").contains("\"count\": 1973"));
    scratch.run(&memory, &[&eval[..], &["--memo", "disk", "--eval-profiler", "flamegraph", "--eval-profiler-frequency", "9999"]].concat());
    assert!(scratch.0.join("nix.profile").exists());
    let traced = scratch.run(&memory, &[&eval[..], &["--memo", "disk", "--trace-function-calls"]].concat());
    assert!(text(&traced.stderr).contains("function-trace entered"), "{}", text(&traced.stderr));

    std::fs::write(scratch.0.join("fib.nix"), "let fib = n: if n < 1 then n else fib (n - 1) + fib (n - 1); in { a = 610 + fib 3; }").expect("a file");
    let told = profiled();
    assert!(told.contains("a: code in fib.nix changed"), "{told}");
}

#[test]
fn a_profile_tells_which_functions_profited_within_the_run() {
    let scratch = Scratch::new("run");
    let program = "let f = n: if n < 2 then n else f (n - 1) + f (n - 2); in [ (f 18) (f 18) (f 18) ]";
    let done = scratch.run(&[], &["profile", "--memo", "run", "eval", "--expr", program]);
    assert_eq!(text(&done.stdout), "[ 2584 2584 2584 ]\n");
    let told = text(&done.stderr);
    let saved = told.split("saved within the run").nth(1).unwrap_or_else(|| panic!("{told}"));
    assert!(saved.contains("f «string»:1:9"), "{told}");
}
