//! `NIX_SHOW_STATS`: what the machine counted, as JSON on standard error or in the file that `NIX_SHOW_STATS_PATH` names.

use crate::failure::Failure;
use crate::log::Log;
use crate::memory::Outcome;
use crate::session::Session;
use firn_eval::Machine;
use firn_host::Host;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// As [`print`], with what became of the questions that memory was asked.
pub fn print_with_memory(session: &Session, host: &dyn Host, log: &Log) -> Result<(), Failure> {
    let outcome = session.memory.as_ref().map(crate::memory::Memory::outcome);
    print_all(&session.machine, outcome, host, log)
}

/// Prints the statistics if the user asked for them.
pub fn print(machine: &Machine, host: &dyn Host, log: &Log) -> Result<(), Failure> {
    print_all(machine, None, host, log)
}

fn print_all(machine: &Machine, outcome: Option<Outcome>, host: &dyn Host, log: &Log) -> Result<(), Failure> {
    if host.env(b"NIX_SHOW_STATS").is_none_or(|value| &*value == b"0") {
        return Ok(());
    }
    let mut text = render(machine, cpu_time());
    if let Some(outcome) = outcome {
        text.truncate(text.trim_end_matches(['}', '\n']).len());
        text.push_str(&format!("\n  }},\n  \"memo\": {{\n    \"disk\": {}\n  }}\n}}", disk(&outcome)));
    }
    match host.env(b"NIX_SHOW_STATS_PATH").filter(|path| &**path != b"-") {
        None => log.line(text.as_bytes()),
        Some(path) => {
            let path = std::ffi::OsStr::from_bytes(&path);
            if let Err(error) = std::fs::write(path, text + "\n") {
                let shown = path.to_string_lossy();
                return Err(Failure::error(format!("writing to \"{shown}\": {}", firn_host::Errno::from(error))));
            }
        }
    }
    Ok(())
}

/// What memory on disk did.
fn disk(outcome: &Outcome) -> String {
    let Outcome { hits, misses, kept, verified, spent, saved } = outcome;
    format!(
        "{{\n      \"hits\": {hits},\n      \"misses\": {misses},\n      \"kept\": {kept},\n      \
         \"questionsVerified\": {},\n      \"vouchedByState\": {},\n      \"read\": {},\n      \
         \"microsecondsSpent\": {spent},\n      \"microsecondsSaved\": {saved}\n    }}",
        verified.questions, verified.vouched, verified.read
    )
}

/// Seconds of user time that this process has taken.
fn cpu_time() -> f64 {
    use unix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let time = usage.user_time();
        time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
    })
}

/// The JSON: Nix's names where firn counts the same thing.
fn render(machine: &Machine, cpu: f64) -> String {
    let count = |name: &str| machine.stats.all().iter().find(|(n, _)| *n == name).map_or(0, |(_, n)| *n);
    let mut out = String::new();
    let _ = write!(
        out,
        "{{\n  \"cpuTime\": {cpu},\n  \"gc\": {{\n    \"heapSize\": {heap},\n    \"totalBytes\": {heap}\n  }},\n  \
         \"list\": {{\n    \"concats\": {}\n  }},\n  \"nrForces\": {},\n  \"nrFiles\": {},\n  \"nrFunctionCalls\": {},\n  \
         \"nrLookups\": {},\n  \"nrOpUpdateValuesCopied\": {},\n  \"nrOpUpdates\": {},\n  \"nrPrimOpCalls\": {},\n  \
         \"nrThunks\": {},\n  \"time\": {{\n    \"cpu\": {cpu}\n  }}\n}}",
        count("list_concats"),
        count("forces"),
        count("files"),
        count("calls"),
        count("lookups"),
        count("update_copies"),
        count("updates"),
        count("primop_calls"),
        count("thunks"),
        heap = firn_value::heap_bytes(),
    );
    out
}
