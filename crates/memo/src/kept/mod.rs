//! What outlives a run is bytes: [`plain`] values and [`observation`] sets in [`cbor`], a [`Record`] of both under a [`Key`].
//!
//! All of it is in the words of [`Roles`], which name no checkout; a [`Verifier`] says whether a record still holds. Nothing
//! here touches a disk: whoever has one keeps what these files write (`crates/cache`).

pub mod cbor;
mod checksum;
pub mod digests;
pub mod document;
mod edits;
mod flat;
mod group;
pub mod guards;
mod key;
pub mod labels;
mod loaded;
mod members;
pub mod observation;
pub mod parts;
pub mod plain;
pub mod record;
mod roles;
mod rows;
mod sets;
pub mod trace;
mod verify;
mod written;

pub use checksum::checksum;
pub use edits::Edits;
pub use flat::{Flat, MOST_NODES};
pub use key::{Argument, Asked, EPOCH, Entry, Key, Stem};
pub use loaded::loaded;
pub use record::{Record, Stored};
pub use roles::{ENTRY, HERE, ROOT, Roles, STORE};
pub use sets::{Encoded, GroupId, Nodes, NotStorable, ObservationId, SetId, Sets, is_storable};
pub use verify::{Change, Counts, Ground, Judged, Verifier, Voucher, Witness, digest_location};
pub use written::{Place, Written, WrittenEntry};
