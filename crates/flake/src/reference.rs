//! `FlakeRef`: an input and the directory of the flake in it; how references are read and printed.

use firn_host::fetch::{
    Attr, Attrs, Authority, FetchError, FetchErrorKind, FetchSettings, Fetcher, Input, Url, decode_query, path_to_url_path,
    percent_decode, shown, url_path_to_path,
};
use firn_host::{AbsPath, FileType, Follow, Host};

/// A reference to a flake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlakeRef {
    /// The tree.
    pub input: Input,
    /// The flake's directory in it; empty for the tree itself.
    pub dir: String,
}

/// How a reference is read.
#[derive(Clone, Copy, Debug)]
pub struct ParseOptions<'a> {
    /// What relative paths start from; without it there must be none.
    pub base: Option<&'a AbsPath>,
    /// The flake need not exist.
    pub allow_missing: bool,
    /// Whether a flake is meant, not any tree.
    pub is_flake: bool,
    /// Relative paths stay as they are: those of inputs start from the flake that names them.
    pub keep_relative: bool,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        ParseOptions { base: None, allow_missing: false, is_flake: true, keep_relative: false }
    }
}

impl FlakeRef {
    /// Reads a reference that has no fragment.
    pub fn parse(fetcher: &Fetcher, text: &str, options: ParseOptions<'_>) -> Result<FlakeRef, FetchError> {
        let (reference, fragment) = FlakeRef::parse_with_fragment(fetcher, text, options)?;
        if fragment.is_empty() {
            return Ok(reference);
        }
        let parts = (shown(fragment), shown(text));
        Err(FetchError::new(format!("unexpected fragment '{}' in flake reference '{}'", parts.0, parts.1)))
    }

    /// Reads a reference and what follows `#`: a registry's name, a URL or a path, in this order.
    pub fn parse_with_fragment(
        fetcher: &Fetcher,
        text: &str,
        options: ParseOptions<'_>,
    ) -> Result<(FlakeRef, String), FetchError> {
        if let Some(found) = parse_id(fetcher, text, options.is_flake)? {
            return Ok(found);
        }
        match parse_url(fetcher, text, options) {
            Ok(found) => Ok(found),
            Err(error) if error.kind() == FetchErrorKind::BadUrl => parse_path(fetcher, text, options),
            Err(error) => Err(error),
        }
    }

    /// Reads attributes, `dir` among them.
    pub fn from_attrs(settings: &FetchSettings, mut attrs: Attrs) -> Result<FlakeRef, FetchError> {
        let dir = match attrs.remove("dir") {
            Some(Attr::Text(dir)) => dir,
            None => String::new(),
            Some(_) => return Err(FetchError::new(format!("input attribute '{}' is not a string", shown("dir")))),
        };
        Ok(FlakeRef { input: Input::from_attrs(settings, attrs)?, dir })
    }

    /// The attributes, `dir` among them.
    pub fn to_attrs(&self) -> Attrs {
        let mut attrs = self.input.attrs.clone();
        if !self.dir.is_empty() {
            attrs.entry("dir".to_owned()).or_insert_with(|| self.dir.clone().into());
        }
        attrs
    }

    /// The URL.
    pub fn to_url(&self) -> Result<String, FetchError> {
        let mut url = self.input.to_url()?;
        if !self.dir.is_empty() {
            url.query.entry("dir".to_owned()).or_insert_with(|| self.dir.clone());
        }
        Ok(url.to_string())
    }

    /// The URL for messages.
    pub fn show(&self) -> String {
        self.to_url().unwrap_or_else(|_| self.input.show())
    }

    /// NIX: older lock files have the directory in the URL too; for comparing it is left out.
    pub fn canonical(&self) -> FlakeRef {
        let mut reference = self.clone();
        if let Some(mut url) = self.input.text("url").and_then(|url| Url::parse(url, true).ok()) {
            if !self.dir.is_empty() && url.query.get("dir") == Some(&self.dir) {
                url.query.remove("dir");
            }
            reference.input.set("url", url.to_string());
        }
        reference
    }
}

fn from_url(fetcher: &Fetcher, mut url: Url, is_flake: bool) -> Result<(FlakeRef, String), FetchError> {
    let dir = url.query.remove("dir").unwrap_or_default();
    let fragment = std::mem::take(&mut url.fragment);
    Ok((FlakeRef { input: Input::from_url(&fetcher.settings, &url, is_flake)?, dir }, fragment))
}

/// `nixpkgs`, `nixpkgs/branch`, `nixpkgs/branch/rev`: names of a registry.
fn parse_id(fetcher: &Fetcher, text: &str, is_flake: bool) -> Result<Option<(FlakeRef, String)>, FetchError> {
    let (name, fragment) = text.split_once('#').unwrap_or((text, ""));
    let in_fragment = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'\"()*+,;=:@%/? ^".contains(&byte);
    if !fragment.bytes().all(in_fragment) {
        return Ok(None);
    }
    let (id, rest) = match name.split_once('/') {
        Some((id, rest)) => (id, Some(rest)),
        None => (name, None),
    };
    let is_id = id.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let is_ref = |text: &str| {
        text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'@')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./@+-".contains(&byte))
    };
    if !is_id || !rest.is_none_or(is_ref) {
        return Ok(None);
    }
    let path = name.split('/').map(str::to_owned).collect();
    let url = Url { scheme: "flake".to_owned(), path, ..Url::default() };
    let input = Input::from_url(&fetcher.settings, &url, is_flake)?;
    Ok(Some((FlakeRef { input, dir: String::new() }, percent_decode(fragment)?)))
}

