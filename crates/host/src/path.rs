//! `AbsPath`: an absolute path as bytes, canonical by construction and by letters only.
//!
//! Every question about a file is asked with one. Canonical means: begins with `/`, no empty, `.` or `..` component,
//! no trailing slash (the root excepted), no NUL byte. Nothing here touches the disk.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::HostError;

/// An absolute, lexically canonical path. Cheap to clone; equal and hashed by its bytes.
///
/// ```
/// use firn_host::AbsPath;
/// let path = AbsPath::new(b"/a//b/./c/../d/")?;
/// assert_eq!(path.as_bytes(), b"/a/b/d");
/// assert_eq!(path.join(b"../e")?.as_bytes(), b"/a/b/e");
/// assert_eq!(path.join(b"/e")?.as_bytes(), b"/e");
/// # Ok::<(), firn_host::HostError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AbsPath(Arc<[u8]>);

impl std::borrow::Borrow<[u8]> for AbsPath {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AbsPath {
    /// The root directory, `/`.
    pub fn root() -> AbsPath {
        AbsPath(Arc::from(&b"/"[..]))
    }

    /// Canonicalises `raw` as if it began with `/`. Fails only on a NUL byte.
    pub fn new(raw: &[u8]) -> Result<AbsPath, HostError> {
        refuse_nul(raw)?;
        Ok(AbsPath::canonical(&[raw]))
    }

    /// `raw` seen from this directory: itself if it begins with `/`, otherwise appended and canonicalised.
    pub fn join(&self, raw: &[u8]) -> Result<AbsPath, HostError> {
        refuse_nul(raw)?;
        Ok(if raw.first() == Some(&b'/') { AbsPath::canonical(&[raw]) } else { AbsPath::canonical(&[&self.0, raw]) })
    }

    /// `raw` canonicalised by itself and then placed below this path: no `..` in it can climb out.
    pub fn beneath(&self, raw: &[u8]) -> Result<AbsPath, HostError> {
        if is_plain(raw) {
            let above = if self.is_root() { &[] } else { &self.0[..] };
            return Ok(AbsPath([above, raw].concat().into()));
        }
        let inner = AbsPath::new(raw)?;
        Ok(match (self.is_root(), inner.is_root()) {
            (_, true) => self.clone(),
            (true, _) => inner,
            _ => AbsPath([&self.0[..], &inner.0[..]].concat().into()),
        })
    }

    /// One component below this path. `name` comes from a listing or from another canonical path.
    pub fn child(&self, name: &[u8]) -> AbsPath {
        debug_assert!(!name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/'));
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        if !self.is_root() {
            bytes.extend_from_slice(&self.0);
        }
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        AbsPath(bytes.into())
    }

    /// Canonicalises the parts one after the other. Callers have refused NUL, or never ask the disk.
    pub(crate) fn canonical(parts: &[&[u8]]) -> AbsPath {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 1).sum());
        for component in parts.iter().flat_map(|part| part.split(|&byte| byte == b'/')) {
            match component {
                b"" | b"." => {}
                b".." => bytes.truncate(bytes.iter().rposition(|&byte| byte == b'/').unwrap_or(0)),
                name => {
                    bytes.push(b'/');
                    bytes.extend_from_slice(name);
                }
            }
        }
        if bytes.is_empty() {
            bytes.push(b'/');
        }
        AbsPath(bytes.into())
    }

    /// Whether this is `/`.
    pub fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// The path as bytes, `/` first.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as the standard library wants it.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// The directory this path lies in; none for the root.
    pub fn parent(&self) -> Option<AbsPath> {
        if self.is_root() {
            return None;
        }
        let slash = self.0.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        Some(if slash == 0 { AbsPath::root() } else { AbsPath(Arc::from(&self.0[..slash])) })
    }

    /// The path and those above it as bytes, the root last.
    pub fn upwards(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::successors(Some(self.as_bytes()), |path| match path.iter().rposition(|&byte| byte == b'/') {
            _ if path.len() == 1 => None,
            Some(0) | None => Some(&path[..1]),
            Some(slash) => Some(&path[..slash]),
        })
    }

    /// The last component; none for the root.
    pub fn base_name(&self) -> Option<&[u8]> {
        if self.is_root() { None } else { self.components().next_back() }
    }

