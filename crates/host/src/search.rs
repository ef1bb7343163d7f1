//! `SearchPath`: the entries of `NIX_PATH` and `-I`, and how `<name>` is found among them.
//!
//! Entries that name a download or a flake are handed to an [`EntrySource`], which the caller brings along: this module
//! knows their shape, not how to fetch them. Nothing is remembered between lookups, so that each one observes all it
//! depends on; the host below makes the second one cheap.

use std::sync::Arc;

use crate::{AbsPath, Follow, Host, HostError};

/// One entry: `prefix=path`, or a bare path that any name may lie in.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SearchEntry {
    /// What the name must begin with; empty matches every name.
    pub prefix: Arc<[u8]>,
    /// A path, relative ones seen from the current directory, or a pseudo-URL.
    pub path: Arc<[u8]>,
}

impl SearchEntry {
    /// Parses `prefix=path` or `path`; the first `=` separates.
    pub fn parse(raw: &[u8]) -> SearchEntry {
        match raw.iter().position(|&byte| byte == b'=') {
            Some(at) => SearchEntry { prefix: raw[..at].into(), path: raw[at + 1..].into() },
            None => SearchEntry { prefix: Arc::default(), path: raw.into() },
        }
    }

    /// What is left of `name` to look for inside this entry; none if the entry is not concerned.
    fn suffix<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let rest = name.strip_prefix(&*self.prefix)?;
        match rest.split_first() {
            Some((b'/', inner)) if !self.prefix.is_empty() => Some(inner),
            Some(_) if !self.prefix.is_empty() => None,
            _ => Some(rest),
        }
    }
}