fn parse_url(fetcher: &Fetcher, text: &str, options: ParseOptions<'_>) -> Result<(FlakeRef, String), FetchError> {
    let mut url = Url::parse(text, true)?;
    if let Some(base) = options.base
        && matches!(url.scheme.as_str(), "path" | "git+file")
    {
        let path = url_path_to_path(&url.path)?;
        if !path.starts_with('/') {
            url.path = path_to_url_path(&lossy(&base.join(path.as_bytes())?));
        }
    }
    from_url(fetcher, url, options.is_flake)
}

fn lossy(path: &AbsPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}

fn quoted(path: &AbsPath) -> String {
    format!("\"{}\"", shown(path))
}

fn has(host: &dyn Host, dir: &AbsPath, name: &str) -> Result<bool, FetchError> {
    Ok(host.file_type(&dir.join(name.as_bytes())?)?.is_some())
}

/// A path: with a base directory it is looked at on disk, and a repository around it is what is meant.
fn parse_path(fetcher: &Fetcher, text: &str, options: ParseOptions<'_>) -> Result<(FlakeRef, String), FetchError> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut query, fragment) = (decode_query(query)?, percent_decode(fragment)?);
    let mut path = path.to_owned();
    if let Some(base) = options.base {
        let host = fetcher.disk();
        let mut place = host.resolve_symlinks(&base.join(path.as_bytes())?, Follow::Full)?;
        if options.is_flake {
            place = flake_directory(fetcher, &*host, place, options.allow_missing)?;
            if let Some((root, dir)) = repository_around(&*host, &place)? {
                if !dir.is_empty() && query.insert("dir".to_owned(), dir).is_some() {
                    return Err(FetchError::new(format!("flake URL '{}' has an inconsistent 'dir' parameter", shown(text))));
                }
                if has(&*host, &root, ".git/shallow")? {
                    query.insert("shallow".to_owned(), "1".to_owned());
                }
                let path = path_to_url_path(&lossy(&root));
                let authority = Some(Authority::default());
                return from_url(fetcher, Url { scheme: "git+file".to_owned(), authority, path, query, fragment }, true);
            }
        }
        path = lossy(&place);
    } else if !options.keep_relative && !path.starts_with('/') {
        return Err(FetchError::bad_url(format!("flake reference '{}' is not an absolute path", shown(text))));
    }
    let authority = path.starts_with('/').then(Authority::default);
    let url = Url { scheme: "path".to_owned(), authority, path: path_to_url_path(&path), query, fragment };
    from_url(fetcher, url, options.is_flake)
}

/// The directory with the `flake.nix` that a path means: itself, or the nearest above it within the repository.
fn flake_directory(
    fetcher: &Fetcher,
    host: &dyn Host,
    place: AbsPath,
    allow_missing: bool,
) -> Result<AbsPath, FetchError> {
    let Some(stat) = host.lstat(&place)? else {
        return Err(FetchError::new(format!("getting status of '{}': No such file or directory", shown(&place))));
    };
    let mut place = place;
    if stat.file_type != FileType::Directory {
        let parent = place.parent().filter(|_| place.base_name() == Some(b"flake.nix"));
        let Some(parent) = parent else {
            let message = format!("path {} is not a flake (because it's not a directory)", quoted(&place));
            return Err(FetchError::bad_url(message));
        };
        fetcher.warn(&format!(
            "Path {} should point at the directory containing the 'flake.nix' file, not the file itself. Pretending that you \
             meant {}",
            quoted(&place),
            quoted(&parent)
        ));
        place = parent;
    }
    if allow_missing || has(host, &place, "flake.nix")? {
        return Ok(place);
    }
    let device = stat.stamp.device;
    while let Some(parent) = place.parent() {
        if has(host, &place, "flake.nix")? {
            return Ok(place);
        }
        if has(host, &place, ".git")? {
            return Err(FetchError::new(format!(
                "path {} is not part of a flake (neither it nor its parent directories contain a 'flake.nix' file)",
                quoted(&place)
            )));
        }
        if host.lstat(&place)?.is_some_and(|stat| stat.stamp.device != device) {
            let message = format!("unable to find a flake before encountering filesystem boundary at {}", quoted(&place));
            return Err(FetchError::new(message));
        }
        place = parent;
    }
    Err(FetchError::bad_url("could not find a flake.nix file"))
}

/// The repository that a directory lies in, and the way from its root.
fn repository_around(host: &dyn Host, place: &AbsPath) -> Result<Option<(AbsPath, String)>, FetchError> {
    let mut root = place.clone();
    while let Some(parent) = root.parent() {
        if has(host, &root, ".git")? {
            let rest = place.as_bytes()[root.as_bytes().len()..].strip_prefix(b"/").unwrap_or_default();
            return Ok(Some((root, String::from_utf8_lossy(rest).into_owned())));
        }
        root = parent;
    }
    Ok(None)
}
