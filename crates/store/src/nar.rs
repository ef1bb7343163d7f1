//! Nix archives: a tree of directories, regular files and symbolic links as one canonical byte stream.
//!
//! [`Sink`] is a tree as events. [`Writer`] is the sink that produces the archive into any [`std::io::Write`] (a
//! hasher for store paths); [`parse`] reads an archive and feeds a sink. Neither touches the file system.
//!
//! Nix's case hack (`~nix~case~hack~` in file names) exists for case-insensitive file systems only and has no part
//! here: names are bytes, and those that differ in case differ.

mod read;
mod write;

pub use read::parse;
pub use write::{Writer, dump_file};

use crate::error::{Error, ErrorKind, Result};

/// How deep directories may nest; the root is at depth 0, and nodes at this depth are refused.
pub const MAX_DEPTH: usize = 64;
/// The longest file name in an archive.
pub const MAX_NAME: usize = 255;
/// The longest symlink target in an archive.
pub const MAX_TARGET: usize = 4095;

const MAGIC: &[u8] = b"nix-archive-1";

/// A tree, told as events.
///
/// node = `regular contents* end_regular` | `symlink` | `directory (entry node)* end_directory`, with entries in
/// strictly ascending byte order.
pub trait Sink {
    /// A directory starts.
    fn directory(&mut self) -> Result<()>;
    /// The next node is the entry `name` of the directory that is open.
    fn entry(&mut self, name: &[u8]) -> Result<()>;
    /// The directory that is open ends.
    fn end_directory(&mut self) -> Result<()>;
    /// A regular file of `size` bytes starts.
    fn regular(&mut self, executable: bool, size: u64) -> Result<()>;
    /// The next bytes of the file.
    fn contents(&mut self, data: &[u8]) -> Result<()>;
    /// The file ends.
    fn end_regular(&mut self) -> Result<()>;
    /// A symbolic link.
    fn symlink(&mut self, target: &[u8]) -> Result<()>;
}

/// A sink that keeps nothing: [`parse`] into it checks an archive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Sink for Discard {
    fn directory(&mut self) -> Result<()> {
        Ok(())
    }
    fn entry(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn end_directory(&mut self) -> Result<()> {
        Ok(())
    }
    fn regular(&mut self, _: bool, _: u64) -> Result<()> {
        Ok(())
    }
    fn contents(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn end_regular(&mut self) -> Result<()> {
        Ok(())
    }
    fn symlink(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

fn bad_archive(parts: &[&[u8]]) -> Error {
    Error::new(ErrorKind::Serialisation, &[b"bad archive: ", &parts.concat()])
}

fn check_entry_name(name: &[u8], previous: Option<&[u8]>) -> Result<()> {
    if name.is_empty() || name == b"." || name == b".." || name.iter().any(|c| matches!(c, b'/' | 0)) {
        return Err(bad_archive(&[b"NAR contains invalid file name '", name, b"'"]));
    }
    if previous.is_some_and(|previous| name <= previous) {
        return Err(bad_archive(&[b"NAR directory is not sorted"]));
    }
    Ok(())
}

fn too_deep() -> Error {
    bad_archive(&[b"NAR directory nesting exceeds maximum depth of 64"])
}
