//! Texts beside what they must give: `ok/*.nix` with the printed tree in `.exp`, `fail/*.nix` with the message and
//! place in `.err`. `FIRN_BLESS=1` writes the expectations anew; look at the difference before committing it.
//!
//! With `FIRN_NIX_LANG` naming Nix's own `tests/functional/lang`, its `parse-*` cases are checked too.

use firn_source::{Origin, SourceFile};
use firn_syntax::{Features, Home, parse, print};
use std::path::{Path, PathBuf};

fn outcome(text: Vec<u8>, base: &[u8]) -> Result<String, String> {
    let file = SourceFile::register(Origin::Stdin, text);
    let ast = parse(file, base, Home::Dir(b"/home/me"), Features::default()).map_err(|error| {
        let place = error.pos.resolve().map_or("nowhere".to_owned(), |l| format!("{}:{}", l.line, l.column));
        format!("{}\n{place}\n", String::from_utf8_lossy(&error.message))
    })?;
    let mut out = Vec::new();
    print(&ast, &mut out);
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.push('\n');
    for warning in ast.warnings() {
        text.push_str(&format!("warning: {}\n", String::from_utf8_lossy(&warning.message)));
    }
    Ok(text)
}

fn nix_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("the directory of cases is readable");
    let mut files: Vec<_> = entries.map(|e| e.expect("readable").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "nix"));
    files.sort();
    files
}

fn check(directory: &str, extension: &str, of: impl Fn(Result<String, String>) -> String) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut wrong = Vec::new();
    for path in nix_files(&directory) {
        let found = of(outcome(std::fs::read(&path).expect("readable"), b"/base/dir"));
        let expectation = path.with_extension(extension);
        if std::env::var_os("FIRN_BLESS").is_some() {
            std::fs::write(&expectation, &found).expect("writable");
        } else if std::fs::read_to_string(&expectation).ok().as_deref() != Some(&found) {
            wrong.push(format!("{}:\n{found}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn accepted_texts_print_as_expected() {
    check("ok", "exp", |outcome| outcome.unwrap_or_else(|error| format!("REFUSED {error}")));
}

#[test]
fn refused_texts_say_why_and_where() {
    check("fail", "err", |outcome| outcome.err().unwrap_or_else(|| "ACCEPTED\n".to_owned()));
}

#[test]
fn nix_own_cases() {
    let Some(directory) = std::env::var_os("FIRN_NIX_LANG") else {
        return eprintln!("SKIPPED: FIRN_NIX_LANG does not name Nix's tests/functional/lang");
    };
    let mut wrong = Vec::new();
    for path in nix_files(Path::new(&directory)) {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let text = std::fs::read(&path).expect("readable");
        let (found, expected) = if name.starts_with("parse-okay-") {
            let expected = std::fs::read_to_string(path.with_extension("exp")).expect("readable");
            (outcome(text, b"/").unwrap_or_else(|e| e), expected)
        } else if name.starts_with("parse-fail-") {
            let expected = std::fs::read_to_string(path.with_extension("err.exp")).expect("readable");
            if expected.starts_with("error: undefined variable") {
                continue; // found when names are resolved
            }
            let found = outcome(text, b"/").err().unwrap_or_default();
            let lines: Vec<&str> = found.lines().collect();
            let found = format!("error: {}\n       at «stdin»:{}:", lines[0], lines[1]);
            (found, expected.lines().take(2).collect::<Vec<_>>().join("\n"))
        } else {
            continue;
        };
        if found != expected {
            wrong.push(format!("{name}\n  found    {found}\n  expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
