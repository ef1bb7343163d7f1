//! Pure text engines under the builtins: no values, no I/O, no other firn crate.
//!
//! Everything here takes bytes and gives bytes, because Nix strings are bytes. The builtins wrap these engines in
//! values; the syntax and printing rooms use the literal forms.

pub mod float;
pub mod json;
pub mod literal;
pub mod regex;
pub mod suggest;
pub mod toml;
pub mod version;
pub mod xml;
