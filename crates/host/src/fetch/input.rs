//! `Input`: a reference to a tree or file, as attributes; what it is called, whether it is locked, how it prints.

use firn_store::content_address::{ContentAddress, Method};
use firn_store::hash::{Algorithm, Format, Hash};
use firn_store::path::StorePath;
use firn_store::store_dir::{References, StoreDir};

use super::attrs::{Attr, Attrs, attrs_to_json, maybe_flag, maybe_number, maybe_text, text};
use super::error::{FetchError, FetchErrorKind, shown};
use super::schemes::Scheme;
use super::settings::FetchSettings;
use super::url::Url;

/// A reference. Without a scheme it can be kept and compared, not fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// Its attributes, `type` among them.
    pub attrs: Attrs,
    pub(super) scheme: Option<Scheme>,
}

impl Input {
    /// Reads a URL. `require_tree`: an address without a tell-tale ending is a tarball, not a file.
    pub fn from_url(settings: &FetchSettings, url: &Url, require_tree: bool) -> Result<Input, FetchError> {
        for scheme in Scheme::ALL {
            if let Some(attrs) = scheme.attrs_of_url(settings, url, require_tree)? {
                scheme.require_feature(settings)?;
                return Input { attrs, scheme: Some(scheme) }.checked();
            }
        }
        if url.scheme_parts() == (Some("file"), "git") {
            let message =
                format!("input '{}' is unsupported; did you mean 'git+file' instead of 'file+git'?", shown(url));
            return Err(FetchError::new(message));
        }
        Err(FetchError::new(format!("input '{}' is unsupported", shown(url))))
    }

