//! `--memo disk` against evaluating afresh: random programs under random edits, edits that try to go unnoticed, killed
//! processes, many processes at once, disks that are full.
//!
//! `FIRN_EDIT_SEQUENCES` (200) says how many random sequences, `FIRN_KILLS` (60) how many killed runs, `FIRN_SEED` where the
//! random numbers begin.
#![allow(clippy::disallowed_methods, reason = "a test changes files itself; the door is for the evaluator")]

#[path = "disk/edits.rs"]
mod edits;
#[path = "disk/killed.rs"]
mod killed;
#[path = "disk/names.rs"]
mod names;
#[path = "disk/program.rs"]
mod program;
#[path = "disk/random.rs"]
mod random;

use edits::{Edit, Project};
use random::{Random, number};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

fn firn(cache: &Path, memo: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.env_clear().env("HOME", "/homeless").env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
    command.env("FIRN_CACHE_DIR", cache).env("FIRN_MEMO", memo).env("FIRN_MEMO_LEAST", "0");
    // Every function that was called once is a candidate for being remembered within the run.
    command.env("FIRN_MEMO_STEPS", "0");
    command.stdin(Stdio::null());
    command
}

fn question(cache: &Path, memo: &str, project: &Project) -> Command {
    let mut command = firn(cache, memo);
    command.args(["instantiate", "--eval", "--strict"]).arg(project.path()).args(["-A", &project.attribute]);
    command.args(["--argstr", "arg", &project.argument]).env("FIRN_TEST", &project.variable);
    command
}

fn ask(cache: &Path, memo: &str, project: &Project) -> Output {
    question(cache, memo, project).output().expect("firn runs")
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// How many answers the cache holds.
fn answers(cache: &Path) -> u64 {
    let output = firn(cache, "off").args(["cache", "stats", "--json"]).output().expect("firn runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rest = text.split("\"answers\":").nth(1).unwrap_or_else(|| panic!("{}", shown(&output)));
    rest.split(',').next().and_then(|count| count.parse().ok()).expect("a number")
}

/// As [`ask`], and whether memory answered.
fn ask_memory(cache: &Path, project: &Project) -> (Output, bool) {
    let counted = cache.with_extension("stats");
    let mut command = question(cache, "disk", project);
    let output = command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", &counted).output().expect("firn runs");
    let text = std::fs::read_to_string(&counted).unwrap_or_default();
    let _ = std::fs::remove_file(&counted);
    (output, text.contains("\"hits\": 1"))
}

/// One sequence: a program, then edits, after each of which memory must say what evaluating says. How often it was asked,
/// and how often it knew.
fn sequence(seed: u64) -> (usize, usize) {
    let mut random = Random::new(seed);
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let mut project = Project::new(&scratch.path().join("project"), &mut random);
    let mut story = vec![project.describe()];
    let steps = 4 + random.below(6);
    let mut hits = 0;
    for step in 0..steps {
        let fresh = shown(&ask(&cache, "off", &project));
        // Twice: what was kept is asked for at once, too.
        for turn in 0..2 {
            let (output, hit) = ask_memory(&cache, &project);
            hits += usize::from(hit);
            let remembered = shown(&output);
            assert_eq!(remembered, fresh, "seed {seed}, step {step}, turn {turn}\n{}", story.join("\n"));
        }
        let edit = Edit::random(&project, &mut random);
        story.push(format!("{edit:?}"));
        project.apply(&edit);
    }
    (steps * 2, hits)
}

#[test]
fn random_edits_never_give_another_answer_than_evaluating() {
    let count = number("FIRN_EDIT_SEQUENCES", 200);
    let seed = number("FIRN_SEED", 1) as u64;
    let (next, asked, known) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let (questions, hits) = sequence(seed + index as u64);
                    asked.fetch_add(questions, Ordering::Relaxed);
                    known.fetch_add(hits, Ordering::Relaxed);
                }
            });
        }
    });
    let (asked, known) = (asked.into_inner(), known.into_inner());
    println!("{count} sequences, {asked} answers compared, {known} of them from memory");
    // Every second question is about a state that was just evaluated; some of those fail, and failures are not kept.
    assert!(known * 3 > asked, "memory knew {known} of {asked} answers");
}

