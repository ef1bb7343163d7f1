//! The table of remembered calls: bounded, scan-resistant, shared by all threads.

use crate::Key;
use firn_value::{Label, Stamp, Value};
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A remembered call.
#[derive(Debug)]
pub struct Entry {
    /// The call.
    pub key: Key,
    /// Its instance.
    pub instance: Stamp,
    /// Its result in weak head normal form.
    pub result: Value,
    /// Steps it took to get there.
    pub cost: u64,
    /// What was observed on the way.
    pub label: Label,
    hits: AtomicU64,
}

impl Entry {
    /// A call that was made.
    pub fn new(key: Key, instance: Stamp, result: Value, cost: u64, label: Label) -> Entry {
        Entry { key, instance, result, cost, label, hits: AtomicU64::new(0) }
    }

    /// Counts a hit.
    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was the answer.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

/// Remembered calls by the hash of their key. A call that is dropped is made again when it recurs; what it handed on stays.
pub struct Table {
    entries: Cache<u64, Arc<Entry>>,
}

/// Most remembered calls.
const CAPACITY: usize = 1 << 14;

impl Default for Table {
    fn default() -> Table {
        Table { entries: Cache::new(CAPACITY) }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "table of {} calls", self.entries.len())
    }
}

impl Table {
    /// The call remembered under a hash: whether it is the one asked for is for [`crate::Pairs`] to say.
    pub fn get(&self, hash: u64) -> Option<Arc<Entry>> {
        self.entries.get(&hash)
    }

    /// Remembers a call, in the place of one with the same hash.
    pub fn insert(&self, entry: Entry) {
        self.entries.insert(entry.key.hash, Arc::new(entry));
    }

    /// Number of remembered calls.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the calls that were never the answer; how many those were.
    pub fn shed(&self) -> usize {
        let before = self.len();
        self.entries.retain(|_, entry| entry.hits() > 0);
        before - self.len().min(before)
    }
}
