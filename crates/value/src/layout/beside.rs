//! A word and its label, where a thunk's header has no room for the label: in instances (decision 0011) it keeps its code.

use super::{Label, ThunkState, Value, heap};

/// The address of a new pair.
#[cold]
pub fn put(word: Value, label: Label) -> Value {
    let pair = heap::alloc(2);
    // SAFETY: two words were allocated.
    unsafe {
        pair.write(word.0);
        pair.add(1).write(u64::from(label));
    }
    Value(pair.expose_provenance() as u64)
}

/// The pair at an address from [`put`].
#[cold]
pub fn read(address: Value) -> (Value, Label) {
    let pair = std::ptr::with_exposed_provenance::<u64>(address.0 as usize);
    // SAFETY: the kinds of thunk with a label have, in an instance, such an address in their first slot (invariant 6).
    unsafe { (Value(pair.read()), pair.add(1).read() as Label) }
}

/// The state of a failed thunk: the word is the address of an error.
#[cold]
pub fn failure(word: Value, label: Label) -> ThunkState {
    // SAFETY: callers pass the word of a failed thunk: the address of a leaked error, published by the header.
    ThunkState::Failed(unsafe { &*std::ptr::with_exposed_provenance(word.0 as usize) }, label)
}
