//! `git`: a commit or the work tree of a repository.

use super::super::attrs::{Attr, Attrs, maybe_flag, maybe_text, text};
use super::super::error::{FetchError, shown};
use super::super::input::Input;
use super::super::settings::FetchSettings;
use super::super::url::{Url, fix_git_url};
use super::is_legal_ref;

pub(super) const ALLOWED: [&str; 18] = [
    "url", "ref", "rev", "shallow", "submodules", "lfs", "exportIgnore", "lastModified", "revCount", "narHash", "allRefs",
    "name", "dirtyRev", "dirtyShortRev", "verifyCommit", "keytype", "publicKey", "publicKeys",
];

const FLAGS: [&str; 6] = ["shallow", "submodules", "lfs", "exportIgnore", "allRefs", "verifyCommit"];
const TEXTS: [&str; 5] = ["rev", "ref", "keytype", "publicKey", "publicKeys"];

pub(super) fn attrs_of_url(settings: &FetchSettings, url: &Url) -> Result<Option<Attrs>, FetchError> {
    if url.scheme != "git" && url.scheme_parts().0 != Some("git") {
        return Ok(None);
    }
    let mut place = Url { query: Default::default(), ..url.clone() };
    let mut attrs = Attrs::from([("type".to_owned(), "git".into())]);
    for (name, value) in &url.query {
        if TEXTS.contains(&name.as_str()) {
            attrs.insert(name.clone(), value.clone().into());
        } else if FLAGS.contains(&name.as_str()) {
            attrs.insert(name.clone(), Attr::Flag(value == "1"));
        } else {
            place.query.insert(name.clone(), value.clone());
        }
    }
    attrs.insert("url".to_owned(), place.to_string().into());
    check_attrs(settings, attrs).map(Some)
}

pub(super) fn check_attrs(settings: &FetchSettings, mut attrs: Attrs) -> Result<Attrs, FetchError> {
    if ["verifyCommit", "keytype", "publicKey", "publicKeys"].iter().any(|name| attrs.contains_key(*name)) {
        settings.require_verified()?;
    }
    if let Some(branch) = maybe_text(&attrs, "ref")?.filter(|branch| !is_legal_ref(branch)) {
        return Err(FetchError::bad_url(format!("invalid Git branch/tag name '{}'", shown(branch))));
    }
    let url = fix_git_url(text(&attrs, "url")?)?.to_string();
    attrs.insert("url".to_owned(), url.into());
    for flag in ["verifyCommit", "shallow", "submodules", "allRefs"] {
        maybe_flag(&attrs, flag)?;
    }
    Ok(attrs)
}

pub(super) fn url_of_input(input: &Input) -> Result<Url, FetchError> {
    let mut url = Url::parse(text(&input.attrs, "url")?, false)?;
    if url.scheme != "git" {
        url.scheme = format!("git+{}", url.scheme);
    }
    let mut add = |name: &str, value: String| url.query.insert(name.to_owned(), value);
    if let Some(rev) = input.rev_text()? {
        add("rev", rev);
    }
    if let Some(branch) = maybe_text(&input.attrs, "ref")? {
        add("ref", branch.to_owned());
    }
    for flag in ["shallow", "lfs", "submodules", "exportIgnore", "verifyCommit"] {
        if input.flag(flag)? {
            add(flag, "1".to_owned());
        }
    }
    match (maybe_text(&input.attrs, "publicKeys")?, maybe_text(&input.attrs, "publicKey")?) {
        (Some(keys), _) => drop(add("publicKeys", keys.to_owned())),
        (None, Some(key)) => {
            add("keytype", maybe_text(&input.attrs, "keytype")?.unwrap_or("ssh-ed25519").to_owned());
            add("publicKey", key.to_owned());
        }
        (None, None) => {}
    }
    Ok(url)
}
