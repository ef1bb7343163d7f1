//! Frames: the local slots and captures of running code.

use firn_ir::Var;
use firn_value::{Slot, Value};

/// What code sees of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub locals: &'a [Slot],
    pub captures: &'a [Slot],
}

impl Frame<'_> {
    #[inline]
    pub fn get(&self, var: Var) -> Value {
        match var {
            Var::Local(slot) => self.locals[slot as usize].get(),
            Var::Capture(index) => self.captures[index as usize].get(),
        }
    }
}

/// Runs `f` with `count` fresh slots, on the native stack when they are few.
#[inline(always)]
pub(crate) fn with_slots<T>(count: usize, f: impl FnOnce(&[Slot]) -> T) -> T {
    if count <= 4 {
        let slots: [Slot; 4] = [const { Slot::new() }; 4];
        f(&slots[..count])
    } else {
        with_many_slots(count, f)
    }
}

#[inline(always)]
fn with_many_slots<T>(count: usize, f: impl FnOnce(&[Slot]) -> T) -> T {
    if count <= 16 {
        let slots: [Slot; 16] = [const { Slot::new() }; 16];
        f(&slots[..count])
    } else {
        let slots: Vec<Slot> = (0..count).map(|_| Slot::new()).collect();
        f(&slots)
    }
}
