//! How users name stores (`--store`, `NIX_REMOTE`), and the directories that a name stands for.

use std::collections::BTreeMap;

use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};

use crate::{AbsPath, Host, HostError};

/// What sort of store is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whatever this machine has.
    Auto,
    /// A directory, below the given root or else where the environment says.
    Local(Option<AbsPath>),
    /// A daemon at the given socket, or else where the environment says.
    Daemon(Option<AbsPath>),
    /// None: paths are computed, nothing is written.
    Dummy,
    /// A scheme that firn does not write to.
    Other(Vec<u8>),
}

/// A store's name, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoreReference {
    /// The sort of store.
    pub kind: Kind,
    /// What follows `?`.
    pub parameters: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl StoreReference {
    /// Parses a name; relative paths are seen from `here`.
    pub fn parse(text: &[u8], here: &AbsPath) -> Result<StoreReference> {
        let (base, query) = match text.iter().position(|&b| b == b'?') {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, &[][..]),
        };
        let kind = match base {
            b"" | b"auto" => Kind::Auto,
            b"daemon" => Kind::Daemon(None),
            b"local" => Kind::Local(None),
            _ => match scheme(base) {
                Some((scheme, rest)) => of_scheme(scheme, rest)?,
                None if base.contains(&b'/') => Kind::Local(Some(here.join(base).map_err(bad_path)?)),
                None => return Err(Error::new(ErrorKind::Usage, &[b"Cannot parse Nix store '", text, b"'"])),
            },
        };
        Ok(StoreReference { kind, parameters: parameters(query)? })
    }

    /// The directories of the store; `dir` is the store directory unless the name has another.
    pub fn places(&self, host: &dyn Host, dir: &StoreDir) -> Result<Places> {
        let absolute = |name: &[u8]| self.parameters.get(name).map(|raw| absolute(name, raw)).transpose();
        let root = match (absolute(b"root")?, &self.kind) {
            (Some(root), _) => Some(root),
            (None, Kind::Local(root)) => root.clone(),
            _ => None,
        };
        let dir = match self.parameters.get(&b"store"[..]) {
            Some(raw) => StoreDir::new(raw)?,
            None => dir.clone(),
        };
        let below = |rest: &[u8]| root.as_ref().map(|root| root.beneath(rest)).transpose().map_err(bad_path);
        let state = match (absolute(b"state")?, below(b"nix/var/nix")?) {
            (Some(state), _) | (None, Some(state)) => state,
            (None, None) => default_state(host)?,
        };
        let real = match (absolute(b"real")?, below(b"nix/store")?) {
            (Some(real), _) | (None, Some(real)) => real,
            (None, None) => AbsPath::new(dir.as_bytes()).map_err(bad_path)?,
        };
        Ok(Places { dir, real, state })
    }
}

/// Where a store lies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// The directory that paths are printed under.
    pub dir: StoreDir,
    /// The directory that holds the objects.
    pub real: AbsPath,
    /// The directory of the database and the roots.
    pub state: AbsPath,
}

impl Places {
    /// The socket of the daemon that serves this store.
    pub fn socket(&self, host: &dyn Host) -> Result<AbsPath> {
        match host.env(b"NIX_DAEMON_SOCKET_PATH").filter(|path| !path.is_empty()) {
            Some(path) => AbsPath::new(&path).map_err(bad_path),
            None => self.state.beneath(b"daemon-socket/socket").map_err(bad_path),
        }
    }
}

fn default_state(host: &dyn Host) -> Result<AbsPath> {
    let named = host.env(b"NIX_STATE_DIR").filter(|dir| !dir.is_empty());
    AbsPath::new(named.as_deref().unwrap_or(b"/nix/var/nix")).map_err(bad_path)
}

