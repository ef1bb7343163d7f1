//! Unpacking tar archives, compressed or not, and zip archives, by Nix's rules.
//!
//! Names are canonical and stay inside; nothing is written through a link. A single directory at the top is the tree.
#![allow(clippy::disallowed_methods)] // Writes the fetchers' own directory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::compression::Compression;
use super::error::{FetchError, file_error, shown};
use super::zip;
use crate::AbsPath;

/// No file system takes a longer target of a link.
const LONGEST_TARGET: u64 = 4095;

/// Unpacks an archive into a directory that does not exist yet; the newest time in it.
pub(super) fn unpack(archive: &Path, into: &Path) -> Result<u64, FetchError> {
    let failed = |e: std::io::Error| FetchError::new(format!("failed to extract archive ({})", shown(e)));
    let mut file = File::open(archive).map_err(|e| file_error("opening", archive, e))?;
    let mut magic = [0; 6];
    let read = file.read(&mut magic).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let made = into.with_extension("unpacking");
    std::fs::create_dir_all(&made).map_err(|e| file_error("creating directory", &made, e))?;
    let newest = if matches!(&magic[..read], [b'P', b'K', 3 | 5, 4 | 6, ..]) {
        unpack_zip(file, &made)
    } else {
        let file = BufReader::with_capacity(1 << 16, file);
        Compression::from_start(&magic[..read]).decode(file).map_err(failed).and_then(|tar| unpack_tar(tar, &made))
    };
    let placed = newest.and_then(|newest| {
        let top = single_directory(&made).map_err(failed)?.unwrap_or_else(|| made.clone());
        std::fs::rename(&top, into).map_err(|e| file_error("renaming", &top, e))?;
        Ok(newest)
    });
    let _ = std::fs::remove_dir_all(&made);
    placed
}

fn single_directory(dir: &Path) -> std::io::Result<Option<PathBuf>> {
    let mut entries = std::fs::read_dir(dir)?;
    let Some(first) = entries.next().transpose()? else { return Ok(None) };
    let alone = entries.next().is_none() && first.file_type()?.is_dir();
    Ok(alone.then(|| first.path()))
}

fn unpack_tar(reader: Box<dyn Read>, into: &Path) -> Result<u64, FetchError> {
    let failed = |e: std::io::Error| FetchError::new(format!("failed to extract archive ({})", shown(e)));
    let mut archive = tar::Archive::new(reader);
    let mut newest = 0;
    let mut found = false;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        found = true;
        newest = newest.max(entry.header().mtime().map_err(failed)?);
        let name = AbsPath::new(&entry.path_bytes())?;
        let place = place_of(into, &name);
        let link = entry.link_name_bytes().map(|link| link.into_owned());
        match (entry.header().entry_type(), link) {
            (tar::EntryType::Directory, _) => make_directory(into, &name)?,
            (tar::EntryType::Symlink, Some(target)) => make_link(into, &name, &target)?,
            (tar::EntryType::Link, Some(target)) => {
                let target = AbsPath::new(&target)?;
                make_room(into, &name)?;
                copy_earlier(into, &target, &place)?;
            }
            (tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse, _) => {
                make_room(into, &name)?;
                let executable = entry.header().mode().map_err(failed)? & 0o100 != 0;
                let mut file = File::create(&place).map_err(|e| file_error("creating", &place, e))?;
                std::io::copy(&mut entry, &mut file).map_err(failed)?;
                if executable {
                    make_executable(&place)?;
                }
            }
            (tar::EntryType::XGlobalHeader, _) => {}
            (kind, _) => {
                let parts = (shown(&name), shown(kind.as_byte()));
                return Err(FetchError::new(format!("file '{}' in tarball has unsupported file type {}", parts.0, parts.1)));
            }
        }
    }
    if found { Ok(newest) } else { Err(FetchError::new("failed to extract archive (Unrecognized archive format)")) }
}

