//! Source texts and global positions.
//!
//! Every text that is parsed is registered once and gets a range of the 32-bit position space, so that a position is
//! one word wherever it is carried. Positions serve messages only; they are never digested.

use std::sync::{OnceLock, RwLock};

/// Where a source text came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file, by absolute path.
    File(Vec<u8>),
    /// Standard input.
    Stdin,
    /// An expression given on the command line or to a library call.
    Expression,
    /// A text inside firn itself, named for messages.
    Internal(&'static str),
}

/// A registered source text.
#[derive(Debug)]
pub struct SourceFile {
    origin: Origin,
    text: &'static [u8],
    base: u32,
    lines: OnceLock<Box<[u32]>>,
}

/// A place in some registered source text, or nowhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pos(u32);

/// A position resolved for people: lines and columns count from 1, columns in bytes as Nix counts them.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// The text it is in.
    pub file: &'static SourceFile,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

static FILES: RwLock<Vec<&'static SourceFile>> = RwLock::new(Vec::new());

impl SourceFile {
    /// Registers a text. The text is kept for the life of the process.
    ///
    /// # Panics
    /// When the position space (4 GiB of source in one process) is used up.
    pub fn register(origin: Origin, text: Vec<u8>) -> &'static SourceFile {
        SourceFile::register_static(origin, Box::leak(text.into_boxed_slice()))
    }

    /// As [`SourceFile::register`], for a text that lives as long as the process already.
    pub fn register_static(origin: Origin, text: &'static [u8]) -> &'static SourceFile {
        let mut files = FILES.write().unwrap_or_else(|e| e.into_inner());
        let base = files.last().map_or(1, |f| f.base + f.text.len() as u32 + 1);
        let end = u64::from(base) + text.len() as u64 + 1;
        assert!(end < u64::from(u32::MAX), "more than 4 GiB of source text in one process");
        let file: &'static SourceFile = Box::leak(Box::new(SourceFile { origin, text, base, lines: OnceLock::new() }));
        files.push(file);
        file
    }

    /// The text.
    #[inline]
    pub fn text(&self) -> &'static [u8] {
        self.text
    }

    /// Where the text came from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The global position of a byte offset in this text (the end of the text included).
    #[inline]
    pub fn pos(&self, offset: u32) -> Pos {
        Pos(self.base + offset)
    }

    /// Line and column, from 1, of a byte offset. NIX: `\r`, `\n` and `\r\n` each end a line.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let starts = self.lines.get_or_init(|| line_starts(self.text));
        let line = starts.partition_point(|&s| s <= offset) - 1;
        (line as u32 + 1, offset - starts[line] + 1)
    }

    /// The text of a line (from 1) without its terminator; `None` past the end.
    pub fn line(&self, line: u32) -> Option<&'static [u8]> {
        let starts = self.lines.get_or_init(|| line_starts(self.text));
        let start = *starts.get((line as usize).checked_sub(1)?)? as usize;
        let rest = &self.text[start..];
        let end = rest.iter().position(|&b| b == b'\n' || b == b'\r').unwrap_or(rest.len());
        Some(&rest[..end])
    }
}

fn line_starts(text: &[u8]) -> Box<[u32]> {
    let mut starts = vec![0];
    for (i, &b) in text.iter().enumerate() {
        if b == b'\n' || (b == b'\r' && text.get(i + 1) != Some(&b'\n')) {
            starts.push(i as u32 + 1);
        }
    }
    starts.into_boxed_slice()
}

impl Pos {
    /// No position.
    pub const NONE: Pos = Pos(0);

    /// Whether this is a real position.
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != 0
    }

    /// The position as a number, for values that carry one; meaningless outside this process.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The position of a number that [`Pos::number`] gave.
    pub fn from_number(number: u32) -> Pos {
        Pos(number)
    }

    /// The text and byte offset this position names.
    pub fn file_offset(self) -> Option<(&'static SourceFile, u32)> {
        if self.0 == 0 {
            return None;
        }
        let files = FILES.read().unwrap_or_else(|e| e.into_inner());
        let index = files.partition_point(|f| f.base <= self.0).checked_sub(1)?;
        let file = files[index];
        Some((file, self.0 - file.base))
    }

    /// The position as file, line and column.
    pub fn resolve(self) -> Option<Location> {
        let (file, offset) = self.file_offset()?;
        let (line, column) = file.line_column(offset);
        Some(Location { file, line, column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_resolve_to_their_own_file() {
        let a = SourceFile::register(Origin::Expression, b"one\ntwo\r\nthree\rfour".to_vec());
        let b = SourceFile::register(Origin::Stdin, b"".to_vec());
        let at = |p: Pos| p.resolve().map(|l| (std::ptr::eq(l.file, a), l.line, l.column));
        assert_eq!(at(a.pos(0)), Some((true, 1, 1)));
        assert_eq!(at(a.pos(5)), Some((true, 2, 2)));
        assert_eq!(at(a.pos(9)), Some((true, 3, 1)));
        assert_eq!(at(a.pos(15)), Some((true, 4, 1)));
        assert_eq!(at(a.pos(19)), Some((true, 4, 5)));
        assert_eq!(at(b.pos(0)), Some((false, 1, 1)));
        assert_eq!(a.line(3), Some(&b"three"[..]));
        assert_eq!(a.line(5), None);
        assert!(Pos::NONE.resolve().is_none());
    }
}
