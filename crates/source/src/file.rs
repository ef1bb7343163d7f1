//! Source texts and global positions.
//!
//! Every text that is parsed is registered once and gets a range of the 32-bit position space, so that a position is
//! one word wherever it is carried. Positions serve messages only; they are never digested.
//!
//! Texts of files are let go once they are code and there are many; of such a text only the lengths of its lines stay. Who needs the text
//! again (a message that shows a line) has it read again, and gets it only if it still hashes to the same. Files with the same bytes
//! (twins) have positions of their own and one text.

use crate::lines::Lines;
use rustc_hash::FxHasher;
use std::fmt;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

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

/// The bytes of a text, shared by whoever reads them.
pub type SourceText = Arc<Vec<u8>>;

/// Reads a text again that was let go; `None` if that is not possible.
pub type Reread = Box<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

/// A registered source text.
pub struct SourceFile {
    origin: Origin,
    base: u32,
    len: u32,
    content: Content,
    reread: Option<Reread>,
}

/// What a text says.
enum Content {
    Own(Own),
    /// The same as another one.
    Of(&'static SourceFile),
}

/// Where the lines of a text are, found before it is registered.
pub struct Measured(Lines);

impl Measured {
    /// That of a text.
    pub fn of(text: &[u8]) -> Measured {
        Measured(Lines::of(text))
    }
}

struct Own {
    text: RwLock<Held>,
    lines: OnceLock<Lines>,
    /// Whether the text stays only until there are many.
    may_go: AtomicBool,
}

/// Bytes of texts that stay though they could be let go; when there are more, all of them go, and the others at once.
const MOST_SPARED: usize = 4 << 20;
static SPARED: AtomicUsize = AtomicUsize::new(0);

/// What is in memory of a text.
enum Held {
    Text(SourceText),
    /// Let go: what it hashed to.
    Hash(u64),
    /// Forgotten, or no longer what it was.
    Nothing,
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
    /// Registers a text, to be kept for the life of the process.
    ///
    /// # Panics
    /// When the position space (4 GiB of source in one process) is used up.
    pub fn register(origin: Origin, text: Vec<u8>) -> &'static SourceFile {
        SourceFile::add(origin, text.into(), None, None)
    }

