//! What is known of a locked flake, as `flake metadata` tells it.

use std::collections::BTreeMap;

use firn_host::fetch::{Attr, FetchError};
use firn_store::hash::{Algorithm, Format, Hash};
use firn_store::store_dir::StoreDir;
use firn_text::json::Tree;

use crate::lock_file::attrs_to_tree;
use crate::{FlakeRef, LockedFlake};

/// The name under which results of this flake may be remembered; none if something in it is not pinned.
pub fn fingerprint(flake: &LockedFlake, allow_dirty: bool) -> Result<Option<Hash>, FetchError> {
    if flake.lock_file.unlocked(allow_dirty).is_some() {
        return Ok(None);
    }
    let input = &flake.flake.locked.input;
    let tree = match input.kind() {
        "path" => input.text("narHash").map(|hash| format!("path:{hash}")),
        "git" => input.rev_text()?.map(|rev| {
            let flag = |name: &str, mark: &'static str| if input.flag(name).unwrap_or(false) { mark } else { "" };
            format!("{rev}{}{}{}", flag("submodules", ";s"), flag("exportIgnore", ";e"), flag("lfs", ";l"))
        }),
        "tarball" => input.text("narHash").map(str::to_owned),
        _ => input.rev_text()?,
    };
    let Some(mut text) = tree else { return Ok(None) };
    text.push_str(&format!(";{};{}", flake.flake.locked.dir, flake.lock_file.print()?));
    match input.attrs.get("revCount") {
        // NIX: a count that was not made yet counts as being there, no more.
        Some(Attr::Lazy(_)) => text.push_str(";hasRevCount"),
        Some(Attr::Number(count)) => text.push_str(&format!(";revCount={count}")),
        _ => {}
    }
    if let Some(time) = input.last_modified()? {
        text.push_str(&format!(";lastModified={time}"));
    }
    Ok(Some(Hash::of(Algorithm::Sha256, text.as_bytes())))
}

/// The document that `flake metadata --json` prints.
pub fn metadata_json(flake: &LockedFlake, dir: &StoreDir, allow_dirty: bool) -> Result<Tree, FetchError> {
    let mut json = BTreeMap::new();
    let mut put = |name: &str, value: Tree| json.insert(name.as_bytes().to_vec(), value);
    let about = &flake.flake;
    if let Some(description) = &about.description {
        put("description", Tree::Text(description.clone()));
    }
    let attrs = |reference: &FlakeRef| attrs_to_tree(&reference.to_attrs());
    put("originalUrl", Tree::text(&about.original.to_url()?));
    put("original", attrs(&about.original)?);
    put("resolvedUrl", Tree::text(&about.resolved.to_url()?));
    put("resolved", attrs(&about.resolved)?);
    put("url", Tree::text(&about.locked.to_url()?));
    put("locked", attrs(&about.locked)?);
    let input = &about.locked.input;
    if let Some(rev) = input.rev_text()? {
        put("revision", Tree::text(&rev));
    }
    if let Some(rev) = input.text("dirtyRev") {
        put("dirtyRevision", Tree::text(rev));
    }
    let number = |number: u64| Tree::Int(i64::try_from(number).unwrap_or(i64::MAX));
    if let Some(count) = input.attrs.get("revCount").map(Attr::number).transpose()?.flatten() {
        put("revCount", number(count));
    }
    if let Some(time) = input.last_modified()? {
        put("lastModified", number(time));
    }
    let (object, _) = dir.split(about.path.as_bytes())?;
    put("path", Tree::Text(dir.print(&object)));
    put("locks", flake.lock_file.to_json()?.0);
    if let Some(fingerprint) = fingerprint(flake, allow_dirty)? {
        put("fingerprint", Tree::text(&fingerprint.to_string(Format::Base16, false)));
    }
    Ok(Tree::Object(json))
}
