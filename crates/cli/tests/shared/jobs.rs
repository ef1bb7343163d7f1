//! `firn jobs --memo shared`: one machine goes over a set and pushes, another with an empty cache and a checkout elsewhere gets every
//! line from the remote.

use crate::random::{Random, number};
use crate::{Machine, World, program, servers, text};
use std::path::Path;
use std::process::{Command, Output};

const SET: &str = r#"
let
  make = name: more: derivation ({ inherit name; system = "s"; builder = "b"; } // more);
  fib = n: if n < 2 then n else fib (n - 1) + fib (n - 2);
in {
  plain = make "plain" { };
  slow = make "slow" { n = fib 20; };
  text = make "text" { t = builtins.readFile ./t; };
  source = make "source" { src = ./t; };
  tree = make "tree" { src = builtins.path { path = ./dir; name = "dir"; }; };
  far = make "far" { x = import ./b.nix; };
  two = make "two" { outputs = [ "out" "dev" ]; };
  more = { recurseForDerivations = true; one = make "one" { }; deeper = { recurseForDerivations = true; two = make "two" { }; }; };
  number = 7;
  "odd.name" = make "odd" { };
}
"#;

/// What fails says why, and where; only one of them names a place in the checkout.
const FAILING: &str = r#"{ thrown = throw "no"; missing = { }.x; nowhere = builtins.readFile ./nothing; assertion = assert 1 == 2; 1; }"#;

fn fill(machine: &Machine) {
    machine.write("default.nix", SET);
    machine.write("failing.nix", FAILING);
    machine.write("b.nix", "import ./c.nix + 1\n");
    machine.write("c.nix", "2\n");
    machine.write("t", "text\n");
    machine.write("dir/x", "x\n");
}

fn jobs(mut command: Command, stats: &Path, arguments: &[&str]) -> Output {
    command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", stats);
    let output = command.args(["jobs", "--no-instantiate", "--sorted"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// A counter of the statistics; of those with that name the last.
fn counted(stats: &Path, name: &str) -> u64 {
    let stats = std::fs::read_to_string(stats).unwrap();
    let rest = stats.rsplit(&format!("\"{name}\": ")).next().unwrap_or_default();
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or_else(|_| panic!("{name} in {stats}"))
}

fn travel(remote: &str) {
    let world = World::new();
    let (a, b) = (world.machine("a"), world.machine("elsewhere/b"));
    let stats = world.dir.path().join("stats");
    for machine in [&a, &b] {
        fill(machine);
    }
    let pushed = jobs(a.signing("shared", remote), &stats, &["--workers", "2", "default.nix"]);
    let lines = text(&pushed.stdout).lines().count();
    assert_eq!(lines, 10);
    assert!(counted(&stats, "pushed") >= 10 && counted(&stats, "nrFiles") > 0);
    let fresh = jobs(b.firn("off", remote), &stats, &["default.nix"]);
    assert_eq!(text(&fresh.stdout), text(&pushed.stdout));
    let functions = counted(&stats, "nrFunctionCalls");
    assert!(functions > 10_000, "{functions}");
    for workers in ["1", "3"] {
        let _ = std::fs::remove_dir_all(b.root.join("cache"));
        let pulled = jobs(b.firn("shared", remote), &stats, &["--workers", workers, "default.nix"]);
        assert_eq!(text(&pulled.stdout), text(&fresh.stdout), "{remote}, {workers} workers");
        assert_eq!((counted(&stats, "nrFiles"), counted(&stats, "nrFunctionCalls")), (0, 0), "{remote}, {workers} workers");
    }
    // Now it lies on this machine, too.
    let kept = jobs(b.firn("disk", remote), &stats, &["default.nix"]);
    assert_eq!((text(&kept.stdout), counted(&stats, "nrFunctionCalls")), (text(&fresh.stdout), 0));
    // What changed here is evaluated here, the rest is not.
    b.write("c.nix", "3\n");
    let changed = jobs(b.firn("shared", remote), &stats, &["default.nix"]);
    let again = jobs(b.firn("off", remote), &stats, &["default.nix"]);
    assert_eq!(text(&changed.stdout), text(&again.stdout));
    assert_ne!(text(&changed.stdout), text(&fresh.stdout));
    let told = |output: &Output| text(&output.stderr);
    let failing = ["--force-recurse", "failing.nix"];
    jobs(a.signing("shared", remote), &stats, &failing);
    let (pulled, fresh) = (jobs(b.firn("shared", remote), &stats, &failing), jobs(b.firn("off", remote), &stats, &failing));
    assert_eq!((text(&pulled.stdout), told(&pulled)), (text(&fresh.stdout), told(&fresh)), "{remote}");
}

#[test]
fn lines_travel_through_a_directory() {
    travel(&World::new().directory());
}

#[test]
fn lines_travel_through_webdav() {
    if let Some(server) = servers::nginx() {
        travel(&server.url);
    }
}

#[test]
fn random_sets_give_the_same_lines_wherever_they_lie() {
    let (mut hits, count) = (0, number("FIRN_SHARED_JOBS", 60));
    for seed in 0..count as u64 {
        let world = World::new();
        let remote = world.directory();
        let machines = [world.machine("one"), world.machine("two/and/more")];
        for machine in &machines {
            let random = &mut Random::new(seed + 1);
            machine.write("default.nix", &program::jobs(random));
            for (index, name) in program::EXPRESSIONS.iter().enumerate() {
                machine.write(name, &program::file(random, index));
            }
            machine.write(program::FUNCTION, &program::function(random));
            machine.write(program::BINDINGS, &program::bindings(random));
            program::DATA.iter().for_each(|name| machine.write(name, &program::data(random)));
        }
        let stats = world.dir.path().join("stats");
        jobs(machines[0].signing("shared", &remote), &stats, &["default.nix"]);
        let pulled = jobs(machines[1].firn("shared", &remote), &stats, &["--workers", "2", "default.nix"]);
        hits += counted(&stats, "hits");
        let fresh = jobs(machines[1].firn("off", &remote), &stats, &["default.nix"]);
        assert_eq!(text(&pulled.stdout), text(&fresh.stdout), "seed {seed}");
    }
    // Otherwise nothing was tried.
    assert!(hits as usize > count, "{hits} hits");
}
