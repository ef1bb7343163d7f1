//! Archives of store objects, written as trees into the cache under the hash of the archive. What lies there was checked.
#![allow(clippy::disallowed_methods)] // Writes the fetchers' own directory.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use firn_store::content_address::Method;
use firn_store::hash::{Algorithm, Format, Hash, Hasher};
use firn_store::modulo::ModuloHasher;
use firn_store::nar::{self, Sink};
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result as StoreResult};

use super::error::{FetchError, file_error, shown};
use super::fetcher::Fetcher;
use crate::{AbsPath, Mount, archive};

const PART: &str = "closures";

fn show(dir: &StoreDir, info: &PathInfo) -> String {
    shown(String::from_utf8_lossy(&dir.print(&info.path)))
}

impl Fetcher {
    /// Where the tree of an object is or will be.
    fn place_of(&self, info: &PathInfo) -> Result<PathBuf, FetchError> {
        Ok(self.cache.dir(PART)?.join(info.nar_hash.to_string(Format::Base16, false)))
    }

    /// The tree of an object that came earlier, if one did.
    pub(super) fn received_earlier(&self, info: &PathInfo) -> Result<Option<Mount>, FetchError> {
        let place = self.place_of(info)?;
        if place.symlink_metadata().is_err() {
            return Ok(None);
        }
        let root = AbsPath::new(place.as_os_str().as_bytes())?;
        Ok(Some(Mount { host: self.fresh_disk(), root, excluded: Default::default() }))
    }

    /// Writes the tree in an archive, which must be what is known of the object. A failure leaves nothing behind.
    pub(super) fn unpack_object(&self, info: &PathInfo, bytes: &mut dyn Read, dir: &StoreDir) -> Result<Mount, FetchError> {
        let made = self.cache.temporary(PART)?;
        let written = unpack(info, bytes, &made, dir);
        if let Err(error) = written {
            remove(&made);
            return Err(error);
        }
        let place = self.place_of(info)?;
        // Another process may have been quicker; its tree is the same.
        if std::fs::rename(&made, &place).is_err() {
            remove(&made);
        }
        self.received_earlier(info)?.ok_or_else(|| FetchError::new(format!("'{}' is gone", shown(place.display()))))
    }
}

fn remove(place: &Path) {
    let _ = if place.is_dir() && !place.is_symlink() { std::fs::remove_dir_all(place) } else { std::fs::remove_file(place) };
}

fn unpack(info: &PathInfo, bytes: &mut dyn Read, at: &Path, dir: &StoreDir) -> Result<(), FetchError> {
    // A byte more than there should be is enough to know.
    let source = bytes.take(info.nar_size.saturating_add(1));
    let mut counted = Hashed { source, hasher: Hasher::new(Algorithm::Sha256), failure: None };
    let parsed = nar::parse(&mut counted, &mut Tree { at: at.to_owned(), file: None, depth: 0 });
    // What follows an archive belongs to its hash; what is cut off is told by its hash too.
    let _ = std::io::copy(&mut counted, &mut std::io::sink());
    let traced = |error: FetchError| error.while_doing(format!("while unpacking '{}'", show(dir, info)));
    if let Some(failure) = counted.failure {
        return Err(traced(FetchError::new(format!("the archive cannot be read: {failure}"))));
    }
    let (hash, size) = counted.hasher.finish();
    check_archive(info, &hash, size, dir)?;
    parsed.map_err(|e| traced(e.into()))
}

/// Refuses an archive that is not the one that was promised.
pub(super) fn check_archive(info: &PathInfo, hash: &Hash, size: u64, dir: &StoreDir) -> Result<(), FetchError> {
    if *hash != info.nar_hash {
        let hashes = [&info.nar_hash, hash].map(|hash| shown(hash.to_string(Format::Sri, true)));
        return Err(FetchError::new(format!(
            "hash mismatch importing path '{}';\n  specified: {}\n  got:       {}",
            show(dir, info), hashes[0], hashes[1]
        )));
    }
    if size != info.nar_size {
        return Err(FetchError::new(format!(
            "size mismatch importing path '{}';\n  specified: {}\n  got:       {}",
            show(dir, info), shown(info.nar_size), shown(size)
        )));
    }
    Ok(())
}

