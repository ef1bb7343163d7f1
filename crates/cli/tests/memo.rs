//! The memo cannot be told from no memo but by time (M1, M2, M7, P2): random programs give the same output, errors, traces and
//! exit status with `--memo off`, `run` and `shadow`. `FIRN_MEMO_PROGRAMS` says how many (2,000), `FIRN_MEMO_SEED` which
//! ones (1). A difference is shrunk and shown.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

#[path = "generate/choices.rs"]
mod choices;
#[allow(dead_code, reason = "the harness serves several tests")]
mod harness;
#[path = "generate/sharing.rs"]
mod sharing;
#[path = "generate/shrink.rs"]
mod shrink;

use choices::Choices;
use harness::parallel;
use harness::tool::{Tool, clean_command, run};
use sharing::Program;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Exit code, standard output, standard error.
type Outcome = (Option<i32>, String, String);

/// What comes of a program. Every function that was called once is a candidate, however cheap (`FIRN_MEMO_STEPS`).
fn outcome(firn: &Tool, file: &Path, strict: bool, memo: &str) -> Outcome {
    let mut command = firn.command(&std::env::temp_dir());
    // A cache of its own: one that all programs write at once is looked through again and again, which takes longer than they do.
    command.env("FIRN_CACHE_DIR", file.with_file_name("cache")).env("FIRN_MEMO_STEPS", "0").arg("--eval").args(strict.then_some("--strict"));
    command.args(["--memo", memo, "--extra-experimental-features", "memoise", "--show-trace", "-E"]);
    command.arg(format!("import {}", file.display()));
    let run = run(command, b"");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (run.code, text(&run.stdout), text(&run.stderr))
}

/// The first mode that gives something else than `off`. The program lies in files, so that what it holds has positions.
fn difference(firn: &Tool, program: &Program) -> Option<String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("firn-memo-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).expect("a directory can be made");
    for (name, text) in program.files() {
        std::fs::write(dir.join(name), text).expect("a file can be written");
    }
    let file = dir.join("main.nix");
    let off = outcome(firn, &file, program.strict, "off");
    let difference = ["run", "shadow"].into_iter().find_map(|memo| {
        let other = outcome(firn, &file, program.strict, memo);
        (other != off).then(|| format!("off: {off:#?}\n{memo}: {other:#?}"))
    });
    std::fs::remove_dir_all(&dir).expect("the directory can be removed");
    difference
}

