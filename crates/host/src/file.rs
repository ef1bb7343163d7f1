//! What files look like from inside: type, content, listing, stamp.
//!
//! Contents and listings are shared, not copied, and carry their digest, computed at most once and from the very bytes
//! that were handed out.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::digest::{Digest, Fold};

/// The type of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// A socket.
    Socket,
    /// A named pipe.
    Fifo,
    /// Anything else.
    Unknown,
}

impl FileType {
    /// The word `readFileType` and `readDir` give: Nix knows three types and calls the rest `unknown`.
    pub fn nix_name(self) -> &'static str {
        match self {
            FileType::Regular => "regular",
            FileType::Directory => "directory",
            FileType::Symlink => "symlink",
            _ => "unknown",
        }
    }
}

/// What identifies one state of a file to the operating system. Equal stamps vouch for equal content (spec L2.4),
/// provided the stamp is [settled](Stamp::is_settled).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last modification, seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Last status change, seconds and nanoseconds.
    pub changed: (i64, i64),
}

impl Stamp {
    /// Whether the last change lies at least two seconds before `now`. A younger stamp may be shared by two contents
    /// written within one tick of the file system's clock, and must not vouch.
    pub fn is_settled(&self, now: i64) -> bool {
        let latest = self.modified.0.max(self.changed.0);
        latest.checked_add(2).is_some_and(|settled| settled <= now)
    }
}

/// What `lstat` tells about a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stat {
    /// The type, links not followed.
    pub file_type: FileType,
    /// Whether the owner may execute it; only regular files can be.
    pub executable: bool,
    /// The state it was in.
    pub stamp: Stamp,
}

/// The bytes of a file, shared.
#[derive(Clone)]
pub struct FileContent(Arc<ContentInner>);

struct ContentInner {
    bytes: Arc<Vec<u8>>,
    digest: OnceLock<Digest>,
}

impl FileContent {
    /// Takes the bytes as read.
    pub fn new(bytes: Vec<u8>) -> FileContent {
        FileContent(Arc::new(ContentInner { bytes: Arc::new(bytes), digest: OnceLock::new() }))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The bytes for a caller that keeps them as they are.
    pub fn shared(&self) -> Arc<Vec<u8>> {
        self.0.bytes.clone()
    }

    /// The bytes for a caller that changes or keeps them; not copied if nobody else has them.
    pub fn into_bytes(self) -> Vec<u8> {
        let bytes = self.shared();
        drop(self);
        Arc::unwrap_or_clone(bytes)
    }

    /// Whether it is one and the same.
    pub(crate) fn is_same(&self, other: &FileContent) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How many hold it.
    #[cfg(test)]
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The BLAKE3 of the bytes, computed on first use.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| Digest::of_content(&self.0.bytes))
    }
}

impl PartialEq for FileContent {
    fn eq(&self, other: &FileContent) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for FileContent {}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileContent({} bytes)", self.bytes().len())
    }
}

/// One name in a directory; the type is absent where the operating system would not tell it.
pub type Entry = (Box<[u8]>, Option<FileType>);

/// A directory's entries in byte order, without `.` and `..`, shared.
#[derive(Clone)]
pub struct Listing(Arc<ListingInner>);

struct ListingInner {
    entries: Vec<Entry>,
    digest: OnceLock<Digest>,
}

impl Listing {
    /// Sorts the entries by name.
    pub fn new(mut entries: Vec<Entry>) -> Listing {
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Listing(Arc::new(ListingInner { entries, digest: OnceLock::new() }))
    }

    /// The entries in byte order of their names.
    pub fn entries(&self) -> &[Entry] {
        &self.0.entries
    }

    /// The entry of this name, if there is one.
    pub fn get(&self, name: &[u8]) -> Option<&Entry> {
        let entries = self.entries();
        entries.binary_search_by(|(entry, _)| (**entry).cmp(name)).ok().and_then(|index| entries.get(index))
    }

    /// The digest of names and types, computed on first use.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| {
            let names: usize = self.entries().iter().map(|(name, _)| name.len() + 16).sum();
            let mut fold = Fold::with_room("directory", names);
            for (name, file_type) in self.entries() {
                fold.bytes(name).tag(type_tag(*file_type));
            }
            fold.finish()
        })
    }
}

/// How many tags there are.
pub(crate) const TYPE_TAGS: usize = 5;

/// Types as Nix tells them apart: one device for another is no change.
pub(crate) fn type_tag(file_type: Option<FileType>) -> u8 {
    match file_type {
        None => 0,
        Some(FileType::Regular) => 1,
        Some(FileType::Directory) => 2,
        Some(FileType::Symlink) => 3,
        Some(
            FileType::CharDevice | FileType::BlockDevice | FileType::Socket | FileType::Fifo | FileType::Unknown,
        ) => 4,
    }
}

impl PartialEq for Listing {
    fn eq(&self, other: &Listing) -> bool {
        self.entries() == other.entries()
    }
}

impl Eq for Listing {}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.entries().iter().map(|(name, kind)| (String::from_utf8_lossy(name), *kind));
        f.debug_map().entries(shown).finish()
    }
}
