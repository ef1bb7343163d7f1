//! `Fetcher`: finds the tree that an input means.
//!
//! 1. An input seen before in this run means the tree it meant then.
//! 2. A final input (of a lock file) whose store path exists is that store object: nothing is read or asked.
//! 3. Otherwise its scheme finds the tree: on disk, in the cache of downloads and clones, on the network.
//! 4. What was found is checked against what was asked for, hashed, and locked.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use firn_store::hash::{Algorithm, Format, Hash, Hasher};
use firn_store::nar;
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;

use super::attrs::Attr;
use super::cache::Cache;
use super::error::{FetchError, FetchErrorKind, shown};
use super::input::Input;
use super::registry::Registries;
use super::schemes::{Scheme, path};
use super::settings::FetchSettings;
use crate::{AbsPath, Durability, Follow, Host, Mount, Observation, Question, Sink, Store, archive};

/// Where a fetched tree is.
#[derive(Clone, Debug)]
pub enum Placed {
    /// In the store.
    InStore,
    /// Elsewhere on disk.
    Elsewhere(Mount),
}

/// A fetched tree or file.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Where it is.
    pub placed: Placed,
    /// The input, locked: with its NAR hash and what else was learned.
    pub input: Input,
    /// The store path it has or would have.
    pub store_path: StorePath,
}

/// What a scheme found: the input with what was learned, the tree, and its NAR hash where that is already known.
pub(super) struct Found {
    pub input: Input,
    pub placed: Placed,
    pub nar_hash: Option<Hash>,
}

/// The store of an evaluation, for those who look whether something is there already.
pub(super) struct InStore<'a> {
    pub store: &'a dyn Store,
    pub dir: &'a StoreDir,
}

