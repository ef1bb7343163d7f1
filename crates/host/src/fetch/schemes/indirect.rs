//! `flake:` a name that a registry knows.

use super::super::attrs::{Attrs, text};
use super::super::error::{FetchError, shown};
use super::super::input::Input;
use super::super::url::Url;
use super::{is_legal_ref, is_rev};

fn is_id(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn check_id(id: &str) -> Result<(), FetchError> {
    if is_id(id) { Ok(()) } else { Err(FetchError::bad_url(format!("'{}' is not a valid flake ID", shown(id)))) }
}

pub(super) fn attrs_of_url(url: &Url) -> Result<Option<Attrs>, FetchError> {
    if url.scheme != "flake" {
        return Ok(None);
    }
    let bad = |step: &str, what: &str| {
        FetchError::bad_url(format!("in flake URL '{}', '{}' is not a {what}", shown(url), shown(step)))
    };
    let steps = url.steps();
    let (branch, rev) = match steps[..] {
        [_] => (None, None),
        [_, rev] if is_rev(rev) => (None, Some(rev)),
        [_, branch] if is_legal_ref(branch) => (Some(branch), None),
        [_, other] => return Err(bad(other, "commit hash or branch/tag name")),
        [_, branch, _] if !is_legal_ref(branch) => return Err(bad(branch, "branch/tag name")),
        [_, _, rev] if !is_rev(rev) => return Err(bad(rev, "commit hash")),
        [_, branch, rev] => (Some(branch), Some(rev)),
        _ => return Err(FetchError::bad_url(format!("GitHub URL '{}' is invalid", shown(url)))),
    };
    check_id(steps[0])?;
    let mut attrs = Attrs::from([("type".to_owned(), "indirect".into()), ("id".to_owned(), steps[0].into())]);
    if let Some(rev) = rev {
        attrs.insert("rev".to_owned(), rev.to_ascii_lowercase().into());
    }
    if let Some(branch) = branch {
        attrs.insert("ref".to_owned(), branch.into());
    }
    Ok(Some(attrs))
}

pub(super) fn check_attrs(attrs: Attrs) -> Result<Attrs, FetchError> {
    check_id(text(&attrs, "id")?)?;
    Ok(attrs)
}

pub(super) fn url_of_input(input: &Input) -> Result<Url, FetchError> {
    let mut path = vec![text(&input.attrs, "id")?.to_owned()];
    path.extend(input.text("ref").map(str::to_owned));
    path.extend(input.rev_text()?);
    Ok(Url { scheme: "flake".to_owned(), path, ..Url::default() })
}
