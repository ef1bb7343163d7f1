//! Parts of earlier evaluations (decision 0022): random programs whose leaves are edited again and again. What is said with parts taken must be
//! what evaluating says, to the letter; in shadow nothing must differ; and parts must be taken.
//!
//! `FIRN_PART_SEQUENCES` (80) says how many random sequences, `FIRN_SEED` where the random numbers begin.
#![allow(clippy::disallowed_methods, reason = "a test changes files itself; the door is for the evaluator")]

#[path = "disk/random.rs"]
mod random;

use random::{Random, number};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// States of the project in a sequence.
const STEPS: usize = 12;
const OPTIONS: usize = 24;
/// Derivations ask for options before this one, and are asked for by it and those after it.
const MIDDLE: usize = 14;
const LEAVES: [&str; 22] = [
    "n0", "n1", "n3", "n4", "n5", "s0", "s1", "s3", "s4", "s5", "s6", "b0", "b1", "b3", "b4", "b5", "b6", "sub.n2", "sub.s2", "sub.deep.b2", "l0", "l1",
];

/// One of the leaves of a kind.
fn any(random: &mut Random, kind: &str) -> String {
    let all: Vec<&str> = LEAVES.into_iter().filter(|name| name.rsplit('.').next().is_some_and(|name| name.starts_with(kind))).collect();
    format!("conf.{}", random.pick(&all))
}

fn firn(cache: &Path, memo: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.env_clear().env("HOME", "/homeless").env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
    command.env("FIRN_CACHE_DIR", cache).env("FIRN_MEMO", memo).env("FIRN_MEMO_LEAST", "0").env("FIRN_MEMO_STEPS", "0");
    command.stdin(Stdio::null());
    command
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}{}", output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// What a leaf of the configuration says.
fn leaf(random: &mut Random, name: &str) -> String {
    match name.rsplit('.').next().unwrap_or(name).as_bytes()[0] {
        b'n' => random.pick(&["0", "1", "2", "(1 + 1)", "7"]).to_string(),
        b's' => random.pick(&["\"\"", "\"a\"", "\"b\"", "\"${\"a\"}\"", "(builtins.trace \"seen\" \"a\")"]).to_string(),
        b'b' => random.pick(&["true", "false", "(1 == 1)", "true", "false"]).to_string(),
        _ => random.pick(&["[ ]", "[ 1 2 ]", "[ 1 2 3 ]", "[ (throw \"never\") 2 ]"]).to_string(),
    }
}

/// The file that people edit: a leaf to a line.
fn configuration(random: &mut Random) -> Vec<(String, String)> {
    LEAVES.iter().map(|name| ((*name).to_owned(), leaf(random, name))).collect()
}

fn written(configuration: &[(String, String)]) -> String {
    let mut text = String::from("{\n  f = x: { of = x + 1; };\n  unused = throw \"nobody asks\";\n");
    for (name, value) in configuration {
        text += &format!("  {name} = {value};\n");
    }
    text + "}\n"
}

/// A text for option `at` that asks for leaves and for options before it.
fn text(random: &mut Random, at: usize, depth: usize) -> String {
    if depth == 0 || at == 0 && random.below(3) == 0 {
        return match random.below(3) {
            0 => any(random, "s"),
            _ => format!("\"{}\"", random.below(4)),
        };
    }
    let inner = |random: &mut Random| text(random, at, depth - 1);
    let option = |random: &mut Random| if at == 0 { format!("{{ t = \"first\"; b = {}; n = {}; }}", any(random, "b"), any(random, "n")) } else { format!("self.o{}", random.below(at)) };
    let derivation = |random: &mut Random| if at < MIDDLE { "{ drvPath = conf.s0; outPath = conf.s1; }".to_owned() } else { format!("self.p{}", random.below(3)) };
    match random.below(22) {
        0 => format!("({} + {})", inner(random), inner(random)),
        1 | 2 => format!("{}.t", option(random)),
        3 | 4 => format!("(if {}.b then {} else {})", option(random), inner(random), inner(random)),
        5 => format!("(toString {}.n)", option(random)),
        6 => format!("(if {} then {} else {})", any(random, "b"), inner(random), inner(random)),
        7 => format!("(toString (builtins.length {}) + {})", any(random, "l"), inner(random)),
        8 => "(builtins.concatStringsSep \",\" (builtins.attrNames conf.sub))".to_owned(),
        9 => format!("({}.drvPath)", derivation(random)),
        10 => format!("\"${{{}}}\"", derivation(random)),
        11 => format!("(builtins.toJSON (builtins.tryEval (if {}.b then throw \"no\" else {})))", option(random), inner(random)),
        12 => format!("(builtins.trace \"t{}\" {})", random.below(3), inner(random)),
        13 => format!("(toString (conf.f {}.n).of)", option(random)),
        14 => "(let at = builtins.unsafeGetAttrPos \"s1\" conf; in toString at.line)".to_owned(),
        15 => format!("(builtins.seq {} {})", inner(random), inner(random)),
        16 => format!("(builtins.head (map (x: x + {}) [ {} (throw \"lazy\") ]))", inner(random), inner(random)),
        17 => format!("(builtins.mapAttrs (n: v: n + {}.t) conf.sub).s2", option(random)),
        18 => format!("(toString ({} == {}))", option(random), option(random)),
        19 => format!("(builtins.hashString \"sha256\" {})", inner(random)),
        20 => format!("(builtins.unsafeDiscardStringContext {})", inner(random)),
        _ => format!("(if builtins.pathExists (builtins.unsafeDiscardStringContext \"${{./data}}/x\") then {} else {})", inner(random), inner(random)),
    }
}

