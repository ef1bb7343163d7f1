//! The archive writer. Tags collect in a small buffer so that a hasher or socket sees few, large writes.

use super::{MAGIC, MAX_DEPTH, Sink, bad_archive, check_entry_name, too_deep};
use crate::error::Result;
use std::io::Write;

/// Buffered bytes before they go out.
const BUFFER: usize = 16 * 1024;

/// Writes the events it is given as an archive. Events out of order, unsorted entries and files longer or shorter
/// than announced are errors.
pub struct Writer<W: Write> {
    out: W,
    buffer: Vec<u8>,
    /// The last entry name of each open directory.
    open: Vec<Option<Vec<u8>>>,
    expect: Expect,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The root, or the node of an entry.
    Node,
    /// An entry or the end of the innermost directory.
    Entry,
    /// So many bytes of a file, then padding of the second number.
    Contents(u64, u8),
    /// Nothing more.
    End,
}

impl<W: Write> Writer<W> {
    /// Starts an archive.
    pub fn new(out: W) -> Self {
        let mut writer = Writer { out, buffer: Vec::with_capacity(BUFFER), open: Vec::new(), expect: Expect::Node };
        writer.string(MAGIC);
        writer
    }

    /// Ends the archive and gives the writer back.
    pub fn finish(mut self) -> Result<W> {
        self.require(Expect::End)?;
        self.out.write_all(&self.buffer)?;
        Ok(self.out)
    }

    fn string(&mut self, text: &[u8]) {
        self.buffer.extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(text);
        self.buffer.extend_from_slice(&[0; 8][..padding(text.len() as u64)]);
    }

    fn strings(&mut self, texts: &[&[u8]]) -> Result<()> {
        for text in texts {
            self.string(text);
        }
        self.flush_if(self.buffer.len() >= BUFFER)
    }

    fn flush_if(&mut self, due: bool) -> Result<()> {
        if due {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn require(&self, expected: Expect) -> Result<()> {
        if self.expect == expected { Ok(()) } else { Err(bad_archive(&[b"events out of order"])) }
    }

    fn start_node(&mut self) -> Result<()> {
        self.require(Expect::Node)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(())
    }

    /// Closes the node, and the entry it belongs to.
    fn end_node(&mut self) -> Result<()> {
        if self.open.is_empty() {
            self.expect = Expect::End;
            self.strings(&[b")"])
        } else {
            self.expect = Expect::Entry;
            self.strings(&[b")", b")"])
        }
    }
}

/// Zero bytes that bring `len` to a multiple of eight.
pub(super) fn padding(len: u64) -> usize {
    (len.wrapping_neg() % 8) as usize
}

impl<W: Write> Sink for Writer<W> {
    fn directory(&mut self) -> Result<()> {
        self.start_node()?;
        self.open.push(None);
        self.expect = Expect::Entry;
        self.strings(&[b"(", b"type", b"directory"])
    }

    fn entry(&mut self, name: &[u8]) -> Result<()> {
        self.require(Expect::Entry)?;
        let Some(last) = self.open.last_mut() else { return Err(bad_archive(&[b"events out of order"])) };
        check_entry_name(name, last.as_deref())?;
        *last = Some(name.to_vec());
        self.expect = Expect::Node;
        self.strings(&[b"entry", b"(", b"name", name, b"node"])
    }

    fn end_directory(&mut self) -> Result<()> {
        self.require(Expect::Entry)?;
        self.open.pop();
        self.end_node()
    }

    fn regular(&mut self, executable: bool, size: u64) -> Result<()> {
        self.start_node()?;
        self.strings(&[b"(", b"type", b"regular"])?;
        if executable {
            self.strings(&[b"executable", b""])?;
        }
        self.strings(&[b"contents"])?;
        self.buffer.extend_from_slice(&size.to_le_bytes());
        self.expect = Expect::Contents(size, padding(size) as u8);
        Ok(())
    }

    fn contents(&mut self, data: &[u8]) -> Result<()> {
        let Expect::Contents(left, padding) = self.expect else {
            return Err(bad_archive(&[b"events out of order"]));
        };
        let Some(left) = left.checked_sub(data.len() as u64) else {
            return Err(bad_archive(&[b"file is longer than announced"]));
        };
        self.expect = Expect::Contents(left, padding);
        if self.buffer.len() + data.len() <= BUFFER {
            self.buffer.extend_from_slice(data);
            return Ok(());
        }
        self.flush_if(true)?;
        self.out.write_all(data)?;
        Ok(())
    }

    fn end_regular(&mut self) -> Result<()> {
        let Expect::Contents(left, padding) = self.expect else {
            return Err(bad_archive(&[b"events out of order"]));
        };
        if left != 0 {
            return Err(bad_archive(&[b"file is shorter than announced"]));
        }
        self.buffer.extend_from_slice(&[0; 8][..usize::from(padding)]);
        self.end_node()
    }

    fn symlink(&mut self, target: &[u8]) -> Result<()> {
        self.start_node()?;
        self.strings(&[b"(", b"type", b"symlink", b"target", target])?;
        self.end_node()
    }
}

/// Writes the archive of one plain file.
pub fn dump_file<W: Write>(contents: &[u8], out: W) -> Result<W> {
    let mut writer = Writer::new(out);
    writer.regular(false, contents.len() as u64)?;
    writer.contents(contents)?;
    writer.end_regular()?;
    writer.finish()
}
