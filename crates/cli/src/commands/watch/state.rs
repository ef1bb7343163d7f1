//! What one process of `firn watch` leaves to the next.
#![allow(clippy::disallowed_methods, reason = "the file and the program are this run's own, nothing evaluates by them")]

use crate::failure::Failure;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;

/// Names the file for the next process.
const VARIABLE: &str = "FIRN_WATCH_RESUME";

/// What was printed last, and whether the last attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub text: Option<Vec<u8>>,
    pub failed: bool,
}

impl State {
    fn to_bytes(&self) -> Vec<u8> {
        let mark = match (&self.text, self.failed) {
            (None, _) => b'0',
            (Some(_), false) => b'1',
            (Some(_), true) => b'2',
        };
        [&[mark], self.text.as_deref().unwrap_or_default()].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<State> {
        let (mark, text) = bytes.split_first()?;
        Some(match mark {
            b'0' => State { text: None, failed: true },
            b'1' => State { text: Some(text.to_vec()), failed: false },
            b'2' => State { text: Some(text.to_vec()), failed: true },
            _ => return None,
        })
    }

    /// What an earlier process of this run left; nothing in the first.
    pub fn take() -> Result<State, Failure> {
        let Some(name) = std::env::var_os(VARIABLE) else { return Ok(State::default()) };
        let bad = || Failure::error(format!("'{VARIABLE}' does not name the state of a run: {}", name.to_string_lossy()));
        let bytes = std::fs::read(&name).map_err(|_| bad())?;
        let _ = std::fs::remove_file(&name);
        State::from_bytes(&bytes).ok_or_else(bad)
    }

    /// Becomes a new process that goes on from here. Returns only if that fails.
    pub fn go_on(&self) -> Failure {
        let failed = |what: &str, error: std::io::Error| {
            Failure::error(format!("cannot evaluate again: {what}: {}", firn_host::Errno::from(error)))
        };
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => return failed("finding this program", error),
        };
        let file = std::env::temp_dir().join(format!("firn-watch-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let written = options.write(true).create_new(true).mode(0o600).open(&file).and_then(|mut f| f.write_all(&self.to_bytes()));
        if let Err(error) = written {
            return failed("writing what was printed", error);
        }
        let mut arguments = std::env::args_os();
        let mut command = std::process::Command::new(program);
        if let Some(name) = arguments.next() {
            command.arg0(name);
        }
        let error = command.args(arguments).env(VARIABLE, &file).exec();
        let _ = std::fs::remove_file(&file);
        failed("starting this program again", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_comes_back() {
        for state in [
            State { text: Some(b"x\n".to_vec()), failed: false },
            State { text: Some(b"".to_vec()), failed: true },
            State { text: None, failed: true },
        ] {
            assert_eq!(State::from_bytes(&state.to_bytes()), Some(state));
        }
        assert_eq!(State::from_bytes(b""), None);
        assert_eq!(State::from_bytes(b"x"), None);
    }
}
