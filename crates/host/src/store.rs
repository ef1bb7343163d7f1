//! `Store`: where evaluation puts sources and derivations, and who builds what it needs to read.
//!
//! Paths are computed by whoever adds (see the `store` crate), so that a store that keeps nothing is a store too:
//! [`EvalOnly`] remembers texts and references in memory, for the evaluation that made them, and writes nothing.
//! Real ones ([`open`]) write from a thread of their own (`behind`), into a directory (`local`) or through a daemon's
//! socket (`daemon`); `reference` reads how users name them, `view` lets evaluation read what they hold.

mod behind;
mod daemon;
mod local;
mod open;
mod recorded;
mod reference;
mod roots;
mod texts;
mod view;

pub use open::{Log, StoreSettings, open};
pub use recorded::RecordedStore;
pub use reference::{Kind, Places, StoreReference};
pub use texts::Text;
pub use view::StoreView;

use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use firn_store::content_address::Method;
use firn_store::context::Built;
use firn_store::nar::Sink;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};

use crate::{AbsPath, Host, HostError, archive};
use texts::{Place, Texts};

/// A tree on disk that becomes a store object.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it lies, links resolved.
    pub root: AbsPath,
    /// How it is serialised: an archive, or the bytes of one file.
    pub method: Method,
    /// What below the root is left out.
    pub excluded: HashSet<AbsPath>,
    /// What the object refers to.
    pub references: Arc<[StorePath]>,
}

/// A failure to read a source: of the disk or of the archive's rules.
#[derive(Debug)]
pub enum SourceError {
    /// The disk.
    Host(HostError),
    /// The archive, or whoever takes it.
    Store(Error),
}

impl From<HostError> for SourceError {
    fn from(error: HostError) -> SourceError {
        SourceError::Host(error)
    }
}

impl From<Error> for SourceError {
    fn from(error: Error) -> SourceError {
        SourceError::Store(error)
    }
}

impl Source {
    /// Tells `sink` the tree.
    pub fn dump(&self, host: &dyn Host, sink: &mut dyn Sink) -> Result<(), SourceError> {
        archive::dump(host, &self.root, &mut |path| Ok(!self.excluded.contains(path)), sink)
    }
}

/// What a store would do to have some objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Derivations to build.
    pub build: Vec<StorePath>,
    /// Objects to download.
    pub substitute: Vec<StorePath>,
    /// Objects that nobody knows how to get.
    pub unknown: Vec<StorePath>,
}

/// A place for store objects. One store serves one evaluation, from many threads.
pub trait Store: Send + Sync {
    /// Whether the object exists.
    fn is_valid(&self, path: &StorePath) -> Result<bool>;

    /// What the object refers to; none if that is not known.
    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>>;

    /// The bytes of a text that was added here, for those that are not on disk.
    fn text(&self, path: &StorePath) -> Option<Arc<[u8]>>;

    /// The bytes of an object that is a plain file (a derivation), whatever evaluation may see; none if there is no such.
    fn read(&self, path: &StorePath) -> Result<Option<Arc<[u8]>>>;

    /// Adds a text (`toFile`, a derivation): a plain file whose path was made of its contents by `method`.
    fn add_text(
        &self,
        path: &StorePath,
        contents: Text,
        references: Arc<[StorePath]>,
        method: Method,
    ) -> Result<()>;

    /// Evaluation has become so large that memory counts: what is kept here may take time to take less of it.
    fn spare_memory(&self) {}

    /// Adds a tree that `host` reads, now or later.
    fn add_source(&self, path: &StorePath, source: &Source, host: &Arc<dyn Host>) -> Result<(), SourceError>;

    /// Adds an object of another store, with what is known of it there. `host` reads it at `root`, now or later; whoever adds
    /// it has checked that it is what `info` says, and that this can be believed.
    fn add_object(&self, info: &Arc<PathInfo>, root: &AbsPath, host: &Arc<dyn Host>) -> Result<()>;

    /// All that is known of an object; none if it does not exist or this store keeps no such knowledge.
    fn info(&self, _path: &StorePath) -> Result<Option<Arc<PathInfo>>> {
        Ok(None)
    }

    /// Builds outputs that evaluation wants to read, and gives their paths in the same order.
    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>>;

    /// What would have to be built or downloaded to have these objects and outputs; none if this store cannot tell more
    /// than [`Store::is_valid`] does.
    fn missing(&self, _objects: &[StorePath], _outputs: &[Built]) -> Result<Option<Missing>> {
        Ok(None)
    }

    /// Whether nothing is written: paths are computed, and need not exist.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Whether this run added or built the object. What is made here may be missing from earlier answers of the host.
    fn is_made(&self, _path: &StorePath) -> bool {
        false
    }

    /// Waits until an object that was added here can be read from disk.
    fn settle(&self, _path: &StorePath) -> Result<()> {
        Ok(())
    }

    /// Waits until everything that was added is written: called before an answer names it.
    fn finish(&self) -> Result<()> {
        Ok(())
    }

    /// As [`Store::finish`], and gives up what protects this run's objects from garbage collection.
    fn close(&self) -> Result<()> {
        self.finish()
    }

    /// Makes `root` a link to the object that keeps it from being collected; false if this store has no roots.
    fn add_root(&self, _path: &StorePath, _root: &AbsPath) -> Result<bool> {
        Ok(false)
    }
}

