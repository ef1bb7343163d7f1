//! `HostError`: everything a question to the host can fail with, in Nix's words.
//!
//! One small closed enum, cheap to clone because failures are cached and recorded like any other answer. The texts are
//! those of Nix 2.35 without the leading `error: `; the evaluator adds position and trace.

use std::fmt;
use std::sync::Arc;

use crate::AbsPath;
use crate::digest::Fold;

/// An error number of the operating system, shown in its words (`No such file or directory`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Errno(pub i32);

impl Errno {
    /// No such file or directory.
    pub const ENOENT: Errno = Errno(2);
    /// Input/output error.
    pub const EIO: Errno = Errno(5);
    /// No such device or address.
    pub const ENXIO: Errno = Errno(6);
    /// Permission denied.
    pub const EACCES: Errno = Errno(13);
    /// Not a directory.
    pub const ENOTDIR: Errno = Errno(20);
    /// Invalid argument: what reading the target of something else than a link gives.
    pub const EINVAL: Errno = Errno(22);
    /// File name too long.
    pub const ENAMETOOLONG: Errno = Errno(if cfg!(target_os = "macos") { 63 } else { 36 });
}

impl Errno {
    /// Errors that never reached the operating system have no number and count as input/output errors.
    pub fn from_ref(error: &std::io::Error) -> Errno {
        error.raw_os_error().map_or(Errno::EIO, Errno)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno::from_ref(&error)
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.0).to_string();
        f.write_str(text.split(" (os error").next().unwrap_or(&text))
    }
}

/// What was being done when the operating system said no.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// Opening a file to read it.
    Open,
    /// Opening a directory, to list it or on the way to something below it.
    OpenDirectory,
    /// Reading the bytes of an open file.
    Read,
    /// Listing an open directory.
    ReadDirectory,
    /// Asking for the type of a file.
    Status,
    /// Reading the target of a link.
    ReadLink,
}

/// Why a path or address is out of bounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// `pure-eval`.
    Pure,
    /// `restrict-eval`.
    Restricted,
}

/// Why the host has no answer. `Display` gives Nix's text; [`HostError::parts`] tells its values from its words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostError {
    /// Nothing is there.
    NotFound(AbsPath),
    /// Something is there, but it has no bytes to read: a directory, a device.
    NotRegular(AbsPath),
    /// Something is there, but it cannot be listed.
    NotDirectory(AbsPath),
    /// Something is there, but it is no link.
    NotSymlink(AbsPath),
    /// The last component is a link where the caller should have resolved it.
    IsSymlink(AbsPath),
    /// A directory on the way (this is the nearest) is reached through a link that the caller should have resolved.
    SymlinkOnTheWay(AbsPath),
    /// More than 1024 links while resolving the path.
    SymlinkRecursion(AbsPath),
    /// More than 1024 links while looking for the file to import.
    TooManySymlinks(AbsPath),
    /// The file became shorter while it was read.
    EndOfFile(AbsPath),
    /// The operating system refused.
    System(Action, AbsPath, Errno),
    /// The path is outside what pure or restricted evaluation may see.
    Forbidden(AbsPath, Mode),
    /// The address is outside `allowed-uris`.
    ForbiddenUri(Arc<[u8]>),
    /// No entry of the search path has it.
    NotInSearchPath(Arc<[u8]>),
    /// There is no search path in pure evaluation.
    LookupWhenPure(Arc<[u8]>),
    /// A path with a NUL byte in it.
    NulInPath(Arc<[u8]>),
    /// Neither `HOME` nor the password database names a home directory.
    NoHome,
    /// The directory the process runs in cannot be named.
    NoCurrentDir(Errno),
    /// The store could not make the object readable, for this reason.
    Store(Arc<[u8]>),
}

