//! The corpus of `tests/oracle` through firn, against the recorded answers of the real Nix and against Nix itself where it
//! is on `PATH` (spec P1). `FIRN_ORACLE_REFRESH=1` records the oracle's answers anew, `FIRN_ORACLE_ONLY=text` takes the
//! programs whose `subject/name` contains the text, `FIRN_ORACLE_MESSAGES=1` shows every error that is worded differently.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod harness;

use harness::compare::{self, Figures};
use harness::corpus::{self, Program, Subject};
use harness::outcome::{Outcome, Value};
use harness::parallel;
use harness::tool::Tool;

/// The version whose answers are recorded.
const RECORDED: &str = "2.8.";

/// One program with the name that reports give it.
struct Case<'a> {
    name: String,
    program: &'a Program,
}

fn cases(subjects: &[Subject]) -> Vec<Case<'_>> {
    let only = std::env::var("FIRN_ORACLE_ONLY").unwrap_or_default();
    let all = subjects.iter().flat_map(|subject| {
        let place = subject.name();
        subject.programs.iter().map(move |program| Case { name: format!("{place}/{}", program.name), program })
    });
    all.filter(|case| case.name.contains(&only)).collect()
}

fn outcomes(tool: &Tool, cases: &[Case<'_>]) -> Vec<Outcome> {
    let cwd = corpus::directory();
    parallel::map(cases, |case| Outcome::of(tool, &cwd, &case.program.text))
}

#[test]
fn firn_agrees_with_the_recorded_answers() {
    let Some(firn) = Tool::firn() else {
        eprintln!("SKIPPED: package firn has no binary yet and FIRN_BIN is not set");
        return;
    };
    let subjects = corpus::read_all();
    let cases = cases(&subjects);
    let mut figures = Figures::default();
    let mut differences = Vec::new();
    for (case, actual) in cases.iter().zip(outcomes(&firn, &cases)) {
        let Some(expected) = &case.program.recorded else {
            differences.push(format!("{}: no recorded answer; refresh with FIRN_ORACLE_REFRESH=1", case.name));
            continue;
        };
        figures.count(expected, &actual);
        if !expected.agrees(&actual) {
            differences.push(compare::report(&case.name, &case.program.text, expected, &actual));
        } else if expected != &actual && std::env::var_os("FIRN_ORACLE_MESSAGES").is_some() {
            eprintln!("{}", compare::report(&case.name, &case.program.text, expected, &actual));
        }
    }
    println!("oracle corpus: {figures}");
    assert!(differences.is_empty(), "{} programs differ:\n\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn recorded_answers_are_those_of_nix() {
    let refresh = std::env::var_os("FIRN_ORACLE_REFRESH").is_some();
    let Some(oracle) = Tool::oracle() else {
        assert!(!refresh, "FIRN_ORACLE_REFRESH needs nix-instantiate on PATH");
        eprintln!("SKIPPED: no nix-instantiate on PATH; firn is compared with the recorded answers only");
        return;
    };
    let version = oracle.version();
    if !version.starts_with(RECORDED) {
        assert!(!refresh, "the records are those of Nix {RECORDED}x, and the oracle is Nix {version}");
        eprintln!("SKIPPED: the oracle is Nix {version}, the records are those of Nix {RECORDED}x and stand alone");
        return;
    }
    let mut subjects = corpus::read_all();
    let cases = cases(&subjects);
    let answers = outcomes(&oracle, &cases);
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        if let Value::Crash(how) = &answer.value {
            // Where 2.35 reports an error, 2.8 may well overflow its stack.
            if case.program.newer.is_none() {
                wrong.push(format!("{}: the oracle crashed: {how}", case.name));
            }
            continue;
        }
        let recorded = case.program.recorded.as_ref();
        match &case.program.newer {
            Some(reason) if recorded.is_none_or(|recorded| recorded.agrees(answer)) => {
                wrong.push(format!(
                    "{}: marked 2.35 ({reason}), yet Nix 2.8 answers the same, or nothing is recorded",
                    case.name
                ));
            }
            None if !refresh && recorded != Some(answer) => {
                let recorded = recorded.cloned().unwrap_or_default();
                wrong.push(compare::report(&case.name, &case.program.text, &recorded, answer));
            }
            _ => {}
        }
    }
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    if refresh {
        record(&mut subjects, &names, answers);
    }
    assert!(wrong.is_empty(), "{} recorded answers are not Nix's:\n\n{}", wrong.len(), wrong.join("\n"));
}

/// Puts the oracle's answers into the files, except where a program carries an answer of 2.35.
fn record(subjects: &mut [Subject], names: &[String], answers: Vec<Outcome>) {
    let mut answered: std::collections::BTreeMap<_, _> = names.iter().cloned().zip(answers).collect();
    for subject in subjects {
        let place = subject.name();
        for program in subject.programs.iter_mut().filter(|program| program.newer.is_none()) {
            if let Some(answer) = answered.remove(&format!("{place}/{}", program.name)) {
                program.recorded = Some(answer);
            }
        }
        subject.write();
    }
}

#[test]
fn the_corpus_is_large_enough() {
    let count = |derivations: bool| {
        let subjects = corpus::read_all();
        let counted = subjects.iter().filter(|subject| subject.name().starts_with("derivations/") == derivations);
        counted.map(|subject| subject.programs.len()).sum::<usize>()
    };
    assert!(count(false) >= 650, "{} programs of values", count(false));
    assert!(count(true) >= 130, "{} programs of derivations", count(true));
}
