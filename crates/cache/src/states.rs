//! `States`: what states of files vouch for, read from the database at once where many are asked about.

use crate::disk::{STATE, stamp_bytes, stamp_key};
use crate::environment::Table;
use crate::sealed_kind;
use firn_host::{Digest, Question, Stamp};
use firn_memo::kept::record::unseal;
use heed::{RoTxn, WithoutTls};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Looking up one state takes about as long as reading so many in a row.
const RATIO: u64 = 8;

/// What the database says of states, once it has been read.
// PERF: who verifies a thousand packages asks about 8,000 states. Going down a tree for each was a tenth of the instructions, of which half is left.
#[derive(Default)]
pub(crate) struct States {
    asked: AtomicU64,
    is_begun: AtomicBool,
    read: OnceLock<FxHashMap<[u8; 16], ([u8; STATE], Digest)>>,
}

impl States {
    /// What a state vouches for, if it is known here. What is not may be in the database.
    pub fn vouched(&self, table: Table, txn: &RoTxn<'_, WithoutTls>, question: &Question, stamp: &Stamp) -> Option<Digest> {
        let read = match self.read.get() {
            Some(read) => read,
            None => self.read_now(table, txn)?,
        };
        let (key, kind) = stamp_key(question)?;
        let (state, digest) = read.get(&key)?;
        (*state == stamp_bytes(kind, stamp)).then_some(*digest)
    }

    /// Reads all of them, if so many were asked about one by one that it would have paid, and nobody else is at it.
    fn read_now(&self, table: Table, txn: &RoTxn<'_, WithoutTls>) -> Option<&FxHashMap<[u8; 16], ([u8; STATE], Digest)>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if asked % 64 != 63 || asked * RATIO < table.len(txn).ok()? || self.is_begun.swap(true, Ordering::Relaxed) {
            return None;
        }
        let opened = |(key, sealed): (&[u8], &[u8])| {
            let (state, digest) = state_of(unseal(sealed_kind(3), key, sealed)?)?;
            Some((key.try_into().ok()?, (*state, digest)))
        };
        let mut read = FxHashMap::with_capacity_and_hasher(table.len(txn).ok()? as usize, Default::default());
        read.extend(table.iter(txn).ok()?.map_while(Result::ok).filter_map(opened));
        Some(self.read.get_or_init(|| read))
    }
}

/// The state in what is stored, and what it vouches for.
pub(crate) fn state_of(payload: &[u8]) -> Option<(&[u8; STATE], Digest)> {
    let (state, rest) = payload.split_first_chunk()?;
    Some((state, Digest(*rest.first_chunk()?)))
}
