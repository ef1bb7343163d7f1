//! `Environment`: the database opened, or the reason why not.
//!
//! 1. The directory is made; the file of locks is laid out in full beforehand, because LMDB writes to it through a map and a
//!    full disk would stop the process there.
//! 2. The file's two states are read without LMDB; then LMDB opens it, and the state it has chosen is walked page by page
//!    ([`pages`](crate::pages)), unless nothing was written since the last walk ([`walked`]). Damage is put aside, what hangs together is salvaged, and the walk begins again, once.
//! 3. The tables are opened and the version compared.
//!
//! Any process may be killed at any moment: LMDB's states are switched by one write, its locks are given up by the
//! system, and readers that died are cleared here.
#![allow(unsafe_code, clippy::disallowed_methods)] // LMDB is opened here; this directory is the cache's own.

use crate::walked::{self, Unchanged, Whole};
use crate::pages;
use firn_memo::kept::record::FORMAT;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RwTxn, WithoutTls};
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A table from bytes to bytes.
pub(crate) type Table = Database<Bytes, Bytes>;

/// Why the cache cannot be used. The level is off for this run; the user is told once.
#[derive(Debug)]
pub enum Unusable {
    /// The directory or a file in it cannot be made or written.
    Files(PathBuf, std::io::Error),
    /// LMDB says no: no room for the map, a file system without maps.
    Database(PathBuf, heed::Error),
    /// It belongs to another version of firn.
    Foreign(PathBuf),
    /// It is damaged, and could not be put aside.
    Damaged(PathBuf, &'static str),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Files(path, error) => write!(f, "'{}': {}", path.display(), firn_host::Errno::from_ref(error)),
            Unusable::Database(path, error) => write!(f, "'{}': {error}", path.display()),
            Unusable::Foreign(path) => write!(f, "'{}' was written by another version of firn", path.display()),
            Unusable::Damaged(path, what) => write!(f, "'{}' is damaged: {what}", path.display()),
        }
    }
}

impl std::error::Error for Unusable {}

/// The tables of an open database.
#[derive(Clone)]
pub(crate) struct Environment {
    pub env: Env<WithoutTls>,
    pub records: Table,
    pub observations: Table,
    pub blobs: Table,
    pub stamps: Table,
    pub uses: Table,
    whole: Whole,
}

/// Names of the tables that hold sealed things, in the order of [`Environment::tables`].
pub(crate) const TABLES: [&str; 5] = ["records", "observations", "blobs", "stamps", "uses"];
const DATA: &str = "data.mdb";
const ABOUT: &str = "about";
const FORMAT_KEY: &[u8] = b"format";

const READERS: u32 = 500;
/// More than LMDB needs for so many readers.
const LOCK_FILE: usize = 64 << 10;
/// The least address space that is mapped; the file grows as it needs.
const LEAST_MAP: usize = 4 << 30;

impl Environment {
    /// The tables, in the order of [`TABLES`].
    pub fn tables(&self) -> [Table; 5] {
        [self.records, self.observations, self.blobs, self.stamps, self.uses]
    }

    /// Begins to write. The second part is for [`Environment::commit`].
    pub fn begin(&self) -> Result<(RwTxn<'_>, Unchanged), heed::Error> {
        let txn = self.env.write_txn()?;
        let unchanged = self.whole.is_unchanged(&self.data());
        Ok((txn, unchanged))
    }

    /// Ends what [`Environment::begin`] began.
    pub fn commit(&self, txn: RwTxn<'_>, unchanged: Unchanged) -> Result<(), heed::Error> {
        txn.commit()?;
        self.whole.written(&self.data(), unchanged);
        Ok(())
    }

    /// Notes that nobody need walk the database, if that is so.
    pub fn note_whole(&self) {
        self.whole.note(self.env.path());
    }

    fn data(&self) -> PathBuf {
        self.env.path().join(DATA)
    }

    /// Opens the database in a directory, which is made if need be. The second part says what was salvaged if it was damaged.
    pub fn open(dir: &Path, limit: u64) -> Result<(Environment, Option<Salvaged>), Unusable> {
        std::fs::create_dir_all(dir).map_err(|error| Unusable::Files(dir.to_owned(), error))?;
        match open_whole(dir, limit) {
            Err(Unusable::Damaged(_, what)) => {
                let kept = put_aside(dir)?;
                let environment = open_whole(dir, limit)?;
                let entries = kept.map_or(0, |file| crate::salvage::into(&environment, &file));
                Ok((environment, Some(Salvaged { what, entries })))
            }
            other => other.map(|environment| (environment, None)),
        }
    }
}

/// What became of a damaged database.
#[derive(Clone, Copy, Debug)]
pub struct Salvaged {
    /// The first damage found.
    pub what: &'static str,
    /// How many entries were saved.
    pub entries: usize,
}