fn absolute(name: &[u8], raw: &[u8]) -> Result<AbsPath> {
    if raw.first() != Some(&b'/') {
        let parts: [&[u8]; 5] = [b"setting '", name, b"' of a store is a path, but '", raw, b"' is not absolute"];
        return Err(Error::new(ErrorKind::Usage, &parts));
    }
    AbsPath::new(raw).map_err(bad_path)
}

pub(super) fn bad_path(error: HostError) -> Error {
    Error::new(ErrorKind::Usage, &[&error.to_bytes()])
}

fn scheme(base: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = base.windows(3).position(|part| part == b"://")?;
    Some((&base[..at], &base[at + 3..]))
}

fn of_scheme(scheme: &[u8], rest: &[u8]) -> Result<Kind> {
    let path = || -> Result<Option<AbsPath>> {
        let decoded = percent_decoded(rest)?;
        if decoded.is_empty() { Ok(None) } else { AbsPath::new(&decoded).map(Some).map_err(bad_path) }
    };
    Ok(match scheme {
        b"dummy" => Kind::Dummy,
        b"unix" => Kind::Daemon(path()?),
        b"local" => Kind::Local(path()?),
        b"auto" | b"daemon" if rest.is_empty() => {
            return Err(Error::new(ErrorKind::Usage, &[b"Cannot parse Nix store '", scheme, b"://'"]));
        }
        other => Kind::Other(other.to_vec()),
    })
}

fn parameters(query: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut all = BTreeMap::new();
    for part in query.split(|&b| b == b'&').filter(|part| !part.is_empty()) {
        // NIX: a part without `=` is skipped with a warning.
        let Some(at) = part.iter().position(|&b| b == b'=') else { continue };
        all.insert(percent_decoded(&part[..at])?, percent_decoded(&part[at + 1..])?);
    }
    Ok(all)
}

fn percent_decoded(raw: &[u8]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |index: usize| after.get(index).and_then(|&b| char::from(b).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(Error::new(ErrorKind::Usage, &[b"invalid URI parameter '", raw, b"'"]));
        };
        bytes.push((high * 16 + low) as u8);
        rest = &after[2..];
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryHost, MemoryWorld};

    fn parse(text: &str) -> StoreReference {
        StoreReference::parse(text.as_bytes(), &AbsPath::new(b"/here").unwrap()).unwrap()
    }

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn names_of_stores() {
        assert_eq!(parse("").kind, Kind::Auto);
        assert_eq!(parse("auto").kind, Kind::Auto);
        assert_eq!(parse("daemon").kind, Kind::Daemon(None));
        assert_eq!(parse("unix:///run/s%20k").kind, Kind::Daemon(Some(path("/run/s k"))));
        assert_eq!(parse("local").kind, Kind::Local(None));
        assert_eq!(parse("./x").kind, Kind::Local(Some(path("/here/x"))));
        assert_eq!(parse("/x").kind, Kind::Local(Some(path("/x"))));
        assert_eq!(parse("dummy://").kind, Kind::Dummy);
        assert_eq!(parse("ssh-ng://host").kind, Kind::Other(b"ssh-ng".to_vec()));
        assert!(StoreReference::parse(b"nonsense", &path("/")).is_err());
    }

    #[test]
    fn places_follow_root_and_parameters() {
        let host = MemoryHost::new(MemoryWorld::new());
        let dir = StoreDir::default();
        let rooted = parse("local?root=/r").places(&host, &dir).unwrap();
        assert_eq!(rooted.real, path("/r/nix/store"));
        assert_eq!(rooted.state, path("/r/nix/var/nix"));
        assert_eq!(rooted.dir, dir);
        let given = parse("local?root=/r&state=/s&real=/o").places(&host, &dir).unwrap();
        assert_eq!((given.real, given.state), (path("/o"), path("/s")));
        let plain = parse("local").places(&host, &dir).unwrap();
        assert_eq!((plain.real, plain.state), (path("/nix/store"), path("/nix/var/nix")));
        assert!(parse("local?root=r").places(&host, &dir).is_err());
    }
}
