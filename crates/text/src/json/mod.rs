//! JSON as Nix reads and writes it, which is as the nlohmann library does, its error messages included.
//!
//! [`parse`] drives a [`Builder`], so the evaluator makes its values with nothing in between; nesting costs heap, not
//! stack. [`write_string`] and [`crate::float::write_json`] are the two forms of output that are not plain.

mod lex;
mod parse;
mod write;

pub use parse::{Builder, Error, parse};
pub use write::write_string;
