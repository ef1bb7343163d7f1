//! The Nix language as text: lexer, parser, syntax tree and printer.
//!
//! `parse` turns a registered source text into an [`Ast`], `print` writes a tree as `nix-instantiate --parse` does.
//! No name is resolved here and nothing is evaluated.

pub mod ast;

pub use ast::{Ast, Expr, ExprId};
