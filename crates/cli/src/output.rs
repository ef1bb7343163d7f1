//! Standard output, buffered. A reader that went away ends the program quietly; any other failure is told.

use crate::failure::Failure;
use std::io::{ErrorKind, Write};

/// What a command prints.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    flushed: bool,
}

/// More than this is written before the command ends.
const LIMIT: usize = 1 << 16;

impl Output {
    /// Adds text.
    pub fn write(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.buffer.extend_from_slice(text);
        if self.buffer.len() > LIMIT { self.flush() } else { Ok(()) }
    }

    /// Adds a line.
    pub fn line(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.write(text)?;
        self.write(b"\n")
    }

    /// Adds a line that `print` appends to the buffer.
    pub fn line_of(&mut self, print: impl FnOnce(&mut Vec<u8>)) -> Result<(), Failure> {
        print(&mut self.buffer);
        self.write(b"\n")
    }

    /// Takes back what was printed, for a program that begins again; false when some of it is already written.
    pub fn take_back(&mut self) -> bool {
        if !self.flushed {
            self.buffer.clear();
        }
        !self.flushed
    }

    /// Writes what is there.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.flushed |= !self.buffer.is_empty();
        if self.flushed {
            // What is written stays written: whoever is in doubt now goes on.
            firn_memo::doubt::can_begin_again(false);
        }
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(&self.buffer).and_then(|()| stdout.flush());
        self.buffer.clear();
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe => Failure::Exit(1),
            _ => Failure::error(format!("writing to standard output: {}", firn_host::Errno::from(error))),
        })
    }
}
