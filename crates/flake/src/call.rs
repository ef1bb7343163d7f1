//! `call_flake`: a locked flake as a value. The walk over the lock file is written in the language, so that every
//! input is as lazy as an attribute.

use std::sync::Mutex;

use firn_builtins::{fetch_error, tree_attrs};
use firn_eval::{Builtin, Machine, Result, store_error};
use firn_host::AbsPath;
use firn_source::{Origin, Pos, Symbol};
use firn_value::{AttrsBuilder, Context, Value};

use crate::LockedFlake;

const TEXT: &str = include_str!("call-flake.nix");

/// The function of `call-flake.nix`, evaluated once.
#[derive(Default)]
struct Function(Mutex<Option<Value>>);

/// The builtin that fetches locked inputs; it has no name in the language.
pub(crate) struct FetchFinal(pub Value);

/// Its row, for whoever makes the machine.
pub(crate) const FETCH_FINAL: Builtin =
    Builtin { name: "fetchFinalTree", arity: 1, strict: 1, run: firn_builtins::fetch_final_tree };

fn function(machine: &Machine) -> Result<Value> {
    let known = machine.shared.extensions.get::<Function>();
    let mut known = known.0.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(function) = *known {
        return Ok(function);
    }
    let origin = Origin::Internal("«flakes-internal»/call-flake.nix");
    let function = machine.eval_text(TEXT.as_bytes(), origin, &AbsPath::root())?;
    *known = Some(function);
    Ok(function)
}

/// The value of a flake: its outputs, what is known of its tree, and both once more by name.
pub fn call_flake(machine: &Machine, flake: &LockedFlake) -> Result<Value> {
    let (json, keys) = flake.lock_file.to_json().map_err(|e| fetch_error(&e))?;
    let text = crate::lock_file::print_json(&json).map_err(|e| fetch_error(&e))?;
    let mut given = AttrsBuilder::with_capacity(flake.places.len());
    for (node, place) in &flake.places {
        let Some(key) = keys.get(node) else { continue };
        let locked = flake.lock_file.nodes[*node].locked.as_ref();
        let input = locked.map_or(&flake.flake.locked.input, |locked| &locked.locked.input);
        let (path, rest) = machine.store_dir().split(place.as_bytes()).map_err(|e| store_error(&e))?;
        let dirty = locked.is_none() && flake.flake.force_dirty;
        let dir = rest.strip_prefix(b"/").unwrap_or(rest);
        let mut entry = AttrsBuilder::with_capacity(2);
        entry.insert("sourceInfo", tree_attrs(machine, &path, input, false, dirty)?);
        entry.insert("dir", Value::string(dir, Context::EMPTY));
        given.push(Symbol::from(key.as_str()), Pos::NONE, entry.finish());
    }
    let fetch = machine.shared.extensions.find::<FetchFinal>().map_or(Value::NULL, |fetch| fetch.0);
    let args = [Value::string(text.as_bytes(), Context::EMPTY), given.finish(), fetch];
    machine.call(function(machine)?, &args, Pos::NONE)
}
