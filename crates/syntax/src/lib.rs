//! The Nix language as text: lexer, parser, syntax tree and printer.
//!
//! [`parse`] turns a registered source text into an [`Ast`], [`print`] writes a tree as `nix-instantiate --parse` does.
//! No name is resolved here and nothing is evaluated.

mod apart;
pub mod ast;
mod error;
mod essence;
mod expected;
mod leaves;
mod lex;
mod names;
#[cfg(test)]
mod oracle;
mod outline;
mod parse;
mod path;
mod print;
mod reuse;
mod token;

pub use apart::{Apart, Unplaced};
pub use ast::{Ast, Expr, ExprId};
pub use error::ParseError;
pub use essence::{Gaps, essence, gaps_of_next};
pub use leaves::Leaves;
pub use outline::{Bound, Outline, outline, outline_of_sound};
pub use parse::{Features, Home, Lint, MAX_NESTING, NoBindings, parse, parse_bindings, parse_noting_leaves};
pub use path::path_literal;
pub use print::{print, print_expr};
pub use reuse::MANY;
