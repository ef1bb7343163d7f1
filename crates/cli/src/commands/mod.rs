//! The commands, one file each.

pub mod affected;
pub mod cache;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod eval;
pub mod flake;
mod flake_show;
pub mod graph;
pub mod help;
pub mod instantiate;
pub mod jobs;
pub mod manual;
pub mod profile;
mod render;
pub mod repl;
mod subject;
pub mod watch;
pub mod why;
