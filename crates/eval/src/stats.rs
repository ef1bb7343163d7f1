//! Counters of what the machine did, for `NIX_SHOW_STATS` and the benchmarks.

use crate::times::{Doing, doing};
use std::cell::Cell;

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

impl Stats {
    /// Does something and adds the nanoseconds it took. For work that is long beside a look at the clock.
    pub fn time<T>(counter: &Cell<u64>, what: Doing, work: impl FnOnce() -> T) -> T {
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
