//! What changed in a checkout since a revision, as `git` tells it: for whoever wants to know what a change touches.

use super::error::FetchError;
use super::git;
use crate::AbsPath;
use std::collections::BTreeSet;

/// What changed in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The root of the checkout.
    pub root: AbsPath,
    /// The revision's full name.
    pub rev: String,
    /// Regular files whose content alone changed.
    pub edited: Vec<AbsPath>,
    /// Whatever appeared, disappeared or became something else, directories included. Files that Git does not track are
    /// among them: nobody knows when they came.
    pub moved: Vec<AbsPath>,
    /// Directories whose entries are others than before.
    pub relisted: Vec<AbsPath>,
}

/// What changed in the checkout around a directory since a revision, uncommitted and untracked files included.
pub fn changed_since(dir: &AbsPath, rev: &str) -> Result<Changed, FetchError> {
    let root = git::line(git::run(dir.as_path(), &["rev-parse", "--show-toplevel"])?);
    let root = AbsPath::new(root.as_bytes()).map_err(|_| FetchError::new("Git names no root of this checkout".to_owned()))?;
    let commit = format!("{rev}^{{commit}}");
    let rev = git::line(git::run(root.as_path(), &["rev-parse", "--verify", "--end-of-options", &commit])?);
    let options = ["diff", "--raw", "-z", "--no-renames", "--no-relative", "--no-ext-diff", "--abbrev=40", &rev, "--"];
    let told = git::run(root.as_path(), &options)?;
    let untracked = git::run(root.as_path(), &["ls-files", "-z", "--others"])?;
    let mut changed = Changed { root, rev, edited: Vec::new(), moved: Vec::new(), relisted: Vec::new() };
    let mut moved = Vec::new();
    let mut parts = told.split(|&byte| byte == 0);
    while let (Some(about), Some(path)) = (parts.next(), parts.next()) {
        let Ok(path) = changed.root.beneath(&[b"/", path].concat()) else { continue };
        if is_edit(about) { changed.edited.push(path) } else { moved.push(path) }
    }
    let paths = untracked.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    moved.extend(paths.filter_map(|path| changed.root.beneath(&[b"/", path].concat()).ok()));
    changed.add_moved(moved)?;
    Ok(changed)
}

/// A regular file before and after, of the same mode: `:100644 100644 … M`.
fn is_edit(about: &[u8]) -> bool {
    let mut words = about.trim_ascii().split(|&byte| byte == b' ');
    let (before, after) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let regular = matches!(after, b"100644" | b"100755");
    regular && before.strip_prefix(b":") == Some(after) && words.nth(2) == Some(b"M")
}

impl Changed {
    /// Adds what came or went, and the directories that came or went with it.
    fn add_moved(&mut self, moved: Vec<AbsPath>) -> Result<(), FetchError> {
        let listing = git::run(self.root.as_path(), &["ls-tree", "-r", "-t", "-d", "-z", "--name-only", "--full-tree", &self.rev])?;
        let before: BTreeSet<&[u8]> = listing.split(|&byte| byte == 0).collect();
        let within = |path: &AbsPath| path.as_bytes().get(self.root.as_bytes().len() + 1..).unwrap_or_default().to_vec();
        let (mut all, mut relisted) = (BTreeSet::new(), BTreeSet::new());
        for path in moved {
            let mut path = Some(path);
            while let Some(this) = path.take().filter(|this| *this != self.root) {
                let Some(above) = this.parent().filter(|_| all.insert(this.clone())) else { break };
                relisted.insert(above.clone());
                let was_there = above == self.root || before.contains(&within(&above)[..]);
                // A directory that is there on both sides has other entries; any other came or went itself.
                if !was_there || !is_directory(&above) {
                    path = Some(above);
                }
            }
        }
        (self.moved, self.relisted) = (all.into_iter().collect(), relisted.into_iter().collect());
        Ok(())
    }

    /// The content that a file had at the revision; none if there was none.
    pub fn content_before(&self, path: &AbsPath) -> Result<Option<Vec<u8>>, FetchError> {
        let Some(rest) = path.as_bytes().strip_prefix(self.root.as_bytes()) else { return Ok(None) };
        let Ok(rest) = std::str::from_utf8(rest.strip_prefix(b"/").unwrap_or(rest)) else { return Ok(None) };
        git::ask(self.root.as_path(), &["cat-file", "blob", &format!("{}:{rest}", self.rev)])
    }
}

#[allow(clippy::disallowed_methods, reason = "looks at a checkout beside `git`")]
fn is_directory(path: &AbsPath) -> bool {
    std::fs::symlink_metadata(path.as_path()).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_one_mode_are_edited() {
        assert!(is_edit(b":100644 100644 aaa bbb M"));
        assert!(is_edit(b":100755 100755 aaa bbb M"));
        for other in [":100644 100755 a b M", ":120000 120000 a b M", ":000000 100644 a b A", ":160000 160000 a b M", ""] {
            assert!(!is_edit(other.as_bytes()), "{other}");
        }
    }
}
