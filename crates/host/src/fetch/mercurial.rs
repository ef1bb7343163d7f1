//! Mercurial repositories through `hg` itself, as Nix does it: a changed work tree as it lies there, otherwise a revision,
//! taken out of a clone.
#![allow(clippy::disallowed_methods)] // Runs `hg`, and looks at clones and trees in the fetchers' own directory.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use firn_store::hash::{Algorithm, Format, Hash};

use super::attrs::{Attr, text};
use super::error::{FetchError, file_error, shown};
use super::fetcher::{Fetcher, Found, Placed, hash_tree};
use super::git;
use super::input::Input;
use super::url::{Url, url_path_to_path};
use crate::{AbsPath, Follow, Mount};

const TREES: &str = "hg-trees";

fn start(args: &[&OsStr]) -> Result<Output, FetchError> {
    let mut command = Command::new("hg");
    // Plain: neither the user's settings nor their language change what is printed.
    command.env("HGPLAIN", "").args(args).stdin(Stdio::null());
    command.output().map_err(|error| {
        FetchError::new(format!("cannot run 'hg', which fetching from Mercurial repositories needs: {}", crate::Errno::from(error)))
    })
}

/// What `hg` printed; its failure is one.
fn hg(args: &[&OsStr]) -> Result<Vec<u8>, FetchError> {
    let output = start(args)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let what = args.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
    Err(FetchError::new(format!("'hg {}' failed: {said}", shown(what))))
}

/// `hg` about a repository on disk.
fn ask(repo: &Path, command: &str, args: &[&str]) -> Result<Vec<u8>, FetchError> {
    let mut all = vec![OsStr::new(command), OsStr::new("-R"), repo.as_os_str()];
    all.extend(args.iter().map(OsStr::new));
    hg(&all)
}

/// A revision that a clone has.
struct Revision {
    node: String,
    number: u64,
    branch: String,
}

impl Revision {
    fn look(repo: &Path, name: &str) -> Result<Revision, FetchError> {
        let told = git::line(ask(repo, "log", &["-r", name, "--template", "{node} {rev} {branch}"])?);
        let mut words = told.splitn(3, ' ');
        let (node, number, branch) = (words.next(), words.next().and_then(|number| number.parse().ok()), words.next());
        let (Some(node), Some(number), Some(branch)) = (node, number, branch) else {
            return Err(FetchError::new(format!("'hg log' told '{}' of revision '{}'", shown(&told), shown(name))));
        };
        Ok(Revision { node: node.to_owned(), number, branch: branch.to_owned() })
    }
}

impl Fetcher {
    pub(super) fn find_mercurial(&self, input: &Input) -> Result<Found, FetchError> {
        if !git::is_installed("hg") {
            let message = format!("cannot fetch Mercurial repository '{}': the program 'hg' is not installed", shown(input.show()));
            return Err(FetchError::new(message));
        }
        if let Some(rev) = input.rev()?.filter(|rev| rev.algorithm() != Algorithm::Sha1) {
            let rev = shown(rev.to_string(Format::Base16, true));
            return Err(FetchError::new(format!("Hash '{rev}' is not supported by Mercurial. Only sha1 is supported.")));
        }
        let url = Url::parse(text(&input.attrs, "url")?, false)?;
        let local = if url.scheme == "file" { Some(PathBuf::from(url_path_to_path(&url.path)?)) } else { None };
        let unlocked = input.text("ref").is_none() && input.text("rev").is_none();
        if let Some(repo) = local.as_ref().filter(|repo| unlocked && repo.join(".hg").exists())
            && !ask(repo, "status", &["--modified", "--added", "--removed"])?.is_empty()
        {
            return self.find_unclean(input, repo);
        }
        let from = local.as_ref().map_or_else(|| url.to_string(), |path| path.display().to_string());
        self.find_revision(input, &from, local.is_some())
    }

    /// A work tree with changes: the files that Mercurial knows, as they are.
    fn find_unclean(&self, input: &Input, repo: &Path) -> Result<Found, FetchError> {
        let quoted = format!("\"{}\"", shown(repo.display()));
        if !self.settings.allow_dirty {
            return Err(FetchError::new(format!("Mercurial tree '{quoted}' is unclean")));
        }
        if self.settings.warn_dirty {
            self.warn(&format!("Mercurial tree '{quoted}' is unclean"));
        }
        let mut input = input.clone();
        input.set("ref", git::line(ask(repo, "branch", &[])?));
        let files = ask(repo, "status", &["--clean", "--modified", "--added", "--no-status", "--print0"])?;
        let host = self.disk();
        let root = host.resolve_symlinks(&AbsPath::new(repo.as_os_str().as_bytes())?, Follow::Full)?;
        let mut kept = HashSet::new();
        for file in files.split(|&byte| byte == 0).filter(|file| !file.is_empty()) {
            let mut place = root.beneath(file)?;
            while place != root && kept.insert(place.clone()) {
                place = place.parent().unwrap_or_else(AbsPath::root);
            }
        }
        let mut mount = Mount { host, root, excluded: Default::default() };
        let (hash, _) = hash_tree(&mut mount, &|path| kept.contains(path))?;
        Ok(Found { input, placed: Placed::Elsewhere(mount), nar_hash: Some(hash) })
    }

