//! Files with the same bytes share what was parsed and lowered (decision 0018), and nobody can tell: two copies of a program give the same
//! output, errors and traces with and without memory. `FIRN_TWIN_PROGRAMS` says how many random programs (300),
//! `FIRN_MEMO_SEED` which ones (1).
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

#[allow(dead_code, reason = "nothing is shrunk here")]
#[path = "generate/choices.rs"]
mod choices;
#[allow(dead_code, reason = "the harness serves several tests")]
mod harness;
#[allow(dead_code, reason = "nothing is shrunk here")]
#[path = "generate/sharing.rs"]
mod sharing;

use choices::Choices;
use harness::parallel;
use harness::tool::{Tool, run};
use std::path::Path;

/// Exit code, standard output, standard error.
type Outcome = (Option<i32>, String, String);

/// What comes of an expression, and how many files were copied for it if it did not fail.
fn outcome(dir: &Path, memo: &str, text: &str) -> (Outcome, u64) {
    let firn = Tool::firn().expect("firn is built for its own tests");
    let counted = tempfile::NamedTempFile::new().expect("a file can be made");
    let mut command = firn.command(dir);
    command.env("FIRN_CACHE_DIR", dir.join("cache")).env("FIRN_MEMO_LEAST", "0").env("FIRN_MEMO_STEPS", "0");
    command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", counted.path());
    command.args(["--eval", "--strict", "--memo", memo, "--extra-experimental-features", "memoise", "--show-trace", "-E", text]);
    let run = run(command, b"");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let counts = std::fs::read_to_string(counted.path()).expect("the counters can be read");
    let shared = counts.split("\"filesShared\": ").nth(1).and_then(|rest| rest.split(',').next());
    let shared = shared.map_or(0, |number| number.parse().expect("a number"));
    ((run.code, text(&run.stdout), text(&run.stderr)), shared)
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().expect("a file lies somewhere")).expect("a directory can be made");
    std::fs::write(path, text).expect("a file can be written");
}

/// Everything that knows where it is written, or is made late, in a file that is a function.
const PROGRAM: &str = r#"{ arg ? ./default, more ? [ arg (toString ../up) ], ... }@all:
with { scoped = ./scoped; };
let
  here = __curPos;
  f = x: { inherit x; inherit (all) extra; };
  line = name: set: (builtins.unsafeGetAttrPos name set).line;
  place = name: set: builtins.unsafeGetAttrPos name set;
  constant = { path = ./constant; list = [ ../up { deep = ./deep; } ]; number = 1; };
