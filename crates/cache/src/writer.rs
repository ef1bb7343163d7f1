//! `Writer`: writes in batches from a thread of its own, off the critical path.
//!
//! What belongs together is handed over as one [`Batch`] and becomes visible as one: records never before the observations
//! and blobs they name. It is sealed as it comes, and waits for more. When something cannot be written (full disk, read-only), the writer stops, and says why once.

use crate::disk::{HISTORY, NOTED, stamp_bytes, stamp_key};
use crate::environment::{Environment, Table};
use crate::{collect, sealed_kind};
use firn_host::{Digest, Question, Stamp};
use firn_memo::kept::record::{seal, unseal};
use firn_memo::kept::{Nodes, Record, Stored};
use heed::PutFlags;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Results longer than this are stored apart, under their digest.
const INLINE: usize = 1024;

/// Of results longer than this a question keeps the last two.
const LARGE: usize = 1 << 20;

/// How long the first of what is written together waits for more.
const WHILE: Duration = Duration::from_millis(200);

/// A state of a file or directory, and the answer that it vouches for.
pub type Vouched = (Question, Stamp, Digest);

/// Things that are written together.
#[derive(Debug, Default)]
pub struct Batch {
    /// New answers.
    pub answers: Vec<Answer>,
    /// States of files and what they vouch for.
    pub stamps: Vec<Vouched>,
    /// Keys of records that were of use.
    pub used: Vec<Vec<u8>>,
    /// Seconds since 1970.
    pub now: i64,
}

/// An answer as it is handed over.
#[derive(Debug)]
pub struct Answer {
    /// The question's digest.
    pub question: Digest,
    /// The record, its result inline.
    pub record: Record,
    /// Nodes of observations.
    pub nodes: Nodes,
}

/// Makes what is to be written, on the thread that writes.
type Later = Box<dyn FnOnce() -> Batch + Send>;

enum Order {
    Write(Batch),
    Make(Later),
    /// What has come is written without waiting for more.
    Go,
}

/// A thread that writes.
pub struct Writer {
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<Result<(), heed::Error>>>,
}

impl Writer {
    pub(crate) fn start(environment: Environment, limit: u64) -> Writer {
        let (orders, received) = channel();
        let thread = std::thread::Builder::new().name("firn cache".to_owned());
        let thread = thread.spawn(move || crate::quietly(|| write_all(&environment, limit, &received))).ok();
        Writer { orders: Some(orders), thread }
    }

    /// Hands over things to write. Returns at once.
    pub fn write(&self, batch: Batch) {
        self.order(Order::Write(batch));
    }

    /// Hands over what makes things to write. Returns at once.
    pub fn write_later(&self, make: impl FnOnce() -> Batch + Send + 'static) {
        self.order(Order::Make(Box::new(make)));
    }

    /// Has written what was handed over, now: more takes a while to come.
    pub fn go(&self) {
        self.order(Order::Go);
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // A writer that has stopped takes nothing more; `finish` tells why.
            let _ = orders.send(order);
        }
    }

    /// Waits until everything is written; the reason if it could not be.
    pub fn finish(mut self) -> Result<(), String> {
        self.orders = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(error.to_string()),
            Some(Err(_)) => Err("the thread that writes has stopped".to_owned()),
            None => Err("cannot start a thread".to_owned()),
        }
    }
}

fn write_all(environment: &Environment, limit: u64, received: &Receiver<Order>) -> Result<(), heed::Error> {
    while let Ok(first) = received.recv() {
        let batches = gathered(first, received);
        if batches.is_empty() {
            continue;
        }
        let now = batches.iter().map(|batch| batch.now).max().unwrap_or(0);
        match write(environment, &batches) {
            // Full of its own size: make room and try once more.
            Err(heed::Error::Mdb(heed::MdbError::MapFull)) => {
                collect::collect(environment, limit / 2, now)?;
                write(environment, &batches)?;
            }
            written => written?,
        }
        if collect::size(environment)? > limit {
            collect::collect(environment, limit / 4 * 3, now)?;
        }
    }
    environment.note_whole();
    Ok(())
}

