//! The figures of a comparison and the report of its differences.

use super::outcome::{Outcome, Value};
use super::text::diff;

/// Counts over one run of the corpus.
#[derive(Debug, Default, Clone, Copy)]
pub struct Figures {
    /// Programs compared.
    pub programs: usize,
    /// Programs whose value, failure, JSON and traces agree.
    pub agreeing: usize,
    /// Programs that fail on both sides.
    pub errors: usize,
    /// Of those, programs whose message is worded the same.
    pub same_message: usize,
}

impl Figures {
    /// Counts one comparison.
    pub fn count(&mut self, expected: &Outcome, actual: &Outcome) {
        self.programs += 1;
        self.agreeing += usize::from(expected.agrees(actual));
        if let (Some(a), Some(b)) = (expected.message(), actual.message()) {
            self.errors += 1;
            self.same_message += usize::from(a == b);
        }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Figures { programs, agreeing, errors, same_message } = self;
        write!(
            f,
            "{agreeing} of {programs} programs agree; of {errors} failing on both sides {same_message} word the error the same"
        )
    }
}

/// An outcome as text, for reports.
pub fn show(outcome: &Outcome) -> String {
    let mut text = match &outcome.value {
        Value::Printed(value) => format!("value: {value}\n"),
        Value::Error(message) => format!("error: {message}\n"),
        Value::Crash(how) => format!("{how}\n"),
    };
    match &outcome.json {
        Some(Ok(json)) => text += &format!("json: {json}\n"),
        Some(Err(())) => text += "json: none\n",
        None => {}
    }
    for line in &outcome.trace {
        text += &format!("trace: {line}\n");
    }
    text
}

/// The difference of two outcomes of `program`, for a reader: `-` lines are the expected ones.
pub fn report(name: &str, program: &str, expected: &Outcome, actual: &Outcome) -> String {
    let indented: String = program.lines().map(|line| format!("      {line}\n")).collect();
    format!("{name}:\n{indented}{}", diff(&show(expected), &show(actual)))
}
