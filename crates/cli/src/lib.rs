//! The command line: flags as typed ([`flags`]) → settings as resolved ([`settings`]) → one file per command ([`commands`]).
//!
//! [`program::main`] is the whole program. It runs as `firn COMMAND`, and through links named `nix-instantiate` and `nix` it
//! takes those tools' command lines. Logic that a library user would want lives in the rooms above.

pub mod arguments;
pub mod commands;
pub mod definitions;
pub mod failure;
pub mod flags;
pub mod installable;
pub mod interrupt;
pub mod lock_flags;
pub mod log;
pub mod memory;
pub mod observed;
mod options;
pub mod output;
pub mod profile;
pub mod program;
pub mod question;
pub mod session;
pub mod settings;
pub mod shared;
pub mod statistics;
pub mod stores;
pub mod told;
