//! The builtins: a table of name, arity, strictness and code, one file per subject.
//!
//! Each subject's file has a `TABLE`; [`install`] puts all of them, the constants and the globals into a machine's
//! shared state. Strictness is a mask of the arguments that the builtin forces first, in ascending order, before
//! anything else can be observed (see `value::Primop::strict`).

mod control;
mod functions;
mod install;
mod lists;
mod numbers;
mod sets;
mod types;

pub use install::install;
