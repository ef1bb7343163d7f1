//! `Disk`: what is remembered, to be looked up. Everything that comes out has had its seal checked; what has not is not
//! there.

use crate::environment::{Environment, Salvaged, Unusable};
use crate::states::{States, state_of};
use crate::writer::Writer;
use firn_host::{Digest, Question, Stamp};
use firn_memo::kept::record::{Kind, unseal};
use firn_memo::kept::{Key, Record, Stored, checksum};
use heed::{RoTxn, WithoutTls};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The memory on disk. One per directory and process.
pub struct Disk {
    pub(crate) environment: Environment,
    pub(crate) limit: u64,
    salvaged: Option<Salvaged>,
    damaged: AtomicU64,
    states: States,
}

/// A record and its name.
#[derive(Clone, Debug)]
pub struct Found {
    /// The key under which it is stored.
    pub key: Vec<u8>,
    /// The record.
    pub record: Record,
    /// Its result, fetched from where it lies.
    pub result: Vec<u8>,
    /// Seconds since 1970 when it was last of use, as far as that was noted.
    pub used: i64,
}

impl Found {
    /// Whether its use is to be noted: that is done to the day, so that a hit costs no write.
    pub fn is_use_due(&self, now: i64) -> bool {
        now.saturating_sub(self.used) >= NOTED
    }
}

/// One state of the database. Short-lived: while it is held, old pages are not used again.
pub struct Reading<'d> {
    disk: &'d Disk,
    txn: RoTxn<'d, WithoutTls>,
}

/// Seconds between two notes of use.
pub(crate) const NOTED: i64 = 24 * 3600;

/// The most answers that are kept for one question (spec L2.7).
pub const HISTORY: usize = 16;

impl Disk {
    /// Opens the memory in a directory, which is made if need be. `limit` bounds its size in bytes.
    pub fn open(dir: &Path, limit: u64) -> Result<Disk, Unusable> {
        let (environment, salvaged) = crate::quietly(|| Environment::open(dir, limit))?;
        Ok(Disk { environment, limit, salvaged, damaged: AtomicU64::new(0), states: States::default() })
    }

    /// The most bytes that the tables may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What was salvaged, if the database was found damaged.
    pub fn salvaged(&self) -> Option<Salvaged> {
        self.salvaged
    }

    /// How many things were found whose seal was broken.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// The state as it is now; none if the database cannot be read.
    pub fn read(&self) -> Option<Reading<'_>> {
        self.environment.env.read_txn().ok().map(|txn| Reading { disk: self, txn })
    }

    /// A writer; what it is given is written from a thread of its own.
    pub fn writer(&self) -> Writer {
        Writer::start(self.environment.clone(), self.limit)
    }
}

