//! `Remotes`: the remotes of a run, in the order in which they are asked, and what they may cost.
//!
//! Each remote has one deadline for the whole run. Time that is spent on it and brings nothing counts against it, time
//! that its answers save counts for it; a remote that fails, or whose time is used up, is reported once and left alone
//! (spec L3.2). What was wrong with what it gave is counted and reported once, and the next candidate is tried (M6).

use crate::address::{Address, Mode};
use crate::counts::{Counts, Wrong};
use crate::key::{Keyring, SecretKey};
use crate::place::{Place, Trouble};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Which remotes there are, and whom to believe.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The remotes.
    pub addresses: Vec<Address>,
    /// Whose signatures are believed.
    pub keys: Keyring,
    /// The key that signs what is pushed; what it has signed is believed too.
    pub secret: Option<SecretKey>,
    /// What a remote may cost in a run, at the most.
    pub deadline: Duration,
}

/// What a remote may cost unless said otherwise.
pub const DEADLINE: Duration = Duration::from_secs(3);

/// The remotes of a run.
pub struct Remotes {
    runtime: Arc<Runtime>,
    pub(crate) reached: Vec<Reached>,
    pub(crate) keys: Keyring,
    pub(crate) secret: Option<SecretKey>,
    deadline: Duration,
    counts: RefCell<Counts>,
    report: Box<dyn Fn(&str) + Send>,
}

/// A remote and what it has cost.
pub(crate) struct Reached {
    pub(crate) place: Place,
    left_alone: Cell<bool>,
    told_wrong: Cell<bool>,
    /// Time that brought nothing.
    lost: Cell<Duration>,
}

impl Remotes {
    /// Prepares the remotes. `report` is told, once each, which are left alone and why.
    pub fn open(settings: Settings, report: impl Fn(&str) + Send + 'static) -> Result<Remotes, Trouble> {
        let Settings { mut addresses, mut keys, secret, deadline } = settings;
        // Two of one priority stay in the order in which they are named.
        addresses.sort_by_key(|address| address.priority);
        if let Some(secret) = &secret {
            keys.add(secret.public());
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Trouble::Failed(error.to_string()))?;
        let mut counts = Counts::default();
        let mut reach = |address: &Address| match Place::open(address) {
            Ok(place) => Some(Reached { place, left_alone: Cell::new(false), told_wrong: Cell::new(false), lost: Cell::default() }),
            Err(trouble) => {
                counts.left_alone += 1;
                report(&left_alone(&address.shown, &trouble));
                None
            }
        };
        let reached = {
            let _inside = runtime.enter();
            addresses.iter().filter_map(&mut reach).collect()
        };
        Ok(Remotes { runtime: Arc::new(runtime), reached, keys, secret, deadline, counts: RefCell::new(counts), report: Box::new(report) })
    }

    /// What came of it so far.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Whether anybody's signature is believed: otherwise there is nothing to ask for.
    pub fn believes_anybody(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether there is a remote to write to, and a key to sign with.
    pub fn can_push(&self) -> bool {
        self.secret.is_some() && self.reached.iter().any(Reached::takes)
    }

    /// Whether there is a remote to write to.
    pub fn has_writable(&self) -> bool {
        self.reached.iter().any(Reached::takes)
    }

    pub(crate) fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut self.counts.borrow_mut());
    }

    /// Waits for a remote, no longer than what is left of its deadline. None: it failed, and is left alone from now on.
    pub(crate) fn wait<T>(&self, reached: &Reached, work: impl Future<Output = Result<T, Trouble>>) -> Option<T> {
        if reached.left_alone.get() {
            return None;
        }
        let began = Instant::now();
        let done = self.block_on(self.left(reached), work);
        self.spend(reached, began.elapsed());
        match done {
            Ok(done) => Some(done),
            Err(trouble) => {
                self.leave_alone(reached, &trouble);
                None
            }
        }
    }

    /// What requests run on, for a thread that waits for them.
    pub(crate) fn runtime(&self) -> Arc<Runtime> {
        self.runtime.clone()
    }

    /// What is left of a remote's deadline.
    pub(crate) fn left(&self, reached: &Reached) -> Duration {
        self.deadline.saturating_sub(reached.lost.get())
    }

    /// Time was spent on a remote.
    pub(crate) fn spend(&self, reached: &Reached, spent: Duration) {
        reached.lost.set(reached.lost.get() + spent);
        self.count(|counts| counts.waited += spent.as_micros() as u64);
    }

    /// Runs work to its end or to a limit.
    pub(crate) fn block_on<T>(&self, limit: Duration, work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
        self.runtime.block_on(async { tokio::time::timeout(limit, work).await.unwrap_or(Err(Trouble::Slow)) })
    }

    pub(crate) fn leave_alone(&self, reached: &Reached, trouble: &Trouble) {
        if !reached.left_alone.replace(true) {
            self.count(|counts| counts.left_alone += 1);
            (self.report)(&left_alone(&reached.place.shown, trouble));
        }
    }

    /// Notes what was wrong with something that a remote gave. The first of each remote is reported.
    pub(crate) fn blame(&self, reached: &Reached, wrong: Wrong) {
        self.count(|counts| counts.note(wrong));
        // Answers that others signed, or that are being written just now, are nothing to worry about.
        if !matches!(wrong, Wrong::UnknownKey | Wrong::Incomplete) && !reached.told_wrong.replace(true) {
            (self.report)(&format!("the remote '{}' gave something that {wrong}; it is not used", reached.place.shown));
        }
    }

    /// Time that an answer of a remote saved counts for it.
    pub(crate) fn credit(&self, reached: &Reached, saved: Duration) {
        reached.lost.set(reached.lost.get().saturating_sub(saved));
        self.count(|counts| {
            counts.hits += 1;
            counts.saved += saved.as_micros() as u64;
        });
    }

    /// What a remote may cost in a run.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }
}

fn left_alone(shown: &str, trouble: &Trouble) -> String {
    format!("the remote '{shown}' is left alone for the rest of this run: {trouble}")
}

impl Reached {
    /// Whether it is written to.
    pub(crate) fn takes(&self) -> bool {
        self.place.mode == Mode::ReadWrite && !self.left_alone.get()
    }

    pub(crate) fn is_left_alone(&self) -> bool {
        self.left_alone.get()
    }
}
