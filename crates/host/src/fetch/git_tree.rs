//! Trees of commits, taken out of a repository into the cache: blobs as they are, without filters or substitutions.
#![allow(clippy::disallowed_methods)] // Writes the fetchers' own cache and talks to `git`.

use std::collections::{BTreeSet, HashSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};

use firn_store::hash::Hash;

use super::attrs::{Attr, Attrs};
use super::error::{FetchError, file_error, shown};
use super::fetcher::{Fetcher, hash_tree};
use super::git::{self, Location};
use super::git_lfs::Smudge;
use super::input::Input;
use super::url::Url;
use crate::{AbsPath, Mount};

/// A file, link or submodule of a commit.
#[derive(Clone, Debug)]
struct Leaf {
    mode: Vec<u8>,
    object: String,
    path: Vec<u8>,
}

impl Fetcher {
    /// The tree of a commit on disk, and its NAR hash.
    pub(super) fn commit_tree(&self, input: &Input, repo: &Path, rev: &str) -> Result<(Mount, Hash), FetchError> {
        let marks = [("exportIgnore", "-e"), ("submodules", "-s"), ("lfs", "-l")];
        let mut key = rev.to_owned();
        for (attr, mark) in marks {
            key.push_str(if input.flag(attr)? { mark } else { "" });
        }
        let place = self.cache.dir("git-trees")?.join(&key);
        if !place.exists() {
            let made = self.cache.temporary("git-trees")?;
            if let Err(error) = self.take_out(input, repo, rev, &made) {
                let _ = std::fs::remove_dir_all(&made);
                return Err(error);
            }
            if std::fs::rename(&made, &place).is_err() {
                let _ = std::fs::remove_dir_all(&made);
            }
        }
        let root = AbsPath::new(place.as_os_str().as_bytes())?;
        let mut mount = Mount { host: self.fresh_disk(), root, excluded: Default::default() };
        if let Some(hash) = self.cache.known_hash("git-trees", &key) {
            return Ok((mount, hash));
        }
        let (hash, _) = hash_tree(&mut mount, &|_| true)?;
        self.cache.note_hash("git-trees", &key, &hash);
        Ok((mount, hash))
    }

    /// Writes the tree of a commit, and those of its submodules if they are wanted.
    fn take_out(&self, input: &Input, repo: &Path, rev: &str, into: &Path) -> Result<(), FetchError> {
        let mut leaves = leaves(repo, rev)?;
        if input.flag("exportIgnore")? {
            let mut paths = leaves.iter().map(|leaf| leaf.path.clone()).collect();
            drop_ignored(repo, Some(rev), &mut paths)?;
            let kept: HashSet<Vec<u8>> = paths.into_iter().collect();
            leaves.retain(|leaf| kept.contains(&leaf.path));
        }
        std::fs::create_dir_all(into).map_err(|e| file_error("creating directory", into, e))?;
        let mut smudged = HashSet::new();
        if input.flag("lfs")? {
            let paths = leaves.iter().map(|leaf| leaf.path.clone()).collect();
            smudged = having(repo, Some(rev), paths, "filter", b"lfs")?;
        }
        let smudge = Smudge { fetcher: self, repo, place: git::location(input)? };
        write_leaves(repo, &leaves, into, |leaf, content| {
            if smudged.contains(&leaf.path) { smudge.smudge(&leaf.path, content) } else { Ok(content) }
        })?;
        if input.flag("submodules")? {
            for leaf in leaves.iter().filter(|leaf| leaf.mode == b"160000") {
                self.take_out_module(input, repo, rev, leaf, into)?;
            }
        }
        Ok(())
    }

