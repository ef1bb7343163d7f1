//! Evaluation errors: one boxed word, whose kind says whether `tryEval` catches it.
//!
//! Messages are Nix's own. Parts that Nix highlights are wrapped in the escape sequences Nix uses
//! ([`Error::HIGHLIGHT`]…[`Error::PLAIN`]); whoever prints on something that is not a terminal strips them.

use firn_source::Pos;

/// A result of evaluation.
pub type Result<T> = std::result::Result<T, Box<Error>>;

/// What sort of failure this is; decides who may catch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `throw`: caught by `tryEval`.
    Thrown,
    /// A failed `assert`: caught by `tryEval`.
    Assertion,
    /// `abort`.
    Abort,
    /// A type error.
    Type,
    /// An undefined variable.
    UndefinedVar,
    /// A missing function argument.
    MissingArgument,
    /// Infinite recursion.
    InfiniteRecursion,
    /// Call depth exceeded.
    StackOverflow,
    /// A syntax error in a file or expression.
    Parse,
    /// A pure or restricted evaluation refused something.
    Restricted,
    /// Something outside failed: a file, a store, a fetch.
    Host,
    /// A path that is not valid in the store, a build that failed.
    Store,
    /// Any other error of evaluation.
    Eval,
    /// The user interrupted; never remembered by a thunk.
    Interrupted,
}

/// One step of the trace: the innermost is first.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where, if anywhere.
    pub pos: Pos,
    /// What was being done.
    pub text: Vec<u8>,
    /// NIX: frames added by `addErrorContext` are shown even without `--show-trace`.
    pub always: bool,
}

/// An error of evaluation.
#[derive(Clone, Debug)]
pub struct Error {
    /// Its kind.
    pub kind: ErrorKind,
    /// Nix's message without the `error:` prefix.
    pub message: Vec<u8>,
    /// Where it happened.
    pub pos: Pos,
    /// What was being evaluated, innermost first.
    pub trace: Vec<Frame>,
    /// Names close to the one that was not found, best first.
    pub suggestions: Vec<Vec<u8>>,
    /// Exit status other than 1, if any.
    pub status: Option<u8>,
}

impl Error {
    /// Begins a highlighted part of a message.
    pub const HIGHLIGHT: &'static str = "\x1b[35;1m";
    /// Ends a highlighted part of a message.
    pub const PLAIN: &'static str = "\x1b[0m";

    /// An error of the given kind with a finished message.
    pub fn new(kind: ErrorKind, message: impl Into<Vec<u8>>) -> Box<Error> {
        Box::new(Error {
            kind,
            message: message.into(),
            pos: Pos::NONE,
            trace: Vec::new(),
            suggestions: Vec::new(),
            status: None,
        })
    }

    /// Sets the position.
    pub fn at(mut self: Box<Self>, pos: Pos) -> Box<Error> {
        self.pos = pos;
        self
    }

    /// Adds a frame outside the ones already there.
    pub fn trace(mut self: Box<Self>, pos: Pos, text: impl Into<Vec<u8>>) -> Box<Error> {
        self.trace.push(Frame { pos, text: text.into(), always: false });
        self
    }

    /// Adds names that may have been meant.
    pub fn suggest(mut self: Box<Self>, suggestions: Vec<Vec<u8>>) -> Box<Error> {
        self.suggestions = suggestions;
        self
    }

    /// Whether `tryEval` catches it.
    pub fn is_catchable(&self) -> bool {
        matches!(self.kind, ErrorKind::Thrown | ErrorKind::Assertion)
    }

    /// Whether a thunk that failed with it stays failed.
    pub fn is_lasting(&self) -> bool {
        !matches!(self.kind, ErrorKind::Interrupted | ErrorKind::StackOverflow)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(&self.message);
        f.write_str(&text.replace(Error::HIGHLIGHT, "").replace(Error::PLAIN, ""))
    }
}

impl std::error::Error for Error {}
