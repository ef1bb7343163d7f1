//! Which calls are shared within one evaluation (L1.4), told by how many are made: programs that ask for a thing several times beside
//! such that ask for it once.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

#[allow(dead_code, reason = "the harness serves several tests")]
mod harness;

use harness::tool::{Tool, run};
use std::path::Path;

/// A file that takes an argument and works on it, and one that an argument imports.
const FILES: [(&str, &str); 4] = [
    ("work.nix", "{ system, overlays ? [ ], config ? { } }:\nlet sum = n: if n == 0 then 0 else n + sum (n - 1);\nin { inherit system; n = builtins.foldl' (a: o: a + o 1) (sum 300) overlays + config.more or 0; fn = x: x; }"),
    ("overlay.nix", "n: n * 2"),
    ("config.nix", "{ more = 3; }"),
    ("lib.nix", "rec { elaborate = arg: let s = if builtins.isString arg then { system = arg; } else arg; sum = n: if n == 0 then 0 else 1 + sum (n - 1); in builtins.seq (sum 150) (s // { n = sum 150; is = x: x; }); }"),
];

/// What a program gives, and how many calls were made for it.
fn calls(dir: &Path, memo: &str, text: &str) -> (String, u64) {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let counted = tempfile::NamedTempFile::new().expect("a file can be made");
    let mut command = firn.command(dir);
    command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", counted.path());
    command.args(["--eval", "--strict", "--memo", memo, "-E", text]);
    let run = run(command, b"");
    assert_eq!(run.code, Some(0), "{memo}: {text}: {}", String::from_utf8_lossy(&run.stderr));
    let counts = std::fs::read_to_string(counted.path()).expect("the counters can be read");
    let made = counts.split("\"nrFunctionCalls\": ").nth(1).and_then(|rest| rest.split([',', '\n']).next());
    let made = made.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no number of calls in {counts}"));
    (String::from_utf8_lossy(&run.stdout).into_owned(), made)
}

/// Asks ten times for what `one` gives, in a directory with [`FILES`]; without sharing that is `cost` calls each time or more, and with it
/// `first` times are made.
fn shares(one: &str, cost: u64, first: u64) {
    let dir = tempfile::tempdir().expect("a directory can be made");
    for (name, text) in FILES {
        std::fs::write(dir.path().join(name), text).expect("a file can be written");
    }
    let ten = format!("let one = i: {one}; in builtins.genList one 10");
    let (off, plain) = calls(dir.path(), "off", &ten);
    assert!(plain >= 10 * cost, "{one}: {plain} calls are made without sharing");
    let (shared, made) = calls(dir.path(), "run", &ten);
    assert_eq!(shared, off, "{one}");
    assert!(made < (first + 1) * cost, "{one}: {made} calls, {plain} without sharing");
    assert_eq!(calls(dir.path(), "shadow", &ten).0, off, "{one}");
}

#[test]
fn a_file_that_is_called_again() {
    shares("(import ./work.nix { system = \"a\"; }).n", 300, 1);
}

/// Arguments that import are suspended in both calls, in cells of their own.
#[test]
fn a_file_whose_arguments_import() {
    shares("(import ./work.nix { system = \"a\"; overlays = [ (import ./overlay.nix) ]; }).n", 300, 1);
    shares("(import ./work.nix { system = \"a\"; overlays = [ (import ./overlay.nix) (import ./overlay.nix) ]; config = import ./config.nix; }).n", 300, 1);
}

/// What differs is not shared.
#[test]
fn a_file_whose_arguments_import_others() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    for (name, text) in FILES.into_iter().chain([("other.nix", "n: n * 5")]) {
        std::fs::write(dir.path().join(name), text).expect("a file can be written");
    }
    let both = "map (path: (import ./work.nix { system = \"a\"; overlays = [ (import ./overlay.nix) ]; }).n + (import ./work.nix { system = \"a\"; overlays = [ (import ./other.nix) ]; }).n) [ 1 2 ]";
    for memo in ["off", "run", "shadow"] {
        assert_eq!(calls(dir.path(), memo, both).0, "[ 90307 90307 ]\n", "{memo}");
    }
}

/// A function of a library: the first two calls are made to see what one costs, the third is remembered.
#[test]
fn a_function_that_costs_a_little() {
    shares("((import ./lib.nix).elaborate \"x86_64-linux\").n", 300, 4);
}
