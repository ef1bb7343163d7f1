//! `RealWorld`: the operating system itself. The only file of the project that calls `std::fs`, `std::env` and the
//! clock; `clippy.toml` forbids them everywhere else, because an answer that passes by the host is an unsound memo.
#![allow(clippy::disallowed_methods)]

use rustix::fs::{OFlags, RawDir};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::world::{Home, ListFault, ReadFault, World};
use crate::{AbsPath, Entry, Errno, FileContent, FileType, Stamp, Stat};

static MEASURED: AtomicBool = AtomicBool::new(false);
static SPENT: AtomicU64 = AtomicU64::new(0);

/// Measures the time that questions to the disk take from now on, in all threads.
pub fn measure_io() {
    MEASURED.store(true, Ordering::Relaxed);
}

/// The time that questions to the disk took since [`measure_io`].
pub fn io_time() -> Duration {
    Duration::from_nanos(SPENT.load(Ordering::Relaxed))
}

fn timed<T>(work: impl FnOnce() -> T) -> T {
    if !MEASURED.load(Ordering::Relaxed) {
        return work();
    }
    let start = Instant::now();
    let answer = work();
    SPENT.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
    answer
}

/// The operating system this process runs on.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealWorld;

impl World for RealWorld {
    fn stat(&self, path: &AbsPath) -> Result<Option<Stat>, Errno> {
        match timed(|| std::fs::symlink_metadata(path.as_path())) {
            Ok(metadata) => Ok(Some(stat_of(&metadata))),
            Err(error) => match Errno::from(error) {
                Errno::ENOENT | Errno::ENOTDIR => Ok(None),
                errno => Err(errno),
            },
        }
    }

    fn read(&self, path: &AbsPath) -> Result<FileContent, ReadFault> {
        timed(|| read(path))
    }

    fn list(&self, path: &AbsPath) -> Result<Vec<Entry>, ListFault> {
        timed(|| list(path))
    }

    fn link(&self, path: &AbsPath) -> Result<Vec<u8>, Errno> {
        Ok(timed(|| std::fs::read_link(path.as_path()))?.into_os_string().into_vec())
    }

    fn env(&self, name: &[u8]) -> Option<Vec<u8>> {
        std::env::var_os(OsStr::from_bytes(name)).map(OsStringExt::into_vec)
    }

    fn now(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_secs()).map_or(i64::MIN, |seconds| -seconds),
        }
    }

    /// NIX: `HOME` counts unless it is an existing directory of another user; then the password database is asked.
    fn home(&self) -> Home {
        let euid = unix::unistd::geteuid();
        let named = std::env::var_os("HOME");
        let mut warning = None;
        let mut unowned = None;
        if let Some(home) = named {
            match std::fs::metadata(&home) {
                Ok(metadata) if metadata.uid() != euid.as_raw() => unowned = Some(home.into_vec()),
                Err(error) if !matches!(Errno::from_ref(&error), Errno::ENOENT | Errno::ENOTDIR) => {
                    let shown = String::from_utf8_lossy(home.as_bytes());
                    warning = Some(format!(
                        "couldn't stat $HOME ('{shown}') for reason other than not existing, falling back to the one \
                         defined in the 'passwd' file: error: getting status of \"{shown}\": {}",
                        Errno::from_ref(&error)
                    ));
                }
                _ => return Home { path: Some(home.into_vec()), warning: None },
            }
        }
        let user = unix::unistd::User::from_uid(euid).ok().flatten();
        let path = user.map(|user| user.dir.into_os_string().into_vec()).filter(|dir| !dir.is_empty());
        if let (Some(unowned), Some(path)) = (&unowned, &path)
            && unowned != path
        {
            warning = Some(format!(
                "$HOME ('{}') is not owned by you, falling back to the one defined in the 'passwd' file ('{}')",
                String::from_utf8_lossy(unowned),
                String::from_utf8_lossy(path)
            ));
        }
        Home { path, warning }
    }

    fn current_dir(&self) -> Result<Vec<u8>, Errno> {
        Ok(std::env::current_dir()?.into_os_string().into_vec())
    }
}

fn read(path: &AbsPath) -> Result<FileContent, ReadFault> {
    let open = |error| ReadFault::Open(Errno::from(error));
    let mut file = File::open(path.as_path()).map_err(open)?;
    let before = file.metadata().map_err(open)?;
    if !before.is_file() {
        return Err(ReadFault::NotRegular);
    }
    // NIX: exactly as many bytes as the size says; files of `/proc`, whose size is 0, read as empty.
    let size = usize::try_from(before.len()).map_err(|_| ReadFault::Read(Errno::EIO))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| ReadFault::Read(Errno::EIO))?;
    let read = |error| ReadFault::Read(Errno::from(error));
    (&mut file).take(before.len()).read_to_end(&mut bytes).map_err(read)?;
    if bytes.len() < size {
        return Err(ReadFault::Short);
    }
    Ok(FileContent::new(bytes))
}

// PERF: nixpkgs 2026 lists seven hundred directories before its first package. `std::fs::read_dir` allocates for each of them and
// thrice for each name: a fifth of the time of verifying an answer that comes from elsewhere.
fn list(path: &AbsPath) -> Result<Vec<Entry>, ListFault> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path.as_path(), flags, rustix::fs::Mode::empty());
    let directory = directory.map_err(|errno| ListFault::Open(std::io::Error::from(errno).into()))?;
    let mut room = [MaybeUninit::uninit(); 16 * 1024];
    let (mut all, mut found) = (RawDir::new(directory, &mut room), Vec::new());
    while let Some(entry) = all.next() {
        let entry = entry.map_err(|errno| ListFault::Read(std::io::Error::from(errno).into()))?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let file_type = match listed_type(entry.file_type()) {
            FileType::Unknown => std::fs::symlink_metadata(path.child(name).as_path()).ok().map(|about| type_of(about.file_type())),
            known => Some(known),
        };
        found.push((name.into(), file_type));
    }
    Ok(found)
}

fn listed_type(file_type: rustix::fs::FileType) -> FileType {
    use rustix::fs::FileType as Listed;
    match file_type {
        Listed::RegularFile => FileType::Regular,
        Listed::Directory => FileType::Directory,
        Listed::Symlink => FileType::Symlink,
        Listed::Fifo => FileType::Fifo,
        Listed::Socket => FileType::Socket,
        Listed::CharacterDevice => FileType::CharDevice,
        Listed::BlockDevice => FileType::BlockDevice,
        _ => FileType::Unknown,
    }
}

fn stat_of(metadata: &Metadata) -> Stat {
    let file_type = type_of(metadata.file_type());
    let executable = file_type == FileType::Regular && metadata.mode() & 0o100 != 0;
    Stat { file_type, executable, stamp: stamp_of(metadata) }
}

fn stamp_of(metadata: &Metadata) -> Stamp {
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

fn type_of(file_type: std::fs::FileType) -> FileType {
    if file_type.is_file() {
        FileType::Regular
    } else if file_type.is_dir() {
        FileType::Directory
    } else if file_type.is_symlink() {
        FileType::Symlink
    } else if file_type.is_char_device() {
        FileType::CharDevice
    } else if file_type.is_block_device() {
        FileType::BlockDevice
    } else if file_type.is_socket() {
        FileType::Socket
    } else if file_type.is_fifo() {
        FileType::Fifo
    } else {
        FileType::Unknown
    }
}
