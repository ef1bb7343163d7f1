//! Evaluation errors: one boxed word, whose kind says whether `tryEval` catches it.
//!
//! Messages are Nix's own. Parts that Nix highlights are wrapped in the escape sequences Nix uses
//! ([`Error::HIGHLIGHT`]…[`Error::PLAIN`]); whoever prints on something that is not a terminal strips them. An error is
//! cheap to clone (every thunk it passes through remembers it), so message and trace are shared.

use firn_source::Pos;
use firn_source::diagnostics::{Diagnostic, Level, Step};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

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
    /// A word outside the set of known words. NIX: programs that fail with it point to `--help`.
    Usage,
    /// A path that is not valid in the store, a build that failed.
    Store,
    /// Any other error of evaluation.
    Eval,
    /// The user interrupted; never remembered by a thunk.
    Interrupted,
    /// Another thread is in the way, or what would be printed has its turn later: evaluated again then. Never seen by users.
    Postponed,
}

/// One step of the trace.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Where, if anywhere.
    pub pos: Pos,
    /// What was being done.
    pub text: Vec<u8>,
    /// NIX: frames added by `addErrorContext` are shown even without `--show-trace`.
    pub always: bool,
}

#[derive(Clone, Debug)]
struct Info {
    kind: ErrorKind,
    message: Vec<u8>,
    pos: Pos,
    suggestions: Vec<Vec<u8>>,
    status: u8,
}

#[derive(Debug)]
struct Link {
    frame: Frame,
    inner: Option<Arc<Link>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // Long traces must not be dropped by recursion.
        let mut next = self.inner.take();
        while let Some(link) = next {
            match Arc::into_inner(link) {
                Some(mut link) => next = link.inner.take(),
                None => break,
            }
        }
    }
}

/// An error of evaluation.
///
/// NIX: the failed thunk on the way remembers the very error that goes on to be caught, with the frames it gathers until
/// then; whoever forces that thunk again gets a copy. So the trace is shared ([`Error::share`]) or copied (`clone`).
#[derive(Debug)]
pub struct Error {
    info: Arc<Info>,
    trace: Arc<Trace>,
}

/// Frames, outermost first, and whether the error waits to be raised for the first time.
#[derive(Debug, Default)]
struct Trace {
    links: Mutex<Option<Arc<Link>>>,
    waiting: AtomicBool,
    /// The frames that stay if the attempt in which the error was raised is given up.
    mark: Mutex<Option<Option<Arc<Link>>>>,
}

