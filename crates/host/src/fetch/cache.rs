//! The fetchers' own directory under the user's cache home.
//!
//! ```text
//! git/HASH[-shallow]        clones of remote repositories
//! git-trees/REV[-e][-s][-l] trees of commits          git-trees/REV.nar    their NAR hashes
//! hg/HASH                   clones of Mercurial repositories
//! hg-trees/REV              trees of their revisions  hg-trees/REV.nar     their NAR hashes
//! git-lfs/SHA256            objects that files of commits stand for
//! downloads/HASH            what is known of a URL: when asked, etag, last address, content
//! files/SHA256              contents of downloads
//! trees/SHA256              the same, unpacked        trees/SHA256.nar     their NAR hashes
//! closures/SHA256           store objects of binary caches, unpacked, by the hash of their archive
//! ```
//!
//! Everything is made beside its place and renamed there, so that a crash leaves nothing half-written.
#![allow(clippy::disallowed_methods)] // This directory is the fetchers' own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use firn_store::hash::{Format, Hash};

use super::error::{FetchError, file_error};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The directory.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

/// What is known of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Download {
    /// Seconds since 1970 when the server last confirmed it.
    pub asked: u64,
    /// How the server names this content; empty if it does not.
    pub etag: String,
    /// The address that answered, after redirections.
    pub url: String,
    /// An address that will always serve this content.
    pub immutable: Option<String>,
    /// The content's SHA-256 in hexadecimal: its name in `files` and `trees`.
    pub content: String,
    /// The newest time in an archive.
    pub last_modified: u64,
}

impl Cache {
    pub fn new(root: PathBuf) -> Cache {
        Cache { root }
    }

    /// A part of the directory, made if need be.
    pub fn dir(&self, part: &str) -> Result<PathBuf, FetchError> {
        let dir = self.root.join(part);
        std::fs::create_dir_all(&dir).map_err(|e| file_error("creating directory", &dir, e))?;
        Ok(dir)
    }

    /// A name in a part of the directory that nobody else uses.
    pub fn temporary(&self, part: &str) -> Result<PathBuf, FetchError> {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(self.dir(part)?.join(format!(".tmp-{}-{count}", std::process::id())))
    }

    pub fn known_hash(&self, part: &str, key: &str) -> Option<Hash> {
        let text = std::fs::read(self.root.join(part).join(format!("{key}.nar"))).ok()?;
        Hash::parse_sri(text.trim_ascii()).ok()
    }

    /// Notes the NAR hash of an unpacked tree. Where it cannot be written, it is computed again.
    pub fn note_hash(&self, part: &str, key: &str, hash: &Hash) {
        let write = || -> Option<()> {
            let made = self.temporary(part).ok()?;
            std::fs::write(&made, hash.to_string(Format::Sri, true)).ok()?;
            std::fs::rename(&made, self.root.join(part).join(format!("{key}.nar"))).ok()
        };
        let _ = write();
    }

    fn note_of(&self, kind: &str, url: &str) -> Result<PathBuf, FetchError> {
        let key = blake3::hash(format!("{kind}\0{url}").as_bytes()).to_hex();
        Ok(self.dir("downloads")?.join(key.as_str()))
    }

    /// What is known of a URL; nothing where the note is damaged or its content is gone.
    pub fn download(&self, kind: &str, url: &str) -> Option<Download> {
        let text = std::fs::read_to_string(self.note_of(kind, url).ok()?).ok()?;
        let fields: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        let field = |name: &str| fields.get(name).map(|value| (*value).to_owned());
        let content = field("content").filter(|name| name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()))?;
        let part = if kind == "tarball" { "trees" } else { "files" };
        std::fs::symlink_metadata(self.root.join(part).join(&content)).ok()?;
        Some(Download {
            asked: field("asked")?.parse().ok()?,
            etag: field("etag").unwrap_or_default(),
            url: field("url")?,
            immutable: field("immutable"),
            content,
            last_modified: field("last-modified")?.parse().ok()?,
        })
    }

    pub fn note_download(&self, kind: &str, url: &str, known: &Download) -> Result<(), FetchError> {
        let Download { asked, etag, url: at, immutable, content, last_modified } = known;
        let mut text = format!("asked {asked}\nurl {at}\ncontent {content}\nlast-modified {last_modified}\n");
        if !etag.is_empty() {
            text.push_str(&format!("etag {etag}\n"));
        }
        if let Some(immutable) = immutable {
            text.push_str(&format!("immutable {immutable}\n"));
        }
        let made = self.temporary("downloads")?;
        std::fs::write(&made, text).map_err(|e| file_error("writing", &made, e))?;
        let place = self.note_of(kind, url)?;
        std::fs::rename(&made, &place).map_err(|e| file_error("renaming", &made, e))
    }
}

/// Seconds since 1970, for the age of downloads.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_written_and_only_with_their_content() {
        let dir = tempfile::tempdir().expect("a directory");
        let cache = Cache::new(dir.path().to_owned());
        let content = "ab".repeat(32);
        let known = Download { asked: 7, etag: "\"x y\"".into(), url: "http://a/b".into(), content, ..Default::default() };
        cache.note_download("file", "http://a", &known).expect("written");
        assert_eq!(cache.download("file", "http://a"), None);
        std::fs::write(cache.dir("files").expect("made").join(&known.content), "x").expect("written");
        assert_eq!(cache.download("file", "http://a"), Some(known));
        assert_eq!(cache.download("tarball", "http://a"), None);
    }
}
