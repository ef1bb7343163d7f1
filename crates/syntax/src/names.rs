//! A per-thread mirror of the symbol interner, so that a name seen before costs a few loads and no lock.
//!
//! Names of up to sixteen bytes are told apart by two words and their length alone; of longer ones the words are the
//! beginning and the end, and the bytes decide.
//!
//! Names of a text that is parsed [apart](crate::Apart) have numbers of their own instead, in the order in which the text has them first.

use crate::apart::Met;
use firn_source::Symbol;
use std::cell::RefCell;

#[derive(Clone, Copy)]
struct Entry {
    first: u64,
    last: u64,
    /// The name's length, or [`FREE`].
    len: u32,
    symbol: Symbol,
}

/// Open addressing, at most three quarters full; the length is a power of two, or 0.
#[derive(Default)]
pub(crate) struct Names {
    table: Vec<Entry>,
    used: usize,
    /// The names of one text, where they are no symbols.
    apart: Option<Met>,
}

const LEAST: usize = 1 << 10;
const FREE: u32 = u32::MAX;
const VACANT: Entry = Entry { first: 0, last: 0, len: FREE, symbol: Symbol::of_id(0) };

thread_local! {
    static NAMES: RefCell<Names> = RefCell::default();
}

/// The first and the last eight bytes; of shorter names all bytes, twice or filled up with zeros.
#[inline]
fn ends(name: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    (name.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0)
}

impl Names {
    /// Takes this thread's mirror; [`Names::give_back`] returns it. A nested parse would start with an empty one.
    pub(crate) fn take() -> Names {
        let mut names = NAMES.take();
        if names.table.is_empty() {
            // Before the names of any text.
            Symbol::intern(b"");
            names.table = vec![VACANT; LEAST];
        }
        names
    }

    pub(crate) fn give_back(self) {
        NAMES.set(self);
    }

    /// Those of one text that is parsed apart; the room of `spare` is used again.
    pub(crate) fn apart(spare: Names, met: Met) -> Names {
        let mut table = spare.table;
        table.clear();
        table.resize(LEAST, VACANT);
        Names { table, used: 0, apart: Some(met) }
    }

    pub(crate) fn are_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// What a text that was parsed apart has.
    pub(crate) fn take_apart(&mut self) -> Met {
        self.apart.take().unwrap_or_default()
    }

    fn is_name(&self, symbol: Symbol, name: &[u8]) -> bool {
        match &self.apart {
            Some(met) => met.name(symbol) == name,
            None => symbol.as_bytes() == name,
        }
    }

    // PERF: a hash map over the bytes took five times the instructions, a twentieth of `--parse`.
    #[inline]
    pub(crate) fn intern(&mut self, name: &[u8]) -> Symbol {
        let (first, last) = ends(name);
        let len = name.len() as u32;
        let mut place = place_of(first, last, len);
        loop {
            let entry = &self.table[place & (self.table.len() - 1)];
            if entry.len == len
                && entry.first == first
                && entry.last == last
                && (len <= 16 || self.is_name(entry.symbol, name))
            {
                return entry.symbol;
            }
            if entry.len == FREE {
                return self.learn(name);
            }
            place += 1;
        }
    }

    #[cold]
    fn learn(&mut self, name: &[u8]) -> Symbol {
        if self.used * 4 >= self.table.len() * 3 {
            let grown = vec![VACANT; self.table.len() * 2];
            for entry in std::mem::replace(&mut self.table, grown) {
                if entry.len != FREE {
                    self.insert(entry);
                }
            }
        }
        let symbol = match &mut self.apart {
            Some(met) => met.meet(name),
            None => Symbol::intern_anew(name),
        };
        let (first, last) = ends(name);
        self.insert(Entry { first, last, len: name.len() as u32, symbol });
        self.used += 1;
        symbol
    }

    fn insert(&mut self, entry: Entry) {
        let mask = self.table.len() - 1;
        let mut place = place_of(entry.first, entry.last, entry.len);
        while self.table[place & mask].len != FREE {
            place += 1;
        }
        self.table[place & mask] = entry;
    }
}

/// Where to look first; of any table length the low bits count.
#[inline]
fn place_of(first: u64, last: u64, len: u32) -> usize {
    let mixed = (first ^ last.rotate_left(29)).wrapping_add(len.into()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_that_look_alike_are_told_apart() {
        let mut names = Names::take();
        let mut all: Vec<Vec<u8>> = vec![b"".to_vec(), b"\0".to_vec(), b"\0\0".to_vec(), b"aaaaaaaa".to_vec()];
        for len in 1..40 {
            all.push(vec![b'a'; len]);
            all.push([&b"abcdefgh"[..], &vec![b'x'; len], b"abcdefgh"].concat());
            all.push([&b"abcdefgh"[..], &vec![b'y'; len], b"abcdefgh"].concat());
        }
        for i in 0..5000 {
            all.push(format!("name-{i}").into_bytes());
        }
        for _ in 0..2 {
            for name in &all {
                assert_eq!(names.intern(name).as_bytes(), name);
            }
        }
        names.give_back();
    }
}