    /// Reads attributes. Those of an unknown type are kept as they are.
    pub fn from_attrs(settings: &FetchSettings, attrs: Attrs) -> Result<Input, FetchError> {
        let Some(name) = maybe_text(&attrs, "type")? else {
            return Err(FetchError::new("'type' attribute to specify input scheme is required but not provided"));
        };
        let Some(scheme) = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name) else {
            return Input { attrs, scheme: None }.checked();
        };
        scheme.require_feature(settings)?;
        for known in attrs.keys().filter(|name| !matches!(name.as_str(), "type" | "__final")) {
            if !scheme.allowed().contains(&known.as_str()) {
                let parts = (shown(known), shown(scheme.name()));
                let message = format!("input attribute '{}' not supported by scheme '{}'", parts.0, parts.1);
                return Err(FetchError::new(message));
            }
        }
        let attrs = scheme.check_attrs(settings, attrs)?;
        Input { attrs, scheme: Some(scheme) }.checked()
    }

    /// Attributes that every scheme has are of their kind.
    fn checked(self) -> Result<Input, FetchError> {
        text(&self.attrs, "type")?;
        maybe_text(&self.attrs, "ref")?;
        if !matches!(self.attrs.get("revCount"), Some(Attr::Lazy(_))) {
            maybe_number(&self.attrs, "revCount")?;
        }
        maybe_number(&self.attrs, "lastModified")?;
        Ok(self)
    }

    /// The scheme's name, as in the attribute `type`.
    pub fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    /// A text attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        maybe_text(&self.attrs, name).ok().flatten()
    }

    /// A flag; one that is absent is off.
    pub fn flag(&self, name: &str) -> Result<bool, FetchError> {
        Ok(maybe_flag(&self.attrs, name)?.unwrap_or(false))
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: &str, attr: impl Into<Attr>) {
        self.attrs.insert(name.to_owned(), attr.into());
    }

    /// The URL.
    pub fn to_url(&self) -> Result<Url, FetchError> {
        match self.scheme {
            Some(scheme) => scheme.url_of_input(self),
            None => Err(self.unsupported("cannot show unsupported input")),
        }
    }

    /// The URL as text; for messages, an input without one is shown as attributes.
    pub fn show(&self) -> String {
        self.to_url().map(|url| url.to_string()).or_else(|_| attrs_to_json(&self.attrs)).unwrap_or_default()
    }

    pub(super) fn unsupported(&self, what: &str) -> FetchError {
        FetchError::new(format!("{what} '{}'", shown(attrs_to_json(&self.attrs).unwrap_or_default())))
    }

    /// Whether it says where to fetch from, not merely a registry's name.
    pub fn is_direct(&self) -> bool {
        self.scheme != Some(Scheme::Indirect)
    }

    /// Whether it always means the same content.
    pub fn is_locked(&self) -> bool {
        match self.scheme {
            None | Some(Scheme::Indirect) => false,
            Some(Scheme::Git | Scheme::Mercurial) => {
                self.rev().ok().flatten().is_some_and(|rev| rev.digest().iter().any(|&byte| byte != 0))
            }
            // NIX: with `trust-tarballs-from-git-forges`, which is the default, a revision is enough.
            Some(Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut) => self.text("rev").is_some(),
            Some(Scheme::Path | Scheme::Tarball | Scheme::File) => self.text("narHash").is_some(),
        }
    }

    /// Whether its attributes are all there is to know: those of a lock file are.
    pub fn is_final(&self) -> bool {
        matches!(self.attrs.get("__final"), Some(Attr::Flag(true)))
    }

    /// The path, if it is one relative to the flake that names it.
    pub fn relative_path(&self) -> Option<&str> {
        (self.scheme == Some(Scheme::Path)).then(|| self.text("path")).flatten().filter(|path| !path.starts_with('/'))
    }

    /// The directory that changes to the tree can be written to.
    pub fn source_path(&self) -> Result<Option<String>, FetchError> {
        match self.scheme {
            Some(Scheme::Path) => super::schemes::path::absolute(self).map(Some),
            Some(Scheme::Git) => super::git::local_path(self),
            Some(Scheme::Mercurial) => {
                let url = Url::parse(text(&self.attrs, "url")?, false)?;
                let local = url.scheme == "file" && self.text("ref").is_none() && self.text("rev").is_none();
                if local { super::url::url_path_to_path(&url.path).map(Some) } else { Ok(None) }
            }
            _ => Ok(None),
        }
    }

    /// The name of the store object.
    pub fn name(&self) -> &str {
        self.text("name").unwrap_or("source")
    }

    /// The NAR hash, if it is known.
    pub fn nar_hash(&self) -> Result<Option<Hash>, FetchError> {
        let Some(text) = maybe_text(&self.attrs, "narHash")? else { return Ok(None) };
        let hash = if text.is_empty() { Hash::zero(Algorithm::Sha256) } else { Hash::parse_sri(text.as_bytes())? };
        if hash.algorithm() != Algorithm::Sha256 {
            return Err(FetchError::of(FetchErrorKind::Usage, "narHash must use SHA-256"));
        }
        Ok(Some(hash))
    }

    /// The revision, if it is known.
    pub fn rev(&self) -> Result<Option<Hash>, FetchError> {
        let Some(text) = maybe_text(&self.attrs, "rev")? else { return Ok(None) };
        let hash = Hash::parse_any_prefixed(text.as_bytes())
            .or_else(|_| Hash::parse_any(text.as_bytes(), Some(Algorithm::Sha1)))?;
        Ok(Some(hash))
    }

    /// The revision in hexadecimal, if it is known.
    pub fn rev_text(&self) -> Result<Option<String>, FetchError> {
        Ok(self.rev()?.map(|rev| rev.to_string(Format::Base16, false)))
    }

    /// When it was last changed, if that is known.
    pub fn last_modified(&self) -> Result<Option<u64>, FetchError> {
        maybe_number(&self.attrs, "lastModified")
    }

    /// The store path of the tree, which its NAR hash decides.
    pub fn store_path(&self, dir: &StoreDir) -> Result<StorePath, FetchError> {
        let Some(hash) = self.nar_hash()? else {
            let shown = shown(self.show());
            return Err(FetchError::new(format!("cannot compute store path for unlocked input '{shown}'")));
        };
        let address = ContentAddress { method: Method::Nar, hash };
        Ok(dir.make_fixed_output_path(self.name().as_bytes(), &address, References::default())?)
    }

    /// Whether a registry entry for this input concerns the other: the same, revision and branch aside.
    pub fn contains(&self, other: &Input) -> bool {
        let mut bare = other.clone();
        bare.attrs.remove("ref");
        bare.attrs.remove("rev");
        *self == *other || *self == bare
    }

    /// The input with another branch or revision.
    pub fn with_overrides(&self, branch: Option<&str>, rev: Option<&str>) -> Result<Input, FetchError> {
        match self.scheme {
            Some(scheme) => scheme.with_overrides(self, branch, rev),
            None => Ok(self.clone()),
        }
    }

    /// Checks what was fetched against what was asked for; a final input keeps its own attributes.
    pub(super) fn check_locks(&self, result: &mut Input) -> Result<(), FetchError> {
        let mut asked = self.clone();
        if asked.is_final() {
            for input in [&mut asked, &mut *result] {
                if let Some(hash) = input.nar_hash()? {
                    input.set("narHash", hash.to_string(Format::Sri, true));
                }
            }
            for (name, attr) in &asked.attrs {
                if result.attrs.get(name).is_some_and(|other| other != attr) {
                    let parts = (shown(name), attrs_to_json(&asked.attrs)?, attrs_to_json(&result.attrs)?);
                    let (asked, found) = (shown(parts.1), shown(parts.2));
                    let message = format!("mismatch in field '{}' of input '{asked}', got '{found}'", parts.0);
                    return Err(FetchError::new(message));
                }
            }
            result.attrs = asked.attrs;
            return Ok(());
        }
        if let Some(wanted) = asked.nar_hash()? {
            match result.nar_hash()? {
                Some(found) if found == wanted => {}
                found => return Err(asked.wrong_hash(&wanted, found.as_ref())),
            }
        }
        if let Some(rev) = asked.rev()?
            && result.rev()? != Some(rev)
        {
            let rev = shown(rev.to_string(Format::Base16, false));
            let message = format!("'rev' attribute mismatch in input '{}', expected {rev}", shown(result.show()));
            return Err(FetchError::new(message));
        }
        Ok(())
    }

    pub(super) fn wrong_hash(&self, wanted: &Hash, found: Option<&Hash>) -> FetchError {
        let wanted = shown(wanted.to_string(Format::Sri, true));
        let before = format!("NAR hash mismatch in input '{}', expected '{wanted}' but got ", shown(self.show()));
        let message = match found {
            Some(found) => format!("{before}'{}'", shown(found.to_string(Format::Sri, true))),
            None => format!("{before}none"),
        };
        FetchError::of(FetchErrorKind::Mismatch, message)
    }
}
