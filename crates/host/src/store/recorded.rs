//! `RecordedStore`: a store that writes down what it was asked about objects that this run did not make.
//!
//! What was added here follows from what evaluation did; what lay there before is an answer from outside. An output that
//! was built is what its derivation says, unless only building tells its path: then nothing rests on it for longer than
//! this run.

use std::sync::Arc;

use firn_store::content_address::Method;
use firn_store::context::Built;
use firn_store::derivation::Derivation;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;
use firn_store::Result;

use super::{Missing, Source, SourceError, Store, Text};
use crate::digest::{Digest, Fold};
use crate::{AbsPath, Durability, Host, Observation, Question, Sink};

/// A store that tells a sink what it was asked.
pub struct RecordedStore {
    store: Arc<dyn Store>,
    dir: StoreDir,
    sink: Arc<dyn Sink>,
}

impl RecordedStore {
    /// Tells `sink` what `store` was asked.
    pub fn new(store: Arc<dyn Store>, dir: StoreDir, sink: Arc<dyn Sink>) -> RecordedStore {
        RecordedStore { store, dir, sink }
    }

    /// The digest of what a store says of an object: whether it exists and what it refers to. Asked again to verify.
    pub fn digest_object(store: &dyn Store, path: &StorePath) -> Option<Digest> {
        let mut fold = Fold::new("store object");
        fold.tag(store.is_valid(path).ok()?.into());
        match store.references(path).ok()? {
            None => fold.tag(0),
            Some(references) => {
                let mut names: Vec<&[u8]> = references.iter().map(StorePath::as_bytes).collect();
                names.sort_unstable();
                fold.tag(1).number(names.len() as i64);
                names.into_iter().fold(&mut fold, |fold, name| fold.bytes(name))
            }
        };
        Some(fold.finish())
    }

    fn note(&self, path: &StorePath) {
        if self.store.is_made(path) {
            return;
        }
        let printed: Arc<[u8]> = self.dir.print(path).into();
        let observation = match Self::digest_object(&*self.store, path) {
            Some(digest) => Observation::new(Question::StorePath(printed), digest, Durability::Medium),
            // A store that fails is asked anew next time, by evaluating.
            None => Observation::new(Question::Output(printed, Arc::default()), Observation::digest_bytes(None), Durability::Low),
        };
        self.sink.observe(observation);
    }

    /// Whether the derivation says where the output is.
    fn is_static(&self, built: &Built, path: &StorePath) -> bool {
        let known = || {
            let text = self.store.read(&built.drv).ok()??;
            let name = built.drv.derivation_name().ok()?.as_bytes();
            let drv = Derivation::parse_aterm(&self.dir, name, &text).ok()?;
            drv.outputs.get(&built.output[..])?.path(&self.dir, &drv.name, &built.output).ok()?
        };
        !built.is_dynamic() && known().as_ref() == Some(path)
    }
}

impl Store for RecordedStore {
    fn is_valid(&self, path: &StorePath) -> Result<bool> {
        let answer = self.store.is_valid(path);
        self.note(path);
        answer
    }

    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>> {
        let answer = self.store.references(path);
        self.note(path);
        answer
    }

    fn text(&self, path: &StorePath) -> Option<Arc<[u8]>> {
        self.store.text(path)
    }

    fn read(&self, path: &StorePath) -> Result<Option<Arc<[u8]>>> {
        // A derivation is named by its content: whether it is there is all there is to know.
        let answer = self.store.read(path);
        self.note(path);
        answer
    }

    fn add_text(&self, path: &StorePath, contents: Text, references: Arc<[StorePath]>, method: Method) -> Result<()> {
        self.store.add_text(path, contents, references, method)
    }

    fn spare_memory(&self) {
        self.store.spare_memory();
    }

    fn add_source(&self, path: &StorePath, source: &Source, host: &Arc<dyn Host>) -> Result<(), SourceError> {
        self.store.add_source(path, source, host)
    }

    fn add_object(&self, info: &Arc<PathInfo>, root: &AbsPath, host: &Arc<dyn Host>) -> Result<()> {
        self.store.add_object(info, root, host)
    }

    /// More than [`RecordedStore::digest_object`] covers: who rests on the rest of it says so (see `fetch::closure`).
    fn info(&self, path: &StorePath) -> Result<Option<Arc<PathInfo>>> {
        let answer = self.store.info(path);
        self.note(path);
        answer
    }

    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        let paths = self.store.build(wanted)?;
        for (built, path) in wanted.iter().zip(&paths) {
            if !self.is_static(built, path) {
                let (drv, digest) = (self.dir.print(&built.drv).into(), Observation::digest_bytes(Some(path.as_bytes())));
                self.sink.observe(Observation::new(Question::Output(drv, built.output.clone()), digest, Durability::Low));
            }
        }
        Ok(paths)
    }

    /// What would have to be built or fetched is told to people, and kept nowhere.
    fn missing(&self, objects: &[StorePath], outputs: &[Built]) -> Result<Option<Missing>> {
        self.store.missing(objects, outputs)
    }

    fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    fn is_made(&self, path: &StorePath) -> bool {
        self.store.is_made(path)
    }

    fn settle(&self, path: &StorePath) -> Result<()> {
        self.store.settle(path)
    }

    fn finish(&self) -> Result<()> {
        self.store.finish()
    }

    fn close(&self) -> Result<()> {
        self.store.close()
    }

    fn add_root(&self, path: &StorePath, root: &AbsPath) -> Result<bool> {
        self.store.add_root(path, root)
    }
}
