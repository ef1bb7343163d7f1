//! Flakes: references ([`FlakeRef`]), lock files ([`LockFile`]), and calling them ([`call_flake`]).
//!
//! `flake.nix` is read without evaluating more than its literal parts; inputs are locked by [`lock_flake`]; only then
//! is `outputs` called. What an input means is the fetchers' business (`firn_host::fetch`), here is what a flake is.

mod builtins;
mod call;
mod config;
mod edit;
mod inputs;
mod lock;
mod lock_file;
mod metadata;
mod read;
mod reference;

pub use builtins::{TABLE, attach};
pub use call::call_flake;
pub use config::Setting;
pub use edit::{LockFlags, LockedFlake, lock_flake, lock_flake_at};
pub use inputs::FlakeInput;
pub use lock_file::{Edge, LockFile, Locked, Node, parse_input_path, print_input_path};
pub use metadata::{fingerprint, metadata_json};
pub use read::{Flake, get_flake};
pub use reference::{FlakeRef, ParseOptions};