fn ask_jobs(cache: &Path, memo: &str, workers: usize, project: &Project) -> Output {
    jobs_command(cache, memo, workers, project).output().expect("firn runs")
}

fn jobs_command(cache: &Path, memo: &str, workers: usize, project: &Project) -> Command {
    let mut command = firn(cache, memo);
    command.args(["jobs", "--no-instantiate", "--sorted", "--workers", &workers.to_string()]).arg(project.path());
    command.args(["--argstr", "arg", &project.argument]).env("FIRN_TEST", &project.variable);
    command
}

/// As [`sequence`] for a program of several jobs. How many lines were known.
fn jobs_sequence(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let mut project = Project::of_jobs(&scratch.path().join("project"), &mut random);
    let mut story = vec![project.describe()];
    let mut known = 0;
    for step in 0..4 + random.below(6) {
        let fresh = ask_jobs(&cache, "off", 1, &project);
        for workers in [1, 2] {
            let remembered = ask_jobs(&cache, "disk", workers, &project);
            let lines = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
            let context = || format!("seed {seed}, step {step}, {workers} workers\n{}", story.join("\n"));
            assert_eq!(lines(&remembered), lines(&fresh), "{}", context());
            assert_eq!(remembered.status.code(), fresh.status.code(), "{}", context());
            let told = String::from_utf8_lossy(&remembered.stderr).into_owned();
            let count = told.split(" remembered").next().and_then(|before| before.rsplit(' ').next()?.parse().ok());
            known += count.unwrap_or(0);
            if workers == 1 {
                // All that is told besides. Lines and what evaluation prints come from two threads.
                let spoken = |text: &str| {
                    let mut lines: Vec<String> = text.lines().filter(|line| !line.contains(" failed")).map(str::to_owned).collect();
                    lines.sort();
                    lines
                };
                assert_eq!(spoken(&told), spoken(&String::from_utf8_lossy(&fresh.stderr)), "{}", context());
            }
        }
        let edit = Edit::random(&project, &mut random);
        story.push(format!("{edit:?}"));
        project.apply(&edit);
    }
    known
}

#[test]
fn jobs_after_random_edits_are_those_of_a_fresh_run() {
    let count = number("FIRN_JOB_SEQUENCES", 60);
    let seed = number("FIRN_SEED", 1) as u64;
    let (next, known) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    known.fetch_add(jobs_sequence(seed + index as u64), Ordering::Relaxed);
                }
            });
        }
    });
    let known = known.into_inner();
    println!("{count} sequences, {known} jobs from memory");
    assert!(known > count, "memory knew only {known} jobs");
}

#[test]
fn an_answer_within_a_run_rests_on_what_its_arguments_rest_on() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, root) = (scratch.path().join("cache"), scratch.path().join("project"));
    let project = Project::plain(&root, "{ }");
    let program = r#"{ arg ? "" }: let
        a = toString (builtins.pathExists ./a);
        b = toString (builtins.pathExists ./b);
        x = { given = a; };
        y = { given = b; };
        job = name: text: derivation { inherit name; system = "s"; builder = text; };
        both = builtins.concatStringsSep "" (builtins.attrNames x ++ builtins.attrNames y) + a + b;
      in { j0 = job "j0" both; j1 = job "j1" (import ./f.nix x).v; j2 = job "j2" (import ./f.nix y).v; }"#;
    for (name, text) in [("default.nix", program), ("f.nix", "set: { v = set.given + \"!\"; }"), ("a", ""), ("b", "")] {
        std::fs::write(root.join(name), text).expect("written");
    }
    let lines = |memo| String::from_utf8(ask_jobs(&cache, memo, 1, &project).stdout).expect("JSON");
    let counted = scratch.path().join("counted");
    let mut first = jobs_command(&cache, "disk", 1, &project);
    first.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", &counted);
    assert!(first.output().expect("firn runs").status.success());
    let counted = std::fs::read_to_string(&counted).expect("statistics");
    assert!(counted.contains("\"shared\": 1,"), "the second call is answered by the first: {counted}");
    std::fs::remove_file(root.join("b")).expect("removed");
    assert_eq!(lines("disk"), lines("off"));
    std::fs::remove_file(root.join("a")).expect("removed");
    assert_eq!(lines("disk"), lines("off"));
}

