//! The native stack: evaluation recurses on it and goes on in a new segment where one is nearly used up (E6).

use crate::Machine;
use crate::frame::Frame;
use firn_value::{Expr, Result, Value};

/// Below this much native stack, evaluation goes on in a new segment.
const RED_ZONE: usize = 192 << 10;
/// Size of a new stack segment.
const SEGMENT: usize = 16 << 20;

impl Machine {
    /// Runs `f` with enough stack.
    // PERF: an address compared with a remembered limit; asking the platform each time cost 7 % of fib.
    #[inline(always)]
    pub fn with_stack<T>(&self, f: impl FnOnce() -> T) -> T {
        if self.is_stack_low() { self.on_new_segment(f) } else { f() }
    }

    /// Whether evaluation should go on in a new segment.
    #[inline(always)]
    pub(crate) fn is_stack_low(&self) -> bool {
        let marker = 0u8;
        std::ptr::from_ref(&marker).addr() <= self.stack_limit.get()
    }

    /// Evaluates on a new segment.
    #[cold]
    #[inline(never)]
    pub(crate) fn eval_on_new_segment(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        self.on_new_segment(|| self.eval(expr, frame))
    }

    #[cold]
    #[inline(never)]
    fn on_new_segment<T>(&self, f: impl FnOnce() -> T) -> T {
        let saved = self.stack_limit.get();
        let limit = current_limit();
        let marker = 0u8;
        if std::ptr::from_ref(&marker).addr() > limit {
            // Nothing was known of this stack yet: from now on it is.
            self.stack_limit.set(limit);
            return f();
        }
        let result = stacker::grow(SEGMENT, || {
            self.stack_limit.set(current_limit());
            f()
        });
        self.stack_limit.set(saved);
        result
    }
}

/// The address below which the current segment is nearly used up.
fn current_limit() -> usize {
    let marker = 0u8;
    let here = std::ptr::from_ref(&marker).addr();
    // Where the platform cannot tell, a new segment is begun at once and its limit is known.
    let left = stacker::remaining_stack().unwrap_or(0);
    here.saturating_sub(left) + RED_ZONE
}