    /// As [`SourceFile::register`], for a text that can be [let go](SourceFile::release): `reread` gets it back.
    pub fn register_file(origin: Origin, text: impl Into<SourceText>, reread: Reread) -> &'static SourceFile {
        SourceFile::add(origin, text.into(), Some(reread), None)
    }

    /// The same; where its lines are may be known.
    pub fn register_read(origin: Origin, text: SourceText, measured: Option<Measured>, reread: Reread) -> &'static SourceFile {
        SourceFile::add(origin, text, Some(reread), measured)
    }

    /// Registers a file with the very bytes of `twin`.
    pub fn register_twin(origin: Origin, twin: &'static SourceFile, reread: Reread) -> &'static SourceFile {
        SourceFile::place(origin, Content::Of(twin), twin.len, Some(reread))
    }

    fn add(origin: Origin, text: SourceText, reread: Option<Reread>, measured: Option<Measured>) -> &'static SourceFile {
        let len = text.len();
        assert!(len < crate::uncertain::FIRST as usize, "more than 4 GiB of source text in one process");
        let text = RwLock::new(Held::Text(text));
        let lines = measured.map_or_else(OnceLock::new, |Measured(lines)| OnceLock::from(lines));
        SourceFile::place(origin, Content::Own(Own { text, lines, may_go: AtomicBool::new(false) }), len as u32, reread)
    }

    fn place(origin: Origin, content: Content, len: u32, reread: Option<Reread>) -> &'static SourceFile {
        let mut files = FILES.write().unwrap_or_else(|e| e.into_inner());
        let base = files.last().map_or(1, |f| f.base + f.len + 1);
        let end = u64::from(base) + u64::from(len) + 1;
        assert!(end < u64::from(crate::uncertain::FIRST), "more than 4 GiB of source text in one process");
        let file: &'static SourceFile = Box::leak(Box::new(SourceFile { origin, base, len, content, reread }));
        files.push(file);
        file
    }

    /// Stands for a text that nobody has registered yet: a tree is made with it whose positions [move](Pos::moved) once somebody does.
    pub fn unplaced() -> &'static SourceFile {
        static UNPLACED: OnceLock<SourceFile> = OnceLock::new();
        UNPLACED.get_or_init(|| {
            let (lines, may_go) = Default::default();
            let own = Own { text: RwLock::new(Held::Nothing), lines, may_go };
            SourceFile { origin: Origin::Expression, base: 1, len: 0, content: Content::Own(own), reread: None }
        })
    }

    fn own(&self) -> &Own {
        match &self.content {
            Content::Own(own) => own,
            Content::Of(twin) => twin.own(),
        }
    }

    /// Every text that was registered, in the order in which they were.
    pub fn all() -> Vec<&'static SourceFile> {
        FILES.read().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// The text; read again if it was let go. `None` if it cannot be had, or is no longer the text that was registered.
    pub fn text(&self) -> Option<SourceText> {
        let own = self.own();
        if let Held::Text(text) = &*own.text.read().unwrap_or_else(|e| e.into_inner()) {
            return Some(text.clone());
        }
        let mut held = own.text.write().unwrap_or_else(|e| e.into_inner());
        let reread = || self.reread.as_ref().and_then(|reread| reread());
        let same = match &*held {
            Held::Text(text) => return Some(text.clone()),
            Held::Nothing => return None,
            Held::Hash(hash) => reread().filter(|text| text.len() == self.len as usize && hash_of(text) == *hash),
        };
        let text = Arc::new(same?);
        *held = Held::Text(text.clone());
        Some(text)
    }

    /// Whether the text is this one. What was let go is read again and compared, byte by byte, if it hashes to the same.
    // PERF: keeping a BLAKE3 of each text that is let go took 1.1 % of the instructions of twenty packages, and hardly any has a twin.
    pub fn says(&self, text: &[u8]) -> bool {
        match &*self.own().text.read().unwrap_or_else(|e| e.into_inner()) {
            Held::Text(held) => ***held == *text,
            Held::Hash(hash) => {
                let may_be = self.len as usize == text.len() && hash_of(text) == *hash;
                may_be && self.reread.as_ref().and_then(|reread| reread()).is_some_and(|again| again == text)
            }
            Held::Nothing => false,
        }
    }

    /// The text is code now and may go, if it can be read again: messages that show lines of it do so. Positions stay known.
    // PERF: what a single package reads is not worth the counting of its lines, 1.7 % of its instructions.
    pub fn release(&self) {
        let Content::Own(own) = &self.content else { return };
        if self.reread.is_none() {
            return;
        }
        let before = SPARED.fetch_add(self.len as usize, Ordering::Relaxed);
        if before + self.len as usize <= MOST_SPARED {
            own.may_go.store(true, Ordering::Relaxed);
            return;
        }
        if before <= MOST_SPARED {
            let may_go = |file: &&SourceFile| matches!(&file.content, Content::Own(own) if own.may_go.load(Ordering::Relaxed));
            SourceFile::all().into_iter().filter(may_go).for_each(SourceFile::let_go);
        }
        self.let_go();
    }

    fn let_go(&self) {
        let own = self.own();
        let mut held = own.text.write().unwrap_or_else(|e| e.into_inner());
        if let Held::Text(text) = &*held {
            own.lines.get_or_init(|| Lines::of(text));
            *held = Held::Hash(hash_of(text));
        }
    }

    /// Lets the text go for good: nobody will ask for a place in it.
    pub fn forget(&self) {
        *self.own().text.write().unwrap_or_else(|e| e.into_inner()) = Held::Nothing;
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

    fn lines(&self) -> &Lines {
        self.own().lines.get_or_init(|| Lines::of(self.text().as_deref().map_or(&[], Vec::as_slice)))
    }

    /// Line and column, from 1, of a byte offset. NIX: `\r`, `\n` and `\r\n` each end a line.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let starts = self.lines().starts();
        let line = starts.partition_point(|&s| s <= offset) - 1;
        (line as u32 + 1, offset - starts[line] + 1)
    }

    /// The text of a line (from 1) without its terminator; `None` past the end, or if the text is gone.
    pub fn line(&self, line: u32) -> Option<Vec<u8>> {
        let start = *self.lines().starts().get((line as usize).checked_sub(1)?)? as usize;
        let text = self.text()?;
        let rest = &text[start..];
        let end = rest.iter().position(|&b| b == b'\n' || b == b'\r').unwrap_or(rest.len());
        Some(rest[..end].to_vec())
    }
}

