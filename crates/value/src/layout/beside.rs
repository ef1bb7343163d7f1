//! What is kept of a thunk of an instance whose result is nobody else's to take (decision 0011): the result with its label, and the
//! thunk as it was made, which others run for themselves.

use super::thunk::NO_CODE;
use super::{Application, Label, Thunk, ThunkState, Value, Work, header, header_stamp, heap, kind};

/// The words before the thunk: its result and the label of that.
const WORDS: usize = 2;

/// Keeps the result of a thunk that had this header and work; the address of both.
#[cold]
pub fn put(made: u64, work: Work, result: Value, label: Label) -> Value {
    let (made, parts): (u64, Vec<Value>) = match work {
        Work::Run(_, captures) => (made, captures.iter().map(super::Slot::get).collect()),
        Work::Apply(application @ Application::Slots(_)) => (made, application.parts().collect()),
        // What items share lies before them: elsewhere they are written out.
        Work::Apply(item) => (header(kind::APPLY, item.len() as u8, NO_CODE) | header_stamp(made), item.parts().collect()),
        Work::Transport(map, original) => (made, vec![original, Value::int(i64::from(map))]),
    };
    let block = heap::alloc(WORDS + 1 + parts.len().max(1));
    // SAFETY: the allocation holds the words and a thunk with these parts (invariant 1).
    unsafe {
        block.write(result.0);
        block.add(1).write(u64::from(label));
        block.add(WORDS).write(made);
        for (at, part) in parts.into_iter().enumerate() {
            block.add(WORDS + 1 + at).write(part.0);
        }
    }
    Value(block.expose_provenance() as u64)
}

/// The result and its label at an address from [`put`].
#[cold]
pub fn read(address: Value) -> (Value, Label) {
    let block = std::ptr::with_exposed_provenance::<u64>(address.0 as usize);
    // SAFETY: callers pass the first slot of a thunk of a kind that has such an address there (invariant 6).
    unsafe { (Value(block.read()), block.add(1).read() as Label) }
}

/// The thunk as it was made, at an address from [`put`].
#[cold]
pub fn made(address: Value) -> &'static Thunk {
    // SAFETY: as above; the thunk is never claimed, only read.
    unsafe { &*std::ptr::with_exposed_provenance::<u64>(address.0 as usize).add(WORDS).cast() }
}

/// The state of a failed thunk: the word is the address of an error.
#[cold]
pub fn failure(word: Value, label: Label) -> ThunkState {
    // SAFETY: callers pass the word of a failed thunk: the address of a leaked error, published by the header.
    ThunkState::Failed(unsafe { &*std::ptr::with_exposed_provenance(word.0 as usize) }, label)
}
