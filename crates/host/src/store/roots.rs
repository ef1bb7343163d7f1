//! Roots of the garbage collector: a link from wherever the user wants it, and a link to that from the store's state.
#![allow(clippy::disallowed_methods)]

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use firn_store::hash::{Algorithm, Format, Hash};
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};

use super::local::refused;
use crate::AbsPath;

/// Makes `root` a link to the object. What is there already is replaced only if it is a link into the store.
pub(super) fn make(dir: &StoreDir, path: &StorePath, root: &AbsPath) -> Result<()> {
    if dir.contains(root.as_bytes()) {
        let parts: [&[u8]; 3] = [
            b"creating a garbage collector root (\"",
            root.as_bytes(),
            b"\") in the Nix store is forbidden (are you running nix-build inside the store?)",
        ];
        return Err(Error::new(ErrorKind::Other, &parts));
    }
    if root.as_path().symlink_metadata().is_ok() {
        let target = std::fs::read_link(root.as_path()).ok();
        if !target.is_some_and(|target| dir.contains(target.as_os_str().as_bytes())) {
            let parts: [&[u8]; 3] = [b"cannot create symlink '", root.as_bytes(), b"'; already exists"];
            return Err(Error::new(ErrorKind::Other, &parts));
        }
    }
    link(root.as_path(), &dir.print(path))
}

/// Tells the garbage collector of a store in this machine about a root elsewhere.
pub(super) fn register_indirect(state: &AbsPath, root: &AbsPath) -> Result<()> {
    let name = Hash::of(Algorithm::Sha1, root.as_bytes()).to_string(Format::Nix32, false);
    let at = state.child(b"gcroots").child(b"auto").child(name.as_bytes());
    link(at.as_path(), root.as_bytes())
}

/// Makes or replaces a link at once.
fn link(at: &Path, target: &[u8]) -> Result<()> {
    if let Some(above) = at.parent() {
        std::fs::create_dir_all(above).map_err(|e| refused("creating directory", above, e))?;
    }
    let mut temporary = at.as_os_str().to_owned();
    temporary.push(format!(".tmp-{}", std::process::id()));
    let temporary = PathBuf::from(temporary);
    // The rest of a process of this number that was cut off.
    let _ = std::fs::remove_file(&temporary);
    symlink(std::ffi::OsStr::from_bytes(target), &temporary).map_err(|e| refused("creating symlink", &temporary, e))?;
    std::fs::rename(&temporary, at).map_err(|e| refused("creating symlink", at, e))
}