impl Reading<'_> {
    fn get(&self, table: usize, key: &[u8]) -> Option<&[u8]> {
        let sealed = self.disk.environment.tables()[table].get(&self.txn, key).ok()??;
        self.open(table, key, sealed)
    }

    fn open<'s>(&self, table: usize, key: &[u8], sealed: &'s [u8]) -> Option<&'s [u8]> {
        let payload = unseal(crate::sealed_kind(table), key, sealed);
        if payload.is_none() {
            self.disk.damaged.fetch_add(1, Ordering::Relaxed);
        }
        payload
    }

    /// The digests of all questions that have answers.
    pub fn questions(&self) -> Vec<Digest> {
        let Ok(entries) = self.disk.environment.records.iter(&self.txn) else { return Vec::new() };
        let digests = entries.map_while(Result::ok).filter_map(|(key, _)| Some(Digest(key.get(..32)?.try_into().ok()?)));
        let mut all: Vec<Digest> = digests.collect();
        all.dedup();
        all
    }

    /// The records of a question by its digest, those used last first.
    pub fn records(&self, question: &Digest) -> Vec<Found> {
        self.records_where(question, |record| Key::digest(&record.question) == *question)
    }

    /// The records of a question, those used last first.
    pub fn records_of(&self, key: &Key) -> Vec<Found> {
        self.records_where(&key.digest, |record| record.question == key.question)
    }

    fn records_where(&self, question: &Digest, is_of_it: impl Fn(&Record) -> bool) -> Vec<Found> {
        let Ok(entries) = self.disk.environment.records.prefix_iter(&self.txn, &question.0) else { return Vec::new() };
        let mut found: Vec<Found> = entries
            .map_while(Result::ok)
            .filter_map(|(key, sealed)| self.found(key, sealed))
            .filter(|found| is_of_it(&found.record))
            .collect();
        found.sort_by(|a, b| (b.used, &a.key).cmp(&(a.used, &b.key)));
        found
    }

    /// All records, those of one question together.
    pub fn all_records(&self) -> Vec<(Vec<u8>, Record)> {
        let Ok(entries) = self.disk.environment.records.iter(&self.txn) else { return Vec::new() };
        let opened = |(key, sealed): (&[u8], &[u8])| {
            let record = Record::decode(self.open(0, key, sealed)?).ok()?;
            key.starts_with(&Key::digest(&record.question).0).then(|| (key.to_vec(), record))
        };
        entries.map_while(Result::ok).filter_map(opened).collect()
    }

    fn found(&self, key: &[u8], sealed: &[u8]) -> Option<Found> {
        let record = Record::decode(self.open(0, key, sealed)?).ok()?;
        let result = match &record.result {
            Stored::Inline(bytes) => bytes.clone(),
            Stored::Blob(digest) => self.blob(digest)?,
        };
        let used = self.used(key).unwrap_or(record.made).max(record.made);
        Some(Found { key: key.to_vec(), record, result, used })
    }

    pub(crate) fn used(&self, key: &[u8]) -> Option<i64> {
        self.get(4, key).and_then(|bytes| bytes.try_into().ok()).map(i64::from_le_bytes)
    }

    /// A node of observations.
    // PERF: whoever puts it there knows it to be what its digest says, and the seal says that it still is.
    pub fn node(&self, digest: &Digest) -> Option<&[u8]> {
        self.get(1, &digest.0)
    }

    /// The bytes of a large result.
    pub fn blob(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.get(2, &digest.0).map(<[u8]>::to_vec)
    }

    /// Whether any state vouches for anything.
    pub fn vouches(&self) -> bool {
        !self.disk.environment.stamps.is_empty(&self.txn).unwrap_or(true)
    }

    /// What a state of a file or directory was found to vouch for.
    pub fn vouched(&self, question: &Question, stamp: &Stamp) -> Option<Digest> {
        let Disk { environment, states, .. } = self.disk;
        if let Some(digest) = states.vouched(environment.stamps, &self.txn, question, stamp) {
            return Some(digest);
        }
        let (key, kind) = stamp_key(question)?;
        let (state, digest) = state_of(self.get(3, &key)?)?;
        (*state == stamp_bytes(kind, stamp)).then_some(digest)
    }
}

pub(crate) const STATE: usize = 57;

/// The key of what a state vouches for, and the kind of question. Two paths that have the same key are kept apart by the state: it says which
/// file it is of, and what was asked of it.
pub(crate) fn stamp_key(question: &Question) -> Option<([u8; 16], u8)> {
    let (kind, path) = match question {
        Question::File(path) => (0, path),
        Question::Directory(path) => (1, path),
        Question::Code(path) => (2, path),
        Question::Outline(path) => (3, path),
        _ => return None,
    };
    Some((checksum(&[&[kind], path.as_bytes()]), kind))
}

pub(crate) fn stamp_bytes(kind: u8, stamp: &Stamp) -> [u8; STATE] {
    let Stamp { device, inode, size, modified, changed } = *stamp;
    let words = [
        device.to_le_bytes(),
        inode.to_le_bytes(),
        size.to_le_bytes(),
        modified.0.to_le_bytes(),
        modified.1.to_le_bytes(),
        changed.0.to_le_bytes(),
        changed.1.to_le_bytes(),
    ];
    let mut bytes = [kind; STATE];
    bytes[1..].copy_from_slice(words.as_flattened());
    bytes
}

/// What the things of a table are, by its number.
pub(crate) fn sealed_kind(table: usize) -> Kind {
    [Kind::Record, Kind::Observations, Kind::Blob, Kind::Stamp, Kind::Use][table]
}