/// What comes within a while goes into the same transaction; nothing more comes once the run is over.
// PERF: 2,292 jobs of nixpkgs made 1,480 transactions and wrote 131 MB for a database of 18.
fn gathered(first: Order, received: &Receiver<Order>) -> Vec<Sealed> {
    let until = Instant::now() + WHILE;
    let mut batches = Vec::new();
    let mut next = Some(first);
    while let Some(order) = next {
        batches.push(match order {
            Order::Write(batch) => Sealed::new(batch),
            Order::Make(make) => Sealed::new(make()),
            Order::Go => break,
        });
        next = received.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
    }
    batches
}

/// A batch as it is stored: by table, what is put there under which key.
#[derive(Default)]
struct Sealed {
    nodes: Vec<Entry>,
    blobs: Vec<Entry>,
    /// Each with the digest of its question.
    records: Vec<(Digest, Entry)>,
    /// Ascending, each key once.
    stamps: Vec<Entry>,
    used: Vec<Entry>,
    now: i64,
}

type Entry = (Vec<u8>, Vec<u8>);

impl Sealed {
    fn new(Batch { answers, stamps, used, now }: Batch) -> Sealed {
        let mut all = Sealed { now, ..Sealed::default() };
        let sealed = |table, key: &[u8], payload: &[u8]| (key.to_vec(), seal(sealed_kind(table), key, payload));
        for Answer { question, mut record, nodes } in answers {
            all.nodes.extend(nodes.iter().map(|(digest, bytes)| sealed(1, &digest.0, bytes)));
            if let Stored::Inline(bytes) = &record.result
                && bytes.len() > INLINE
            {
                let digest = Digest::of_content(bytes);
                all.blobs.push(sealed(2, &digest.0, bytes));
                record.result = Stored::Blob(digest);
            }
            let key = record_key(&question, &record);
            all.records.push((question, sealed(0, &key, &record.encode())));
        }
        all.stamps = sealed_stamps(&stamps, now);
        all.used = used.iter().map(|key| sealed(4, key, &now.to_le_bytes())).collect();
        all
    }
}

/// What states vouch for, in the order of their keys; of several for one key the last counts.
fn sealed_stamps(stamps: &[Vouched], now: i64) -> Vec<Entry> {
    let keyed = |(at, (question, ..)): (usize, &Vouched)| stamp_key(question).map(|(key, kind)| (key, at, kind));
    let mut keyed: Vec<([u8; 16], usize, u8)> = stamps.iter().enumerate().filter_map(keyed).collect();
    keyed.sort_unstable();
    let last = keyed.chunk_by(|(one, ..), (other, ..)| one == other).filter_map(|same| same.last());
    let sealed = |&(key, at, kind): &([u8; 16], usize, u8)| {
        let (_, stamp, digest) = &stamps[at];
        let payload = [&stamp_bytes(kind, stamp)[..], &digest.0, &now.to_le_bytes()].concat();
        (key.to_vec(), seal(sealed_kind(3), &key, &payload))
    };
    last.map(sealed).collect()
}

fn write(environment: &Environment, batches: &[Sealed]) -> Result<(), heed::Error> {
    let (mut txn, unchanged) = environment.begin()?;
    let tables = environment.tables();
    let mut changed = false;
    for batch in batches {
        changed |= !batch.records.is_empty();
        for (key, sealed) in &batch.nodes {
            // PERF: nearly all are new, and looking for the place of one is most of the work of putting it there.
            let old = tables[1].get_or_put(&mut txn, key, sealed)?;
            if old.is_some_and(|old| old != sealed) {
                tables[1].put(&mut txn, key, sealed)?;
            }
        }
        for (key, sealed) in &batch.blobs {
            tables[2].put(&mut txn, key, sealed)?;
        }
        for (question, (key, sealed)) in &batch.records {
            tables[0].put(&mut txn, key, sealed)?;
            forget_oldest(environment, &mut txn, question, key)?;
        }
        changed |= write_stamps(tables[3], &mut txn, &batch.stamps, batch.now)?;
        for (key, sealed) in &batch.used {
            if tables[0].get(&txn, key)?.is_some() {
                tables[4].put(&mut txn, key, sealed)?;
                changed = true;
            }
        }
    }
    if changed { environment.commit(txn, unchanged) } else { Ok(()) }
}

