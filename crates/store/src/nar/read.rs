//! The archive reader. Whatever the bytes, it ends in events or an error: tags, names and targets are bounded, file
//! contents go through a fixed buffer, nesting stops at the format's limit.

use super::write::padding;
use super::{MAGIC, MAX_DEPTH, MAX_NAME, MAX_TARGET, Sink, bad_archive, check_entry_name, too_deep};
use crate::error::{Error, ErrorKind, Result};
use std::io::Read;

/// Longer than any tag, so that short garbage can be quoted in errors.
const MAX_TAG: usize = 32;
const CHUNK: usize = 64 * 1024;

/// Reads one archive from `source`, which is left just behind it, and tells it to `sink`.
pub fn parse(source: &mut dyn Read, sink: &mut dyn Sink) -> Result<()> {
    let mut reader = Reader { source, sink, chunk: Vec::new() };
    match reader.string(MAGIC.len()) {
        Ok(magic) if magic == MAGIC => reader.node(0),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        _ => Err(bad_archive(&[b"input doesn't look like a Nix archive"])),
    }
}

struct Reader<'a> {
    source: &'a mut dyn Read,
    sink: &'a mut dyn Sink,
    chunk: Vec<u8>,
}

impl Reader<'_> {
    fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.source.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn padding(&mut self, len: u64) -> Result<()> {
        let mut bytes = [0; 8];
        self.source.read_exact(&mut bytes[..padding(len)])?;
        if bytes != [0; 8] {
            return Err(Error::new(ErrorKind::Serialisation, &[b"non-zero padding"]));
        }
        Ok(())
    }

    fn string(&mut self, max: usize) -> Result<Vec<u8>> {
        let len = self.number()?;
        if len > max as u64 {
            return Err(Error::new(ErrorKind::Serialisation, &[b"string is too long"]));
        }
        let mut text = vec![0; len as usize];
        self.source.read_exact(&mut text)?;
        self.padding(len)?;
        Ok(text)
    }

    fn tag(&mut self) -> Result<Vec<u8>> {
        self.string(MAX_TAG)
    }

    fn expect(&mut self, expected: &[u8]) -> Result<()> {
        let tag = self.tag()?;
        if tag == expected {
            return Ok(());
        }
        Err(bad_archive(&[b"expected tag '", expected, b"', got '", &tag, b"'"]))
    }

    fn node(&mut self, depth: usize) -> Result<()> {
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.expect(b"(")?;
        self.expect(b"type")?;
        match &self.tag()?[..] {
            b"regular" => self.regular(),
            b"directory" => self.directory(depth),
            b"symlink" => self.symlink(),
            kind => Err(bad_archive(&[b"unknown file type '", kind, b"'"])),
        }
    }

    fn regular(&mut self) -> Result<()> {
        let mut tag = self.tag()?;
        let executable = tag == b"executable";
        if executable {
            self.string(0)?;
            tag = self.tag()?;
        }
        if tag != b"contents" {
            return Err(bad_archive(&[b"expected tag 'contents', got '", &tag, b"'"]));
        }
        let size = self.number()?;
        self.sink.regular(executable, size)?;
        let mut left = size;
        while left > 0 {
            let n = left.min(CHUNK as u64) as usize;
            if self.chunk.len() < n {
                self.chunk.resize(n, 0);
            }
            self.source.read_exact(&mut self.chunk[..n])?;
            self.sink.contents(&self.chunk[..n])?;
            left -= n as u64;
        }
        self.padding(size)?;
        self.expect(b")")?;
        self.sink.end_regular()
    }

    fn directory(&mut self, depth: usize) -> Result<()> {
        self.sink.directory()?;
        let mut previous: Option<Vec<u8>> = None;
        loop {
            match &self.tag()?[..] {
                b")" => return self.sink.end_directory(),
                b"entry" => {}
                tag => return Err(bad_archive(&[b"expected tag 'entry' or ')', got '", tag, b"'"])),
            }
            self.expect(b"(")?;
            self.expect(b"name")?;
            let name = self.string(MAX_NAME)?;
            check_entry_name(&name, previous.as_deref())?;
            self.expect(b"node")?;
            self.sink.entry(&name)?;
            self.node(depth + 1)?;
            self.expect(b")")?;
            previous = Some(name);
        }
    }

    fn symlink(&mut self) -> Result<()> {
        self.expect(b"target")?;
        let target = self.string(MAX_TARGET)?;
        if target.is_empty() || target.contains(&0) {
            return Err(bad_archive(&[b"NAR contains invalid symlink target"]));
        }
        self.expect(b")")?;
        self.sink.symlink(&target)
    }
}
