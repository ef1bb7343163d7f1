//! `Restricted`: what `restrict-eval` and `pure-eval` may see, and the refusals for the rest.
//!
//! Wrap it around every other host: a forbidden path is refused before anything is asked of the disk. Prefixes are added
//! while evaluation runs, as store paths come into being.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use crate::host::hand_on;
use crate::search::{EntrySource, PseudoUrl, SearchPath, entry_path};
use crate::{AbsPath, Code, Entry, FileContent, FileType, Host, HostError, Listing, Mode, Stat};

/// A host that shows only what lies below, or leads to, its allowed prefixes.
pub struct Restricted<H> {
    host: H,
    mode: Mode,
    allowed: RwLock<BTreeSet<AbsPath>>,
    allowed_uris: Vec<Vec<u8>>,
}

impl<H: Host> Restricted<H> {
    /// Nothing is allowed yet. `allowed_uris` is the setting of that name.
    pub fn new(host: H, mode: Mode, allowed_uris: Vec<Vec<u8>>) -> Restricted<H> {
        Restricted { host, mode, allowed: RwLock::default(), allowed_uris }
    }

    /// The host behind, which refuses nothing.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// Allows a path, all below it, and the way to it.
    pub fn allow(&self, prefix: AbsPath) {
        self.allowed.write().unwrap_or_else(PoisonError::into_inner).insert(prefix);
    }

    /// Allows the paths of a search path, as Nix does before evaluation begins. Fetched trees are allowed by whoever
    /// fetches them.
    pub fn allow_search_path(&self, search: &SearchPath, entries: &dyn EntrySource) -> Result<(), HostError> {
        for entry in &*search.entries {
            if let Some(url) = PseudoUrl::parse(&entry.path)
                && entries.fetch(url)?.is_some()
            {
                continue;
            }
            self.allow(entry_path(&self.host, &entry.path)?);
        }
        Ok(())
    }

    /// Whether the path lies below an allowed prefix or leads to one.
    pub fn is_allowed(&self, path: &AbsPath) -> bool {
        let allowed = self.allowed.read().unwrap_or_else(PoisonError::into_inner);
        // In the order of paths, everything below `path` follows it at once.
        let leads_to_one = allowed.range::<AbsPath, _>(path..).next().is_some_and(|next| next.is_within(path));
        leads_to_one || std::iter::successors(path.parent(), AbsPath::parent).any(|dir| allowed.contains(&dir))
    }

    /// Refuses an address outside `allowed-uris`. Only `restrict-eval` does; paths count as paths.
    pub fn check_uri(&self, uri: &[u8]) -> Result<(), HostError> {
        if self.mode == Mode::Pure || is_allowed_uri(uri, &self.allowed_uris) {
            return Ok(());
        }
        if uri.first() == Some(&b'/') {
            return self.check_access(&AbsPath::new(uri)?);
        }
        if let Some(path) = uri.strip_prefix(b"file://").filter(|path| path.first() == Some(&b'/')) {
            return self.check_access(&AbsPath::new(&percent_decoded(path))?);
        }
        Err(HostError::ForbiddenUri(uri.into()))
    }

    /// Of a listing, the names that may be seen.
    fn seen_of(&self, path: &AbsPath, listing: Listing) -> Listing {
        let seen = |name: &[u8]| self.is_allowed(&path.child(name));
        if listing.entries().iter().all(|(name, _)| seen(name)) {
            return listing;
        }
        Listing::new(listing.entries().iter().filter(|(name, _)| seen(name)).cloned().collect())
    }
}

/// Equal to an allowed prefix, below one at a `/`, or of an allowed scheme (`https:`).
fn is_allowed_uri(uri: &[u8], allowed: &[Vec<u8>]) -> bool {
    allowed.iter().any(|prefix| {
        let Some(rest) = uri.strip_prefix(&**prefix) else { return false };
        rest.is_empty()
            || (!prefix.is_empty()
                && (prefix.ends_with(b"/") || rest.first() == Some(&b'/') || is_scheme_prefix(prefix)))
    })
}

fn is_scheme_prefix(prefix: &[u8]) -> bool {
    let Some((first, rest)) = prefix.strip_suffix(b":").and_then(|scheme| scheme.split_first()) else { return false };
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    first.is_ascii_alphabetic() && rest.iter().all(inner)
}

/// Undoes `%41`; what is no escape stays.
fn percent_decoded(raw: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let escape = (byte == b'%').then(|| after.get(..2)).flatten();
        let digits = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit())) {
            Some(digits) => {
                bytes.push(u8::from_str_radix(digits, 16).unwrap_or(byte));
                rest = &after[2..];
            }
            None => bytes.push(byte),
        }
    }
    bytes
}

impl<H: Host> Host for Restricted<H> {
    hand_on!(self => self.host; seen_at seen_text related notes_places mount current_time home current_dir);

    /// NIX: the type of a forbidden path is absent, not refused; only [`Host::existing_type`] refuses.
    fn lstat(&self, path: &AbsPath) -> Result<Option<Stat>, HostError> {
        if self.is_allowed(path) { self.host.lstat(path) } else { Ok(None) }
    }

    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.check_access(path)?;
        self.host.read_file(path)
    }

    fn read_once(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.check_access(path)?;
        self.host.read_once(path)
    }

    fn read_code(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        self.check_access(path)?;
        self.host.read_code(path)
    }

    fn read_bindings(&self, path: &AbsPath) -> Result<Code, HostError> {
        self.check_access(path)?;
        self.host.read_bindings(path)
    }

    fn allow(&self, prefix: AbsPath) {
        Restricted::allow(self, prefix);
    }

    /// The directories above an allowed path show only the way to it.
    fn read_dir(&self, path: &AbsPath) -> Result<Listing, HostError> {
        self.check_access(path)?;
        Ok(self.seen_of(path, self.host.read_dir(path)?))
    }

    fn read_names(&self, path: &AbsPath) -> Result<(Listing, Option<u32>), HostError> {
        self.check_access(path)?;
        let (listing, guard) = self.host.read_names(path)?;
        Ok((self.seen_of(path, listing), guard))
    }

    fn dir_entry(&self, dir: &AbsPath, name: &[u8]) -> Result<Option<Entry>, HostError> {
        self.check_access(dir)?;
        let seen = dir.beneath(name).is_ok_and(|path| self.is_allowed(&path));
        if seen { self.host.dir_entry(dir, name) } else { self.host.read_dir(dir).map(|_| None) }
    }

    fn read_link(&self, path: &AbsPath) -> Result<Arc<[u8]>, HostError> {
        self.check_access(path)?;
        self.host.read_link(path)
    }

    /// NIX: every variable is unset.
    fn env(&self, _name: &[u8]) -> Option<Arc<[u8]>> {
        None
    }

    fn check_access(&self, path: &AbsPath) -> Result<(), HostError> {
        if self.is_allowed(path) { Ok(()) } else { Err(HostError::Forbidden(path.clone(), self.mode)) }
    }

    fn file_type(&self, path: &AbsPath) -> Result<Option<FileType>, HostError> {
        if self.is_allowed(path) { self.host.file_type(path) } else { Ok(None) }
    }

    fn existing_type(&self, path: &AbsPath) -> Result<FileType, HostError> {
        self.check_access(path)?;
        self.host.existing_type(path)
    }
}
