//! `MemoryWorld`: a file tree, an environment and a clock in memory, for tests and for evaluating without a disk.
//!
//! It answers as the real world does for a user without special rights: closed entries give `Permission denied`, names
//! over 255 bytes are too long. Edits take effect at once; a [`Snapshot`](crate::Snapshot) over it does not see them.
//! Setters make the directories they need, replacing whatever is in the way.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::world::{Home, ListFault, ReadFault, World};
use crate::{AbsPath, Entry, Errno, FileContent, FileType, Stamp, Stat};

const NAME_MAX: usize = 255;

/// A world in memory. Clones share one tree.
#[derive(Clone, Default)]
pub struct MemoryWorld(Arc<RwLock<State>>);

struct State {
    root: Node,
    /// Counts edits; stands for the clock of the file system.
    edits: u64,
    env: BTreeMap<Vec<u8>, Vec<u8>>,
    now: i64,
    home: Option<Vec<u8>>,
    current_dir: Vec<u8>,
}

struct Node {
    kind: Kind,
    inode: u64,
    edited: u64,
    /// Mode 000: cannot be opened, listed, or passed through.
    closed: bool,
}

enum Kind {
    File { bytes: Vec<u8>, executable: bool },
    Directory(BTreeMap<Box<[u8]>, Node>),
    Symlink(Vec<u8>),
    Special(FileType),
}

impl Default for State {
    fn default() -> State {
        State {
            root: Node { kind: Kind::Directory(BTreeMap::new()), inode: 0, edited: 0, closed: false },
            edits: 0,
            env: BTreeMap::new(),
            now: 0,
            home: None,
            current_dir: b"/".to_vec(),
        }
    }
}

impl MemoryWorld {
    /// An empty root directory, an empty environment, midnight of 1 January 1970.
    pub fn new() -> MemoryWorld {
        MemoryWorld::default()
    }

    /// Writes a regular file.
    pub fn write(&self, path: impl AsRef<[u8]>, bytes: impl Into<Vec<u8>>) {
        self.put(path.as_ref(), Kind::File { bytes: bytes.into(), executable: false });
    }

    /// Writes a regular file its owner may execute.
    pub fn write_executable(&self, path: impl AsRef<[u8]>, bytes: impl Into<Vec<u8>>) {
        self.put(path.as_ref(), Kind::File { bytes: bytes.into(), executable: true });
    }

    /// Makes a directory; an existing one keeps its entries.
    pub fn mkdir(&self, path: impl AsRef<[u8]>) {
        self.edit(path.as_ref(), |node| {
            if !matches!(node.kind, Kind::Directory(_)) {
                node.kind = Kind::Directory(BTreeMap::new());
            }
        });
    }

    /// Makes a symbolic link with this target.
    pub fn symlink(&self, path: impl AsRef<[u8]>, target: impl Into<Vec<u8>>) {
        self.put(path.as_ref(), Kind::Symlink(target.into()));
    }

    /// Makes a device, pipe or socket: anything without bytes, entries or target.
    pub fn special(&self, path: impl AsRef<[u8]>, file_type: FileType) {
        self.put(path.as_ref(), Kind::Special(file_type));
    }

    /// Takes all permissions away, as `chmod 000` does.
    pub fn close(&self, path: impl AsRef<[u8]>) {
        self.edit(path.as_ref(), |node| node.closed = true);
    }

    /// Gives the permissions back.
    pub fn open(&self, path: impl AsRef<[u8]>) {
        self.edit(path.as_ref(), |node| node.closed = false);
    }

    /// Removes what is there, with all below it.
    pub fn remove(&self, path: impl AsRef<[u8]>) {
        let path = AbsPath::canonical(&[path.as_ref()]);
        let (Some(parent), Some(name)) = (path.parent(), path.base_name()) else { return };
        let mut state = self.state_mut();
        if let Some(Node { kind: Kind::Directory(entries), .. }) = state.root.find_mut(&parent) {
            entries.remove(name);
        }
    }

    /// Sets an environment variable.
    pub fn set_env(&self, name: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.state_mut().env.insert(name.into(), value.into());
    }

    /// Unsets an environment variable.
    pub fn unset_env(&self, name: impl AsRef<[u8]>) {
        self.state_mut().env.remove(name.as_ref());
    }

    /// Sets the clock, in seconds since 1970.
    pub fn set_time(&self, now: i64) {
        self.state_mut().now = now;
    }

    /// Sets what the password database says; `HOME` in the environment goes before it.
    pub fn set_home(&self, home: impl Into<Vec<u8>>) {
        self.state_mut().home = Some(home.into());
    }

    /// Sets the directory the process runs in.
    pub fn set_current_dir(&self, dir: impl Into<Vec<u8>>) {
        self.state_mut().current_dir = dir.into();
    }

    fn put(&self, path: &[u8], kind: Kind) {
        self.edit(path, |node| node.kind = kind);
    }

