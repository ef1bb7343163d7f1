//! Lists of what Nix computed for nixpkgs and NixOS, through `firn compare` (spec E3, P1).
//! `FIRN_EXPECTED` names a directory with lists: `nixpkgs-RELEASE.tsv` is held against the tree in `FIRN_NIXPKGS_RELEASE` (2003
//! and 2026), and so is `nixos-RELEASE.tsv`, whose rows name files `nixos/NAME.nix` (or `nixos-RELEASE/NAME.nix`) beside it that
//! are functions of the tree. What is not there is skipped, loudly.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod harness;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::text::readable;
use harness::tool;

/// Thousands of packages on a slow machine.
const DEADLINE: Duration = Duration::from_secs(1800);

/// NIX: 2.8, which made the lists of 20.03, knows no limit of calls; one package there needs more than the usual.
const CALL_DEPTH: &str = "1000000";

/// A list and the tree that it is about.
fn setting(list: &str, release: &str) -> Result<(PathBuf, PathBuf), String> {
    let of = |name: &str| std::env::var_os(name).ok_or(format!("{name} is not set; {list} was NOT compared"));
    let list = PathBuf::from(of("FIRN_EXPECTED")?).join(list);
    let tree = PathBuf::from(of(&format!("FIRN_NIXPKGS_{release}"))?);
    if !list.exists() {
        return Err(format!("{} does not exist and was NOT compared", list.display()));
    }
    let tree = tree.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", tree.display()));
    Ok((list.canonicalize().expect("the list exists"), tree))
}

/// Runs `firn compare`; its exit status and what it printed.
fn compare(list: &Path, expression: String) {
    let here = std::env::temp_dir();
    let mut command = tool::clean_command(Path::new(env!("CARGO_BIN_EXE_firn")), &here);
    let words: [OsString; 6] =
        ["compare".into(), "--list".into(), list.into(), "--max-call-depth".into(), CALL_DEPTH.into(), "-E".into()];
    command.args(words).arg(expression);
    let run = tool::run_within(command, b"", DEADLINE);
    let output = readable(&run.stdout);
    assert_eq!(run.code, Some(0), "{}:\n{output}\n{}", list.display(), readable(&run.stderr));
    println!("{}: {}", list.display(), output.trim_end());
}

fn nixpkgs(release: &str) {
    match setting(&format!("nixpkgs-{release}.tsv"), release) {
        Err(why) => eprintln!("SKIPPED: {why}"),
        Ok((list, tree)) => {
            let arguments = "{ system = \"x86_64-linux\"; config = { }; overlays = [ ]; }";
            compare(&list, format!("import {} {arguments}", tree.display()));
        }
    }
}

fn nixos(release: &str) {
    let (list, tree) = match setting(&format!("nixos-{release}.tsv"), release) {
        Err(why) => return eprintln!("SKIPPED: {why}"),
        Ok(found) => found,
    };
    let beside = list.parent().expect("a file is in a directory");
    let own = beside.join(format!("nixos-{release}"));
    let dir = if own.exists() { own } else { beside.join("nixos") };
    let text = fs::read_to_string(&list).expect("the list is text");
    let mut systems = String::from("{\n");
    for name in text.lines().filter_map(|line| line.split('\t').next()).filter(|name| !name.is_empty()) {
        let file = dir.join(format!("{name}.nix"));
        writeln!(systems, "  \"{name}\" = import {} {{ np = {}; }};", file.display(), tree.display())
            .expect("a string");
    }
    compare(&list, systems + "}");
}

#[test]
fn nixpkgs_2003() {
    nixpkgs("2003");
}

#[test]
fn nixpkgs_2026() {
    nixpkgs("2026");
}

#[test]
fn nixos_2003() {
    nixos("2003");
}

#[test]
fn nixos_2026() {
    nixos("2026");
}
