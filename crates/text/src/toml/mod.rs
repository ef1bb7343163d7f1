//! TOML 1.0 as `fromTOML` reads it, which is as the toml11 library does.
//!
//! [`parse`] gives the document as a [`Table`]; the evaluator turns it into values. Dates and times come as text in
//! the form Nix gives them; whether they are allowed is a setting, so that is the caller's to refuse
//! ([`TIMESTAMPS_REFUSED`]). Of several mistakes only the first is reported.

mod document;
mod error;
mod parse;
mod scalar;
mod text;

pub use error::Error;
pub use parse::parse;

use std::collections::BTreeMap;
use std::ops::Range;

/// What Nix says about a date or time unless the feature is on.
pub const TIMESTAMPS_REFUSED: &str = "Dates and times are not supported";

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`
    Boolean(bool),
    /// A 64-bit integer.
    Integer(i64),
    /// A float; `inf` and `nan` have both signs.
    Float(f64),
    /// A string; it may hold NUL bytes, which Nix strings may not.
    String(Vec<u8>),
    /// A date, a time, or both, as `value` of Nix's timestamp set.
    Timestamp(String),
    /// An array, or an array of tables.
    Array(Array),
    /// A table of any form.
    Table(Table),
}

/// An array.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    /// The elements.
    pub items: Vec<Value>,
    /// Whether it came from `[[name]]`, which alone can be added to.
    of_tables: bool,
    place: Range<usize>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The entries, by name.
    pub entries: BTreeMap<Vec<u8>, Value>,
    origin: Origin,
    place: Range<usize>,
    /// Where each scalar entry was written, for messages.
    places: BTreeMap<Vec<u8>, Range<usize>>,
}

/// How a table came to be, which decides what may still be put into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    /// By its own header.
    #[default]
    Header,
    /// On the way to a header.
    Implied,
    /// By a dotted key.
    Dotted,
    /// In braces: complete as it stands.
    Inline,
}
