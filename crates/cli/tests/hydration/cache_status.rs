//! `firn jobs --check-cache-status` asks a real daemon that has a binary cache; the real Nix, asked the same, agrees (O1).

use crate::scratch::{Scratch, nix_is_here};
use firn_text::json::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// What is built or not is decided below: derivations whose names end alike go the same way.
const JOBS: &str = r#"
let
  made = outputs: name: inputs: derivation {
    inherit name inputs outputs; system = builtins.currentSystem; builder = "/bin/sh";
    args = [ "-c" "echo ${name} $inputs > $out; if [ -n \"$more\" ]; then echo more > $more; fi" ];
  };
  make = made [ "out" ];
  two = made [ "out" "more" ];
in rec {
  leaf-here = make "leaf-here" [ ];
  here = make "here" [ leaf-here ];
  leaf-cached = make "leaf-cached" [ ];
  cached = make "cached" [ leaf-cached ];
  two-cached = two "two-cached" [ cached ];
  # The output can be had, but not what it is made from.
  leaf-gone = make "leaf-gone" [ ];
  orphan-cached = make "orphan-cached" [ leaf-gone ];
  base-new = make "base-new" [ here ];
  left-new = make "left-new" [ base-new ];
  right-new = make "right-new" [ base-new leaf-cached ];
  top-new = make "top-new" [ left-new right-new two-cached.more ];
  # One output is here, one in the cache.
  half-cached = two "half-cached" [ here ];
  onto-cached-new = make "onto-cached-new" [ cached here ];
}
"#;

/// What a line says of the cache: the status, the builds in order, the downloads in order.
type Status = (String, Vec<String>, Vec<String>);

/// The part of a store path that people chose.
fn name(path: &str) -> String {
    path.rsplit('/').next().and_then(|base| base.split_once('-')).map_or_else(String::new, |(_, name)| name.to_owned())
}

fn names(line: &Tree, key: &str) -> Vec<String> {
    let list = line.get(key).and_then(Tree::as_list).unwrap_or_else(|| panic!("no {key}"));
    list.iter().map(|path| name(path.as_text().expect("a path"))).collect()
}

fn jobs(scratch: &Scratch, arguments: &[&str]) -> Vec<Tree> {
    let mut command = scratch.command(env!("CARGO_BIN_EXE_firn"));
    command.args(["jobs", "--sorted", "--show-input-drvs", "jobs.nix"]).args(arguments);
    let output = command.output().expect("firn runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.split(|&b| b == b'\n').filter(|line| !line.is_empty()).map(|line| Tree::parse(line).expect("JSON")).collect()
}

fn text<'a>(line: &'a Tree, key: &str) -> &'a str {
    line.get(key).and_then(Tree::as_text).unwrap_or_else(|| panic!("no {key} in {line:?}"))
}

fn outputs(line: &Tree) -> Vec<String> {
    let all = line.get("outputs").and_then(Tree::as_object).expect("outputs");
    all.values().map(|path| path.as_text().expect("a path").to_owned()).collect()
}

fn statuses(lines: &[Tree]) -> BTreeMap<String, Status> {
    let status = |line: &Tree| {
        let said = text(line, "cacheStatus").to_owned();
        assert_eq!(line.get("isCached"), Some(&Tree::Bool(said != "notBuilt")));
        (text(line, "attr").to_owned(), (said, names(line, "neededBuilds"), names(line, "neededSubstitutes")))
    };
    lines.iter().map(status).collect()
}

/// What the real Nix would do for the outputs and inputs of a line: builds, downloads.
fn of_nix(scratch: &Scratch, line: &Tree) -> [BTreeSet<String>; 2] {
    let mut wanted = outputs(line);
    for (drv, outputs) in line.get("inputDrvs").and_then(Tree::as_object).expect("inputs") {
        let drv = String::from_utf8_lossy(drv);
        wanted.extend(outputs.as_list().expect("a list").iter().map(|output| format!("{drv}!{}", output.as_text().expect("a name"))));
    }
    let arguments: Vec<&str> = ["--realise", "--dry-run"].into_iter().chain(wanted.iter().map(String::as_str)).collect();
    let said = scratch.command("nix-store").args(arguments).output().expect("nix-store runs").stderr;
    let (mut found, mut into) = ([BTreeSet::new(), BTreeSet::new()], None);
    for line in String::from_utf8_lossy(&said).lines() {
        match line.strip_prefix("  ") {
            Some(path) => drop(into.map(|at: usize| found[at].insert(name(path)))),
            None => into = if line.contains("will be built") { Some(0) } else { line.contains("will be fetched").then_some(1) },
        }
    }
    found
}