/// An entry that has to be fetched before it can be looked into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PseudoUrl<'a> {
    /// A tarball: `channel:NAME` or a URL. The caller gets the address with [`tarball_url`].
    Tarball(&'a [u8]),
    /// `flake:REF`; this is what follows the colon.
    Flake(&'a [u8]),
}

impl<'a> PseudoUrl<'a> {
    /// Tells pseudo-URLs from paths.
    pub fn parse(entry: &'a [u8]) -> Option<PseudoUrl<'a>> {
        if is_tarball(entry) {
            Some(PseudoUrl::Tarball(entry))
        } else {
            entry.strip_prefix(b"flake:").map(PseudoUrl::Flake)
        }
    }
}

/// `channel:NAME`, or a URL of a scheme that tarballs are fetched by.
fn is_tarball(entry: &[u8]) -> bool {
    const SCHEMES: [&[u8]; 7] = [b"http", b"https", b"file", b"channel", b"git", b"s3", b"ssh"];
    let scheme = entry.windows(3).position(|window| window == b"://").map(|at| &entry[..at]);
    entry.starts_with(b"channel:") || scheme.is_some_and(|scheme| SCHEMES.contains(&scheme))
}

/// The address a tarball entry stands for: `channel:` names an archive of the NixOS channels.
pub fn tarball_url(entry: &[u8]) -> Vec<u8> {
    match entry.strip_prefix(b"channel:") {
        Some(name) => [b"https://channels.nixos.org/", name, b"/nixexprs.tar.xz"].concat(),
        None => entry.to_vec(),
    }
}

/// Fetches entries and hears what the user should be told about them.
pub trait EntrySource {
    /// The tree a pseudo-URL stands for. `Ok(None)`: it cannot be had (for a tarball the lookup warns and goes on).
    fn fetch(&self, url: PseudoUrl<'_>) -> Result<Option<AbsPath>, HostError>;

    /// A warning in Nix's words. Nix gives each once per run; whoever prints keeps count.
    fn warn(&self, message: &[u8]);
}

/// Fetches nothing and says nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct LocalOnly;

impl EntrySource for LocalOnly {
    fn fetch(&self, _url: PseudoUrl<'_>) -> Result<Option<AbsPath>, HostError> {
        Ok(None)
    }
    fn warn(&self, _message: &[u8]) {}
}

/// Where a name was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// At this path, links resolved.
    Path(AbsPath),
    /// Among the files that come with the evaluator: `<nix/fetchurl.nix>` gives `/fetchurl.nix`.
    Builtin(AbsPath),
}

/// The entries in the order they are tried. Cheap to clone.
///
/// ```
/// use firn_host::{Found, Host, LocalOnly, MemoryHost, MemoryWorld, SearchPath};
/// let world = MemoryWorld::new();
/// world.write("/np/lib/default.nix", "{ }");
/// let host = MemoryHost::new(world);
/// let search = SearchPath::parse_nix_path(b"nixpkgs=/np:/elsewhere");
/// let Found::Path(path) = host.find_file(&search, b"nixpkgs/lib", &LocalOnly)? else { unreachable!() };
/// assert_eq!(path.as_bytes(), b"/np/lib");
/// # Ok::<(), firn_host::HostError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SearchPath {
    /// The entries in order.
    pub entries: Arc<[SearchEntry]>,
    /// Whether lookups fail in the words of pure evaluation.
    pub pure: bool,
}

impl SearchPath {
    /// Takes the entries as they are.
    pub fn new(entries: impl IntoIterator<Item = SearchEntry>) -> SearchPath {
        SearchPath { entries: entries.into_iter().collect(), pure: false }
    }

    /// The value of `NIX_PATH`: entries between colons, where the colon of a pseudo-URL does not separate.
    pub fn parse_nix_path(raw: &[u8]) -> SearchPath {
        SearchPath::new(nix_path_entries(raw))
    }

    /// The whole search path of a run, in Nix's order: arguments, then `NIX_PATH` or the `nix-path` setting (which
    /// `NIX_PATH` overrides, empty or not), then the channels that exist unless evaluation is restricted.
    pub fn of_run(
        host: &(impl Host + ?Sized),
        arguments: &[SearchEntry],
        setting: &[SearchEntry],
        defaults: Option<&DefaultPaths>,
    ) -> Result<SearchPath, HostError> {
        let mut entries = arguments.to_vec();
        match host.env(b"NIX_PATH") {
            Some(raw) => entries.extend(nix_path_entries(&raw)),
            None => entries.extend_from_slice(setting),
        }
        if let Some(defaults) = defaults {
            entries.extend(defaults.existing(host)?);
        }
        Ok(SearchPath::new(entries))
    }

    /// The first entry that has `name`. Asked through [`Host::find_file`], so that a recorder sees one question.
    pub(crate) fn find<H: Host + ?Sized>(
        &self,
        host: &H,
        name: &[u8],
        entries: &dyn EntrySource,
    ) -> Result<Found, HostError> {
        for entry in &*self.entries {
            let Some(suffix) = entry.suffix(name) else { continue };
            let Some(root) = entry_root(host, &entry.path, entries)? else { continue };
            let path = host.resolve_symlinks(&root.beneath(suffix)?, Follow::Full)?;
            if host.file_type(&path)?.is_some() {
                return Ok(Found::Path(path));
            }
            // NIX: a file that may not be seen ends the lookup instead of passing to the next entry.
            host.check_access(&path)?;
        }
        if let Some(inner) = name.strip_prefix(b"nix/") {
            return Ok(Found::Builtin(AbsPath::new(inner)?));
        }
        Err(if self.pure { HostError::LookupWhenPure(name.into()) } else { HostError::NotInSearchPath(name.into()) })
    }
}

/// The directory an entry stands for; none (after a warning) if it has none.
fn entry_root<H: Host + ?Sized>(
    host: &H,
    entry: &[u8],
    entries: &dyn EntrySource,
) -> Result<Option<AbsPath>, HostError> {
    if let Some(url) = PseudoUrl::parse(entry) {
        if let Some(root) = entries.fetch(url)? {
            return Ok(Some(root));
        }
        if matches!(url, PseudoUrl::Tarball(_)) {
            warn(entries, entry, b"cannot be downloaded");
        }
    }
    // NIX: what could not be fetched is tried as a relative path, with the second warning that follows from it.
    let root = entry_path(host, entry)?;
    let real = host.resolve_symlinks(&root, Follow::Full)?;
    if host.file_type(&real)?.is_some() {
        return Ok(Some(root));
    }
    host.check_access(&root)?;
    warn(entries, entry, b"does not exist");
    Ok(None)
}

/// An entry as a path: relative ones are seen from the current directory.
pub(crate) fn entry_path<H: Host + ?Sized>(host: &H, entry: &[u8]) -> Result<AbsPath, HostError> {
    if entry.first() == Some(&b'/') { AbsPath::new(entry) } else { host.current_dir()?.join(entry) }
}

fn warn(entries: &dyn EntrySource, entry: &[u8], why: &[u8]) {
    entries.warn(&[b"Nix search path entry '", entry, b"' ", why, b", ignoring"].concat());
}

/// NIX: the variable reaches the `nix-path` setting as words, so that white space separates entries too.
fn nix_path_entries(raw: &[u8]) -> Vec<SearchEntry> {
    let white = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let words = split_nix_path(raw).into_iter().flat_map(|entry| entry.split(white));
    words.filter(|word| !word.is_empty()).map(SearchEntry::parse).collect()
}

fn split_nix_path(raw: &[u8]) -> Vec<&[u8]> {
    let mut entries = Vec::new();
    let mut start = 0;
    let end_from = |from: usize| raw[from..].iter().position(|&byte| byte == b':').map(|at| from + at);
    while start < raw.len() {
        let Some(mut end) = end_from(start) else {
            entries.push(&raw[start..]);
            break;
        };
        // NIX: the last `=` before the first colon begins the path, though an entry is split at its first `=`. What
        // follows is looked at up to the end of the variable, as Nix does.
        let path = raw[start..end].iter().rposition(|&byte| byte == b'=').map_or(start, |at| start + at + 1);
        if PseudoUrl::parse(&raw[path..]).is_some() {
            end = end_from(end + 1).unwrap_or(raw.len());
        }
        entries.push(&raw[start..end]);
        start = end + 1;
    }
    entries
}

/// Where the channels of this user and of root lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultPaths {
    /// `~/.nix-defexpr` (or its place under the XDG state directory).
    pub def_expr: AbsPath,
    /// The state directory of Nix, usually `/nix/var/nix`.
    pub state_dir: AbsPath,
}

impl DefaultPaths {
    /// The entries Nix appends, those that exist: the user's channels, `nixpkgs` of root's, root's channels.
    pub fn existing(&self, host: &(impl Host + ?Sized)) -> Result<Vec<SearchEntry>, HostError> {
        let root_channels = self.state_dir.beneath(b"profiles/per-user/root/channels")?;
        let candidates = [
            (&b""[..], self.def_expr.beneath(b"channels")?),
            (b"nixpkgs", root_channels.beneath(b"nixpkgs")?),
            (b"", root_channels),
        ];
        let mut entries = Vec::new();
        for (prefix, path) in candidates {
            let real = host.resolve_symlinks(&path, Follow::Full)?;
            if host.file_type(&real)?.is_some() {
                entries.push(SearchEntry { prefix: prefix.into(), path: path.as_bytes().into() });
            }
        }
        Ok(entries)
    }
}
