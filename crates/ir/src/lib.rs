//! The lowered program: every variable is a slot or a capture, every suspended expression knows what it captures,
//! every allocation its size. The machine sees this and never the syntax tree.
//!
//! Code is generic over `V`, the machine's constant type, because the values' room comes later in the order and code
//! must still hold ready-made constants. Code lives as long as the process. Positions are kept beside the code for
//! messages and are no part of its meaning.

mod arena;
mod digest;
mod expr;
mod lower;
mod marks;
mod name_list;
mod names;
mod plan;
mod relocate;
mod scope;
mod shape;
mod strictness;
mod tie;
mod watched;

pub use arena::FORBIDDEN;
pub use digest::{CodeDigest, CodeDigests, ConstantDigest};
pub use expr::*;
pub use lower::{Globals, Literals, LowerError, Program, let_functions_wait, lower};
pub use marks::{Marks, Standing, measure_calls};
pub use names::check_names;
pub use plan::{Plan, Plans};
pub use relocate::{Place, relocate};
pub use shape::Shape;
