//! The representation of values: all unsafe code of the workspace that concerns them.
//!
//! Invariants, numbered for SAFETY comments:
//! 1. Every heap object is made by `heap::alloc`, is 8-byte aligned, zeroed before use and never freed or moved.
//! 2. A word's low three bits are its tag; a word with a pointer tag holds the address of an object of the matching
//!    kind that was fully laid out (header and length) before the word was made. The zero word is `null`.
//! 3. An object's header never changes after creation except a thunk's, and a thunk's header only through the state
//!    machine in `claim.rs`. Lengths and shapes therefore stay valid.
//! 4. Slots are atomic words, so concurrent reads and writes are never data races. A word read from a slot is a valid
//!    word (2), because only whole valid words are stored. Objects are published to other threads only through
//!    release stores of thunk headers (read with acquire) or by the synchronisation of thread creation and channels.
//! 5. Addresses fit in 48 bits (checked on allocation); those of code, shapes and builtins are multiples of 16 (their
//!    types are aligned so).
//! 6. The first slot of a thunk that was noisy, or failed in an instance, holds an address from `beside.rs`.
//! 7. The variables in a body's code have slots and captures below the counts that the body states: lowering numbers
//!    them so (`crates/ir/src/scope.rs`), and debug builds check every access.
//! 8. Items lie behind one another and behind three words that they share (`items.rs`); the number in an item's header says how
//!    many lie before it. What those words lead to has a cell, and a name if there are names, for every item.

mod activation;
mod allocator;
mod attrs;
mod beside;
mod boxed;
mod claim;
mod claimed;
mod fetch_ahead;
mod function;
mod ground;
mod guarded;
mod header;
mod heap;
mod instance;
mod items;
mod list;
mod pages;
mod perturb;
mod shapes;
mod string;
mod thunk;
mod waits;
mod word;

pub use activation::Activation;
pub use allocator::Allocator;
pub use attrs::{Attrs, AttrsBuilder};
pub use function::{Closure, Function, PartialApp};
pub use guarded::{Guard, Guards, Row, hear_of_guards};
pub use heap::heap_bytes;
pub use instance::{Label, Production, Stamp};
pub use items::{Application, Each, Item};
pub use list::{List, ListBuilder};
pub use perturb::perturb_schedule;
pub use string::Str;
pub use claimed::Claim;
pub use thunk::{Thunk, ThunkState, Work, single_threaded};
pub use word::{Slot, Type, Value};

use header::{header, header_address, header_count, header_kind, header_low, header_of, header_payload, header_stamp, kind, with_kind};

/// What the thunk protocol synchronises with; the model checker puts its own in place of these.
mod sync {
    pub use std::sync::atomic::{AtomicU64, Ordering};
    pub use std::sync::{Condvar, Mutex, MutexGuard};
}
