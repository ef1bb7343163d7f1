//! `World`: the raw answers of an operating system, uncached and unrecorded. Implemented by the real one, by a tree in
//! memory, and by a wrapper that injects faults.
//!
//! Only [`Snapshot`](crate::Snapshot) asks a world. Invariant: it asks about a path only after every directory above it
//! has been seen to be a directory and no link, so that no implementation has to follow links.

use crate::{AbsPath, Entry, Errno, FileContent, Stat};

/// Why a file's bytes could not be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadFault {
    /// It could not be opened.
    Open(Errno),
    /// It was opened and is no regular file.
    NotRegular,
    /// It was opened and reading failed.
    Read(Errno),
    /// It ended before the size it had when opened.
    Short,
}

/// Files, environment and clock as they are at this moment.
pub trait World: Send + Sync {
    /// `lstat`: type and state, links not followed; none if nothing is there.
    fn stat(&self, path: &AbsPath) -> Result<Option<Stat>, Errno>;

    /// The bytes of a regular file: exactly as many as its size says.
    fn read(&self, path: &AbsPath) -> Result<FileContent, ReadFault>;

    /// The entries of a directory in any order, without `.` and `..`.
    fn list(&self, path: &AbsPath) -> Result<Vec<Entry>, ListFault>;

    /// The target of a link.
    fn link(&self, path: &AbsPath) -> Result<Vec<u8>, Errno>;

    /// The value of an environment variable.
    fn env(&self, name: &[u8]) -> Option<Vec<u8>>;

    /// Seconds since 1970.
    fn now(&self) -> i64;

    /// The home directory by Nix's rule, as written, if one can be named.
    fn home(&self) -> Home;

    /// The directory the process runs in.
    fn current_dir(&self) -> Result<Vec<u8>, Errno>;
}

/// Why a directory could not be listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListFault {
    /// It could not be opened.
    Open(Errno),
    /// It was opened and reading failed.
    Read(Errno),
}

/// The home directory and what had to be said on the way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Home {
    /// The directory; none if nothing names one.
    pub path: Option<Vec<u8>>,
    /// A warning for the user, in Nix's words, if `HOME` could not be taken as it is.
    pub warning: Option<String>,
}
