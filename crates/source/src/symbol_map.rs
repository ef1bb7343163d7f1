//! A map keyed by symbols, for tables that are looked up but never iterated into anything printed.

use crate::Symbol;
use std::hash::BuildHasherDefault;

/// Hash map from symbols, with a hash suited to small integers.
pub type SymbolMap<V> = hashbrown::HashMap<Symbol, V, BuildHasherDefault<rustc_hash::FxHasher>>;
