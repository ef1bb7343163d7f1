//! Which functions profit from the memo, and by how much (O2).

use firn_value::Lambda;
use rustc_hash::FxHashMap;
use std::sync::{Mutex, PoisonError};

/// What answers saved one function.
#[derive(Clone, Copy, Debug)]
pub struct Profit {
    /// The function.
    pub code: &'static Lambda,
    /// Calls that were answered.
    pub hits: u64,
    /// Steps that the answered calls had cost to weak head normal form.
    pub steps: u64,
}

/// The profits of all functions.
#[derive(Debug, Default)]
pub struct Profits {
    all: Mutex<FxHashMap<usize, Profit>>,
}

impl Profits {
    /// Counts an answer.
    pub fn add(&self, code: &'static Lambda, steps: u64) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let profit = all.entry(std::ptr::from_ref(code).addr()).or_insert(Profit { code, hits: 0, steps: 0 });
        profit.hits += 1;
        profit.steps += steps;
    }

    /// The functions that profit most, best first.
    pub fn best(&self, count: usize) -> Vec<Profit> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let mut best: Vec<Profit> = all.values().copied().collect();
        best.sort_by_key(|profit| (std::cmp::Reverse((profit.steps, profit.hits)), profit.code.pos_at(0)));
        best.truncate(count);
        best
    }
}
