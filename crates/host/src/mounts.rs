//! `Mounted`: a host in which trees that lie elsewhere on disk are seen at the store paths they would have.
//!
//! Fetched trees and copied sources need not be in the store to be read: the evaluator sees them at their store path,
//! and questions below it are asked of the tree itself. Put it beneath [`Restricted`](crate::Restricted) and
//! [`Recording`](crate::Recording): to both, a mounted tree is a store object like any other.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::below::Below;
use crate::host::hand_on;
use crate::{AbsPath, Entry, FileContent, FileType, Follow, Host, HostError, Listing, Stat};

/// A tree on disk, and what of it does not belong to it.
#[derive(Clone)]
pub struct Mount {
    /// Who answers about the tree.
    pub host: Arc<dyn Host>,
    /// Where it lies, links resolved.
    pub root: AbsPath,
    /// What below the root is left out, with all below it.
    pub excluded: Arc<HashSet<AbsPath>>,
}

impl Mount {
    /// Where the tree has what is seen at `path`; none if it is left out.
    fn place(&self, seen_at: &AbsPath, path: &AbsPath) -> Option<AbsPath> {
        let rest = path.as_bytes().get(seen_at.as_bytes().len()..).unwrap_or_default();
        let place = self.root.beneath(rest).ok()?;
        if self.excluded.is_empty() {
            return Some(place);
        }
        let above = std::iter::successors(Some(place.clone()), AbsPath::parent);
        let left_out = above.take_while(|dir| *dir != self.root).any(|dir| self.excluded.contains(&dir));
        (!left_out).then_some(place)
    }
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mount").field("root", &self.root).field("excluded", &self.excluded.len()).finish_non_exhaustive()
    }
}

/// A host with trees mounted over it.
///
/// ```
/// use std::sync::Arc;
/// use firn_host::{AbsPath, Host, MemoryHost, MemoryWorld, Mount, Mounted};
/// let world = MemoryWorld::new();
/// world.write("/src/a.nix", "1");
/// let below: Arc<dyn Host> = Arc::new(MemoryHost::new(world));
/// let host = Mounted::new(below.clone());
/// let mount = Mount { host: below, root: AbsPath::new(b"/src")?, excluded: Default::default() };
/// assert!(host.mount(AbsPath::new(b"/nix/store/x-source")?, mount));
/// assert_eq!(host.read_file(&AbsPath::new(b"/nix/store/x-source/a.nix")?)?.bytes(), b"1");
/// # Ok::<(), firn_host::HostError>(())
/// ```
pub struct Mounted<H> {
    host: H,
    mounts: RwLock<Below<Mount>>,
}

/// Where a question is really asked.
enum Place {
    /// Of the host behind.
    Below,
    /// Of a mounted tree: what it is seen at, the tree, the path in it (none: left out).
    Mount(AbsPath, Mount, Option<AbsPath>),
}

impl<H: Host> Mounted<H> {
    /// Nothing is mounted yet.
    pub fn new(host: H) -> Mounted<H> {
        Mounted { host, mounts: RwLock::default() }
    }

    fn place(&self, path: &AbsPath) -> Place {
        let mounts = self.mounts.read().unwrap_or_else(PoisonError::into_inner);
        match mounts.find(path) {
            Some((dir, mount)) => Place::Mount(dir.clone(), mount.clone(), mount.place(dir, path)),
            None => Place::Below,
        }
    }

    fn ask<T>(
        &self,
        path: &AbsPath,
        absent: impl FnOnce() -> Result<T, HostError>,
        question: impl FnOnce(&dyn Host, &AbsPath) -> Result<T, HostError>,
    ) -> Result<T, HostError> {
        match self.place(path) {
            Place::Below => question(&self.host, path),
            Place::Mount(.., None) => absent(),
            Place::Mount(seen_at, mount, Some(place)) => {
                question(&*mount.host, &place).map_err(|error| seen_from(error, &mount.root, &seen_at))
            }
        }
    }
}

