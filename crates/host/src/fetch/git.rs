//! Git repositories through `git` itself: which one an input means, its branches and revisions, clones of remote ones.
//!
//! Decision: `git` is run, not linked. Whoever uses `git+…` inputs has it, it knows every transport and credential
//! helper, and it is asked a handful of questions per repository, so that starting it costs little.
#![allow(clippy::disallowed_methods)] // This file is the host's way to run `git` and to look at clones.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use firn_store::hash::{Algorithm, Format, Hash};

use super::attrs::{Attr, Lazy, text};
use super::error::{FetchError, shown};
use super::fetcher::{Fetcher, Found};
use super::input::Input;
use super::url::{Url, url_path_to_path};

/// Where a repository is.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// A directory with a work tree.
    Local(PathBuf),
    /// An address that is cloned.
    Remote(String),
}

impl Location {
    /// As Nix names it in messages.
    pub fn show(&self) -> String {
        match self {
            Location::Local(path) => path.display().to_string(),
            Location::Remote(url) => url.clone(),
        }
    }
}

/// Whether a program of this name can be started.
pub(super) fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// A command for `git` in a directory. Variables that would point it to another repository are not passed on.
pub(super) fn command(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).stdin(Stdio::null());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"] {
        command.env_remove(name);
    }
    command
}

/// What `git` printed, or none if it failed.
pub(super) fn ask(dir: &Path, args: &[&str]) -> Result<Option<Vec<u8>>, FetchError> {
    let output = command(dir).args(args).output().map_err(cannot_run)?;
    Ok(output.status.success().then_some(output.stdout))
}

/// What `git` printed; its failure is one.
pub(super) fn run(dir: &Path, args: &[&str]) -> Result<Vec<u8>, FetchError> {
    let output = command(dir).args(args).output().map_err(cannot_run)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let parts = (shown(args.first().unwrap_or(&"")), shown(dir.display()), said.trim_end().to_owned());
    Err(FetchError::new(format!("'git {}' in '{}' failed: {}", parts.0, parts.1, parts.2)))
}

fn cannot_run(error: std::io::Error) -> FetchError {
    FetchError::new(format!("cannot run 'git', which fetching from Git repositories needs: {}", crate::Errno::from(error)))
}

pub(super) fn line(output: Vec<u8>) -> String {
    String::from_utf8_lossy(&output).trim_end().to_owned()
}

/// Which repository an input means. NIX: a directory without `.git` is a bare repository, which is cloned.
pub(super) fn location(input: &Input) -> Result<Location, FetchError> {
    let mut url = Url::parse(text(&input.attrs, "url")?, false)?;
    if url.scheme == "file" {
        let path = PathBuf::from(url_path_to_path(&url.path)?);
        let bare = path.exists() && !path.join(".git").exists();
        if !bare {
            let path = std::path::absolute(&path).map_err(|e| super::error::file_error("resolving", &path, e))?;
            return Ok(Location::Local(path));
        }
        url.query.clear();
    }
    // NIX: older lock files have the flake's directory in the URL; the server is not asked for it.
    url.query.remove("dir");
    Ok(Location::Remote(url.to_string()))
}

/// The work tree that an input means, if it means one that can be written to.
pub(super) fn local_path(input: &Input) -> Result<Option<String>, FetchError> {
    Ok(match location(input)? {
        Location::Local(path) => Some(path.display().to_string()),
        Location::Remote(_) => None,
    })
}

/// When a commit was made.
pub(super) fn last_modified(repo: &Path, rev: &str) -> Result<u64, FetchError> {
    let output = run(repo, &["log", "-1", "--no-show-signature", "--format=%ct", rev, "--"])?;
    line(output).parse().map_err(|_| FetchError::new(format!("Git commit '{}' has no time", shown(rev))))
}

/// How many commits lead to a revision, counted when asked for.
pub(super) fn rev_count(repo: &Path, rev: &str, place: &Location) -> Attr {
    let (repo, rev, place) = (repo.to_owned(), rev.to_owned(), place.show());
    Attr::Lazy(Lazy::new(move || {
        if line(run(&repo, &["rev-parse", "--is-shallow-repository"])?) == "true" {
            let place = shown(&place);
            return Err(FetchError::new(format!("'{place}' is a shallow Git repository, so 'revCount' is not available")));
        }
        let count = line(run(&repo, &["rev-list", "--count", &rev, "--"])?);
        count.parse().map_err(|_| FetchError::new(format!("'git rev-list' counted '{}'", shown(&count))))
    }))
}

