//! `--cores`: whatever threads evaluate ahead, value, error, trace and exit status are those of one thread (E7, P2), here
//! under a schedule that is perturbed.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

#[allow(dead_code, reason = "nothing is shrunk here")]
mod generate;

use generate::choices::Choices;
use generate::grammar;
use std::process::Command;

const PROGRAMS: u64 = 200;

/// Standard output, standard error and status.
fn run(cores: u32, seed: u64, arguments: &[&str]) -> (String, String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(["instantiate", "--cores", &cores.to_string()]).args(arguments).env_clear();
    command.env("HOME", "/homeless").env("FIRN_MEMO", "off").env("NIX_CONF_DIR", "/nonexistent").env("NIX_REMOTE", "dummy://");
    command.env("FIRN_PERTURB", seed.to_string());
    let done = command.output().expect("firn runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&done.stdout), text(&done.stderr), done.status.code())
}

fn same(arguments: &[&str], rounds: u64) {
    let alone = run(1, 0, arguments);
    for seed in 1..=rounds {
        assert_eq!(run(4, seed, arguments), alone, "{arguments:?}, seed {seed}");
    }
}

#[test]
fn random_programs_are_the_same_on_four_threads() {
    for index in 0..PROGRAMS {
        let (program, _) = grammar::program(Choices::seeded(991 + (index << 20)));
        let text = format!("let p = {program}; in [ p {{ a = p; b = [ p ({program}) ]; }} ]");
        let form: &[&str] = if index % 2 == 0 { &["--eval", "--strict", "--show-trace", "-E"] } else { &["--eval", "--strict", "--json", "-E"] };
        same(&[form, &[&text]].concat(), 1);
    }
}

#[test]
fn traces_and_errors_come_in_the_order_of_one_thread() {
    let traced = r#"
      let slow = n: builtins.foldl' (a: b: a + b) 0 (builtins.genList (x: x * n) 2000);
      in builtins.genList (n: builtins.trace "element ${toString n}" (if n == 37 then throw "thirty-seven" else if n == 38 then 1 + "" else slow n)) 60"#;
    same(&["--eval", "--strict", "--show-trace", "-E", traced], 6);
    let caught = r#"
      let weak = builtins.genList (n: if n == 30 then throw "thirty" else if n == 0 then 0 else 1 + builtins.elemAt weak (n - 1)) 50;
      in builtins.genList (n: builtins.tryEval (builtins.elemAt weak (49 - n))) 50"#;
    same(&["--eval", "--strict", "--json", "-E", caught], 6);
}

#[test]
fn circles_are_reported_where_one_thread_finds_them() {
    let ring = r#"let ring = builtins.genList (n: 1 + builtins.elemAt ring (if n == 0 then 23 else n - 1)) 24; in ring"#;
    same(&["--eval", "--strict", "--show-trace", "-E", ring], 10);
    let back = r#"let all = { a = all.b + 1; b = all.c + 1; c = all.d + 1; d = all.a + 1; e = 5; }; in [ all.e all.d all.c all.b all ]"#;
    same(&["--eval", "--strict", "--show-trace", "-E", back], 10);
}

#[test]
fn derivations_and_their_inputs() {
    let graph = r#"
      let
        make = name: inputs: derivation { inherit name inputs; builder = "b"; system = "s"; };
        layer = n: below: builtins.genList (i: make "d${toString n}-${toString i}" (builtins.genList (k: builtins.elemAt below (builtins.bitAnd (i * 7 + k * 5) 15)) 6)) 16;
        top = builtins.foldl' (below: n: layer n below) (builtins.genList (i: "leaf${toString i}") 16) (builtins.genList (n: n) 12);
      in builtins.listToAttrs (map (d: { name = d.name; value = d; }) top) // { last = make "last" top; bad = make "bad" [ (throw "no") ]; }"#;
    same(&["-E", graph, "-A", "last", "-A", "d11-3", "-A", "d11-9"], 4);
    same(&["-E", graph], 4);
    same(&["--eval", "--strict", "--json", "-E", &format!("removeAttrs ({graph}) [ \"bad\" ]")], 4);
}