/// A piece of a message: Nix prints values in another colour than words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// Words of the message.
    Text(&'static str),
    /// A path or name put into it.
    Value(std::borrow::Cow<'a, [u8]>),
    /// What the operating system said, after the hint.
    System(String),
}

impl HostError {
    /// Whether `tryEval` catches it: only a failed search-path lookup counts as thrown.
    pub fn is_catchable(&self) -> bool {
        matches!(self, HostError::NotInSearchPath(_) | HostError::LookupWhenPure(_))
    }

    /// Whether it came from pure or restricted evaluation; `pathExists` turns these into false.
    pub fn is_restriction(&self) -> bool {
        matches!(self, HostError::Forbidden(..) | HostError::ForbiddenUri(_))
    }

    /// The same failure about another path: where a tree is seen elsewhere than where it lies.
    pub(crate) fn map_path(self, map: impl FnOnce(&AbsPath) -> AbsPath) -> HostError {
        use HostError::*;
        match self {
            NotFound(path) => NotFound(map(&path)),
            NotRegular(path) => NotRegular(map(&path)),
            NotDirectory(path) => NotDirectory(map(&path)),
            NotSymlink(path) => NotSymlink(map(&path)),
            IsSymlink(path) => IsSymlink(map(&path)),
            SymlinkOnTheWay(path) => SymlinkOnTheWay(map(&path)),
            SymlinkRecursion(path) => SymlinkRecursion(map(&path)),
            TooManySymlinks(path) => TooManySymlinks(map(&path)),
            EndOfFile(path) => EndOfFile(map(&path)),
            System(action, path, errno) => System(action, map(&path), errno),
            Forbidden(path, mode) => Forbidden(map(&path), mode),
            other @ (ForbiddenUri(_) | NotInSearchPath(_) | LookupWhenPure(_) | NulInPath(_) | NoHome
            | NoCurrentDir(_) | Store(_)) => other,
        }
    }

    /// The message, cut into words and values.
    pub fn parts(&self) -> Vec<Part<'_>> {
        use HostError::*;
        match self {
            NotFound(path) => quoted("path '", path.as_bytes(), "' does not exist"),
            // NIX: the root alone is named without the word `file`.
            NotRegular(path) if path.is_root() => quoted("'", path.as_bytes(), "' is not a regular file"),
            NotRegular(path) => quoted("file '", path.as_bytes(), "' is not a regular file"),
            NotDirectory(path) => quoted("'", path.as_bytes(), "' is not a directory"),
            NotSymlink(path) => quoted("file '", path.as_bytes(), "' is not a symlink"),
            IsSymlink(path) => quoted("path '", path.as_bytes(), "' is a symlink"),
            SymlinkOnTheWay(path) => quoted("path '", path.as_bytes(), "' (or its ancestor) is a symlink"),
            SymlinkRecursion(path) => quoted("infinite symlink recursion in path '", path.as_bytes(), "'"),
            TooManySymlinks(path) => {
                quoted("too many symbolic links encountered while traversing the path '", path.as_bytes(), "'")
            }
            EndOfFile(path) => quoted("unexpected end-of-file reading from \"", path.as_bytes(), "\""),
            System(action, path, errno) => system_parts(*action, path, *errno),
            Forbidden(path, mode) => {
                let mut parts = quoted("access to absolute path '", path.as_bytes(), "' is forbidden ");
                parts.push(Part::Value(mode.words().as_bytes().into()));
                parts
            }
            ForbiddenUri(uri) => quoted("access to URI '", uri, "' is forbidden in restricted mode"),
            NotInSearchPath(name) => {
                quoted("file '", name, "' was not found in the Nix search path (add it using $NIX_PATH or -I)")
            }
            LookupWhenPure(name) => {
                quoted("cannot look up '<", name, ">' in pure evaluation mode (use '--impure' to override)")
            }
            NulInPath(raw) => vec![
                Part::Text("path segment '"),
                Part::Value(pictured(raw).into()),
                Part::Text("' must not contain null (\\0) bytes"),
            ],
            NoHome => vec![Part::Text("cannot determine user's home directory")],
            NoCurrentDir(errno) => vec![Part::Text("cannot get cwd"), Part::System(errno.to_string())],
            Store(message) => vec![Part::Value((&**message).into())],
        }
    }

    /// The message as bytes, exact where a path is not UTF-8.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in self.parts() {
            match part {
                Part::Text(words) => bytes.extend_from_slice(words.as_bytes()),
                Part::Value(value) => bytes.extend_from_slice(&value),
                Part::System(said) => {
                    bytes.extend_from_slice(b": ");
                    bytes.extend_from_slice(said.as_bytes());
                }
            }
        }
        bytes
    }

    /// Folds the failure into an answer's digest. Paths go in as seen from the path that was asked about, so that the
    /// digest is the same in every checkout.
    pub(crate) fn fold(&self, asked: &AbsPath, into: &mut Fold) {
        use HostError::*;
        let (tag, bytes, number) = match self {
            NotFound(path) => (0, asked.relative_to(path), 0),
            NotRegular(path) => (1, asked.relative_to(path), 0),
            NotDirectory(path) => (2, asked.relative_to(path), 0),
            NotSymlink(path) => (3, asked.relative_to(path), 0),
            IsSymlink(path) => (4, asked.relative_to(path), 0),
            SymlinkOnTheWay(path) => (5, asked.relative_to(path), 0),
            SymlinkRecursion(path) => (6, asked.relative_to(path), 0),
            TooManySymlinks(path) => (7, asked.relative_to(path), 0),
            EndOfFile(path) => (8, asked.relative_to(path), 0),
            System(action, path, errno) => (16 + *action as u8, asked.relative_to(path), errno.0),
            Forbidden(path, mode) => (9, asked.relative_to(path), *mode as i32),
            ForbiddenUri(uri) => (10, uri.to_vec(), 0),
            NotInSearchPath(name) => (11, name.to_vec(), 0),
            LookupWhenPure(name) => (12, name.to_vec(), 0),
            NulInPath(raw) => (13, raw.to_vec(), 0),
            NoHome => (14, Vec::new(), 0),
            NoCurrentDir(errno) => (15, Vec::new(), errno.0),
            Store(message) => (32, message.to_vec(), 0),
        };
        into.tag(tag).bytes(&bytes).number(number.into());
    }
}

impl Mode {
    fn words(self) -> &'static str {
        match self {
            Mode::Pure => "in pure evaluation mode (use '--impure' to override)",
            Mode::Restricted => "in restricted mode",
        }
    }
}

fn quoted<'a>(before: &'static str, value: &'a [u8], after: &'static str) -> Vec<Part<'a>> {
    vec![Part::Text(before), Part::Value(value.into()), Part::Text(after)]
}

fn system_parts(action: Action, path: &AbsPath, errno: Errno) -> Vec<Part<'_>> {
    let path = path.as_bytes();
    // NIX: where Nix prints a native path it puts double quotes around it.
    let mut parts = match action {
        Action::Open => quoted("opening '", path, "'"),
        Action::OpenDirectory => quoted("opening directory '", path, "'"),
        Action::Read => quoted("reading from \"", path, "\""),
        Action::ReadDirectory => quoted("reading directory '", path, "'"),
        Action::Status => quoted("getting status of '", path, "'"),
        Action::ReadLink => quoted("reading symbolic link \"", path, "\""),
    };
    parts.push(Part::System(errno.to_string()));
    parts
}

fn pictured(raw: &[u8]) -> Vec<u8> {
    raw.split(|&byte| byte == 0).collect::<Vec<_>>().join("\u{2400}".as_bytes())
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_bytes()))
    }
}

impl std::error::Error for HostError {}
