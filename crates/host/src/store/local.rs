//! `Local`: a store directory with its database, laid out as Nix lays it out, written without Nix's help.
//!
//! A crash at any point leaves a store that Nix accepts, because a batch is written in this order: its objects become
//! temporary roots; their paths are locked; each grows beside its place and is moved there whole; all are registered in
//! one transaction; the locks are given back. Building needs a builder: a `nix-daemon` is run on this store for it.
#![allow(clippy::disallowed_methods)]

mod database;
mod locks;
mod restore;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use firn_store::content_address::{ContentAddress, Method};
use firn_store::context::Built;
use firn_store::derivation::Derivation;
use firn_store::hash::{Algorithm, Format, Hash, Hasher};
use firn_store::nar::{self, Sink};
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::{References, StoreDir};
use firn_store::{Error, ErrorKind, Result};

use super::behind::{Backend, Content, Item};
use super::daemon::Daemon;
use super::reference::Places;
use super::{Missing, Source, SourceError, StoreSettings, roots};
use crate::{AbsPath, Errno, Host};
use database::{Database, Registration, SCHEMA};
use locks::{PathLocks, TempRoots};
use restore::Restore;

/// A store directory that this process writes.
pub(super) struct Local {
    places: Places,
    settings: StoreSettings,
    database: Database,
    /// What this process holds against the garbage collector.
    roots: Mutex<TempRoots>,
    /// The builder, once it was needed.
    builder: Mutex<Option<Daemon>>,
    /// The user was told that there is none to ask about caches.
    knows_no_caches: Once,
    /// Its lock says that the schema stays as it is.
    _schema: File,
}

pub(super) fn refused(doing: &str, path: &Path, error: std::io::Error) -> Error {
    let path = path.as_os_str().as_encoded_bytes();
    Error::new(ErrorKind::Other, &[doing.as_bytes(), b" '", path, b"': ", Errno::from(error).to_string().as_bytes()])
}

impl Local {
    /// Opens a store, making what is missing of it.
    pub fn open(places: Places, settings: StoreSettings) -> Result<Local> {
        make_directories(&places, &settings)?;
        let db = places.state.child(b"db");
        let schema = locks::hold_schema(db.child(b"big-lock").as_path())?;
        let version = read_schema(&db)?;
        match version {
            Some(SCHEMA) | None => {}
            Some(newer) if newer > SCHEMA => {
                let message = format!("current Nix store schema is version {newer}, but I only support {SCHEMA}");
                return Err(Error::new(ErrorKind::Other, &[message.as_bytes()]));
            }
            Some(older) => {
                let message = format!(
                    "the store's database has schema version {older}: let a newer Nix open it once to bring it up to {SCHEMA}"
                );
                return Err(Error::new(ErrorKind::Other, &[message.as_bytes()]));
            }
        }
        let database =
            Database::open(&db, places.dir.clone(), version.is_none(), settings.wal, settings.fsync_metadata)?;
        if version.is_none() {
            write_schema(&db)?;
        }
        let roots = Mutex::new(TempRoots::open(&places.state, places.dir.clone())?);
        Ok(Local { places, settings, database, roots, builder: Mutex::default(), knows_no_caches: Once::new(), _schema: schema })
    }

    fn dir(&self) -> &StoreDir {
        &self.places.dir
    }

    fn lock_roots(&self) -> MutexGuard<'_, TempRoots> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the daemon that is run on this store, for what is wanted.
    fn with_daemon<T>(&self, wanted: &[Built], ask: impl FnOnce(&Daemon) -> Result<T>) -> Result<T> {
        let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        let daemon = match builder.take() {
            Some(daemon) => daemon,
            None => Daemon::spawn(&self.places, &self.settings, wanted)?,
        };
        ask(builder.insert(daemon))
    }