#[test]
fn a_run_of_several_processes_remembers_what_each_of_them_found() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, root) = (scratch.path().join("cache"), scratch.path().join("project"));
    let project = Project::plain(&root, "{ }");
    let program = r#"{ arg ? "" }: builtins.listToAttrs (builtins.genList (i: {
        name = "j${toString i}";
        value = derivation { name = "j${toString i}"; system = "s"; builder = "b"; };
      }) 12)"#;
    std::fs::write(root.join("default.nix"), program).expect("written");
    // One megabyte is always used up: each process does one job.
    let mut first = jobs_command(&cache, "disk", 1, &project);
    let first = first.args(["--max-memory-size", "1"]).output().expect("firn runs");
    assert!(String::from_utf8_lossy(&first.stderr).contains("12 jobs, 0 failed"));
    let again = ask_jobs(&cache, "disk", 1, &project);
    assert!(String::from_utf8_lossy(&again.stderr).contains("12 jobs, 0 failed, 12 remembered"), "{again:?}");
    assert_eq!(again.stdout, first.stdout);
}

#[test]
fn failures_of_jobs_name_the_files_where_they_lie_now() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let broken = "throw \"broken\"; recurseForDerivations = true; k = derivation { name = \"k\"; system = \"s\"; builder = \"b\"; }";
    let here = Project::plain(&scratch.path().join("here"), broken);
    let lines = |output: Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let first = lines(ask_jobs(&cache, "disk", 1, &here));
    assert!(first.contains("/here/default.nix"), "{first}");
    assert_eq!(lines(ask_jobs(&cache, "disk", 1, &here)), first);
    std::fs::rename(here.path(), scratch.path().join("there")).expect("renamed");
    let there = Project::plain(&scratch.path().join("there"), broken);
    let moved = lines(ask_jobs(&cache, "disk", 1, &there));
    assert!(moved.contains("/there/default.nix"), "{moved}");
    assert_eq!(moved, lines(ask_jobs(&cache, "off", 1, &there)));
}

