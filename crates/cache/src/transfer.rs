//! Taking the memory elsewhere: everything but the states of files, which mean nothing on another machine, as one stream.
//!
//! ```text
//! stream = "firn cache 1\n" · ([table number, key, sealed bytes])* · [] · checksum (32 bytes)
//! ```

use crate::audit::is_readable;
use crate::disk::Disk;
use crate::sealed_kind;
use firn_memo::kept::cbor::{Reader, Writer};
use firn_memo::kept::record::unseal;
use std::fmt;
use std::io::Write;

const HEAD: &[u8] = b"firn cache 1\n";
const SUM: usize = 32;

/// Why the memory could not be taken elsewhere or brought back.
#[derive(Debug)]
pub enum TransferError {
    /// The database.
    Database(heed::Error),
    /// The stream cannot be written.
    Stream(std::io::Error),
    /// The bytes are not those of an export, or not all of them.
    Damaged,
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Database(error) => write!(f, "{error}"),
            TransferError::Stream(error) => write!(f, "{}", firn_host::Errno::from_ref(error)),
            TransferError::Damaged => f.write_str("not an export of firn's cache, or a damaged one"),
        }
    }
}

impl std::error::Error for TransferError {}

impl From<heed::Error> for TransferError {
    fn from(error: heed::Error) -> TransferError {
        TransferError::Database(error)
    }
}

/// The tables that travel: blobs and observations before the records that name them.
const TRAVELLING: [usize; 3] = [2, 1, 0];

impl Disk {
    /// Writes everything that is whole to a stream; how many records that are.
    pub fn export(&self, out: &mut dyn Write) -> Result<u64, TransferError> {
        let environment = &self.environment;
        let txn = environment.env.read_txn()?;
        let mut hasher = blake3::Hasher::new();
        let mut put = |bytes: &[u8]| {
            hasher.update(bytes);
            out.write_all(bytes).map_err(TransferError::Stream)
        };
        put(HEAD)?;
        let mut records = 0;
        for table in TRAVELLING {
            for entry in environment.tables()[table].iter(&txn)? {
                let (key, sealed) = entry?;
                if unseal(sealed_kind(table), key, sealed).is_none() {
                    continue;
                }
                records += u64::from(table == 0);
                let mut item = Writer::new();
                item.array(3).unsigned(table as u64).bytes(key).bytes(sealed);
                put(&item.finish())?;
            }
        }
        let mut end = Writer::new();
        end.array(0);
        put(&end.finish())?;
        let sum = *hasher.finalize().as_bytes();
        out.write_all(&sum).map_err(TransferError::Stream)?;
        Ok(records)
    }

    /// Takes in what another memory wrote out; how many records were new. A stream that is not whole changes nothing.
    pub fn import(&self, bytes: &[u8]) -> Result<u64, TransferError> {
        let (body, sum) = bytes.len().checked_sub(SUM).map(|at| bytes.split_at(at)).ok_or(TransferError::Damaged)?;
        let items = body.strip_prefix(HEAD).ok_or(TransferError::Damaged)?;
        if blake3::hash(body).as_bytes() != sum {
            return Err(TransferError::Damaged);
        }
        let environment = &self.environment;
        let mut txn = environment.env.write_txn()?;
        let mut reader = Reader::new(items);
        let mut records = 0;
        let damaged = |_| TransferError::Damaged;
        while reader.array().map_err(damaged)? == 3 {
            let table = reader.index().map_err(damaged)?;
            let (key, sealed) = (reader.bytes().map_err(damaged)?, reader.bytes().map_err(damaged)?);
            if !TRAVELLING.contains(&table) || key.len() > 511 {
                return Err(TransferError::Damaged);
            }
            // Of another format, or not what its key says: simply not there.
            if !unseal(sealed_kind(table), key, sealed).is_some_and(|payload| is_readable(table, key, payload)) {
                continue;
            }
            let known = environment.tables()[table].get(&txn, key)?;
            if known.is_none_or(|known| unseal(sealed_kind(table), key, known).is_none()) {
                environment.tables()[table].put(&mut txn, key, sealed)?;
                records += u64::from(table == 0);
            }
        }
        reader.end().map_err(damaged)?;
        txn.commit()?;
        Ok(records)
    }

    /// Forgets everything.
    pub fn clear(&self) -> Result<(), heed::Error> {
        let mut txn = self.environment.env.write_txn()?;
        for table in self.environment.tables() {
            table.clear(&mut txn)?;
        }
        txn.commit()
    }

    /// Removes what has outlived its time and, beyond `target` bytes, what was of use longest ago.
    pub fn collect(&self, target: u64, now: i64) -> Result<crate::Collected, heed::Error> {
        crate::collect::collect(&self.environment, target, now)
    }
}