/// The program: a fixpoint of options, some of which are derivations.
fn program(random: &mut Random) -> String {
    let mut all = String::from("let\n  conf = import ./conf.nix;\n  fix = f: let x = f x; in x;\n  world = fix (self: {\n");
    for at in 0..OPTIONS {
        let (t, b, own) = (text(random, at, 2), text(random, at, 1), any(random, "b"));
        let n = if at == 0 || random.below(3) == 0 { any(random, "n") } else { format!("(self.o{}.n + {})", random.below(at), any(random, "n")) };
        let set = if random.below(3) == 0 { "rec { v = \"own\"; u = v; }" } else { "{ deep.x = conf.sub.deep.b2; }" };
        all += &format!("    o{at} = {{ t = {t}; b = {b} == \"1\" || {own}; n = {n}; g = x: x; }} // {set};\n");
    }
    for at in 0..3 {
        let builder = text(random, MIDDLE - 1, 2);
        all += &format!("    p{at} = derivation {{ name = \"p{at}\"; system = \"s\"; builder = \"/b\"; args = [ {builder} ]; }};\n");
    }
    let asked = (0..6).map(|_| format!("self.o{}.t", random.below(OPTIONS))).collect::<Vec<_>>().join(" + ");
    all += &format!("    answer = {asked} + self.o{}.t;\n    several = {{ inherit (self.o{}) t n b; }};\n  }});\nin world.", OPTIONS - 1, OPTIONS - 1);
    all + if random.below(4) == 0 { "several" } else { "answer" } + "\n"
}

struct Project {
    dir: PathBuf,
    configuration: Vec<(String, String)>,
    program: String,
    head: String,
}

impl Project {
    fn write(&self) {
        std::fs::write(self.dir.join("conf.nix"), format!("{}{}", self.head, written(&self.configuration))).expect("written");
        std::fs::write(self.dir.join("main.nix"), &self.program).expect("written");
    }

    /// Most edits change a leaf; some the rest.
    fn edit(&mut self, random: &mut Random) -> String {
        match random.below(24) {
            0 => self.head = format!("# {}\n", random.below(9)),
            1 => {
                let name = format!("more{}", random.below(3));
                self.configuration.retain(|(other, _)| *other != name);
                self.configuration.push((name, "1".to_owned()));
            }
            2 => {
                let number = random.below(4);
                self.program = self.program.replacen(&format!("\"{number}\""), &format!("\"{}\"", random.below(4)), 1);
            }
            _ => {
                let at = random.below(LEAVES.len());
                self.configuration[at].1 = leaf(random, LEAVES[at]);
            }
        }
        written(&self.configuration)
    }
}

/// One sequence. How many parts were taken, and how often there was an answer.
fn sequence(seed: u64) -> (u64, u64) {
    let mut random = Random::new(seed);
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let cache = scratch.path().join("cache");
    let (configuration, program) = (configuration(&mut random), program(&mut random));
    let mut project = Project { dir: scratch.path().join("project"), configuration, program, head: String::new() };
    std::fs::create_dir(&project.dir).expect("made");
    // Whoever copies the directory of the texts rests on all of them.
    std::fs::create_dir(project.dir.join("data")).expect("made");
    std::fs::write(project.dir.join("data/x"), "x").expect("written");
    let counted = scratch.path().join("stats");
    let (mut taken, mut succeeded) = (0, 0);
    let mut story = vec![project.program.clone()];
    let strict = random.below(3) != 0;
    for step in 0..STEPS {
        project.write();
        story.push(written(&project.configuration));
        let ask = |memo: &str| {
            let mut command = firn(&cache, memo);
            command.arg("instantiate").arg("--eval").args(strict.then_some("--strict")).arg(project.dir.join("main.nix"));
            command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", &counted).output().expect("firn runs")
        };
        let fresh = ask("off");
        succeeded += u64::from(fresh.status.success());
        let fresh = shown(&fresh);
        if random.below(4) == 0 {
            let shadow = shown(&ask("shadow"));
            assert!(!shadow.contains("is another now") && !shadow.contains("would have given"), "seed {seed}, step {step}\n{shadow}\n{}", story.join("\n"));
        }
        let remembered = shown(&ask("disk"));
        assert_eq!(remembered, fresh, "seed {seed}, step {step}\n{}", story.join("\n---\n"));
        let text = std::fs::read_to_string(&counted).unwrap_or_default();
        let count = text.split("\"partsTaken\": ").nth(1).and_then(|rest| rest.split([',', '\n']).next()?.parse::<u64>().ok());
        taken += count.unwrap_or(0);
        project.edit(&mut random);
    }
    (taken, succeeded)
}

#[test]
fn what_is_taken_is_what_evaluating_gives() {
    let count = number("FIRN_PART_SEQUENCES", 80);
    let seed = number("FIRN_SEED", 1) as u64;
    let (next, taken, succeeded) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let (parts, answers) = sequence(seed + index as u64);
                    taken.fetch_add(parts, Ordering::Relaxed);
                    succeeded.fetch_add(answers, Ordering::Relaxed);
                }
            });
        }
    });
    let (taken, succeeded) = (taken.into_inner(), succeeded.into_inner());
    println!("{count} sequences, {succeeded} of {} evaluations gave an answer, {taken} parts taken", STEPS * count);
    assert!(taken > count as u64, "{taken} parts were taken in {count} sequences");
}
