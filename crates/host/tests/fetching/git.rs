//! Repositories: work trees, commits, branches, bare ones that are cloned, submodules, what is refused.

use std::path::Path;
use std::process::Command;

use crate::{Bench, listing};
use firn_host::fetch::Attr;

pub fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir);
    command.args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"]);
    command.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    command.env("GIT_AUTHOR_DATE", "1600000000 +0000").env("GIT_COMMITTER_DATE", "1600000000 +0000");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub fn commit(dir: &Path, name: &str, content: &str) -> String {
    std::fs::create_dir_all(dir.join(name).parent().expect("a parent")).expect("makes directories");
    std::fs::write(dir.join(name), content).expect("writes");
    if !dir.join(".git").exists() {
        git(dir, &["init", "--quiet"]);
    }
    git(dir, &["add", "--", name]);
    git(dir, &["commit", "--quiet", "--message", "x"]);
    git(dir, &["rev-parse", "HEAD"])
}

#[test]
fn a_work_tree_is_what_git_tracks() {
    let dir = tempfile::tempdir().expect("a directory");
    let repo = dir.path().join("repo");
    let rev = commit(&repo, "sub/a", "1");
    std::fs::write(repo.join("untracked"), "no").expect("writes");
    let url = format!("git+file://{}", repo.display());
    let clean = Bench::new(&dir.path().join("cache"), |_| {});
    let tree = clean.url(&url).expect("a clean tree");
    assert_eq!(listing(&tree), ["sub/a: 1"]);
    assert_eq!(tree.input.rev_text().expect("a revision"), Some(rev.clone()));
    assert_eq!(tree.input.attrs.get("revCount").expect("a count").number().expect("counts"), Some(1));
    assert_eq!(tree.input.last_modified().expect("a time"), Some(1_600_000_000));
    let again = Bench::new(&dir.path().join("cache"), |_| {});
    let same = again.url(&url).expect("a tree whose hash is known");
    assert_eq!((listing(&same), &same.store_path), (listing(&tree), &tree.store_path));
    std::fs::write(repo.join("sub/a"), "2").expect("writes");
    let dirty = Bench::new(&dir.path().join("cache"), |_| {});
    let tree = dirty.url(&url).expect("a changed tree");
    assert_eq!(listing(&tree), ["sub/a: 2"]);
    assert_eq!(tree.input.rev_text().expect("none"), None);
    assert_eq!(tree.input.text("dirtyRev"), Some(format!("{rev}-dirty").as_str()));
    assert!(dirty.warnings.lock().expect("no panic")[0].contains("is dirty"));
    let strict = Bench::new(&dir.path().join("cache"), |settings| settings.allow_dirty = false);
    assert!(strict.url(&url).expect_err("dirty").to_string().ends_with("is dirty"));
}

#[test]
fn commits_and_branches_are_taken_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let repo = dir.path().join("repo");
    let first = commit(&repo, "a", "1");
    git(&repo, &["branch", "old"]);
    commit(&repo, "a", "2");
    std::fs::write(repo.join("a"), "changed").expect("writes");
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let url = format!("git+file://{}", repo.display());
    let by_branch = bench.url(&format!("{url}?ref=old")).expect("a branch");
    let by_rev = bench.url(&format!("{url}?rev={first}")).expect("a commit");
    assert_eq!(listing(&by_branch), ["a: 1"]);
    assert_eq!(by_branch.store_path, by_rev.store_path);
    assert_eq!(listing(&bench.url(&format!("{url}?ref=main")).expect("a branch")), ["a: 2"]);
    let missing = bench.url(&format!("{url}?rev={}", "1".repeat(40))).expect_err("no such commit");
    assert!(missing.to_string().starts_with("Cannot find Git revision"), "{missing}");
    assert!(bench.url(&format!("{url}?ref=a..b")).is_err());
}

#[test]
fn bare_repositories_are_cloned() {
    let dir = tempfile::tempdir().expect("a directory");
    let (repo, bare) = (dir.path().join("repo"), dir.path().join("bare.git"));
    let rev = commit(&repo, "a", "1");
    git(dir.path(), &["clone", "--quiet", "--bare", "repo", "bare.git"]);
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let url = format!("git+file://{}", bare.display());
    let tree = bench.url(&url).expect("clones");
    assert_eq!((listing(&tree), tree.input.text("ref")), (vec!["a: 1".to_owned()], Some("refs/heads/main")));
    std::fs::remove_dir_all(&bare).expect("removes");
    std::fs::create_dir(&bare).expect("a directory without a repository");
    let again = Bench::new(&dir.path().join("cache"), |_| {});
    let tree = again.url(&format!("{url}?rev={rev}&ref=main")).expect("from the clone");
    assert_eq!(listing(&tree), ["a: 1"]);
}

#[test]
fn ignored_exports_links_and_modes() {
    let dir = tempfile::tempdir().expect("a directory");
    let repo = dir.path().join("repo");
    commit(&repo, ".gitattributes", "secret export-ignore\ntests export-ignore\n");
    commit(&repo, "tests/t", "t");
    commit(&repo, "secret", "s");
    std::os::unix::fs::symlink("nowhere", repo.join("link")).expect("links");
    git(&repo, &["add", "link"]);
    let rev = commit(&repo, "kept", "k");
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let url = format!("file://{}", repo.display());
    let all = bench.attrs([("type", "git".into()), ("url", url.clone().into()), ("rev", rev.clone().into())]);
    assert_eq!(listing(&all.expect("a commit")).len(), 5);
    for pinned in [true, false] {
        let mut attrs = vec![("type", Attr::from("git")), ("url", url.clone().into()), ("exportIgnore", Attr::Flag(true))];
        attrs.extend(pinned.then(|| ("rev", Attr::from(rev.clone()))));
        let tree = match <[_; 4]>::try_from(attrs.clone()) {
            Ok(attrs) => bench.attrs(attrs),
            Err(attrs) => bench.attrs(<[_; 3]>::try_from(attrs).expect("three")),
        };
        let kept = listing(&tree.expect("a tree"));
        assert_eq!(kept.iter().skip(1).collect::<Vec<_>>(), ["kept: k", "link -> nowhere"], "{pinned}");
    }
}

#[test]
fn submodules_come_if_they_are_wanted() {
    let dir = tempfile::tempdir().expect("a directory");
    let (inner, outer) = (dir.path().join("inner"), dir.path().join("outer"));
    commit(&inner, "i", "inside");
    commit(&outer, "o", "outside");
    git(&outer, &["submodule", "--quiet", "add", inner.to_str().expect("UTF-8"), "mod"]);
    let rev = commit(&outer, "p", "more");
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let url = format!("git+file://{}", outer.display());
    for query in ["submodules=1".to_owned(), format!("submodules=1&rev={rev}")] {
        let with = listing(&bench.url(&format!("{url}?{query}")).expect("with submodules"));
        assert!(with.contains(&"mod/i: inside".to_owned()), "{query}: {with:?}");
    }
    let without = listing(&bench.url(&url).expect("without"));
    assert!(!without.iter().any(|name| name.starts_with("mod/")), "{without:?}");
}

#[test]
fn what_cannot_be_fetched_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let missing = bench.url(&format!("git+file://{}/none", dir.path().display())).expect_err("no repository");
    assert!(missing.to_string().contains("could not find repository"), "{missing}");
    let error = bench.url("flake:nixpkgs").expect_err("indirect");
    assert!(error.to_string().contains("cannot be fetched directly"), "{error}");
    let error = bench.url("path:./here").expect_err("relative");
    assert!(error.to_string().contains("uses a relative path"), "{error}");
}
