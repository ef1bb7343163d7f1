//! Interruption: a user who has had enough ends what is evaluated, on every thread.
//!
//! Each call of a function compares its depth with a limit anyway. [`interrupt`] sets the limits of all machines to nothing, so
//! that the next call of each takes the slow way, where it finds out: nothing is tested that was not tested before.

use firn_value::{Error, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static LIMITS: Mutex<Vec<&'static Limit>> = Mutex::new(Vec::new());

/// The depth from which on a machine's calls look closer. Lives as long as the process, as the machine's values do.
#[derive(Debug)]
pub(crate) struct Limit {
    now: AtomicU32,
    usual: AtomicU32,
}

impl Limit {
    /// A limit for a new machine.
    pub fn new(depth: u32) -> &'static Limit {
        let limit: &'static Limit = Box::leak(Box::new(Limit { now: AtomicU32::new(depth), usual: AtomicU32::new(depth) }));
        LIMITS.lock().unwrap_or_else(PoisonError::into_inner).push(limit);
        limit.set(depth);
        limit
    }

    #[inline(always)]
    pub fn get(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// Sets it, unless the user has interrupted: whoever looks first, the interruption is seen.
    pub fn set(&self, depth: u32) {
        self.usual.store(depth, Ordering::SeqCst);
        self.now.store(depth, Ordering::SeqCst);
        if is_interrupted() {
            self.now.store(0, Ordering::SeqCst);
        }
    }
}

/// Ends every evaluation of the process with [`interrupted`], soon.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::SeqCst);
    for limit in LIMITS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        limit.now.store(0, Ordering::SeqCst);
    }
}

/// Lets evaluation go on: the user was told.
pub fn resume() {
    INTERRUPTED.store(false, Ordering::SeqCst);
    for limit in LIMITS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        limit.set(limit.usual.load(Ordering::SeqCst));
    }
}

/// Whether the user has interrupted.
pub fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// The error that ends an evaluation which the user interrupts; the status is the one that shells give.
#[cold]
pub fn interrupted() -> Box<Error> {
    Error::new(ErrorKind::Interrupted, "interrupted by the user").exit_with(130)
}