/// Refuses an object whose content does not have the address that it claims.
pub(super) fn check_address(info: &PathInfo, mount: &Mount, dir: &StoreDir) -> Result<(), FetchError> {
    let Some(address) = &info.address else { return Ok(()) };
    // Without its own path in it, an object's archive has one hash.
    if address.method == Method::Nar && address.hash == info.nar_hash {
        return Ok(());
    }
    let mut hasher = ModuloHasher::new(address.hash.algorithm(), info.path.digest_part().as_bytes());
    match address.method {
        Method::Nar => {
            let mut writer = nar::Writer::new(&mut hasher);
            let all: Result<(), crate::SourceError> =
                archive::dump(&*mount.host, &mount.root, &mut |_| Ok(true), &mut writer);
            all?;
            writer.finish()?;
        }
        Method::Flat | Method::Text => hasher.update(mount.host.read_once(&mount.root)?.bytes()),
        Method::Git => {
            let message = format!("path '{}' is addressed by its Git hash, which is not supported", show(dir, info));
            return Err(FetchError::new(message));
        }
    }
    let actual = hasher.finish();
    if actual == address.hash {
        return Ok(());
    }
    let hashes = [&address.hash, &actual].map(|hash| shown(hash.to_string(Format::Nix32, true)));
    Err(FetchError::new(format!(
        "ca hash mismatch importing path '{}';\n  specified: {}\n  got:       {}",
        show(dir, info), hashes[0], hashes[1]
    )))
}

/// A reader that hashes what is read.
struct Hashed<R> {
    source: R,
    hasher: Hasher,
    /// Why nothing more could be read.
    failure: Option<String>,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.failure.is_some() {
            return Ok(0);
        }
        let read = self.source.read(into).inspect_err(|e| self.failure = Some(e.to_string()))?;
        self.hasher.update(&into[..read]);
        Ok(read)
    }
}

/// Writes the tree that it is told at a path, where nothing may be. The archive reader lets no name out of the tree.
struct Tree {
    at: PathBuf,
    file: Option<BufWriter<File>>,
    depth: usize,
}

impl Tree {
    fn failed(&self, doing: &str, error: std::io::Error) -> Error {
        Error::new(ErrorKind::Other, &[file_error(doing, &self.at, error).message().as_bytes()])
    }

    fn leave(&mut self) {
        if self.depth > 0 {
            self.at.pop();
        }
    }
}

impl Sink for Tree {
    fn directory(&mut self) -> StoreResult<()> {
        std::fs::create_dir(&self.at).map_err(|e| self.failed("creating directory", e))?;
        self.depth += 1;
        Ok(())
    }

    fn entry(&mut self, name: &[u8]) -> StoreResult<()> {
        self.at.push(std::ffi::OsStr::from_bytes(name));
        Ok(())
    }

    fn end_directory(&mut self) -> StoreResult<()> {
        self.depth -= 1;
        self.leave();
        Ok(())
    }

    fn regular(&mut self, executable: bool, _: u64) -> StoreResult<()> {
        let file = File::create_new(&self.at).map_err(|e| self.failed("creating file", e))?;
        let mode = if executable { 0o755 } else { 0o644 };
        file.set_permissions(std::fs::Permissions::from_mode(mode)).map_err(|e| self.failed("changing mode of", e))?;
        self.file = Some(BufWriter::new(file));
        Ok(())
    }

    fn contents(&mut self, data: &[u8]) -> StoreResult<()> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(data));
        written.map_err(|e| self.failed("writing to", e))
    }

    fn end_regular(&mut self) -> StoreResult<()> {
        let flushed = self.file.take().map_or(Ok(()), |mut file| file.flush());
        flushed.map_err(|e| self.failed("writing to", e))?;
        self.leave();
        Ok(())
    }

    fn symlink(&mut self, target: &[u8]) -> StoreResult<()> {
        symlink(std::ffi::OsStr::from_bytes(target), &self.at).map_err(|e| self.failed("creating symlink", e))?;
        self.leave();
        Ok(())
    }
}
