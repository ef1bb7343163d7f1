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

fn report(firn: &Tool, used: Vec<u32>) -> String {
    let made = |choices: &[u32]| sharing::program(Choices::replayed(choices.to_vec()));
    let small = shrink::shrink(used, |choices| {
        let (text, strict, _) = made(choices);
        difference(firn, &text, strict).is_some()
    });
    let (text, strict, _) = made(&small);
    format!("{text}\n(strict: {strict})\n{}\n", difference(firn, &text, strict).unwrap_or_default())
}
