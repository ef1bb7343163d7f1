//! `Digest`: 256 bits that stand for an answer, and `Fold`, which makes one from parts.
//!
//! The content of a file has the plain BLAKE3 of its bytes, so that a parsed form can be found by it. Every other
//! answer is folded under a key of its own, field by field with lengths, and can never equal a content digest.

use std::fmt;
use std::sync::LazyLock;

/// The 256-bit BLAKE3 digest of an answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The digest of a file's bytes.
    pub fn of_content(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Collects the fields of one answer. Each field is tagged or length-prefixed: no two sequences share their bytes.
pub(crate) struct Fold(Vec<u8>);

impl Fold {
    /// Begins the digest of an answer of this kind.
    pub(crate) fn new(kind: &str) -> Fold {
        Fold::with_room(kind, 64)
    }

    /// As [`Fold::new`], for fields of so many bytes together.
    pub(crate) fn with_room(kind: &str, room: usize) -> Fold {
        let mut fold = Fold(Vec::with_capacity(room + 16));
        fold.bytes(kind.as_bytes());
        fold
    }

    pub(crate) fn tag(&mut self, tag: u8) -> &mut Fold {
        self.0.push(tag);
        self
    }

    pub(crate) fn number(&mut self, number: i64) -> &mut Fold {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Fold {
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn finish(&self) -> Digest {
        self.finish_with(&[])
    }

    /// Ends with a long field, which is not copied.
    pub(crate) fn finish_with(&self, last: &[u8]) -> Digest {
        // PERF: hashing the name of the key anew each time took half of what verifying a small answer takes.
        static KEYED: LazyLock<blake3::Hasher> =
            LazyLock::new(|| blake3::Hasher::new_derive_key("firn host 2026-11 answer"));
        Digest(*KEYED.clone().update(&self.0).update(last).finalize().as_bytes())
    }
}
