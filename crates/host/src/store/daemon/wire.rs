//! Numbers, strings and lists as the worker protocol writes them: little-endian words of eight bytes, strings padded to
//! a multiple of eight. What comes in is bounded: a broken daemon cannot make us take all memory.

use std::io::{BufReader, BufWriter, Read, Write};

use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};

/// The longest string taken from a daemon.
const MAX_STRING: u64 = 256 << 20;
/// The longest list.
const MAX_LIST: u64 = 16 << 20;

/// The daemon's side of a connection.
pub(super) struct Incoming<R: Read>(BufReader<R>);

impl<R: Read> Incoming<R> {
    pub fn new(from: R) -> Self {
        Incoming(BufReader::with_capacity(32 * 1024, from))
    }

    /// Whether bytes are here already.
    pub fn is_buffered(&self) -> bool {
        !self.0.buffer().is_empty()
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.0.read_exact(bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Error::new(ErrorKind::Io, &[b"Nix daemon disconnected unexpectedly (maybe it crashed?)"])
            }
            _ => error.into(),
        })
    }

    pub fn number(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.exactly(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    pub fn flag(&mut self) -> Result<bool> {
        Ok(self.number()? != 0)
    }

    pub fn string(&mut self) -> Result<Vec<u8>> {
        let length = self.number()?;
        if length > MAX_STRING {
            return Err(Error::new(ErrorKind::Serialisation, &[b"string is too long"]));
        }
        let mut text = vec![0; length as usize];
        self.exactly(&mut text)?;
        let mut padding = [0; 8];
        self.exactly(&mut padding[..padding_of(text.len())])?;
        if padding != [0; 8] {
            return Err(Error::new(ErrorKind::Serialisation, &[b"non-zero padding"]));
        }
        Ok(text)
    }

    /// The length of a list.
    pub fn length(&mut self) -> Result<u64> {
        let length = self.number()?;
        if length > MAX_LIST {
            return Err(Error::new(ErrorKind::Serialisation, &[b"list is too long"]));
        }
        Ok(length)
    }

    pub fn strings(&mut self) -> Result<Vec<Vec<u8>>> {
        (0..self.length()?).map(|_| self.string()).collect()
    }

    pub fn path(&mut self, dir: &StoreDir) -> Result<StorePath> {
        dir.parse(&self.string()?)
    }

    pub fn paths(&mut self, dir: &StoreDir) -> Result<Vec<StorePath>> {
        (0..self.length()?).map(|_| self.path(dir)).collect()
    }
}

fn padding_of(length: usize) -> usize {
    length.wrapping_neg() % 8
}

/// A message on its way: built up, then sent at once.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn flag(&mut self, value: bool) -> &mut Self {
        self.number(value.into())
    }

    pub fn string(&mut self, text: &[u8]) -> &mut Self {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
        self.0.extend_from_slice(&[0; 8][..padding_of(text.len())]);
        self
    }

    pub fn strings<'a>(&mut self, all: impl ExactSizeIterator<Item = &'a [u8]>) -> &mut Self {
        self.number(all.len() as u64);
        for text in all {
            self.string(text);
        }
        self
    }

    pub fn path(&mut self, dir: &StoreDir, path: &StorePath) -> &mut Self {
        self.string(&dir.print(path))
    }

    pub fn paths<'a>(&mut self, dir: &StoreDir, all: impl ExactSizeIterator<Item = &'a StorePath>) -> &mut Self {
        self.number(all.len() as u64);
        for path in all {
            self.path(dir, path);
        }
        self
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Our side of a connection.
pub(super) struct Outgoing<W: Write>(BufWriter<W>);

impl<W: Write> Outgoing<W> {
    pub fn new(to: W) -> Self {
        Outgoing(BufWriter::with_capacity(32 * 1024, to))
    }

    pub fn send(&mut self, message: &Message) -> Result<()> {
        self.0.write_all(message.bytes())?;
        Ok(self.0.flush()?)
    }

    /// One frame of a stream; an empty one ends it.
    pub fn frame(&mut self, data: &[u8]) -> Result<()> {
        self.0.write_all(&(data.len() as u64).to_le_bytes())?;
        self.0.write_all(data)?;
        Ok(self.0.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut message = Message::default();
        message.number(7).string(b"").string(b"12345678").string(b"abc").flag(true);
        message.strings([&b"x"[..], b"yz"].into_iter());
        let mut read = Incoming::new(message.bytes());
        assert_eq!(read.number().unwrap(), 7);
        for expected in [&b""[..], b"12345678", b"abc"] {
            assert_eq!(read.string().unwrap(), expected);
        }
        assert!(read.flag().unwrap());
        assert_eq!(read.strings().unwrap(), [b"x".to_vec(), b"yz".to_vec()]);
        assert!(read.number().unwrap_err().to_string().contains("disconnected"));
    }

    #[test]
    fn nonsense_is_an_error() {
        let long = u64::MAX.to_le_bytes();
        assert!(Incoming::new(&long[..]).string().is_err());
        assert!(Incoming::new(&long[..]).strings().is_err());
        let mut padded = 1u64.to_le_bytes().to_vec();
        padded.extend_from_slice(b"a\x01\0\0\0\0\0\0");
        assert!(Incoming::new(&padded[..]).string().unwrap_err().to_string().contains("padding"));
    }
}
