//! Files and tarballs behind URLs: asked for when the last answer is old, kept by content.
#![allow(clippy::disallowed_methods)] // Moves downloads within the fetchers' own directory.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use firn_store::hash::Hash;

use super::attrs::{Attr, text};
use super::cache::{Download, now};
use super::error::{FetchError, file_error, shown};
use super::fetcher::{Fetcher, Found, Placed, hash_tree};
use super::http::{Answer, Transfer};
use super::input::Input;
use super::url::{Url, url_path_to_path};
use crate::{AbsPath, Mount};

/// A downloaded tree.
pub(super) struct Unpacked {
    pub mount: Mount,
    pub nar_hash: Hash,
    pub last_modified: u64,
    pub immutable: Option<String>,
}

impl Fetcher {
    pub(super) fn find_tarball(&self, input: &Input) -> Result<Found, FetchError> {
        let mut input = input.clone();
        let url = text(&input.attrs, "url")?.to_owned();
        check_local(&url)?;
        let found = self.unpacked(&url, &[])?;
        if let Some(immutable) = &found.immutable {
            let name = input.attrs.get("name").cloned();
            input = Input::from_url(&self.settings, &Url::parse(immutable, false)?, true)?;
            if input.kind() != "tarball" {
                return Err(FetchError::new("tarball 'Link' headers that redirect to non-tarball URLs are not supported"));
            }
            input.attrs.extend(name.map(|name| ("name".to_owned(), name)));
        }
        if found.last_modified != 0 && !input.attrs.contains_key("lastModified") {
            input.set("lastModified", Attr::Number(found.last_modified));
        }
        input.set("narHash", found.nar_hash.to_string(firn_store::hash::Format::Sri, true));
        Ok(Found { input, placed: Placed::Elsewhere(found.mount), nar_hash: Some(found.nar_hash) })
    }

    pub(super) fn find_file(&self, input: &Input) -> Result<Found, FetchError> {
        let mut input = input.clone();
        let place = self.downloaded(text(&input.attrs, "url")?)?;
        let mut mount = Mount { host: self.fresh_disk(), root: AbsPath::new(place.as_os_str().as_bytes())?, excluded: Default::default() };
        let (hash, _) = hash_tree(&mut mount, &|_| true)?;
        input.set("narHash", hash.to_string(firn_store::hash::Format::Sri, true));
        Ok(Found { input, placed: Placed::Elsewhere(mount), nar_hash: Some(hash) })
    }

    /// The content of a URL, in a file of the cache.
    pub fn downloaded(&self, url: &str) -> Result<PathBuf, FetchError> {
        let found = self.downloaded_with(url, &[]);
        // The file's name is its content's hash.
        let name = found.as_ref().ok().and_then(|file| file.file_name()).map(OsStrExt::as_bytes);
        self.observe(url, name, false, url.starts_with("file:"));
        found
    }

    /// As [`Fetcher::downloaded`], with headers for the server.
    pub(super) fn downloaded_with(&self, url: &str, headers: &[(String, String)]) -> Result<PathBuf, FetchError> {
        let files = self.cache.dir("files")?;
        let known = self.cache.download("file", url);
        if let Some(known) = known.as_ref().filter(|known| self.is_current(url, known)) {
            return Ok(files.join(&known.content));
        }
        let transfer = match (self.transfer(url, headers, known.as_ref().map(|known| known.etag.as_str())), &known) {
            (Ok(transfer), _) => transfer,
            (Err(error), Some(known)) => {
                self.warn(&format!("{}; using cached version", error.message()));
                return Ok(files.join(&known.content));
            }
            (Err(error), None) => return Err(error),
        };
        let kept = match transfer {
            Transfer::Unchanged(answer) => Download { asked: now(), ..self.still(known, &answer)? },
            Transfer::Content(answer, place) => {
                move_to(&place, &files.join(&answer.content))?;
                noted(&answer, 0)
            }
        };
        self.cache.note_download("file", url, &kept)?;
        Ok(files.join(&kept.content))
    }