    /// The components in order, none for the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/').filter(|component| !component.is_empty())
    }

    /// Whether this path is `other` or lies below it.
    pub fn is_within(&self, other: &AbsPath) -> bool {
        other.is_root()
            || self.0.strip_prefix(&*other.0).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
    }

    /// How to walk from this path to `other` by letters: `.`, `x/y`, `../x`. The same for every place the two share.
    pub fn relative_to(&self, other: &AbsPath) -> Vec<u8> {
        let common = self.components().zip(other.components()).take_while(|(a, b)| a == b).count();
        let up = self.components().skip(common).map(|_| &b".."[..]);
        let steps: Vec<&[u8]> = up.chain(other.components().skip(common)).collect();
        if steps.is_empty() { b".".to_vec() } else { steps.join(&b'/') }
    }
}

/// Nix's refusal, with the NUL shown as a picture of it.
/// Whether a path is certainly canonical: it is written from the root, and no component begins with a dot.
// PERF: whoever reads observations back makes tens of thousands of paths, nearly all of them plain.
fn is_plain(raw: &[u8]) -> bool {
    let ([b'/', after @ ..], [before @ .., last]) = (raw, raw) else { return false };
    // All at once: no byte decides alone, so that many are looked at together.
    let is_odd = |(&one, &next): (&u8, &u8)| u8::from(next == 0) | u8::from(one == b'/') & (u8::from(next == b'/') | u8::from(next == b'.'));
    !after.is_empty() && *last != b'/' && before.iter().zip(after).map(is_odd).fold(0, |odd, one| odd | one) == 0
}

fn refuse_nul(raw: &[u8]) -> Result<(), HostError> {
    if raw.contains(&0) { Err(HostError::NulInPath(raw.into())) } else { Ok(()) }
}

/// `/` sorts before every other byte, so that a directory is followed at once by all that lies in it.
impl Ord for AbsPath {
    fn cmp(&self, other: &AbsPath) -> Ordering {
        let rank = |byte: u8| if byte == b'/' { 0 } else { byte };
        // PERF: ranks only where the paths part. No byte of a path is 0.
        match self.0.iter().zip(&*other.0).find(|(a, b)| a != b) {
            Some((&a, &b)) => rank(a).cmp(&rank(b)),
            None => self.0.len().cmp(&other.0.len()),
        }
    }
}

impl PartialOrd for AbsPath {
    fn partial_cmp(&self, other: &AbsPath) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        String::from_utf8_lossy(&self.0).fmt(f)
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(raw: &str) -> AbsPath {
        AbsPath::new(raw.as_bytes()).expect("no NUL in test paths")
    }

    #[test]
    fn canonical_by_letters() {
        for (raw, expected) in [
            ("", "/"),
            ("/", "/"),
            ("//", "/"),
            ("/..", "/"),
            ("/../../x", "/x"),
            ("a/./b/", "/a/b"),
            ("/a/b/../../..", "/"),
            ("/a/...", "/a/..."),
            ("/a/.b/..c", "/a/.b/..c"),
        ] {
            assert_eq!(path(raw), path(expected), "{raw}");
            assert_eq!(path(raw).as_bytes(), expected.as_bytes(), "{raw}");
        }
    }

    #[test]
    fn nul_is_refused_with_a_picture() {
        let error = AbsPath::new(b"/a\0b").expect_err("NUL");
        assert_eq!(error.to_string(), "path segment '/a\u{2400}b' must not contain null (\\0) bytes");
    }

    #[test]
    fn parents_and_names() {
        assert_eq!(path("/").parent(), None);
        assert_eq!(path("/").base_name(), None);
        assert_eq!(path("/a").parent(), Some(path("/")));
        assert_eq!(path("/a/b").parent(), Some(path("/a")));
        assert_eq!(path("/a/b").base_name(), Some(&b"b"[..]));
        assert_eq!(path("/a/b").beneath(b"../../c").expect("no NUL"), path("/a/b/c"));
        assert_eq!(path("/").child(b"x"), path("/x"));
        assert_eq!(path("/a").child(b"x"), path("/a/x"));
    }

    #[test]
    fn within_and_order() {
        assert!(path("/a/b").is_within(&path("/a")));
        assert!(path("/a").is_within(&path("/a")));
        assert!(path("/a").is_within(&path("/")));
        assert!(!path("/ab").is_within(&path("/a")));
        let mut paths = [path("/a/x"), path("/a-b"), path("/a"), path("/"), path("/0")];
        paths.sort();
        assert_eq!(paths, [path("/"), path("/0"), path("/a"), path("/a/x"), path("/a-b")]);
    }

    #[test]
    fn relative_walks() {
        assert_eq!(path("/t/a/b").relative_to(&path("/t/a/b")), b".");
        assert_eq!(path("/t/a/b").relative_to(&path("/t/c")), b"../../c");
        assert_eq!(path("/t").relative_to(&path("/t/c/d")), b"c/d");
        assert_eq!(path("/t").relative_to(&path("/")), b"..");
    }
}
