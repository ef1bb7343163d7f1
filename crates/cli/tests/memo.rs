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
use harness::tool::Tool;

/// Exit code, standard output, standard error.
type Outcome = (Option<i32>, String, String);

fn outcome(firn: &Tool, text: &str, strict: bool, memo: &str) -> Outcome {
    let flags = ["--memo", memo, "--extra-experimental-features", "memoise", "--show-trace"];
    let run = if strict { firn.eval(&std::env::temp_dir(), text, &flags) } else { firn.eval_lazily(&std::env::temp_dir(), text, &flags) };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (run.code, text(&run.stdout), text(&run.stderr))
}

/// The first mode that gives something else than `off`.
fn difference(firn: &Tool, text: &str, strict: bool) -> Option<String> {
    let off = outcome(firn, text, strict, "off");
    ["run", "shadow"].into_iter().find_map(|memo| {
        let other = outcome(firn, text, strict, memo);
        (other != off).then(|| format!("off: {off:#?}\n{memo}: {other:#?}"))
    })
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
        let (text, strict, used) = sharing::program(Choices::seeded(seed));
        difference(&firn, &text, strict).map(|_| used)
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
        let text = format!("import {}", dir.join(name).display());
        for memo in ["off", "run", "shadow"] {
            let (code, stdout, stderr) = outcome(&firn, &text, true, memo);
            assert_eq!((code, stdout.as_str()), (Some(0), expected), "{name}, {memo}: {stderr}");
        }
    }
    std::fs::remove_dir_all(&dir).expect("the directory can be removed");
}

fn report(firn: &Tool, used: Vec<u32>) -> String {
    let made = |choices: &[u32]| sharing::program(Choices::replayed(choices.to_vec()));
    let small = shrink::shrink(used, |choices| {
        let (text, strict, _) = made(choices);
        difference(firn, &text, strict).is_some()
    });
    let (text, strict, _) = made(&small);
    format!("{text}\n(strict: {strict})\n{}\n", difference(firn, &text, strict).unwrap_or_default())
}
