//! `hg`: a Mercurial repository. References are read and printed here; `fetch::mercurial` fetches.

use super::super::attrs::{Attrs, maybe_text, text};
use super::super::error::{FetchError, shown};
use super::super::input::Input;
use super::super::url::Url;
use super::is_legal_ref;

pub(super) const ALLOWED: [&str; 6] = ["url", "ref", "rev", "revCount", "narHash", "name"];

pub(super) fn attrs_of_url(url: &Url) -> Result<Option<Attrs>, FetchError> {
    let Some(transport) = url.scheme.strip_prefix("hg+") else { return Ok(None) };
    if !["http", "https", "ssh", "file"].contains(&transport) {
        return Ok(None);
    }
    let mut place = Url { scheme: transport.to_owned(), query: Default::default(), ..url.clone() };
    let mut attrs = Attrs::from([("type".to_owned(), "hg".into())]);
    for (name, value) in &url.query {
        if name == "rev" || name == "ref" {
            attrs.insert(name.clone(), value.clone().into());
        } else {
            place.query.insert(name.clone(), value.clone());
        }
    }
    attrs.insert("url".to_owned(), place.to_string().into());
    check_attrs(attrs).map(Some)
}

pub(super) fn check_attrs(attrs: Attrs) -> Result<Attrs, FetchError> {
    Url::parse(text(&attrs, "url")?, false)?;
    if let Some(branch) = maybe_text(&attrs, "ref")?.filter(|branch| !is_legal_ref(branch)) {
        return Err(FetchError::bad_url(format!("invalid Mercurial branch/tag name '{}'", shown(branch))));
    }
    Ok(attrs)
}

pub(super) fn url_of_input(input: &Input) -> Result<Url, FetchError> {
    let mut url = Url::parse(text(&input.attrs, "url")?, false)?;
    url.scheme = format!("hg+{}", url.scheme);
    if let Some(rev) = input.rev_text()? {
        url.query.insert("rev".to_owned(), rev);
    }
    if let Some(branch) = input.text("ref") {
        url.query.insert("ref".to_owned(), branch.to_owned());
    }
    Ok(url)
}