    /// Writes one object and says what to register. One that fails leaves nothing.
    fn write_one(&self, item: &Item) -> Result<Registration> {
        // The digest in front makes the collector spare it as it spares the root of that digest, and no one else.
        let name = format!("{}-tmp-{}", item.path.digest_part(), std::process::id());
        let at = self.places.real.child(name.as_bytes()).as_path().to_owned();
        restore::delete(&at)?;
        self.write_at(item, &at).inspect_err(|_| drop(restore::delete(&at)))
    }

    /// Writes one object beside its place first.
    fn write_at(&self, item: &Item, at: &Path) -> Result<Registration> {
        let sync = self.settings.fsync_store_paths;
        let (mut deriver, mut signatures) = (None, Vec::new());
        let (address, (nar_hash, nar_size)) = match &item.content {
            Content::Text(text, method) => (Some(address_of(text, *method)?), write_text(at, text, sync)?),
            Content::Object(info, root, host) => {
                let nar = write_tree(at, &object_source(info, root), &**host, sync)?;
                check_object(self.dir(), info, nar)?;
                (deriver, signatures) = (info.deriver.clone(), info.signatures.clone());
                (info.address, nar)
            }
            Content::Tree(source, host) if source.method == Method::Flat => {
                let content =
                    host.read_once(&source.root).map_err(|e| Error::new(ErrorKind::Other, &[&e.to_bytes()]))?;
                let address =
                    ContentAddress { method: Method::Flat, hash: Hash::of(Algorithm::Sha256, content.bytes()) };
                check(self.dir(), item, source, &address)?;
                (Some(address), write_text(at, content.bytes(), sync)?)
            }
            Content::Tree(source, host) => {
                let nar = write_tree(at, source, &**host, sync)?;
                let address = ContentAddress { method: Method::Nar, hash: nar.0 };
                check(self.dir(), item, source, &address)?;
                (Some(address), nar)
            }
        };
        let place = self.places.real.child(item.path.as_bytes());
        // Whatever lies there is not registered: the rest of a run that was cut off.
        restore::delete(place.as_path())?;
        restore::move_into_place(at, place.as_path())?;
        let references = item.references.clone();
        let outputs = outputs_of(self.dir(), item)?;
        Ok(Registration { path: item.path.clone(), references, nar_hash, nar_size, address, deriver, signatures, outputs })
    }

    fn unregistered<'a>(&self, items: impl Iterator<Item = &'a Item>) -> Result<Vec<&'a Item>> {
        let mut missing = Vec::new();
        for item in items {
            if !self.database.is_valid(&item.path)? {
                missing.push(item);
            }
        }
        Ok(missing)
    }
}

impl Backend for Local {
    fn is_valid(&self, path: &StorePath) -> Result<bool> {
        self.database.is_valid(path)
    }

    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>> {
        Ok(self.database.references(path)?.map(Arc::from))
    }

    fn info(&self, path: &StorePath) -> Result<Option<PathInfo>> {
        self.database.info(path)
    }

    fn write(&self, batch: &[Item]) -> Result<()> {
        self.lock_roots().add(batch.iter().map(|item| &item.path))?;
        let missing = self.unregistered(batch.iter())?;
        let mut paths: Vec<&StorePath> = missing.iter().map(|item| &item.path).collect();
        paths.sort();
        let locks = PathLocks::lock(&self.places.real, paths.into_iter())?;
        // Others may have written some while we waited for the locks.
        let missing = self.unregistered(missing.into_iter())?;
        let mut registrations = Vec::with_capacity(missing.len());
        for item in missing {
            registrations.push(self.write_one(item)?);
        }
        if !registrations.is_empty() {
            self.database.register(&registrations)?;
        }
        drop(locks);
        Ok(())
    }

    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        self.with_daemon(wanted, |daemon| daemon.build(wanted))
    }

    /// Which caches there are and what is in them only a daemon knows.
    fn missing(&self, objects: &[StorePath], outputs: &[Built]) -> Result<Option<Missing>> {
        let asked = self.with_daemon(outputs, |daemon| Ok(daemon.missing(objects, outputs)));
        asked.unwrap_or_else(|unstarted| {
            self.knows_no_caches.call_once(|| {
                let parts: [&[u8]; 2] = [b"warning: nothing is known of caches, only of the store itself: ", unstarted.message()];
                (self.settings.log)(&parts.concat());
            });
            Ok(None)
        })
    }

    fn add_root(&self, path: &StorePath, root: &AbsPath) -> Result<()> {
        self.lock_roots().add(std::iter::once(path))?;
        roots::make(self.dir(), path, root)?;
        roots::register_indirect(&self.places.state, root)
    }

    fn close(&self) {
        self.lock_roots().forget();
    }
}

