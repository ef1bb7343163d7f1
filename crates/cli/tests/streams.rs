//! What goes to standard output and what to standard error: traces, warnings and error contexts (spec E8). The table
//! holds the behaviour of Nix 2.35, with programs of our own.
#![allow(
    clippy::disallowed_methods,
    reason = "a test looks at files and the environment itself; the door is for the evaluator"
)]

mod harness;

use std::path::Path;

use harness::text::{plain, readable};
use harness::tool::{self, Tool};

/// One command line and what must be seen of it.
struct Check {
    flags: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    program: &'static str,
    code: i32,
    stdout: &'static str,
    stderr_has: &'static [&'static str],
    stderr_lacks: &'static [&'static str],
}

const PLAIN: Check = Check {
    flags: &[],
    environment: &[],
    program: "null",
    code: 0,
    stdout: "null\n",
    stderr_has: &[],
    stderr_lacks: &["error:"],
};

const FAILS: Check = Check { code: 1, stdout: "", stderr_has: &["error:"], stderr_lacks: &[], ..PLAIN };

const CHECKS: &[Check] = &[
    Check { program: "builtins.trace \"seen\" 7", stdout: "7\n", stderr_has: &["trace: seen"], ..PLAIN },
    Check {
        program: "builtins.trace { a = 1; b = [ 2 ]; } 7",
        stdout: "7\n",
        stderr_has: &["trace: { a = 1; b ="],
        ..PLAIN
    },
    Check { program: "builtins.addErrorContext \"the context\" 7", stdout: "7\n", stderr_lacks: &["context"], ..PLAIN },
    Check {
        flags: &["--show-trace"],
        program: "builtins.addErrorContext \"the context\" 7",
        stdout: "7\n",
        stderr_lacks: &["context"],
        ..PLAIN
    },
    Check {
        flags: &["--show-trace"],
        program: "builtins.addErrorContext \"50 % of %s\" (throw \"broken\")",
        stderr_has: &["50 % of %s", "error: broken"],
        ..FAILS
    },
    Check {
        flags: &["--trace-verbose"],
        program: "builtins.traceVerbose \"seen\" 7",
        stdout: "7\n",
        stderr_has: &["trace: seen"],
        ..PLAIN
    },
    Check { program: "builtins.traceVerbose \"unseen\" 7", stdout: "7\n", stderr_lacks: &["unseen"], ..PLAIN },
    Check {
        program: "let s = builtins.trace { inner = s; } 7; in s",
        stdout: "7\n",
        stderr_has: &["trace: { inner = «potential infinite recursion»; }"],
        ..PLAIN
    },
    Check {
        program: "let s = { again = s; now = builtins.trace s 7; }; in s.now",
        stdout: "7\n",
        stderr_has: &["trace: { again = «repeated»; now = «potential infinite recursion»; }"],
        ..PLAIN
    },
    Check { program: "builtins.warn \"careful\" 7", stdout: "7\n", stderr_has: &["warning: careful"], ..PLAIN },
    Check { program: "builtins.warn { } 7", stderr_has: &["expected a string but found a set"], ..FAILS },
    Check { flags: &["--abort-on-warn"], program: "builtins.warn \"careful\" 7", stderr_has: &["careful"], ..FAILS },
    Check {
        environment: &[("NIX_ABORT_ON_WARN", "1")],
        program: "builtins.addErrorContext \"while being careful\" (builtins.warn \"careful\" 7)",
        stderr_has: &["while being careful"],
        ..FAILS
    },
    Check { program: "throw \"broken\"", stderr_has: &["error: broken"], ..FAILS },
    Check {
        program: "builtins.trace \"before\" (throw \"broken\")",
        stderr_has: &["trace: before", "error: broken"],
        ..FAILS
    },
    Check {
        flags: &["--xml"],
        program: "{ a = 1; }",
        stdout: "<?xml version='1.0' encoding='utf-8'?>\n<expr>\n  <attrs>\n    <attr column=\"3\" line=\"1\" name=\"a\">\n      <int value=\"1\" />\n    </attr>\n  </attrs>\n</expr>\n",
        ..PLAIN
    },
    Check {
        flags: &["--xml", "--no-location"],
        program: "[ \"x\" ]",
        stdout: "<?xml version='1.0' encoding='utf-8'?>\n<expr>\n  <list>\n    <string value=\"x\" />\n  </list>\n</expr>\n",
        ..PLAIN
    },
    Check {
        flags: &["--strict", "--json"],
        program: "{ b = [ null true ]; a = \"x\"; }",
        stdout: "{\"a\":\"x\",\"b\":[null,true]}\n",
        ..PLAIN
    },
    Check { flags: &["--raw"], program: "\"no newline\"", stdout: "no newline", ..PLAIN },
];

#[test]
fn streams_are_those_of_nix() {
    let Some(firn) = Tool::firn() else {
        eprintln!("SKIPPED: package firn has no binary yet and FIRN_BIN is not set");
        return;
    };
    let wrong: Vec<String> = CHECKS.iter().filter_map(|check| judge(&firn, check)).collect();
    assert!(wrong.is_empty(), "{} of {} checks fail:\n\n{}", wrong.len(), CHECKS.len(), wrong.join("\n"));
}

fn judge(firn: &Tool, check: &Check) -> Option<String> {
    let mut command = firn.command(Path::new("/"));
    command.arg("--eval").args(check.flags).args(["-E", check.program]).envs(check.environment.iter().copied());
    let run = tool::run(command, b"");
    let (stdout, stderr) = (readable(&run.stdout), plain(&readable(&run.stderr)));
    let right = run.code == Some(check.code)
        && stdout == check.stdout
        && check.stderr_has.iter().all(|text| stderr.contains(text))
        && !check.stderr_lacks.iter().any(|text| stderr.contains(text));
    let shown = || {
        format!(
            "{:?} {}\n  exit {:?}\n  stdout {stdout:?}\n  stderr {stderr:?}\n",
            check.flags, check.program, run.code
        )
    };
    (!right).then(shown)
}
