//! Values, thunks, attribute sets, lists, strings with context, closures. Nothing here evaluates or does I/O.
//!
//! A [`Value`] is one word, `Copy`, shareable between threads. What it points to lives as long as the process (decision
//! 0002), so handing values around costs nothing. All unsafe code of firn's values is in `layout/`.

mod context;
mod error;
#[allow(unsafe_code)]
mod layout;
mod literals;
mod names;
mod primop;

pub use context::{Context, ContextBuilder};
pub use error::{Error, ErrorKind, Frame, Result};
pub use layout::{
    Activation, Allocator, Application, Attrs, AttrsBuilder, Claim, Closure, Each, Function, Guard, Guards, Item, Label, List, ListBuilder, PartialApp, Production, Row, Slot, Stamp, Str, Thunk, ThunkState,
    Type, Value, Work, hear_of_guards, heap_bytes, perturb_schedule, single_threaded,
};
pub use literals::Constants;
pub use primop::Primop;

/// Code over values.
pub type Expr = firn_ir::Expr<Value>;
/// A body over values.
pub type Body = firn_ir::Body<Value>;
/// A function's code over values.
pub type Lambda = firn_ir::Lambda<Value>;