#[test]
fn jobs_say_what_is_here_what_can_be_had_and_what_must_be_built() {
    if !nix_is_here() {
        return;
    }
    let mut scratch = Scratch::new("status");
    std::fs::write(scratch.path("jobs.nix"), JOBS).expect("written");
    let cache = format!("file://{}", scratch.path("cache").display());
    let lines = jobs(&scratch, &[]);
    let ending = |endings: &[&str]| -> Vec<&Tree> {
        lines.iter().filter(|line| endings.iter().any(|end| text(line, "attr").ends_with(end))).collect()
    };
    let paths = |lines: &[&Tree]| -> Vec<String> { lines.iter().flat_map(|line| outputs(line)).collect() };
    let on = |program: &str, before: &[&str], paths: &[String]| {
        let arguments: Vec<&str> = before.iter().copied().chain(paths.iter().map(String::as_str)).collect();
        scratch.nix(program, &arguments)
    };
    let built: Vec<String> = ending(&["here", "cached", "gone"]).iter().map(|line| text(line, "drvPath").to_owned()).collect();
    on("nix-store", &["--realise"], &built);
    let cached: Vec<String> = paths(&ending(&["cached"])).into_iter().collect();
    on("nix", &["--extra-experimental-features", "nix-command", "copy", "--to", &cache], &cached);
    let stays = |path: &String| path.ends_with("-half-cached");
    let (deleted, kept): (Vec<String>, Vec<String>) = cached.iter().cloned().chain(paths(&ending(&["gone"]))).partition(|path| !stays(path));
    assert_eq!(kept.len(), 1);
    on("nix-store", &["--delete"], &deleted);
    // The file of what is gone left the cache as it went along with what refers to it; it must not be there.
    for path in paths(&ending(&["gone"])) {
        let hash = path.rsplit('/').next().and_then(|base| base.split_once('-')).expect("a store path").0;
        drop(std::fs::remove_file(scratch.path(&format!("cache/{hash}.narinfo"))));
    }
    let conf = format!("sandbox = false\nsubstituters = {cache}\nrequire-sigs = false\nbuild-users-group =\n");
    std::fs::write(scratch.path("etc/nix.conf"), conf).expect("written");
    // The store by itself, whose caches a daemon of our own knows; then through a daemon that others started.
    for workers in ["1", "2", "3"] {
        if workers != "1" && !scratch.has_daemon() {
            scratch.start_daemon();
        }
        let lines = jobs(&scratch, &["--check-cache-status", "--workers", workers]);
        let found = statuses(&lines);
        for line in &lines {
            let (_, builds, downloads) = &found[text(line, "attr")];
            let ours = [builds, downloads].map(|names| names.iter().cloned().collect::<BTreeSet<String>>());
            assert_eq!(ours, of_nix(&scratch, line), "{}", text(line, "attr"));
        }
        check(&found);
    }
    assert!(deleted.iter().all(|path| !std::path::Path::new(path).exists()), "asking downloads and builds nothing");
    // Settings of the command line reach the daemon: without its cache everything must be built.
    let mut alone = scratch.command(env!("CARGO_BIN_EXE_firn"));
    alone.args(["jobs", "--check-cache-status", "jobs.nix"]).env("NIX_REMOTE", "local").env("FIRN_NIX_DAEMON", "/nonexistent/nix-daemon");
    let said = alone.output().expect("firn runs").stderr;
    assert_eq!(String::from_utf8_lossy(&said).matches("nothing is known of caches").count(), 1, "{}", String::from_utf8_lossy(&said));
    let without = statuses(&jobs(&scratch, &["--check-cache-status", "--option", "substitute", "false"]));
    assert_eq!(without["cached"], ("notBuilt".into(), vec!["leaf-cached.drv".into()], vec![]));
    assert_eq!(without["here"].0, "local");
}

fn check(found: &BTreeMap<String, Status>) {
    let is = |attr: &str, status: &str, builds: &[&str], downloads: &[&str]| {
        let texts = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
        assert_eq!(found[attr], (status.to_owned(), texts(builds), texts(downloads)), "{attr}");
    };
    is("leaf-here", "local", &[], &[]);
    is("here", "local", &[], &[]);
    is("leaf-cached", "cached", &[], &["leaf-cached"]);
    is("cached", "cached", &[], &["cached", "leaf-cached"]);
    is("two-cached", "cached", &[], &["cached", "leaf-cached", "two-cached", "two-cached-more"]);
    is("half-cached", "cached", &[], &["half-cached-more"]);
    is("leaf-gone", "notBuilt", &[], &[]);
    is("orphan-cached", "notBuilt", &["leaf-gone.drv"], &["orphan-cached"]);
    is("base-new", "notBuilt", &[], &[]);
    is("left-new", "notBuilt", &["base-new.drv"], &[]);
    is("right-new", "notBuilt", &["base-new.drv"], &["leaf-cached"]);
    is("onto-cached-new", "notBuilt", &[], &["cached", "leaf-cached"]);
    let (status, builds, downloads) = &found["top-new"];
    assert_eq!((status.as_str(), builds.len(), builds.first().map(String::as_str)), ("notBuilt", 3, Some("base-new.drv")));
    assert_eq!(downloads, &["leaf-cached", "two-cached-more"]);
}
