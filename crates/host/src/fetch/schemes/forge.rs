//! `github:`, `gitlab:` and `sourcehut:` repositories by owner and name.

use super::super::attrs::{Attrs, attrs_to_json, maybe_text, text};
use super::super::error::{FetchError, shown};
use super::super::input::Input;
use super::super::url::Url;
use super::{Scheme, is_legal_ref, is_rev};
use firn_store::hash::{Algorithm, Format, Hash};

pub(super) const ALLOWED: [&str; 8] = ["owner", "repo", "ref", "rev", "narHash", "lastModified", "host", "treeHash"];

pub(super) fn attrs_of_url(scheme: Scheme, url: &Url) -> Result<Option<Attrs>, FetchError> {
    if url.scheme != scheme.name() {
        return Ok(None);
    }
    let steps = url.steps();
    let mut attrs = Attrs::new();
    match &steps[..] {
        [] | [_] => return Err(FetchError::bad_url(format!("URL '{}' is invalid", shown(url)))),
        [_, _] => {}
        [_, _, rev] if is_rev(rev) => drop(attrs.insert("rev".to_owned(), (*rev).into())),
        [_, _, branch @ ..] => drop(attrs.insert("ref".to_owned(), branch.join("/").into())),
    }
    for (name, value) in &url.query {
        let twice = match name.as_str() {
            "rev" => "commit hashes",
            "ref" => "branch/tag names",
            "host" | "narHash" => "",
            _ => {
                let parts = (shown(url), shown(name));
                return Err(FetchError::bad_url(format!("URL '{}' contains unknown parameter '{}'", parts.0, parts.1)));
            }
        };
        if attrs.insert(name.clone(), value.clone().into()).is_some() {
            return Err(FetchError::bad_url(format!("URL '{}' contains multiple {twice}", shown(url))));
        }
    }
    attrs.insert("type".to_owned(), scheme.name().into());
    attrs.insert("owner".to_owned(), steps[0].into());
    attrs.insert("repo".to_owned(), steps[1].into());
    check_attrs(attrs).map(Some)
}

pub(super) fn check_attrs(attrs: Attrs) -> Result<Attrs, FetchError> {
    text(&attrs, "owner")?;
    text(&attrs, "repo")?;
    let (branch, rev) = (maybe_text(&attrs, "ref")?, maybe_text(&attrs, "rev")?);
    let bad = |what: String| {
        let all = attrs_to_json(&attrs).unwrap_or_default();
        FetchError::bad_url(format!("input {} contains {what}", shown(all)))
    };
    if let (Some(branch), Some(rev)) = (branch, rev) {
        let parts = (shown(rev), shown(branch));
        return Err(bad(format!("both a commit hash ('{}') and a branch/tag name ('{}')", parts.0, parts.1)));
    }
    if let Some(rev) = rev {
        Hash::parse_any(rev.as_bytes(), Some(Algorithm::Sha1))?;
    }
    if branch.is_some_and(|branch| !is_legal_ref(branch)) {
        return Err(bad("an invalid branch/tag name".to_owned()));
    }
    let legal_host = |host: &str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    if maybe_text(&attrs, "host")?.is_some_and(|host| !legal_host(host)) {
        return Err(bad("an invalid instance host".to_owned()));
    }
    Ok(attrs)
}

pub(super) fn url_of_input(scheme: Scheme, input: &Input) -> Result<Url, FetchError> {
    let mut path = vec![text(&input.attrs, "owner")?.to_owned(), text(&input.attrs, "repo")?.to_owned()];
    path.extend(input.text("ref").map(str::to_owned));
    path.extend(input.rev_text()?);
    let mut url = Url { scheme: scheme.name().to_owned(), path, ..Url::default() };
    if let Some(hash) = input.nar_hash()? {
        url.query.insert("narHash".to_owned(), hash.to_string(Format::Sri, true));
    }
    if let Some(host) = input.text("host") {
        url.query.insert("host".to_owned(), host.to_owned());
    }
    Ok(url)
}

pub(super) fn override_input(input: &mut Input, branch: Option<&str>, rev: Option<&str>) -> Result<(), FetchError> {
    if let (Some(branch), Some(rev)) = (branch, rev) {
        let parts = (shown(rev), shown(branch), shown(input.show()));
        return Err(FetchError::bad_url(format!(
            "cannot apply both a commit hash ({}) and a branch/tag name ('{}') to input '{}'",
            parts.0, parts.1, parts.2
        )));
    }
    if let Some(rev) = rev {
        input.set("rev", rev);
        input.attrs.remove("ref");
    }
    if let Some(branch) = branch {
        input.set("ref", branch);
        input.attrs.remove("rev");
    }
    Ok(())
}
