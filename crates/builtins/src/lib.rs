//! The builtins: a table of name, arity, strictness and code, one file per subject.
//!
//! Each subject's file has a `TABLE`; [`install`] puts all of them, the constants and the globals into a machine's
//! shared state. Strictness is a mask of the arguments that the builtin forces first, in ascending order, before
//! anything else can be observed (see `value::Primop::strict`).

mod closure;
mod context;
mod control;
mod derivation;
mod derivation_attrs;
mod derivation_json;
mod derivation_outputs;
mod docs;
mod fetch_closure;
mod fetch_mercurial;
mod fetch_tree;
mod fetch_url;
mod fetched;
mod files;
mod functions;
mod hashes;
mod imports;
mod install;
mod json;
mod lists;
mod numbers;
mod output_of;
mod paths;
mod regexes;
mod sets;
mod sources;
mod store;
mod sort;
mod strings;
mod toml;
mod types;
mod versions;
mod xml;

pub use docs::documentation;
pub use fetch_tree::fetch_final_tree;
pub use fetched::{
    FlakeEntry, Moment, attach_fetcher, attach_flake_entries, fetch_entry, fetch_error, fetch_input, fetcher, tree_attrs,
};
pub use files::find_in_search_path;
pub use install::{install, install_with};
pub use json::value_to_json;
pub use xml::value_to_xml;
pub use store::{attach, derivation_at, hash_modulo_at, hashes_in, know_hashes};
