//! Signed commits: whose signature is taken, and what is refused. Needs `ssh-keygen`, and says loudly if there is none.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Bench;
use crate::git::{commit, git};
use firn_host::fetch::{Attr, FetchError};

/// Makes a key beside the repository; its public half, without kind and comment.
fn key(dir: &Path, name: &str) -> Option<String> {
    let file = dir.join(name);
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"]).arg(&file).stdin(Stdio::null());
    if !command.status().is_ok_and(|status| status.success()) {
        eprintln!("NOT TESTED: signed commits need ssh-keygen on PATH");
        return None;
    }
    let public = std::fs::read_to_string(dir.join(format!("{name}.pub"))).expect("a key");
    public.split(' ').nth(1).map(|key| key.trim().to_owned())
}

fn sign(repo: &Path, key: &Path) -> String {
    let key = format!("user.signingkey={}", key.display());
    git(repo, &["-c", "gpg.format=ssh", "-c", &key, "commit", "--quiet", "--allow-empty", "-S", "--message", "signed"]);
    git(repo, &["rev-parse", "HEAD"])
}

#[test]
fn commits_are_taken_if_a_named_key_signed_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let (Some(ours), Some(theirs)) = (key(dir.path(), "ours"), key(dir.path(), "theirs")) else { return };
    let repo = dir.path().join("repo");
    let unsigned = commit(&repo, "a", "1");
    let signed = sign(&repo, &dir.path().join("ours"));
    let bench = Bench::new(&dir.path().join("cache"), |settings| settings.verified_fetches = true);
    let url = format!("file://{}", repo.display());
    let fetch = |rev: &str, more: &[(&str, &str)]| -> Result<(), FetchError> {
        let mut attrs = firn_host::fetch::Attrs::from([("type".to_owned(), Attr::from("git")), ("url".to_owned(), url.as_str().into())]);
        attrs.extend((!rev.is_empty()).then(|| ("rev".to_owned(), Attr::from(rev))));
        for (name, value) in more {
            let value = if *name == "verifyCommit" { Attr::Flag(*value == "true") } else { Attr::from(*value) };
            attrs.insert((*name).to_owned(), value);
        }
        let input = firn_host::fetch::Input::from_attrs(&bench.fetcher.settings, attrs)?;
        bench.fetcher.fetch(&input, &bench.store, &bench.dir).map(drop)
    };
    let list = format!("[{{\"type\":\"ssh-ed25519\",\"key\":\"{theirs}\"}},{{\"type\":\"ssh-ed25519\",\"key\":\"{ours}\"}}]");
    fetch(&signed, &[("publicKey", &ours)]).expect("signed by the key");
    fetch(&signed, &[("publicKeys", &list), ("verifyCommit", "true")]).expect("signed by one of the keys");
    fetch("", &[("publicKey", &ours)]).expect("the work tree is at a commit that is signed");
    fetch(&unsigned, &[("publicKey", &ours), ("verifyCommit", "false")]).expect("not asked for");
    let failed = |rev: &str| format!("Commit signature verification on commit {rev} failed: ");
    for (rev, more, said) in [
        (&unsigned, vec![("publicKey", ours.as_str())], failed(&unsigned)),
        (&signed, vec![("publicKey", theirs.as_str())], failed(&signed)),
        (&signed, vec![("verifyCommit", "true")], format!("{}no public key is given", failed(&signed))),
        (&signed, vec![("publicKey", ours.as_str()), ("keytype", "gpg")], "Invalid SSH key type 'gpg' in publicKeys.".to_owned()),
        (&signed, vec![("publicKey", "a\n* ssh-ed25519 b")], "public key 'a\n* ssh-ed25519 b' has blanks in it".to_owned()),
        (&signed, vec![("publicKeys", "{}")], "'{}' is no list of public keys".to_owned()),
    ] {
        let error = fetch(rev, &more).expect_err(&said).to_string();
        assert!(error.starts_with(&said), "{said:?} does not begin {error}");
    }
    std::fs::write(repo.join("a"), "2").expect("writes");
    let fresh = Bench::new(&dir.path().join("cache"), |settings| settings.verified_fetches = true);
    let attrs = [("type", Attr::from("git")), ("url", url.as_str().into()), ("publicKey", ours.as_str().into())];
    let error = fresh.attrs(attrs).expect_err("changed").to_string();
    assert!(error.starts_with("commit verification is required for Git repository") && error.ends_with("but it's dirty"), "{error}");
}