    /// Makes the entry if needed and edits it. The root stays a directory.
    fn edit(&self, path: &[u8], edit: impl FnOnce(&mut Node)) {
        let path = AbsPath::canonical(&[path]);
        let mut state = self.state_mut();
        state.edits += 1;
        let now = state.edits;
        let mut node = &mut state.root;
        for name in path.components() {
            node = node.entries_or_emptied().entry(name.into()).or_insert_with(|| Node {
                kind: Kind::Directory(BTreeMap::new()),
                inode: now,
                edited: now,
                closed: false,
            });
        }
        edit(node);
        node.edited = now;
        if path.is_root() {
            node.entries_or_emptied();
        }
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    fn entries_or_emptied(&mut self) -> &mut BTreeMap<Box<[u8]>, Node> {
        if !matches!(self.kind, Kind::Directory(_)) {
            self.kind = Kind::Directory(BTreeMap::new());
        }
        match &mut self.kind {
            Kind::Directory(entries) => entries,
            _ => unreachable!("made a directory above"),
        }
    }

    /// What is at the path as a kernel finds it without following links: none if nothing is.
    fn find(&self, path: &AbsPath) -> Result<Option<&Node>, Errno> {
        let mut node = self;
        for name in path.components() {
            let Kind::Directory(entries) = &node.kind else { return Ok(None) };
            if node.closed {
                return Err(Errno::EACCES);
            }
            if name.len() > NAME_MAX {
                return Err(Errno::ENAMETOOLONG);
            }
            let Some(next) = entries.get(name) else { return Ok(None) };
            node = next;
        }
        Ok(Some(node))
    }

    fn find_mut(&mut self, path: &AbsPath) -> Option<&mut Node> {
        path.components().try_fold(self, |node, name| match &mut node.kind {
            Kind::Directory(entries) => entries.get_mut(name),
            _ => None,
        })
    }

    fn file_type(&self) -> FileType {
        match &self.kind {
            Kind::File { .. } => FileType::Regular,
            Kind::Directory(_) => FileType::Directory,
            Kind::Symlink(_) => FileType::Symlink,
            Kind::Special(file_type) => *file_type,
        }
    }

    fn stamp(&self) -> Stamp {
        let size = match &self.kind {
            Kind::File { bytes, .. } => bytes.len() as u64,
            _ => 0,
        };
        let edited = (0, i64::try_from(self.edited).unwrap_or(i64::MAX));
        Stamp { device: 0, inode: self.inode, size, modified: edited, changed: edited }
    }
}

impl World for MemoryWorld {
    fn stat(&self, path: &AbsPath) -> Result<Option<Stat>, Errno> {
        let state = self.state();
        Ok(state.root.find(path)?.map(|node| Stat {
            file_type: node.file_type(),
            executable: matches!(node.kind, Kind::File { executable: true, .. }) && !node.closed,
            stamp: node.stamp(),
        }))
    }

    fn read(&self, path: &AbsPath) -> Result<FileContent, ReadFault> {
        let state = self.state();
        let node = state.root.find(path).map_err(ReadFault::Open)?.ok_or(ReadFault::Open(Errno::ENOENT))?;
        if node.closed {
            return Err(ReadFault::Open(Errno::EACCES));
        }
        match &node.kind {
            Kind::File { bytes, .. } => Ok(FileContent::new(bytes.clone())),
            Kind::Special(FileType::Socket) => Err(ReadFault::Open(Errno::ENXIO)),
            _ => Err(ReadFault::NotRegular),
        }
    }

    fn list(&self, path: &AbsPath) -> Result<Vec<Entry>, ListFault> {
        let state = self.state();
        let node = state.root.find(path).map_err(ListFault::Open)?.ok_or(ListFault::Open(Errno::ENOENT))?;
        match &node.kind {
            Kind::Directory(_) if node.closed => Err(ListFault::Open(Errno::EACCES)),
            Kind::Directory(entries) => {
                Ok(entries.iter().map(|(name, node)| (name.clone(), Some(node.file_type()))).collect())
            }
            _ => Err(ListFault::Open(Errno::ENOTDIR)),
        }
    }

    fn link(&self, path: &AbsPath) -> Result<Vec<u8>, Errno> {
        let state = self.state();
        match &state.root.find(path)?.ok_or(Errno::ENOENT)?.kind {
            Kind::Symlink(target) => Ok(target.clone()),
            _ => Err(Errno::EINVAL),
        }
    }

    fn env(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.state().env.get(name).cloned()
    }

    fn now(&self) -> i64 {
        self.state().now
    }

    fn home(&self) -> Home {
        let state = self.state();
        let path = state.env.get(&b"HOME"[..]).or(state.home.as_ref()).cloned();
        Home { path, warning: None }
    }

    fn current_dir(&self) -> Result<Vec<u8>, Errno> {
        Ok(self.state().current_dir.clone())
    }
}
