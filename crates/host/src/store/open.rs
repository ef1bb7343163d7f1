//! Opening the store that a name stands for, with what the settings say about stores.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, OnceLock};

use firn_store::context::Built;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};
use unix::unistd::{AccessFlags, Uid, access};

use super::behind::{Backend, Behind, Item};
use super::daemon::Daemon;
use super::local::Local;
use super::reference::{Kind, Places, StoreReference, bad_path};
use super::{EvalOnly, Missing, Store};
use crate::{AbsPath, Host};

/// Takes lines for the user: what builds print, what the daemon says.
pub type Log = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Settings of a store.
#[derive(Clone)]
pub struct StoreSettings {
    /// Additions are written as they come; otherwise only what a build needs.
    pub eager: bool,
    /// Settings that were given, by name: a daemon is told those that are not its own.
    pub overrides: BTreeMap<String, Vec<u8>>,
    /// `use-sqlite-wal`.
    pub wal: bool,
    /// `fsync-metadata`.
    pub fsync_metadata: bool,
    /// `fsync-store-paths`.
    pub fsync_store_paths: bool,
    /// `allow-symlinked-store`.
    pub allow_symlinked_store: bool,
    /// How much the user wants to hear.
    pub verbosity: i32,
    /// Who tells the user.
    pub log: Log,
    /// The `nix-daemon` that builds in directory stores.
    pub daemon_program: Option<OsString>,
}

impl StoreSettings {
    /// Nix's defaults.
    pub fn new(log: Log) -> StoreSettings {
        StoreSettings {
            eager: true,
            overrides: BTreeMap::new(),
            wal: true,
            fsync_metadata: true,
            fsync_store_paths: false,
            allow_symlinked_store: false,
            verbosity: 3,
            log,
            daemon_program: None,
        }
    }

    /// Whether a given Boolean is true.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.overrides.get(name).is_some_and(|value| value == b"true")
    }

    /// A given number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        std::str::from_utf8(self.overrides.get(name)?).ok()?.parse().ok()
    }
}

impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSettings")
            .field("eager", &self.eager)
            .field("overrides", &self.overrides)
            .finish_non_exhaustive()
    }
}

/// The store that a name stands for, and where its objects lie. It is opened when it is first needed, by whoever needs
/// it: a run that adds and asks nothing opens nothing.
pub fn open(
    host: &Arc<dyn Host>,
    reference: &StoreReference,
    dir: &StoreDir,
    settings: StoreSettings,
) -> Result<(Arc<dyn Store>, Places)> {
    let mut places = reference.places(&**host, dir)?;
    let kind = match &reference.kind {
        Kind::Auto => detect(&**host, &mut places, reference, dir)?,
        other => other.clone(),
    };
    let eager = settings.eager;
    let way = match kind {
        Kind::Dummy => return Ok((Arc::new(EvalOnly::new(places.dir.clone(), host.clone())), places)),
        Kind::Daemon(Some(socket)) => Way::Daemon(socket),
        Kind::Daemon(None) => Way::Daemon(places.socket(&**host)?),
        Kind::Local(_) | Kind::Auto => Way::Local,
        Kind::Other(scheme) => return Err(unsupported(&scheme)),
    };
    let unopened = Unopened { way, places: places.clone(), settings, backend: OnceLock::new() };
    Ok((Arc::new(Behind::new(Box::new(unopened), places.real.clone(), eager)), places))
}

fn unsupported(scheme: &[u8]) -> Error {
    let known: [&[u8]; 8] = [b"ssh", b"ssh-ng", b"http", b"https", b"file", b"s3", b"local-overlay", b"mounted-ssh-ng"];
    let parts: [&[u8]; 3] = if known.contains(&scheme) {
        [b"firn writes to local stores and to daemons only, not to stores of scheme '", scheme, b"'"]
    } else {
        [b"don't know how to open Nix store with scheme '", scheme, b"'"]
    };
    Error::new(ErrorKind::Other, &parts)
}

enum Way {
    Local,
    Daemon(AbsPath),
}

/// A backend that is opened when it is needed.
struct Unopened {
    way: Way,
    places: Places,
    settings: StoreSettings,
    backend: OnceLock<Result<Box<dyn Backend>>>,
}

impl Unopened {
    fn backend(&self) -> Result<&dyn Backend> {
        let open = || -> Result<Box<dyn Backend>> {
            Ok(match &self.way {
                Way::Local => Box::new(Local::open(self.places.clone(), self.settings.clone())?),
                Way::Daemon(socket) => Box::new(Daemon::connect(socket.clone(), &self.places, self.settings.clone())?),
            })
        };
        self.backend.get_or_init(open).as_deref().map_err(Error::again)
    }

    /// Whether the object may exist: one that is not on disk does not, and no store need be opened to say so.
    fn may_exist(&self, path: &StorePath) -> bool {
        self.places.real.child(path.as_bytes()).as_path().symlink_metadata().is_ok()
    }
}

impl Backend for Unopened {
    fn is_valid(&self, path: &StorePath) -> Result<bool> {
        if self.may_exist(path) { self.backend()?.is_valid(path) } else { Ok(false) }
    }

    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>> {
        if self.may_exist(path) { self.backend()?.references(path) } else { Ok(None) }
    }

    fn info(&self, path: &StorePath) -> Result<Option<PathInfo>> {
        if self.may_exist(path) { self.backend()?.info(path) } else { Ok(None) }
    }

    fn write(&self, batch: &[Item]) -> Result<()> {
        self.backend()?.write(batch)
    }

    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        self.backend()?.build(wanted)
    }

    fn add_root(&self, path: &StorePath, root: &AbsPath) -> Result<()> {
        self.backend()?.add_root(path, root)
    }

    fn missing(&self, objects: &[StorePath], outputs: &[Built]) -> Result<Option<Missing>> {
        self.backend()?.missing(objects, outputs)
    }

    fn close(&self) {
        if let Some(Ok(backend)) = self.backend.get() {
            backend.close();
        }
    }
}

/// What this machine has: a store that we may write, or a daemon; and without either, as any user, a store at home.
fn detect(host: &dyn Host, places: &mut Places, reference: &StoreReference, dir: &StoreDir) -> Result<Kind> {
    if access(places.state.as_path(), AccessFlags::R_OK | AccessFlags::W_OK).is_ok() {
        return Ok(Kind::Local(None));
    }
    let socket = places.socket(host)?;
    if socket.as_path().exists() {
        return Ok(Kind::Daemon(Some(socket)));
    }
    let named = |name: &[u8]| host.env(name).is_some();
    let is_plain = reference.parameters.is_empty() && !named(b"NIX_STORE_DIR") && !named(b"NIX_STATE_DIR");
    if !is_plain || Uid::effective().is_root() || places.state.as_path().exists() {
        return Ok(Kind::Local(None));
    }
    let data = match host.env(b"XDG_DATA_HOME").filter(|data| !data.is_empty()) {
        Some(data) => AbsPath::new(&data).map_err(bad_path)?,
        None => AbsPath::new(&host.home().map_err(bad_path)?)
            .and_then(|home| home.beneath(b".local/share"))
            .map_err(bad_path)?,
    };
    let root = data.beneath(b"nix/root").map_err(bad_path)?;
    let kind = Kind::Local(Some(root));
    let rooted = StoreReference { kind: kind.clone(), parameters: BTreeMap::new() };
    *places = rooted.places(host, dir)?;
    Ok(kind)
}
