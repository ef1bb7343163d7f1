//! Running a tool once, with what it cost; and two tools alternately.

use crate::programs::Program;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// A program with the command line of `nix-instantiate`.
#[derive(Debug)]
pub struct Tool {
    /// The file.
    pub program: PathBuf,
    leading: Vec<&'static str>,
}

/// What a program cost: the smallest of several runs.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// User time, or the wall clock for what is too short.
    pub time: Duration,
    /// The wall clock, which feels what else the machine does.
    pub wall: Duration,
    /// Peak resident memory in bytes.
    pub memory: u64,
}

impl Tool {
    /// firn in the role of `nix-instantiate`.
    pub fn firn(program: &Path) -> Tool {
        Tool { program: program.to_path_buf(), leading: vec!["instantiate"] }
    }

    /// The real one.
    pub fn nix(program: &Path) -> Tool {
        Tool { program: program.to_path_buf(), leading: vec![] }
    }

    /// A command for these words, with nothing of the caller's settings, below other words (a profiler) if any.
    pub fn command(&self, below: &[&str], words: &[String]) -> Command {
        let mut command = match below.split_first() {
            None => Command::new(&self.program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        let state = std::env::temp_dir().join("firn-bench-state");
        command.args(&self.leading).args(words).env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command
            .env("HOME", "/homeless")
            // Nothing is remembered from one run to the next.
            .env("FIRN_MEMO", "off")
            .env("NIX_REMOTE", "dummy://")
            .env("NIX_STORE_DIR", "/nix/store")
            .env("NIX_CONF_DIR", "/nonexistent")
            .env("NIX_USER_CONF_FILES", "")
            .env("NIX_STATE_DIR", state.join("var"))
            .env("XDG_CACHE_HOME", state.join("cache"))
            .stdin(Stdio::null());
        command
    }

    /// Runs once: cost and standard output.
    fn run(&self, program: &Program) -> Result<(Cost, Vec<u8>), String> {
        let mut command = self.command(&[], &program.words);
        let started = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        let mut out = Vec::new();
        child.stdout.take().expect("stdout is piped").read_to_end(&mut out).map_err(|error| error.to_string())?;
        let used = child.wait4().map_err(|error| error.to_string())?;
        let wall = started.elapsed();
        if !used.status.success() {
            return Err(format!("{} fails on {}: {}", self.program.display(), program.name, used.status));
        }
        let time = if program.short { wall } else { used.rusage.utime };
        Ok((Cost { time, wall, memory: used.rusage.maxrss }, out))
    }
}

/// Runs both tools alternately, or firn alone; the smallest cost of each. Their answers must be equal where the program
/// says so.
pub fn compare(
    firn: &Tool,
    nix: Option<&Tool>,
    program: &Program,
    times: usize,
) -> Result<(Cost, Option<Cost>), String> {
    let times = if program.short { times * 10 } else { times };
    let smaller = |x: Cost, y: Option<Cost>| {
        let y = y.unwrap_or(x);
        Cost { time: x.time.min(y.time), wall: x.wall.min(y.wall), memory: x.memory.min(y.memory) }
    };
    let (mut best, mut beside) = (None, None);
    for _ in 0..times {
        let (cost, answer) = firn.run(program)?;
        best = Some(smaller(cost, best));
        if let Some(nix) = nix {
            let (cost, expected) = nix.run(program)?;
            if program.same && answer != expected {
                return Err(format!("firn and Nix answer differently on {}", program.name));
            }
            beside = Some(smaller(cost, beside));
        }
    }
    best.map(|best| (best, beside)).ok_or_else(|| "no runs".to_owned())
}