    /// A revision's tree. `local` repositories are asked each time: it costs little.
    fn find_revision(&self, input: &Input, from: &str, local: bool) -> Result<Found, FetchError> {
        let mut input = input.clone();
        let branch = input.text("ref").unwrap_or("default").to_owned();
        let rev = input.rev_text()?;
        let name = Hash::of(Algorithm::Sha256, from.as_bytes()).to_string(Format::Nix32, false);
        let repo = self.cache.dir("hg")?.join(&name);
        let note = self.cache.dir("hg")?.join(format!("{name}-{}", blake3::hash(branch.as_bytes()).to_hex()));
        let there = match &rev {
            Some(rev) => repo.exists() && ask(&repo, "log", &["-r", rev, "--template", "1"]).is_ok_and(|told| told == b"1"),
            None => repo.exists() && !local && self.is_fresh(&note),
        };
        if !there {
            self.update_hg_clone(&repo, from)?;
            std::fs::write(&note, b"").map_err(|e| file_error("writing", &note, e))?;
        }
        let found = Revision::look(&repo, rev.as_deref().unwrap_or(&branch))?;
        input.set("rev", found.node.clone());
        input.set("ref", found.branch.clone());
        input.set("revCount", Attr::Number(found.number));
        let (mount, hash) = self.hg_tree(&repo, &found.node)?;
        Ok(Found { input, placed: Placed::Elsewhere(mount), nar_hash: Some(hash) })
    }

    fn update_hg_clone(&self, repo: &Path, from: &str) -> Result<(), FetchError> {
        if self.settings.offline && !Path::new(from).is_absolute() {
            return Err(FetchError::new(format!("cannot fetch Mercurial repository '{}': network access is disabled", shown(from))));
        }
        if repo.exists() {
            let pulled = ask(repo, "pull", &["--", from]);
            // A pull that was cut off leaves a journal, from which the clone recovers.
            if pulled.is_err() && repo.join(".hg/store/journal").exists() {
                ask(repo, "recover", &[])?;
                return ask(repo, "pull", &["--", from]).map(drop);
            }
            return pulled.map(drop);
        }
        let made = self.cache.temporary("hg")?;
        let args = ["clone", "--noupdate", "--", from].map(OsStr::new);
        let cloned = hg(&[&args[..], &[made.as_os_str()]].concat());
        // Another process may have been quicker; its clone is as good.
        if cloned.is_err() || std::fs::rename(&made, repo).is_err() {
            let _ = std::fs::remove_dir_all(&made);
        }
        cloned.map(drop)
    }

    /// The tree of a revision on disk, and its NAR hash.
    fn hg_tree(&self, repo: &Path, rev: &str) -> Result<(Mount, Hash), FetchError> {
        let place = self.cache.dir(TREES)?.join(rev);
        if !place.exists() {
            let made = self.cache.temporary(TREES)?;
            let args = ["archive", "-R"].map(OsStr::new);
            let rest = ["-r", rev].map(OsStr::new);
            if let Err(error) = hg(&[&args[..], &[repo.as_os_str()], &rest, &[made.as_os_str()]].concat()) {
                let _ = std::fs::remove_dir_all(&made);
                return Err(error);
            }
            let about = made.join(".hg_archival.txt");
            if about.exists() {
                std::fs::remove_file(&about).map_err(|e| file_error("removing", &about, e))?;
            }
            if std::fs::rename(&made, &place).is_err() {
                let _ = std::fs::remove_dir_all(&made);
            }
        }
        let root = AbsPath::new(place.as_os_str().as_bytes())?;
        let mut mount = Mount { host: self.fresh_disk(), root, excluded: Default::default() };
        if let Some(hash) = self.cache.known_hash(TREES, rev) {
            return Ok((mount, hash));
        }
        let (hash, _) = hash_tree(&mut mount, &|_| true)?;
        self.cache.note_hash(TREES, rev, &hash);
        Ok((mount, hash))
    }
}