impl Trace {
    fn links(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.links.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Clone for Error {
    fn clone(&self) -> Error {
        let trace = Trace { links: Mutex::new(self.trace.links().clone()), ..Trace::default() };
        Error { info: Arc::clone(&self.info), trace: Arc::new(trace) }
    }
}

impl Error {
    /// Begins a highlighted part of a message.
    pub const HIGHLIGHT: &'static str = "\x1b[35;1m";
    /// Ends a highlighted part of a message.
    pub const PLAIN: &'static str = "\x1b[0m";

    /// An error of the given kind with a finished message.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<Vec<u8>>) -> Box<Error> {
        let info = Info { kind, message: message.into(), pos: Pos::NONE, suggestions: Vec::new(), status: 1 };
        Box::new(Error { info: Arc::new(info), trace: Arc::default() })
    }

    /// Sets the position.
    pub fn at(mut self: Box<Self>, pos: Pos) -> Box<Error> {
        Arc::make_mut(&mut self.info).pos = pos;
        self
    }

    /// Sets the exit status of a program that fails with this error.
    pub fn exit_with(mut self: Box<Self>, status: u8) -> Box<Error> {
        Arc::make_mut(&mut self.info).status = status;
        self
    }

    /// Adds a frame around the ones already there. An empty text says that an outer frame tells enough: no frame.
    #[cold]
    pub fn trace(self: Box<Self>, pos: Pos, text: impl Into<Vec<u8>>) -> Box<Error> {
        let text = text.into();
        if text.is_empty() { self } else { self.frame(Frame { pos, text, always: false }) }
    }

    /// Adds a frame around the ones already there. NIX: an interruption has none; where it happened means nothing.
    #[cold]
    pub fn frame(self: Box<Self>, frame: Frame) -> Box<Error> {
        if self.kind() == ErrorKind::Interrupted {
            return self;
        }
        let mut links = self.trace.links();
        let inner = links.take();
        *links = Some(Arc::new(Link { frame, inner }));
        drop(links);
        self
    }

    /// The same error: frames added to either are seen in both.
    pub fn share(&self) -> Box<Error> {
        Box::new(Error { info: Arc::clone(&self.info), trace: Arc::clone(&self.trace) })
    }

    /// The error of a thunk that was evaluated before it was needed: whoever needs it first raises it.
    pub fn wait(&self) {
        self.trace.waiting.store(true, Ordering::Relaxed);
    }

    /// What forcing a failed thunk raises: the error itself if nobody raised it yet, otherwise a copy.
    pub fn raise(&self) -> Box<Error> {
        if self.trace.waiting.swap(false, Ordering::Relaxed) { self.share() } else { Box::new(self.clone()) }
    }

    /// Notes that the error leaves a thunk that stays failed with it, in an attempt that may be given up. Unless it is `outermost`, a mark
    /// made before stays.
    pub fn mark(&self, outermost: bool) {
        let links = self.trace.links().clone();
        let mut mark = self.trace.mark.lock().unwrap_or_else(|e| e.into_inner());
        if outermost || mark.is_none() {
            *mark = Some(links);
        }
    }

    /// The attempt is given up: thunks that failed in it have the error as it left the outermost of them, and whoever needs that one
    /// raises it for the first time.
    pub fn rewind(&self) {
        if let Some(links) = self.trace.mark.lock().unwrap_or_else(|e| e.into_inner()).take() {
            *self.trace.links() = links;
            self.trace.waiting.store(true, Ordering::Relaxed);
        }
    }

    /// Adds names that may have been meant, best first.
    pub fn suggest(mut self: Box<Self>, suggestions: Vec<Vec<u8>>) -> Box<Error> {
        Arc::make_mut(&mut self.info).suggestions = suggestions;
        self
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.info.kind
    }

    /// Nix's message without the `error:` prefix, highlights included.
    pub fn message(&self) -> &[u8] {
        &self.info.message
    }

    /// Where it happened.
    pub fn pos(&self) -> Pos {
        self.info.pos
    }

    /// Names that may have been meant, best first.
    pub fn suggestions(&self) -> &[Vec<u8>] {
        &self.info.suggestions
    }

    /// Exit status of a program that fails with this error.
    pub fn status(&self) -> u8 {
        self.info.status
    }

    /// The trace, outermost frame first.
    pub fn frames(&self) -> Vec<Frame> {
        let links = self.trace.links().clone();
        std::iter::successors(links.as_deref(), |link| link.inner.as_deref()).map(|link| link.frame.clone()).collect()
    }

    /// The error as the user is told of it.
    pub fn diagnostic(&self) -> Diagnostic<'_> {
        Diagnostic {
            level: Level::Error,
            message: self.message(),
            pos: self.pos(),
            trace: self.frames().into_iter().map(|f| Step { pos: f.pos, text: f.text, always: f.always }).collect(),
            suggestions: self.suggestions(),
        }
    }

    /// Whether `tryEval` catches it.
    pub fn is_catchable(&self) -> bool {
        matches!(self.kind(), ErrorKind::Thrown | ErrorKind::Assertion)
    }

    /// Whether a thunk that failed with it stays failed.
    pub fn is_lasting(&self) -> bool {
        !matches!(self.kind(), ErrorKind::Interrupted | ErrorKind::Postponed | ErrorKind::StackOverflow)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy(self.message());
        f.write_str(&text.replace(Error::HIGHLIGHT, "").replace(Error::PLAIN, ""))
    }
}

impl std::error::Error for Error {}
