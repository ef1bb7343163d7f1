//! The memory between runs: an LMDB database under the user's cache home, used by many processes at once.
//!
//! [`Disk`] looks up, [`Writer`] writes from its own thread, the rest looks after the whole. This room knows keys, seals
//! and ages, not what values mean: that is `crates/memo`'s. The layout is drawn in `docs/cache-format.md`.

mod audit;
mod collect;
mod disk;
mod environment;
mod pages;
mod quiet;
mod salvage;
mod states;
mod transfer;
mod walked;
mod writer;

pub use audit::{Audit, Statistics};
pub use collect::Collected;
pub use disk::{Disk, Found, HISTORY, Reading};
pub use environment::{Salvaged, Unusable};
pub use transfer::TransferError;
pub use writer::{Answer, Batch, Vouched, Writer};

pub(crate) use disk::sealed_kind;
pub(crate) use quiet::quietly;