#[test]
fn edits_that_try_to_go_unnoticed_are_noticed() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let project = Project::plain(&scratch.path().join("project"), "import ./v.nix + builtins.length (builtins.attrNames (builtins.readDir ./d))");
    let value = project.path().join("v.nix");
    std::fs::write(&value, "10").expect("written");
    std::fs::create_dir(project.path().join("d")).expect("made");
    let say = |memo: &str| String::from_utf8_lossy(&ask(&cache, memo, &project).stdout).trim().to_owned();
    // Old enough that the state of the files vouches for them.
    std::thread::sleep(Duration::from_millis(2600));
    assert_eq!([say("disk"), say("disk")], ["10", "10"]);
    assert_eq!(answers(&cache), 1);
    let times = std::fs::metadata(&value).and_then(|metadata| metadata.modified()).expect("a time");
    // The same size, the same modification time.
    std::fs::write(&value, "20").expect("written");
    std::fs::File::options().write(true).open(&value).and_then(|file| file.set_modified(times)).expect("set");
    assert_eq!([say("disk"), say("disk")], ["20", "20"]);
    // Another file of the same size and time in its place.
    let other = project.path().join("other");
    std::fs::write(&other, "30").expect("written");
    std::fs::File::options().write(true).open(&other).and_then(|file| file.set_modified(times)).expect("set");
    std::fs::rename(&other, &value).expect("renamed");
    assert_eq!(say("disk"), "30");
    // A name in a directory, and the time of the directory set back.
    let directory = project.path().join("d");
    let times = std::fs::metadata(&directory).and_then(|metadata| metadata.modified()).expect("a time");
    std::fs::write(directory.join("x"), "").expect("written");
    std::fs::File::open(&directory).and_then(|file| file.set_modified(times)).expect("set");
    assert_eq!(say("disk"), "31");
    // A clock that is ahead: the file seems to come from the future, and vouches for nothing.
    let future = std::time::SystemTime::now() + Duration::from_secs(86_400);
    std::fs::write(&value, "40").expect("written");
    std::fs::File::options().write(true).open(&value).and_then(|file| file.set_modified(future)).expect("set");
    assert_eq!([say("disk"), say("disk")], ["41", "41"]);
    std::fs::write(&value, "50").expect("written");
    std::fs::File::options().write(true).open(&value).and_then(|file| file.set_modified(future)).expect("set");
    assert_eq!(say("disk"), "51");
    // Back to the first state: an earlier answer is given again, nothing new is kept.
    std::fs::remove_file(directory.join("x")).expect("removed");
    std::fs::write(&value, "10").expect("written");
    let before = answers(&cache);
    assert_eq!(say("disk"), "10");
    assert_eq!(answers(&cache), before);
}

/// What an import looks up to find its file counts, although only the file is noted where it is read.
#[test]
fn an_import_that_leads_elsewhere_is_noticed() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let imported = "\"${baseNameOf (import ./d)}-${baseNameOf (import ./f.nix)}\"; recurseForDerivations = true; k = import ./e";
    let project = Project::plain(&scratch.path().join("project"), imported);
    let at = |name: &str| project.path().join(name);
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, at(name)).expect("made");
    for directory in ["d", "e"] {
        std::fs::create_dir(at(directory)).expect("made");
    }
    std::fs::write(at("d/default.nix"), "toString ./.").expect("written");
    std::fs::write(at("f.nix"), "toString ./.").expect("written");
    let say = |memo: &str| String::from_utf8_lossy(&ask(&cache, memo, &project).stdout).trim().to_owned();
    let lines = |memo: &str| String::from_utf8_lossy(&ask_jobs(&cache, memo, 1, &project).stdout).into_owned();
    assert_eq!([say("disk"), say("disk")], ["\"d-project\"", "\"d-project\""]);
    // The same code, by way of a link to a directory, then to a file.
    std::fs::rename(at("d"), at("elsewhere")).expect("renamed");
    link("elsewhere", "d");
    assert_eq!([say("disk"), say("disk")], ["\"elsewhere-project\"", "\"elsewhere-project\""]);
    std::fs::rename(at("f.nix"), at("elsewhere/f.nix")).expect("renamed");
    link("elsewhere/f.nix", "f.nix");
    assert_eq!([say("disk"), say("disk")], ["\"elsewhere-elsewhere\"", "\"elsewhere-elsewhere\""]);
    // Nothing to read in a directory, which is remembered of a job; then a file is in its place.
    assert_eq!(lines("disk"), lines("off"));
    std::fs::remove_dir(at("e")).expect("removed");
    std::fs::write(at("e"), "derivation { name = \"k\"; system = \"s\"; builder = \"b\"; }").expect("written");
    let now = lines("disk");
    assert!(now.contains("-k.drv"), "{now}");
    assert_eq!(now, lines("off"));
}