in
rec {
  values = [
    here (f arg) more scoped constant here.line
    (place "path" constant) (place "a" { a = 1; b = arg; }) (place "x" (f 1)) (place "number" (constant // { z = 1; }))
    (builtins.functionArgs (import ./other.nix)) (builtins.unsafeGetAttrPos "p" (builtins.functionArgs ({ p, q ? 1 }: p)))
    ./a/${toString arg.name or "b"} (./a + "/c") "${toString ./d}/e" (import ./other.nix { p = ./x; }) (import ../up.nix)
    (builtins.pathExists ./other.nix) (builtins.pathExists ../only) (map (p: p + 1) [ 1 2 ]) ((x: builtins.seq x { v = x; }) [ 1 2 ]) late.path late.where late.value late.set
    (if line "a" { a = 1; } > 3 then ./then else ./else) (rec { a = b; b = ./b; }).a
  ];
  function = x: x;
  functions = [ function { inherit function; } (x: y: x) f ];
  same = [ (functions == functions) (function == function) (late.g == late.g) ];
  fail = {
    assertion = assert ./x == ../up; 1;
    lateAssertion = late.assertion;
    thrown = throw "at ${toString ./thrown}";
    missing = constant.nothing;
    dynamic = { }.${builtins.baseNameOf ./no/such};
    lateDynamic = late.dynamic;
    type = 1 + arg + { };
    lateType = late.type;
    call = (import ./other.nix) { };
    unexpected = ({ p }: p) { p = 1; q = 2; };
    recursion = let x = y; y = x; in x;
    scope = with { a = 1; }; undefinedHere;
    inherited = { inherit (constant) gone; }.gone;
    default = ({ a ? throw "no ${builtins.toString here.line}" }: a) { };
    abort = abort "now";
    update = constant // 1;
    select = (f 1).x.y.z;
    file = import ./broken.nix;
  };
  late = {
    LATE
    path = [ ./late ../up (toString ./late) ];
    where = [ __curPos (place "path" late) (line "where" late) ];
    value = assert arg != 1; let inherit (constant) number; in with constant; [ number path list scoped ];
    set = { a = ./a; b = { c = ../up; }; }.b.c;
    assertion = assert (x: ./late == x) ../up; 1;
    dynamic = constant.${"x" + builtins.toString ./y};
    type = [ 1 ] + ./late;
    g = f: x: f x;
  };
}
"#;

fn program() -> String {
    let late: String = (0..70).map(|n| format!("pad{n} = f [ {n} ./pad{n} ];\n    ")).collect();
    PROGRAM.replace("LATE", &late)
}

/// Two directories with the same program, around which things differ.
fn copies(dir: &Path) {
    for (root, up) in [("one/deep/dir", "one/deep"), ("other", ".")] {
        write(dir, &format!("{root}/main.nix"), &program());
        write(dir, &format!("{root}/other.nix"), "{ p, q ? ./q, ... }@all: [ p q __curPos (builtins.unsafeGetAttrPos \"p\" all) ./other ]");
        write(dir, &format!("{root}/broken.nix"), "{ a = ; }");
        write(dir, &format!("{up}/up.nix"), "[ ./up __curPos ]");
    }
    write(dir, "one/deep/only", "");
}

const BOTH: &str = "let a = import ./one/deep/dir/main.nix { extra = 1; }; b = import ./other/main.nix { extra = 2; }; in ";

#[test]
fn copies_know_where_they_are() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    copies(scratch.path());
    let questions = [
        "[ a.values b.values ]",
        "[ b.values a.values ]",
        "[ a.same b.same (a.function == b.function) (a.functions == b.functions) (a.late.g == b.late.g) (a.function == a.function) ]",
        "[ (a.late.pad1 == b.late.pad1) (a.late.g == a.late.g) (a.values == b.values) (builtins.elem a.function b.functions) ]",
        "[ (builtins.unsafeGetAttrPos \"values\" a) (builtins.unsafeGetAttrPos \"values\" b) (builtins.attrNames b.late) ]",
        "[ (builtins.length (builtins.attrValues a.late)) b.late.pad3 a.late.pad69 b.late.pad69 ]",
        "builtins.toXML [ a.functions b.functions (import ./other/main.nix) ]",
        "[ a.same (map (n: builtins.tryEval (builtins.deepSeq b.fail.${n} 1)) [ \"assertion\" \"lateAssertion\" \"thrown\" \"default\" ]) ]",
    ];
    for question in questions {
        let text = format!("{BOTH}{question}");
        let (off, none) = outcome(scratch.path(), "off", &text);
        assert_eq!((off.0, none), (Some(0), 0), "{question}: {off:#?}");
        for memo in ["run", "shadow", "disk", "disk"] {
            let (other, shared) = outcome(scratch.path(), memo, &text);
            assert_eq!(other, off, "{question}, {memo}");
            // The second answer from disk reads nothing.
            assert!(shared >= 1 || memo == "disk", "{question}, {memo}");
        }
    }
}

#[test]
fn copies_fail_where_they_are() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    copies(scratch.path());
    let failures = program().split("fail = {").nth(1).and_then(|rest| rest.split("\n  };").next().map(str::to_owned)).expect("they are there");
    let failures: Vec<&str> = failures.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.trim()).collect();
    assert!(failures.len() >= 17, "{failures:?}");
    let tests: Vec<(&str, &str)> = failures.iter().flat_map(|&name| [(name, "a"), (name, "b")]).collect();
    parallel::map(&tests, |(name, last)| {
        let text = format!("{BOTH}builtins.deepSeq [ a.values b.values ] {last}.fail.{name}");
        let (off, _) = outcome(scratch.path(), "off", &text);
        assert_eq!(off.0, Some(1), "{name}: {off:#?}");
        let (other, _) = outcome(scratch.path(), "run", &text);
        assert_eq!(other, off, "{name} of {last}");
    });
}