impl fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceFile").field("origin", &self.origin).field("len", &self.len).finish_non_exhaustive()
    }
}

fn hash_of(text: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    hasher.finish()
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

    /// The same place in a twin: `from` is where the one text begins, `to` where the other does.
    #[inline]
    pub fn moved(self, from: Pos, to: Pos) -> Pos {
        if self.is_some() { Pos(self.0.wrapping_sub(from.0).wrapping_add(to.0)) } else { self }
    }

    /// The text and byte offset this position names.
    pub fn file_offset(self) -> Option<(&'static SourceFile, u32)> {
        if self.0 == 0 {
            return None;
        }
        if self.is_uncertain() {
            return self.seen_through().file_offset();
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
        assert_eq!(a.line(3), Some(b"three".to_vec()));
        assert_eq!(a.line(5), None);
        assert!(Pos::NONE.resolve().is_none());
    }

    #[test]
    fn a_text_that_was_let_go_is_read_again_and_recognised() {
        let text = b"one\ntwo\nthree";
        let same = SourceFile::register_file(Origin::Stdin, text.to_vec(), Box::new(|| Some(text.to_vec())));
        let edited = SourceFile::register_file(Origin::Stdin, text.to_vec(), Box::new(|| Some(b"one\nTWO\nthree".to_vec())));
        let gone = SourceFile::register_file(Origin::Stdin, text.to_vec(), Box::new(|| None));
        for (file, line) in [(same, Some(b"two".to_vec())), (edited, None), (gone, None)] {
            file.let_go();
            assert_eq!(file.line_column(5), (2, 2));
            assert_eq!(file.line(2), line);
        }
        let kept = SourceFile::register(Origin::Stdin, text.to_vec());
        kept.release();
        assert_eq!(kept.line(2), Some(b"two".to_vec()));
    }

    #[test]
    fn twins_have_one_text_and_their_own_positions() {
        let text = b"one\ntwo\nthree";
        let first = SourceFile::register_file(Origin::Stdin, text.to_vec(), Box::new(|| Some(b"one\nTWO\nthree".to_vec())));
        let second = SourceFile::register_twin(Origin::Expression, first, Box::new(|| Some(text.to_vec())));
        for is_gone in [false, true] {
            if is_gone {
                first.let_go();
            }
            // The first was edited: once its text is gone it says neither what it said nor what it says now.
            assert!(first.says(text) != is_gone && second.says(text) && !first.says(b"one\nTWO\nthree"));
            assert_eq!(second.pos(5).resolve().map(|l| (std::ptr::eq(l.file, second), l.line, l.column)), Some((true, 2, 2)));
            assert_eq!(first.pos(5).moved(first.pos(0), second.pos(0)), second.pos(5));
        }
        assert_eq!(Pos::NONE.moved(first.pos(0), second.pos(0)), Pos::NONE);
        // Each is read again from its own place.
        assert_eq!(first.line(2), None);
        assert_eq!(second.line(2), Some(b"two".to_vec()));
        assert_eq!(first.line(2), Some(b"two".to_vec()));
        let gone = SourceFile::register_read(Origin::Stdin, SourceText::new(text.to_vec()), Some(Measured::of(text)), Box::new(|| None));
        gone.let_go();
        assert!(!gone.says(text));
        assert_eq!(gone.line_column(5), (2, 2));
    }
}