    fn take_out_module(&self, input: &Input, repo: &Path, rev: &str, leaf: &Leaf, into: &Path) -> Result<(), FetchError> {
        let Some(url) = module_url(repo, rev, &leaf.path)? else { return Ok(()) };
        let mut attrs = Attrs::from([("type".to_owned(), Attr::from("git")), ("url".to_owned(), url.into())]);
        attrs.insert("rev".to_owned(), leaf.object.clone().into());
        attrs.insert("submodules".to_owned(), Attr::Flag(true));
        attrs.insert("lfs".to_owned(), Attr::Flag(input.flag("lfs")?));
        attrs.insert("allRefs".to_owned(), Attr::Flag(true));
        if let Some(branch) = input.text("ref") {
            attrs.insert("ref".to_owned(), branch.into());
        }
        let mut module = Input::from_attrs(&self.settings, attrs)?;
        let place: Location = git::location(&module)?;
        let (inner, rev) = self.commit_of(&mut module, &place)?;
        self.take_out(&module, &inner, &rev, &into.join(std::ffi::OsStr::from_bytes(&leaf.path)))
    }
}

fn leaves(repo: &Path, rev: &str) -> Result<Vec<Leaf>, FetchError> {
    let output = git::run(repo, &["ls-tree", "-r", "-z", "--full-tree", rev])?;
    let bad = || FetchError::new(format!("cannot read the tree of Git revision '{}'", shown(rev)));
    output
        .split(|&byte| byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            let tab = entry.iter().position(|&byte| byte == b'\t').ok_or_else(bad)?;
            let mut words = entry[..tab].split(|&byte| byte == b' ');
            let (mode, _, object) = (words.next(), words.next(), words.next());
            let object = String::from_utf8_lossy(object.ok_or_else(bad)?).into_owned();
            Ok(Leaf { mode: mode.ok_or_else(bad)?.to_vec(), object, path: entry[tab + 1..].to_vec() })
        })
        .collect()
}

/// Leaves out what the attribute `export-ignore` names, in the work tree or in a commit.
pub(super) fn drop_ignored(repo: &Path, rev: Option<&str>, paths: &mut Vec<Vec<u8>>) -> Result<(), FetchError> {
    if !paths.iter().any(|path| path.rsplit(|&byte| byte == b'/').next() == Some(b".gitattributes")) {
        return Ok(());
    }
    let mut asked: BTreeSet<Vec<u8>> = paths.iter().cloned().collect();
    for path in &*paths {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        asked.extend(slashes.map(|(at, _)| path[..at].to_vec()));
    }
    let ignored = having(repo, rev, asked, "export-ignore", b"set")?;
    paths.retain(|path| {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        !ends.chain([path.len()]).any(|end| ignored.contains(&path[..end]))
    });
    Ok(())
}

/// Those paths whose attribute has this value, in the work tree or in a commit.
fn having(
    repo: &Path,
    rev: Option<&str>,
    paths: BTreeSet<Vec<u8>>,
    attribute: &str,
    value: &[u8],
) -> Result<HashSet<Vec<u8>>, FetchError> {
    let mut command = git::command(repo);
    command.arg("check-attr").args(rev.map(|rev| format!("--source={rev}"))).args(["-z", "--stdin", attribute]);
    let lines: Vec<u8> = paths.iter().flat_map(|path| [&path[..], b"\0"].concat()).collect();
    let output = feed(command, lines)?;
    let words: Vec<&[u8]> = output.split(|&byte| byte == 0).collect();
    Ok(words.chunks_exact(3).filter(|chunk| chunk[2] == value).map(|chunk| chunk[0].to_vec()).collect())
}

