//! Git LFS: files of a commit that only say which object they stand for. Objects come from the cache, from the repository's
//! own store of them, or from its server; wherever from, they are what the commit says.
#![allow(clippy::disallowed_methods)] // Looks into repositories and the fetchers' own cache.

use std::io::Read;
use std::path::{Path, PathBuf};

use firn_store::hash::{Algorithm, Format, Hash};
use firn_text::json::Tree as Json;

use super::error::{FetchError, file_error, shown};
use super::fetcher::Fetcher;
use super::git::{self, Location};
use super::http::Transfer;
use super::url::{Url, fix_git_url, url_path_to_path};

/// No pointer is as long.
const LONGEST_POINTER: usize = 1024;
/// The longest answer of a server that tells where an object is.
const LONGEST_ANSWER: u64 = 1 << 20;
const MEDIA: &str = "application/vnd.git-lfs+json";

/// What a file of a commit stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pointer {
    oid: String,
    size: u64,
}

impl Pointer {
    fn parse(content: &[u8]) -> Option<Pointer> {
        let text = std::str::from_utf8(content).ok()?;
        if !text.starts_with("version https://git-lfs.github.com/spec/v1") {
            return None;
        }
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let oid = field("oid sha256:").filter(|oid| oid.len() == 64 && oid.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some(Pointer { oid: oid.to_ascii_lowercase(), size: field("size ")?.parse().ok()? })
    }

    /// Refuses content that is not the object's.
    fn check(&self, content: &[u8], whence: &str) -> Result<(), FetchError> {
        if content.len() as u64 != self.size {
            let parts = (shown(whence), shown(self.size), shown(content.len()));
            return Err(FetchError::new(format!("size mismatch while fetching {}: expected {} but got {}", parts.0, parts.1, parts.2)));
        }
        let actual = Hash::of(Algorithm::Sha256, content).to_string(Format::Base16, false);
        if actual != self.oid {
            let parts = (shown(whence), shown(&self.oid), shown(actual));
            return Err(FetchError::new(format!(
                "hash mismatch while fetching {}: expected sha256:{} but got sha256:{}",
                parts.0, parts.1, parts.2
            )));
        }
        Ok(())
    }
}

/// Puts objects in the place of pointers, for the files of one repository.
pub(super) struct Smudge<'a> {
    pub fetcher: &'a Fetcher,
    /// The repository on disk, and where it is from.
    pub repo: &'a Path,
    pub place: Location,
}