    /// The tree in the tarball behind a URL.
    pub(super) fn unpacked(&self, url: &str, headers: &[(String, String)]) -> Result<Unpacked, FetchError> {
        let known = self.cache.download("tarball", url);
        if let Some(known) = known.as_ref().filter(|known| self.is_current(url, known)) {
            return self.tree_of(known);
        }
        let kept = match self.transfer(url, headers, known.as_ref().map(|known| known.etag.as_str()))? {
            Transfer::Unchanged(answer) => Download { asked: now(), ..self.still(known, &answer)? },
            Transfer::Content(answer, place) => {
                let last_modified = self.unpack(&place, &answer.content);
                let _ = std::fs::remove_file(&place);
                noted(&answer, last_modified?)
            }
        };
        self.cache.note_download("tarball", url, &kept)?;
        self.tree_of(&kept)
    }

    fn still(&self, known: Option<Download>, answer: &Answer) -> Result<Download, FetchError> {
        let url = &answer.url;
        known.ok_or_else(|| FetchError::new(format!("'{}' says that nothing changed since never", shown(url))))
    }

    /// Whether an answer is young enough. Local files are always looked at: it costs nothing.
    fn is_current(&self, url: &str, known: &Download) -> bool {
        let age = now().checked_sub(known.asked);
        let young = age.is_some_and(|age| age < self.settings.tarball_ttl.as_secs());
        !url.starts_with("file:") && (young || self.settings.offline)
    }

    /// Unpacks an archive to where its content belongs; the newest time in it.
    fn unpack(&self, archive: &Path, content: &str) -> Result<u64, FetchError> {
        let trees = self.cache.dir("trees")?;
        let (place, times) = (trees.join(content), trees.join(format!("{content}.time")));
        if place.exists()
            && let Some(newest) = std::fs::read_to_string(&times).ok().and_then(|text| text.parse().ok())
        {
            return Ok(newest);
        }
        let made = self.cache.temporary("trees")?;
        let newest = super::archive::unpack(archive, &made)?;
        if std::fs::rename(&made, &place).is_err() {
            let _ = std::fs::remove_dir_all(&made);
        }
        std::fs::write(&times, newest.to_string()).map_err(|e| file_error("writing", &times, e))?;
        Ok(newest)
    }

    fn tree_of(&self, known: &Download) -> Result<Unpacked, FetchError> {
        let place = self.cache.dir("trees")?.join(&known.content);
        let root = AbsPath::new(place.as_os_str().as_bytes())?;
        let mut mount = Mount { host: self.fresh_disk(), root, excluded: Default::default() };
        let nar_hash = match self.cache.known_hash("trees", &known.content) {
            Some(hash) => hash,
            None => {
                let hash = hash_tree(&mut mount, &|_| true)?.0;
                self.cache.note_hash("trees", &known.content, &hash);
                hash
            }
        };
        Ok(Unpacked { mount, nar_hash, last_modified: known.last_modified, immutable: known.immutable.clone() })
    }
}

fn noted(answer: &Answer, last_modified: u64) -> Download {
    Download {
        asked: now(),
        etag: answer.etag.clone(),
        url: answer.url.clone(),
        immutable: answer.immutable.clone(),
        content: answer.content.clone(),
        last_modified,
    }
}

fn move_to(from: &Path, to: &Path) -> Result<(), FetchError> {
    std::fs::rename(from, to).map_err(|e| file_error("renaming", from, e))
}

/// What is plainly no tarball is told apart before anything is unpacked.
fn check_local(url: &str) -> Result<(), FetchError> {
    let parsed = Url::parse(url, false)?;
    if parsed.scheme != "file" {
        return Ok(());
    }
    let path = PathBuf::from(url_path_to_path(&parsed.path)?);
    let quoted = format!("\"{}\"", shown(path.display()));
    let wrong = if !path.is_absolute() {
        format!("'{}' must use an absolute path. The 'file' scheme does not support relative paths.", shown(&parsed))
    } else if !path.exists() {
        format!("{quoted} does not exist.")
    } else if path.is_dir() && path.join(".git").exists() {
        format!("{quoted} is a git repository, not a tarball. Please use `git+file` as the scheme.")
    } else if path.is_dir() {
        format!("{quoted} is a directory, not a file.")
    } else {
        return Ok(());
    };
    Err(FetchError::new(format!("tarball {wrong}")))
}
