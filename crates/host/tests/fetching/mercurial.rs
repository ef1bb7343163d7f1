//! Mercurial repositories: revisions, branches, work trees with changes. Needs `hg`, and says loudly if there is none.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Bench, listing};
use firn_host::fetch::Attr;

fn hg_is_here() -> bool {
    let here = Command::new("hg").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if !here {
        eprintln!("NOT TESTED: Mercurial repositories need hg on PATH");
    }
    here
}

fn hg(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("hg");
    command.arg("--cwd").arg(dir).args(args).env("HGPLAIN", "").env("HGUSER", "x");
    let output = command.output().expect("hg runs");
    assert!(output.status.success(), "hg {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn commit(dir: &Path, name: &str, content: &str) -> String {
    std::fs::create_dir_all(dir.join(name).parent().expect("a parent")).expect("makes directories");
    std::fs::write(dir.join(name), content).expect("writes");
    hg(dir, &["commit", "--quiet", "--addremove", "--message", "x"]);
    hg(dir, &["log", "-r", ".", "--template", "{node}"])
}

#[test]
fn revisions_branches_and_changed_trees_are_found() {
    let dir = tempfile::tempdir().expect("a directory");
    if !hg_is_here() {
        let error = Bench::new(dir.path(), |_| {}).url("hg+file:///x").expect_err("no hg").to_string();
        assert_eq!(error, "cannot fetch Mercurial repository 'hg+file:///x': the program 'hg' is not installed");
        return;
    }
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo).expect("makes a directory");
    hg(&repo, &["init"]);
    let first = commit(&repo, "sub/a", "1");
    let second = commit(&repo, "sub/a", "2");
    hg(&repo, &["branch", "--quiet", "other"]);
    let third = commit(&repo, "b", "3");
    hg(&repo, &["update", "--quiet", "default"]);
    let url = format!("hg+file://{}", repo.display());
    let cache = dir.path().join("cache");
    let fetch = |more: &str| Bench::new(&cache, |_| {}).url(&format!("{url}{more}"));
    for (more, rev, branch, count, files) in [
        ("", &second, "default", 1, vec!["sub/a: 2"]),
        (&format!("?rev={first}"), &first, "default", 0, vec!["sub/a: 1"]),
        ("?ref=other", &third, "other", 2, vec!["b: 3", "sub/a: 2"]),
    ] {
        let tree = fetch(more).expect("a revision");
        assert_eq!(listing(&tree), files, "{more}");
        assert_eq!(tree.input.rev_text().expect("a revision").as_ref(), Some(rev));
        assert_eq!(tree.input.text("ref"), Some(branch));
        assert_eq!(tree.input.attrs.get("revCount"), Some(&Attr::Number(count)));
    }
    // A commit that comes later is seen at once.
    let fourth = commit(&repo, "sub/a", "4");
    assert_eq!(fetch("").expect("the newest").input.rev_text().expect("a revision"), Some(fourth));
    std::fs::write(repo.join("sub/a"), "changed").expect("writes");
    std::fs::write(repo.join("unknown"), "x").expect("writes");
    let bench = Bench::new(&cache, |_| {});
    let tree = bench.url(&url).expect("a changed tree");
    assert_eq!(listing(&tree), ["sub/a: changed"]);
    assert_eq!((tree.input.rev_text().expect("none"), tree.input.text("ref")), (None, Some("default")));
    assert!(bench.warnings.lock().expect("no panic")[0].contains("is unclean"));
    let strict = Bench::new(&cache, |settings| settings.allow_dirty = false);
    assert!(strict.url(&url).expect_err("unclean").to_string().ends_with("is unclean"));
    for (more, said) in [(format!("?rev={}", "1".repeat(40)), "'hg log' failed: "), ("?ref=nowhere".to_owned(), "'hg log' failed: ")] {
        let error = fetch(&more).expect_err("no such revision").to_string();
        assert!(error.starts_with(said), "{error}");
    }
    let error = Bench::new(&cache, |_| {}).url(&format!("hg+file://{}/nothing", dir.path().display())).expect_err("no repository").to_string();
    assert!(error.starts_with("'hg clone' failed: "), "{error}");
    let left = std::fs::read_dir(cache.join("hg")).expect("lists").flatten().filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b".tmp"));
    assert_eq!(left.count(), 0);
}
