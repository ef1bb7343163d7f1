//! The environment of a derivation: an ordered map of byte strings in one buffer.
//!
//! The evaluator adds some fifty variables to each of thousands of derivations, nearly always in order; a buffer and
//! a table of ranges make that two allocations instead of a hundred.

use std::fmt;
use std::ops::Range;

/// Variables in name order.
///
/// Invariant: `entries` is strictly ascending by the name it refers to, and every range lies in `buffer`.
#[derive(Clone, Default)]
pub struct Env {
    buffer: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    name: Range<usize>,
    value: Range<usize>,
}

impl Env {
    /// An environment with room for this many variables and bytes of text.
    pub fn with_capacity(variables: usize, bytes: usize) -> Self {
        Env { buffer: Vec::with_capacity(bytes), entries: Vec::with_capacity(variables) }
    }

    fn search(&self, name: &[u8]) -> Result<usize, usize> {
        match self.entries.last() {
            None => Err(0),
            Some(last) if &self.buffer[last.name.clone()] < name => Err(self.entries.len()),
            Some(_) => self.entries.binary_search_by(|e| self.buffer[e.name.clone()].cmp(name)),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        start..self.buffer.len()
    }

    /// Sets a variable, replacing its earlier value.
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        match self.search(name) {
            Ok(at) => {
                let range = self.append(value);
                self.entries[at].value = range;
            }
            Err(at) => {
                let name = self.append(name);
                let value = self.append(value);
                self.entries.insert(at, Entry { name, value });
            }
        }
    }

    /// The value of a variable.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.search(name).ok().map(|at| &self.buffer[self.entries[at].value.clone()])
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of text held; a hint for sizing buffers.
    pub fn byte_len(&self) -> usize {
        self.buffer.len()
    }

    /// Variables in name order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|e| (&self.buffer[e.name.clone()], &self.buffer[e.value.clone()]))
    }
}

impl PartialEq for Env {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Env {}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |b| String::from_utf8_lossy(b);
        f.debug_map().entries(self.iter().map(|(k, v)| (text(k), text(v)))).finish()
    }
}

impl<'a> FromIterator<(&'a [u8], &'a [u8])> for Env {
    fn from_iter<I: IntoIterator<Item = (&'a [u8], &'a [u8])>>(items: I) -> Self {
        let mut env = Env::default();
        for (name, value) in items {
            env.insert(name, value);
        }
        env
    }
}
