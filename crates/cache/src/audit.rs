//! Looking at the whole: how much there is, and whether every part of it is whole.

use crate::disk::Disk;
use crate::environment::TABLES;
use crate::{collect, sealed_kind};
use firn_host::Digest;
use firn_memo::kept::observation::Node;
use firn_memo::kept::record::unseal;
use firn_memo::kept::{Key, Record, Stored};
use rustc_hash::FxHashSet;

/// What there is.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// Questions that have answers.
    pub questions: u64,
    /// Answers.
    pub records: u64,
    /// Evaluations of which parts are kept.
    pub parts: u64,
    /// Nodes of observations.
    pub observations: u64,
    /// Results stored apart.
    pub blobs: u64,
    /// States of files.
    pub stamps: u64,
    /// Bytes that the tables take.
    pub bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// The most bytes that the tables may take.
    pub limit: u64,
    /// Microseconds that the answers took to find.
    pub cost: u64,
}

/// What a look at every part found.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Audit {
    /// Parts looked at.
    pub checked: u64,
    /// Parts whose seal is broken or that cannot be read, by table.
    pub broken: Vec<(&'static str, u64)>,
    /// Records that name parts that are not there.
    pub incomplete: u64,
}

impl Audit {
    /// Whether everything is whole.
    pub fn is_whole(&self) -> bool {
        self.broken.is_empty() && self.incomplete == 0
    }
}

impl Disk {
    /// How much there is.
    pub fn statistics(&self) -> Result<Statistics, heed::Error> {
        let environment = &self.environment;
        let txn = environment.env.read_txn()?;
        let mut statistics = Statistics {
            records: environment.records.len(&txn)?,
            observations: environment.observations.len(&txn)?,
            blobs: environment.blobs.len(&txn)?,
            stamps: environment.stamps.len(&txn)?,
            file_bytes: environment.env.real_disk_size()?,
            limit: self.limit,
            ..Statistics::default()
        };
        let mut before: Option<Vec<u8>> = None;
        for entry in environment.records.iter(&txn)? {
            let (key, sealed) = entry?;
            let question = key.get(..32).unwrap_or_default();
            let record = unseal(sealed_kind(0), key, sealed).and_then(|bytes| Record::decode(bytes).ok());
            if record.as_ref().is_some_and(|record| Key::is_of_parts(&record.question)) {
                statistics.records -= 1;
                statistics.parts += 1;
                continue;
            }
            if before.as_deref() != Some(question) {
                statistics.questions += 1;
                before = Some(question.to_vec());
            }
            statistics.cost += record.map_or(0, |record| record.cost);
        }
        drop(txn);
        statistics.bytes = collect::size(environment)?;
        Ok(statistics)
    }

    /// Looks at every part. With `remove`, what is not whole is removed.
    pub fn audit(&self, remove: bool) -> Result<Audit, heed::Error> {
        let environment = &self.environment;
        let txn = environment.env.read_txn()?;
        let mut audit = Audit::default();
        let mut doomed: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut whole: [FxHashSet<Digest>; 3] = Default::default();
        // Records last: what they name has been judged by then.
        for (index, table) in environment.tables().into_iter().enumerate().rev() {
            let mut broken = 0;
            for entry in table.iter(&txn)? {
                let (key, sealed) = entry?;
                audit.checked += 1;
                let payload = unseal(sealed_kind(index), key, sealed);
                if !payload.is_some_and(|payload| is_readable(index, key, payload)) {
                    broken += 1;
                    doomed.push((index, key.to_vec()));
                } else if let (1 | 2, Ok(digest)) = (index, key.try_into()) {
                    whole[index].insert(Digest(digest));
                }
            }
            if broken > 0 {
                audit.broken.insert(0, (TABLES[index], broken));
            }
        }
        for entry in environment.records.iter(&txn)? {
            let (key, sealed) = entry?;
            let Some(Ok(record)) = unseal(sealed_kind(0), key, sealed).map(Record::decode) else { continue };
            let blob = !matches!(&record.result, Stored::Blob(digest) if !whole[2].contains(digest));
            if !blob || !self.is_complete(&txn, record.observations, &whole[1])? {
                audit.incomplete += 1;
                doomed.push((0, key.to_vec()));
            }
        }
        drop(txn);
        if remove && !doomed.is_empty() {
            let mut txn = environment.env.write_txn()?;
            for (table, key) in &doomed {
                environment.tables()[*table].delete(&mut txn, key)?;
            }
            txn.commit()?;
        }
        Ok(audit)
    }

    fn is_complete(&self, txn: &heed::RoTxn<'_, heed::WithoutTls>, root: Digest, whole: &FxHashSet<Digest>) -> Result<bool, heed::Error> {
        let (mut seen, mut todo) = (FxHashSet::default(), vec![root]);
        while let Some(digest) = todo.pop() {
            if !seen.insert(digest) {
                continue;
            }
            if !whole.contains(&digest) {
                return Ok(false);
            }
            let node = self.environment.observations.get(txn, &digest.0)?;
            let node = node.and_then(|sealed| unseal(sealed_kind(1), &digest.0, sealed));
            todo.extend(node.and_then(|bytes| Node::named(bytes).ok()).unwrap_or_default());
        }
        Ok(true)
    }
}

/// Whether what a seal vouches for is what its key says, and can be read.
pub(crate) fn is_readable(table: usize, key: &[u8], payload: &[u8]) -> bool {
    match table {
        0 => Record::decode(payload).is_ok_and(|record| key.starts_with(&Key::digest(&record.question).0)),
        1 => Node::named(payload).is_ok() && Node::digest(payload).0 == *key,
        2 => Digest::of_content(payload).0 == *key,
        _ => true,
    }
}
