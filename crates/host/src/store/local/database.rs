//! The database of valid paths, as Nix keeps it (schema 10): who exists, what it refers to, what derivations build.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use firn_store::content_address::ContentAddress;
use firn_store::hash::{Format, Hash};
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::AbsPath;

/// The version that Nix 2.0 and later write and accept.
pub(super) const SCHEMA: u32 = 10;
/// Nix waits for others for as long as it takes; an hour is that.
const PATIENCE: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(5);
/// Between checkpoints, so that a whole system's derivations cost one `fsync`.
const CHECKPOINT_PAGES: u32 = 40_000;

/// Tables, keys and the names of indices are Nix's; the trigger lets an object that refers to itself be deleted.
const TABLES: &str = "
    create table if not exists ValidPaths (
        id integer primary key autoincrement not null, path text unique not null, hash text not null,
        registrationTime integer not null, deriver text, narSize integer, ultimate integer, sigs text, ca text);
    create table if not exists Refs (
        referrer integer not null, reference integer not null, primary key (referrer, reference),
        foreign key (referrer) references ValidPaths(id) on delete cascade,
        foreign key (reference) references ValidPaths(id) on delete restrict);
    create index if not exists IndexReference on Refs(reference);
    create table if not exists DerivationOutputs (
        drv integer not null, id text not null, path text not null, primary key (drv, id),
        foreign key (drv) references ValidPaths(id) on delete cascade);
    create index if not exists IndexDerivationOutputs on DerivationOutputs(path);
    create trigger if not exists DeleteSelfRefs before delete on ValidPaths
        begin delete from Refs where referrer = old.id and reference = old.id; end;
";

/// What is registered about an object.
pub(super) struct Registration {
    pub path: StorePath,
    pub references: Arc<[StorePath]>,
    pub nar_hash: Hash,
    pub nar_size: u64,
    /// None for what is named after what it was built from.
    pub address: Option<ContentAddress>,
    pub deriver: Option<StorePath>,
    pub signatures: Vec<String>,
    /// For derivations, the outputs whose paths are known.
    pub outputs: Vec<(Vec<u8>, StorePath)>,
}

/// An open database, used by one thread at a time.
pub(super) struct Database {
    dir: StoreDir,
    connection: Mutex<Connection>,
}

impl Database {
    /// Opens the database in a directory; `create` makes it.
    pub fn open(directory: &AbsPath, dir: StoreDir, create: bool, wal: bool, sync: bool) -> Result<Database> {
        let file = directory.child(b"db.sqlite");
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        let fail = |error: rusqlite::Error| {
            let said = error.to_string();
            Error::new(ErrorKind::Other, &[b"cannot open Nix database '", file.as_bytes(), b"': ", said.as_bytes()])
        };
        let open = || {
            let connection = Connection::open_with_flags(file.as_path(), flags)?;
            configure(&connection, wal, sync)?;
            if create {
                connection.execute_batch(TABLES)?;
            }
            Ok(connection)
        };
        let connection = patiently(open).map_err(fail)?;
        Ok(Database { dir, connection: Mutex::new(connection) })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, path: &StorePath) -> Result<String> {
        String::from_utf8(self.dir.print(path)).map_err(|_| {
            Error::new(ErrorKind::Other, &[b"the store directory '", self.dir.as_bytes(), b"' is not UTF-8"])
        })
    }

    /// Whether the object exists.
    pub fn is_valid(&self, path: &StorePath) -> Result<bool> {
        let connection = self.lock();
        let mut query = connection.prepare_cached("select 1 from ValidPaths where path = ?").map_err(failed)?;
        query.exists([self.text(path)?]).map_err(failed)
    }

    /// What the object refers to, in order; none if it does not exist.
    pub fn references(&self, path: &StorePath) -> Result<Option<Vec<StorePath>>> {
        let connection = self.lock();
        let Some(id) = id_of(&connection, &self.text(path)?)? else { return Ok(None) };
        let mut query = connection
            .prepare_cached("select path from Refs join ValidPaths on reference = id where referrer = ?")
            .map_err(failed)?;
        let rows = query.query_map([id], |row| row.get::<_, String>(0)).map_err(failed)?;
        let mut all = Vec::new();
        for row in rows {
            all.push(self.dir.parse(row.map_err(failed)?.as_bytes())?);
        }
        all.sort();
        Ok(Some(all))
    }

