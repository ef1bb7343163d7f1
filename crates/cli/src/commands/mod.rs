//! The commands, one file each.

pub mod cache;
pub mod compare;
pub mod eval;
pub mod flake;
mod flake_show;
pub mod help;
pub mod instantiate;
pub mod jobs;
mod render;
pub mod repl;
