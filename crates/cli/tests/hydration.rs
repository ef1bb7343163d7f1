//! Hydration: what firn writes into stores is accepted, verified, realised and matched by the real Nix (spec E3, E5).
//!
//! Every test has a store of its own in a temporary directory, with its own state, settings and socket, and says loudly
//! when there is no Nix to hold firn against. No test reaches a store or daemon of the machine, or the network.
#![allow(clippy::disallowed_methods, reason = "a test looks at files and processes itself")]

#[path = "harness/mod.rs"]
mod harness;
#[path = "hydration/cache_status.rs"]
mod cache_status;
#[path = "hydration/closures.rs"]
mod closures;
#[path = "hydration/scratch.rs"]
mod scratch;

use scratch::{Scratch, nix_is_here};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Two derivations, a source tree with an executable and a link, a text; `b` needs all of them.
const GRAPH: &str = r#"
let
  sh = name: script: more: derivation ({
    inherit name; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" script ]; PATH = "/bin:/usr/bin";
  } // more);
  a = sh "a" "cat $text > $out" { text = builtins.toFile "text" "of toFile\n"; };
  b = sh "b" "cat ${a} $src/link > $out; $src/run >> $out; echo two > $dev" { src = ./src; outputs = [ "out" "dev" ]; };
in b
"#;
const BUILT: &str = "of toFile\nof the tree\nran\n";

/// A derivation whose output is imported, read and listed.
const IMPORTING: &str = r#"
let
  made = derivation {
    name = "made"; system = builtins.currentSystem; builder = "/bin/sh"; PATH = "/bin:/usr/bin";
    args = [ "-c" "mkdir $out; echo '{ x = 40 + 2; }' > $out/default.nix; echo said > $out/text; ln -s text $out/link" ];
  };
in [ (import made).x (builtins.readFile "${made}/link") (builtins.attrNames (builtins.readDir made))
     (builtins.pathExists "${made}/text") (builtins.pathExists "${made}/nothing") (builtins.readFileType "${made}/link") ]
"#;
const IMPORTED: &str = r#"[ 42 "said\n" [ "default.nix" "link" "text" ] true false "symlink" ]"#;

#[test]
fn a_graph_in_a_directory_is_accepted_and_realised() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("local");
    scratch.write_graph(GRAPH);
    let drv = scratch.firn(&["graph.nix", "--no-gc-warning"]).line();
    let drv = drv.strip_suffix("!out").unwrap_or(&drv).to_owned();
    assert_eq!(drv, scratch.nix("nix-instantiate", &["--no-gc-warning", "graph.nix"]).line());
    scratch.verify();
    scratch.nix("nix-store", &["--check-validity", &drv]);
    let references = scratch.nix("nix-store", &["-q", "--references", &drv]).lines();
    let names: Vec<&str> =
        references.iter().filter_map(|path| path.rsplit('/').next()?.split_once('-')).map(|(_, name)| name).collect();
    assert_eq!(names.len(), 2, "{references:?}");
    assert!(names.contains(&"a.drv") && names.contains(&"src"), "{names:?}");
    assert_eq!(scratch.nix("nix-store", &["-q", "--tree", &drv]).lines().len(), 4);
    scratch.nix("nix-store", &["--realise", &drv]);
    assert_eq!(scratch.built(&drv), BUILT);
    // A second run finds everything in place, outputs included.
    assert_eq!(scratch.firn(&["graph.nix", "--no-gc-warning"]).line(), drv);
    scratch.verify();
}