fn make_directories(places: &Places, settings: &StoreSettings) -> Result<()> {
    let make = |path: &AbsPath| {
        std::fs::create_dir_all(path.as_path()).map_err(|e| refused("creating directory", path.as_path(), e))
    };
    let state = &places.state;
    make(&places.real)?;
    make(&places.real.child(b".links"))?;
    make(&state.child(b"temproots"))?;
    make(&state.child(b"db"))?;
    make(&state.child(b"profiles").child(b"per-user"))?;
    make(&state.child(b"gcroots").child(b"per-user"))?;
    let profiles = state.child(b"gcroots").child(b"profiles");
    if profiles.as_path().symlink_metadata().is_err() {
        // As Nix has it: profiles are roots. Another process may have been quicker.
        let _ = std::os::unix::fs::symlink(state.child(b"profiles").as_path(), profiles.as_path());
    }
    let mut above = (!settings.allow_symlinked_store).then(|| places.real.clone());
    while let Some(path) = above {
        if path.as_path().is_symlink() {
            let parts: [&[u8]; 3] = [
                b"the path '",
                path.as_bytes(),
                b"' is a symlink; this is not allowed for the Nix store and its parent directories",
            ];
            return Err(Error::new(ErrorKind::Other, &parts));
        }
        above = path.parent();
    }
    Ok(())
}

