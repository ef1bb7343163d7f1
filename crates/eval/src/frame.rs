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

/// Binds `$slots` to `$count` fresh slots, on the native stack when they are few.
// PERF: a macro and not a function taking a closure: with three sizes the closure would be called from three places
// and so never inlined, which cost a tenth of a call.
macro_rules! fresh_slots {
    ($slots:ident, $count:expr) => {
        let count: usize = $count;
        let few: [firn_value::Slot; 4];
        let some: [firn_value::Slot; 16];
        let many: Vec<firn_value::Slot>;
        let $slots: &[firn_value::Slot] = if count <= 4 {
            few = [const { firn_value::Slot::new() }; 4];
            &few[..count]
        } else if count <= 16 {
            some = [const { firn_value::Slot::new() }; 16];
            &some[..count]
        } else {
            many = (0..count).map(|_| firn_value::Slot::new()).collect();
            &many
        };
    };
}

pub(crate) use fresh_slots;
