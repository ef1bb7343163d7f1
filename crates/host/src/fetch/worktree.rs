//! The work tree of a local Git repository: the files Git knows, with the contents they have now.
#![allow(clippy::disallowed_methods)] // Looks at a repository beside `git`.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use firn_store::hash::Hash;

use super::attrs::Attr;
use super::error::{FetchError, shown};
use super::fetcher::{Fetcher, Found, Placed, hash_tree};
use super::git::{self, Location};
use super::input::Input;
use crate::{AbsPath, FileType, Follow, Mount};

/// What `git` says about a work tree.
#[derive(Debug, Default)]
struct WorkTree {
    /// The commit it is on; none before the first one.
    head: Option<String>,
    /// Tracked files that are there, relative to the root.
    files: Vec<Vec<u8>>,
    /// Whether tracked files differ from that commit.
    dirty: bool,
    /// Where submodules are.
    submodules: Vec<Vec<u8>>,
}

impl WorkTree {
    fn look(repo: &Path) -> Result<WorkTree, FetchError> {
        if !repo.join(".git").exists() {
            let at = shown(repo.display());
            return Err(FetchError::new(format!("opening Git repository '{at}': could not find repository at '{at}'")));
        }
        let head = git::ask(repo, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?.map(git::line);
        let mut tree = WorkTree { head, ..WorkTree::default() };
        for entry in zero_separated(&git::run(repo, &["ls-files", "-z", "--stage", "--full-name"])?) {
            let Some(tab) = entry.iter().position(|&byte| byte == b'\t') else { continue };
            let list = if entry.starts_with(b"160000 ") { &mut tree.submodules } else { &mut tree.files };
            list.push(entry[tab + 1..].to_vec());
        }
        let status =
            ["--no-optional-locks", "status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"];
        let status = git::run(repo, &status)?;
        let mut gone = HashSet::new();
        for entry in zero_separated(&status) {
            tree.dirty = true;
            if entry.len() > 3 && entry[..2].contains(&b'D') {
                gone.insert(entry[3..].to_vec());
            }
        }
        tree.files.retain(|file| !gone.contains(file));
        tree.files.dedup();
        Ok(tree)
    }
}

fn zero_separated(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|&byte| byte == 0).filter(|part| !part.is_empty())
}

/// The files of a work tree and of its submodules, and whether any of those is changed.
fn files(repo: &Path, tree: &WorkTree, submodules: bool) -> Result<(Vec<Vec<u8>>, bool), FetchError> {
    let (mut all, mut dirty) = (tree.files.clone(), tree.dirty);
    for module in tree.submodules.iter().filter(|_| submodules) {
        let place = repo.join(std::ffi::OsStr::from_bytes(module));
        let inner = WorkTree::look(&place)?;
        let (below, changed) = files(&place, &inner, true)?;
        dirty |= changed;
        all.extend(below.into_iter().map(|file| [&module[..], b"/", &file].concat()));
    }
    Ok((all, dirty))
}

impl Fetcher {
    pub(super) fn find_work_tree(&self, input: &Input, repo: &Path) -> Result<Found, FetchError> {
        let mut input = input.clone();
        let place = Location::Local(repo.to_owned());
        let tree = WorkTree::look(repo)?;
        let (mut files, dirty) = files(repo, &tree, input.flag("submodules")?)?;
        if input.flag("exportIgnore")? {
            super::git_tree::drop_ignored(repo, None, &mut files)?;
        }
        let host = self.disk();
        let root = host.resolve_symlinks(&AbsPath::new(repo.as_os_str().as_bytes())?, Follow::Full)?;
        let mut kept = HashSet::new();
        for file in &files {
            let mut place = root.beneath(file)?;
            while place != root && kept.insert(place.clone()) {
                place = place.parent().unwrap_or_else(AbsPath::root);
            }
        }
        let mut mount = Mount { host, root, excluded: Arc::default() };
        // Submodules may be at another commit than this one says.
        let whole = !dirty && !input.flag("submodules")?;
        let head = tree.head.as_deref().filter(|_| whole);
        let hash = self.work_tree_hash(&mut mount, &kept, input.flag("exportIgnore")?, head)?;
        self.lock_work_tree(&mut input, repo, &place, &tree, dirty)?;
        self.verify_commit(&input, repo, input.rev_text()?.as_deref())?;
        Ok(Found { input, placed: Placed::Elsewhere(mount), nar_hash: Some(hash) })
    }

    /// The NAR hash of what is kept. A tree without changes is hashed once per commit: after that, only its directories
    /// are listed, for what does not belong to it.
    fn work_tree_hash(
        &self,
        mount: &mut Mount,
        kept: &HashSet<AbsPath>,
        ignore: bool,
        head: Option<&str>,
    ) -> Result<Hash, FetchError> {
        let key = head.map(|head| format!("worktree-{head}-{}{}", kept.len(), if ignore { "-e" } else { "" }));
        if let Some(hash) = key.as_ref().and_then(|key| self.cache.known_hash("git-trees", key)) {
            let mut excluded = HashSet::new();
            let mut todo = vec![mount.root.clone()];
            while let Some(dir) = todo.pop() {
                for (name, file_type) in mount.host.read_dir(&dir)?.entries() {
                    let path = dir.child(name);
                    if !kept.contains(&path) {
                        excluded.insert(path);
                    } else if file_type.map_or_else(|| mount.host.existing_type(&path), Ok)? == FileType::Directory {
                        todo.push(path);
                    }
                }
            }
            mount.excluded = Arc::new(excluded);
            return Ok(hash);
        }
        let (hash, _) = hash_tree(mount, &|path| kept.contains(path))?;
        if let Some(key) = key {
            self.cache.dir("git-trees")?;
            self.cache.note_hash("git-trees", &key, &hash);
        }
        Ok(hash)
    }

    fn lock_work_tree(
        &self,
        input: &mut Input,
        repo: &Path,
        place: &Location,
        tree: &WorkTree,
        dirty: bool,
    ) -> Result<(), FetchError> {
        if dirty {
            let at = shown(place.show());
            if !self.settings.allow_dirty {
                return Err(FetchError::new(format!("Git tree '{at}' is dirty")));
            }
            if self.settings.warn_dirty {
                self.warn(&format!("Git tree '{at}' is dirty"));
            }
            if let Some(head) = &tree.head {
                input.set("dirtyRev", format!("{head}-dirty"));
                input.set("dirtyShortRev", format!("{}-dirty", &head[..head.len().min(7)]));
            }
        } else {
            if let Some(branch) = git::head_ref(repo)? {
                input.set("ref", branch);
            }
            let rev = tree.head.clone().unwrap_or_else(|| "0".repeat(40));
            if !input.flag("shallow")? {
                let count = if tree.head.is_some() { git::rev_count(repo, &rev, place) } else { Attr::Number(0) };
                input.set("revCount", count);
            }
            input.set("rev", rev);
        }
        let time = tree.head.as_ref().map_or(Ok(0), |head| git::last_modified(repo, head))?;
        input.set("lastModified", Attr::Number(time));
        Ok(())
    }
}