impl Smudge<'_> {
    /// What a file that the attribute `filter=lfs` names has in it.
    pub fn smudge(&self, path: &[u8], content: Vec<u8>) -> Result<Vec<u8>, FetchError> {
        let name = shown(String::from_utf8_lossy(path));
        let doubt = |why: &str| {
            self.fetcher.warn(&format!("encountered file '{name}' that should have been a git-lfs pointer, but is {why}"));
        };
        if content.len() >= LONGEST_POINTER {
            doubt("too large");
            return Ok(content);
        }
        let Some(pointer) = Pointer::parse(&content) else {
            doubt("invalid");
            return Ok(content);
        };
        self.object(&pointer).map_err(|error| error.while_doing(format!("while smudging git-lfs file '{name}'")))
    }

    fn object(&self, pointer: &Pointer) -> Result<Vec<u8>, FetchError> {
        let kept = self.fetcher.cache.dir("git-lfs")?.join(&pointer.oid);
        if let Ok(content) = std::fs::read(&kept)
            && pointer.check(&content, "").is_ok()
        {
            return Ok(content);
        }
        let content = match self.own_object(pointer)? {
            Some(content) => content,
            None => self.download(pointer)?,
        };
        let made = self.fetcher.cache.temporary("git-lfs")?;
        std::fs::write(&made, &content).map_err(|e| file_error("writing", &made, e))?;
        std::fs::rename(&made, &kept).map_err(|e| file_error("renaming", &made, e))?;
        Ok(content)
    }

    /// The object in the repository's own store, or in that of the repository on this machine that it was cloned from.
    fn own_object(&self, pointer: &Pointer) -> Result<Option<Vec<u8>>, FetchError> {
        let below = PathBuf::from("lfs/objects").join(&pointer.oid[..2]).join(&pointer.oid[2..4]).join(&pointer.oid);
        let mut places = Vec::new();
        if let Some(dir) = git::ask(self.repo, &["rev-parse", "--git-common-dir"])?.map(git::line) {
            places.push(self.repo.join(dir));
        }
        if let Location::Remote(url) = &self.place
            && let Some(url) = Url::parse(url, false).ok().filter(|url| url.scheme == "file")
        {
            let path = PathBuf::from(url_path_to_path(&url.path)?);
            places.extend([path.join(".git"), path]);
        }
        for place in places.into_iter().map(|place| place.join(&below)) {
            match std::fs::read(&place) {
                Ok(content) => {
                    pointer.check(&content, &place.display().to_string())?;
                    return Ok(Some(content));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(file_error("reading from", &place, error)),
            }
        }
        Ok(None)
    }

    /// The server's address for objects.
    fn endpoint(&self, pointer: &Pointer) -> Result<Url, FetchError> {
        let named = |key: &str| Ok::<_, FetchError>(git::ask(self.repo, &["config", "--get", key])?.map(git::line));
        let url = match (named("lfs.url")?.filter(|url| !url.is_empty()), &self.place) {
            (Some(url), _) => Some(url),
            (None, Location::Remote(url)) => Some(url.clone()),
            (None, Location::Local(_)) => named("remote.origin.url")?,
        };
        let missing = |why: &str| {
            let parts = (shown(&pointer.oid), shown(self.place.show()));
            FetchError::new(format!("Git LFS object '{}' is not in repository '{}', and {why}", parts.0, parts.1))
        };
        let url = url.ok_or_else(|| missing("the repository has no server to ask for it"))?;
        let parsed = fix_git_url(&url).or_else(|_| Url::parse(&url, true))?;
        match parsed.scheme.as_str() {
            "http" | "https" => Ok(lfs_url(parsed)),
            "file" => Err(missing(&format!("neither is it in '{}', where that is from", shown(url)))),
            scheme => Err(missing(&format!("servers are asked by http and https only, not by '{}'", shown(scheme)))),
        }
    }

    /// Asks the server where the object is, and fetches it from there.
    fn download(&self, pointer: &Pointer) -> Result<Vec<u8>, FetchError> {
        let url = format!("{}/objects/batch", self.endpoint(pointer)?);
        let Pointer { oid, size } = pointer;
        let question =
            format!("{{\"operation\":\"download\",\"transfers\":[\"basic\"],\"objects\":[{{\"oid\":\"{oid}\",\"size\":{size}}}]}}");
        let answer = self.fetcher.post(&url, MEDIA, &question, LONGEST_ANSWER)?;
        let bad = |why: &str| FetchError::new(format!("bad json from '{}': {why}", shown(&url)));
        let answer = Json::parse(&answer).map_err(|_| bad("response did not parse as json"))?;
        let objects = answer.get("objects").and_then(Json::as_list).ok_or_else(|| bad("response does not contain 'objects'"))?;
        let object = objects.first().ok_or_else(|| bad("it names no object"))?;
        if object.get("oid").and_then(Json::as_text) != Some(oid.as_str()) {
            return Err(bad("it names another object"));
        }
        let Some(action) = object.get("actions").and_then(|actions| actions.get("download")) else {
            let told = object.get("error").and_then(|error| error.get("message")).and_then(Json::as_text);
            return Err(bad(told.unwrap_or("it does not say where the object is")));
        };
        let href = action.get("href").and_then(Json::as_text).ok_or_else(|| bad("it does not say where the object is"))?;
        if !href.starts_with("http://") && !href.starts_with("https://") {
            return Err(bad("it does not say where the object is"));
        }
        let token = action.get("header").and_then(|header| header.get("Authorization")).and_then(Json::as_text);
        let headers: Vec<(String, String)> = token.map(|token| ("Authorization".to_owned(), token.to_owned())).into_iter().collect();
        let Transfer::Content(_, file) = self.fetcher.transfer(href, &headers, None)? else {
            return Err(bad("its server says that nothing changed since never"));
        };
        let mut content = Vec::new();
        let read = std::fs::File::open(&file).and_then(|open| open.take(size.saturating_add(1)).read_to_end(&mut content));
        let _ = std::fs::remove_file(&file);
        read.map_err(|e| file_error("reading from", &file, e))?;
        pointer.check(&content, href)?;
        Ok(content)
    }
}

/// Where a repository's server has its objects: `….git/info/lfs`.
fn lfs_url(mut url: Url) -> Url {
    while url.path.last().is_some_and(String::is_empty) && url.path.len() > 1 {
        url.path.pop();
    }
    match url.path.last_mut().filter(|last| !last.is_empty()) {
        Some(last) if last.ends_with(".git") => {}
        Some(last) => last.push_str(".git"),
        None => url.path = vec![String::new(), ".git".to_owned()],
    }
    url.path.extend(["info".to_owned(), "lfs".to_owned()]);
    url.query.clear();
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_told_from_other_files() {
        let oid = "f5e02aa71e67f41d79023a128ca35bad86cf7b6656967bfe0884b3a3c4325eaf";
        let text = format!("version https://git-lfs.github.com/spec/v1\next-0-x sha256:0\noid sha256:{oid}\nsize 12\n");
        assert_eq!(Pointer::parse(text.as_bytes()), Some(Pointer { oid: oid.to_owned(), size: 12 }));
        for other in [text.replace("/v1", "/v0"), text.replace("12", "x"), text.replace("f5", "g5"), String::new()] {
            assert_eq!(Pointer::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn servers_have_their_objects_below_the_repository() {
        for (url, lfs) in [
            ("https://h/a/b", "https://h/a/b.git/info/lfs"),
            ("https://h/a/b.git", "https://h/a/b.git/info/lfs"),
            ("https://h/a/b/", "https://h/a/b.git/info/lfs"),
            ("https://h", "https://h/.git/info/lfs"),
        ] {
            assert_eq!(lfs_url(Url::parse(url, false).expect("a URL")).to_string(), lfs);
        }
    }
}
