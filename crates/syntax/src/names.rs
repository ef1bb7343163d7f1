//! A per-thread mirror of the symbol interner, so that a name seen before costs one hash and no lock.

use firn_source::Symbol;
use hashbrown::HashTable;
use std::cell::RefCell;
use std::hash::Hasher;

#[derive(Default)]
pub(crate) struct Names {
    table: HashTable<(u64, &'static [u8], Symbol)>,
}

thread_local! {
    static NAMES: RefCell<Names> = RefCell::default();
}

impl Names {
    /// Takes this thread's mirror; [`Names::give_back`] returns it. A nested parse would start with an empty one.
    pub(crate) fn take() -> Names {
        NAMES.take()
    }

    pub(crate) fn give_back(self) {
        NAMES.set(self);
    }

    #[inline]
    pub(crate) fn intern(&mut self, name: &[u8]) -> Symbol {
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(name);
        let hash = hasher.finish();
        match self.table.find(hash, |&(h, text, _)| h == hash && text == name) {
            Some(&(_, _, symbol)) => symbol,
            None => self.learn(hash, name),
        }
    }

    #[cold]
    fn learn(&mut self, hash: u64, name: &[u8]) -> Symbol {
        let symbol = Symbol::intern(name);
        self.table.insert_unique(hash, (hash, symbol.as_bytes(), symbol), |&(h, _, _)| h);
        symbol
    }
}