#[test]
fn a_graph_goes_through_a_daemon() {
    if !nix_is_here() {
        return;
    }
    let mut scratch = Scratch::new("daemon");
    scratch.write_graph(GRAPH);
    scratch.start_daemon();
    let drv = scratch.firn(&["graph.nix", "--no-gc-warning"]).line();
    scratch.nix("nix-store", &["--realise", &drv]);
    assert_eq!(scratch.built(&drv), BUILT);
    let imported = scratch.firn(&["--eval", "--strict", "--read-write-mode", "-E", IMPORTING]);
    assert_eq!(imported.line(), IMPORTED);
    let root = scratch.path("root");
    let shown = scratch.firn(&["graph.nix", "--add-root", root.to_str().unwrap(), "--indirect"]).line();
    assert_eq!(Path::new(&shown), root);
    assert_eq!(std::fs::read_link(&root).unwrap(), Path::new(&drv));
    assert!(scratch.nix("nix-store", &["--gc", "--print-roots"]).text().contains(&*shown));
    let failing = r#"import (derivation { name = "bad"; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" "echo why; exit 3" ]; })"#;
    let failed = scratch.firn_fails(&["--eval", "--read-write-mode", "-E", failing]);
    assert!(failed.contains("failed with exit code 3") && failed.contains("why"), "{failed}");
    // The socket by its name, and what a socket that is not there says.
    let named = format!("unix://{}", scratch.socket().display());
    assert_eq!(scratch.firn(&["graph.nix", "--no-gc-warning", "--store", &named]).line(), drv);
    let nowhere = scratch.firn_fails(&["graph.nix", "--store", "unix:///nonexistent/socket"]);
    assert!(nowhere.contains("cannot connect to socket at '/nonexistent/socket'"), "{nowhere}");
    scratch.verify();
}

#[test]
fn import_from_derivation_builds_in_a_directory() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("import");
    let evaluate = ["--eval", "--strict", "--read-write-mode", "-E", IMPORTING];
    let forbidden = scratch.firn_fails(&[&evaluate[..], &["--no-allow-import-from-derivation"]].concat());
    assert!(forbidden.contains("because the option 'allow-import-from-derivation' is disabled"), "{forbidden}");
    let mut without = scratch.firn_command(&evaluate);
    let without = without.env("FIRN_NIX_DAEMON", "/nonexistent/nix-daemon").output().unwrap();
    assert!(!without.status.success());
    assert!(String::from_utf8_lossy(&without.stderr).contains("a store directory is built in by a 'nix-daemon'"));
    let traced = scratch.firn(&[&evaluate[..], &["--trace-import-from-derivation"]].concat());
    assert_eq!(traced.line(), IMPORTED);
    assert!(traced.errors().contains("during evaluation due to an import from derivation"));
    // Plain evaluation writes what a build needs and nothing else.
    let other = Scratch::new("import-eval");
    let later = "(derivation { name = \"later\"; builder = \"b\"; system = \"s\"; }).drvPath";
    let expression = format!("let it = ({IMPORTING}); in builtins.seq (builtins.head it) (builtins.seq {later} it)");
    let mut plain = other.command(env!("CARGO_BIN_EXE_firn"));
    let plain = plain.args(["eval", "--impure", "--expr", &expression]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&plain.stdout).trim(), IMPORTED);
    assert_eq!(other.objects().len(), 2, "{:?}", other.objects());
    other.verify();
}

/// A chain and a fan of derivations and texts, large enough to be cut off in the middle.
const MANY: &str = r#"
{ run ? "" }:
let
  make = n: derivation {
    name = "n${toString n}${run}"; system = "s"; builder = builtins.toFile "b${toString n}${run}" (toString n);
    src = builtins.path { path = ./src; name = "src${run}"; };
    before = if n == 0 then "" else make (n - 1);
  };
in make 400
"#;

#[test]
fn a_killed_run_leaves_a_store_that_nix_accepts() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("killed");
    scratch.write_graph(MANY);
    let mut cut_off = 0;
    for step in 0..12 {
        let mut command = scratch.firn_command(&["graph.nix", "--no-gc-warning"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(4 + 3 * step));
        child.kill().unwrap();
        cut_off += usize::from(!child.wait().unwrap().success());
        scratch.verify();
        for name in scratch.objects().iter().filter(|name| name.ends_with(".drv")) {
            let text = std::fs::read(scratch.path("store").join(name)).unwrap();
            assert!(text.starts_with(b"Derive(") && text.ends_with(b")"), "{name} is half-written");
        }
    }
    assert!(cut_off > 0, "no run was slow enough to be killed");
    let drv = scratch.firn(&["graph.nix", "--no-gc-warning"]).line();
    scratch.verify();
    assert_eq!(scratch.nix("nix-store", &["-qR", &drv]).lines().len(), 2 * 401 + 1);
    // What the killed runs left behind is collected; what the last one holds is not.
    let root = scratch.path("root");
    scratch.firn(&["graph.nix", "--add-root", root.to_str().unwrap()]);
    scratch.nix("nix-store", &["--gc"]);
    let left: Vec<String> = scratch.objects();
    assert_eq!(left.len(), 2 * 401 + 1, "{:?}", left.iter().filter(|name| name.contains("-tmp-")).collect::<Vec<_>>());
}

