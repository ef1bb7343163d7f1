//! The outcome of evaluating one program, as far as the proof compares it: value text, JSON, traces, failure and message.

use std::path::Path;

use super::text::{plain, readable};
use super::tool::{Run, Tool};

/// What evaluation of one program gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The printed value, or the message of the error.
    pub value: Value,
    /// The value as JSON; `Err` when it has none (a function inside). Absent when there is no value.
    pub json: Option<Result<String, ()>>,
    /// What `trace` printed, in order.
    pub trace: Vec<String>,
}

/// The first half of an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The text that `--eval --strict` prints.
    Printed(String),
    /// The message after `error:`, without trace and source excerpt.
    Error(String),
    /// Neither a value nor an orderly error: a signal, a deadline, an unknown exit code. Never equal to anything expected.
    Crash(String),
}

impl Default for Value {
    fn default() -> Self {
        Value::Error(String::new())
    }
}

/// What stands in recorded answers for the directory that programs run in.
const HERE: &str = "/corpus";

impl Outcome {
    /// Evaluates `program` in `cwd`, once for the value and, if there is one, once more for the JSON.
    pub fn of(tool: &Tool, cwd: &Path, program: &str) -> Outcome {
        let run = tool.eval(cwd, program, &[]);
        let (value, trace) = (value_of(&run, cwd), trace_of(&run));
        let json = matches!(value, Value::Printed(_)).then(|| {
            let run = tool.eval(cwd, program, &["--json"]);
            match value_of(&run, cwd) {
                Value::Printed(text) => Ok(text),
                Value::Error(_) => Err(()),
                Value::Crash(how) => Ok(how),
            }
        });
        Outcome { value, json, trace }
    }

    /// Whether everything but the wording of an error is the same.
    pub fn agrees(&self, other: &Outcome) -> bool {
        let values = match (&self.value, &other.value) {
            (Value::Error(_), Value::Error(_)) => true,
            (Value::Printed(a), Value::Printed(b)) => a == b,
            _ => false,
        };
        values && self.json == other.json && self.trace == other.trace
    }

    /// The error's message, if the outcome is an error.
    pub fn message(&self) -> Option<&str> {
        match &self.value {
            Value::Error(message) => Some(message),
            _ => None,
        }
    }
}

/// The value or error of a run; paths below `cwd` are written as below `/corpus`.
pub fn value_of(run: &Run, cwd: &Path) -> Value {
    let placed = |bytes: &[u8]| plain(&readable(bytes)).replace(&*cwd.to_string_lossy(), HERE);
    let stderr = placed(&run.stderr);
    match run.code {
        Some(0) => Value::Printed(placed(&run.stdout).trim_end_matches('\n').to_owned()),
        Some(1) => match message(&stderr) {
            Some(message) => Value::Error(message),
            None => Value::Crash(format!("exit code 1 without `error:`: {stderr}")),
        },
        code => Value::Crash(format!("crash: exit code {code:?}: {stderr}")),
    }
}

/// The message of the error that `stderr` reports: the text after the last `error:`, up to its source excerpt.
pub fn message(stderr: &str) -> Option<String> {
    let lines: Vec<&str> = stderr.lines().collect();
    let start = lines.iter().rposition(|line| line.trim_start().starts_with("error: "))?;
    let first = lines[start].trim_start().strip_prefix("error: ").expect("the line was found by this prefix");
    let more = lines[start + 1..].iter().take_while(|line| {
        let line = line.trim_start();
        let ends = ["at ", "(use '--show-trace'", "Try '", "…"];
        !line.is_empty() && !ends.iter().any(|end| line.starts_with(end))
    });
    let message: Vec<&str> = std::iter::once(first).chain(more.map(|line| line.trim_start())).collect();
    Some(message.join("\n"))
}

fn trace_of(run: &Run) -> Vec<String> {
    let stderr = plain(&readable(&run.stderr));
    stderr.lines().filter_map(|line| line.strip_prefix("trace: ")).map(str::to_owned).collect()
}
