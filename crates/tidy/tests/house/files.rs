//! What a file may be called, how long it may be, what it may contain.

use crate::tree::{code_of, files, has_word, judge, root};

#[test]
fn files_are_short_or_say_why() {
    let mut complaints = Vec::new();
    for file in files().iter().filter(|f| f.is("rs")) {
        let count = file.text.lines().count();
        let reason = file.text.lines().take(12).any(|line| line.starts_with("//") && line.contains("Length:"));
        if count > 1000 {
            complaints.push(format!("{}: {count} lines, more than 1,000", file.path));
        } else if count > 600 && !reason {
            complaints.push(format!("{}: {count} lines and no reason (`Length:`) at the top", file.path));
        }
    }
    judge(&complaints);
}

#[test]
fn names_say_what_a_thing_is() {
    let empty = ["util", "utils", "common", "helper", "helpers", "misc", "glue", "core", "manager", "stuff"];
    let endings = ["_new", "_old", "_v2", "_impl", "_utils", "_helpers", "_manager"];
    let mut complaints = Vec::new();
    for file in files().iter().filter(|f| f.is("rs")) {
        for part in file.path.trim_end_matches(".rs").split('/') {
            if empty.contains(&part) || endings.iter().any(|ending| part.ends_with(ending)) {
                complaints.push(format!("{}: `{part}` does not say what it is", file.path));
            }
        }
    }
    judge(&complaints);
}

#[test]
fn nothing_is_unfinished_or_switched_off() {
    // Put together here, so that this file does not name them.
    let marks = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|parts| parts.concat());
    let macros = [["to", "do!("], ["unimple", "mented!("], ["#[ig", "nore"]].map(|parts| parts.concat());
    let mut complaints = Vec::new();
    let judged = ["rs", "md", "toml", "sh", "nix"];
    for file in files().iter().filter(|f| judged.iter().any(|e| f.is(e)) && !f.path.contains("/fixtures/")) {
        for (number, line) in file.lines() {
            let marked = marks.iter().find(|mark| has_word(line, mark));
            let stubbed = macros.iter().find(|call| file.is("rs") && line.contains(call.as_str()));
            if let Some(found) = marked.or(stubbed) {
                complaints.push(format!("{}:{number}: `{found}`", file.path));
            }
        }
    }
    judge(&complaints);
}

#[test]
fn unsafe_code_stays_in_its_room() {
    let mut complaints = Vec::new();
    for file in files().iter().filter(|f| f.is("rs")) {
        // Where LMDB is opened there is one unsafe call.
        let lmdb = file.path == "crates/cache/src/environment.rs";
        if lmdb || file.path.starts_with("crates/value/src/layout/") || file.path.starts_with("crates/tidy/") {
            continue;
        }
        for (number, line) in file.lines() {
            if has_word(code_of(line), "unsafe") {
                complaints.push(format!("{}:{number}: unsafe code outside crates/value/src/layout", file.path));
            }
        }
    }
    judge(&complaints);
}

#[test]
fn no_path_of_one_machine() {
    let own = format!("{}/", root().display());
    let places = [own, ["/wo", "rk/"].concat()];
    let mut complaints = Vec::new();
    for file in files().iter().filter(|f| !f.path.ends_with(".lock")) {
        for (number, line) in file.lines() {
            // A path component of that name further down (`a/work/b`) is nobody's machine.
            let absolute = |place: &String| {
                line.match_indices(place.as_str()).any(|(at, _)| {
                    !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_.-}".contains(c))
                })
            };
            if places.iter().any(absolute) {
                complaints.push(format!("{}:{number}: names a directory of one machine", file.path));
            }
        }
    }
    judge(&complaints);
}
