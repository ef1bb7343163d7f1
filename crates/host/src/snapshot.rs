//! `Snapshot`: a world asked at most once per question, so that one evaluation sees one state however long it runs and
//! whatever is edited meanwhile; and a host that is safe and quick to ask from many threads.
//!
//! 1. Each path has one node, found in one of 64 shards; a node's slots are filled once and never change.
//! 2. `lstat` fills nodes from the root down. A path below anything but a directory is never asked of the world.
//! 3. Absence and failure fill a slot like any other answer.
//! 4. Resolved links are kept per path, so that the second import of a file asks nothing at all.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustc_hash::FxBuildHasher;

use crate::world::{Home, ListFault, ReadFault, World};
use crate::{
    AbsPath, Action, Errno, FileContent, FileType, Follow, Host, HostError, Listing, MemoryWorld, RealWorld, Stat,
    resolve,
};

/// The host of a real run: the operating system, seen once.
pub type RealHost = Snapshot<RealWorld>;
/// The host of a test: a tree in memory, seen once.
pub type MemoryHost = Snapshot<MemoryWorld>;

const SHARDS: usize = 64;
/// Nix opens a directory by its whole path, which the kernel refuses at this length.
const PATH_MAX: usize = 4096;

/// Paths up to this length are resolved directory by directory, by recursion.
const NEAR: usize = 512;

type Answer<T> = OnceLock<Result<T, HostError>>;

/// Everything known about one path. Contents are rare, so they sit behind one box.
#[derive(Default)]
struct Node {
    stat: Answer<Option<Stat>>,
    link: Answer<Arc<[u8]>>,
    real: Answer<AbsPath>,
    real_parent: Answer<AbsPath>,
    inside: OnceLock<Box<Inside>>,
}

#[derive(Default)]
struct Inside {
    content: Answer<FileContent>,
    listing: Answer<Listing>,
}

type Shard<K, V> = RwLock<HashMap<K, V, FxBuildHasher>>;

/// One run's view of a world.
pub struct Snapshot<W> {
    world: W,
    nodes: [Shard<AbsPath, Arc<Node>>; SHARDS],
    env: Shard<Box<[u8]>, Option<Arc<[u8]>>>,
    time: OnceLock<i64>,
    home: OnceLock<Home>,
    current_dir: Answer<AbsPath>,
}

impl<W: World> Snapshot<W> {
    /// Nothing is asked of the world until someone asks the host.
    pub fn new(world: W) -> Snapshot<W> {
        Snapshot {
            world,
            nodes: std::array::from_fn(|_| Shard::default()),
            env: Shard::default(),
            time: OnceLock::new(),
            home: OnceLock::new(),
            current_dir: OnceLock::new(),
        }
    }

    /// The world behind; what it says now may differ from what this run has seen.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// What to tell the user about `HOME`, once [`Host::home`] has been asked.
    pub fn home_warning(&self) -> Option<&str> {
        self.home.get().and_then(|home| home.warning.as_deref())
    }

    /// Whether the world still answers everything as it did, for a view of it that began at `since`. What was changed
    /// shortly before that or later counts as changed again: its state may be the same for two contents. So does what
    /// could not be seen. The environment, home and current directory of the process are taken to stay.
    pub fn still_holds(&self, since: i64) -> bool {
        let holds = |(path, node): (&AbsPath, &Arc<Node>)| {
            let as_before = match node.stat.get() {
                // Asked only where its links lead: every path on the way has a node of its own.
                None => return true,
                Some(Ok(before)) => self.world.stat(path).is_ok_and(|now| is_same(before.as_ref(), now.as_ref(), since)),
                Some(Err(HostError::SymlinkOnTheWay(_))) => true,
                Some(Err(_)) => false,
            };
            as_before && self.still_inside(path, node)
        };
        self.nodes.iter().all(|shard| shard.read().unwrap_or_else(PoisonError::into_inner).iter().all(holds))
    }

    fn still_inside(&self, path: &AbsPath, node: &Node) -> bool {
        let Some(inside) = node.inside.get() else { return true };
        let content = inside.content.get().is_none_or(Result::is_ok);
        let listing = inside.listing.get().is_none_or(|before| {
            let now = self.list_now(path, FileType::Directory);
            matches!((before, now), (Ok(before), Ok(now)) if before.entries() == now.entries())
        });
        content && listing
    }

    fn node(&self, path: &AbsPath) -> Arc<Node> {
        let hash = FxBuildHasher.hash_one(path) as usize;
        // The map inside uses the same hash's top and bottom bits; these lie between.
        let shard = &self.nodes[(hash >> 20) % SHARDS];
        if let Some(node) = shard.read().unwrap_or_else(PoisonError::into_inner).get(path) {
            return node.clone();
        }
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        shard.entry(path.clone()).or_default().clone()
    }

