//! Lists of names, each once per thread, and what follows from the names alone.

use crate::Shape;
use crate::arena::{keep, keep_each};
use firn_source::Symbol;
use hashbrown::HashTable;
use std::cell::RefCell;
use std::hash::Hasher;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// The names of shapes, ascending by symbol number.
#[derive(Debug)]
pub(crate) struct NameList {
    pub names: &'static [Symbol],
    /// The shape of these names without positions.
    pub bare: OnceLock<&'static Shape>,
    /// See [`Shape::name_list`].
    pub word: AtomicU64,
    by_name: OnceLock<Box<[u32]>>,
    places: OnceLock<Box<[u16]>>,
}

thread_local! {
    static KNOWN: RefCell<HashTable<&'static NameList>> = const { RefCell::new(HashTable::new()) };
}

fn hash(names: &[Symbol]) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    names.iter().for_each(|name| hasher.write_u32(name.id()));
    hasher.finish()
}

impl NameList {
    /// The list of these names.
    pub fn of(names: &[Symbol]) -> &'static NameList {
        let hash_here = hash(names);
        KNOWN.with_borrow_mut(|known| {
            if let Some(&list) = known.find(hash_here, |list| list.names == names) {
                return list;
            }
            let list: &'static NameList = keep(NameList {
                names: keep_each(names.iter().copied()),
                bare: OnceLock::new(),
                word: AtomicU64::new(0),
                by_name: OnceLock::new(),
                places: OnceLock::new(),
            });
            known.insert_unique(hash_here, list, |list| hash(list.names));
            list
        })
    }

    /// Indices in the order of the names' bytes.
    pub fn by_name(&self) -> &[u32] {
        self.by_name.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.names.len() as u32).collect();
            order.sort_unstable_by_key(|&i| self.names[i as usize].as_bytes());
            order.into_boxed_slice()
        })
    }

    // PERF: against a binary search: with-scopes 12 %, and few cache lines touched in sets of twenty thousand names.
    pub(crate) fn index_by_table(&self, name: Symbol) -> Option<usize> {
        let places = self.places.get_or_init(|| self.make_places());
        let mut at = place(name, places.len());
        loop {
            match places[at] {
                0 => return None,
                n if self.names[usize::from(n) - 1] == name => return Some(usize::from(n) - 1),
                _ => at = (at + 1) & (places.len() - 1),
            }
        }
    }

    /// An open-addressed table, at most half full: index + 1, or 0 where nothing is.
    #[cold]
    fn make_places(&self) -> Box<[u16]> {
        let mut places = vec![0; (self.names.len() * 2).next_power_of_two()].into_boxed_slice();
        for (i, &name) in self.names.iter().enumerate() {
            let mut at = place(name, places.len());
            while places[at] != 0 {
                at = (at + 1) & (places.len() - 1);
            }
            places[at] = i as u16 + 1;
        }
        places
    }
}

/// Where the search for a name begins in a table of so many places, a power of two.
#[inline]
fn place(name: Symbol, len: usize) -> usize {
    (u64::from(name.id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (len - 1)
}
