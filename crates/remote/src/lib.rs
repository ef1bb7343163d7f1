//! What is remembered, shared between machines (spec L3): answers go to the object stores that people already run and
//! come back from there, signed.
//!
//! [`Remotes`] is what a run has: it asks ([`Remotes::ask`]) and hands over ([`Remotes::push`]), and whatever is wrong with a remote
//! is a miss and a number in [`Counts`] (M6). An [`Address`] says which store, a [`Place`] reads and writes it within
//! bounds, an [`Index`] names the answers to one question, [`Entry`] by entry, each signed with a [`SecretKey`]. [`serve`] is
//! a remote for those who have none. Layout and trust are drawn in `docs/remote.md`.

mod address;
mod candidate;
mod counts;
mod entry;
mod index;
mod key;
mod object;
mod place;
mod pull;
mod push;
mod remotes;
pub mod serve;

pub use candidate::Candidate;
pub use address::{Address, BadAddress, Mode};
pub use counts::{Counts, Wrong};
pub use entry::{Entry, Payload};
pub use index::{HISTORY, Index};
pub use key::{BadKey, Keyring, PublicKey, SecretKey};
pub use object::{Kind, pack, unpack};
pub use place::{Place, Trouble};
pub use pull::Lookup;
pub use push::{Care, Pushed, Travelling, travelling};
pub use remotes::{DEADLINE, Remotes, Settings};
