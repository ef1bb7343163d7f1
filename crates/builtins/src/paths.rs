//! Paths as text: parts of them, and strings that are taken for store paths.

use crate::store::{self, eval_error};
use firn_eval::{Builtin, Coercion, Machine, Result, color_bytes, colored, context_of, store_error};
use firn_host::{AbsPath, Follow};
use firn_source::Pos;
use firn_store::context::Element;
use firn_value::Value;

/// NIX: only one slash at the end is dropped.
fn legacy_base_name(path: &[u8]) -> &[u8] {
    let path = match path {
        [kept @ .., b'/'] if !kept.is_empty() => kept,
        other => other,
    };
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(at) => &path[at + 1..],
        None => path,
    }
}

fn base_name_of(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.baseNameOf";
    if let Some(path) = machine.force(args[0], pos)?.as_path() {
        let path = AbsPath::new(path).map_err(|e| machine.host_error(e))?;
        return Ok(Value::string(machine.path_name(&path), firn_value::Context::EMPTY));
    }
    let text = machine.coerce_to_string(args[0], pos, context, Coercion::PLAIN)?;
    let Some(text) = text.as_str() else { return Ok(text) };
    Ok(Value::string(legacy_base_name(text.bytes()), text.context()))
}

fn dir_of(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let value = machine.force(args[0], pos)?;
    if let Some(path) = value.as_path() {
        let path = AbsPath::new(path).map_err(|e| machine.host_error(e))?;
        let parent = path.parent().unwrap_or_else(|| path.clone());
        machine.path_related(path.as_bytes(), parent.as_bytes());
        return Ok(Value::path(parent.as_bytes()));
    }
    let context = "while evaluating the first argument passed to 'builtins.dirOf'";
    let text = machine.coerce_to_string(value, pos, context, Coercion::PLAIN)?;
    let Some(text) = text.as_str() else { return Ok(text) };
    let dir = match text.bytes().iter().rposition(|&byte| byte == b'/') {
        None => b".",
        Some(0) => b"/",
        Some(at) => &text.bytes()[..at],
    };
    Ok(Value::string(dir, text.context()))
}

fn to_path(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.toPath";
    let (path, context) = machine.coerce_to_path(args[0], pos, context)?;
    Ok(Value::string(machine.path_text(path.as_bytes()), context))
}

fn store_path(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    if machine.settings().pure_eval {
        let message = format!("'{}' is not allowed in pure evaluation mode", colored("builtins.storePath"));
        return Err(eval_error(message, pos));
    }
    let what = "while evaluating the first argument passed to 'builtins.storePath'";
    let (mut path, context) = machine.coerce_to_path(args[0], pos, what)?;
    let dir = machine.store_dir();
    // NIX: a link directly in the store stays; any other is followed.
    if dir.parse(path.as_bytes()).is_err() {
        path = machine.host().resolve_symlinks(&path, Follow::Full).map_err(|e| machine.host_error(e))?;
    }
    if !dir.contains(path.as_bytes()) {
        let shown = color_bytes(path.as_bytes());
        return Err(eval_error([b"path '".as_slice(), &shown, b"' is not in the Nix store"].concat(), pos));
    }
    let (object, _) = dir.split(path.as_bytes()).map_err(|e| store_error(&e))?;
    store::store(machine).ensure(machine, &object)?;
    let context = context.union(context_of([&Element::Opaque(object)]));
    Ok(Value::string(path.as_bytes(), context))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "baseNameOf", arity: 1, strict: 1, run: base_name_of },
    Builtin { name: "dirOf", arity: 1, strict: 1, run: dir_of },
    Builtin { name: "toPath", arity: 1, strict: 1, run: to_path },
    Builtin { name: "storePath", arity: 1, strict: 0, run: store_path },
];
