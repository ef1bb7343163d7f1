//! JSON as Nix reads and writes it, which is as the nlohmann library does, its error messages included.
//!
//! [`parse`] drives a [`Builder`], so the evaluator makes its values with nothing in between; nesting costs heap, not
//! stack. [`write_string`] and [`crate::float::write_json`] are the two forms of output that are not plain. [`Tree`] is for
//! documents that are read and written as a whole.

mod lex;
mod parse;
mod tree;
mod write;

pub use parse::{Builder, Error, parse};
pub use tree::Tree;
pub use write::write_string;
