//! Closed terms: code without captures has one value, wherever it stands and however often (L1.3). Values that are told apart
//! by their cells, or hold cells, are made each time, as Nix makes them; strings, numbers and paths that were not cheap are kept.

use firn_value::{Expr, Value};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// Values of closed terms, by the address of their code, which lives as long as the process.
#[derive(Debug, Default)]
pub struct Closed {
    any: AtomicBool,
    values: RwLock<FxHashMap<usize, (Value, u64)>>,
}

/// Steps that make a term worth keeping.
const WORTH: u64 = 16;

impl Closed {
    /// The value of a term, and the steps that it took to get it.
    pub fn get(&self, code: &'static Expr) -> Option<(Value, u64)> {
        self.values.read().unwrap_or_else(PoisonError::into_inner).get(&std::ptr::from_ref(code).addr()).copied()
    }

    /// Whether a term may be worth keeping that took so many steps.
    #[inline]
    pub fn is_worth(steps: u64) -> bool {
        steps >= WORTH
    }

    /// Keeps the value of a term that was evaluated quietly, if it is plain and was [not cheap](Closed::is_worth).
    pub fn keep(&self, code: &'static Expr, value: Value, steps: u64) {
        let is_plain = value.as_str().is_some() || value.as_path().is_some() || value.as_int().is_some() || value.as_bool().is_some();
        if is_plain && Closed::is_worth(steps) {
            let mut values = self.values.write().unwrap_or_else(PoisonError::into_inner);
            values.insert(std::ptr::from_ref(code).addr(), (value, steps));
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.values.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether none is kept, as far as this thread knows.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }
}
