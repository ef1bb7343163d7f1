//! Puts the builtins into a machine's shared state: `builtins`, the global names, the constants.

use firn_eval::{Builtin, Machine, Result, Shared};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, AttrsBuilder, Context, ListBuilder, Thunk, Value};

/// All tables, in no particular order.
fn tables() -> impl Iterator<Item = &'static Builtin> {
    [
        crate::closure::TABLE,
        crate::context::TABLE,
        crate::control::TABLE,
        crate::derivation::TABLE,
        crate::fetch_mercurial::TABLE,
        crate::fetch_tree::TABLE,
        crate::fetch_url::TABLE,
        crate::files::TABLE,
        crate::functions::TABLE,
        crate::hashes::TABLE,
        crate::imports::TABLE,
        crate::json::TABLE,
        crate::lists::TABLE,
        crate::numbers::TABLE,
        crate::paths::TABLE,
        crate::regexes::TABLE,
        crate::sets::TABLE,
        crate::sources::TABLE,
        crate::sort::TABLE,
        crate::strings::TABLE,
        crate::toml::TABLE,
        crate::types::TABLE,
        crate::versions::TABLE,
        crate::xml::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// Every builtin of this room, those behind experimental features too.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static Builtin> {
    let gated = [crate::fetch_tree::GATED, crate::fetch_closure::GATED, crate::output_of::GATED];
    tables().chain(gated.into_iter().flatten())
}

/// Builtins whose global name has no `__` in front.
const UNPREFIXED: [&str; 18] = [
    "abort", "baseNameOf", "break", "derivationStrict", "dirOf", "fetchGit", "fetchMercurial", "fetchTarball", "fetchTree",
    "fromTOML", "import", "isNull", "map", "placeholder", "removeAttrs", "scopedImport", "throw", "toString",
];

/// Builtins behind experimental features that are enabled.
fn gated(features: &firn_eval::Features) -> impl Iterator<Item = &'static Builtin> {
    let all = [
        (features.fetch_tree, crate::fetch_tree::GATED),
        (features.fetch_closure, crate::fetch_closure::GATED),
        (features.dynamic_derivations, crate::output_of::GATED),
        (features.memoise, crate::functions::GATED),
    ];
    all.into_iter().filter(|(enabled, _)| *enabled).flat_map(|(_, table)| table)
}

/// Defines every builtin and global variable.
pub fn install(shared: &mut Shared) {
    install_with(shared, &[]);
}

/// As [`install`], with builtins of rooms after this one.
pub fn install_with(shared: &mut Shared, more: &'static [Builtin]) {
    let mut set = AttrsBuilder::with_capacity(128);
    let counter = shared.add_primop(&crate::fetched::COUNT);
    shared.extensions.set(std::sync::Arc::new(crate::fetched::Counter(counter)));
    let enabled: Vec<&Builtin> = gated(&shared.settings.features).collect();
    for builtin in tables().chain(enabled).chain(more) {
        let value = shared.add_primop(builtin);
        define(shared, &mut set, builtin.name, value);
    }
    for (name, value) in constants(shared) {
        define(shared, &mut set, name, value);
    }
    for (name, value) in [("true", Value::TRUE), ("false", Value::FALSE), ("null", Value::NULL)] {
        set.insert(name, value);
        shared.set_global(name, value);
    }
    let derivation = derivation(shared);
    set.insert("derivation", derivation);
    shared.set_global("derivation", derivation);
    crate::store::attach_eval_only(shared);
    let builtins_name = Symbol::from("builtins");
    // `builtins.builtins` is the set itself: its cell is filled once the set exists.
    set.push(builtins_name, Pos::NONE, Value::NULL);
    let builtins = set.finish();
    if let Some((shape, cells)) = builtins.as_attrs().map(Attrs::flat)
        && let Some(index) = shape.index(builtins_name)
    {
        cells[index].set(builtins);
    }
    shared.set_global("builtins", builtins);
}

/// The function `derivation` is written in the language; its cell is evaluated when it is first used.
fn derivation(shared: &mut Shared) -> Value {
    let make = Builtin { name: "derivation", arity: 1, strict: 0, run: crate::imports::derivation_function };
    let make = shared.add_primop(&make);
    Thunk::apply(make, &[Value::NULL])
}

fn define(shared: &mut Shared, set: &mut AttrsBuilder, name: &str, value: Value) {
    set.insert(name, value);
    if UNPREFIXED.contains(&name) {
        shared.set_global(name, value);
    } else {
        shared.set_global(&format!("__{name}"), value);
    }
}

/// Asked when it is first used: an answer that does not depend on the time can be remembered. (Nix has the number from the
/// start, which shows only where the set of all builtins is printed without being forced.)
fn current_time(shared: &mut Shared) -> Value {
    fn run(machine: &Machine, _: Pos, _: &[Value]) -> Result<Value> {
        Ok(Value::int(machine.host().current_time()))
    }
    let make = shared.add_primop(&Builtin { name: "currentTime", arity: 1, strict: 0, run });
    Thunk::apply(make, &[Value::NULL])
}

fn constants(shared: &mut Shared) -> Vec<(&'static str, Value)> {
    let string = |s: &str| Value::string(s.as_bytes(), Context::EMPTY);
    let settings = &shared.settings;
    let mut all = vec![
        ("langVersion", Value::int(6)),
        ("nixVersion", string("2.35.2")),
        ("storeDir", string(&settings.store_dir)),
        ("nixPath", nix_path(shared)),
    ];
    if !settings.pure_eval {
        all.push(("currentSystem", string(&settings.system)));
        all.push(("currentTime", current_time(shared)));
    }
    all
}

/// The search path as the list that `__findFile` takes.
fn nix_path(shared: &Shared) -> Value {
    let entries: Vec<Value> = shared
        .settings
        .nix_path
        .iter()
        .map(|raw| {
            let (prefix, path) = match raw.iter().position(|&b| b == b'=') {
                Some(at) => (&raw[..at], &raw[at + 1..]),
                None => (&[][..], &raw[..]),
            };
            let mut entry = AttrsBuilder::with_capacity(2);
            entry.insert("prefix", Value::string(prefix, Context::EMPTY));
            entry.insert("path", Value::string(path, Context::EMPTY));
            entry.finish()
        })
        .collect();
    ListBuilder::of(&entries)
}