fn open_whole(dir: &Path, limit: u64) -> Result<Environment, Unusable> {
    lay_out_locks(dir)?;
    let data = dir.join(DATA);
    let damaged = |damage: pages::Damage| Unusable::Damaged(dir.to_owned(), damage.0);
    // As it is before anything of it is read: what is written meanwhile makes it another.
    let state = walked::state(&data);
    let length = std::fs::metadata(&data).map_or(0, |metadata| metadata.len());
    if length > 0 {
        let file = File::open(&data).map_err(|error| Unusable::Files(data.clone(), error))?;
        for meta in pages::metas(&file).map_err(damaged)? {
            meta.map_err(damaged)?;
        }
    }
    let database = |error: heed::Error| match error {
        heed::Error::Mdb(heed::MdbError::Invalid | heed::MdbError::Corrupted | heed::MdbError::PageNotFound) => {
            Unusable::Damaged(dir.to_owned(), "the database cannot be read")
        }
        heed::Error::Mdb(heed::MdbError::VersionMismatch) => Unusable::Foreign(dir.to_owned()),
        heed::Error::Io(error) => Unusable::Files(dir.to_owned(), error),
        error => Unusable::Database(dir.to_owned(), error),
    };
    let wanted = limit.saturating_mul(2).max(length.saturating_mul(2));
    let map = usize::try_from(wanted).unwrap_or(LEAST_MAP).max(LEAST_MAP).next_multiple_of(1 << 20);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map).max_dbs(8).max_readers(READERS);
    // SAFETY: the file is changed by LMDB alone (its name and place say so), every process uses LMDB's own locks, no process
    // opens it twice (heed refuses), and its pages are walked below before LMDB follows them. NO_SYNC may
    // leave a damaged file after a crash of the machine (not of a process): the walk finds that, seals find the rest.
    // PERF: waiting for the disk took 40 ms of an evaluation of 160 ms.
    let env = unsafe {
        options.flags(EnvFlags::NO_SYNC);
        options.open(dir)
    };
    let env = env.map_err(database)?;
    env.clear_stale_readers().map_err(database)?;
    // PERF: 6 ms of every run with 15 MB.
    if length > 0 && !walked::is_known(dir, state.as_deref()) {
        let file = env.try_clone_inner_file().map_err(database)?;
        let mut is_walked = false;
        while !is_walked {
            let reading = env.read_txn().map_err(database)?;
            is_walked = pages::check(&file, reading.id() as u64).map_err(damaged)?;
        }
        walked::note(dir, state.as_deref());
    }
    let reading = env.read_txn().map_err(database)?;
    let open = |name: &str| env.open_database::<Bytes, Bytes>(&reading, Some(name)).map_err(database);
    let about = open(ABOUT)?;
    let format = match about {
        Some(about) => about.get(&reading, FORMAT_KEY).map_err(database)?.map(<[u8]>::to_vec),
        None => None,
    };
    let known = [open(TABLES[0])?, open(TABLES[1])?, open(TABLES[2])?, open(TABLES[3])?, open(TABLES[4])?];
    // Not dropped: handles opened in a transaction that is given up are closed with it.
    reading.commit().map_err(database)?;
    let [records, observations, blobs, stamps, uses] = match (format.as_deref(), known) {
        (Some(format), [Some(a), Some(b), Some(c), Some(d), Some(e)]) if format == [FORMAT] => [a, b, c, d, e],
        (Some(format), _) if format != [FORMAT] => return Err(Unusable::Foreign(dir.to_owned())),
        _ => create(&env).map_err(database)?,
    };
    // One that was just made is as whole as one that was walked.
    let whole = Whole::of(if length > 0 { state } else { walked::state(&data) });
    Ok(Environment { env, records, observations, blobs, stamps, uses, whole })
}

fn create(env: &Env<WithoutTls>) -> Result<[Table; 5], heed::Error> {
    let mut writing = env.write_txn()?;
    let mut open = |name: &str| env.create_database::<Bytes, Bytes>(&mut writing, Some(name));
    let tables = [open(TABLES[0])?, open(TABLES[1])?, open(TABLES[2])?, open(TABLES[3])?, open(TABLES[4])?];
    let about = open(ABOUT)?;
    about.put(&mut writing, FORMAT_KEY, &[FORMAT])?;
    writing.commit()?;
    Ok(tables)
}

/// Makes the file of locks with all its bytes in place, without touching one that is there.
fn lay_out_locks(dir: &Path) -> Result<(), Unusable> {
    let place = dir.join("lock.mdb");
    if std::fs::metadata(&place).is_ok_and(|metadata| metadata.len() >= LOCK_FILE as u64) {
        return Ok(());
    }
    let draft = dir.join(format!("lock.{}", std::process::id()));
    let made = std::fs::write(&draft, vec![0; LOCK_FILE]).and_then(|()| match std::fs::hard_link(&draft, &place) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    });
    let _ = std::fs::remove_file(&draft);
    made.map_err(|error| Unusable::Files(place, error))
}

/// Renames a damaged file; the file, to salvage from. Processes that have it open keep using it undisturbed.
fn put_aside(dir: &Path) -> Result<Option<File>, Unusable> {
    let (data, aside) = (dir.join(DATA), dir.join("damaged.mdb"));
    match std::fs::rename(&data, &aside) {
        Ok(()) => {}
        // Another process was quicker.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unusable::Files(data, error)),
    }
    let _ = std::fs::remove_file(dir.join("lock.mdb"));
    Ok(File::open(&aside).ok())
}
