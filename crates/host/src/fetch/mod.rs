//! Fetchers: trees and files from elsewhere, by reference, with what is known about them.
//!
//! An [`Input`] is a reference (`path:`, `git+file:`, `github:`, a tarball) as attributes; [`Fetcher::fetch`] finds its
//! [`Tree`] on disk, in the store, in the cache of downloads or on the network, and locks it: revision, time, NAR
//! hash. Builtins and flakes call it; nothing here evaluates.

mod archive;
mod attrs;
mod binary_cache;
mod cache;
mod changed;
mod closure;
mod compression;
mod error;
mod fetcher;
mod forge;
mod git;
mod git_lfs;
mod git_tree;
mod git_verify;
mod http;
mod input;
mod mercurial;
mod put;
mod received;
mod registry;
mod rewritten;
mod schemes;
mod settings;
mod tarball;
mod url;
mod worktree;
mod zip;

pub use attrs::{Attr, Attrs, Lazy, attrs_to_json};
pub use changed::{Changed, changed_since};
pub use closure::{Closure, ClosureRequest, Copied};
pub use error::{FetchError, FetchErrorKind, shown};
pub use fetcher::{Fetcher, Placed, Tree};
pub use input::Input;
pub use registry::{Entry as RegistryEntry, Registries, UseRegistries};
pub use settings::FetchSettings;
pub use url::{Authority, Url, decode_query, fix_git_url, path_to_url_path, percent_decode, percent_encode, url_path_to_path};
