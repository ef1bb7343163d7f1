//! The corpus format (described for its readers in `tests/oracle/README.md`): reading and writing one subject file.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::outcome::{Outcome, Value};

/// One file of programs about one subject.
#[derive(Debug)]
pub struct Subject {
    /// Where it was read from.
    pub file: PathBuf,
    /// Text before the first program.
    pub header: String,
    /// The programs, in file order.
    pub programs: Vec<Program>,
}

/// One program and what is known of it.
#[derive(Debug)]
pub struct Program {
    /// Unique within its subject.
    pub name: String,
    /// The Nix text.
    pub text: String,
    /// Why the recorded answer is that of 2.35 and not the oracle's; such an answer is written by hand.
    pub newer: Option<String>,
    /// The recorded answer; `None` for a new program that was not yet refreshed.
    pub recorded: Option<Outcome>,
}

/// The directory of the corpus, which is also where its programs run.
pub fn directory() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    fs::canonicalize(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()))
}

/// Every subject below [`directory`], in name order.
///
/// # Panics
/// On a file that does not keep to the format: a broken corpus proves nothing.
pub fn read_all() -> Vec<Subject> {
    let root = directory();
    let mut files = Vec::new();
    for dir in [root.clone(), root.join("derivations")] {
        let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let found = entries.map(|entry| entry.expect("a readable directory entry").path());
        files.extend(found.filter(|file| file.extension().is_some_and(|ext| ext == "progs")));
    }
    files.sort();
    files.into_iter().map(read).collect()
}

fn read(file: PathBuf) -> Subject {
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut parts = text.split("\n=== ");
    let header = parts.next().unwrap_or_default().trim_end().to_owned();
    let programs: Vec<Program> =
        parts.map(|part| program(part).unwrap_or_else(|why| panic!("{}: {why}", file.display()))).collect();
    for (index, program) in programs.iter().enumerate() {
        let twice = programs[..index].iter().any(|other| other.name == program.name);
        assert!(!twice, "{}: two programs named {}", file.display(), program.name);
    }
    Subject { file, header, programs }
}

fn program(part: &str) -> Result<Program, String> {
    let mut sections = part.split("\n--- ");
    let head = sections.next().unwrap_or_default();
    let (name, text) = head.split_once('\n').ok_or_else(|| format!("program {head} is empty"))?;
    let mut program =
        Program { name: name.trim().to_owned(), text: text.trim_end().to_owned(), newer: None, recorded: None };
    let mut outcome = Outcome::default();
    let mut any = false;
    for section in sections {
        let (kind, body) = section.split_once('\n').unwrap_or((section, ""));
        let body = body.trim_end_matches('\n').to_owned();
        any |= !kind.starts_with("2.35");
        match kind.trim() {
            "value" => outcome.value = Value::Printed(body),
            "value, json" => {
                outcome.json = Some(Ok(body.clone()));
                outcome.value = Value::Printed(body);
            }
            "json" => outcome.json = Some(Ok(body)),
            "json error" => outcome.json = Some(Err(())),
            "error" => outcome.value = Value::Error(body),
            "trace" => outcome.trace = body.lines().map(str::to_owned).collect(),
            kind => match kind.strip_prefix("2.35: ") {
                Some(reason) => program.newer = Some(reason.to_owned()),
                None => return Err(format!("program {name}: unknown section `{kind}`")),
            },
        }
    }
    program.recorded = any.then_some(outcome);
    Ok(program)
}

impl Subject {
    /// The subject's name for reports: its path below the corpus, without extension.
    pub fn name(&self) -> String {
        let below = self.file.strip_prefix(directory()).unwrap_or(&self.file);
        below.with_extension("").display().to_string()
    }

    /// Writes the file back, with the recorded answers as they now are.
    pub fn write(&self) {
        let mut text = format!("{}\n", self.header);
        for program in &self.programs {
            write!(text, "\n=== {}\n{}\n", program.name, program.text).expect("writing to a string succeeds");
            if let Some(reason) = &program.newer {
                writeln!(text, "--- 2.35: {reason}").expect("writing to a string succeeds");
            }
            if let Some(outcome) = &program.recorded {
                text += &sections(outcome);
            }
        }
        fs::write(&self.file, text).unwrap_or_else(|error| panic!("{}: {error}", self.file.display()));
    }
}

fn sections(outcome: &Outcome) -> String {
    let mut text = String::new();
    let mut section = |kind: &str, body: &str| {
        let newline = if body.is_empty() { "" } else { "\n" };
        write!(text, "--- {kind}\n{body}{newline}").expect("writing to a string succeeds");
    };
    match (&outcome.value, &outcome.json) {
        (Value::Printed(value), Some(Ok(json))) if value == json => section("value, json", value),
        (Value::Printed(value), json) => {
            section("value", value);
            match json {
                Some(Ok(json)) => section("json", json),
                Some(Err(())) => section("json error", ""),
                None => {}
            }
        }
        (Value::Error(message) | Value::Crash(message), _) => section("error", message),
    }
    if !outcome.trace.is_empty() {
        section("trace", &outcome.trace.join("\n"));
    }
    text
}