/// Computes and remembers, writes and builds nothing. An object exists if it is on disk or was added here.
pub struct EvalOnly {
    /// The directory that holds the objects.
    real: StoreDir,
    dir: StoreDir,
    host: Arc<dyn Host>,
    made: Mutex<AllMade>,
}

#[derive(Default)]
struct AllMade {
    objects: FxHashMap<StorePath, Made>,
    /// What is known of those that came from other stores.
    infos: FxHashMap<StorePath, Arc<PathInfo>>,
    texts: Texts,
}

struct Made {
    text: Option<Place>,
    references: Arc<[StorePath]>,
}

impl EvalOnly {
    /// Nothing is made yet. `host` says what is on disk.
    pub fn new(dir: StoreDir, host: Arc<dyn Host>) -> EvalOnly {
        EvalOnly { real: dir.clone(), dir, host, made: Mutex::default() }
    }

    /// As [`EvalOnly::new`], for a store whose objects lie elsewhere than their paths say.
    pub fn of_places(places: &Places, host: Arc<dyn Host>) -> Result<EvalOnly> {
        let real = StoreDir::new(places.real.as_bytes())?;
        Ok(EvalOnly { real, dir: places.dir.clone(), host, made: Mutex::default() })
    }

    fn made(&self) -> MutexGuard<'_, AllMade> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, path: &StorePath, text: Option<&Text>, references: Arc<[StorePath]>) {
        let AllMade { objects, texts, .. } = &mut *self.made();
        objects.entry(path.clone()).or_insert_with(|| Made { text: text.map(|text| texts.keep(text)), references });
    }
}

impl Store for EvalOnly {
    fn is_valid(&self, path: &StorePath) -> Result<bool> {
        if self.made().objects.contains_key(path) {
            return Ok(true);
        }
        let fail = |error: HostError| Error::new(ErrorKind::Other, &[&error.to_bytes()]);
        let place = AbsPath::new(&self.real.print(path)).map_err(fail)?;
        Ok(self.host.file_type(&place).map_err(fail)?.is_some())
    }

    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>> {
        Ok(self.made().objects.get(path).map(|made| made.references.clone()))
    }

    fn spare_memory(&self) {
        self.made().texts.spares = true;
    }

    fn text(&self, path: &StorePath) -> Option<Arc<[u8]>> {
        let made = self.made();
        made.objects.get(path)?.text.map(|place| made.texts.get(place))
    }

    fn read(&self, path: &StorePath) -> Result<Option<Arc<[u8]>>> {
        if let Some(text) = self.text(path) {
            return Ok(Some(text));
        }
        let fail = |error: HostError| Error::new(ErrorKind::Other, &[&error.to_bytes()]);
        let place = AbsPath::new(&self.real.print(path)).map_err(fail)?;
        match self.host.read_file(&place) {
            Ok(content) => Ok(Some(content.bytes().into())),
            Err(HostError::NotFound(_)) => Ok(None),
            Err(error) => Err(fail(error)),
        }
    }

    fn add_text(&self, path: &StorePath, contents: Text, references: Arc<[StorePath]>, _: Method) -> Result<()> {
        self.remember(path, Some(&contents), references);
        Ok(())
    }

    fn add_source(&self, path: &StorePath, source: &Source, _: &Arc<dyn Host>) -> Result<(), SourceError> {
        self.remember(path, None, source.references.clone());
        Ok(())
    }

    fn add_object(&self, info: &Arc<PathInfo>, _: &AbsPath, _: &Arc<dyn Host>) -> Result<()> {
        self.remember(&info.path, None, info.references.clone().into());
        self.made().infos.insert(info.path.clone(), info.clone());
        Ok(())
    }

    fn info(&self, path: &StorePath) -> Result<Option<Arc<PathInfo>>> {
        Ok(self.made().infos.get(path).cloned())
    }

    fn is_made(&self, path: &StorePath) -> bool {
        self.made().objects.contains_key(path)
    }

    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        let Some(first) = wanted.first() else { return Ok(Vec::new()) };
        let parts: [&[u8]; 3] = [
            b"cannot build '",
            &first.display(&self.dir),
            b"' during evaluation: this evaluation has no store to build in",
        ];
        Err(Error::new(ErrorKind::Other, &parts))
    }

    fn is_read_only(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryHost, MemoryWorld};

    #[test]
    fn what_was_added_or_lies_on_disk_is_valid() {
        let world = MemoryWorld::new();
        world.write("/nix/store/0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-there", "x");
        let store = EvalOnly::new(StoreDir::default(), Arc::new(MemoryHost::new(world)));
        let there = StorePath::parse(b"0c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-there").unwrap();
        let made = StorePath::parse(b"1c3zdl1xvpmcqk1fdhbzj2w6y9cmclhz-made").unwrap();
        assert!(store.is_valid(&there).unwrap());
        assert!(!store.is_valid(&made).unwrap());
        store.add_text(&made, Text::from(&b"text"[..]), Arc::from([there.clone()]), Method::Text).unwrap();
        assert!(store.is_valid(&made).unwrap());
        assert_eq!(store.text(&made).as_deref(), Some(&b"text"[..]));
        assert_eq!(store.references(&made).unwrap().as_deref(), Some(&[there][..]));
        assert!(store.build(&[Built::new(made, Arc::from(&b"out"[..]))]).is_err());
    }
}
