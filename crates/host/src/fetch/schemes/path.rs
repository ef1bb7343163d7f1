//! `path:` a directory as it lies on disk.

use super::super::attrs::{Attr, Attrs, text, to_query};
use super::super::error::{FetchError, shown};
use super::super::input::Input;
use super::super::url::{Url, path_to_url_path, url_path_to_path};

pub(super) fn attrs_of_url(url: &Url) -> Result<Option<Attrs>, FetchError> {
    if url.scheme != "path" {
        return Ok(None);
    }
    if let Some(authority) = url.authority.as_ref().filter(|authority| !authority.host.is_empty()) {
        let parts = (shown(url), shown(&authority.host));
        return Err(FetchError::new(format!("path URL '{}' should not have an authority ('{}')", parts.0, parts.1)));
    }
    let mut attrs = Attrs::from([("type".to_owned(), "path".into())]);
    attrs.insert("path".to_owned(), url_path_to_path(&url.path)?.into());
    for (name, value) in &url.query {
        let wrong = |why| FetchError::new(format!("path URL '{}' has {why} parameter '{}'", shown(url), shown(name)));
        let attr = match name.as_str() {
            "rev" | "narHash" => value.clone().into(),
            "revCount" | "lastModified" => Attr::Number(value.parse().map_err(|_| wrong("invalid"))?),
            _ => return Err(wrong("unsupported")),
        };
        attrs.insert(name.clone(), attr);
    }
    Ok(Some(attrs))
}

pub(super) fn url_of_input(input: &Input) -> Result<Url, FetchError> {
    let mut query = to_query(&input.attrs)?;
    for name in ["path", "type", "__final"] {
        query.remove(name);
    }
    Ok(Url {
        scheme: "path".to_owned(),
        path: path_to_url_path(text(&input.attrs, "path")?),
        query,
        ..Url::default()
    })
}

/// The directory; a relative one has no meaning of its own.
pub(in super::super) fn absolute(input: &Input) -> Result<String, FetchError> {
    let path = text(&input.attrs, "path")?;
    if path.starts_with('/') {
        return Ok(String::from_utf8_lossy(crate::AbsPath::new(path.as_bytes())?.as_bytes()).into_owned());
    }
    let shown = shown(input.show());
    Err(FetchError::new(format!("cannot fetch input '{shown}' because it uses a relative path")))
}