    /// The node of a path, if there is one.
    fn known(&self, path: &[u8]) -> Option<Arc<Node>> {
        // As in `node`: a path is hashed by its bytes.
        let hash = FxBuildHasher.hash_one(path) as usize;
        self.nodes[(hash >> 20) % SHARDS].read().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    /// The node of a path with its `stat` filled, and those of all directories above it.
    fn seen(&self, path: &AbsPath) -> Arc<Node> {
        let node = self.node(path);
        if node.stat.get().is_some() {
            return node;
        }
        // PERF: the directory of nearly every file was seen before it: 4 % of verifying a thousand packages.
        let above = path.upwards().nth(1).and_then(|dir| self.known(dir));
        if let Some(above) = above.as_ref().and_then(|above| above.stat.get()) {
            node.stat.get_or_init(|| self.stat_beneath(path, Some(above)));
            return node;
        }
        let mut unseen = vec![(path.clone(), node.clone())];
        let mut above = None;
        let mut next = path.parent();
        while let Some(dir) = next {
            let node = self.node(&dir);
            if let Some(answer) = node.stat.get() {
                above = Some(answer.clone());
                break;
            }
            next = dir.parent();
            unseen.push((dir, node));
        }
        // A loop, not recursion: two thousand directories fit a path.
        while let Some((path, node)) = unseen.pop() {
            above = Some(node.stat.get_or_init(|| self.stat_beneath(&path, above.as_ref())).clone());
        }
        node
    }

    /// Asks the world for `path`, given what is known of the directory above it (none: this is the root).
    fn stat_beneath(
        &self,
        path: &AbsPath,
        above: Option<&Result<Option<Stat>, HostError>>,
    ) -> Result<Option<Stat>, HostError> {
        let above_type = above.map(|above| above.as_ref().map(|stat| stat.as_ref().map(|stat| stat.file_type)));
        if !matches!(above_type, None | Some(Ok(Some(FileType::Directory))))
            && let (Some(above), Some(parent)) = (above_type, path.parent())
        {
            match above {
                Ok(Some(FileType::Symlink)) | Err(HostError::SymlinkOnTheWay(_)) => {
                    return Err(HostError::SymlinkOnTheWay(parent));
                }
                Ok(_) => return Ok(None),
                // NIX: the directory just above is named, wherever on the way the trouble was.
                Err(HostError::System(_, _, errno)) => {
                    return Err(HostError::System(Action::OpenDirectory, parent, *errno));
                }
                Err(other) => return Err(other.clone()),
            }
        }
        self.world.stat(path).map_err(|errno| HostError::System(Action::Status, path.clone(), errno))
    }

    /// Refuses what no kernel would walk, before a node is made for each of its countless directories.
    fn refuse_too_long(&self, path: &AbsPath) -> Result<(), HostError> {
        if path.as_bytes().len() < PATH_MAX {
            return Ok(());
        }
        match path.parent() {
            Some(parent) if parent.as_bytes().len() >= PATH_MAX => {
                Err(HostError::System(Action::OpenDirectory, parent, Errno::ENAMETOOLONG))
            }
            _ => Ok(()),
        }
    }

    /// The path with the links above it resolved, if there is none in its last place (or that one is to stay). None: the
    /// way must be walked as a whole, for the errors to be Nix's.
    // PERF: most paths lie in directories whose real path is known; walking from the root was a tenth of `--parse`.
    fn resolve_last(&self, path: &AbsPath, follow: Follow) -> Option<AbsPath> {
        let (parent, name) = (path.parent()?, path.base_name()?);
        if path.as_bytes().len() > NEAR {
            return None;
        }
        let real = self.resolve_symlinks(&parent, Follow::Full).ok()?;
        let here = if real == parent { path.clone() } else { real.child(name) };
        if follow == Follow::Full && self.lstat(&here).ok()?.is_some_and(|stat| stat.file_type == FileType::Symlink) {
            return None;
        }
        Some(here)
    }

    /// The node and the type of what is there; `NotFound` if nothing is.
    fn existing(&self, path: &AbsPath) -> Result<(Arc<Node>, FileType), HostError> {
        self.refuse_too_long(path)?;
        let node = self.seen(path);
        match node.stat.get() {
            Some(Ok(Some(stat))) => {
                let file_type = stat.file_type;
                Ok((node, file_type))
            }
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(None)) | None => Err(HostError::NotFound(path.clone())),
        }
    }

    fn read_now(&self, path: &AbsPath, file_type: FileType) -> Result<FileContent, HostError> {
        match file_type {
            FileType::Symlink => return Err(HostError::IsSymlink(path.clone())),
            // Opening a pipe waits for a writer and opening a device may do anything; both end in this error.
            FileType::Fifo | FileType::CharDevice | FileType::BlockDevice => {
                return Err(HostError::NotRegular(path.clone()));
            }
            FileType::Directory if path.is_root() => return Err(HostError::NotRegular(path.clone())),
            _ => {}
        }
        self.world.read(path).map_err(|fault| match fault {
            ReadFault::Open(Errno::ENOENT | Errno::ENOTDIR) => HostError::NotFound(path.clone()),
            ReadFault::Open(errno) => HostError::System(Action::Open, path.clone(), errno),
            ReadFault::NotRegular => HostError::NotRegular(path.clone()),
            ReadFault::Read(errno) => HostError::System(Action::Read, path.clone(), errno),
            ReadFault::Short => HostError::EndOfFile(path.clone()),
        })
    }

