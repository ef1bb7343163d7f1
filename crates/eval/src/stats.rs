//! Counters of what the machine did, for `NIX_SHOW_STATS` and the benchmarks.

use crate::times::{Doing, doing};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

macro_rules! stats {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// Counters of one machine.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[$doc])* pub $field: Cell<u64>),* }

        impl Stats {
            /// All counters by name, in a fixed order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field.get())),*]
            }

            /// Adds what another machine counted.
            pub fn add(&self, other: &Stats) {
                $(self.$field.set(self.$field.get() + other.$field.get());)*
            }
        }
    };
}

stats! {
    /// Function bodies entered.
    calls,
    /// Builtins called.
    primop_calls,
    /// Thunks made.
    thunks,
    /// Thunks that had to be evaluated.
    forces,
    /// Attribute lookups.
    lookups,
    /// `//` evaluated.
    updates,
    /// Attributes copied by `//`.
    update_copies,
    /// Lists concatenated.
    list_concats,
    /// Files evaluated.
    files,
    /// Texts parsed and lowered.
    parsed,
    /// Files whose code was copied from one with the same bytes.
    files_shared,
    /// Texts that another thread had parsed.
    files_prepared,
    /// Nanoseconds spent parsing.
    parse_time,
    /// Nanoseconds spent lowering.
    lower_time,
    /// Nanoseconds spent writing derivations down and hashing them.
    derivation_time,
    /// Derivations made.
    derivations,
    /// Answers from memory kept beside a fresh evaluation.
    shadows,
}

static TIMED: AtomicBool = AtomicBool::new(false);

/// Has it measured from now on how long parsing, lowering and writing derivations take.
pub fn measure_times() {
    TIMED.store(true, Ordering::Relaxed);
}

impl Stats {
    /// Does something and adds the nanoseconds it took, if [that is measured](measure_times).
    // PERF: two looks at the clock for each of the 5,000 values of hello that are lowered when they are needed were 0.4 % of its time.
    pub fn time<T>(counter: &Cell<u64>, what: Doing, work: impl FnOnce() -> T) -> T {
        if !TIMED.load(Ordering::Relaxed) {
            return doing(|| what, work);
        }
        let start = std::time::Instant::now();
        let result = doing(|| what, work);
        counter.set(counter.get() + start.elapsed().as_nanos() as u64);
        result
    }

    /// One more.
    #[inline]
    pub fn bump(counter: &Cell<u64>) {
        counter.set(counter.get() + 1);
    }
}
