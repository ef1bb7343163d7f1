//! The cases of Nix's language suite and how one is run and judged, after the suite's own driver script: same directory,
//! same environment, same flags. Used by the `conformance` test.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::outcome::message;
use crate::harness::text::{diff, plain, readable};
use crate::harness::tool::{self, Run, Tool};

/// The four kinds of case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Must parse; the printed syntax tree is compared.
    ParseOkay,
    /// Must not parse; the error is compared.
    ParseFail,
    /// Must evaluate; value and warnings are compared.
    EvalOkay,
    /// Must not evaluate; the error with its trace is compared.
    EvalFail,
}

/// The settings that the suite's own set-up writes, as far as they change what is compared.
const SETTINGS: &str = "experimental-features = nix-command flakes\nshow-trace = true\n";

/// All kinds, in the order of reports.
pub const KINDS: [Kind; 4] = [Kind::ParseOkay, Kind::ParseFail, Kind::EvalOkay, Kind::EvalFail];

impl Kind {
    /// How the names of its cases begin.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::ParseOkay => "parse-okay",
            Kind::ParseFail => "parse-fail",
            Kind::EvalOkay => "eval-okay",
            Kind::EvalFail => "eval-fail",
        }
    }

    fn exit_code(self) -> i32 {
        match self {
            Kind::ParseOkay | Kind::EvalOkay => 0,
            Kind::ParseFail | Kind::EvalFail => 1,
        }
    }
}

/// How closely an outcome is compared, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The exit code and, where the case must succeed, the standard output.
    Exit,
    /// The text after `error:`.
    Message,
    /// Every byte of standard error too.
    Full,
}

impl Level {
    /// The level's name in lists and reports.
    pub fn word(self) -> &'static str {
        match self {
            Level::Exit => "exit",
            Level::Message => "message",
            Level::Full => "full",
        }
    }

    /// The level of that name.
    pub fn named(word: &str) -> Option<Level> {
        [Level::Exit, Level::Message, Level::Full].into_iter().find(|level| level.word() == word)
    }
}

/// One case.
#[derive(Debug)]
pub struct Case {
    /// File name without `.nix`.
    pub name: String,
    /// What is expected of it.
    pub kind: Kind,
}

/// How a case went.
#[derive(Debug)]
pub struct Verdict {
    /// The first level at which it fails; `None` if it passes.
    pub fails_at: Option<Level>,
    /// Expected against actual output, for a reader.
    pub difference: String,
}

/// The cases below `root/lang`, by kind and name. A case whose expectation the suite has disabled is left out.
pub fn find(root: &Path) -> Vec<Case> {
    let lang = root.join("lang");
    let entries = fs::read_dir(&lang).unwrap_or_else(|error| panic!("{}: {error}", lang.display()));
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.expect("a readable directory entry").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".nix").map(str::to_owned))
        .collect();
    names.sort();
    let of_kind = |kind: Kind| {
        let prefix = format!("{}-", kind.prefix());
        names.iter().filter(move |name| name.starts_with(&prefix)).map(move |name| Case { name: name.clone(), kind })
    };
    let disabled = |case: &Case| lang.join(format!("{}.exp-disabled", case.name)).exists();
    KINDS.into_iter().flat_map(of_kind).filter(|case| !disabled(case)).collect()
}

/// Runs one case and compares it with what the suite expects.
pub fn judge(tool: &Tool, root: &Path, case: &Case) -> Verdict {
    let expected_file = |extension: &str| root.join("lang").join(format!("{}.{extension}", case.name));
    let as_xml = case.kind == Kind::EvalOkay && expected_file("exp.xml").exists();
    let run = run_case(tool, root, case, as_xml);
    let (stdout, stderr) = normalise(tool, root, case, &run);
    // An absent file means that nothing is expected there.
    let expected = |extension: &str| readable(&fs::read(expected_file(extension)).unwrap_or_default());
    let succeeds = case.kind.exit_code() == 0;
    let out_expected = if as_xml { expected("exp.xml") } else { expected("exp") };
    // The driver keeps the standard error of an XML case out of the comparison, and the standard output of a failing one.
    let err_expected = if as_xml { stderr.clone() } else { expected("err.exp") };

    let mut difference = String::new();
    let right_code = run.code == Some(case.kind.exit_code());
    if !right_code {
        difference += &format!("    exit code {:?}, expected {}\n", run.code, case.kind.exit_code());
    }
    let right_value = !succeeds || out_expected == stdout;
    if !right_value {
        difference += &format!("  stdout:\n{}", diff(&out_expected, &stdout));
    }
    if err_expected != stderr {
        difference += &format!("  stderr:\n{}", diff(&err_expected, &stderr));
    }
    let fails_at = if !right_code || !right_value {
        Some(Level::Exit)
    } else if message(&err_expected) != message(&stderr) {
        Some(Level::Message)
    } else if err_expected != stderr {
        Some(Level::Full)
    } else {
        None
    };
    Verdict { fails_at, difference }
}

