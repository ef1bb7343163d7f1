//! Git LFS: objects from the repository itself, from the one it was cloned from, from a server; what is refused.

use std::path::Path;

use crate::git::{commit, git};
use crate::server::{Reply, Server};
use crate::{Bench, listing};
use firn_host::fetch::{Attr, FetchError, Tree};
use firn_store::hash::{Algorithm, Format, Hash};
use std::sync::Arc;

const CONTENT: &str = "what is large";

fn oid() -> String {
    Hash::of(Algorithm::Sha256, CONTENT.as_bytes()).to_string(Format::Base16, false)
}

fn pointer() -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n", oid(), CONTENT.len())
}

/// A repository with a pointer, a file that looks like one, and one that should be one.
fn repository(dir: &Path) -> String {
    commit(dir, ".gitattributes", "*.bin filter=lfs\n");
    commit(dir, "plain", &pointer());
    commit(dir, "odd.bin", "no pointer");
    commit(dir, "sub/large.bin", &pointer())
}

fn put_object(git_dir: &Path, content: &str) {
    let dir = git_dir.join("lfs/objects").join(&oid()[..2]).join(&oid()[2..4]);
    std::fs::create_dir_all(&dir).expect("makes directories");
    std::fs::write(dir.join(oid()), content).expect("writes");
}

fn fetch(bench: &Bench, repo: &Path, rev: &str, lfs: bool) -> Result<Arc<Tree>, FetchError> {
    let url = format!("file://{}", repo.display());
    bench.attrs([("type", Attr::from("git")), ("url", url.into()), ("rev", rev.into()), ("lfs", Attr::Flag(lfs))])
}

fn smudged(content: &str) -> Vec<String> {
    [".gitattributes: *.bin filter=lfs\n", "odd.bin: no pointer", &format!("plain: {}", pointer()), &format!("sub/large.bin: {content}")]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn objects_of_the_repository_take_the_place_of_pointers() {
    let dir = tempfile::tempdir().expect("a directory");
    let repo = dir.path().join("repo");
    let rev = repository(&repo);
    put_object(&repo.join(".git"), CONTENT);
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    assert_eq!(listing(&fetch(&bench, &repo, &rev, true).expect("smudges")), smudged(CONTENT));
    assert!(bench.warnings.lock().expect("no panic")[0].contains("should have been a git-lfs pointer, but is invalid"));
    assert_eq!(listing(&fetch(&bench, &repo, &rev, false).expect("does not")), smudged(&pointer()));
    // A bare repository is cloned, without its objects: they are where it was cloned from.
    let bare = dir.path().join("bare.git");
    git(dir.path(), &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    put_object(&bare, CONTENT);
    let bench = Bench::new(&dir.path().join("cache-of-bare"), |_| {});
    assert_eq!(listing(&fetch(&bench, &bare, &rev, true).expect("smudges")), smudged(CONTENT));
}

#[test]
fn objects_come_from_a_server() {
    let dir = tempfile::tempdir().expect("a directory");
    let repo = dir.path().join("repo");
    let rev = repository(&repo);
    let server = Server::start(Box::new(|path, _| {
        let full = |body: String| Reply::Full(200, Vec::new(), body.into_bytes());
        let batch = |href: &str| {
            let oid = oid();
            full(format!("{{\"objects\":[{{\"oid\":\"{oid}\",\"size\":13,\"actions\":{{\"download\":{{\"href\":\"{href}\"}}}}}}]}}"))
        };
        match path {
            "/good.git/info/lfs/objects/batch" => batch("$URL/object"),
            "/bad.git/info/lfs/objects/batch" => batch("$URL/other"),
            "/file.git/info/lfs/objects/batch" => batch("file:///etc/passwd"),
            "/gone.git/info/lfs/objects/batch" => {
                full(format!("{{\"objects\":[{{\"oid\":\"{}\",\"error\":{{\"code\":404,\"message\":\"no such object\"}}}}]}}", oid()))
            }
            "/html.git/info/lfs/objects/batch" => full("<html>".to_owned()),
            "/object" => full(CONTENT.to_owned()),
            "/other" => full("what is other".to_owned()),
            _ => Reply::Full(404, Vec::new(), Vec::new()),
        }
    }));
    let ask = |name: &str| {
        git(&repo, &["config", "lfs.url", &format!("{}/{name}", server.url)]);
        let cache = tempfile::tempdir().expect("a directory");
        let bench = Bench::new(cache.path(), |_| {});
        let found = fetch(&bench, &repo, &rev, true).map(|tree| listing(&tree)).map_err(|error| error.to_string());
        let trees = std::fs::read_dir(cache.path().join("git-trees")).map_or(0, Iterator::count);
        assert!(found.is_ok() || trees == 0, "{name} left something half-written");
        found
    };
    assert_eq!(ask("good"), Ok(smudged(CONTENT)));
    for (name, said) in [
        ("bad", "hash mismatch while fetching"),
        ("file", "it does not say where the object is"),
        ("gone", "no such object"),
        ("html", "response did not parse as json"),
        ("nothing", "HTTP error 404"),
    ] {
        let error = ask(name).expect_err(name);
        assert!(error.contains(said), "{said:?} is not in {error}");
    }
}

#[test]
fn objects_that_nobody_has_are_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let repo = dir.path().join("repo");
    let rev = repository(&repo);
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let error = fetch(&bench, &repo, &rev, true).expect_err("nowhere");
    let said = format!("Git LFS object '{}' is not in repository '{}', and the repository has no server to ask for it", oid(), repo.display());
    assert_eq!(error.to_string(), said);
    assert!(error.trace()[0].contains("while smudging git-lfs file"), "{:?}", error.trace());
    git(&repo, &["remote", "add", "origin", "ssh://git@host/repo"]);
    let error = fetch(&bench, &repo, &rev, true).expect_err("by ssh").to_string();
    assert!(error.ends_with("servers are asked by http and https only, not by 'ssh'"), "{error}");
    put_object(&repo.join(".git"), "what is lardge");
    assert!(fetch(&bench, &repo, &rev, true).expect_err("damaged").to_string().starts_with("size mismatch while fetching"));
    put_object(&repo.join(".git"), "what is lArge");
    assert!(fetch(&bench, &repo, &rev, true).expect_err("damaged").to_string().starts_with("hash mismatch while fetching"));
}