/// A program that was not made by chance.
fn written(main: &str, lib: &str, knot: &str) -> Program {
    let [main, lib, knot, part] = [main, lib, knot, "{ }"].map(str::to_owned);
    Program { main, lib, knot, part, strict: true, used: Vec::new() }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn the_memo_cannot_be_told_from_none() {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let (count, seed) = (number("FIRN_MEMO_PROGRAMS", 2_000), number("FIRN_MEMO_SEED", 1));
    let seeds: Vec<u64> = (0..count).map(|index| seed.wrapping_mul(0x1_0000_0001).wrapping_add(index << 20)).collect();
    let differing: Vec<Vec<u32>> = parallel::map(&seeds, |&seed| {
        let program = sharing::program(Choices::seeded(seed));
        difference(&firn, &program).map(|_| program.used)
    })
    .into_iter()
    .flatten()
    .collect();
    let reports: Vec<String> = differing.iter().take(3).map(|used| report(&firn, used.clone())).collect();
    assert!(differing.is_empty(), "{} of {count} programs differ; the first ones, shrunk:\n\n{}", differing.len(), reports.join("\n"));
}

/// Files whose calls reach themselves by way of other files, and what is asked of them.
const KNOTS: [(&str, &str); 6] = [
    ("f.nix", "{ n }: { x = { fn = y: y; }; z = (import ./m.nix).r.x; w = (import ./o.nix).v; }"),
    ("m.nix", "{ r = import ./f.nix { n = 1; }; r2 = import ./f.nix { n = 1; }; r3 = import ./f.nix { n = 1; }; }"),
    ("o.nix", "{ v = (import ./m.nix).r.x; }"),
    (
        "first.nix",
        "let m = import ./m.nix; in [ (m.r2.z == m.r.x) (m.r3.w == m.r.x) (m.r2.x == m.r.x) (m.r3.x == m.r3.x) \
         (m.r2.z == m.r3.z) (m.r.w == m.r2.w) ]",
    ),
    (
        "second.nix",
        "let m = import ./m.nix; o = import ./o.nix; in builtins.seq m.r (builtins.seq m.r2 [ \
         (builtins.seq o.v (m.r2.w == m.r.x)) (builtins.deepSeq m.r.z (m.r2.z == m.r.x)) (m.r2.x == m.r.x) (m.r3.w == o.v) ])",
    ),
    (
        "third.nix",
        "let s = { fn = q: q; }; g = builtins.memoise (a: { p = a; q = a.s or s; h = z: z; }); r1 = g arg; r2 = g arg; \
         arg = { inherit s; r = r1.h; }; t1 = g { s = s; }; t2 = g { s = s; }; \
         in [ (r1.q == r2.q) (r1.p == r2.p) (t1.q == t2.q) (t1.p == t2.p) (r1 == r2) (t1 == t2) (t2.q == s) ]",
    ),
];

/// A cell of a call that comes back from outside is the very cell, not an image of it (M7).
#[test]
fn knots_do_not_change_what_equality_says() {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let dir = std::env::temp_dir().join(format!("firn-knots-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory can be made");
    for (name, text) in KNOTS {
        std::fs::write(dir.join(name), text).expect("a file can be written");
    }
    let expected = [
        ("first.nix", "[ true true false true true true ]\n"),
        ("second.nix", "[ true true false true ]\n"),
        ("third.nix", "[ true true true true false false true ]\n"),
    ];
    for (name, expected) in expected {
        let file = dir.join(name);
        for memo in ["off", "run", "shadow"] {
            let (code, stdout, stderr) = outcome(&firn, &file, true, memo);
            assert_eq!((code, stdout.as_str()), (Some(0), expected), "{name}, {memo}: {stderr}");
        }
    }
    std::fs::remove_dir_all(&dir).expect("the directory can be removed");
}

/// A literal that is the first call's argument and is evaluated again inside the call, where another argument is written elsewhere.
const POSITIONS: &str = "let
  mk = x: { a = x; };
  s = mk 1;
  f = builtins.memoise (arg: { again = mk 1; more = mk 1 // { b = 2; }; made = arg // { b = 2; }; outer = s // { b = 2; }; given = arg; });
  line = e: (builtins.unsafeGetAttrPos \"a\" e).line;
  look = builtins.memoise (arg: [ (line arg) (line (arg // { b = 2; })) (line (mk 1)) (line (mk 1 // { b = 2; })) ]);
  all = r: map line [ r.again r.more r.made r.outer r.given ];
in
[
  (all (f (mk 1)))
  (all (f { a = 1; }))
  (all (f {
    a = 1;
  }))
  (look (mk 1))
  (look { a = 1; })
  (look {
    a = 1;
  })
  (builtins.tryEval (f { a = 1; }).made.c or 3)
]
";

/// Where attributes were written is told as without the memo, however often the code that writes them runs (M1).
#[test]
fn positions_of_arguments_are_those_of_the_call() {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let expected = "[ [ 2 2 2 2 2 ] [ 2 2 11 2 11 ] [ 2 2 13 2 13 ] [ 2 2 2 2 ] [ 16 16 2 2 ] [ 18 18 2 2 ] { success = true; value = 3; } ]\n";
    let dir = std::env::temp_dir().join(format!("firn-positions-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory can be made");
    let file = dir.join("main.nix");
    std::fs::write(&file, POSITIONS).expect("a file can be written");
    for memo in ["off", "run", "shadow"] {
        let (code, stdout, stderr) = outcome(&firn, &file, true, memo);
        assert_eq!((code, stdout.as_str()), (Some(0), expected), "{memo}: {stderr}");
    }
    std::fs::remove_dir_all(&dir).expect("the directory can be removed");
}

/// After an answer the first call looks at a position, so that nothing more is taken from it: `x` would have to run again, and its code
/// went when it was evaluated.
const MISSED: &str = "let
  f = builtins.memoise (arg: { x = arg.a + 1; p = (builtins.unsafeGetAttrPos \"a\" arg).line; });
  first = f { a = 1; };
  second = f {
    a = 1;
  };
  x = builtins.trace \"first\" first.x;
in
builtins.seq x (builtins.seq second (builtins.trace \"line ${toString first.p}\" [ x second.x (builtins.tryEval second.x) second.p ]))
";

/// The program begins again where code that has gone must run, and prints nothing twice (M1).
#[test]
fn code_that_has_gone_is_not_missed() {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let program = written(MISSED, "", "");
    assert_eq!(difference(&firn, &program), None);
}

/// Values outside remembered calls that fail, found by random programs: frames of an attempt that was given up showed in the trace.
const FAILING: [(&str, &str, &str); 2] = [
    (
        "let l = import ./lib.nix; f = builtins.memoise ({ a ? (l.h 1), ... }: a); in builtins.seq (f { }) (f { })",
        "rec { h = x: [ k.r 0 ]; g = x: throw \"e\"; k = import ./knot.nix; }",
        "let l = import ./lib.nix; in { r = l.g 1; }",
    ),
    (
        "let l = import ./lib.nix; f = builtins.memoise (x: y: { a = builtins.tryEval (l.h { a = 1; }); }); in [ (f 1 2) ] == [ (f 1 2) ]",
        "rec { h = x: k.r; g = x: [ k.r ] == [ 1 ]; k = import ./knot.nix; }",
        "let l = import ./lib.nix; in { r = l.g 3; }",
    ),
];

/// An attempt for another call that comes to a failure leaves nothing in its trace (L1.6).
#[test]
fn failures_outside_are_traced_as_without_the_memo() {
    let firn = Tool::firn().expect("firn is built for its own tests");
    for (main, lib, knot) in FAILING {
        let program = written(main, lib, knot);
        assert_eq!(difference(&firn, &program), None, "{main}");
    }
}

/// Jobs whose errors show which parts of values were evaluated, and one that prints.
const JOBS: &str = r#"let
  f = builtins.memoise ({ x }: let d = { k = x + 1; }; in builtins.seq d.k { inherit d; });
  drv = name: builtins.derivation { inherit name; system = "s"; builder = "b"; };
in {
  a = drv "a";
  b = builtins.seq (f { x = 1; }) (drv "b");
  c = builtins.trace "once" (drv "c");
  d = drv "${(f { x = 1; }).d}";
  e = drv "${(f { x = 2; }).d}";
  g = builtins.seq (f { x = 1; }).d.k (drv "g");
}"#;

/// What a command prints; lines of jobs and messages in any order.
fn printed(firn: &Tool, command: &[&str], file: &Path, memo: &str) -> (Option<i32>, Vec<String>, Vec<String>) {
    let mut run = clean_command(firn.program(), &std::env::temp_dir());
    run.args(command).args(["--memo", memo, "--extra-experimental-features", "memoise", "--store", "dummy://"]).arg(file);
    let output = run.output().expect("firn runs");
    let lines = |bytes: &[u8]| {
        let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    (output.status.code(), lines(&output.stdout), lines(&output.stderr))
}

/// Commands that print as they go begin again like the others, and print nothing twice (M1).
#[test]
fn jobs_and_lists_show_the_same_parts_of_values() {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let file = std::env::temp_dir().join(format!("firn-jobs-memo-{}.nix", std::process::id()));
    std::fs::write(&file, JOBS).expect("a file can be written");
    let list = file.with_extension("tsv");
    std::fs::write(&list, "a\tx\ty\nb\tx\ty\nc\tx\ty\nd\tx\ty\ne\tx\ty\ng\tx\ty\n").expect("a file can be written");
    let list = list.display().to_string();
    let jobs: &[&str] = &["jobs", "--workers", "1"];
    let many: &[&str] = &["jobs", "--workers", "3"];
    let compare: &[&str] = &["compare", "--threads", "1", "--list", &list];
    for command in [jobs, many, compare] {
        let off = printed(&firn, command, &file, "off");
        assert!(off.1.iter().any(|line| line.contains("k = 2;")), "{command:?}: {off:#?}");
        for memo in ["run", "shadow"] {
            assert_eq!(printed(&firn, command, &file, memo), off, "{command:?} {memo}");
        }
    }
    std::fs::remove_file(&file).expect("the file can be removed");
    std::fs::remove_file(&list).expect("the file can be removed");
}

fn report(firn: &Tool, used: Vec<u32>) -> String {
    let made = |choices: &[u32]| sharing::program(Choices::replayed(choices.to_vec()));
    let small = made(&shrink::shrink(used, |choices| difference(firn, &made(choices)).is_some()));
    let Program { main, lib, knot, part, strict, .. } = &small;
    format!("{main}\nlib: {lib}\nknot: {knot}\npart: {part}\n(strict: {strict})\n{}\n", difference(firn, &small).unwrap_or_default())
}