/// Finds trees. One fetcher serves one evaluation.
pub struct Fetcher {
    /// Settings.
    pub settings: FetchSettings,
    /// Registries of flakes.
    pub registries: Registries,
    pub(super) cache: Cache,
    /// What the evaluation sees: store objects and what is mounted over them.
    seen: Arc<dyn Host>,
    disk: RwLock<Arc<dyn Host>>,
    renew: Box<dyn Fn() -> Arc<dyn Host> + Send + Sync>,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    sink: Option<Arc<dyn Sink>>,
    known: Mutex<Vec<(Input, Arc<Tree>)>>,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Fetcher {
    /// `seen` is the host of the evaluation, which refuses nothing; `renew` gives a host that has seen nothing yet, for
    /// trees that this program itself has changed; `warn` tells the user something.
    pub fn new(
        settings: FetchSettings,
        seen: Arc<dyn Host>,
        renew: impl Fn() -> Arc<dyn Host> + Send + Sync + 'static,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Fetcher {
        Fetcher {
            cache: Cache::new(settings.cache_dir.clone()),
            registries: Registries::default(),
            settings,
            disk: RwLock::new(seen.clone()),
            seen,
            renew: Box::new(renew),
            warn: Box::new(warn),
            sink: None,
            known: Mutex::default(),
        }
    }

    /// Tells `sink` what was fetched, each time it is asked for: whoever asked depends on it.
    pub fn observed_by(mut self, sink: Arc<dyn Sink>) -> Fetcher {
        self.sink = Some(sink);
        self
    }

    /// Notes what a reference was found to mean. A locked one always means that; another may mean something else by
    /// the next run, and on the network by the next moment.
    pub(super) fn observe(&self, reference: &str, answer: Option<&[u8]>, locked: bool, local: bool) {
        let Some(sink) = &self.sink else { return };
        let durability = match (locked, local) {
            (true, _) => Durability::High,
            (false, true) => Durability::Medium,
            (false, false) => Durability::Low,
        };
        let question = Question::Tree(reference.as_bytes().into());
        sink.observe(Observation::new(question, Observation::digest_bytes(answer), durability));
    }

    fn observe_tree(&self, input: &Input, found: Result<&Tree, &FetchError>) {
        if self.sink.is_some() {
            let hash = found.ok().and_then(|tree| tree.input.text("narHash"));
            let local = matches!(input.scheme, Some(Scheme::Path | Scheme::Git)) && input.source_path().is_ok_and(|path| path.is_some());
            self.observe(&input.show(), hash.map(str::as_bytes), input.is_locked(), local);
        }
    }

    /// Tells the user something.
    pub fn warn(&self, message: &str) {
        (self.warn)(message);
    }

    /// Forgets all trees and what the disk looked like: something was written there.
    pub fn forget(&self) {
        *self.disk.write().unwrap_or_else(PoisonError::into_inner) = (self.renew)();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The disk as this fetcher sees it.
    pub fn disk(&self) -> Arc<dyn Host> {
        self.disk.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The disk as it is now, for what was fetched in this run: a host that saw the cache before does not see it.
    pub fn fresh_disk(&self) -> Arc<dyn Host> {
        (self.renew)()
    }

    /// The tree that an input means.
    pub fn fetch(&self, input: &Input, store: &dyn Store, dir: &StoreDir) -> Result<Arc<Tree>, FetchError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tree)) = known.iter().find(|(asked, _)| asked == input) {
            self.observe_tree(input, Ok(tree));
            return Ok(tree.clone());
        }
        drop(known);
        let found = self.fetch_new(input, &InStore { store, dir });
        self.observe_tree(input, found.as_ref());
        let tree = Arc::new(found?);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).push((input.clone(), tree.clone()));
        Ok(tree)
    }

    fn fetch_new(&self, input: &Input, there: &InStore<'_>) -> Result<Tree, FetchError> {
        let scheme = input.scheme.ok_or_else(|| input.unsupported("cannot fetch unsupported input"))?;
        let traced = |error: FetchError| {
            error.while_doing(format!("while fetching the input '{}'", shown(input.show())))
        };
        if let Some(tree) = self.locked_in_store(input, there)? {
            return Ok(tree);
        }
        let mut found = self.find(scheme, input, there).map_err(traced)?;
        found.input.set("__final", Attr::Flag(true));
        input.check_locks(&mut found.input).map_err(traced)?;
        let hash = match found.nar_hash {
            Some(hash) => hash,
            None => self.hash(&mut found.placed, &found.input, there)?,
        };
        found.input.set("narHash", hash.to_string(Format::Sri, true));
        if let Some(wanted) = input.nar_hash()?
            && wanted != hash
        {
            // NIX: this message has the two hashes the other way round than the one given while fetching.
            return Err(input.wrong_hash(&hash, Some(&wanted)));
        }
        let store_path = found.input.store_path(there.dir)?;
        Ok(Tree { placed: found.placed, input: found.input, store_path })
    }

    fn locked_in_store(&self, input: &Input, there: &InStore<'_>) -> Result<Option<Tree>, FetchError> {
        if !input.is_final() || input.nar_hash()?.is_none() {
            return Ok(None);
        }
        let store_path = input.store_path(there.dir)?;
        let valid = there.store.is_valid(&store_path)?;
        Ok(valid.then(|| Tree { placed: Placed::InStore, input: input.clone(), store_path }))
    }

    fn find(&self, scheme: Scheme, input: &Input, there: &InStore<'_>) -> Result<Found, FetchError> {
        match scheme {
            Scheme::Path => self.find_path(input, there),
            Scheme::Git => self.find_git(input),
            Scheme::Tarball => self.find_tarball(input),
            Scheme::File => self.find_file(input),
            Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut => self.find_forge(scheme, input),
            Scheme::Mercurial => self.find_mercurial(input),
            Scheme::Indirect => {
                let shown = shown(input.show());
                Err(FetchError::new(format!("indirect input '{shown}' cannot be fetched directly")))
            }
        }
    }

    /// A directory as it lies on disk. One that is a store object called `source` is left where it is.
    fn find_path(&self, input: &Input, there: &InStore<'_>) -> Result<Found, FetchError> {
        let place = AbsPath::new(path::absolute(input)?.as_bytes())?;
        let mut input = input.clone();
        let object = there.dir.parse(place.as_bytes()).ok().filter(|object| object.name() == "source");
        let in_store = match object {
            Some(object) => there.store.is_valid(&object)?,
            None => false,
        };
        let host = if in_store { self.seen.clone() } else { self.disk() };
        let root = host.resolve_symlinks(&place, Follow::Full)?;
        let mut mount = Mount { host, root, excluded: Arc::default() };
        let (hash, newest) = hash_tree(&mut mount, &|_| true)?;
        if input.last_modified()?.is_none() {
            input.set("lastModified", Attr::Number(if in_store { 0 } else { newest }));
        }
        let placed = if in_store { Placed::InStore } else { Placed::Elsewhere(mount) };
        Ok(Found { input, placed, nar_hash: Some(hash) })
    }

    /// The NAR hash of what was found.
    fn hash(&self, placed: &mut Placed, input: &Input, there: &InStore<'_>) -> Result<Hash, FetchError> {
        let mut mount = match placed {
            Placed::Elsewhere(mount) => mount.clone(),
            Placed::InStore => {
                let root = AbsPath::new(&there.dir.print(&input.store_path(there.dir)?))?;
                Mount { host: self.seen.clone(), root, excluded: Arc::default() }
            }
        };
        Ok(hash_tree(&mut mount, &|_| true)?.0)
    }
}

/// Hashes a tree as an archive of what is kept; notes what is left out, and the time of the newest file.
pub(super) fn hash_tree(mount: &mut Mount, keep: &dyn Fn(&AbsPath) -> bool) -> Result<(Hash, u64), FetchError> {
    let mut writer = nar::Writer::new(Hasher::new(Algorithm::Sha256));
    let mut excluded = HashSet::clone(&mount.excluded);
    let host = mount.host.clone();
    let seconds = |path: &AbsPath| -> Result<u64, crate::SourceError> {
        let stat = host.lstat(path)?.ok_or_else(|| crate::HostError::NotFound(path.clone()))?;
        Ok(u64::try_from(stat.stamp.modified.0).unwrap_or(0))
    };
    let mut newest = seconds(&mount.root)?;
    let mut visit = |path: &AbsPath| -> Result<bool, crate::SourceError> {
        if excluded.contains(path) {
            return Ok(false);
        }
        if !keep(path) {
            excluded.insert(path.clone());
            return Ok(false);
        }
        newest = newest.max(seconds(path)?);
        Ok(true)
    };
    archive::dump(&*host, &mount.root, &mut visit, &mut writer)?;
    let hash = writer.finish()?.finish().0;
    mount.excluded = Arc::new(excluded);
    Ok((hash, newest))
}

impl FetchError {
    /// A mismatch between what was fetched and what was asked for.
    pub fn mismatch(message: impl Into<String>) -> FetchError {
        FetchError::of(FetchErrorKind::Mismatch, message)
    }
}
