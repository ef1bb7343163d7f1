//! The two tools under comparison, firn and the real `nix-instantiate`, run as processes in a clean environment.
//! Invariant: nothing of the caller's environment (settings, search path, home, store) reaches a run.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A run that takes longer is killed and counts as a crash.
const DEADLINE: Duration = Duration::from_secs(60);

/// A program that takes the command line of `nix-instantiate`.
#[derive(Clone, Debug)]
pub struct Tool {
    program: PathBuf,
    leading: Vec<OsString>,
}

/// What one process did.
#[derive(Clone, Debug)]
pub struct Run {
    /// The exit code; `None` after a signal or the deadline.
    pub code: Option<i32>,
    /// Everything written to standard output.
    pub stdout: Vec<u8>,
    /// Everything written to standard error.
    pub stderr: Vec<u8>,
}

impl Tool {
    /// firn's binary: `FIRN_BIN` if set (any tool named `nix-instantiate` is taken as that tool), else the one Cargo built
    /// for this test. `None` only while the package has no binary.
    pub fn firn() -> Option<Tool> {
        let program = std::env::var_os("FIRN_BIN").or_else(|| option_env!("CARGO_BIN_EXE_firn").map(OsString::from))?;
        let program = PathBuf::from(program);
        let direct = program.file_name() == Some(OsStr::new("nix-instantiate"));
        let leading = if direct { vec![] } else { vec![OsString::from("instantiate")] };
        Some(Tool { program, leading })
    }

    /// The real Nix: `FIRN_ORACLE` if set (empty: none), else `nix-instantiate` on `PATH`.
    pub fn oracle() -> Option<Tool> {
        let program = match std::env::var_os("FIRN_ORACLE") {
            Some(named) if named.is_empty() => return None,
            Some(named) => PathBuf::from(named),
            None => on_path("nix-instantiate")?,
        };
        Some(Tool { program, leading: vec![] })
    }

    /// The file that is run.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The version the tool reports: the last word of `--version`.
    pub fn version(&self) -> String {
        let mut command = self.command(Path::new("/"));
        command.arg("--version");
        let text = String::from_utf8_lossy(&run(command, b"").stdout).into_owned();
        text.split_whitespace().next_back().unwrap_or_default().to_owned()
    }

    /// The tool as a command in directory `cwd`, in the clean environment.
    pub fn command(&self, cwd: &Path) -> Command {
        let mut command = clean_command(&self.program, cwd);
        command.args(&self.leading);
        command
    }

    /// As [`Tool::eval`], but only to weak head normal form.
    #[allow(dead_code, reason = "not every test needs it")]
    pub fn eval_lazily(&self, cwd: &Path, program: &str, flags: &[&str]) -> Run {
        let mut command = self.command(cwd);
        command.arg("--eval").args(flags).arg("-E").arg(program);
        run(command, b"")
    }

    /// Evaluates `program` in `cwd` with `--eval --strict` and `flags`.
    pub fn eval(&self, cwd: &Path, program: &str, flags: &[&str]) -> Run {
        let mut command = self.command(cwd);
        command.args(["--eval", "--strict"]).args(flags).arg("-E").arg(program);
        run(command, b"")
    }
}

/// A command in directory `cwd` with nothing inherited but `PATH`, no settings and no store.
pub fn clean_command(program: &Path, cwd: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(cwd).env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let state = std::env::temp_dir().join("firn-proof-state");
    command
        .env("HOME", "/homeless")
        .env("NIX_REMOTE", "dummy://")
        .env("NIX_STORE_DIR", "/nix/store")
        .env("NIX_CONF_DIR", "/nonexistent")
        .env("NIX_USER_CONF_FILES", "")
        .env("NIX_STATE_DIR", state.join("var"))
        .env("XDG_CACHE_HOME", state.join("cache"))
        .env("NO_COLOR", "1");
    // Nothing is remembered from one program to the next, unless that is what is tried (`FIRN_TEST_MEMO=disk`).
    command.env("FIRN_MEMO", std::env::var_os("FIRN_TEST_MEMO").unwrap_or_else(|| "off".into())).env("FIRN_MEMO_LEAST", "0");
    command
}

/// Runs `command` to its end, with `input` on its standard input.
pub fn run(command: Command, input: &[u8]) -> Run {
    run_within(command, input, DEADLINE)
}

/// As [`run`], with a deadline of the caller's.
///
/// # Panics
/// If the program cannot be started: then there is nothing to compare.
pub fn run_within(mut command: Command, input: &[u8], deadline: Duration) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut out = child.stdout.take().expect("stdout is piped");
    let mut err = child.stderr.take().expect("stderr is piped");
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || read_all(&mut out));
        let stderr = scope.spawn(move || read_all(&mut err));
        // A tool that fails before reading its input closes the pipe; that is its right.
        scope.spawn(move || drop(stdin.write_all(input)));
        let started = Instant::now();
        let mut pause = Duration::from_micros(500);
        let code = loop {
            if let Some(status) = child.try_wait().expect("a started child can be waited for") {
                break status.code();
            }
            if started.elapsed() > deadline {
                drop(child.kill());
                drop(child.wait());
                break None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        };
        Run {
            code,
            stdout: stdout.join().expect("the reader of stdout does not panic"),
            stderr: stderr.join().expect("the reader of stderr does not panic"),
        }
    })
}

fn read_all(from: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A pipe broken half-way leaves what came before; the comparison then says what is missing.
    drop(from.read_to_end(&mut bytes));
    bytes
}

fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|file| file.is_file())
}
