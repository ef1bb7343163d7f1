//! `FetchError`: why something could not be fetched, in Nix's words.

use std::fmt;

/// What kind of failure it is, where callers tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchErrorKind {
    /// A text that is no URL, or one that its scheme cannot take: a flake reference may still be a path.
    BadUrl,
    /// What was fetched is not what was expected: programs end with status 102.
    Mismatch,
    /// What was found is not what the caller said it would be: told with the place of the call.
    AtCall,
    /// There is no such file.
    Missing,
    /// A word outside the set of known words.
    Usage,
    /// Anything else.
    Other,
}

/// A failure to fetch, with what was being done.
#[derive(Clone)]
pub struct FetchError(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: FetchErrorKind,
    message: String,
    trace: Vec<String>,
}

/// A part of a message that Nix highlights.
pub fn shown(part: impl fmt::Display) -> String {
    format!("\x1b[35;1m{part}\x1b[0m")
}

impl FetchError {
    /// A failure of no particular kind. Parts that Nix highlights are wrapped by [`shown`].
    pub fn new(message: impl Into<String>) -> FetchError {
        FetchError::of(FetchErrorKind::Other, message)
    }

    /// A text that is no URL of the wanted form.
    pub fn bad_url(message: impl Into<String>) -> FetchError {
        FetchError::of(FetchErrorKind::BadUrl, message)
    }

    /// A failure of this kind.
    pub fn of(kind: FetchErrorKind, message: impl Into<String>) -> FetchError {
        FetchError(Box::new(Inner { kind, message: message.into(), trace: Vec::new() }))
    }

    /// Adds what was being done.
    pub fn while_doing(mut self, what: impl Into<String>) -> FetchError {
        self.0.trace.push(what.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> FetchErrorKind {
        self.0.kind
    }

    /// The message, without `error: `.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What was being done, innermost first.
    pub fn trace(&self) -> &[String] {
        &self.0.trace
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message.replace("\x1b[35;1m", "").replace("\x1b[0m", ""))
    }
}

impl fmt::Debug for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for FetchError {}

impl From<crate::HostError> for FetchError {
    fn from(error: crate::HostError) -> FetchError {
        FetchError::new(error.to_string())
    }
}

impl From<firn_store::Error> for FetchError {
    fn from(error: firn_store::Error) -> FetchError {
        let kind = if error.kind() == firn_store::ErrorKind::Usage { FetchErrorKind::Usage } else { FetchErrorKind::Other };
        FetchError::of(kind, error.to_string())
    }
}

impl From<crate::SourceError> for FetchError {
    fn from(error: crate::SourceError) -> FetchError {
        match error {
            crate::SourceError::Host(error) => error.into(),
            crate::SourceError::Store(error) => error.into(),
        }
    }
}

/// An error of the operating system about a file of the fetchers' own.
pub(super) fn file_error(doing: &str, path: &std::path::Path, error: std::io::Error) -> FetchError {
    FetchError::new(format!("{doing} '{}': {}", shown(path.display()), crate::Errno::from(error)))
}
