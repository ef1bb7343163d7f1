//! `firn cache push` and `pull`: what is remembered here goes to the remotes, and the other way.

use super::failed;
use crate::failure::Failure;
use crate::program::Invocation;
use crate::settings::remote::Remote;
use firn_cache::{Batch, Disk};
use firn_host::Host;
use firn_memo::kept::Key;
use firn_remote::{Care, Pushed, Remotes, travelling};
use std::time::Duration;

/// Whoever says push or pull waits for it, but not for ever.
const PATIENCE: Duration = Duration::from_secs(600);
/// Answers that are handed over together.
const TOGETHER: usize = 64;

/// Gives what is remembered to the remotes.
pub fn push(invocation: &mut Invocation, disk: &Disk, remote: &Remote, attributes: &[Vec<u8>]) -> Result<(), Failure> {
    let remotes = open(invocation, remote)?;
    if !remotes.has_writable() {
        return Err(Failure::error("all remotes are read-only (?mode=ro)"));
    }
    if !remotes.can_push() {
        return Err(Failure::error("there is no key to sign with: name one with FIRN_SECRET_KEY_FILE or secret-key-file in firn.conf"));
    }
    let reading = disk.read().ok_or_else(|| failed("it cannot be read"))?;
    let (mut total, mut waiting, mut left) = (Pushed::default(), Vec::new(), 0);
    let hand_over = |waiting: &mut Vec<_>, total: &mut Pushed| {
        let pushed = remotes.push(std::mem::take(waiting), Care::Sure, PATIENCE);
        total.new += pushed.new;
        total.known += pushed.known;
        total.bytes += pushed.bytes;
    };
    for question in reading.questions() {
        for found in reading.records(&question) {
            if Key::is_of_parts(&found.record.question) || !is_about(&found.record.question, attributes) {
                continue;
            }
            match travelling(&reading, &found) {
                Some(answer) => waiting.push(answer),
                None => left += 1,
            }
        }
        if waiting.len() >= TOGETHER {
            hand_over(&mut waiting, &mut total);
        }
    }
    hand_over(&mut waiting, &mut total);
    let kept = if left > 0 { format!("; {left} cannot travel") } else { String::new() };
    let kilobytes = total.bytes.div_ceil(1024);
    let text = format!("{} answers pushed ({kilobytes} KB), {} were there already{kept}", total.new, total.known);
    invocation.output.line(text.as_bytes())?;
    outcome(&remotes)
}

/// Takes what the remotes remember.
pub fn pull(invocation: &mut Invocation, disk: &Disk, remote: &Remote, attributes: &[Vec<u8>]) -> Result<(), Failure> {
    let remotes = open(invocation, remote)?;
    if !remotes.believes_anybody() {
        return Err(Failure::error("nobody is believed: name public-keys in firn.conf or FIRN_PUBLIC_KEYS"));
    }
    let reading = disk.read().ok_or_else(|| failed("it cannot be read"))?;
    let (mut questions, silent) = remotes.questions();
    // A remote that does not list what it has is asked for what is known here.
    if !silent.is_empty() {
        questions.extend(reading.questions());
        questions.sort_unstable();
        questions.dedup();
    }
    let before = disk.statistics().map_err(failed)?.records;
    let writer = disk.writer();
    let now = invocation.host.current_time();
    for question in questions {
        let mut lookup = remotes.ask(question);
        let wanted = |question: &[u8]| is_about(question, attributes);
        while let Some(candidate) = lookup.next_of(&|node| reading.node(node).is_some(), &wanted) {
            if let Some(answer) = lookup.take(candidate) {
                writer.write(Batch { answers: vec![answer], now, ..Batch::default() });
            }
        }
    }
    drop(reading);
    writer.finish().map_err(failed)?;
    let after = disk.statistics().map_err(failed)?.records;
    let counts = remotes.counts();
    let new = after.saturating_sub(before);
    let text = format!("{new} new answers, {} KB fetched", counts.bytes_in.div_ceil(1024));
    invocation.output.line(text.as_bytes())?;
    for remote in silent.iter().filter(|_| attributes.is_empty()) {
        let text = format!("'{remote}' does not list what it has: only what is known here was asked for");
        invocation.log.warn(text.as_bytes());
    }
    outcome(&remotes)
}

fn open(invocation: &Invocation, remote: &Remote) -> Result<Remotes, Failure> {
    if remote.urls.is_empty() {
        let message = b"which remote? name one with --remote, FIRN_REMOTE or remotes in firn.conf";
        return Err(Failure::Usage(message.to_vec()));
    }
    let mut settings = remote.settings(&*invocation.host)?;
    settings.deadline = settings.deadline.max(PATIENCE);
    let log = invocation.log.clone();
    Remotes::open(settings, move |text| log.warn(text.as_bytes())).map_err(|trouble| Failure::error(trouble.to_string()))
}

/// Whether a question is about one of these attributes or something below it; about anything, if there are none.
fn is_about(question: &[u8], attributes: &[Vec<u8>]) -> bool {
    let asked = Key::attribute(question).unwrap_or_default();
    let below = |attribute: &Vec<u8>| asked.strip_prefix(&attribute[..]).is_some_and(|rest| matches!(rest, [] | [b'.', ..]));
    attributes.is_empty() || attributes.iter().any(below)
}

/// What was left alone was reported; the exit status says so too.
fn outcome(remotes: &Remotes) -> Result<(), Failure> {
    if remotes.counts().left_alone > 0 { Err(Failure::Exit(1)) } else { Ok(()) }
}
