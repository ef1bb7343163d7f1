//! Standard error: messages filtered for what it is connected to, warnings hidden where the user asked for quiet.

use crate::told::Told;
use firn_host::Host;
use firn_source::diagnostics::{Diagnostic, Level};
use firn_source::terminal::filter_escapes;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where the user is told things.
#[derive(Debug)]
pub struct Log {
    plain: bool,
    verbosity: AtomicI32,
    full_traces: AtomicBool,
    /// A line that stands below everything else on a terminal while work goes on.
    status: Mutex<Vec<u8>>,
    /// What was told, for a program that begins again.
    told: Told,
    /// What is told while someone listens.
    heard: Mutex<Option<Heard>>,
}

/// What the user was told while evaluation ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The text, as it was before it was filtered for the terminal.
    pub text: Vec<u8>,
    /// Something was told that another run would not tell, such as what a build printed.
    pub is_passing: bool,
}

/// Warnings are shown from this verbosity on.
const WARNINGS: i32 = 1;
/// What is told unless the user says otherwise.
const INFORMATION: i32 = 3;

impl Log {
    /// Colours only on a terminal that has them and a user who wants them.
    pub fn new(host: &dyn Host) -> Log {
        let unwanted = host.env(b"NO_COLOR").is_some() || host.env(b"NOCOLOR").is_some();
        let dumb = host.env(b"TERM").is_none_or(|terminal| &*terminal == b"dumb");
        let plain = unwanted || dumb || !std::io::stderr().is_terminal();
        let (verbosity, full_traces) = (AtomicI32::new(WARNINGS), AtomicBool::new(false));
        let (status, heard, told) = (Mutex::default(), Mutex::default(), Told::default());
        Log { plain, verbosity, full_traces, status, heard, told }
    }

    /// Whether the user gets no colours.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// How much the user wants to hear.
    pub fn set_verbosity(&self, verbosity: i32) {
        self.verbosity.store(verbosity, Ordering::Relaxed);
    }

    /// Whether errors are shown with their whole trace.
    pub fn set_full_traces(&self, full: bool) {
        self.full_traces.store(full, Ordering::Relaxed);
    }

    /// A warning.
    pub fn warn(&self, message: &[u8]) {
        self.line(&Diagnostic::message(Level::Warning, message).unaligned());
    }

    /// An error or warning.
    pub fn say(&self, diagnostic: &Diagnostic<'_>) {
        if diagnostic.level == Level::Error || self.verbosity.load(Ordering::Relaxed) >= WARNINGS {
            self.line(&diagnostic.render(self.full_traces.load(Ordering::Relaxed)));
        }
    }

    /// Does all but telling: what is noted where something is shown is noted.
    pub fn rehearse(&self, diagnostic: &Diagnostic<'_>) {
        diagnostic.render(self.full_traces.load(Ordering::Relaxed));
    }

    /// A line for those who want to hear more (`-v`).
    pub fn detail(&self, text: &[u8]) {
        if self.verbosity.load(Ordering::Relaxed) > INFORMATION {
            self.line(text);
        }
    }

    /// As [`Log::detail`], made only if somebody wants to hear it.
    pub fn detail_of(&self, text: impl FnOnce() -> String) {
        if self.verbosity.load(Ordering::Relaxed) > INFORMATION {
            self.line(text().as_bytes());
        }
    }

    /// A line of text.
    pub fn line(&self, text: &[u8]) {
        self.write(&[text, b"\n"].concat());
    }

    fn hearing(&self) -> MutexGuard<'_, Option<Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on what is told is kept as well.
    pub fn listen(&self) {
        *self.hearing() = Some(Heard::default());
    }

    /// What was told since; nobody listens any more.
    pub fn heard(&self) -> Heard {
        self.hearing().take().unwrap_or_default()
    }

    /// Tells something that does not belong to the answer: it would be told on every run.
    pub fn aside(&self, tell: impl FnOnce(&Log)) {
        let kept = self.hearing().take();
        tell(self);
        *self.hearing() = kept;
    }

    /// A line that another run would not tell.
    pub fn passing(&self, text: &[u8]) {
        if let Some(heard) = &mut *self.hearing() {
            heard.is_passing = true;
        }
        self.line(text);
    }

    /// Tells again what was heard.
    pub fn repeat(&self, text: &[u8]) {
        for line in text.split_inclusive(|&byte| byte == 0) {
            let (line, _) = line.split_at(line.len() - usize::from(line.ends_with(&[0])));
            self.write(line);
        }
    }

    /// Text that ends its own lines, as the machine writes it.
    pub fn write(&self, text: &[u8]) {
        if let Some(heard) = &mut *self.hearing() {
            // One write is one message: whether it is shown depends on how it begins. Messages hold no NUL.
            heard.is_passing |= text.contains(&0);
            heard.text.extend_from_slice(text);
            heard.text.push(0);
        }
        let quiet = self.verbosity.load(Ordering::Relaxed) < WARNINGS;
        let text = filter_escapes(text, self.plain);
        if quiet && (text.starts_with(b"warning:") || text.starts_with(b"evaluation warning:")) {
            return;
        }
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if self.told.was_told(&text) {
            return;
        }
        // A closed standard error is no reason to fail.
        let _ = match status.is_empty() {
            true => std::io::stderr().write_all(&text),
            false => std::io::stderr().write_all(&[b"\r\x1b[K", &text[..], &status[..]].concat()),
        };
    }

    /// Shows a line that is replaced by the next; an empty one ends it. Only on terminals.
    pub fn show_status(&self, line: &str) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        *status = line.as_bytes().to_vec();
        let _ = std::io::stderr().write_all(&[b"\r\x1b[K", line.as_bytes()].concat());
    }

    /// Says nothing that was said before: the program begins again.
    pub fn begin_again(&self) {
        self.told.begin_again();
    }

    /// How much the user wants to hear.
    pub fn verbosity(&self) -> i32 {
        self.verbosity.load(Ordering::Relaxed)
    }
}