/// Texts of which something is said, that name the home directory or have variables of their own are read for each file.
#[test]
fn some_texts_are_read_each_time() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let texts = [
        ("warned.nix", "let or = 1; in [ (x: x) or ]", "import"),
        ("home.nix", "[ ~/x ]", "import"),
        ("scoped.nix", "[ variable __curPos ]", "builtins.scopedImport { variable = 1; }"),
        ("plain.nix", "[ ./x <nix/fetchurl.nix> (builtins.tryEval <none>) ]", "import"),
    ];
    for (name, text, import) in texts {
        write(scratch.path(), &format!("a/{name}"), text);
        write(scratch.path(), &format!("b/{name}"), text);
        let text = format!("[ ({import} ./a/{name}) ({import} ./b/{name}) ]");
        let (off, _) = outcome(scratch.path(), "off", &text);
        assert_eq!(off.0, Some(0), "{off:#?}");
        let (other, shared) = outcome(scratch.path(), "run", &text);
        assert_eq!((other, shared), (off, u64::from(name == "plain.nix")), "{name}");
    }
}

/// An answer that was kept for two files with the same bytes is not given when one of them is edited.
#[test]
fn an_edit_of_one_copy_is_seen() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let text = |value: &str| {
        let pads: String = (0..70).map(|n| format!("  pad{n} = {n};\n")).collect();
        format!("{{\n{pads}  x = {value};\n  y = [ ./y (builtins.pathExists ./y) ];\n  z = __curPos.line;\n}}\n")
    };
    let question = "let a = import ./a/f.nix; b = import ./b/f.nix; in [ a.x b.x a.y b.y b.z ]";
    let steps: [&[(&str, &str)]; 7] = [
        &[("a/f.nix", "1"), ("b/f.nix", "1")],
        &[("b/f.nix", "2")],
        &[("a/f.nix", "2")],
        &[("a/f.nix", "1"), ("b/f.nix", "1 /* the first values again */")],
        &[("b/f.nix", "1\n")],
        &[("b/f.nix", "1")],
        &[("b/y", "")],
    ];
    for (step, edits) in steps.iter().enumerate() {
        for (name, value) in *edits {
            write(scratch.path(), name, &if name.ends_with(".nix") { text(value) } else { String::new() });
        }
        let (off, _) = outcome(scratch.path(), "off", question);
        assert_eq!(off.0, Some(0), "{off:#?}");
        for again in 0..2 {
            let (other, shared) = outcome(scratch.path(), "disk", question);
            assert_eq!(other, off, "step {step}, {again}");
            assert!(step > 0 || shared == u64::from(again == 0), "step {step}, {again}: {shared}");
        }
    }
}

#[test]
fn random_copies_cannot_be_told_from_originals() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (count, seed): (u64, u64) = (number("FIRN_TWIN_PROGRAMS", 300), number("FIRN_MEMO_SEED", 1));
    let seeds: Vec<u64> = (0..count).map(|index| seed.wrapping_mul(0x1_0000_0001).wrapping_add(index << 20)).collect();
    let pads: String = (0..64).map(|n| format!("pad{n} = [ c0 {n} ]; ")).collect();
    let shared: u64 = parallel::map(&seeds, |&seed| {
        let mut program = sharing::program(Choices::seeded(seed));
        let scratch = tempfile::tempdir().expect("a scratch directory");
        // In every other program the values of the other file are made late.
        if seed >> 20 & 1 == 1 {
            program.lib = program.lib.replacen("rec {", &format!("rec {{ {pads}"), 1);
        }
        for dir in ["a", "b/c"] {
            for (name, text) in program.files() {
                write(scratch.path(), &format!("{dir}/{name}"), &text);
            }
        }
        let text = "let a = import ./a/main.nix; b = import ./b/c/main.nix; in [ (builtins.tryEval (a == b)) a b ]";
        let (off, _) = outcome(scratch.path(), "off", text);
        let (other, shared) = outcome(scratch.path(), "run", text);
        assert_eq!(other, off, "{:?}", program.files());
        shared
    })
    .into_iter()
    .sum();
    assert!(shared >= count / 2, "{shared} files of {count} programs were shared");
}
