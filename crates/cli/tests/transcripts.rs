//! The command lines in `tests/cli/*.md` and in the guide, run and compared with what stands below each: a `console` block's `$` line is the
//! command (variables in front, `<<< 'text'` at the end for standard input), the rest is its standard output, then its
//! standard error, then `[exit N]` where it fails. `$TMP` is a directory that the commands of one file share. `FIRN_CLI_REFRESH=1` writes the blocks anew.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One command with what is expected of it.
struct Step {
    command: String,
    expected: String,
}

/// Text that is kept, and steps.
enum Part {
    Text(String),
    Console(Vec<Step>),
}

fn read(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for (index, piece) in text.split("```").enumerate() {
        match piece.strip_prefix("console\n").filter(|_| index % 2 == 1) {
            None => parts.push(Part::Text(piece.to_owned())),
            Some(block) => {
                let steps = block.split("$ ").filter(|step| !step.is_empty()).map(|step| {
                    let (command, expected) = step.split_once('\n').unwrap_or((step, ""));
                    Step { command: command.to_owned(), expected: expected.to_owned() }
                });
                parts.push(Part::Console(steps.collect()));
            }
        }
    }
    parts
}

/// Words of a command line; single quotes protect, `\n` in them is a newline.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut any) = (String::new(), false, false);
    for c in line.chars() {
        match c {
            '\'' => (quoted, any) = (!quoted, true),
            ' ' if !quoted => {
                if any {
                    words.push(std::mem::take(&mut word).replace("\\n", "\n"));
                }
                any = false;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    if any {
        words.push(word.replace("\\n", "\n"));
    }
    words
}

fn run(line: &str, fixtures: &Path, scratch: &Path) -> String {
    let mut words = words(&line.replace("$TMP", &scratch.to_string_lossy()));
    let input = words.iter().position(|w| w == "<<<").map(|at| words.split_off(at)[1].clone()).unwrap_or_default();
    let is_variable = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'))
    };
    let variables: Vec<String> = words.iter().take_while(|word| is_variable(word)).cloned().collect();
    let rest = words.split_off(variables.len());
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.arg0(&rest[0]).args(&rest[1..]).current_dir(fixtures).env_clear();
    // No transcript writes into a store of this machine.
    command.env("NIX_REMOTE", "dummy://");
    command.env("HOME", "/homeless").env("FIRN_MEMO", "off").env("NIX_CONF_DIR", "/nonexistent").env("NIX_USER_CONF_FILES", "");
    for variable in &variables {
        let (name, value) = variable.split_once('=').expect("checked above");
        command.env(name, value.replace("$PWD", &fixtures.to_string_lossy()));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    // A command that does not read its input closes the pipe; that is its right.
    drop(child.stdin.take().expect("stdin is piped").write_all(input.as_bytes()));
    let done = child.wait_with_output().unwrap_or_else(|error| panic!("{line}: {error}"));
    let mut shown = String::new();
    for stream in [&done.stdout, &done.stderr] {
        let text = String::from_utf8_lossy(stream).replace(&*fixtures.to_string_lossy(), "/pwd");
        let text = text.replace(&*scratch.to_string_lossy(), "/scratch");
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "⏎\n" };
        let _ = write!(shown, "{text}{end}");
    }
    match done.status.code() {
        Some(0) => {}
        Some(code) => drop(writeln!(shown, "[exit {code}]")),
        None => shown.push_str("[killed]\n"),
    }
    shown
}

#[test]
fn command_lines_do_as_they_are_written() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cli");
    let root = root.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let refresh = std::env::var_os("FIRN_CLI_REFRESH").is_some();
    let mut files: Vec<PathBuf> = Vec::new();
    for dir in [root.clone(), root.join("../../docs/guide")] {
        let entries = std::fs::read_dir(&dir).expect("the transcripts are there");
        files.extend(entries.map(|entry| entry.expect("a readable entry").path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    assert!(!files.is_empty(), "no transcripts in {}", root.display());
    let mut differences = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut anew = String::new();
        // A directory for what the commands of one file leave to each other.
        let scratch = tempfile::tempdir().expect("a scratch directory");
        for (index, part) in read(&text).into_iter().enumerate() {
            if index > 0 {
                anew.push_str("```");
            }
            match part {
                Part::Text(text) => anew.push_str(&text),
                Part::Console(steps) => {
                    anew.push_str("console\n");
                    for step in steps {
                        let shown = run(&step.command, &root.join("fixtures"), scratch.path());
                        if shown != step.expected {
                            let _ =
                                write!(differences, "$ {}\nexpected:\n{}actual:\n{shown}\n", step.command, step.expected);
                        }
                        let _ = write!(anew, "$ {}\n{shown}", step.command);
                    }
                }
            }
        }
        if refresh {
            std::fs::write(&file, anew).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
    assert!(refresh || differences.is_empty(), "{differences}");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_firn"))
        .args(["eval", "--expr", "builtins.genList (x: x) 200000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("firn starts");
    drop(child.stdout.take());
    let done = child.wait_with_output().expect("firn ends");
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}
