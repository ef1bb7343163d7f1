//! Locks that keep processes of Nix and of firn out of each other's way: one file per path that is being written, and a
//! list of temporary roots that the garbage collector reads.
//!
//! A lock file that is deleted gets a byte first, so that whoever waited for it sees that it is stale and tries again.
#![allow(clippy::disallowed_methods)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind as Io, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};

use super::refused;
use crate::AbsPath;

/// Opens a file to lock it, making it if it is not there.
pub(super) fn open_lock(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(|e| refused("opening lock file", path, e))
}

/// Exclusive locks on paths of the store, given back when dropped.
pub(super) struct PathLocks(Vec<(File, PathBuf)>);

impl PathLocks {
    /// Locks the paths. They must be in order: whoever locks several does so in this order, and none waits in a circle.
    pub fn lock<'a>(real: &AbsPath, paths: impl Iterator<Item = &'a StorePath>) -> Result<PathLocks> {
        let mut locks = PathLocks(Vec::new());
        for path in paths {
            let name = real.child(&[path.as_bytes(), b".lock"].concat());
            let file = lock_one(name.as_path())?;
            locks.0.push((file, name.as_path().to_owned()));
        }
        Ok(locks)
    }
}

fn lock_one(name: &Path) -> Result<File> {
    loop {
        let file = open_lock(name)?;
        file.lock().map_err(|e| refused("locking", name, e))?;
        let length = file.metadata().map_err(|e| refused("getting status of", name, e))?.len();
        if length == 0 {
            return Ok(file);
        }
    }
}

impl Drop for PathLocks {
    fn drop(&mut self) {
        for (file, name) in &mut self.0 {
            // Deleting is for tidiness: a lock file that stays is as good as none.
            let _ = std::fs::remove_file(name);
            let _ = file.write_all(b"d");
        }
    }
}

/// The objects that this process is about to make or use, told to the garbage collector.
pub(super) struct TempRoots {
    dir: StoreDir,
    file: File,
    name: PathBuf,
    gc_lock: File,
    gc_socket: PathBuf,
    collector: Option<UnixStream>,
}

impl TempRoots {
    /// Makes this process' list.
    pub fn open(state: &AbsPath, dir: StoreDir) -> Result<TempRoots> {
        let name = state.child(b"temproots").child(std::process::id().to_string().as_bytes()).as_path().to_owned();
        let gc_lock = open_lock(state.child(b"gc.lock").as_path())?;
        let gc_socket = state.child(b"gc-socket").child(b"socket").as_path().to_owned();
        // A list of this name is that of a process that is no more.
        let _ = std::fs::remove_file(&name);
        // The collector may find the empty list before it is locked, mark it as stale and delete it: then once more.
        let file = lock_one(&name)?;
        Ok(TempRoots { dir, file, name, gc_lock, gc_socket, collector: None })
    }

    /// Adds objects. When this returns, no collection deletes them as long as the process lives.
    pub fn add<'a>(&mut self, paths: impl Iterator<Item = &'a StorePath> + Clone) -> Result<()> {
        let locked = self.hold_off_collector(paths.clone())?;
        let mut lines = Vec::new();
        for path in paths {
            self.dir.print_into(path, &mut lines);
            lines.push(0);
        }
        let written = self.file.write_all(&lines).map_err(|e| refused("writing to", &self.name, e));
        if locked {
            self.gc_lock.unlock().map_err(|e| refused("unlocking", &self.name, e))?;
        }
        written
    }

    /// Takes the collector's lock, or tells a running collector of the objects; whether the lock was taken.
    fn hold_off_collector<'a>(&mut self, paths: impl Iterator<Item = &'a StorePath> + Clone) -> Result<bool> {
        loop {
            match self.gc_lock.try_lock_shared() {
                Ok(()) => return Ok(true),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(refused("locking", &self.name, error)),
            }
            match self.tell_collector(paths.clone()) {
                Ok(()) => return Ok(false),
                Err(error) if is_gone(error.kind()) => {
                    self.collector = None;
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err(error) => return Err(refused("talking to the garbage collector at", &self.gc_socket, error)),
            }
        }
    }

    fn tell_collector<'a>(&mut self, paths: impl Iterator<Item = &'a StorePath>) -> std::io::Result<()> {
        let socket = match &mut self.collector {
            Some(socket) => socket,
            none => none.insert(UnixStream::connect(&self.gc_socket)?),
        };
        for path in paths {
            let mut line = self.dir.print(path);
            line.push(b'\n');
            socket.write_all(&line)?;
            let mut answer = [0];
            socket.read_exact(&mut answer)?;
            if answer != *b"1" {
                return Err(std::io::Error::other("unknown answer"));
            }
        }
        Ok(())
    }

    /// Deletes the list.
    pub fn forget(&mut self) {
        let _ = std::fs::remove_file(&self.name);
    }
}

/// Errors that mean that a collector has ended or has not begun to listen.
fn is_gone(kind: Io) -> bool {
    matches!(kind, Io::ConnectionRefused | Io::NotFound | Io::BrokenPipe | Io::ConnectionReset | Io::UnexpectedEof)
}

/// Locks out changes of the database's schema for as long as the file is open.
pub(super) fn hold_schema(path: &Path) -> Result<File> {
    let file = open_lock(path).map_err(|error| {
        let why = b"This command may have been run as non-root in a single-user Nix installation,\n\
                    or the Nix daemon may have crashed.";
        Error::new(ErrorKind::Other, &[error.message()]).with_traces(vec![why.to_vec()])
    })?;
    file.lock_shared().map_err(|e| refused("locking", path, e))?;
    Ok(file)
}