/// Writes what states vouch for; whether any of it is new.
// PERF: in the order of their keys, each finds the pages of the one before at hand; an empty table is only added to. What is there is noted anew
// once a day, as uses are: a run that evaluates one package sees the files of all that it rests on, and would write a page for nearly each of them.
fn write_stamps(table: Table, txn: &mut heed::RwTxn<'_>, stamps: &[Entry], now: i64) -> Result<bool, heed::Error> {
    let (is_empty, mut changed) = (table.is_empty(txn)?, false);
    for (key, sealed) in stamps {
        if is_empty {
            table.put_with_flags(txn, PutFlags::APPEND, key, sealed)?;
            changed = true;
            continue;
        }
        let old = table.get_or_put(txn, key, sealed)?;
        if old.is_some_and(|old| is_noted(key, old, sealed, now)) {
            continue;
        }
        changed = true;
        if old.is_some() {
            table.put(txn, key, sealed)?;
        }
    }
    Ok(changed)
}

/// Whether what is stored says the same, and has since not long ago.
fn is_noted(key: &[u8], old: &[u8], new: &[u8], now: i64) -> bool {
    let read = |sealed| unseal(sealed_kind(3), key, sealed).and_then(<[u8]>::split_last_chunk);
    let (Some((old, when)), Some((new, _))) = (read(old), read(new)) else { return false };
    old == new && (0..NOTED).contains(&now.saturating_sub(i64::from_le_bytes(*when)))
}

/// The question, then what tells its answers apart: equal answers that rest on the same are one.
fn record_key(question: &Digest, record: &Record) -> Vec<u8> {
    let same = Record { cost: 0, made: 0, places: Vec::new(), ..record.clone() };
    let digest = blake3::hash(&same.encode());
    [&question.0[..], &digest.as_bytes()[..16]].concat()
}

/// Of too many answers to one question the one that was of use longest ago goes.
fn forget_oldest(
    environment: &Environment,
    txn: &mut heed::RwTxn<'_>,
    question: &Digest,
    newest: &[u8],
) -> Result<(), heed::Error> {
    let (mut known, mut large) = (Vec::new(), Vec::new());
    for entry in environment.records.prefix_iter(txn, &question.0)? {
        let (key, sealed) = entry?;
        if key == newest {
            continue;
        }
        let record = unseal(sealed_kind(0), key, sealed).and_then(|bytes| Record::decode(bytes).ok());
        let used = environment.uses.get(txn, key)?.and_then(|sealed| unseal(sealed_kind(4), key, sealed));
        let used = used.and_then(|bytes| bytes.try_into().ok()).map_or(i64::MIN, i64::from_le_bytes);
        let when = record.as_ref().map_or(i64::MIN, |record| record.made.max(used));
        if let Some(Stored::Blob(digest)) = record.map(|record| record.result)
            && environment.tables()[2].get(txn, &digest.0)?.is_some_and(|sealed| sealed.len() > LARGE)
        {
            large.push((when, key.to_vec(), digest));
        } else {
            known.push((when, key.to_vec()));
        }
    }
    large.sort();
    for (_, key, digest) in large.iter().take(large.len().saturating_sub(1)) {
        environment.records.delete(txn, key)?;
        environment.uses.delete(txn, key)?;
        environment.tables()[2].delete(txn, &digest.0)?;
    }
    known.sort();
    for (_, key) in known.iter().take(known.len().saturating_sub(HISTORY - 1)) {
        environment.records.delete(txn, key)?;
        environment.uses.delete(txn, key)?;
    }
    Ok(())
}