/// The branch that a local repository is on, by its full name.
pub(super) fn head_ref(repo: &Path) -> Result<Option<String>, FetchError> {
    Ok(ask(repo, &["symbolic-ref", "--quiet", "HEAD"])?.map(line))
}

fn resolve_ref(repo: &Path, name: &str) -> Result<String, FetchError> {
    let commit = format!("{name}^{{commit}}");
    match ask(repo, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])? {
        Some(output) => Ok(line(output)),
        None => {
            let parts = (shown(name), shown(repo.display()));
            Err(FetchError::new(format!("resolving Git reference '{}' in repository '{}': it does not exist", parts.0, parts.1)))
        }
    }
}

fn has_commit(repo: &Path, rev: &str) -> Result<bool, FetchError> {
    Ok(ask(repo, &["cat-file", "-e", &format!("{rev}^{{commit}}")])?.is_some())
}

impl Fetcher {
    pub(super) fn find_git(&self, input: &Input) -> Result<Found, FetchError> {
        if let Some(rev) = input.rev()?
            && !matches!(rev.algorithm(), Algorithm::Sha1 | Algorithm::Sha256)
        {
            let rev = shown(rev.to_string(Format::Base16, true));
            let message = format!("Hash '{rev}' is not supported by Git. Supported types are sha1 and sha256.");
            return Err(FetchError::new(message));
        }
        if input.flag("exportIgnore")? && input.flag("submodules")? {
            return Err(FetchError::new("exportIgnore and submodules are not supported together yet"));
        }
        match location(input)? {
            Location::Local(path) if input.text("ref").is_none() && input.text("rev").is_none() => {
                self.find_work_tree(input, &path)
            }
            place => self.find_commit(input, &place),
        }
    }

    /// A commit's tree.
    fn find_commit(&self, input: &Input, place: &Location) -> Result<Found, FetchError> {
        let mut input = input.clone();
        let (repo, rev) = self.commit_of(&mut input, place)?;
        self.verify_commit(&input, &repo, Some(&rev))?;
        if !input.attrs.contains_key("lastModified") {
            input.set("lastModified", Attr::Number(last_modified(&repo, &rev)?));
        }
        if !input.flag("shallow")? && !input.attrs.contains_key("revCount") {
            input.set("revCount", rev_count(&repo, &rev, place));
        }
        let (mount, hash) = self.commit_tree(&input, &repo, &rev)?;
        Ok(Found { input, placed: super::fetcher::Placed::Elsewhere(mount), nar_hash: Some(hash) })
    }

    /// The repository on disk and the revision; the input gets its branch and revision.
    pub(super) fn commit_of(&self, input: &mut Input, place: &Location) -> Result<(PathBuf, String), FetchError> {
        let named = input.text("ref").map(str::to_owned);
        let shallow = input.flag("shallow")?;
        let (repo, branch) = match place {
            Location::Local(path) => {
                let branch = match &named {
                    Some(branch) => branch.clone(),
                    None => self.default_ref(head_ref(path)?, place),
                };
                (path.clone(), branch)
            }
            Location::Remote(url) => {
                let repo = self.clone_of(url, shallow)?;
                let branch = match &named {
                    Some(branch) => branch.clone(),
                    None => self.remote_head(&repo, url, place)?,
                };
                self.update_clone(&repo, url, &branch, input)?;
                (repo, branch)
            }
        };
        input.set("ref", branch.clone());
        let rev = match input.rev_text()? {
            Some(rev) if has_commit(&repo, &rev)? => rev,
            Some(rev) => return Err(no_such_revision(&rev, &branch, place)),
            None => resolve_ref(&repo, &branch)?,
        };
        input.set("rev", rev.clone());
        Ok((repo, rev))
    }

    fn default_ref(&self, head: Option<String>, place: &Location) -> String {
        head.unwrap_or_else(|| {
            self.warn(&format!("could not read HEAD ref from repo at '{}', using 'master'", shown(place.show())));
            "master".to_owned()
        })
    }

