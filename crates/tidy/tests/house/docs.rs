//! What the documents name exists.

use crate::tree::{File, files, judge, root};

/// Where a path that a document names from the root can begin.
const PLACES: [&str; 6] = ["crates/", "tests/", "docs/", "bench/", ".ci/", "fuzz/"];

/// Something that looks like a path from the root and has no placeholder in it.
fn as_path(word: &str) -> Option<&str> {
    let word = word.trim_end_matches(['.', ',', ';', ':', ')', '/']);
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    // Words in capitals stand for what the reader puts there.
    let placeholder = word.split(['/', '.']).any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()));
    let known = PLACES.iter().any(|place| word.starts_with(place));
    (known && word.chars().all(plain) && (!placeholder || word.ends_with(".md"))).then_some(word)
}

fn check(file: &File, number: usize, named: &str, complaints: &mut Vec<String>) {
    if !root().join(named).exists() {
        complaints.push(format!("{}:{number}: `{named}` does not exist", file.path));
    }
}

#[test]
fn paths_named_in_documents_exist() {
    let mut complaints = Vec::new();
    for file in files().iter().filter(|f| f.is("md") && f.path != "CHANGELOG.md") {
        for (number, line) in file.lines() {
            let spans = line.split('`').skip(1).step_by(2).flat_map(str::split_whitespace);
            for named in spans.filter_map(as_path) {
                check(file, number, named, &mut complaints);
            }
            let folder = file.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
            for target in line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
                if !target.is_empty() && !target.contains("://") {
                    check(file, number, &format!("{folder}{target}"), &mut complaints);
                }
            }
        }
    }
    judge(&complaints);
}

#[test]
fn paths_named_in_comments_exist() {
    let mut complaints = Vec::new();
    for file in files().iter().filter(|f| f.is("rs")) {
        for (number, line) in file.lines().filter(|(_, line)| line.trim_start().starts_with("//")) {
            let words = line.split(|c: char| c.is_whitespace() || "`(\"".contains(c));
            for named in words.filter_map(as_path).filter(|word| word.starts_with("crates/")) {
                check(file, number, named, &mut complaints);
            }
        }
    }
    judge(&complaints);
}

#[test]
fn decisions_are_numbered_and_complete() {
    let mut complaints = Vec::new();
    let files = files();
    let decisions: Vec<&File> = files.iter().filter(|f| f.path.starts_with("docs/decisions/")).collect();
    for (i, file) in decisions.iter().enumerate() {
        let number = format!("{:04}", i + 1);
        if !file.path.starts_with(&format!("docs/decisions/{number}-")) || !file.text.starts_with(&format!("# {number}: ")) {
            complaints.push(format!("{}: expected decision {number}", file.path));
        }
        for part in ["\n## Context\n", "\n## Decision\n", "\n## Cost\n"] {
            if !file.text.contains(part) {
                complaints.push(format!("{}: has no `{}`", file.path, part.trim()));
            }
        }
    }
    judge(&complaints);
}
