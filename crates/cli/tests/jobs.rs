//! `firn jobs` says the same on one thread, on several under a perturbed schedule, in shards, and when it must begin anew
//! for want of memory (E7, P2). Random programs are made part of derivations, so that each has a line.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

#[allow(dead_code, reason = "nothing is shrunk here")]
mod generate;

use generate::choices::Choices;
use generate::grammar;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Programs that share values: each may use those before it.
const PROGRAMS: u64 = 200;

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("firn-jobs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn random_set() -> String {
    let mut text = "let\n  seal = name: value: derivation { inherit name; system = \"s\"; builder = \"b\"; value = builtins.toJSON \
                    value; };\n  each = rec {\n"
        .to_owned();
    for index in 0..PROGRAMS {
        let (program, _) = grammar::program(Choices::seeded(77 + (index << 20)));
        let _ = writeln!(text, "    p{index} = {program};");
    }
    // Circles of many sizes, values that many share, and failures in the middle of both.
    text.push_str(
        "  };\n  ring = builtins.genList (n: 1 + builtins.elemAt ring (if n == 0 then 29 else n - 1)) 30;\n  \
           chain = builtins.genList (n: if n == 0 then 0 else 1 + builtins.elemAt chain (n - 1)) 300;\n  \
           weak = builtins.genList (n: if n == 40 then throw \"no forty\" else if n == 0 then 0 else 1 + builtins.elemAt weak (n - 1)) 60;\n\
           in builtins.mapAttrs seal each // {\n",
    );
    for index in 0..30 {
        let _ = writeln!(text, "  ring{index} = seal \"ring\" (builtins.elemAt ring {index});");
    }
    for index in 0..60 {
        let _ = writeln!(text, "  chain{index} = seal \"chain\" (builtins.elemAt chain ({} - {index} * 5));", 299);
        let _ = writeln!(text, "  weak{index} = seal \"weak\" (builtins.tryEval (builtins.elemAt weak {index}));");
        let _ = writeln!(text, "  hard{index} = seal \"hard\" (builtins.elemAt weak {index});");
    }
    text.push('}');
    text
}

fn run(scratch: &Scratch, seed: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(["jobs", "--no-instantiate"]).args(arguments).current_dir(&scratch.0).env_clear();
    command.env("HOME", "/homeless").env("FIRN_MEMO", "off").env("NIX_CONF_DIR", "/nonexistent").env("FIRN_PERTURB", seed);
    command.env("TMPDIR", &scratch.0);
    command.output().expect("firn runs")
}

fn lines(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn threads_schedules_shards_and_memory_change_nothing() {
    let scratch = Scratch::new("same");
    std::fs::write(scratch.0.join("set.nix"), random_set()).expect("the set is written");
    let alone = lines(&run(&scratch, "0", &["--workers", "1", "--sorted", "set.nix"]));
    assert_eq!(alone.len(), PROGRAMS as usize + 30 + 180);
    let plain = alone.iter().filter(|line| !line.contains("\"error\"")).count();
    assert!(plain > 200, "{plain}");
    for seed in ["1", "2", "3", "4"] {
        let together = lines(&run(&scratch, seed, &["--workers", "4", "--sorted", "set.nix"]));
        for (one, other) in alone.iter().zip(&together) {
            assert_eq!(one, other, "seed {seed}");
        }
        assert_eq!(alone.len(), together.len());
    }
    let any_order: BTreeSet<String> = lines(&run(&scratch, "5", &["--workers", "3", "set.nix"])).into_iter().collect();
    assert_eq!(any_order, alone.iter().cloned().collect());
    let mut shards = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let part = lines(&run(&scratch, "0", &["--workers", "1", "--shard", shard, "set.nix"]));
        assert!(part.len() > alone.len() / 5, "{} of {}", part.len(), alone.len());
        shards.extend(part);
    }
    shards.sort();
    let mut sorted = alone.clone();
    sorted.sort();
    assert_eq!(shards, sorted);
    // One megabyte is always used up: each process does one job per worker.
    let anew = lines(&run(&scratch, "0", &["--workers", "2", "--max-memory-size", "1", "--sorted", "set.nix"]));
    assert_eq!(anew, alone);
    let left: Vec<_> = std::fs::read_dir(&scratch.0).expect("readable").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(left, ["set.nix"], "nothing is left behind");
}

#[test]
fn a_closed_output_ends_the_run() {
    let scratch = Scratch::new("closed");
    std::fs::write(scratch.0.join("set.nix"), random_set()).expect("the set is written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(["jobs", "--no-instantiate", "--quiet", "--quiet", "--quiet", "set.nix"]).current_dir(&scratch.0);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("firn starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("firn ends").code(), Some(1));
}
