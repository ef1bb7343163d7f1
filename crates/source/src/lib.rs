//! Files, positions, the symbol interner and the line index: what every later room needs to say *where* and *by what name*.
//!
//! Nothing here knows any syntax. Symbols and files live as long as the process: both are small beside what is
//! evaluated from them, and a `'static` name can be handed to any thread without counting. The texts of files do not.

pub mod diagnostics;
mod file;
mod lines;
mod symbol;
mod symbol_map;
pub mod terminal;
mod uncertain;

pub use file::{Location, Measured, Origin, Pos, Reread, SourceFile, SourceText};
pub use symbol::Symbol;
pub use symbol_map::SymbolMap;