/// Spec L2.5: who looks at code does not see its comments; who asks where something stands does.
#[test]
fn comments_and_blanks_touch_only_those_who_ask_where_things_stand() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let dir = scratch.path().join("project");
    let lib = "{ f = x: x + 1; at = builtins.unsafeGetAttrPos \"a\" { a = 1; }; g = x: x; }";
    let asked = [
        ("(import ./lib.nix).f 1", true),
        ("(import ./lib.nix).at.line", false),
        ("(import ./lib.nix).at.column", false),
        ("(import ./lib.nix).g", true),
        ("builtins.trace (import ./lib.nix).g 1", false),
        ("builtins.attrNames (import ./lib.nix).at", true),
        ("builtins.hashFile \"sha256\" ./lib.nix", false),
        ("builtins.toXML (import ./lib.nix).g", true),
    ];
    for (index, (expression, stays)) in asked.into_iter().enumerate() {
        let cache = scratch.path().join(format!("cache{index}"));
        let project = Project::plain(&dir, expression);
        let write = |text: String| std::fs::write(dir.join("lib.nix"), text).expect("written");
        write(lib.to_owned());
        assert!(!ask_memory(&cache, &project).1, "{expression}: nothing is known yet");
        write(format!("# one\n# two\n{lib}"));
        let (output, hit) = ask_memory(&cache, &project);
        assert_eq!(shown(&output), shown(&ask(&cache, "off", &project)), "{expression}");
        assert_eq!(hit, stays, "{expression} after a comment was added");
        write(lib.replace("x + 1", "x + 2"));
        let (output, hit) = ask_memory(&cache, &project);
        assert_eq!(shown(&output), shown(&ask(&cache, "off", &project)), "{expression}");
        assert!(!hit, "{expression} after the code changed");
    }
}

#[test]
fn names_of_a_large_set_have_the_order_that_they_have_without_memory() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let dir = scratch.path();
    // The name `later` is first met in what another binding stands for.
    let fillers: String = (0..100).map(|index| format!("  a_binding_that_makes_the_set_large_enough_{index} = {index};\n")).collect();
    let all = format!(
        "self: with self; {{\n{fillers}  one = ({{ later ? 1 }}: later) {{ }};\n  two = builtins.trace \"two\" (x: 2);\n  \
         later = builtins.trace \"later\" (x: 3);\n}}\n"
    );
    std::fs::write(dir.join("all.nix"), all).expect("written");
    // Functions are never equal: what comes first ends the comparison.
    let expression = "let all = _: let self = import ./all.nix self; in self; in all 1 == all 2";
    let told = |memo: &str| {
        let mut command = firn(&dir.join("cache"), memo);
        command.args(["instantiate", "--eval", "--strict", "-E", expression]).current_dir(dir);
        shown(&command.output().expect("firn runs"))
    };
    let evaluated = told("off");
    assert!(evaluated.contains("trace: later") && !evaluated.contains("trace: two"), "{evaluated}");
    assert_eq!(told("disk"), evaluated);
    assert_eq!(told("disk"), evaluated);
}

#[test]
fn eight_processes_share_one_cache() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..12 {
                    // Half of the questions are everybody's.
                    let question = if round % 2 == 0 { round } else { 100 * thread + round };
                    let expression = format!("builtins.trace \"t\" {question} + 1");
                    let run = firn(cache, "disk").args(["instantiate", "--eval", "-E", &expression]).output();
                    let output = run.expect("firn runs");
                    assert_eq!(shown(&output), format!("Some(0)\n{}\ntrace: t\n", question + 1));
                }
            });
        }
    });
    assert_eq!(answers(&cache), 6 + 8 * 6);
    let verified = firn(&cache, "off").args(["cache", "verify"]).output().expect("firn runs");
    assert!(verified.status.success(), "{}", shown(&verified));
}

/// Runs firn under `sh`, with something before it.
fn limited(cache: &Path, limit: &str, expression: &str) -> Output {
    let mut command = firn(cache, "disk");
    let program = command.get_program().to_owned();
    let variables: Vec<_> = command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    command = Command::new("/bin/sh");
    command.env_clear().envs(variables).stdin(Stdio::null());
    command.args(["-c", &format!("{limit}; exec \"$0\" \"$@\"")]).arg(program);
    command.args(["instantiate", "--eval", "-E", expression]).output().expect("sh runs")
}

