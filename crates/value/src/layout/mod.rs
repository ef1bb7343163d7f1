//! The representation of values: all unsafe code of the workspace that concerns them.
//!
//! Invariants, numbered for SAFETY comments:
//! 1. Every heap object is made by `heap::alloc`, is 8-byte aligned, zeroed before use and never freed or moved.
//! 2. A word's low three bits are its tag; a word with a pointer tag holds the address of an object of the matching
//!    kind that was fully laid out (header and length) before the word was made. The zero word is `null`.
//! 3. An object's header never changes after creation except a thunk's, and a thunk's header only through the state
//!    machine in `thunk.rs`. Lengths and shapes therefore stay valid.
//! 4. Slots are atomic words, so concurrent reads and writes are never data races. A word read from a slot is a valid
//!    word (2), because only whole valid words are stored. Objects are published to other threads only through
//!    release stores of thunk headers (read with acquire) or by the synchronisation of thread creation and channels.
//! 5. Addresses fit in 48 bits (checked on allocation).

mod attrs;
mod boxed;
mod function;
mod heap;
mod list;
mod string;
mod thunk;
mod word;

pub use attrs::{Attrs, AttrsBuilder};
pub use function::{Closure, Function, PartialApp};
pub use heap::heap_bytes;
pub use list::{List, ListBuilder};
pub use string::Str;
pub use thunk::{Thunk, ThunkState, Work, single_threaded};
pub use word::{Slot, Type, Value};

/// Header kinds, in the top byte of an object's first word.
mod kind {
    pub const STRING: u8 = 1;
    pub const PATH: u8 = 2;
    pub const FLOAT: u8 = 3;
    pub const INT: u8 = 4;
    pub const LIST: u8 = 5;
    pub const SLICE: u8 = 6;
    pub const ATTRS: u8 = 7;
    pub const LAYERED: u8 = 8;
    pub const CLOSURE: u8 = 9;
    pub const PRIMOP: u8 = 10;
    pub const PARTIAL: u8 = 11;
    pub const SUSPENDED: u8 = 16;
    pub const APPLY: u8 = 17;
    pub const CLAIMED: u8 = 18;
    pub const FORCED: u8 = 19;
    pub const FAILED: u8 = 20;
}

const LOW48: u64 = (1 << 48) - 1;

/// A header word: kind in the top byte, a small count in the next, 48 bits of address, length or number.
#[inline]
const fn header(kind: u8, count: u8, low: u64) -> u64 {
    (kind as u64) << 56 | (count as u64) << 48 | (low & LOW48)
}

#[inline]
const fn header_kind(word: u64) -> u8 {
    (word >> 56) as u8
}

#[inline]
const fn header_count(word: u64) -> u8 {
    (word >> 48) as u8
}

#[inline]
const fn header_low(word: u64) -> u64 {
    word & LOW48
}