#[test]
fn many_processes_write_one_store() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("many");
    scratch.write_graph(MANY);
    let mut children = Vec::new();
    for index in 0..4 {
        let mut command = match index {
            3 => {
                // NIX: it does not wait for others that make the store.
                while !scratch.path("var/db/schema").exists() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let mut nix = scratch.command("nix-instantiate");
                nix.args(["--no-gc-warning", "graph.nix"]);
                nix
            }
            _ => scratch.firn_command(&["graph.nix", "--no-gc-warning"]),
        };
        children.push(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    }
    let outputs: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, outputs[0].stdout);
    }
    scratch.verify();
    assert_eq!(scratch.objects().len(), 2 * 401 + 1);
}

#[test]
fn many_processes_make_one_store() {
    if !nix_is_here() {
        return;
    }
    for _ in 0..25 {
        let scratch = Scratch::new("making-many");
        scratch.write_graph(GRAPH);
        let begin = |_| {
            let mut command = scratch.firn_command(&["graph.nix", "--no-gc-warning"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let children: Vec<_> = (0..5).map(begin).collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        scratch.verify();
    }
}

/// NIX: a store is made by emptying the file that tells its schema and then writing it.
#[test]
fn a_store_that_is_being_made_is_waited_for() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("making");
    scratch.write_graph(GRAPH);
    let drv = scratch.firn(&["graph.nix", "--no-gc-warning"]).line();
    let name = scratch.path("var/db/schema");
    let schema = std::fs::read(&name).unwrap();
    std::fs::write(&name, "").unwrap();
    let waiting = scratch.firn_command(&["graph.nix", "--no-gc-warning"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    std::fs::write(&name, &schema).unwrap();
    assert_eq!(String::from_utf8_lossy(&waiting.wait_with_output().unwrap().stdout).trim(), drv);
    // But not for ever.
    std::fs::write(&name, "").unwrap();
    let told = scratch.firn_fails(&["graph.nix", "--no-gc-warning"]);
    assert!(told.contains("schema' is corrupt"), "{told}");
    std::fs::write(&name, &schema).unwrap();
    scratch.verify();
}

/// NIX: the collector of 2.8 may delete an object that was garbage when it began and is wanted again since (2.35 looks
/// twice), so every run makes objects of its own: those it must spare from the moment they are begun.
#[test]
fn garbage_is_collected_meanwhile() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("garbage");
    scratch.write_graph(MANY);
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            for _ in 0..12 {
                scratch.nix("nix-store", &["--gc"]);
            }
        });
        let mut run = 0;
        while !collector.is_finished() && run < 40 {
            run += 1;
            scratch.firn(&["graph.nix", "--no-gc-warning", "--argstr", "run", &format!("-{run}")]);
        }
    });
    let drv = scratch.firn(&["graph.nix", "--no-gc-warning"]).line();
    scratch.verify();
    assert_eq!(scratch.nix("nix-store", &["-qR", &drv]).lines().len(), 2 * 401 + 1);
}

/// Pure evaluation may not look around in the store, but what it builds it may read, and derivations are read for it.
const PURE: &str = r#"
let made = derivation { name = "p"; system = "SYSTEM"; builder = "/bin/sh"; args = [ "-c" "echo '{ y = 7; }' > $out" ]; };
in (import made).y + builtins.stringLength (builtins.readFile made)
"#;