/// An error about a path in a tree, as an error about the path that was asked for.
fn seen_from(error: HostError, root: &AbsPath, seen_at: &AbsPath) -> HostError {
    error.map_path(|path| {
        if !path.is_within(root) {
            return path.clone();
        }
        let rest = path.as_bytes().get(root.as_bytes().len()..).unwrap_or_default();
        seen_at.beneath(rest).unwrap_or_else(|_| path.clone())
    })
}

impl<H: Host> Host for Mounted<H> {
    hand_on!(self => self.host; seen_at seen_text related notes_places env current_time home current_dir check_access allow);

    fn lstat(&self, path: &AbsPath) -> Result<Option<Stat>, HostError> {
        self.ask(path, || Ok(None), |host, path| host.lstat(path))
    }

    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.ask(path, || Err(HostError::NotFound(path.clone())), |host, path| host.read_file(path))
    }

    fn read_once(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.ask(path, || Err(HostError::NotFound(path.clone())), |host, path| host.read_once(path))
    }

    fn read_code(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.ask(path, || Err(HostError::NotFound(path.clone())), |host, path| host.read_code(path))
    }

    fn read_dir(&self, path: &AbsPath) -> Result<Listing, HostError> {
        match self.place(path) {
            Place::Mount(_, mount, Some(place)) if !mount.excluded.is_empty() => {
                let listing = mount.host.read_dir(&place)?;
                let kept = |entry: &&Entry| !mount.excluded.contains(&place.child(&entry.0));
                Ok(Listing::new(listing.entries().iter().filter(kept).cloned().collect()))
            }
            _ => self.ask(path, || Err(HostError::NotFound(path.clone())), |host, path| host.read_dir(path)),
        }
    }

    fn read_link(&self, path: &AbsPath) -> Result<Arc<[u8]>, HostError> {
        self.ask(path, || Err(HostError::NotFound(path.clone())), |host, path| host.read_link(path))
    }

    fn mount(&self, seen_at: AbsPath, mount: Mount) -> bool {
        self.mounts.write().unwrap_or_else(PoisonError::into_inner).insert(seen_at, mount);
        true
    }

    fn file_type(&self, path: &AbsPath) -> Result<Option<FileType>, HostError> {
        self.ask(path, || Ok(None), |host, path| host.file_type(path))
    }

    /// Below a mount, links are followed as they are seen there; elsewhere the host behind knows better.
    fn resolve_symlinks(&self, path: &AbsPath, follow: Follow) -> Result<AbsPath, HostError> {
        if let Place::Below = self.place(path) {
            let real = self.host.resolve_symlinks(path, follow)?;
            if let Place::Below = self.place(&real) {
                return Ok(real);
            }
        }
        crate::resolve::resolve_symlinks(self, path, follow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryHost, MemoryWorld};

    fn path(raw: &str) -> AbsPath {
        AbsPath::new(raw.as_bytes()).expect("no NUL")
    }

    #[test]
    fn what_is_left_out_is_not_there() {
        let world = MemoryWorld::new();
        world.write("/src/kept/a", "1");
        world.write("/src/out/b", "2");
        let below: Arc<dyn Host> = Arc::new(MemoryHost::new(world));
        let host = Mounted::new(below.clone());
        let excluded = Arc::new(HashSet::from([path("/src/out")]));
        host.mount(path("/s/x"), Mount { host: below, root: path("/src"), excluded });
        let names: Vec<Vec<u8>> =
            host.read_dir(&path("/s/x")).expect("lists").entries().iter().map(|(name, _)| name.to_vec()).collect();
        assert_eq!(names, [b"kept".to_vec()]);
        assert_eq!(host.file_type(&path("/s/x/out/b")), Ok(None));
        assert_eq!(host.file_type(&path("/s/x/kept/a")), Ok(Some(FileType::Regular)));
        let error = host.read_file(&path("/s/x/kept")).expect_err("a directory");
        assert!(error.to_string().contains("/s/x/kept"), "{error}");
        assert_eq!(host.read_file(&path("/src/out/b")).expect("itself").bytes(), b"2");
    }
}
