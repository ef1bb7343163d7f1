//! Random programs through firn and the real Nix (spec P1, P2): value, failure and JSON must agree. Many programs share
//! a process, each below `tryEval`; where one fails beyond `tryEval`, its batch is halved until it stands alone.
//! `FIRN_RANDOM_PROGRAMS` says how many (400), `FIRN_RANDOM_SEED` which ones (1), `FIRN_RANDOM_SHOW=1` prints them. A difference is shrunk and shown.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod generate;
mod harness;

use std::path::{Path, PathBuf};

use generate::choices::Choices;
use generate::grammar;
use generate::shrink::shrink;
use harness::outcome::{Value, value_of};
use harness::parallel;
use harness::tool::Tool;

/// Programs in one process to begin with.
const BATCH: usize = 16;

/// One random program and the choices it came from.
struct Program {
    text: String,
    choices: Vec<u32>,
}

/// The two tools and where they run.
struct Bench {
    firn: Tool,
    oracle: Tool,
    cwd: PathBuf,
}

/// What a tool makes of one expression: value and JSON, or the fact that it fails.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    value: Result<String, String>,
    json: Option<String>,
}

#[test]
fn random_programs_agree() {
    let (Some(firn), Some(oracle)) = (Tool::firn(), Tool::oracle()) else {
        eprintln!("SKIPPED: random programs need both firn's binary (or FIRN_BIN) and nix-instantiate on PATH");
        return;
    };
    let bench = Bench { firn, oracle, cwd: std::env::temp_dir() };
    let count = number("FIRN_RANDOM_PROGRAMS").unwrap_or(400);
    let seed = number("FIRN_RANDOM_SEED").unwrap_or(1);
    let programs: Vec<Program> = (0..count).map(|index| draw(seed, index)).collect();
    if std::env::var_os("FIRN_RANDOM_SHOW").is_some() {
        programs.iter().for_each(|program| println!("{}\n", program.text));
    }
    let batches: Vec<&[Program]> = programs.chunks(BATCH).collect();
    let results = parallel::map(&batches, |batch| compare(&bench, batch));

    let failing: usize = results.iter().map(|result| result.failing).sum();
    let differing: Vec<&Program> = results.iter().flat_map(|result| &result.differing).copied().collect();
    println!(
        "random programs: {count} from seed {seed}, {failing} of them fail beyond tryEval, {} differ",
        differing.len()
    );
    let reports: Vec<String> = differing.iter().take(3).map(|program| report(&bench, program)).collect();
    assert!(
        differing.is_empty(),
        "{} programs differ; the first ones, shrunk:\n\n{}",
        differing.len(),
        reports.join("\n")
    );
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

fn draw(seed: u64, index: u64) -> Program {
    // Far-apart seeds for neighbouring programs, so that program i of one seed is not program i-1 of the next.
    let (text, choices) = grammar::program(Choices::seeded(seed.wrapping_mul(0x1_0000_0001).wrapping_add(index << 20)));
    Program { text, choices }
}

/// The programs as one expression, each caught by itself. The first binding fixes the order of the names.
fn batch_text(texts: &[&str]) -> String {
    let names: String = grammar::NAMES.iter().map(|name| format!("{name} = 0; ")).collect();
    let caught: String = texts.iter().map(|text| format!("(try ({text}))\n")).collect();
    format!("let order = {{ {names}}}; try = e: builtins.tryEval (builtins.deepSeq e e); in [\n{caught}]")
}

fn value(tool: &Tool, cwd: &Path, text: &str) -> Result<String, String> {
    match value_of(&tool.eval(cwd, text, &[]), cwd) {
        Value::Printed(text) => Ok(text),
        Value::Error(_) => Err("an error".to_owned()),
        Value::Crash(how) => Err(how),
    }
}

fn answer(tool: &Tool, cwd: &Path, text: &str) -> Answer {
    let value = value(tool, cwd, text);
    let json = value.is_ok().then(|| match value_of(&tool.eval(cwd, text, &["--json"]), cwd) {
        Value::Printed(text) => text,
        Value::Error(message) | Value::Crash(message) => message,
    });
    Answer { value, json }
}

/// What came of one batch.
struct Compared<'a> {
    failing: usize,
    differing: Vec<&'a Program>,
}

fn compare<'a>(bench: &Bench, batch: &'a [Program]) -> Compared<'a> {
    let texts: Vec<&str> = batch.iter().map(|program| program.text.as_str()).collect();
    let (expected, actual) = answers(bench, &batch_text(&texts));
    let fails = expected.value.is_err();
    if batch.len() == 1 {
        return Compared {
            failing: usize::from(fails),
            differing: if expected == actual { vec![] } else { vec![&batch[0]] },
        };
    }
    if expected == actual && !fails {
        return Compared { failing: 0, differing: vec![] };
    }
    let (left, right) = batch.split_at(batch.len() / 2);
    let (mut left, right) = (compare(bench, left), compare(bench, right));
    left.failing += right.failing;
    left.differing.extend(right.differing);
    left
}

fn answers(bench: &Bench, text: &str) -> (Answer, Answer) {
    (answer(&bench.oracle, &bench.cwd, text), answer(&bench.firn, &bench.cwd, text))
}

fn report(bench: &Bench, program: &Program) -> String {
    let text_of = |choices: &[u32]| grammar::program(Choices::replayed(choices.to_vec())).0;
    let value_of = |tool: &Tool, text: &str| value(tool, &bench.cwd, text);
    let (expected, actual) = answers(bench, &batch_text(&[&program.text]));
    // Where the printed value differs, it is enough to shrink by; the JSON would double the work.
    let by_value = expected.value != actual.value;
    let differs = |choices: &[u32]| {
        let text = batch_text(&[&text_of(choices)]);
        if by_value {
            return value_of(&bench.oracle, &text) != value_of(&bench.firn, &text);
        }
        let (expected, actual) = answers(bench, &text);
        expected != actual
    };
    let small = text_of(&shrink(program.choices.clone(), differs));
    let (expected, actual) = answers(bench, &batch_text(&[&small]));
    format!("  {small}\n    nix:  {expected:?}\n    firn: {actual:?}\n  before shrinking:\n  {}\n", program.text)
}

#[test]
fn replayed_choices_give_the_same_program() {
    for index in 0..50 {
        let program = draw(7, index);
        assert_eq!(grammar::program(Choices::replayed(program.choices.clone())).0, program.text);
    }
}

#[test]
fn shrinking_finds_a_small_program() {
    let interesting =
        |choices: &[u32]| grammar::program(Choices::replayed(choices.to_vec())).0.contains("builtins.sort");
    let start =
        (0..).map(|index| draw(3, index)).find(|program| interesting(&program.choices)).expect("sort is common");
    let small = grammar::program(Choices::replayed(shrink(start.choices, |choices| interesting(choices)))).0;
    assert!(small.len() < 60, "{small}");
}