#[test]
fn pure_evaluation_reads_what_it_builds() {
    if !nix_is_here() {
        return;
    }
    let scratch = Scratch::new("pure");
    let system = scratch.firn(&["--eval", "--raw", "-E", "builtins.currentSystem"]).text();
    let expression = PURE.replace("SYSTEM", &system);
    for _ in 0..2 {
        let mut command = scratch.command(env!("CARGO_BIN_EXE_firn"));
        let output = command.args(["eval", "--expr", &expression]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "18\n", "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(scratch.firn(&["--eval", "--read-write-mode", "--restrict-eval", "-E", &expression]).line(), "18");
}

#[test]
fn store_objects_are_those_of_nix_byte_for_byte() {
    if !nix_is_here() {
        return;
    }
    let (ours, theirs) = (Scratch::new("ours"), Scratch::new("theirs"));
    let corpus = harness::corpus::directory();
    let mut programs = 0;
    for subject in harness::corpus::read_all() {
        if !subject.name().starts_with("derivations/") {
            continue;
        }
        for program in subject.programs.iter().filter(|program| program.newer.is_none()) {
            let flags = ["--eval", "--strict", "--read-write-mode", "-E", &program.text];
            let rooted = |scratch: &Scratch, mut command: Command| {
                command.current_dir(&corpus).env("NIX_STORE_DIR", "/nix/store").args(flags);
                command.arg("--store").arg(scratch.path("root")).output().unwrap()
            };
            let nix = rooted(&theirs, theirs.command("nix-instantiate"));
            let firn = rooted(&ours, ours.firn_command(&[]));
            let said = String::from_utf8_lossy(&firn.stderr);
            assert_eq!(firn.status.success(), nix.status.success(), "{}/{}: {said}", subject.name(), program.name);
            programs += usize::from(nix.status.success());
        }
    }
    let (ours, theirs) = (rooted_files(&ours), rooted_files(&theirs));
    let drvs = theirs.keys().filter(|name| name.ends_with(".drv")).count();
    assert!(drvs >= 120 && programs >= 120, "{programs} programs, {drvs} derivations");
    for (name, file) in &theirs {
        assert!(ours.get(name) == Some(file), "{name} differs or is missing");
    }
    let more: Vec<_> = ours.keys().filter(|name| !theirs.contains_key(*name)).collect();
    assert!(more.is_empty(), "only firn wrote {more:?}");
    println!("{programs} programs: {drvs} derivations and {} other files are the same", theirs.len() - drvs);
}

fn rooted_files(scratch: &Scratch) -> BTreeMap<String, (u32, Vec<u8>)> {
    let files = scratch::files_below(&scratch.path("root/nix/store"));
    files.into_iter().map(|(name, mode, text)| (name, (mode, text))).collect()
}

/// A build that fails during evaluation, and one whose hash is another.
const FAILING: [&str; 2] = [
    r#"import (derivation { name = "f"; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" "exit 3" ]; })"#,
    r#"import (derivation { name = "h"; system = builtins.currentSystem; builder = "/bin/sh"; args = [ "-c" "echo 1 > $out" ];
        outputHash = "0000000000000000000000000000000000000000000000000000"; outputHashAlgo = "sha256"; outputHashMode = "flat"; })"#,
];

#[test]
fn a_build_that_fails_during_evaluation_ends_with_the_status_of_nix() {
    if !nix_is_here() {
        return;
    }
    let status = |mut command: Command| command.stderr(Stdio::null()).output().expect("it runs").status.code();
    let both = |scratch: &Scratch, text: &str| {
        let arguments = ["--eval", "--read-write-mode", "-E", text];
        let mut nix = scratch.command("nix-instantiate");
        nix.args(arguments);
        (status(scratch.firn_command(&arguments)), status(nix))
    };
    let scratch = Scratch::new("failing");
    assert_eq!(both(&scratch, FAILING[0]), (Some(100), Some(100)));
    assert_eq!(both(&scratch, FAILING[1]), (Some(102), Some(102)));
    let mut scratch = Scratch::new("failing-daemon");
    scratch.start_daemon();
    let (firn, nix) = both(&scratch, FAILING[0]);
    assert_eq!(firn, nix);
}