fn unpack_zip(file: File, into: &Path) -> Result<u64, FetchError> {
    let wrong = |why: zip::Wrong| FetchError::new(format!("failed to extract archive ({})", shown(why)));
    let mut archive = zip::Zip::open(file).map_err(wrong)?;
    let mut newest = 0;
    for entry in std::mem::take(&mut archive.entries) {
        newest = newest.max(entry.modified);
        let name = AbsPath::new(&entry.name)?;
        match entry.kind {
            zip::Kind::Directory => make_directory(into, &name)?,
            zip::Kind::Symlink => {
                if entry.size() > LONGEST_TARGET {
                    return Err(wrong(format!("the target of link '{name}' is too long")));
                }
                let mut target = Vec::new();
                let take = |piece: &[u8]| { target.extend_from_slice(piece); Ok(()) };
                archive.read(&entry, take).map_err(wrong)?;
                make_link(into, &name, &target)?;
            }
            zip::Kind::Regular { executable } => {
                make_room(into, &name)?;
                let place = place_of(into, &name);
                let mut file = File::create(&place).map_err(|e| file_error("creating", &place, e))?;
                archive.read(&entry, |piece| file.write_all(piece)).map_err(wrong)?;
                if executable {
                    make_executable(&place)?;
                }
            }
            zip::Kind::Other(mode) => {
                let parts = (shown(&name), shown(mode));
                return Err(FetchError::new(format!("file '{}' in tarball has unsupported file type {}", parts.0, parts.1)));
            }
        }
    }
    Ok(newest)
}

fn make_link(into: &Path, name: &AbsPath, target: &[u8]) -> Result<(), FetchError> {
    make_room(into, name)?;
    let place = place_of(into, name);
    std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), &place).map_err(|e| file_error("creating symlink", &place, e))
}

fn make_executable(place: &Path) -> Result<(), FetchError> {
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place, mode).map_err(|e| file_error("setting permissions of", place, e))
}

fn place_of(into: &Path, name: &AbsPath) -> PathBuf {
    into.join(std::ffi::OsStr::from_bytes(name.as_bytes().get(1..).unwrap_or_default()))
}

/// Makes a directory and those above it; a link in their place is refused.
fn make_directory(into: &Path, name: &AbsPath) -> Result<(), FetchError> {
    let mut place = into.to_owned();
    for step in name.components() {
        place.push(std::ffi::OsStr::from_bytes(step));
        match std::fs::symlink_metadata(&place) {
            Ok(there) if there.is_dir() => {}
            Ok(_) => {
                let message = format!("failed to extract archive (file '{}' is in the way of a directory)", shown(name));
                return Err(FetchError::new(message));
            }
            Err(_) => std::fs::create_dir(&place).map_err(|e| file_error("creating directory", &place, e))?,
        }
    }
    Ok(())
}

/// Makes the directory above a file, and removes an earlier file of that name.
fn make_room(into: &Path, name: &AbsPath) -> Result<(), FetchError> {
    if let Some(parent) = name.parent() {
        make_directory(into, &parent)?;
    }
    let place = place_of(into, name);
    match std::fs::symlink_metadata(&place) {
        Ok(there) if there.is_dir() => {
            let message = format!("failed to extract archive (directory '{}' is in the way of a file)", shown(name));
            Err(FetchError::new(message))
        }
        Ok(_) => std::fs::remove_file(&place).map_err(|e| file_error("removing", &place, e)),
        Err(_) => Ok(()),
    }
}

/// A hard link is a copy of a file that came earlier.
fn copy_earlier(into: &Path, target: &AbsPath, place: &Path) -> Result<(), FetchError> {
    let from = place_of(into, target);
    let missing = || FetchError::new(format!("failed to extract archive (hard link to missing file '{}')", shown(target)));
    // Every step must be real: no link leads out of the tree.
    let mut dir = into.to_owned();
    for step in target.parent().iter().flat_map(|parent| parent.components()) {
        dir.push(std::ffi::OsStr::from_bytes(step));
        if !std::fs::symlink_metadata(&dir).is_ok_and(|there| there.is_dir()) {
            return Err(missing());
        }
    }
    let there = std::fs::symlink_metadata(&from).map_err(|_| missing())?;
    if there.is_symlink() {
        let to = std::fs::read_link(&from).map_err(|e| file_error("reading symbolic link", &from, e))?;
        return std::os::unix::fs::symlink(to, place).map_err(|e| file_error("creating symlink", place, e));
    }
    std::fs::copy(&from, place).map(drop).map_err(|e| file_error("copying", &from, e))
}
