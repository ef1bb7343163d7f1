//! Hashing and rewriting modulo a digest part: how an object that contains its own path has a content address.

use crate::hash::{Algorithm, Hash, Hasher};
use std::io;

/// A hash in which occurrences of one text count as zeros, and where they stand counts besides.
pub struct ModuloHasher {
    hasher: Hasher,
    modulus: Vec<u8>,
    /// The end of what was written, which may be the beginning of an occurrence.
    pending: Vec<u8>,
    /// How many bytes were handed to the hasher.
    done: u64,
    found: Vec<u64>,
}

impl ModuloHasher {
    /// An empty hasher. The modulus must not be empty.
    pub fn new(algorithm: Algorithm, modulus: &[u8]) -> ModuloHasher {
        let hasher = Hasher::new(algorithm);
        ModuloHasher { hasher, modulus: modulus.to_vec(), pending: Vec::new(), done: 0, found: Vec::new() }
    }

    /// Adds `data`.
    pub fn update(&mut self, data: &[u8]) {
        self.pending.extend_from_slice(data);
        let mut from = 0;
        let finder = memchr::memmem::Finder::new(&self.modulus);
        while let Some(at) = finder.find(&self.pending[from..]) {
            self.found.push(self.done + (from + at) as u64);
            self.pending[from + at..][..self.modulus.len()].fill(0);
            from += at + self.modulus.len();
        }
        let kept = (self.modulus.len() - 1).min(self.pending.len());
        let ready = self.pending.len() - kept;
        self.hasher.update(&self.pending[..ready]);
        self.done += ready as u64;
        self.pending.drain(..ready);
    }

    /// The hash.
    pub fn finish(mut self) -> Hash {
        self.hasher.update(&self.pending);
        for at in &self.found {
            self.hasher.update(format!("|{at}").as_bytes());
        }
        self.hasher.finish().0
    }
}

impl io::Write for ModuloHasher {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.update(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Replaces all occurrences of `from` by `to`, which is as long.
pub fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let mut start = 0;
    while let Some(at) = memchr::memmem::find(&bytes[start..], from) {
        bytes[start + at..][..to.len()].copy_from_slice(to);
        start += at + to.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_matter_and_places_do() {
        let whole = |text: &[u8]| {
            let mut hasher = ModuloHasher::new(Algorithm::Sha256, b"self");
            hasher.update(text);
            hasher.finish()
        };
        let text = b"a self and itself, sel";
        for piece in 1..text.len() {
            let mut hasher = ModuloHasher::new(Algorithm::Sha256, b"self");
            text.chunks(piece).for_each(|chunk| hasher.update(chunk));
            assert_eq!(hasher.finish(), whole(text), "{piece}");
        }
        assert_eq!(whole(text), Hash::of(Algorithm::Sha256, b"a \0\0\0\0 and it\0\0\0\0, sel|2|13"));
        assert_eq!(whole(b"nothing"), Hash::of(Algorithm::Sha256, b"nothing"));
        assert_ne!(whole(b"self"), whole(b"\0\0\0\0"));
    }

    #[test]
    fn replacing_keeps_the_length() {
        let mut text = b"one two one".to_vec();
        replace(&mut text, b"one", b"six");
        assert_eq!(text, b"six two six");
    }
}
