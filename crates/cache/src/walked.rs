//! Which state of the database was walked last: what nobody has written since need not be walked again. Nor need what a process has
//! written that had walked it, as long as it found the file, whenever it began to write, as it had left it ([`Whole`]).
//!
//! Called by [`environment`](crate::environment) around the walk and by whoever writes. A state is the file's device, inode, size and times, and the
//! boot of the machine: a crash of it may leave pages that were never written, and changes none of the former.
#![allow(clippy::disallowed_methods)] // This directory is the cache's own.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The state of a database's file; none where the system does not tell.
pub(crate) fn state(data: &Path) -> Option<Vec<u8>> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let file = std::fs::metadata(data).ok()?;
    let numbers = [file.dev(), file.ino(), file.size()];
    let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
    let text = format!("{numbers:?} {times:?} {}", String::from_utf8_lossy(&boot));
    Some(text.into_bytes())
}

/// Whether the database was walked in this state.
pub(crate) fn is_known(dir: &Path, state: Option<&[u8]>) -> bool {
    state.is_some_and(|state| std::fs::read(dir.join("walked")).is_ok_and(|known| known == state))
}

/// Notes that the database was walked in this state. Where that cannot be noted it is walked again.
pub(crate) fn note(dir: &Path, state: Option<&[u8]>) {
    let Some(state) = state else { return };
    let draft = dir.join(format!("walked.{}", std::process::id()));
    if std::fs::write(&draft, state).is_err() || std::fs::rename(&draft, dir.join("walked")).is_err() {
        let _ = std::fs::remove_file(&draft);
    }
}

/// The state in which this process knows the database to be whole; none if another has changed it since.
#[derive(Clone)]
pub(crate) struct Whole(Arc<Mutex<Known>>);

struct Known {
    state: Option<Vec<u8>>,
    /// It has been noted, or was found so.
    is_noted: bool,
}

/// Whether the database was as this process knew it when it began to write.
pub(crate) struct Unchanged(bool);

impl Whole {
    /// A database that was walked, or found walked, in this state.
    pub fn of(state: Option<Vec<u8>>) -> Whole {
        Whole(Arc::new(Mutex::new(Known { state, is_noted: true })))
    }

    /// Whether the file is in the known state. Called by who holds the lock for writing: nobody else's write is under way.
    pub fn is_unchanged(&self, data: &Path) -> Unchanged {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Unchanged(known.state.is_some() && known.state == state(data))
    }

    /// Notes what this process has just written.
    pub fn written(&self, data: &Path, unchanged: Unchanged) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Known { state: if unchanged.0 { state(data) } else { None }, is_noted: false };
    }

    /// Tells other processes.
    pub fn note(&self, dir: &Path) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.is_noted {
            note(dir, known.state.as_deref());
            known.is_noted = true;
        }
    }
}
