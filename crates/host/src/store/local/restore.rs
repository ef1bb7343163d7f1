//! `Restore`: a tree told as events, written to disk as the store keeps trees: files 0444 or 0555, directories 0555, all
//! modified one second after the epoch, owned by who writes.
#![allow(clippy::disallowed_methods)]

use std::ffi::OsStr;
use std::fs::{File, FileTimes, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use firn_store::nar::Sink;
use firn_store::{Error, ErrorKind, Result};
use unix::sys::stat::{UtimensatFlags, utimensat};
use unix::sys::time::TimeSpec;

use super::refused;

/// The time of modification of everything in a store.
const MODIFIED: Duration = Duration::from_secs(1);

/// Writes the tree that it is told at a path.
pub(super) struct Restore {
    /// The node that comes next or is open.
    at: PathBuf,
    file: Option<File>,
    sync: bool,
    /// Open directories.
    depth: usize,
}

impl Restore {
    /// Nothing may be at `at`. `sync` makes files durable before they are closed.
    pub fn new(at: PathBuf, sync: bool) -> Restore {
        Restore { at, file: None, sync, depth: 0 }
    }

    /// Leaves an entry of a directory.
    fn leave(&mut self) {
        if self.depth > 0 {
            self.at.pop();
        }
    }
}

impl Sink for Restore {
    fn directory(&mut self) -> Result<()> {
        std::fs::create_dir(&self.at).map_err(|e| refused("creating directory", &self.at, e))?;
        self.depth += 1;
        Ok(())
    }

    fn entry(&mut self, name: &[u8]) -> Result<()> {
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
            return Err(Error::new(ErrorKind::Other, &[b"'", name, b"' is no name for a file"]));
        }
        self.at.push(OsStr::from_bytes(name));
        Ok(())
    }

    fn end_directory(&mut self) -> Result<()> {
        finish_directory(&self.at, self.sync)?;
        self.depth -= 1;
        self.leave();
        Ok(())
    }

    fn regular(&mut self, executable: bool, _: u64) -> Result<()> {
        let mode = if executable { 0o555 } else { 0o444 };
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(mode).open(&self.at);
        let file = file.map_err(|e| refused("creating file", &self.at, e))?;
        // The process' mask may have taken bits away.
        file.set_permissions(Permissions::from_mode(mode)).map_err(|e| refused("changing mode of", &self.at, e))?;
        self.file = Some(file);
        Ok(())
    }

    fn contents(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(data).map_err(|e| refused("writing to", &self.at, e)),
            None => Err(Error::new(ErrorKind::Other, &[b"contents of a file that was not begun"])),
        }
    }

    fn end_regular(&mut self) -> Result<()> {
        if let Some(file) = self.file.take() {
            file.set_modified(store_time()).map_err(|e| refused("changing modification time of", &self.at, e))?;
            if self.sync {
                file.sync_all().map_err(|e| refused("syncing", &self.at, e))?;
            }
        }
        self.leave();
        Ok(())
    }

    fn symlink(&mut self, target: &[u8]) -> Result<()> {
        symlink(OsStr::from_bytes(target), &self.at).map_err(|e| refused("creating symlink", &self.at, e))?;
        let time = TimeSpec::from_duration(MODIFIED);
        utimensat(unix::fcntl::AT_FDCWD, &self.at, &time, &time, UtimensatFlags::NoFollowSymlink)
            .map_err(|e| refused("changing modification time of", &self.at, e.into()))?;
        self.leave();
        Ok(())
    }
}

fn store_time() -> SystemTime {
    UNIX_EPOCH + MODIFIED
}

fn finish_directory(at: &Path, sync: bool) -> Result<()> {
    std::fs::set_permissions(at, Permissions::from_mode(0o555)).map_err(|e| refused("changing mode of", at, e))?;
    let directory = File::open(at).map_err(|e| refused("opening directory", at, e))?;
    let times = FileTimes::new().set_modified(store_time());
    directory.set_times(times).map_err(|e| refused("changing modification time of", at, e))?;
    if sync {
        directory.sync_all().map_err(|e| refused("syncing", at, e))?;
    }
    Ok(())
}

/// Moves a finished tree into its place, where nothing may be.
pub(super) fn move_into_place(from: &Path, to: &Path) -> Result<()> {
    let moved = |e| refused("moving a finished object to", to, e);
    let is_directory = std::fs::symlink_metadata(from).map_err(moved)?.is_dir();
    if !is_directory {
        return std::fs::rename(from, to).map_err(moved);
    }
    // Moving a directory changes its `..`, which needs the right to write it.
    std::fs::set_permissions(from, Permissions::from_mode(0o755)).map_err(moved)?;
    std::fs::rename(from, to).map_err(moved)?;
    finish_directory(to, false)
}

/// Deletes what is at a path, a tree without the right to write included. That nothing is there is fine.
pub(super) fn delete(path: &Path) -> Result<()> {
    let fail = |e| refused("deleting", path, e);
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(fail(error)),
        Ok(status) if status.is_dir() => {
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(fail)?;
            for entry in std::fs::read_dir(path).map_err(fail)? {
                delete(&entry.map_err(fail)?.path())?;
            }
            std::fs::remove_dir(path).map_err(fail)
        }
        Ok(_) => std::fs::remove_file(path).map_err(fail),
    }
}
