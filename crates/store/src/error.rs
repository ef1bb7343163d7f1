//! The one error of this crate: a kind (who catches it) and Nix's message (bytes, because it quotes program strings).
//!
//! Kinds mirror the classes that Nix's callers tell apart; the evaluator adds positions and traces.

use std::{fmt, io};

/// What sort of failure this is; Nix catches some of these by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A hash that does not parse or has the wrong size.
    BadHash,
    /// A name that may not stand after the digest of a store path.
    BadStorePathName,
    /// A string that is not a store path.
    BadStorePath,
    /// A string-context element in no known form.
    BadContext,
    /// Malformed text: ATerm, base 16/32/64.
    Format,
    /// Malformed archive.
    Serialisation,
    /// A word outside the set of known words (algorithm, method).
    Usage,
    /// The reader or writer given by the caller failed.
    Io,
    /// Everything that Nix raises as a plain error.
    Other,
}

/// A failure with Nix's wording. One word wide, so that `Result` stays small on hot paths.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Vec<u8>,
    traces: Vec<Vec<u8>>,
    source: Option<io::Error>,
    status: u8,
}

/// Shorthand used throughout the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error whose message is the concatenation of `parts`.
    #[cold]
    pub fn new(kind: ErrorKind, parts: &[&[u8]]) -> Self {
        Error(Box::new(Inner { kind, message: parts.concat(), traces: Vec::new(), source: None, status: 1 }))
    }

    /// The error with what was going on around it, the innermost first, as a daemon tells it.
    #[must_use]
    pub fn with_traces(mut self, traces: Vec<Vec<u8>>) -> Self {
        self.0.traces = traces;
        self
    }

    /// What was going on around it, the innermost first.
    pub fn traces(&self) -> &[Vec<u8>] {
        &self.0.traces
    }

    /// The error once more, for another who waits for the same; an I/O error behind it stays with the first.
    pub fn again(&self) -> Self {
        let Inner { kind, message, traces, source: _, status } = &*self.0;
        let (message, traces) = (message.clone(), traces.clone());
        Error(Box::new(Inner { kind: *kind, message, traces, source: None, status: *status }))
    }

    /// The error as one that programs end with this status for.
    #[must_use]
    pub fn with_status(mut self, status: u8) -> Self {
        self.0.status = status;
        self
    }

    /// The status that programs end with for it.
    pub fn status(&self) -> u8 {
        self.0.status
    }

    /// The class of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message as bytes, exactly as Nix words it (without `error: `).
    pub fn message(&self) -> &[u8] {
        &self.0.message
    }

    /// The I/O error behind an [`ErrorKind::Io`].
    pub fn into_io(self) -> Option<io::Error> {
        self.0.source
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        let message = source.to_string().into_bytes();
        Error(Box::new(Inner { kind: ErrorKind::Io, message, traces: Vec::new(), source: Some(source), status: 1 }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0.message))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.0.kind, self)
    }
}

impl std::error::Error for Error {}
