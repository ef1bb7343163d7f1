//! The native stack: evaluation recurses on it and goes on in a new segment where one is nearly used up (E6).

use crate::frame::Frame;
use crate::{Callee, Machine};
use firn_memo::kept::labels;
use firn_source::Pos;
use firn_value::{Error, ErrorKind, Label, Lambda, Result, Value};

/// Below this much native stack, evaluation goes on in a new segment.
const RED_ZONE: usize = 192 << 10;
/// Size of a new stack segment.
const SEGMENT: usize = 16 << 20;
/// The most segments: a gigabyte, a million levels and more. What goes on after that goes on for ever.
const SEGMENTS: usize = 64;

impl Machine {
    /// Runs `f` with enough stack.
    // PERF: an address compared with a remembered limit; asking the platform each time cost 7 % of fib.
    #[inline(always)]
    pub fn with_stack<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_stack_low() { self.on_new_segment(f) } else { f() }
    }

    /// Whether evaluation should go on in a new segment.
    #[inline(always)]
    pub(crate) fn is_stack_low(&self) -> bool {
        let marker = 0u8;
        std::ptr::from_ref(&marker).addr() <= self.stack_limit.get()
    }

    /// Whether there is enough stack, nothing is evaluated on behalf of another instance, and nothing taken of an earlier evaluation.
    #[inline(always)]
    pub(crate) fn is_clear(&self) -> bool {
        let marker = 0u8;
        std::ptr::from_ref(&marker).addr() > self.fence.get()
    }

    pub(crate) fn limit_stack(&self, limit: usize) {
        self.stack_limit.set(limit);
        self.set_fence();
    }

    /// To be called where more or less is evaluated on behalf of other instances than before, or parts are taken from now on.
    pub(crate) fn set_fence(&self) {
        let is_open = self.aheads.get() == 0 && self.learning.following.get().is_none();
        self.fence.set(if is_open { self.stack_limit.get() } else { usize::MAX });
    }

    /// From now on values may have labels.
    pub(crate) fn begin_labels(&self) {
        self.labelled.set(true);
        self.set_fence();
    }

    /// Does what every answer of the process rests on, and says what it observed: values that this machine makes meanwhile have no labels. The second
    /// time it is as any other work.
    pub fn lay_ground<T>(&self, work: impl FnOnce() -> T) -> (T, Label) {
        if !self.labelled.get() || !labels::begin_ground() {
            return labels::apart(work);
        }
        self.labelled.set(false);
        self.set_fence();
        let outer = labels::begin();
        let result = work();
        labels::end(outer);
        self.begin_labels();
        (result, labels::lay_ground())
    }

    /// Runs a function's body where the stack is low, or where a profiler must know of it.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_carefully(&self, lambda: &'static Lambda, frame: Frame<'_>, pos: Pos) -> Result<Value> {
        self.carefully(Callee::Lambda(lambda), pos, || self.eval(&lambda.body.expr, frame))
    }

    /// Runs a function or builtin where the stack is low, or where a profiler must know of it. `pos` is the call.
    #[cold]
    #[inline(never)]
    pub(crate) fn carefully(&self, callee: Callee, pos: Pos, work: impl FnOnce() -> Result<Value>) -> Result<Value> {
        let Some(profiler) = &self.profiler else { return self.on_new_segment(work) };
        if profiler.traces {
            self.trace_call("entered", pos)?;
        }
        profiler.enter(callee);
        let result = self.on_new_segment(work);
        profiler.leave();
        if profiler.traces {
            self.trace_call("exited", pos)?;
        }
        result
    }

    /// NIX: the line that `--trace-function-calls` prints.
    fn trace_call(&self, what: &str, pos: Pos) -> Result<()> {
        let place = pos.resolve().map_or_else(|| "undefined position".to_owned(), |at| crate::show_location(&at));
        let now = crate::profile::timestamp();
        self.log(format!("function-trace {what} {place} at {now}\n").as_bytes())
    }

    #[cold]
    #[inline(never)]
    fn on_new_segment<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let saved = self.stack_limit.get();
        let limit = current_limit();
        let marker = 0u8;
        // With a profiler the stack counts as low for ever.
        let profiled = self.profiler.is_some();
        if std::ptr::from_ref(&marker).addr() > limit {
            // Nothing was known of this stack yet: from now on it is.
            self.limit_stack(if profiled { usize::MAX } else { limit });
            return f();
        }
        let segments = self.stack_segments.get();
        if segments >= SEGMENTS {
            // NIX: said where the stack of the process ends, wherever that is.
            return Err(Error::new(ErrorKind::StackOverflow, "stack overflow (possible infinite recursion)"));
        }
        self.stack_segments.set(segments + 1);
        let result = stacker::grow(SEGMENT, || {
            self.limit_stack(if profiled { usize::MAX } else { current_limit() });
            f()
        });
        self.limit_stack(saved);
        self.stack_segments.set(segments);
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
