//! `firn profile`: runs another command and tells where its evaluation spent the time.

use super::{eval, help, instantiate};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::profile::Request;
use crate::program::Invocation;
use firn_eval::Grain;
use std::time::Duration;

/// How often a sampled profile looks, a second, where the user does not say.
const FREQUENCY: u64 = 999;

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut request = Request { grain: sampled(FREQUENCY), collapsed: None, svg: None, rows: 25 };
    while let Some(word) = words.next_word() {
        match word {
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "profile"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => match &flag[..] {
                b"--exact" => request.grain = Grain::Exact,
                b"--sampled" => request.grain = sampled(FREQUENCY),
                b"--frequency" => request.grain = sampled(number(&flag, &mut words)?),
                b"--rows" => request.rows = number(&flag, &mut words)? as usize,
                b"--collapsed" => request.collapsed = words.values(&flag).map(|[file]| Some(file))?,
                b"--svg" => request.svg = words.values(&flag).map(|[file]| Some(file))?,
                _ if flags.read(&flag, &mut words)? => {}
                _ => return Err(Failure::usage("unrecognised flag '", &flag, "'")),
            },
            Word::Argument(command) => {
                flags.profile = Some(request);
                return match &command[..] {
                    b"eval" => eval::run(invocation, words, flags),
                    b"instantiate" => instantiate::run(invocation, words, flags),
                    _ => Err(Failure::usage("'", &command, "' is not a command that can be profiled: eval or instantiate")),
                };
            }
        }
    }
    Err(Failure::Usage(b"a command to profile is needed: eval or instantiate, and its arguments".to_vec()))
}

fn sampled(frequency: u64) -> Grain {
    Grain::Sampled(Duration::from_nanos(1_000_000_000 / frequency.max(1)))
}

fn number(flag: &[u8], words: &mut Words) -> Result<u64, Failure> {
    let [text] = words.values(flag)?;
    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
    let after = [b"' takes a number above zero, not '", &text[..], b"'"].concat();
    number.ok_or_else(|| Failure::usage("'", flag, &String::from_utf8_lossy(&after)))
}
