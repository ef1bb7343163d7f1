//! Why a command ends without success.

use firn_eval::{Error, ErrorKind};

/// The end of a command that did not succeed, or that has nothing more to do.
#[derive(Debug)]
pub enum Failure {
    /// The command line or a setting is wrong; the user is pointed to the help.
    Usage(Vec<u8>),
    /// Evaluation, or something it needs, failed.
    Error(Box<Error>),
    /// All is said; only the exit status is left.
    Exit(u8),
}

impl Failure {
    /// A usage error with a highlighted part.
    pub fn usage(before: &str, part: &[u8], after: &str) -> Failure {
        let marks = (Error::HIGHLIGHT.as_bytes(), Error::PLAIN.as_bytes());
        Failure::Usage([before.as_bytes(), marks.0, part, marks.1, after.as_bytes()].concat())
    }

    /// An error that is no usage error.
    pub fn error(message: impl Into<Vec<u8>>) -> Failure {
        Failure::Error(Error::new(ErrorKind::Host, message))
    }
}

impl From<Box<Error>> for Failure {
    fn from(error: Box<Error>) -> Failure {
        Failure::Error(error)
    }
}
