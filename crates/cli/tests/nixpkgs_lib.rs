//! The tests that nixpkgs brings for its own library, through firn (spec P1): `lib/tests/misc.nix` must evaluate to an
//! empty list of failures, and `lib/tests/modules.sh` drives firn hundreds of times as `nix-instantiate`.
//! `FIRN_NIXPKGS` names one or more nixpkgs trees, separated by colons; without it the tests say that they were skipped.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod harness;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness::outcome::{Value, value_of};
use harness::text::{plain, readable};
use harness::tool::{self, Tool};

/// `modules.sh` starts several hundred processes, one after another.
const MODULES_DEADLINE: Duration = Duration::from_secs(900);

/// The tool and the trees, or the reason why there is nothing to do.
fn setting() -> Result<(Tool, Vec<PathBuf>), &'static str> {
    let trees = std::env::var_os("FIRN_NIXPKGS")
        .ok_or("FIRN_NIXPKGS is not set; the tests of nixpkgs' library were NOT run")?;
    let firn = Tool::firn().ok_or("package firn has no binary yet and FIRN_BIN is not set")?;
    let found = std::env::split_paths(&trees).map(|tree| {
        let absolute = tree.canonicalize();
        absolute.unwrap_or_else(|error| panic!("FIRN_NIXPKGS: {}: {error}", tree.display()))
    });
    Ok((firn, found.collect()))
}

#[test]
fn misc_nix_reports_no_failures() {
    let (firn, trees) = match setting() {
        Ok(setting) => setting,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    for tree in trees {
        let mut command = firn.command(&tree);
        command.args(["--eval", "--strict", "lib/tests/misc.nix"]);
        let run = tool::run_within(command, b"", MODULES_DEADLINE);
        let value = value_of(&run, &tree);
        assert_eq!(value, Value::Printed("[ ]".to_owned()), "{}: {}", tree.display(), readable(&run.stderr));
        println!("{}: lib/tests/misc.nix evaluates to [ ]", tree.display());
    }
}

#[test]
fn modules_sh_passes() {
    let (firn, trees) = match setting() {
        Ok(setting) => setting,
        Err(why) => return eprintln!("SKIPPED: {why}"),
    };
    for tree in &trees {
        let (failing, output) = modules_sh(&firn, tree, "firn");
        if failing.is_empty() {
            continue;
        }
        // A few checks expect the wording of one version of Nix; what Nix itself fails, firn may fail.
        let excused = Tool::oracle().map(|oracle| modules_sh(&oracle, tree, "Nix").0).unwrap_or_default();
        let ours: Vec<&String> = failing.iter().filter(|check| !excused.contains(check)).collect();
        assert!(ours.is_empty(), "{}: checks that only firn fails:\n{ours:#?}\n\n{output}", tree.display());
    }
}

/// Runs `modules.sh` with `tool` as `nix-instantiate` and a store of its own; the failing checks and all output.
fn modules_sh(tool: &Tool, tree: &Path, who: &str) -> (Vec<String>, String) {
    let room = std::env::temp_dir().join(format!("firn-modules-{}-{who}", std::process::id()));
    let (bin, store) = (room.join("bin"), room.join("store"));
    for dir in [&bin, &store] {
        fs::create_dir_all(dir).expect("the temporary directory is writable");
    }
    let program = tool.program().canonicalize().expect("the tool exists");
    std::os::unix::fs::symlink(program, bin.join("nix-instantiate")).expect("the temporary directory is writable");

    let mut command = tool::clean_command(Path::new("bash"), &tree.join("lib/tests"));
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&inherited)));
    command.env("PATH", path.expect("a temporary directory has no colon in its name")).env("HOME", &room);
    // One check imports what it has just written to the store, so this store must be a real one.
    command.env("NIX_REMOTE", "local").env("NIX_STORE_DIR", &store);
    command.env("NIX_STATE_DIR", room.join("var")).env("NIX_LOG_DIR", room.join("log"));
    command.arg("modules.sh");
    let run = tool::run_within(command, b"", MODULES_DEADLINE);
    drop(fs::remove_dir_all(&room));

    let output = plain(&(readable(&run.stdout) + &readable(&run.stderr)));
    let summary: Vec<&str> = output.lines().filter(|line| line.ends_with(" Pass") || line.ends_with(" Fail")).collect();
    println!("{}: lib/tests/modules.sh with {who}: {}", tree.display(), summary.join(", "));
    let mut failing: Vec<String> =
        output.lines().filter(|line| line.starts_with("$ nix-instantiate ")).map(str::to_owned).collect();
    if run.code != Some(0) && failing.is_empty() {
        failing.push(format!("modules.sh itself: exit code {:?}", run.code));
    }
    (failing, output)
}
