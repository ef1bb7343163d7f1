//! Files prepared ahead by another thread (decision 0021): random programs of many files, edited again and again. Which of them another thread has
//! parsed when the program imports them is left to chance; what is said must be what is said without memory, to the letter. Which of two cells
//! of a set is evaluated first shows in what they print and in which of two failures is told, and follows from which name was parsed first.
//!
//! `FIRN_PREPARED_SEQUENCES` (60) says how many random sequences, `FIRN_SEED` where the random numbers begin.
#![allow(clippy::disallowed_methods, reason = "a test changes files itself; the door is for the evaluator")]

#[path = "disk/random.rs"]
mod random;

use random::{Random, number};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// States of the project in a sequence.
const STEPS: usize = 8;
const FILES: usize = 12;
const NAMES: [&str; 14] = [
    "zeta", "eta", "theta", "\"iota kappa\"", "lambda", "mu", "nu-with-a-name-longer-than-most-1", "nu-with-a-name-longer-than-most-2", "xi", "omicron",
    "pi", "\"rho\\n\"", "sigma'", "tau_",
];

fn firn(cache: &Path, memo: &str, seed: u64) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.env_clear().env("HOME", "/homeless").env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
    command.env("FIRN_CACHE_DIR", cache).env("FIRN_MEMO", memo).env("FIRN_MEMO_LEAST", "0").env("FIRN_PERTURB", seed.to_string());
    command.stdin(Stdio::null());
    command
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// What a cell of file `at` says: something that shows when it is evaluated. `fails` says how many of a hundred fail.
fn cell(random: &mut Random, at: usize, fails: usize) -> String {
    let mark = random.below(1000);
    if random.below(100) < fails {
        return format!("throw \"fails {at} {mark}\"");
    }
    match random.below(9) {
        0 => format!("builtins.trace \"{mark}\" __curPos.column"),
        1 => format!("builtins.trace \"{mark}\" (builtins.unsafeGetAttrPos \"{}\" (import ./f{}.nix))", NAMES[0], random.below(FILES)),
        2 if at > 0 => format!("builtins.trace \"{mark}\" (import ./f{}.nix == import ./f{}.nix)", random.below(at), random.below(at)),
        3 if at > 0 => format!("builtins.trace \"{mark}\" (builtins.deepSeq (import ./f{}.nix) {mark})", random.below(at)),
        4 => format!("let {} = {mark}; in builtins.trace \"{mark}\" {}", random.pick(&["zeta", "only-here", "mu"]), random.pick(&["1", "2"])),
        5 => format!("builtins.trace \"{mark}\" {{ inherit ({{ xi = {mark}; eta = builtins.trace \"{mark} inherited\" 2; }}) xi eta; }}"),
        6 => format!("builtins.trace \"{mark}\" (({{ pi, mu ? builtins.trace \"default\" {mark}, ... }}: {{ inherit pi mu; }}) {{ pi = {mark}; }})"),
        _ => format!("builtins.trace \"{mark}\" {}", random.below(2)),
    }
}

/// A file: a set of some of the names, in any order; now and then one that is no text of the language, or of which something is to be said.
fn file(random: &mut Random, at: usize, fails: usize) -> String {
    let mut names: Vec<&str> = NAMES.to_vec();
    let count = 2 + random.below(5);
    let mut text = format!("# {}\n{{\n", random.below(9));
    for _ in 0..count {
        let name = names.swap_remove(random.below(names.len()));
        text += &format!("  {name} = {};\n", cell(random, at, fails));
    }
    text += match random.below(if fails > 0 { 90 } else { 1000 }) {
        0 => "  twice = 1; twice = 2;\n",
        1 => "  broken = ;\n",
        2 => "  home = ~/x;\n",
        3 => "  f = { a, a }: a;\n",
        _ => "",
    };
    text + "}\n"
}

/// The program: files imported in any order, and compared, merged and evaluated in depth.
fn program(random: &mut Random) -> String {
    let any = |random: &mut Random| format!("(import ./f{}.nix)", random.below(FILES));
    let all: Vec<String> = (0..7)
        .map(|at| match random.below(6) {
            0 => format!("e{at} = {} == {};", any(random), any(random)),
            1 => format!("e{at} = builtins.deepSeq ({} // {}) 1;", any(random), any(random)),
            2 => format!("e{at} = {} // {};", any(random), any(random)),
            3 => format!("e{at} = [ {} {} ] == [ {} ];", any(random), any(random), any(random)),
            4 => format!("e{at} = builtins.attrNames {} ++ builtins.attrValues {};", any(random), any(random)),
            _ => format!("e{at} = {};", any(random)),
        })
        .collect();
    format!("{{ {} }}\n", all.join(" "))
}

struct Project {
    dir: PathBuf,
    files: Vec<String>,
}

impl Project {
    fn write(&self) {
        for (at, text) in self.files.iter().enumerate() {
            std::fs::write(self.dir.join(format!("f{at}.nix")), text).expect("written");
        }
    }
}

/// One sequence. How many files were prepared, and how often there was an answer.
fn sequence(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, counted) = (scratch.path().join("cache"), scratch.path().join("stats"));
    let files = (0..FILES).map(|at| file(&mut random, at, 0)).collect();
    let mut project = Project { dir: scratch.path().join("project"), files };
    std::fs::create_dir_all(project.dir.join("main")).expect("made");
    let (mut prepared, mut succeeded) = (0, 0);
    for step in 0..STEPS {
        // What lies beside the file that is asked about is watched for edits, and read as any.
        let main = program(&mut random).replace("./f", "../f");
        std::fs::write(project.dir.join("main/main.nix"), &main).expect("written");
        project.write();
        let ask = |memo: &str| {
            let mut command = firn(&cache, memo, seed + step as u64);
            command.args(["instantiate", "--eval", "--strict"]).arg(project.dir.join("main/main.nix"));
            command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", &counted).output().expect("firn runs")
        };
        let fresh = ask("off");
        succeeded += u64::from(fresh.status.success());
        let remembered = ask("disk");
        assert_eq!(shown(&remembered), shown(&fresh), "seed {seed}, step {step}\n{main}\n{}", project.files.join("\n"));
        let text = std::fs::read_to_string(&counted).unwrap_or_default();
        prepared += text.split("\"filesPrepared\": ").nth(1).and_then(|rest| rest.split([',', '\n']).next()?.parse::<u64>().ok()).unwrap_or(0);
        for _ in 0..random.below(3) {
            let at = random.below(FILES);
            let fails = random.below(8);
            project.files[at] = file(&mut random, at, fails);
        }
    }
    (prepared, succeeded)
}

#[test]
fn what_was_prepared_is_not_noticed() {
    let count = number("FIRN_PREPARED_SEQUENCES", 60);
    let seed = number("FIRN_SEED", 1) as u64;
    let (next, prepared, succeeded) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let (files, answers) = sequence(seed + index as u64);
                    prepared.fetch_add(files, Ordering::Relaxed);
                    succeeded.fetch_add(answers, Ordering::Relaxed);
                }
            });
        }
    });
    let (prepared, succeeded) = (prepared.into_inner(), succeeded.into_inner());
    println!("{count} sequences, {succeeded} of {} evaluations gave an answer, {prepared} files were prepared", STEPS * count);
    assert!(prepared > 4 * count as u64, "{prepared} files were prepared in {count} sequences");
    assert!(succeeded > count as u64, "{succeeded} answers in {count} sequences");
}