/// NIX: a process that makes a store empties this file and then writes it, holding nothing that would keep others away.
/// So a file that is empty is given a moment.
fn read_schema(db: &AbsPath) -> Result<Option<u32>> {
    let name = db.child(b"schema");
    let mut patience = 600;
    loop {
        match std::fs::read_to_string(name.as_path()) {
            Ok(text) if text.is_empty() && patience > 0 => {
                patience -= 1;
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            Ok(text) => {
                let corrupt = |_| Error::new(ErrorKind::Other, &[b"'", name.as_bytes(), b"' is corrupt"]);
                return text.trim().parse().map(Some).map_err(corrupt);
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused("opening file", name.as_path(), error)),
        }
    }
}

/// Never half-written: another process may be reading it.
fn write_schema(db: &AbsPath) -> Result<()> {
    let name = db.child(b"schema");
    let begun = db.child(format!("schema-tmp-{}", std::process::id()).as_bytes());
    std::fs::write(begun.as_path(), SCHEMA.to_string()).map_err(|e| refused("writing to", begun.as_path(), e))?;
    std::fs::rename(begun.as_path(), name.as_path()).map_err(|e| refused("renaming", begun.as_path(), e))
}

/// The address of a text that was added by `method`.
pub(super) fn address_of(text: &[u8], method: Method) -> Result<ContentAddress> {
    let hash = match method {
        Method::Text | Method::Flat => Hash::of(Algorithm::Sha256, text),
        Method::Nar => nar::dump_file(text, Hasher::new(Algorithm::Sha256))?.finish().0,
        Method::Git => return Err(Error::new(ErrorKind::Other, &[b"texts are not added by their Git hash"])),
    };
    Ok(ContentAddress { method, hash })
}

/// The outputs of a derivation that is being added, where their paths are known.
fn outputs_of(dir: &StoreDir, item: &Item) -> Result<Vec<(Vec<u8>, StorePath)>> {
    let Content::Text(text, Method::Text) = &item.content else { return Ok(Vec::new()) };
    if !item.path.is_derivation() {
        return Ok(Vec::new());
    }
    let drv = Derivation::parse_aterm(dir, item.path.derivation_name()?.as_bytes(), text)?;
    let mut outputs = Vec::new();
    for (name, output) in drv.outputs.iter() {
        if let Some(path) = output.path(dir, &drv.name, name)? {
            outputs.push((name.to_vec(), path));
        }
    }
    Ok(outputs)
}

fn write_text(at: &Path, text: &[u8], sync: bool) -> Result<(Hash, u64)> {
    let mut file = Restore::new(at.to_owned(), sync);
    file.regular(false, text.len() as u64)?;
    file.contents(text)?;
    file.end_regular()?;
    Ok(nar::dump_file(text, Hasher::new(Algorithm::Sha256))?.finish())
}

fn write_tree(at: &Path, source: &Source, host: &dyn Host, sync: bool) -> Result<(Hash, u64)> {
    let mut both = Both(Restore::new(at.to_owned(), sync), nar::Writer::new(Hasher::new(Algorithm::Sha256)));
    source.dump(host, &mut both).map_err(source_error)?;
    Ok(both.1.finish()?.finish())
}

/// An error of reading a source as one of the store.
pub(super) fn source_error(error: SourceError) -> Error {
    match error {
        SourceError::Host(error) => Error::new(ErrorKind::Other, &[&error.to_bytes()]),
        SourceError::Store(error) => error,
    }
}

/// Refuses a source that is not what it was when its path was made.
fn check(dir: &StoreDir, item: &Item, source: &Source, address: &ContentAddress) -> Result<()> {
    let references = References { others: &item.references, itself: false };
    let path = dir.make_fixed_output_path(item.path.name().as_bytes(), address, references)?;
    if path == item.path {
        return Ok(());
    }
    let parts: [&[u8]; 3] = [b"'", source.root.as_bytes(), b"' changed while it was being added to the store"];
    Err(Error::new(ErrorKind::Other, &parts))
}

/// An object of another store as a tree to be written.
pub(super) fn object_source(info: &PathInfo, root: &AbsPath) -> Source {
    let references = info.references.clone().into();
    Source { root: root.clone(), method: Method::Nar, excluded: Default::default(), references }
}

/// Refuses an object that is not what is known of it: it was checked when it came, and has changed since.
fn check_object(dir: &StoreDir, info: &PathInfo, (hash, size): (Hash, u64)) -> Result<()> {
    if (hash, size) == (info.nar_hash, info.nar_size) {
        return Ok(());
    }
    let hashes = [info.nar_hash, hash].map(|hash| hash.to_string(Format::Sri, true));
    let parts: [&[u8]; 6] = [
        b"hash mismatch importing path '",
        &dir.print(&info.path),
        b"';\n  specified: ",
        hashes[0].as_bytes(),
        b"\n  got:       ",
        hashes[1].as_bytes(),
    ];
    Err(Error::new(ErrorKind::Other, &parts))
}

/// Tells two sinks the same tree.
struct Both<A, B>(A, B);

impl<A: Sink, B: Sink> Sink for Both<A, B> {
    fn directory(&mut self) -> Result<()> {
        self.0.directory()?;
        self.1.directory()
    }
    fn entry(&mut self, name: &[u8]) -> Result<()> {
        self.0.entry(name)?;
        self.1.entry(name)
    }
    fn end_directory(&mut self) -> Result<()> {
        self.0.end_directory()?;
        self.1.end_directory()
    }
    fn regular(&mut self, executable: bool, size: u64) -> Result<()> {
        self.0.regular(executable, size)?;
        self.1.regular(executable, size)
    }
    fn contents(&mut self, data: &[u8]) -> Result<()> {
        self.0.contents(data)?;
        self.1.contents(data)
    }
    fn end_regular(&mut self) -> Result<()> {
        self.0.end_regular()?;
        self.1.end_regular()
    }
    fn symlink(&mut self, target: &[u8]) -> Result<()> {
        self.0.symlink(target)?;
        self.1.symlink(target)
    }
}
