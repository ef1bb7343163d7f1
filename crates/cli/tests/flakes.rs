//! Flakes against the real Nix: layouts of local flakes (`tests/flakes/*.layout`), each built twice at the same place, once
//! for Nix and once for firn; what commands print and the lock files they leave must be the same (spec E4).
//!
//! A layout is a text: `@file PATH` and its content, `@git DIR FILE…` (commits these files), `@sh COMMAND`, `@run ARGS` (by
//! both tools), `@firn ARGS` with `@expect OUTPUT` (where versions differ). `$ROOT` is the place. Without Nix on `PATH`
//! only firn runs, and the test says so.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod harness;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::tool::{self, Tool};

/// Every file is as old as this, so that both runs see the same times. Later times are those of the runs themselves.
const THEN: u64 = 1_600_000_000;
/// Nix 2.8 is the oracle; newer ones have other lock files.
const VERSION: &str = "2.8.0";

/// What one command did.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    command: String,
    succeeded: bool,
    printed: String,
    locks: BTreeMap<String, String>,
}

struct World<'a> {
    root: &'a Path,
    state: &'a Path,
    nix: Option<&'a Path>,
}

fn git(dir: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(dir).args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"]).args(args);
    for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        command.env(name, format!("{THEN} +0000"));
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().expect("git runs");
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Makes everything below a directory as old as the tests want it.
fn age(dir: &Path) {
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let kind = entry.file_type().expect("a type");
        if kind.is_dir() && entry.file_name() != ".git" {
            age(&entry.path());
        }
        if kind.is_file() || kind.is_dir() {
            set_time(&entry.path());
        }
    }
    set_time(dir);
}

fn set_time(path: &Path) {
    let then = UNIX_EPOCH + Duration::from_secs(THEN);
    let file = std::fs::File::open(path).expect("opens");
    // Files that Git made read-only keep their times: nothing looks at those.
    drop(file.set_modified(then));
}

fn locks(dir: &Path, root: &Path, all: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            locks(&path, root, all);
        } else if entry.file_name() == "flake.lock" {
            let name = path.strip_prefix(root).expect("below the root").display().to_string();
            all.insert(name, std::fs::read_to_string(&path).expect("reads"));
        }
    }
}

impl World<'_> {
    fn command(&self, words: &str) -> Command {
        let shell = match self.nix {
            Some(nix) => {
                let store = self.state.join("store");
                format!("'{}' {words} --store '{}'", nix.display(), store.display())
            }
            None => format!("'{}' {words}", env!("CARGO_BIN_EXE_firn")),
        };
        let mut command = Command::new("sh");
        command.args(["-c", &shell]).current_dir(self.root).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let registry = self.state.join("registry.json");
        let settings = format!("experimental-features = nix-command flakes\nflake-registry = {}\n", registry.display());
        command.env("NIX_CONFIG", settings).env("HOME", self.state).env("NO_COLOR", "1").env("TZ", "UTC");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.env("NIX_CONF_DIR", "/nonexistent").env("NIX_USER_CONF_FILES", "").env("NIX_STATE_DIR", self.state.join("var"));
        if self.nix.is_none() {
            command.env("NIX_REMOTE", "dummy://");
        }
        command
    }

    fn play(&self, layout: &str) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut last = String::new();
        for (word, rest, body) in steps(layout) {
            let rest = rest.replace("$ROOT", &self.root.display().to_string());
            match word {
                "file" => {
                    let path = self.root.join(&rest);
                    std::fs::create_dir_all(path.parent().expect("below the root")).expect("makes directories");
                    std::fs::write(&path, body.replace("$ROOT", &self.root.display().to_string())).expect("writes");
                }
                "git" => {
                    let (dir, files) = rest.split_once(' ').expect("a directory and files");
                    let dir = self.root.join(dir);
                    if !dir.join(".git").exists() {
                        git(&dir, &["init", "--quiet"]);
                    }
                    git(&dir, &[&["add", "--"][..], &files.split(' ').collect::<Vec<_>>()].concat());
                    git(&dir, &["commit", "--quiet", "--message", "x"]);
                }
                "sh" => {
                    let status = Command::new("sh").args(["-c", &rest]).current_dir(self.root).output().expect("sh runs");
                    assert!(status.status.success(), "{rest}: {}", String::from_utf8_lossy(&status.stderr));
                }
                "run" | "firn" if word == "run" || self.nix.is_none() => {
                    age(self.root);
                    let run = tool::run(self.command(&rest), b"");
                    last = String::from_utf8_lossy(&run.stdout).into_owned();
                    if std::env::var_os("FIRN_FLAKES_SHOW").is_some() {
                        eprintln!("$ {rest}\n{last}{}", String::from_utf8_lossy(&run.stderr));
                    }
                    let mut files = BTreeMap::new();
                    locks(self.root, self.root, &mut files);
                    let files = files.into_iter().map(|(name, text)| (name, comparable(&text))).collect();
                    let printed = comparable(&last);
                    if word == "run" {
                        seen.push(Seen { command: rest, succeeded: run.code == Some(0), printed, locks: files });
                    }
                }
                "expect" if self.nix.is_none() => assert_eq!(last.trim_end(), rest, "in\n{layout}"),
                "firn" | "expect" => {}
                other => panic!("unknown step @{other}"),
            }
        }
        seen
    }
}

