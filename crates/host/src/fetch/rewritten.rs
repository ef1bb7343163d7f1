//! Rewriting a closure to content-addressed form: each object gets the path that its content makes, and those that refer to
//! it refer to that.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use firn_store::content_address::{ContentAddress, Method};
use firn_store::hash::{Algorithm, Hash};
use firn_store::modulo::{ModuloHasher, replace};
use firn_store::narinfo::NarInfo;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::{References, StoreDir};

use super::binary_cache::BinaryCache;
use super::closure::{Closure, ClosureRequest, Copied, here, members, show};
use super::error::{FetchError, FetchErrorKind};
use super::fetcher::{Fetcher, InStore};
use super::received::check_archive;

impl Fetcher {
    /// The closure in content-addressed form, which is expected at `to`.
    pub(super) fn find_rewritten(
        &self,
        request: &ClosureRequest,
        to: Option<&StorePath>,
        there: &InStore<'_>,
    ) -> Result<Closure, FetchError> {
        if let Some(to) = to
            && let Some(here) = here(to, there)?
        {
            let by_content = here.objects.iter().any(|one| one.info.path == *to && one.info.is_content_addressed(there.dir));
            return if by_content { Ok(here) } else { Err(not_rewritten(to, there.dir)) };
        }
        let closure = self.rewrite(request, there)?;
        let parts = (show(there.dir, &request.from), show(there.dir, &closure.path));
        let message = match to {
            Some(to) if *to == closure.path => return Ok(closure),
            Some(to) => format!(
                "rewriting '{}' to content-addressed form yielded '{}', while '{}' was expected",
                parts.0, parts.1, show(there.dir, to)
            ),
            None => format!(
                "rewriting '{}' to content-addressed form yielded '{}'\n\
                 Use this value for the 'toPath' attribute passed to 'fetchClosure'",
                parts.0, parts.1
            ),
        };
        Err(FetchError::of(FetchErrorKind::AtCall, message))
    }

    fn rewrite(&self, request: &ClosureRequest, there: &InStore<'_>) -> Result<Closure, FetchError> {
        let cache = BinaryCache::open(self, &request.url, there.dir)?;
        let members = members(&request.from, |path| cache.info(path), |found: &NarInfo| &found.info)?;
        let mut moved: BTreeMap<StorePath, StorePath> = BTreeMap::new();
        let mut objects = Vec::with_capacity(members.len());
        for found in &members {
            let bytes = whole_archive(&cache, found, there.dir)?;
            let (info, bytes) = rewritten(&found.info, bytes, &moved, there.dir)?;
            moved.insert(found.info.path.clone(), info.path.clone());
            let mount = match there.store.is_valid(&info.path)? {
                true => None,
                false => Some(match self.received_earlier(&info)? {
                    Some(mount) => mount,
                    None => self.unpack_object(&info, &mut &bytes[..], there.dir)?,
                }),
            };
            objects.push(Copied { info: Arc::new(info), mount });
        }
        let path = moved.remove(&request.from).unwrap_or_else(|| request.from.clone());
        Ok(Closure { path, objects })
    }
}

/// The archive of an object, checked.
fn whole_archive(cache: &BinaryCache<'_>, found: &NarInfo, dir: &StoreDir) -> Result<Vec<u8>, FetchError> {
    let mut bytes = Vec::new();
    let read = cache.archive(found)?.take(found.info.nar_size.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| {
        let what = format!("while unpacking '{}'", show(dir, &found.info.path));
        FetchError::new(format!("the archive cannot be read: {error}")).while_doing(what)
    })?;
    check_archive(&found.info, &Hash::of(Algorithm::Sha256, &bytes), bytes.len() as u64, dir)?;
    Ok(bytes)
}

/// An object as it is after those it refers to have moved, and its archive.
fn rewritten(
    info: &PathInfo,
    mut bytes: Vec<u8>,
    moved: &BTreeMap<StorePath, StorePath>,
    dir: &StoreDir,
) -> Result<(PathInfo, Vec<u8>), FetchError> {
    let mut others = Vec::new();
    for other in info.others() {
        let new = moved.get(&other).unwrap_or(&other).clone();
        replace(&mut bytes, &dir.print(&other), &dir.print(&new));
        others.push(new);
    }
    others.sort();
    others.dedup();
    let mut hasher = ModuloHasher::new(Algorithm::Sha256, info.path.digest_part().as_bytes());
    hasher.update(&bytes);
    let address = ContentAddress { method: Method::Nar, hash: hasher.finish() };
    let itself = info.refers_to_itself();
    let path = dir.make_fixed_output_path(info.path.name().as_bytes(), &address, References { others: &others, itself })?;
    replace(&mut bytes, info.path.digest_part().as_bytes(), path.digest_part().as_bytes());
    let mut references = others;
    if itself {
        references.push(path.clone());
        references.sort();
    }
    let (nar_hash, nar_size) = (Hash::of(Algorithm::Sha256, &bytes), bytes.len() as u64);
    let address = Some(address);
    let info = PathInfo { path, nar_hash, nar_size, references, deriver: None, signatures: Vec::new(), address };
    Ok((info, bytes))
}

fn not_rewritten(to: &StorePath, dir: &StoreDir) -> FetchError {
    let message = format!(
        "The 'toPath' value '{}' is input-addressed, so it can't possibly be the result of rewriting to a \
         content-addressed path.\n\nSet 'toPath' to an empty string to make Nix report the correct content-addressed path.",
        show(dir, to)
    );
    FetchError::of(FetchErrorKind::AtCall, message)
}
