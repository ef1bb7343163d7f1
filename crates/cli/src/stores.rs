//! The store of a run: which one the settings name, and the host in which it is seen.

use crate::failure::Failure;
use crate::log::Log;
use crate::settings::{Resolved, Writes, host_failure};
use firn_host::{EvalOnly, Host, RealHost, Store, StoreKind, StoreReference, StoreSettings, StoreView, open_store};
use firn_store::store_dir::StoreDir;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

/// A store and the world with it.
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The host in which its objects are seen.
    pub host: Arc<dyn Host>,
}

/// Finds the store of the run. A store named with another directory (`?store=`) changes the settings of evaluation. One
/// that is open already is used as it is.
pub fn open(
    host: &Arc<RealHost>,
    resolved: &mut Resolved,
    verbosity: i32,
    log: &Arc<Log>,
    earlier: Option<Arc<dyn Store>>,
) -> Result<Opened, Failure> {
    let host: Arc<dyn Host> = host.clone();
    let here = host.current_dir().map_err(host_failure)?;
    let reference = StoreReference::parse(resolved.store.as_deref().unwrap_or(b"auto"), &here).map_err(failed)?;
    let dir = StoreDir::new(resolved.eval.store_dir.as_bytes()).map_err(failed)?;
    let places = reference.places(&*host, &dir).map_err(failed)?;
    resolved.eval.store_dir = String::from_utf8_lossy(places.dir.as_bytes()).into_owned();
    let (store, places): (Arc<dyn Store>, _) = if let Some(earlier) = earlier {
        (earlier, places)
    } else if resolved.writes == Writes::Never || reference.kind == StoreKind::Dummy
    {
        (Arc::new(EvalOnly::of_places(&places, host.clone()).map_err(failed)?), places)
    } else {
        open_store(&host, &reference, &dir, settings(&*host, resolved, verbosity, log)).map_err(failed)?
    };
    let moved = places.real.as_bytes() != places.dir.as_bytes();
    let host =
        if moved || !store.is_read_only() { Arc::new(StoreView::new(host, store.clone(), &places)) } else { host };
    Ok(Opened { store, host })
}

fn settings(host: &dyn Host, resolved: &Resolved, verbosity: i32, log: &Arc<Log>) -> StoreSettings {
    let log = log.clone();
    let flag = |name: &str, default: bool| resolved.building.get(name).map_or(default, |value| value == b"true");
    let mut settings = StoreSettings::new(Arc::new(move |line| log.passing(line)));
    settings.eager = resolved.writes == Writes::AtOnce;
    settings.overrides = resolved.building.clone();
    settings.wal = flag("use-sqlite-wal", true);
    settings.fsync_metadata = flag("fsync-metadata", true);
    settings.fsync_store_paths = flag("fsync-store-paths", false);
    settings.allow_symlinked_store = flag("allow-symlinked-store", false);
    settings.verbosity = verbosity;
    let program = host.env(b"FIRN_NIX_DAEMON").filter(|program| !program.is_empty());
    settings.daemon_program = program.map(|program| OsString::from_vec(program.to_vec()));
    settings
}

/// A failure of the store that ends the run.
pub fn failed(error: firn_store::Error) -> Failure {
    Failure::Error(firn_eval::store_error(&error))
}