fn steps(layout: &str) -> Vec<(&str, String, String)> {
    let mut steps: Vec<(&str, String, String)> = Vec::new();
    for line in layout.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('@') {
            Some(step) => {
                let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
                steps.push((word, rest.to_owned(), String::new()));
            }
            None => {
                let body = &mut steps.last_mut().expect("a step before its body").2;
                body.push_str(line);
                body.push('\n');
            }
        }
    }
    steps
}

/// Leaves out what Nix 2.8 and 2.35 are known to say differently, and times of the run itself.
///
/// - 2.35 has `__final`, `fingerprint`, `dirtyRev`, `dirtyShortRev`, `dirtyRevision` and empty descriptions, 2.8 has not.
/// - 2.35 escapes `=` and `+` in URLs, 2.8 `/`.
/// - 2.35 gives branches of local repositories by their full names.
/// - 2.8 leaves `?dir=` in the URL of a Git input besides the attribute `dir`.
fn comparable(text: &str) -> String {
    let mut text = text.replace("\"__final\":true,", "").replace("\"description\":\"\",", "").replace("refs/heads/", "").replace("refs%2fheads%2f", "");
    for (escaped, plain) in [("%3D", "="), ("%2B", "+"), ("%2F", "/"), ("%2f", "/")] {
        text = text.replace(escaped, plain);
    }
    let mut from = 0;
    while let Some(at) = text[from..].find("?dir=").map(|at| from + at) {
        let end = at + text[at..].find('"').unwrap_or(0);
        from = at + 1;
        if text[..at].rsplit('"').next().is_some_and(|url| url.starts_with("file:")) {
            text.replace_range(at..end, "");
        }
    }
    for name in ["fingerprint", "dirtyRev", "dirtyShortRev", "dirtyRevision"] {
        while let Some(start) = text.find(&format!("\"{name}\":\"")) {
            let value = start + name.len() + 4;
            let end = value + text[value..].find('"').map_or(0, |at| at + 1);
            let end = if text[end..].starts_with(',') { end + 1 } else { end };
            text.replace_range(start..end, "");
        }
    }
    let (mut out, mut digits) = (String::new(), String::new());
    for letter in text.chars().chain(['\n']) {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        let is_now = digits.len() == 10 && digits.parse::<u64>().is_ok_and(|n| n > THEN + 50_000_000 && n < 4_000_000_000);
        out.push_str(if is_now { "NOW" } else { &digits });
        digits.clear();
        out.push(letter);
    }
    out
}

fn layouts() -> Vec<(String, String)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/flakes");
    let only = std::env::var("FIRN_FLAKES_ONLY").ok();
    let mut all: Vec<(String, String)> = std::fs::read_dir(dir)
        .expect("the layouts")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|ending| ending == "layout"))
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(name, _)| only.as_ref().is_none_or(|only| name.starts_with(only)))
        .map(|(name, path)| (name, std::fs::read_to_string(path).expect("a layout")))
        .collect();
    all.sort();
    all
}

fn oracle() -> Option<PathBuf> {
    let instantiate = Tool::oracle()?;
    let nix = instantiate.program().with_file_name("nix");
    (instantiate.version() == VERSION && nix.exists()).then_some(nix)
}

#[test]
fn lock_files_and_metadata_are_those_of_nix() {
    let nix = oracle();
    if nix.is_none() {
        eprintln!("SKIPPED: no Nix {VERSION} on PATH; firn's flakes run, but nothing is compared");
    }
    let layouts = layouts();
    let place = std::env::temp_dir().join(format!("firn-flakes-{}", std::process::id()));
    let mut wrong = Vec::new();
    let since = SystemTime::now();
    for (name, layout) in &layouts {
        let (root, state) = (place.join("work"), place.join("state"));
        let mut runs = Vec::new();
        for tool in [nix.as_deref(), None] {
            drop(std::fs::remove_dir_all(&root));
            std::fs::create_dir_all(&root).expect("makes the root");
            std::fs::create_dir_all(&state).expect("makes the state");
            std::fs::write(state.join("registry.json"), "{\"version\":2,\"flakes\":[]}").expect("writes");
            if tool.is_some() || nix.is_none() || runs.len() == 1 {
                runs.push(World { root: &root, state: &state, nix: tool }.play(layout));
            }
        }
        if let [theirs, ours] = &runs[..]
            && nix.is_some()
        {
            for (theirs, ours) in theirs.iter().zip(ours).filter(|(theirs, ours)| theirs != ours) {
                wrong.push(format!("{name}: {}\nnix:  {theirs:#?}\nfirn: {ours:#?}", ours.command));
            }
        }
    }
    drop(std::fs::remove_dir_all(&place));
    assert!(nix.is_none() || layouts.len() >= 20 || std::env::var_os("FIRN_FLAKES_ONLY").is_some(), "too few layouts");
    eprintln!("{} layouts in {:?}", layouts.len(), since.elapsed().unwrap_or_default());
    assert!(wrong.is_empty(), "{} of the commands differ\n{}", wrong.len(), wrong.join("\n\n"));
}
