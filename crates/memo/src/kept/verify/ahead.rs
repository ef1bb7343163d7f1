//! Reading on several threads. What nothing vouches for has to be read, and on a machine that has read none of it before
//! that is most of the time that verification takes.

use super::Verifier;
use firn_host::{AbsPath, Observation, Question, Stamp};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Contents and listings that are read one by one before there are threads for the rest: many answers are refused by then.
pub(super) const ALONE: u64 = 16;
/// The least left to read that threads pay for: starting one takes as long as reading four.
const MANY: usize = 48;
/// The most threads: beyond these the kernel's locks on directories are what is waited for.
const MOST: usize = 4;

fn threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST)))
}

impl Verifier<'_> {
    /// Reads the contents and listings among the observations that have to be read. As soon as one is another than it was,
    /// no more are begun: whoever goes through them one by one will not get further than that.
    pub(super) fn read_ahead(&self, observations: &[Observation]) {
        let threads = threads();
        if threads < 2 || observations.len() < MANY {
            return;
        }
        // What state each is in is asked on all threads as well, for the host remembers it.
        let paths: Vec<&AbsPath> = observations.iter().filter_map(|seen| reads(&seen.question)).collect();
        let host = self.host;
        on_threads(threads, paths.len(), |at| host.lstat(paths[at]).is_ok().then_some(()));
        let unread: Vec<(&Observation, Option<Stamp>)> =
            observations.iter().filter_map(|seen| Some((seen, self.unread(&seen.question)?))).collect();
        if unread.len() < MANY {
            return;
        }
        let known: Vec<_> = unread.iter().map(|(seen, _)| self.known(&seen.question)).collect();
        let differs = AtomicBool::new(false);
        let found = on_threads(threads, unread.len(), |at| {
            if differs.load(Ordering::Relaxed) {
                return None;
            }
            let seen = unread[at].0;
            let digest = seen.question.ask_knowing(host, known[at]);
            if digest != Some(seen.digest) {
                differs.store(true, Ordering::Relaxed);
            }
            Some((at, digest))
        });
        for (at, digest) in found {
            let (seen, stamp) = &unread[at];
            self.was_read(&seen.question, stamp.as_ref(), digest);
            self.count(|counts| counts.questions += 1);
            self.judged.answers.borrow_mut().insert(seen.question.clone(), digest);
        }
    }

    /// If this is content or a listing that has to be read: the state it is in, if that can vouch for it from then on.
    fn unread(&self, question: &Question) -> Option<Option<Stamp>> {
        let path = reads(question)?;
        if self.judged.answers.borrow().contains_key(question) {
            return None;
        }
        let stamp = self.settled(path);
        let is_vouched = stamp.as_ref().is_some_and(|stamp| self.witness.vouched(question, stamp).is_some());
        (!is_vouched).then_some(stamp)
    }
}

/// The path, of content or of a listing.
fn reads(question: &Question) -> Option<&AbsPath> {
    match question {
        Question::File(path) | Question::Code(path) | Question::Directory(path) => Some(path),
        _ => None,
    }
}

/// Does something for each number below `count`, in no order, on this thread and others; what came of it, but for nothing.
fn on_threads<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < count));
        numbers.filter_map(&work).collect::<Vec<T>>()
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}
