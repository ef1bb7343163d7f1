//! Nix's own language suite through firn (spec P1). `FIRN_NIX_LANG` names the `tests/functional` directory of a Nix source
//! tree; without it the test says that it was skipped. The suite itself is never part of this project.
//!
//! - `FIRN_BIN=…/nix-instantiate` judges another tool; `FIRN_CONFORMANCE_REPORT=1` prints figures without judging.
//! - `FIRN_CONFORMANCE_DIFF=1` prints expected and actual output of each failing case; `FIRN_CONFORMANCE_ONLY=text` selects.
//! - `conformance.failures` lists the cases that fail today, strictly; `FIRN_CONFORMANCE_LIST=1` prints it anew.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod harness;
mod suite;

use std::collections::BTreeMap;
use std::path::PathBuf;

use harness::parallel;
use harness::tool::Tool;
use suite::{Case, KINDS, Level, Verdict};

#[test]
fn nix_language_suite() {
    let Some(root) = std::env::var_os("FIRN_NIX_LANG").map(PathBuf::from) else {
        eprintln!("SKIPPED: FIRN_NIX_LANG is not set; Nix's own language suite was NOT run");
        return;
    };
    let Some(firn) = Tool::firn() else {
        eprintln!("SKIPPED: package firn has no binary yet and FIRN_BIN is not set");
        return;
    };
    let root = root.canonicalize().unwrap_or_else(|error| panic!("FIRN_NIX_LANG={}: {error}", root.display()));
    let only = std::env::var("FIRN_CONFORMANCE_ONLY").unwrap_or_default();
    let mut cases = suite::find(&root);
    cases.retain(|case| case.name.contains(&only));
    assert!(!cases.is_empty(), "no cases below {}/lang", root.display());

    let verdicts = parallel::map(&cases, |case| suite::judge(&firn, &root, case));
    print_figures(&cases, &verdicts);
    if std::env::var_os("FIRN_CONFORMANCE_DIFF").is_some() {
        print_differences(&cases, &verdicts);
    }
    if std::env::var_os("FIRN_CONFORMANCE_LIST").is_some() {
        print_list(&cases, &verdicts);
    }
    if std::env::var_os("FIRN_CONFORMANCE_REPORT").is_none() {
        let surprises = surprises(&cases, &verdicts, only.is_empty());
        assert!(surprises.is_empty(), "{} surprises:\n{}", surprises.len(), surprises.join("\n"));
    }
}

/// A table: per kind how many cases reach each level.
fn print_figures(cases: &[Case], verdicts: &[Verdict]) {
    println!("{:12} {:>6} {:>6} {:>8} {:>6}", "kind", "cases", "exit", "message", "full");
    for kind in KINDS {
        let of_kind = || cases.iter().zip(verdicts).filter(|(case, _)| case.kind == kind);
        let reach =
            |level: Level| of_kind().filter(|(_, verdict)| verdict.fails_at.is_none_or(|at| at > level)).count();
        let (exit, message, full) = (reach(Level::Exit), reach(Level::Message), reach(Level::Full));
        println!("{:12} {:>6} {exit:>6} {message:>8} {full:>6}", kind.prefix(), of_kind().count());
    }
}

fn print_differences(cases: &[Case], verdicts: &[Verdict]) {
    for (case, verdict) in cases.iter().zip(verdicts) {
        if let Some(level) = verdict.fails_at {
            println!("{} fails at {}:\n{}", case.name, level.word(), verdict.difference);
        }
    }
}

fn print_list(cases: &[Case], verdicts: &[Verdict]) {
    for (case, verdict) in cases.iter().zip(verdicts) {
        if let Some(level) = verdict.fails_at {
            println!("{} {}", case.name, level.word());
        }
    }
}

/// Cases that do not behave as `conformance.failures` says, in both directions.
fn surprises(cases: &[Case], verdicts: &[Verdict], complete: bool) -> Vec<String> {
    let mut listed = listed();
    let mut surprises = Vec::new();
    for (case, verdict) in cases.iter().zip(verdicts) {
        let name = &case.name;
        match (listed.remove(name), verdict.fails_at) {
            (None, Some(level)) => surprises.push(format!("{name} fails at {} and is not listed", level.word())),
            (Some(level), None) => {
                surprises.push(format!("{name} passes, yet is listed as failing at {}", level.word()))
            }
            (Some(was), Some(is)) if was != is => {
                surprises.push(format!("{name} is listed as failing at {}, and fails at {}", was.word(), is.word()));
            }
            _ => {}
        }
    }
    if complete {
        surprises
            .extend(listed.into_keys().map(|name| format!("{name} is listed as failing, yet there is no such case")));
    }
    surprises
}

/// The list of expected failures: `NAME LEVEL` per line, `#` starts a comment.
fn listed() -> BTreeMap<String, Level> {
    let lines =
        include_str!("conformance.failures").lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let entry = |line: &str| {
        let (name, word) = line.split_once(' ').unwrap_or_else(|| panic!("conformance.failures: no level in `{line}`"));
        let level =
            Level::named(word.trim()).unwrap_or_else(|| panic!("conformance.failures: no level named `{word}`"));
        (name.to_owned(), level)
    };
    lines.filter(|line| !line.is_empty()).map(entry).collect()
}
