//! Closures from binary caches: an object with all it refers to.
//!
//! 1. What the store has, and knows, is taken from there: no cache is asked.
//! 2. Otherwise the cache tells of the object and of all it refers to; who may be believed is decided on that alone.
//! 3. Archives of what the store lacks are downloaded, checked and unpacked into the fetchers' cache.
//! 4. Whoever asked shows the trees at their store paths and hands them to the store, in this order: what others refer to
//!    comes first.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use firn_store::hash::Format;
use firn_store::narinfo::NarInfo;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;

use super::binary_cache::BinaryCache;
use super::error::{FetchError, FetchErrorKind, shown};
use super::fetcher::{Fetcher, InStore};
use super::received::check_address;
use crate::{Mount, Store};

/// What `fetchClosure` asks for.
#[derive(Clone, Debug)]
pub struct ClosureRequest {
    /// The address of the binary cache.
    pub url: String,
    /// The object.
    pub from: StorePath,
    /// The object is rewritten to be content-addressed, and is expected there; an inner none asks where.
    pub to: Option<Option<StorePath>>,
    /// Whether the object must be, rather than must not be, named after what it was built from.
    pub input_addressed: bool,
}

/// An object of a closure.
#[derive(Clone, Debug)]
pub struct Copied {
    /// What is known of it.
    pub info: Arc<PathInfo>,
    /// Where it was unpacked; none if the store has it.
    pub mount: Option<Mount>,
}

/// An object and all it refers to.
#[derive(Clone, Debug)]
pub struct Closure {
    /// The object: the last of all.
    pub path: StorePath,
    /// What others refer to comes before them.
    pub objects: Vec<Copied>,
}

impl Closure {
    fn root(&self) -> Option<&PathInfo> {
        self.objects.iter().map(|object| &*object.info).find(|info| info.path == self.path)
    }
}

/// A member of a closure before it is copied: known to the store, or to the cache.
enum Member {
    Here(Arc<PathInfo>),
    There(Box<NarInfo>),
}

impl Member {
    fn info(&self) -> &PathInfo {
        match self {
            Member::Here(info) => info,
            Member::There(found) => &found.info,
        }
    }
}

impl Fetcher {
    /// The closure that is asked for. What cannot be had, believed or addressed as asked is an error, and nothing of it
    /// reaches the store.
    pub fn fetch_closure(
        &self,
        request: &ClosureRequest,
        store: &dyn Store,
        dir: &StoreDir,
    ) -> Result<Closure, FetchError> {
        let found = self.find_closure(request, &InStore { store, dir });
        // A path that its content makes is always that content. Anything else rests on who said so today.
        let root = found.as_ref().ok().and_then(Closure::root);
        let answer = root.map(|info| info.nar_hash.to_string(Format::Sri, true));
        let locked = root.is_some_and(|info| info.is_content_addressed(dir));
        let print = |path: &StorePath| String::from_utf8_lossy(&dir.print(path)).into_owned();
        let to = request.to.iter().flatten().map(print).collect::<String>();
        let reference = format!("closure:{};{};{to};{}", request.url, print(&request.from), request.input_addressed);
        self.observe(&reference, answer.as_deref().map(str::as_bytes), locked, false);
        found
    }

    fn find_closure(&self, request: &ClosureRequest, there: &InStore<'_>) -> Result<Closure, FetchError> {
        match &request.to {
            Some(to) => self.find_rewritten(request, to.as_ref(), there),
            None => self.find_copied(request, there),
        }
    }

    /// The closure as it is.
    fn find_copied(&self, request: &ClosureRequest, there: &InStore<'_>) -> Result<Closure, FetchError> {
        if let Some(here) = here(&request.from, there)? {
            check_form(request, &here, there.dir)?;
            return Ok(here);
        }
        let cache = BinaryCache::open(self, &request.url, there.dir)?;
        let members = members(&request.from, |path| match known(path, there)? {
            Some(info) => Ok(Member::Here(info)),
            None => Ok(Member::There(Box::new(cache.info(path)?))),
        }, Member::info)?;
        let mut missing = BTreeSet::new();
        for member in &members {
            if let Member::There(found) = member
                && !there.store.is_valid(&found.info.path)?
            {
                self.check_trust(&found.info, there.dir)?;
                missing.insert(found.info.path.clone());
            }
        }
        let described = members.iter().map(|member| Copied { info: Arc::new(member.info().clone()), mount: None });
        let mut closure = Closure { path: request.from.clone(), objects: described.collect() };
        check_form(request, &closure, there.dir)?;
        for (member, copied) in members.iter().zip(&mut closure.objects) {
            if let Member::There(found) = member
                && missing.contains(&found.info.path)
            {
                copied.mount = Some(self.copy(&cache, found, there.dir)?);
            }
        }
        Ok(closure)
    }

