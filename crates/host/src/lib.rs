//! The only door outward: files, directories, environment, clock and search path.
//!
//! A [`World`] answers raw, a [`Snapshot`] of it answers each question once per run and in Nix's terms, and wrappers
//! around that [`Host`] refuse ([`Restricted`]) or write down ([`Recording`]) what evaluation asks. Every answer,
//! absence and failure included, has a digest: it is an [`Observation`]. Nothing here evaluates.

mod archive;
mod below;
mod digest;
mod error;
mod fault;
pub mod fetch;
mod file;
mod host;
mod memory;
mod mounts;
mod observation;
mod passing;
mod path;
mod prepared;
mod pressure;
mod promised;
mod real;
mod recording;
mod resolve;
mod restricted;
mod search;
mod snapshot;
mod store;
mod world;

pub use archive::dump;
pub use digest::Digest;
pub use error::{Action, Errno, HostError, Mode, Part};
pub use fault::{Faulty, Operation};
pub use file::{Entry, FileContent, FileType, Listing, Stamp, Stat};
pub use host::{Bindings, Code, Follow, Host};
pub use memory::MemoryWorld;
pub use mounts::{Mount, Mounted};
pub use observation::{DocumentFormat, Durability, Group, Names, Observation, Question, digest_binding, digest_entry_type};
pub use passing::Passing;
pub use path::AbsPath;
pub use prepared::{Likely, Preparation, perturb_preparation};
pub use pressure::memory_pressure;
pub use promised::{Answer, Promised, Seen};
pub use real::{RealWorld, io_time, measure_io};
pub use recording::{Bound, Recording, Sink};
pub use resolve::must_be_dir;
pub use restricted::Restricted;
pub use search::{DefaultPaths, EntrySource, Found, LocalOnly, PseudoUrl, SearchEntry, SearchPath, tarball_url};
pub use snapshot::{MemoryHost, RealHost, Snapshot};
pub use store::{
    EvalOnly, Kind as StoreKind, Log as StoreLog, Missing, Places, RecordedStore, Source, SourceError, Store, StoreReference, StoreSettings, StoreView, Text,
    open as open_store,
};
pub use world::{Home, ListFault, ReadFault, World};
