//! Frames: the local slots and captures of running code.

pub(crate) use firn_value::Activation as Frame;
use firn_value::Slot;

/// The most slots a frame has on the native stack; larger frames are made on the heap, out of the hot paths.
pub(crate) const MOST_SLOTS: usize = 16;

pub(crate) use firn_ir::FEW_SLOTS;

/// Binds `$slots` to `$count` (at most `$most`) fresh slots on the native stack.
// PERF: a macro and not a function taking a closure, which would be called from two places and so never inlined. Nothing here
// needs dropping, so the hot paths carry no clean-up either (both together: a tenth of a call). Who may need many slots has a
// function of its own for that, so that deep recursion does not drag the room for them along.
macro_rules! stack_slots {
    ($slots:ident, $most:expr, $count:expr) => {
        let room = [const { firn_value::Slot::new() }; $most];
        let $slots: &[firn_value::Slot] = &room[..$count];
    };
}

pub(crate) use stack_slots;

/// Fresh slots on the heap.
pub(crate) fn heap_slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::new()).collect()
}
