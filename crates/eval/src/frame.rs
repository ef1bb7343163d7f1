//! Frames: the local slots and captures of running code.

pub(crate) use firn_value::Activation as Frame;
use firn_value::Slot;

/// The most slots a frame has on the native stack; larger frames are made on the heap, out of the hot paths.
pub(crate) const MOST_SLOTS: usize = 16;

/// Binds `$slots` to `$count` (at most [`MOST_SLOTS`]) fresh slots on the native stack.
// PERF: a macro and not a function taking a closure: with two sizes the closure would be called from two places and so
// never inlined. Nothing here needs dropping, so the hot paths carry no clean-up either (both together: a tenth of a
// call).
macro_rules! stack_slots {
    ($slots:ident, $count:expr) => {
        let count: usize = $count;
        let few: [firn_value::Slot; 4];
        let some: [firn_value::Slot; $crate::frame::MOST_SLOTS];
        let $slots: &[firn_value::Slot] = if count <= 4 {
            few = [const { firn_value::Slot::new() }; 4];
            &few[..count]
        } else {
            some = [const { firn_value::Slot::new() }; $crate::frame::MOST_SLOTS];
            &some[..count]
        };
    };
}

pub(crate) use stack_slots;

/// Fresh slots on the heap.
pub(crate) fn heap_slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::new()).collect()
}