/// Runs a command that reads all of `input`; what it prints.
fn feed(mut command: std::process::Command, input: Vec<u8>) -> Result<Vec<u8>, FetchError> {
    let failed = |what: &dyn std::fmt::Display| FetchError::new(format!("cannot run 'git': {what}"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|e| failed(&e))?;
    let writer = child.stdin.take().map(|stdin| write_all(stdin, input));
    let output = child.wait_with_output().map_err(|e| failed(&e))?;
    drop(writer.map(std::thread::JoinHandle::join));
    if output.status.success() { Ok(output.stdout) } else { Err(failed(&output.status)) }
}

/// Writes in a thread of its own: the reader at the other end may want to be read first.
fn write_all(mut stdin: ChildStdin, input: Vec<u8>) -> std::thread::JoinHandle<()> {
    // A reader that ends early is noticed by its exit status.
    std::thread::spawn(move || drop(stdin.write_all(&input)))
}

/// Writes files and links; `change` may put something else in the place of a file's content.
fn write_leaves(
    repo: &Path,
    leaves: &[Leaf],
    into: &Path,
    change: impl Fn(&Leaf, Vec<u8>) -> Result<Vec<u8>, FetchError>,
) -> Result<(), FetchError> {
    let failed = |e: std::io::Error| FetchError::new(format!("cannot read from 'git cat-file': {}", crate::Errno::from(e)));
    let mut command = git::command(repo);
    command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let blobs: Vec<&Leaf> = leaves.iter().filter(|leaf| leaf.mode != b"160000").collect();
    let lines = blobs.iter().flat_map(|leaf| format!("{}\n", leaf.object).into_bytes()).collect();
    let writer = child.stdin.take().map(|stdin| write_all(stdin, lines));
    let mut output = BufReader::new(child.stdout.take().ok_or_else(|| FetchError::new("'git cat-file' has no output"))?);
    for leaf in &blobs {
        let mut header = String::new();
        output.read_line(&mut header).map_err(failed)?;
        let size: Option<usize> = header.trim_end().rsplit(' ').next().and_then(|size| size.parse().ok());
        let Some(size) = size else {
            return Err(FetchError::new(format!("Git object '{}' is missing", shown(&leaf.object))));
        };
        let mut content = vec![0; size + 1];
        output.read_exact(&mut content).map_err(failed)?;
        content.pop();
        let content = if leaf.mode == b"120000" { content } else { change(leaf, content)? };
        write_leaf(leaf, &content, &below(into, &leaf.path))?;
    }
    for leaf in leaves.iter().filter(|leaf| leaf.mode == b"160000") {
        let place = below(into, &leaf.path);
        std::fs::create_dir_all(&place).map_err(|e| file_error("creating directory", &place, e))?;
    }
    drop(writer.map(std::thread::JoinHandle::join));
    child.wait().map_err(failed)?;
    Ok(())
}

fn below(dir: &Path, path: &[u8]) -> PathBuf {
    dir.join(std::ffi::OsStr::from_bytes(path))
}

fn write_leaf(leaf: &Leaf, content: &[u8], place: &Path) -> Result<(), FetchError> {
    let write = || -> std::io::Result<()> {
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if leaf.mode == b"120000" {
            return std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(content), place);
        }
        std::fs::write(place, content)?;
        if leaf.mode == b"100755" {
            std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    };
    write().map_err(|e| file_error("writing", place, e))
}

/// Where a submodule comes from, by the commit's `.gitmodules`; relative addresses start from the repository's own.
fn module_url(repo: &Path, rev: &str, path: &[u8]) -> Result<Option<String>, FetchError> {
    let blob = format!("--blob={rev}:.gitmodules");
    let Some(output) = git::ask(repo, &["config", "-z", &blob, "--get-regexp", r"^submodule\..*\.(path|url)$"])? else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(&output).into_owned();
    let entries: Vec<(&str, &str)> = text.split('\0').filter_map(|entry| entry.split_once('\n')).collect();
    let wanted = String::from_utf8_lossy(path);
    let named = entries.iter().find(|(name, value)| name.ends_with(".path") && *value == wanted);
    let Some(prefix) = named.and_then(|(name, _)| name.strip_suffix(".path")) else { return Ok(None) };
    let key = format!("{prefix}.url");
    let Some((_, url)) = entries.iter().find(|(name, _)| *name == key) else { return Ok(None) };
    if !url.starts_with("./") && !url.starts_with("../") {
        return Ok(Some((*url).to_owned()));
    }
    let origin = git::ask(repo, &["config", "--get", "remote.origin.url"])?.map(git::line);
    let origin = origin.unwrap_or_else(|| repo.display().to_string());
    let mut base = super::url::fix_git_url(&origin).or_else(|_| Url::parse(&origin, true))?;
    for step in url.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(base.path.pop()),
            name => base.path.push(name.to_owned()),
        }
    }
    Ok(Some(base.to_string()))
}