#[test]
fn a_full_disk_costs_one_warning_and_no_answer() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let long = "builtins.concatStringsSep \"\" (builtins.genList (x: \"0123456789\") 20000)";
    let expected = format!("\"{}\"\n", "0123456789".repeat(20000));
    // From nothing at all to nearly enough, in blocks of 512 bytes.
    for (round, blocks) in [0, 8, 100, 140, 160, 200, 400].into_iter().enumerate() {
        let cache = scratch.path().join(round.to_string());
        for _ in 0..2 {
            let output = limited(&cache, &format!("ulimit -f {blocks}"), long);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{blocks}: {}", shown(&output).len());
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
            assert!(told.lines().count() <= 1 && (told.is_empty() || told.starts_with("warning: ")), "{blocks}: {told}");
        }
        // With room again everything is as it should be.
        let output = firn(&cache, "disk").args(["instantiate", "--eval", "-E", long]).output().expect("firn runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        assert_eq!(answers(&cache), 1);
    }
}

#[test]
fn several_questions_in_one_run_print_what_evaluating_prints() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let text = "let s = builtins.trace \"shared\" 1; in { a = s; b = s + 1; c = 3; d = builtins.trace \"d\" 4; }";
    let project = Project::plain(&scratch.path().join("project"), text);
    let ask = |memo: &str, attributes: &[&str]| {
        let mut command = firn(&cache, memo);
        command.args(["instantiate", "--eval"]).arg(project.path());
        for attribute in attributes {
            command.args(["-A", &format!("r.{attribute}")]);
        }
        shown(&command.output().expect("firn runs"))
    };
    for attributes in [&["a", "b"][..], &["b"], &["a"], &["b", "a"], &["c", "a"], &["d", "c"], &["c"], &["a", "b", "c", "d"]] {
        let fresh = ask("off", attributes);
        assert_eq!([ask("disk", attributes), ask("disk", attributes)], [fresh.clone(), fresh.clone()], "{attributes:?}");
        assert_eq!(ask("shadow", attributes), fresh);
    }
}

/// Runs a command line and says whether memory answered.
fn counted(cache: &Path, dir: &Path, arguments: &[&str]) -> (String, bool) {
    let counted = cache.with_extension("stats");
    let mut command = firn(cache, "disk");
    command.args(arguments).current_dir(dir).env_remove("NIX_REMOTE");
    let output = command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", &counted).output().expect("firn runs");
    assert!(output.status.success(), "{arguments:?}: {}", shown(&output));
    let text = std::fs::read_to_string(&counted).expect("statistics");
    (String::from_utf8_lossy(&output.stdout).trim().to_owned(), text.contains("\"hits\": 1"))
}

#[test]
fn a_remembered_derivation_is_in_the_store_or_evaluated_again() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, root) = (scratch.path().join("cache"), scratch.path().join("root"));
    std::fs::write(scratch.path().join("source"), "text").expect("written");
    let expression = "derivation { name = \"n\"; builder = \"b\"; system = \"s\"; src = ./source; }";
    let store = root.to_string_lossy().into_owned();
    let ask = || counted(&cache, scratch.path(), &["instantiate", "--store", &store, "-E", expression]);
    let (drv, hit) = ask();
    assert!(!hit);
    let place = root.join(drv.trim_start_matches('/'));
    assert!(place.exists(), "{}", place.display());
    // The first run saw no such objects, the next one does.
    let again: Vec<_> = (0..3).map(|_| ask()).collect();
    assert_eq!(again.last(), Some(&(drv.clone(), true)));
    // A value that is only computed writes nothing, whatever is remembered.
    let dry = ["instantiate", "--dry-run", "--store", &store, "-E", expression];
    assert_eq!(counted(&cache, scratch.path(), &dry).0, drv);
    let status = Command::new("chmod").args(["-R", "u+w"]).arg(&root).status().expect("chmod runs");
    assert!(status.success());
    std::fs::remove_dir_all(&root).expect("removed");
    assert_eq!(ask(), (drv, false));
    assert!(place.exists());
}

