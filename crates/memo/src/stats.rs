//! What the memo did, for `NIX_SHOW_STATS` (O2).

use crate::Refusal;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! stats {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// Counters of the memo.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[$doc])* pub $field: AtomicU64),* }

        impl Stats {
            /// All counters by name, in a fixed order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field.load(Ordering::Relaxed))),*]
            }
        }
    };
}

stats! {
    /// Calls answered from memory.
    hits,
    /// Steps (calls and forces) that the answered calls had cost to weak head normal form.
    steps_saved,
    /// Functions whose calls are remembered because one was expensive.
    admitted,
    /// Calls that were not there.
    misses_new,
    /// Calls of which too much is reachable.
    misses_large,
    /// Calls of which something is being evaluated.
    misses_running,
    /// Calls of which something has failed.
    misses_failed,
    /// Calls on what stands for other cells.
    misses_transported,
    /// Calls whose results are knotted with their inputs.
    misses_knotted,
    /// Calls not remembered because they printed.
    misses_noise,
    /// Calls not looked up because the program recurses deeply.
    misses_deep,
    /// Calls not remembered because all instance numbers are in use.
    misses_full,
    /// Calls not remembered because memory was short.
    misses_pressed,
    /// Remembered calls dropped because memory was short.
    shed,
    /// Closed terms whose value was known.
    closed_hits,
    /// Transported cells that took the original's value.
    shared,
    /// Transported cells whose original was evaluated for them.
    ahead,
    /// Transported cells that ran their own code.
    rerun,
    /// Answers compared with a fresh evaluation (shadow).
    compared,
    /// Answers that differed (shadow).
    differences,
}

impl Stats {
    /// One more.
    pub fn bump(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// One more miss.
    pub fn miss(&self, why: Refusal) {
        Stats::bump(match why {
            Refusal::Large => &self.misses_large,
            Refusal::Running => &self.misses_running,
            Refusal::Failed => &self.misses_failed,
            Refusal::Transported => &self.misses_transported,
        });
    }
}