fn run_case(tool: &Tool, root: &Path, case: &Case, as_xml: bool) -> Run {
    let mut command = tool.command(root);
    command.env("TEST_VAR", "foo").env("NIX_CONFIG", SETTINGS);
    let file = format!("lang/{}.nix", case.name);
    let flags = fs::read_to_string(root.join(format!("lang/{}.flags", case.name))).ok();
    match case.kind {
        Kind::ParseOkay | Kind::ParseFail => {
            command.args(["--parse", "-"]);
            let text = fs::read(root.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            return tool::run(command, &text);
        }
        Kind::EvalFail => {
            let flags = flags.unwrap_or_else(|| "--eval --strict --show-trace".to_owned());
            let words = flags.lines().filter_map(|line| line.split('#').next()).flat_map(str::split_whitespace);
            command.args(words).arg(&file);
        }
        Kind::EvalOkay if as_xml => {
            command.args(["--eval", "--xml", "--no-location", "--strict"]).arg(&file);
        }
        Kind::EvalOkay => {
            command.env("NIX_PATH", "lang/dir3:lang/dir4").env("HOME", "/fake-home");
            let first_line = flags.as_deref().and_then(|flags| flags.lines().next()).unwrap_or_default();
            command.args(first_line.split_whitespace()).args(["--eval", "--strict"]).arg(&file);
        }
    }
    tool::run(command, b"")
}

/// The output as the suite's driver compares it: its directory written `/pwd`, then the case's own post-processing.
fn normalise(tool: &Tool, root: &Path, case: &Case, run: &Run) -> (String, String) {
    let here = root.to_string_lossy();
    let (mut out, mut err) = (readable(&run.stdout), plain(&readable(&run.stderr)));
    if matches!(case.kind, Kind::EvalOkay | Kind::EvalFail) {
        (out, err) = (out.replace(&*here, "/pwd"), err.replace(&*here, "/pwd"));
    }
    // The driver calls the tool by its bare name, which usage errors repeat.
    let called = [&b"Try '"[..], tool.program().as_os_str().as_encoded_bytes()].concat();
    let called = String::from_utf8_lossy(&called).into_owned();
    for suffix in [" instantiate --help'", " --help'"] {
        err = err.replace(&format!("{called}{suffix}"), "Try 'nix-instantiate --help'");
    }
    let script = root.join(format!("lang/{}.postprocess", case.name));
    if script.exists() { postprocess(&script, case, out, err) } else { (out, err) }
}

fn postprocess(script: &Path, case: &Case, out: String, err: String) -> (String, String) {
    let dir = std::env::temp_dir().join(format!("firn-conformance-{}-{}", std::process::id(), case.name));
    fs::create_dir_all(&dir).expect("the temporary directory is writable");
    let stem = dir.join(&case.name);
    let file = |extension: &str| {
        let mut name = OsString::from(&stem);
        name.push(extension);
        PathBuf::from(name)
    };
    fs::write(file(".out"), &out).expect("the temporary directory is writable");
    fs::write(file(".err"), &err).expect("the temporary directory is writable");
    let status = Command::new("bash").arg(script).arg(&stem).status().expect("bash runs the suite's own script");
    assert!(status.success(), "{} failed", script.display());
    let result = (fs::read(file(".out")), fs::read(file(".err")));
    drop(fs::remove_dir_all(&dir));
    (readable(&result.0.unwrap_or_default()), readable(&result.1.unwrap_or_default()))
}
