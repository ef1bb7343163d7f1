//! Asking on several threads. What nothing vouches for has to be read, and on a machine that has read none of it before
//! that is most of the time that verification takes.

use super::{Verifier, Voucher};
use firn_host::{AbsPath, Digest, Host, Observation, Question, Stamp};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Contents and listings that are read one by one before there are threads for the rest: many answers are refused by then.
pub(super) const ALONE: u64 = 16;
/// The fewest questions that threads pay for: starting one takes as long as reading four files.
const MANY: usize = 48;
/// The most threads: beyond these the kernel's locks on directories are what is waited for.
const MOST: usize = 4;
/// Questions that a thread takes at a time.
const STEP: usize = 8;

fn threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST)))
}

/// What came of a question.
struct Asked<'o> {
    seen: &'o Observation,
    digest: Option<Digest>,
    /// Of content and listings that were read: the state they were in, if that can vouch from then on.
    read: Option<Option<Stamp>>,
}

impl Verifier<'_> {
    /// Asks what the host alone can answer. As soon as one answer is another than it was no more are asked: whoever
    /// goes through them one by one will not get further than that.
    pub(super) fn ask_ahead<'o>(&self, observations: impl Iterator<Item = &'o Observation>) {
        let threads = threads();
        if threads < 2 {
            return;
        }
        let answers = self.judged.answers.borrow();
        let unasked = observations.filter(|seen| is_asked_of_host(&seen.question) && !answers.contains_key(&seen.question));
        let unasked: Vec<(&Observation, _)> = unasked.map(|seen| (seen, self.known(&seen.question))).collect();
        drop(answers);
        if unasked.len() < MANY {
            return;
        }
        let (next, differs) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (host, now) = (self.host, self.now);
        let work = |voucher: Option<Box<dyn Voucher + '_>>| {
            let mut done = Vec::new();
            while !differs.load(Ordering::Relaxed) {
                let from = next.fetch_add(STEP, Ordering::Relaxed);
                let Some(part) = unasked.get(from..unasked.len().min(from + STEP)).filter(|part| !part.is_empty()) else { break };
                for &(seen, known) in part {
                    let asked = ask(host, now, voucher.as_deref(), seen, known);
                    if asked.digest != Some(seen.digest) {
                        differs.store(true, Ordering::Relaxed);
                    }
                    done.push(asked);
                }
            }
            done
        };
        let done = std::thread::scope(|scope| {
            let others = (1..threads).map(|_| {
                let voucher = self.witness.voucher();
                scope.spawn(|| work(voucher))
            });
            let others: Vec<_> = others.collect();
            let mut done = work(self.witness.voucher());
            for other in others {
                done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            done
        });
        let mut answers = self.judged.answers.borrow_mut();
        for Asked { seen, digest, read } in done {
            match &read {
                Some(stamp) => self.was_read(&seen.question, stamp.as_ref(), digest),
                None if reads(&seen.question).is_some() => self.count(|counts| counts.vouched += 1),
                None => {}
            }
            self.count(|counts| counts.questions += 1);
            answers.insert(seen.question.clone(), digest);
        }
    }
}

fn ask<'o>(
    host: &dyn Host,
    now: i64,
    voucher: Option<&(dyn Voucher + '_)>,
    seen: &'o Observation,
    known: Option<(Digest, Digest)>,
) -> Asked<'o> {
    let question = &seen.question;
    let Some(path) = reads(question) else { return Asked { seen, digest: question.ask(host), read: None } };
    let stamp = super::settled(host, path, now);
    let vouched = voucher.zip(stamp.as_ref()).and_then(|(voucher, stamp)| voucher.vouched(question, stamp));
    match vouched {
        Some(_) => Asked { seen, digest: vouched, read: None },
        None => Asked { seen, digest: question.ask_knowing(host, known), read: Some(stamp) },
    }
}

/// The path, of content or of a listing.
fn reads(question: &Question) -> Option<&AbsPath> {
    match question {
        Question::File(path) | Question::Code(path) | Question::Outline(path) | Question::Directory(path) => Some(path),
        _ => None,
    }
}

/// Whether the host answers it and nothing else is needed.
fn is_asked_of_host(question: &Question) -> bool {
    use Question::{DirectoryEntry, Exists, ExprPath, Link, Resolve, Stat, Type};
    reads(question).is_some() || matches!(question, DirectoryEntry(..) | Type(_) | Stat(_) | Link(_) | Resolve(..) | ExprPath(_) | Exists(..))
}
