//! The symbol interner: attribute and variable names as 32-bit numbers, process wide.
//!
//! Invariant: a symbol's number is never reused and its bytes never change, so equality of symbols is equality of
//! names. Numbers depend on the order of first use and must not reach anything printed, stored or digested (M5).

use hashbrown::HashTable;
use std::cell::Cell;
use std::fmt;
use std::hash::Hasher;
use std::sync::{Mutex, OnceLock};

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(u32);

const CHUNK_BITS: u32 = 12;
const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNKS: usize = 1 << 14;
const SHARDS: usize = 16;

type Chunk = Box<[OnceLock<&'static [u8]>]>;

/// Names by number, in chunks that never move, so reading takes no lock.
static NAMES: [OnceLock<Chunk>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// How many names a thread remembers, direct mapped.
const RECENT: usize = 4096;

type Met = (&'static [u8], Symbol);

thread_local! {
    static MET: Box<[Cell<Met>]> = vec![Cell::new((&b""[..], Symbol(0))); RECENT].into_boxed_slice();
}

/// Whether two names are the same.
// PERF: names are short, where a call of `memcmp` costs more than comparing.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>(), a.last_chunk::<8>(), b.last_chunk::<8>()) {
        (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) if a.len() <= 16 => {
            (u64::from_ne_bytes(*a_first) ^ u64::from_ne_bytes(*b_first))
                | (u64::from_ne_bytes(*a_last) ^ u64::from_ne_bytes(*b_last))
                == 0
        }
        (Some(_), ..) => a == b,
        _ => a.iter().zip(b).all(|(x, y)| x == y),
    }
}

/// How many names a shard has room for when it gets its first.
const FIRST_ROOM: usize = 800;

struct Interner {
    /// Names by the low half of their hash.
    table: HashTable<(u32, u32)>,
}

/// The hash by which the table goes, of the half that it keeps.
#[inline]
fn spread(half: u32) -> u64 {
    u64::from(half).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

static SHARD: [Mutex<Interner>; SHARDS] = [const { Mutex::new(Interner { table: HashTable::new() }) }; SHARDS];
static NEXT: Mutex<Next> = Mutex::new(Next { id: 0, room: &mut [] });

/// The next number, and room for bytes of names.
struct Next {
    id: u32,
    room: &'static mut [u8],
}

const ROOM: usize = 1 << 14;

impl Next {
    // PERF: a hundred thousand small allocations cost as much again as the names.
    fn copy(&mut self, name: &[u8]) -> &'static [u8] {
        if name.len() > ROOM / 16 {
            return Box::leak(name.into());
        }
        if name.len() > self.room.len() {
            self.room = Box::leak(Box::new([0; ROOM]));
        }
        let (copy, room) = std::mem::take(&mut self.room).split_at_mut(name.len());
        self.room = room;
        copy.copy_from_slice(name);
        copy
    }
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(name);
    hasher.finish()
}

impl Symbol {
    /// The symbol for `name`, made on first use.
    // PERF: each thread remembers names it met lately and takes no lock for those; computed attribute names come again
    // and again (a tenth of a package-set fixpoint was locking and looking here).
    pub fn intern(name: &[u8]) -> Symbol {
        let h = hash(name);
        let place = (h >> 20) as usize % RECENT;
        MET.with(|met| {
            let (known, symbol) = met[place].get();
            if same(known, name) && !name.is_empty() {
                return symbol;
            }
            let symbol = Symbol::look_up(name, h);
            met[place].set((symbol.as_bytes(), symbol));
            symbol
        })
    }

    /// The symbol for the parts one after the other.
    pub fn intern_parts(parts: &[&[u8]]) -> Symbol {
        let mut buffer = [0; 128];
        let mut len = 0;
        for part in parts {
            let Some(place) = buffer[len..].get_mut(..part.len()) else { return Symbol::intern(&parts.concat()) };
            match (part.first_chunk::<8>(), part.last_chunk::<8>()) {
                (Some(first), Some(last)) if part.len() <= 16 => {
                    place[..8].copy_from_slice(first);
                    let rest = place.len() - 8;
                    place[rest..].copy_from_slice(last);
                }
                (Some(_), _) => place.copy_from_slice(part),
                _ => place.iter_mut().zip(*part).for_each(|(to, from)| *to = *from),
            }
            len += part.len();
        }
        Symbol::intern(&buffer[..len])
    }

    /// As [`Symbol::intern`], for who remembers names himself.
    pub fn intern_anew(name: &[u8]) -> Symbol {
        Symbol::look_up(name, hash(name))
    }

    /// The symbol of a name that is one already.
    pub fn find(name: &[u8]) -> Option<Symbol> {
        let h = hash(name);
        let interner = SHARD[(h >> 32) as usize % SHARDS].lock().unwrap_or_else(|e| e.into_inner());
        let is_name = |&(known, id): &(u32, u32)| known == h as u32 && Symbol(id).as_bytes() == name;
        interner.table.find(spread(h as u32), is_name).map(|&(_, id)| Symbol(id))
    }

    fn look_up(name: &[u8], h: u64) -> Symbol {
        let shard = &SHARD[(h >> 32) as usize % SHARDS];
        let mut interner = shard.lock().unwrap_or_else(|e| e.into_inner());
        let half = h as u32;
        let is_name = |&(known, id): &(u32, u32)| known == half && Symbol(id).as_bytes() == name;
        if let Some(&(_, id)) = interner.table.find(spread(half), is_name) {
            return Symbol(id);
        }
        if interner.table.is_empty() {
            interner.table.reserve(FIRST_ROOM, |&(half, _)| spread(half));
        }
        let id = Symbol::publish(name);
        interner.table.insert_unique(spread(half), (half, id), |&(half, _)| spread(half));
        Symbol(id)
    }

    fn publish(name: &[u8]) -> u32 {
        let mut next = NEXT.lock().unwrap_or_else(|e| e.into_inner());
        let id = next.id;
        let chunk = NAMES.get((id >> CHUNK_BITS) as usize).expect("fewer than 2^26 distinct names");
        let slots = chunk.get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        slots[id as usize & (CHUNK - 1)].set(next.copy(name)).expect("a symbol number is given out once");
        next.id = id + 1;
        id
    }

    /// The name's bytes.
    #[inline]
    pub fn as_bytes(self) -> &'static [u8] {
        NAMES[(self.0 >> CHUNK_BITS) as usize]
            .get()
            .and_then(|chunk| chunk[self.0 as usize & (CHUNK - 1)].get())
            .expect("a symbol is published before it is handed out")
    }

    /// The name for messages; bytes that are not UTF-8 are replaced.
    pub fn to_str(self) -> std::borrow::Cow<'static, str> {
        String::from_utf8_lossy(self.as_bytes())
    }

    /// The symbol of a number that [`Symbol::id`] gave.
    #[inline]
    pub const fn of_id(id: u32) -> Symbol {
        Symbol(id)
    }

    /// The symbol's number: fast to compare and search, meaningless outside this process.
    #[inline]
    pub fn id(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_str())
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str())
    }
}

impl From<&str> for Symbol {
    fn from(name: &str) -> Symbol {
        Symbol::intern(name.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_one_symbol_on_every_thread() {
        let names: Vec<String> = (0..20_000).map(|i| format!("name-{}", i % 5_000)).collect();
        let all: Vec<Vec<Symbol>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| names.iter().map(|n| Symbol::intern(n.as_bytes())).collect())).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        });
        assert!(all.windows(2).all(|w| w[0] == w[1]));
        assert!(all[0].iter().zip(&names).all(|(s, n)| s.as_bytes() == n.as_bytes()));
    }

    #[test]
    fn parts_make_the_same_name() {
        let long = [b'x'; 90];
        for parts in [&[&b"p"[..], b"1234567", b"12345678", b"", b"123456789abcdef0", b"0123456789abcdefg"][..], &[&long, &long], &[]] {
            assert_eq!(Symbol::intern_parts(parts), Symbol::intern(&parts.concat()));
        }
    }

    #[test]
    fn names_are_bytes() {
        assert_eq!(Symbol::intern(b"\xff\x00a").as_bytes(), b"\xff\x00a");
    }
}