    /// All that is known of the object; none if it does not exist.
    pub fn info(&self, path: &StorePath) -> Result<Option<PathInfo>> {
        let Some(references) = self.references(path)? else { return Ok(None) };
        let text = self.text(path)?;
        let connection = self.lock();
        let mut query = connection
            .prepare_cached("select hash, narSize, deriver, sigs, ca from ValidPaths where path = ?")
            .map_err(failed)?;
        type Row = (String, Option<i64>, Option<String>, Option<String>, Option<String>);
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        let found: Option<Row> = query.query_row([text], row).optional().map_err(failed)?;
        let Some((hash, size, deriver, signatures, address)) = found else { return Ok(None) };
        let deriver = deriver.filter(|deriver| !deriver.is_empty());
        let address = address.filter(|address| !address.is_empty());
        Ok(Some(PathInfo {
            path: path.clone(),
            nar_hash: Hash::parse_any_prefixed(hash.as_bytes())?,
            nar_size: size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            references,
            deriver: deriver.map(|deriver| self.dir.parse(deriver.as_bytes())).transpose()?,
            signatures: signatures.unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
            address: address.map(|address| ContentAddress::parse(address.as_bytes())).transpose()?,
        }))
    }

    /// Registers objects, all or none. What they refer to is registered already or among them.
    pub fn register(&self, all: &[Registration]) -> Result<()> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let now = now();
        for one in all {
            self.register_path(&transaction, one, now)?;
        }
        for one in all {
            self.register_references(&transaction, one)?;
        }
        transaction.commit().map_err(failed)
    }

    fn register_path(&self, transaction: &Transaction<'_>, one: &Registration, now: i64) -> Result<()> {
        let path = self.text(&one.path)?;
        let hash = one.nar_hash.to_string(Format::Base16, true);
        let address = one.address.map(|address| address.render());
        let deriver = one.deriver.as_ref().map(|deriver| self.text(deriver)).transpose()?;
        let signatures = (!one.signatures.is_empty()).then(|| one.signatures.join(" "));
        let size = i64::try_from(one.nar_size).unwrap_or(i64::MAX);
        let id = match id_of(transaction, &path)? {
            // Someone else was quicker; it is the same object.
            Some(_) => return Ok(()),
            None => {
                let mut insert = transaction
                    .prepare_cached(
                        "insert into ValidPaths (path, hash, registrationTime, deriver, narSize, sigs, ca) values (?, ?, ?, ?, ?, ?, ?)",
                    )
                    .map_err(failed)?;
                insert.insert(params![path, hash, now, deriver, size, signatures, address]).map_err(failed)?
            }
        };
        for (name, output) in &one.outputs {
            let mut insert = transaction
                .prepare_cached("insert or replace into DerivationOutputs (drv, id, path) values (?, ?, ?)")
                .map_err(failed)?;
            insert.execute(params![id, String::from_utf8_lossy(name), self.text(output)?]).map_err(failed)?;
        }
        Ok(())
    }

    fn register_references(&self, transaction: &Transaction<'_>, one: &Registration) -> Result<()> {
        let existing = |path: &StorePath| -> Result<i64> {
            let text = self.text(path)?;
            id_of(transaction, &text)?
                .ok_or_else(|| Error::new(ErrorKind::Other, &[b"path '", text.as_bytes(), b"' is not valid"]))
        };
        let referrer = existing(&one.path)?;
        for reference in one.references.iter() {
            let mut insert = transaction
                .prepare_cached("insert or ignore into Refs (referrer, reference) values (?, ?)")
                .map_err(failed)?;
            insert.execute(params![referrer, existing(reference)?]).map_err(failed)?;
        }
        Ok(())
    }
}

/// Tries again while others are at it: SQLite itself does not wait where a database gets its journal and tables.
fn patiently<T>(attempt: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let mut waited = Duration::ZERO;
    loop {
        match attempt() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && waited < PATIENCE => {
                std::thread::sleep(MOMENT);
                waited += MOMENT;
            }
            done => return done,
        }
    }
}

fn configure(connection: &Connection, wal: bool, sync: bool) -> rusqlite::Result<()> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(16);
    connection.pragma_update(None, "foreign_keys", 1)?;
    connection.pragma_update(None, "synchronous", if sync { "normal" } else { "off" })?;
    let wanted = if wal { "wal" } else { "truncate" };
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    if mode != wanted {
        connection.pragma_update_and_check(None, "journal_mode", wanted, |_| Ok(()))?;
    }
    if wal {
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    }
    Ok(())
}

fn id_of(connection: &Connection, path: &str) -> Result<Option<i64>> {
    let mut query = connection.prepare_cached("select id from ValidPaths where path = ?").map_err(failed)?;
    query.query_row([path], |row| row.get(0)).optional().map_err(failed)
}

fn failed(error: rusqlite::Error) -> Error {
    Error::new(ErrorKind::Other, &[b"the Nix database failed: ", error.to_string().as_bytes()])
}

/// Seconds since 1970, for the time of registration: no answer to evaluation.
#[allow(clippy::disallowed_methods)]
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
}
