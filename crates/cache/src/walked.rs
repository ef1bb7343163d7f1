//! Which state of the database was walked last: what nobody has written since need not be walked again.
//!
//! Called by [`environment`](crate::environment) around the walk. A state is the file's device, inode, size and times, and the
//! boot of the machine: a crash of it may leave pages that were never written, and changes none of the former.
#![allow(clippy::disallowed_methods)] // This directory is the cache's own.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

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
