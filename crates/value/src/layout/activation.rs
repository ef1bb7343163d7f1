//! What running code sees of its surroundings: the local slots and the captures of one body.
//!
//! Two addresses in registers and no bounds: lowering gives every variable a slot below the counts that the body
//! states (invariant 7), and an activation is made only with slots for all of them.
// PERF: against slices behind a reference with checked indices: a tenth fewer instructions in every program.

use super::{Closure, Slot, Value};
use crate::{Body, Lambda};
use firn_ir::{FEW_SLOTS, Var};
use std::marker::PhantomData;

/// The local slots and captures of running code.
#[derive(Clone, Copy)]
pub struct Activation<'a> {
    locals: *const Slot,
    captures: *const Slot,
    /// Debug builds check every access against the numbers of slots.
    #[cfg(debug_assertions)]
    counts: (usize, usize),
    lives: PhantomData<&'a Slot>,
}

impl<'a> Activation<'a> {
    /// An activation of `body`. There must be slots for all its locals and captures.
    #[inline]
    pub fn new(body: &'static Body, locals: &'a [Slot], captures: &'a [Slot]) -> Activation<'a> {
        assert!(locals.len() >= body.locals as usize && captures.len() >= body.captures.len(), "slots for all variables");
        Activation {
            locals: locals.as_ptr(),
            captures: captures.as_ptr(),
            #[cfg(debug_assertions)]
            counts: (locals.len(), captures.len()),
            lives: PhantomData,
        }
    }

    /// An activation of a closure's body.
    #[inline]
    pub fn of(closure: Closure, lambda: &'static Lambda, locals: &'a [Slot]) -> Activation<'a> {
        debug_assert!(std::ptr::eq(lambda, closure.lambda()));
        assert!(locals.len() >= lambda.body.locals as usize, "slots for all variables");
        Activation {
            locals: locals.as_ptr(),
            captures: closure.first_capture(),
            #[cfg(debug_assertions)]
            counts: (locals.len(), closure.captures().len()),
            lives: PhantomData,
        }
    }

    /// An activation of the body of a closure that [needs few slots](firn_ir::Lambda::few).
    #[inline]
    pub fn of_few(closure: Closure, lambda: &'static Lambda, locals: &'a [Slot; FEW_SLOTS]) -> Activation<'a> {
        debug_assert!(std::ptr::eq(lambda, closure.lambda()));
        // PERF: callers have looked, so that nothing is left of it.
        assert!(lambda.few != 0, "slots for all variables");
        Activation {
            locals: locals.as_ptr(),
            captures: closure.first_capture(),
            #[cfg(debug_assertions)]
            counts: (locals.len(), closure.captures().len()),
            lives: PhantomData,
        }
    }

    /// The cell in a local slot.
    #[inline]
    pub fn local(self, slot: u32) -> Value {
        #[cfg(debug_assertions)]
        assert!((slot as usize) < self.counts.0);
        // SAFETY: invariant 7; `new` checked that all slots of the body are there.
        unsafe { &*self.locals.add(slot as usize) }.get()
    }

    /// The cell in a capture.
    #[inline]
    pub fn capture(self, index: u32) -> Value {
        #[cfg(debug_assertions)]
        assert!((index as usize) < self.counts.1);
        // SAFETY: as in `local`.
        unsafe { &*self.captures.add(index as usize) }.get()
    }

    /// The captures, for the code of a [lazy](firn_ir::Lazy) body, which has those of the body it is made for.
    #[inline]
    pub fn captures(self, lazy: &'static Body) -> &'a [Slot] {
        #[cfg(debug_assertions)]
        assert!(lazy.captures.len() <= self.counts.1);
        // SAFETY: invariant 7: lowering has checked that the two bodies have equally many captures.
        unsafe { std::slice::from_raw_parts(self.captures, lazy.captures.len()) }
    }

    /// Puts a cell into a local slot.
    #[inline]
    pub fn set(self, slot: u32, cell: Value) {
        #[cfg(debug_assertions)]
        assert!((slot as usize) < self.counts.0);
        // SAFETY: as in `local`.
        unsafe { &*self.locals.add(slot as usize) }.set(cell);
    }

    /// Copies the cells of variables to where a new object has room for them.
    ///
    /// # Safety
    /// There is room for all at `to`.
    // PERF: most bodies capture one to three cells; a loop that is unrolled for many costs those more than the copying.
    #[inline(always)]
    pub(super) unsafe fn copy(self, vars: &'static [Var], to: *mut u64) {
        let [first, rest @ ..] = vars else { return };
        // SAFETY: the caller's.
        unsafe {
            to.write(self.get(*first).0);
            let [second, rest @ ..] = rest else { return };
            to.add(1).write(self.get(*second).0);
            let [third, rest @ ..] = rest else { return };
            to.add(2).write(self.get(*third).0);
            if !rest.is_empty() {
                self.copy_rest(rest, to.add(3));
            }
        }
    }

    #[inline(never)]
    unsafe fn copy_rest(self, vars: &'static [Var], to: *mut u64) {
        for (i, &var) in vars.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe { to.add(i).write(self.get(var).0) };
        }
    }

    /// The cell of a variable.
    #[inline]
    pub fn get(self, var: Var) -> Value {
        let slots = if var.is_capture() { self.captures } else { self.locals };
        #[cfg(debug_assertions)]
        assert!((var.index() as usize) < if var.is_capture() { self.counts.1 } else { self.counts.0 });
        // SAFETY: as in `local`.
        unsafe { &*slots.add(var.index() as usize) }.get()
    }
}

impl std::fmt::Debug for Activation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("activation")
    }
}