    /// Downloads an object, unless that was done before.
    fn copy(&self, cache: &BinaryCache<'_>, found: &NarInfo, dir: &StoreDir) -> Result<Mount, FetchError> {
        let mount = match self.received_earlier(&found.info)? {
            Some(mount) => mount,
            None => self.unpack_object(&found.info, &mut cache.archive(found)?, dir)?,
        };
        check_address(&found.info, &mount, dir)?;
        Ok(mount)
    }

    /// Refuses an object that neither its content nor a signature vouches for.
    fn check_trust(&self, info: &PathInfo, dir: &StoreDir) -> Result<(), FetchError> {
        if info.is_content_addressed(dir) {
            return Ok(());
        }
        if info.address.is_some() {
            self.warn(&format!("path '{}' claims to be content-addressed but isn't", show(dir, &info.path)));
        }
        if !self.settings.require_sigs || info.is_signed(dir, &self.settings.keys()?) {
            return Ok(());
        }
        let path = show(dir, &info.path);
        Err(FetchError::new(format!("cannot add path '{path}' because it lacks a signature by a trusted key")))
    }
}

pub(super) fn show(dir: &StoreDir, path: &StorePath) -> String {
    shown(String::from_utf8_lossy(&dir.print(path)))
}

/// What the store has and knows of an object.
fn known(path: &StorePath, there: &InStore<'_>) -> Result<Option<Arc<PathInfo>>, FetchError> {
    Ok(if there.store.is_valid(path)? { there.store.info(path)? } else { None })
}

/// The closure of an object, if the store has it and knows what it refers to.
pub(super) fn here(path: &StorePath, there: &InStore<'_>) -> Result<Option<Closure>, FetchError> {
    if known(path, there)?.is_none() {
        return Ok(None);
    }
    let unknown = || FetchError::new("not known to the store");
    let all = members(path, |path| known(path, there)?.ok_or_else(unknown), |info| &**info);
    let Ok(all) = all else { return Ok(None) };
    let objects = all.into_iter().map(|info| Copied { info, mount: None }).collect();
    Ok(Some(Closure { path: path.clone(), objects }))
}

/// An object and all it refers to, each after what it refers to.
pub(super) fn members<T>(
    root: &StorePath,
    mut find: impl FnMut(&StorePath) -> Result<T, FetchError>,
    info: impl Fn(&T) -> &PathInfo,
) -> Result<Vec<T>, FetchError> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.clone()];
    while let Some(path) = todo.pop() {
        if let Entry::Vacant(place) = found.entry(path) {
            let member = find(place.key())?;
            todo.extend(info(&member).others());
            place.insert(member);
        }
    }
    let (mut order, mut begun, mut stack) = (Vec::new(), BTreeSet::new(), vec![(root.clone(), false)]);
    while let Some((path, below_done)) = stack.pop() {
        if below_done {
            order.push(path);
        } else if begun.insert(path.clone()) {
            let others = found.get(&path).map(|member| info(member).others()).unwrap_or_default();
            stack.push((path, true));
            stack.extend(others.into_iter().map(|other| (other, false)));
        }
    }
    // What refers to each other in a circle has no order, and no store takes it.
    let mut all: Vec<T> = Vec::with_capacity(order.len());
    let mut before = BTreeSet::new();
    for path in order {
        let Some(member) = found.remove(&path) else { continue };
        if let Some(other) = info(&member).others().iter().find(|other| !before.contains(*other)) {
            let parts = (shown(path.as_str()), shown(other.as_str()));
            return Err(FetchError::new(format!("cycle detected in the references of '{}' from '{}'", parts.1, parts.0)));
        }
        before.insert(path);
        all.push(member);
    }
    Ok(all)
}

/// Refuses an object that is not addressed as the request says.
fn check_form(request: &ClosureRequest, closure: &Closure, dir: &StoreDir) -> Result<(), FetchError> {
    let by_content = closure.root().is_some_and(|info| info.is_content_addressed(dir));
    let path = show(dir, &request.from);
    let message = match (by_content, request.input_addressed) {
        (false, false) => format!(
            "The 'fromPath' value '{path}' is input-addressed, but 'inputAddressed' is set to 'false' (default).\n\n\
             If you do intend to fetch an input-addressed store path, add\n\n    inputAddressed = true;\n\n\
             to the 'fetchClosure' arguments.\n\n\
             Note that to ensure authenticity input-addressed store paths, users must configure a trusted binary cache \
             public key on their systems. This is not needed for content-addressed paths."
        ),
        (true, true) => format!(
            "The store object referred to by 'fromPath' at '{path}' is not input-addressed, but 'inputAddressed' is set to \
             'true'.\n\nRemove the 'inputAddressed' attribute (it defaults to 'false') to expect 'fromPath' to be \
             content-addressed"
        ),
        _ => return Ok(()),
    };
    Err(FetchError::of(FetchErrorKind::AtCall, message))
}
