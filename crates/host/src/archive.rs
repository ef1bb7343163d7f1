//! Walking a tree through the host into an archive: how sources are hashed and copied.
//!
//! The walk is depth-first and asks about each entry just before entering it, in the order Nix asks its path filters.

use firn_store::nar::{MAX_DEPTH, Sink};
use firn_store::{Error, ErrorKind};

use crate::{AbsPath, FileType, Host, HostError};

/// Tells `sink` the tree at `path`; links are not followed. `keep` decides about every entry below, never about `path`.
pub fn dump<E: From<HostError> + From<Error>>(
    host: &dyn Host,
    path: &AbsPath,
    keep: &mut dyn FnMut(&AbsPath) -> Result<bool, E>,
    sink: &mut dyn Sink,
) -> Result<(), E> {
    host.check_access(path)?;
    dump_node(host, path, keep, sink, 0)
}

fn dump_node<E: From<HostError> + From<Error>>(
    host: &dyn Host,
    path: &AbsPath,
    keep: &mut dyn FnMut(&AbsPath) -> Result<bool, E>,
    sink: &mut dyn Sink,
    depth: usize,
) -> Result<(), E> {
    if depth >= MAX_DEPTH {
        let parts: [&[u8]; 3] = [b"path '", path.as_bytes(), b"' exceeds maximum NAR directory depth of 64"];
        return Err(Error::new(ErrorKind::Other, &parts).into());
    }
    let stat = host.lstat(path)?.ok_or_else(|| HostError::NotFound(path.clone()))?;
    match stat.file_type {
        FileType::Regular => {
            let content = host.read_once(path)?;
            sink.regular(stat.executable, content.bytes().len() as u64)?;
            sink.contents(content.bytes())?;
            sink.end_regular()?;
        }
        FileType::Directory => {
            sink.directory()?;
            for (name, _) in host.read_dir(path)?.entries() {
                let child = path.child(name);
                if keep(&child)? {
                    sink.entry(name)?;
                    dump_node(host, &child, keep, sink, depth + 1)?;
                }
            }
            sink.end_directory()?;
        }
        FileType::Symlink => sink.symlink(&host.read_link(path)?)?,
        _ => {
            let parts: [&[u8]; 3] = [b"file '", path.as_bytes(), b"' has an unsupported type"];
            return Err(Error::new(ErrorKind::Other, &parts).into());
        }
    }
    Ok(())
}
