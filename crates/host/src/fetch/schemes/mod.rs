//! The kinds of input: how each is read from a URL and from attributes, and how it prints.

pub(super) mod curl;
pub(super) mod forge;
pub(super) mod git;
pub(super) mod indirect;
pub(super) mod mercurial;
pub(super) mod path;

use super::attrs::Attrs;
use super::error::{FetchError, shown};
use super::input::Input;
use super::settings::FetchSettings;
use super::url::Url;

/// A kind of input.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Scheme {
    File,
    Git,
    GitHub,
    GitLab,
    Mercurial,
    Indirect,
    Path,
    SourceHut,
    Tarball,
}

impl Scheme {
    /// In the order in which they are asked about a URL.
    pub const ALL: [Scheme; 9] = [
        Scheme::File,
        Scheme::Git,
        Scheme::GitHub,
        Scheme::GitLab,
        Scheme::Mercurial,
        Scheme::Indirect,
        Scheme::Path,
        Scheme::SourceHut,
        Scheme::Tarball,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scheme::File => "file",
            Scheme::Git => "git",
            Scheme::GitHub => "github",
            Scheme::GitLab => "gitlab",
            Scheme::Mercurial => "hg",
            Scheme::Indirect => "indirect",
            Scheme::Path => "path",
            Scheme::SourceHut => "sourcehut",
            Scheme::Tarball => "tarball",
        }
    }

    pub fn require_feature(self, settings: &FetchSettings) -> Result<(), FetchError> {
        match self {
            Scheme::File | Scheme::Git | Scheme::Mercurial | Scheme::Tarball => Ok(()),
            _ => settings.require_flakes(),
        }
    }

    pub fn allowed(self) -> &'static [&'static str] {
        match self {
            Scheme::File | Scheme::Tarball => &curl::ALLOWED,
            Scheme::Git => &git::ALLOWED,
            Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut => &forge::ALLOWED,
            Scheme::Mercurial => &mercurial::ALLOWED,
            Scheme::Indirect => &["id", "ref", "rev", "narHash"],
            Scheme::Path => &["path", "rev", "revCount", "lastModified", "narHash"],
        }
    }

    /// The attributes that a URL stands for; none if it is not of this scheme.
    pub fn attrs_of_url(
        self,
        settings: &FetchSettings,
        url: &Url,
        require_tree: bool,
    ) -> Result<Option<Attrs>, FetchError> {
        match self {
            Scheme::File | Scheme::Tarball => curl::attrs_of_url(self, url, require_tree),
            Scheme::Git => git::attrs_of_url(settings, url),
            Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut => forge::attrs_of_url(self, url),
            Scheme::Mercurial => mercurial::attrs_of_url(url),
            Scheme::Indirect => indirect::attrs_of_url(url),
            Scheme::Path => path::attrs_of_url(url),
        }
    }

    /// Checks attributes, and brings them into their usual form.
    pub fn check_attrs(self, settings: &FetchSettings, attrs: Attrs) -> Result<Attrs, FetchError> {
        match self {
            Scheme::File | Scheme::Tarball => Ok(attrs),
            Scheme::Git => git::check_attrs(settings, attrs),
            Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut => forge::check_attrs(attrs),
            Scheme::Mercurial => mercurial::check_attrs(attrs),
            Scheme::Indirect => indirect::check_attrs(attrs),
            Scheme::Path => super::attrs::text(&attrs, "path").map(|_| ()).map(|()| attrs),
        }
    }

    pub fn url_of_input(self, input: &Input) -> Result<Url, FetchError> {
        match self {
            Scheme::File | Scheme::Tarball => curl::url_of_input(input),
            Scheme::Git => git::url_of_input(input),
            Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut => forge::url_of_input(self, input),
            Scheme::Mercurial => mercurial::url_of_input(input),
            Scheme::Indirect => indirect::url_of_input(input),
            Scheme::Path => path::url_of_input(input),
        }
    }

    pub fn with_overrides(self, input: &Input, branch: Option<&str>, rev: Option<&str>) -> Result<Input, FetchError> {
        let mut changed = input.clone();
        match self {
            Scheme::Git | Scheme::Indirect | Scheme::Mercurial => {
                if let Some(rev) = rev {
                    changed.set("rev", rev);
                }
                if let Some(branch) = branch {
                    changed.set("ref", branch);
                }
                if self == Scheme::Git && changed.text("ref").is_none() && changed.text("rev").is_some() {
                    let shown = shown(changed.show());
                    let message = format!("Git input '{shown}' has a commit hash but no branch/tag name");
                    return Err(FetchError::new(message));
                }
            }
            Scheme::GitHub | Scheme::GitLab | Scheme::SourceHut => forge::override_input(&mut changed, branch, rev)?,
            Scheme::Path | Scheme::File | Scheme::Tarball => {
                let what = branch.map(|name| ("branch/tag name", name)).or(rev.map(|rev| ("revision", rev)));
                if let Some((what, value)) = what {
                    let parts = (shown(input.show()), shown(value));
                    let message = format!("don't know how to set {what} of input '{}' to '{}'", parts.0, parts.1);
                    return Err(FetchError::new(message));
                }
            }
        }
        Ok(changed)
    }
}

/// Forty hexadecimal digits.
pub(super) fn is_rev(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether Git takes the text for the name of a branch or tag.
pub(super) fn is_legal_ref(name: &str) -> bool {
    let forbidden = |byte: u8| byte < 0x20 || byte == 0x7f || b" ~^:?*[\\".contains(&byte);
    let legal_step = |step: &str| !step.is_empty() && !step.starts_with('.') && !step.ends_with(".lock");
    !(name == "@"
        || name.starts_with('-')
        || name.ends_with('.')
        || name.contains("..")
        || name.contains("@{")
        || name.bytes().any(forbidden))
        && name.split('/').all(legal_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches() {
        for legal in ["main", "HEAD", "refs/heads/x", "a/b.c", "v1@2"] {
            assert!(is_legal_ref(legal), "{legal}");
        }
        for illegal in ["", "@", "-x", "a..b", "a.lock", ".a", "a/", "a//b", "a b", "a~1", "x@{1}", "a."] {
            assert!(!is_legal_ref(illegal), "{illegal}");
        }
    }
}
