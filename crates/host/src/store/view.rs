//! `StoreView`: a host in which the store is seen as it is now.
//!
//! A host answers each question once, but a store grows while evaluation runs: what this run added or built is asked of
//! a second snapshot, after it was written. Objects of a store below another root are seen at the paths they are named by.

use std::sync::Arc;

use firn_store::store_dir::StoreDir;

use super::{Places, Store};
use crate::host::hand_on;
use crate::{AbsPath, FileContent, FileType, Follow, Host, HostError, Listing, RealHost, RealWorld, Stat, resolve};

/// A host with a store in it.
pub struct StoreView {
    host: Arc<dyn Host>,
    store: Arc<dyn Store>,
    /// What this run made.
    made: RealHost,
    dir: StoreDir,
    real: AbsPath,
    moved: bool,
}

impl StoreView {
    /// The store over the host.
    pub fn new(host: Arc<dyn Host>, store: Arc<dyn Store>, places: &Places) -> StoreView {
        let (dir, real) = (places.dir.clone(), places.real.clone());
        let moved = real.as_bytes() != dir.as_bytes();
        StoreView { host, store, made: RealHost::new(RealWorld), dir, real, moved }
    }

    /// Where to ask about a path: none if the host behind knows, otherwise the place on disk.
    fn place(&self, path: &AbsPath) -> Result<Option<AbsPath>, HostError> {
        if !self.dir.contains(path.as_bytes()) {
            return Ok(None);
        }
        let Ok((object, rest)) = self.dir.split(path.as_bytes()) else { return Ok(None) };
        let fail = |error: firn_store::Error| HostError::Store(error.message().into());
        let is_made = self.store.is_made(&object);
        if is_made {
            self.store.settle(&object).map_err(fail)?;
        } else if !self.moved || !self.store.is_valid(&object).map_err(fail)? {
            return Ok(None);
        }
        self.real.child(object.as_bytes()).beneath(rest).map(Some)
    }

    fn ask<T>(
        &self,
        path: &AbsPath,
        question: impl Fn(&dyn Host, &AbsPath) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        match self.place(path)? {
            None => question(&*self.host, path),
            Some(place) => question(&self.made, &place),
        }
    }
}

impl Host for StoreView {
    hand_on!(self => self.host; env current_time home current_dir check_access allow);

    fn lstat(&self, path: &AbsPath) -> Result<Option<Stat>, HostError> {
        self.ask(path, |host, path| host.lstat(path))
    }

    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.ask(path, |host, path| host.read_file(path))
    }

    fn read_once(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.ask(path, |host, path| host.read_once(path))
    }

    fn read_dir(&self, path: &AbsPath) -> Result<Listing, HostError> {
        self.ask(path, |host, path| host.read_dir(path))
    }

    fn read_link(&self, path: &AbsPath) -> Result<Arc<[u8]>, HostError> {
        self.ask(path, |host, path| host.read_link(path))
    }

    fn file_type(&self, path: &AbsPath) -> Result<Option<FileType>, HostError> {
        self.ask(path, |host, path| host.file_type(path))
    }

    /// Outside the store the host behind knows its links, and remembers where they lead.
    fn resolve_symlinks(&self, path: &AbsPath, follow: Follow) -> Result<AbsPath, HostError> {
        if !self.dir.contains(path.as_bytes()) {
            let real = self.host.resolve_symlinks(path, follow)?;
            if !self.dir.contains(real.as_bytes()) {
                return Ok(real);
            }
        }
        resolve::resolve_symlinks(self, path, follow)
    }
}
