//! Standard output, buffered. A reader that went away ends the program quietly; any other failure is told.

use crate::failure::Failure;
use crate::told::Told;
use std::io::{ErrorKind, Write};

/// What a command prints.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    /// Where the lines and other pieces in the buffer end.
    ends: Vec<usize>,
    told: Told,
}

/// More than this is written before the command ends.
const LIMIT: usize = 1 << 16;

impl Output {
    /// Adds text.
    pub fn write(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.add(&[text])
    }

    /// Adds a line.
    pub fn line(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.add(&[text, b"\n"])
    }

    /// Adds a line that `print` appends to the buffer.
    pub fn line_of(&mut self, print: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        print(&mut self.buffer);
        self.write(b"\n")
    }

    fn add(&mut self, pieces: &[&[u8]]) -> Result<(), Failure> {
        pieces.iter().for_each(|piece| self.buffer.extend_from_slice(piece));
        self.ends.push(self.buffer.len());
        if self.buffer.len() > LIMIT { self.flush() } else { Ok(()) }
    }

    /// Takes back what is not written yet, and leaves out what is when it comes again: the program begins again.
    pub fn begin_again(&mut self) {
        self.buffer.clear();
        self.ends.clear();
        self.told.begin_again();
    }

    /// What was not printed before the program began again.
    fn untold(&mut self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.buffer.len());
        let mut start = 0;
        for end in self.ends.drain(..) {
            let piece = &self.buffer[start..end];
            if !self.told.was_told(piece) {
                text.extend_from_slice(piece);
            }
            start = end;
        }
        text
    }

    /// Writes what is there, unless that is in doubt.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if firn_memo::doubt::must_begin_again() {
            return Ok(());
        }
        let text = if firn_memo::doubt::may_begin_again() { self.untold() } else { std::mem::take(&mut self.buffer) };
        self.buffer.clear();
        self.ends.clear();
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&text).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::Exit(1),
            _ => Failure::error(format!("writing to standard output: {}", firn_host::Errno::from(error))),
        })
    }
}
