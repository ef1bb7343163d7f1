//! Making room: records go by age, the less durable what they rest on the sooner (spec L2.6); then what no record names.

use crate::environment::Environment;
use crate::sealed_kind;
use firn_host::{Digest, Durability};
use firn_memo::kept::observation::Node;
use firn_memo::kept::record::unseal;
use firn_memo::kept::{Record, Stored};
use rustc_hash::FxHashSet;

const DAY: i64 = 24 * 3600;

/// What was removed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Collected {
    /// Records.
    pub records: u64,
    /// Nodes of observations, results, states of files.
    pub parts: u64,
    /// Bytes in use before.
    pub before: u64,
    /// Bytes in use after.
    pub after: u64,
}

/// After this many seconds without use a record goes, whatever the size.
fn lifetime(durability: Durability) -> i64 {
    match durability {
        Durability::Low => 30 * DAY,
        Durability::Medium => 90 * DAY,
        Durability::High => 360 * DAY,
    }
}

/// Bytes that the tables take.
pub(crate) fn size(environment: &Environment) -> Result<u64, heed::Error> {
    let txn = environment.env.read_txn()?;
    let mut total = 0;
    for table in environment.tables() {
        let stat = table.stat(&txn)?;
        let pages = stat.branch_pages + stat.leaf_pages + stat.overflow_pages;
        total += pages as u64 * u64::from(stat.page_size);
    }
    Ok(total)
}

struct Candidate {
    key: Vec<u8>,
    /// The part of its lifetime that has passed, in thousandths.
    age: i64,
    bytes: u64,
}

/// Removes what has outlived its time, then the oldest until at most `target` bytes are left, then what nothing names.
pub(crate) fn collect(environment: &Environment, target: u64, now: i64) -> Result<Collected, heed::Error> {
    let before = size(environment)?;
    let (mut txn, unchanged) = environment.begin()?;
    let tables = environment.tables();
    let mut candidates = Vec::new();
    let mut doomed: Vec<(usize, Vec<u8>)> = Vec::new();
    for entry in tables[0].iter(&txn)? {
        let (key, sealed) = entry?;
        let record = unseal(sealed_kind(0), key, sealed).and_then(|bytes| Record::decode(bytes).ok());
        let Some(record) = record else {
            doomed.push((0, key.to_vec()));
            continue;
        };
        let used = tables[4].get(&txn, key)?.and_then(|sealed| unseal(sealed_kind(4), key, sealed));
        let used = used.and_then(|bytes| bytes.try_into().ok()).map_or(record.made, i64::from_le_bytes);
        // A clock that was set back makes nothing older.
        let idle = now.saturating_sub(used.max(record.made)).max(0);
        let age = idle.saturating_mul(1000) / lifetime(record.durability);
        candidates.push(Candidate { key: key.to_vec(), age, bytes: sealed.len() as u64 });
    }
    candidates.sort_by(|a, b| (b.age, &b.key).cmp(&(a.age, &a.key)));
    let records: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    // What a record's parts take is not known without following them: each is taken to have its share of the whole.
    let weight = |bytes: u64| u128::from(before) * u128::from(bytes) / u128::from(records.max(1));
    let mut excess = u128::from(before.saturating_sub(target));
    for candidate in candidates {
        if candidate.age >= 1000 || excess > 0 {
            excess = excess.saturating_sub(weight(candidate.bytes));
            doomed.push((0, candidate.key));
        }
    }
    let mut collected = Collected { records: doomed.len() as u64, before, ..Collected::default() };
    for (_, key) in &doomed {
        tables[0].delete(&mut txn, key)?;
    }
    let parts = unnamed(environment, &txn, now)?;
    collected.parts = parts.len() as u64;
    for (table, key) in &parts {
        tables[*table].delete(&mut txn, key)?;
    }
    environment.commit(txn, unchanged)?;
    collected.after = size(environment)?;
    Ok(collected)
}

/// What no record names, and states of files that were noted long ago.
fn unnamed(environment: &Environment, txn: &heed::RwTxn<'_>, now: i64) -> Result<Vec<(usize, Vec<u8>)>, heed::Error> {
    let tables = environment.tables();
    let (mut named, mut todo, mut blobs, mut keys) = (FxHashSet::default(), Vec::new(), FxHashSet::default(), FxHashSet::default());
    for entry in tables[0].iter(txn)? {
        let (key, sealed) = entry?;
        let Some(Ok(record)) = unseal(sealed_kind(0), key, sealed).map(Record::decode) else { continue };
        keys.insert(key.to_vec());
        todo.push(record.observations);
        if let Stored::Blob(digest) = record.result {
            blobs.insert(digest);
        }
    }
    while let Some(digest) = todo.pop() {
        if !named.insert(digest) {
            continue;
        }
        let node = tables[1].get(txn, &digest.0)?.and_then(|sealed| unseal(sealed_kind(1), &digest.0, sealed));
        todo.extend(node.and_then(|bytes| Node::named(bytes).ok()).unwrap_or_default());
    }
    let mut unnamed = Vec::new();
    let is = |set: &FxHashSet<Digest>, key: &[u8]| key.try_into().is_ok_and(|bytes| set.contains(&Digest(bytes)));
    for (table, set) in [(1, &named), (2, &blobs)] {
        for entry in tables[table].iter(txn)? {
            let (key, _) = entry?;
            if !is(set, key) {
                unnamed.push((table, key.to_vec()));
            }
        }
    }
    for entry in tables[3].iter(txn)? {
        let (key, sealed) = entry?;
        let noted = unseal(sealed_kind(3), key, sealed).and_then(|bytes| bytes.last_chunk()).copied().map(i64::from_le_bytes);
        if noted.is_none_or(|noted| now.saturating_sub(noted) > 60 * DAY) {
            unnamed.push((3, key.to_vec()));
        }
    }
    for entry in tables[4].iter(txn)? {
        let (key, _) = entry?;
        if !keys.contains(key) {
            unnamed.push((4, key.to_vec()));
        }
    }
    Ok(unnamed)
}