    /// The clone of a remote repository, made if need be.
    fn clone_of(&self, url: &str, shallow: bool) -> Result<PathBuf, FetchError> {
        let name = Hash::of(Algorithm::Sha256, url.as_bytes()).to_string(Format::Nix32, false);
        let repo = self.cache.dir("git")?.join(if shallow { format!("{name}-shallow") } else { name });
        if !repo.join("HEAD").exists() {
            let parent = repo.parent().unwrap_or(&repo).to_owned();
            let made = self.cache.temporary("git")?;
            run(&parent, &["init", "--quiet", "--bare", "--", &made.display().to_string()])?;
            // Another process may have been quicker; its clone is as good.
            if std::fs::rename(&made, &repo).is_err() {
                let _ = std::fs::remove_dir_all(&made);
            }
        }
        Ok(repo)
    }

    /// The default branch of a remote repository; asked for again when the last answer is old.
    fn remote_head(&self, repo: &Path, url: &str, place: &Location) -> Result<String, FetchError> {
        let note = repo.join("firn-head");
        let known = std::fs::read_to_string(&note).ok().filter(|head| !head.is_empty());
        if let Some(head) = known.as_ref().filter(|_| self.is_fresh(&note)) {
            return Ok(head.clone());
        }
        let asked = ask(repo, &["ls-remote", "--symref", "--", url, "HEAD"])?;
        let head = asked.and_then(|output| {
            let text = String::from_utf8_lossy(&output).into_owned();
            let target = text.lines().find_map(|line| line.strip_prefix("ref: ")?.split('\t').next().map(str::to_owned));
            target.or_else(|| text.lines().find_map(|line| line.split_once('\t')).map(|(rev, _)| rev.to_owned()))
        });
        match (head, known) {
            (Some(head), _) => {
                let _ = std::fs::write(&note, &head);
                Ok(head)
            }
            (None, Some(known)) => {
                let parts = (shown(url), shown(&known));
                self.warn(&format!("could not get HEAD ref for repository '{}'; using expired cached ref '{}'", parts.0, parts.1));
                Ok(known)
            }
            (None, None) => Ok(self.default_ref(None, place)),
        }
    }

    pub(super) fn is_fresh(&self, note: &Path) -> bool {
        let age = note.metadata().and_then(|meta| meta.modified()).ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age < self.settings.tarball_ttl || self.settings.offline)
    }

    /// Fetches what the input needs and the clone does not have, or has for too long.
    fn update_clone(&self, repo: &Path, url: &str, branch: &str, input: &Input) -> Result<(), FetchError> {
        let full = if branch.starts_with("refs/") || branch == "HEAD" { branch.to_owned() } else { format!("refs/heads/{branch}") };
        let note = repo.join(format!("firn-fetched-{}", blake3::hash(full.as_bytes()).to_hex()));
        let rev = input.rev_text()?;
        let all = input.flag("allRefs")?;
        let needed = match &rev {
            Some(rev) => !has_commit(repo, rev)?,
            None => all || !self.is_fresh(&note),
        };
        if !needed {
            return Ok(());
        }
        let target = if full == "HEAD" { "HEAD:refs/heads/HEAD".to_owned() } else { format!("{full}:{full}") };
        let refspec = match &rev {
            _ if all => "refs/*:refs/*".to_owned(),
            Some(rev) => rev.clone(),
            None => target,
        };
        let mut args = vec!["fetch", "--quiet", "--force", "--no-tags"];
        if input.flag("shallow")? {
            args.push("--depth=1");
        }
        args.extend(["--", url, &refspec]);
        if let Err(error) = run(repo, &args) {
            if rev.is_some() || !note.exists() {
                return Err(error);
            }
            self.warn(&format!(
                "could not update local clone of Git repository '{}'; continuing with the most recent version",
                shown(url)
            ));
        }
        let _ = std::fs::write(&note, b"");
        Ok(())
    }
}

fn no_such_revision(rev: &str, branch: &str, place: &Location) -> FetchError {
    let parts = (shown(rev), shown(branch), shown(place.show()));
    FetchError::new(format!(
        "Cannot find Git revision '{}' in ref '{}' of repository '{}'! Please make sure that the \x1b[1mrev\x1b[0m exists on \
         the \x1b[1mref\x1b[0m you've specified or add \x1b[1mallRefs = true;\x1b[0m to \x1b[1mfetchGit\x1b[0m.",
        parts.0, parts.1, parts.2
    ))
}