#[test]
fn flakes_are_remembered_by_their_trees() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, dir) = (scratch.path().join("cache"), scratch.path().join("flake"));
    std::fs::create_dir(&dir).expect("made");
    let text = "{ outputs = { self }: { a = import ./v.nix; p = \"${self}\"; e = builtins.getEnv \"X\"; }; }";
    std::fs::write(dir.join("flake.nix"), text).expect("written");
    std::fs::write(dir.join("v.nix"), "1").expect("written");
    let then = std::time::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let age = || {
        for name in ["flake.nix", "v.nix", "."] {
            std::fs::File::open(dir.join(name)).and_then(|file| file.set_modified(then)).expect("set");
        }
    };
    age();
    let ask = |what: &str| counted(&cache, &dir, &["eval", "--store", "dummy://", what]);
    assert_eq!([ask("path:.#a"), ask("path:.#a")], [("1".to_owned(), false), ("1".to_owned(), true)]);
    let (place, _) = ask("path:.#p");
    assert_eq!(ask("path:.#p"), (place.clone(), true));
    std::fs::write(dir.join("v.nix"), "2").expect("written");
    age();
    assert_eq!(ask("path:.#a"), ("2".to_owned(), false));
    assert_ne!(ask("path:.#p").0, place);
    // Back to the first tree.
    std::fs::write(dir.join("v.nix"), "1").expect("written");
    age();
    assert_eq!([ask("path:.#a"), ask("path:.#p")], [("1".to_owned(), true), (place, true)]);
}

#[test]
fn expressions_on_the_command_line_are_seen_from_the_current_directory() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    std::fs::write(scratch.path().join("main.nix"), "{ x ? 0 }: { r = x; }").expect("written");
    let main = scratch.path().join("main.nix").to_string_lossy().into_owned();
    for name in ["a", "b"] {
        std::fs::create_dir(scratch.path().join(name)).expect("made");
        std::fs::write(scratch.path().join(name).join("v.nix"), format!("\"{name}\"")).expect("written");
    }
    let lines: [&[&str]; 4] = [
        &["instantiate", "--eval", &main, "-A", "r", "--arg", "x", "import ./v.nix"],
        &["instantiate", "--eval", "-E", "import ./v.nix"],
        &["eval", "-f", &main, "r", "--apply", "x: import ./v.nix"],
        &["instantiate", "--eval", "-E", "import <v.nix>", "-I", "."],
    ];
    for line in lines {
        for _ in 0..2 {
            for name in ["a", "b"] {
                let (text, _) = counted(&cache, &scratch.path().join(name), line);
                assert_eq!(text, format!("\"{name}\""), "{line:?}");
            }
        }
        assert!(counted(&cache, &scratch.path().join("a"), line).1, "{line:?}");
    }
}

#[test]
fn a_cache_of_another_version_is_left_alone() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let run = || firn(&cache, "disk").args(["instantiate", "--eval", "-E", "1 + 1"]).output().expect("firn runs");
    assert_eq!(shown(&run()), "Some(0)\n2\n");
    let data = cache.join("data.mdb");
    let mut bytes = std::fs::read(&data).expect("read");
    let places: Vec<usize> = bytes.windows(7).enumerate().filter(|(_, w)| *w == b"format\x04").map(|(at, _)| at + 6).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| bytes[at] = 9);
    std::fs::write(&data, &bytes).expect("written");
    let told = shown(&run());
    assert!(told.starts_with("Some(0)\n2\nwarning: evaluating without the cache on disk") && told.contains("another version"), "{told}");
    assert_eq!(std::fs::read(&data).expect("read"), bytes);
}
