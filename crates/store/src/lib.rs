//! Store paths, hashes, derivations and archives as pure functions (E3).
//!
//! Everything here maps bytes to bytes: no file, socket, clock or setting is read, and no other firn crate is
//! known. The store directory is always a parameter. Nix strings are bytes, so nothing assumes UTF-8 except where a
//! validity rule already narrowed the alphabet to ASCII (store path names).
//!
//! Experimental features are the caller's business: parsers accept every form and the results say which feature
//! they stand for ([`hash::Algorithm::Blake3`], [`content_address::Method::Git`], [`context::Built::is_dynamic`], …).

pub mod base32;
pub mod content_address;
pub mod context;
pub mod derivation;
pub mod encoding;
pub mod error;
pub mod hash;
pub mod key;
pub mod modulo;
pub mod nar;
pub mod narinfo;
pub mod outputs;
pub mod path;
pub mod path_info;
pub mod placeholder;
pub mod sorted;
pub mod store_dir;

pub use error::{Error, ErrorKind, Result};