    fn list_now(&self, path: &AbsPath, file_type: FileType) -> Result<Listing, HostError> {
        match file_type {
            FileType::Directory => {}
            FileType::Symlink => return Err(HostError::IsSymlink(path.clone())),
            _ => return Err(HostError::NotDirectory(path.clone())),
        }
        self.world.list(path).map(Listing::new).map_err(|fault| match fault {
            ListFault::Open(Errno::ENOENT) => HostError::NotFound(path.clone()),
            ListFault::Open(Errno::ENOTDIR) => HostError::NotDirectory(path.clone()),
            ListFault::Open(errno) => HostError::System(Action::OpenDirectory, path.clone(), errno),
            ListFault::Read(errno) => HostError::System(Action::ReadDirectory, path.clone(), errno),
        })
    }
}

/// Whether what is at a path is what was there. Of a directory only that it is one: who listed it has the listing.
fn is_same(before: Option<&Stat>, now: Option<&Stat>, since: i64) -> bool {
    match (before, now) {
        (None, None) => true,
        (Some(before), Some(now)) if before.file_type == FileType::Directory => now.file_type == FileType::Directory,
        (Some(before), Some(now)) => before == now && now.stamp.is_settled(since),
        _ => false,
    }
}

impl<W: World> Host for Snapshot<W> {
    fn lstat(&self, path: &AbsPath) -> Result<Option<Stat>, HostError> {
        self.refuse_too_long(path)?;
        self.seen(path).stat.get().cloned().unwrap_or(Ok(None))
    }

    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        let (node, file_type) = self.existing(path)?;
        let inside = node.inside.get_or_init(Box::default);
        inside.content.get_or_init(|| self.read_now(path, file_type)).clone()
    }

    /// What has been read is handed out again; what has not is read and forgotten, so that hashing a large tree does
    /// not hold it in memory.
    fn read_once(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        let (node, file_type) = self.existing(path)?;
        match node.inside.get().and_then(|inside| inside.content.get()) {
            Some(known) => known.clone(),
            None => self.read_now(path, file_type),
        }
    }

    fn read_dir(&self, path: &AbsPath) -> Result<Listing, HostError> {
        let (node, file_type) = self.existing(path)?;
        let inside = node.inside.get_or_init(Box::default);
        inside.listing.get_or_init(|| self.list_now(path, file_type)).clone()
    }

    fn read_link(&self, path: &AbsPath) -> Result<Arc<[u8]>, HostError> {
        let (node, file_type) = self.existing(path)?;
        let ask = || match (file_type, self.world.link(path)) {
            (FileType::Symlink, Ok(target)) => Ok(target.into()),
            (FileType::Symlink, Err(Errno::ENOENT)) => Err(HostError::NotFound(path.clone())),
            (FileType::Symlink, Err(errno)) if errno != Errno::EINVAL => {
                Err(HostError::System(Action::ReadLink, path.clone(), errno))
            }
            _ => Err(HostError::NotSymlink(path.clone())),
        };
        node.link.get_or_init(ask).clone()
    }

    fn env(&self, name: &[u8]) -> Option<Arc<[u8]>> {
        if let Some(value) = self.env.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return value.clone();
        }
        let value = self.world.env(name).map(Arc::from);
        let mut env = self.env.write().unwrap_or_else(PoisonError::into_inner);
        env.entry(name.into()).or_insert(value).clone()
    }

    fn current_time(&self) -> i64 {
        *self.time.get_or_init(|| self.world.now())
    }

    fn home(&self) -> Result<Arc<[u8]>, HostError> {
        let home = self.home.get_or_init(|| self.world.home());
        home.path.as_deref().map(Arc::from).ok_or(HostError::NoHome)
    }

    fn current_dir(&self) -> Result<AbsPath, HostError> {
        let ask = || AbsPath::new(&self.world.current_dir().map_err(HostError::NoCurrentDir)?);
        self.current_dir.get_or_init(ask).clone()
    }

    fn resolve_symlinks(&self, path: &AbsPath, follow: Follow) -> Result<AbsPath, HostError> {
        let node = self.node(path);
        let slot = match follow {
            Follow::Full => &node.real,
            Follow::Ancestors => &node.real_parent,
        };
        // The walk asks `lstat` and `read_link` only, or for the resolved path of a directory above: no slot waits for
        // itself.
        slot.get_or_init(|| match self.resolve_last(path, follow) {
            Some(real) => Ok(real),
            None => resolve::resolve_symlinks(self, path, follow),
        })
        .clone()
    }
}
