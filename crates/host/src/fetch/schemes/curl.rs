//! `tarball` and `file`: what a URL serves, unpacked or as it is.

use super::super::attrs::{Attr, Attrs, text};
use super::super::error::FetchError;
use super::super::input::Input;
use super::super::url::Url;
use super::Scheme;

pub(super) const ALLOWED: [&str; 7] = ["url", "narHash", "name", "unpack", "rev", "revCount", "lastModified"];

const ENDINGS: [&str; 7] = [".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst"];

pub(super) fn attrs_of_url(scheme: Scheme, url: &Url, require_tree: bool) -> Result<Option<Attrs>, FetchError> {
    let (application, transport) = url.scheme_parts();
    if !["file", "http", "https"].contains(&transport) {
        return Ok(None);
    }
    let is_tarball = url.path.last().is_some_and(|name| ENDINGS.iter().any(|ending| name.ends_with(ending)));
    let meant = match application {
        Some(application) => application == scheme.name(),
        None => (scheme == Scheme::Tarball) == (require_tree || is_tarball),
    };
    if !meant {
        return Ok(None);
    }
    let mut attrs = Attrs::from([("type".to_owned(), scheme.name().into())]);
    for name in ["narHash", "rev"] {
        if let Some(value) = url.query.get(name) {
            attrs.insert(name.to_owned(), value.clone().into());
        }
    }
    for name in ["revCount", "lastModified"] {
        if let Some(number) = url.query.get(name).and_then(|value| value.parse().ok()) {
            attrs.insert(name.to_owned(), Attr::Number(number));
        }
    }
    // What is meant for Nix is not sent to the server.
    let mut asked = url.clone();
    asked.scheme = transport.to_owned();
    asked.query.retain(|name, _| !ALLOWED.contains(&name.as_str()));
    attrs.insert("url".to_owned(), asked.to_string().into());
    Ok(Some(attrs))
}

pub(super) fn url_of_input(input: &Input) -> Result<Url, FetchError> {
    let mut url = Url::parse(text(&input.attrs, "url")?, false)?;
    if let Some(hash) = input.nar_hash()? {
        url.query.insert("narHash".to_owned(), hash.to_string(firn_store::hash::Format::Sri, true));
    }
    Ok(url)
}
