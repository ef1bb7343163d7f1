//! `BinaryCache`: a place that serves store objects as compressed archives, with a `.narinfo` for each.
#![allow(clippy::disallowed_methods)] // Reads downloads in the fetchers' own directory.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use firn_store::narinfo::NarInfo;
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;

use super::compression::Compression;
use super::error::{FetchError, FetchErrorKind, file_error, shown};
use super::fetcher::Fetcher;
use super::http::Transfer;

/// The longest file of a cache that is no archive.
const LONGEST_NOTE: u64 = 4 << 20;

/// A cache that was reached and is for our store directory.
pub(super) struct BinaryCache<'a> {
    fetcher: &'a Fetcher,
    /// Its address, without a slash at the end.
    url: String,
    dir: &'a StoreDir,
}

/// A downloaded file, deleted when nobody reads it any more.
struct Download(PathBuf);

impl Drop for Download {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Download {
    fn open(&self) -> Result<File, FetchError> {
        File::open(&self.0).map_err(|e| file_error("opening", &self.0, e))
    }
}

impl<'a> BinaryCache<'a> {
    /// Reaches a cache. One that says nothing of itself is taken as it is from disk, and is none on the network.
    pub fn open(fetcher: &'a Fetcher, url: &str, dir: &'a StoreDir) -> Result<BinaryCache<'a>, FetchError> {
        let cache = BinaryCache { fetcher, url: url.trim_end_matches('/').to_owned(), dir };
        let Some(about) = cache.note("nix-cache-info")? else {
            if cache.url.starts_with("file:") {
                return Ok(cache);
            }
            return Err(FetchError::new(format!("'{}' does not appear to be a binary cache", shown(&cache.url))));
        };
        let about = String::from_utf8_lossy(&about).into_owned();
        let prefix = about.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| *name == "StoreDir");
        if let Some(prefix) = prefix.map(|(_, value)| value.trim()).filter(|prefix| prefix.as_bytes() != dir.as_bytes()) {
            let ours = String::from_utf8_lossy(dir.as_bytes()).into_owned();
            let parts = (shown(&cache.url), shown(prefix), shown(ours));
            return Err(FetchError::new(format!(
                "binary cache '{}' is for Nix stores with prefix '{}', not '{}'",
                parts.0, parts.1, parts.2
            )));
        }
        Ok(cache)
    }

    /// Downloads a file; none if the cache does not have it. `path` is seen from the cache's address.
    fn file(&self, path: &str) -> Result<Option<Download>, FetchError> {
        let elsewhere = path.starts_with("http://") || path.starts_with("https://");
        let url = if elsewhere { path.to_owned() } else { format!("{}/{path}", self.url) };
        match self.fetcher.transfer(&url, &[], None) {
            Ok(Transfer::Content(_, place)) => Ok(Some(Download(place))),
            Ok(Transfer::Unchanged(_)) => {
                Err(FetchError::new(format!("'{}' says that nothing changed since never", shown(&url))))
            }
            Err(error) if error.kind() == FetchErrorKind::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn note(&self, path: &str) -> Result<Option<Vec<u8>>, FetchError> {
        let Some(file) = self.file(path)? else { return Ok(None) };
        let mut text = Vec::new();
        let read = file.open()?.take(LONGEST_NOTE + 1).read_to_end(&mut text);
        read.map_err(|e| file_error("reading from", &file.0, e))?;
        if text.len() as u64 > LONGEST_NOTE {
            let parts = (shown(path), shown(&self.url));
            return Err(FetchError::new(format!("file '{}' of binary cache '{}' is too long", parts.0, parts.1)));
        }
        Ok(Some(text))
    }

    /// What the cache knows of an object.
    pub fn info(&self, path: &StorePath) -> Result<NarInfo, FetchError> {
        let name = format!("{}.narinfo", path.digest_part());
        let traced = |error: FetchError| {
            let parts = (self.show(path), shown(&self.url));
            error.while_doing(format!("while looking for '{}' in binary cache '{}'", parts.0, parts.1))
        };
        let missing = || traced(FetchError::new(format!("path '{}' is not valid", self.show(path))));
        let text = self.note(&name).map_err(traced)?.ok_or_else(missing)?;
        let info = NarInfo::parse(self.dir, &text, &name).map_err(|e| traced(e.into()))?;
        if info.info.path == *path { Ok(info) } else { Err(missing()) }
    }

    /// The archive of an object, unpacked as it is read.
    pub fn archive(&self, info: &NarInfo) -> Result<Archive, FetchError> {
        let Some(compression) = Compression::from_name(&info.compression) else {
            let parts = (self.show(&info.info.path), shown(&self.url), shown(&info.compression));
            return Err(FetchError::new(format!(
                "cannot unpack '{}' from binary cache '{}': compression '{}' is not supported",
                parts.0, parts.1, parts.2
            )));
        };
        let Some(file) = self.file(&info.url)? else {
            let parts = (shown(&info.url), shown(&self.url));
            return Err(FetchError::new(format!("file '{}' does not exist in binary cache '{}'", parts.0, parts.1)));
        };
        let packed = BufReader::with_capacity(1 << 16, file.open()?);
        let bytes = compression.decode(packed).map_err(|e| unreadable(&file.0, &e))?;
        Ok(Archive { bytes, _file: file })
    }

    fn show(&self, path: &StorePath) -> String {
        shown(String::from_utf8_lossy(&self.dir.print(path)))
    }
}

fn unreadable(place: &Path, error: &std::io::Error) -> FetchError {
    FetchError::new(format!("cannot unpack '{}': {error}", shown(place.display())))
}

/// The bytes of an archive.
pub(super) struct Archive {
    bytes: Box<dyn Read>,
    _file: Download,
}

impl Read for Archive {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.bytes.read(into)
    }
}
