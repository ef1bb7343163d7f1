//! `getFlake`, `parseFlakeRef` and `flakeRefToString`, and `flake:` entries of the search path.

use std::sync::Arc;

use firn_builtins::{attach_flake_entries, fetch_error, fetch_input, fetcher};
use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, Shared, colored, colored_name, show_type};
use firn_host::AbsPath;
use firn_host::fetch::{Attr, Attrs, UseRegistries};
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Context, Value};

use crate::call::{FETCH_FINAL, FetchFinal};
use crate::inputs::place;
use crate::read::{resolve, store_place};
use crate::{FlakeRef, LockFlags, ParseOptions, call_flake, lock_flake, lock_flake_at};

/// The builtins behind the feature `flakes`.
pub const TABLE: &[Builtin] = &[
    Builtin { name: "getFlake", arity: 1, strict: 1, run: get_flake },
    Builtin { name: "parseFlakeRef", arity: 1, strict: 1, run: parse_flake_ref },
    Builtin { name: "flakeRefToString", arity: 1, strict: 1, run: flake_ref_to_string },
];

/// Teaches a machine about flakes; call it after the builtins are installed.
pub fn attach(shared: &mut Shared) {
    let fetch = shared.add_primop(&FETCH_FINAL);
    shared.extensions.set(Arc::new(FetchFinal(fetch)));
    attach_flake_entries(shared, search_path_entry);
}

/// Where a `flake:` entry of the search path leads.
fn search_path_entry(machine: &Machine, reference: &[u8]) -> Result<AbsPath> {
    let text = String::from_utf8_lossy(reference);
    let options = ParseOptions { allow_missing: true, is_flake: false, ..ParseOptions::default() };
    let reference = FlakeRef::parse(&*fetcher(machine)?, &text, options).map_err(|e| fetch_error(&e))?;
    let (input, _) = resolve(machine, &reference, UseRegistries::All)?;
    let tree = fetch_input(machine, &input)?;
    store_place(machine, &tree.store_path)
}

fn get_flake(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let pure = machine.settings().pure_eval;
    let flags = LockFlags { update: false, write: false, use_registries: !pure, allow_unlocked: !pure, ..LockFlags::default() };
    let value = machine.force(args[0], pos)?;
    if value.as_path().is_some() {
        let (path, _) = machine.coerce_to_path(value, pos, "while evaluating the argument passed to builtins.getFlake")?;
        return call_flake(machine, &lock_flake_at(machine, &path, &flags)?);
    }
    let text = machine.force_string_no_context(value, pos, "while evaluating the argument passed to builtins.getFlake")?;
    let text = String::from_utf8_lossy(text.bytes()).into_owned();
    let options = ParseOptions { allow_missing: true, ..ParseOptions::default() };
    let reference = FlakeRef::parse(&*fetcher(machine)?, &text, options).map_err(|e| fetch_error(&e))?;
    if pure && !reference.input.is_locked() {
        let message = format!(
            "cannot call 'getFlake' on unlocked flake reference '{}', at {} (use --impure to override)",
            colored(text),
            place(pos)
        );
        return Err(Error::new(ErrorKind::Host, message));
    }
    // NIX: a path in a tree that evaluation already sees is that tree, not a new one.
    if reference.input.kind() == "path"
        && let Some(path) = reference.input.text("path")
        && machine.store_dir().contains(path.as_bytes())
        && reference.input.text("narHash").is_none()
    {
        let dir = AbsPath::new(path.as_bytes()).and_then(|path| path.beneath(reference.dir.as_bytes()));
        let dir = dir.map_err(|e| machine.host_error(e))?;
        if machine.host().path_exists(&dir, true).map_err(|e| machine.host_error(e))? {
            return call_flake(machine, &lock_flake_at(machine, &dir, &flags)?);
        }
    }
    call_flake(machine, &lock_flake(machine, &reference, &flags)?)
}

fn parse_flake_ref(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let what = "while evaluating the argument passed to builtins.parseFlakeRef";
    let text = machine.force_string_no_context(args[0], pos, what)?;
    let text = String::from_utf8_lossy(text.bytes()).into_owned();
    let options = ParseOptions { allow_missing: true, ..ParseOptions::default() };
    let reference = FlakeRef::parse(&*fetcher(machine)?, &text, options).map_err(|e| fetch_error(&e))?;
    let attrs = reference.to_attrs();
    let mut set = AttrsBuilder::with_capacity(attrs.len());
    for (name, attr) in &attrs {
        let value = match attr {
            Attr::Text(text) => Value::string(text.as_bytes(), Context::EMPTY),
            Attr::Flag(flag) => Value::bool(*flag),
            Attr::Number(_) | Attr::Lazy(_) => {
                let number = attr.number().map_err(|e| fetch_error(&e))?.unwrap_or_default();
                Value::int(i64::try_from(number).unwrap_or(i64::MAX))
            }
        };
        set.push(Symbol::from(name.as_str()), Pos::NONE, value);
    }
    Ok(set.finish())
}

fn flake_ref_to_string(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let what = "while evaluating the argument passed to builtins.flakeRefToString";
    let set = machine.force_attrs(args[0], Pos::NONE, what)?;
    let mut attrs = Attrs::new();
    for (name, at, cell) in set.iter() {
        let value = machine.force(cell, at)?;
        let attr = if let Some(number) = value.as_int() {
            Attr::Number(u64::try_from(number).map_err(|_| {
                let parts = (colored(name), colored(number));
                let message = format!("negative value given for flake ref attr {}: {}", parts.0, parts.1);
                Error::new(ErrorKind::Eval, message).at(pos)
            })?)
        } else if let Some(flag) = value.as_bool() {
            Attr::Flag(flag)
        } else if let Some(text) = value.as_str() {
            Attr::Text(String::from_utf8_lossy(text.bytes()).into_owned())
        } else {
            let message = format!(
                "flake reference attribute sets may only contain integers, Booleans, and strings, but attribute '{}' is {}",
                colored_name(name),
                colored(show_type(value))
            );
            return Err(Error::new(ErrorKind::Eval, message));
        };
        attrs.insert(String::from_utf8_lossy(name.as_bytes()).into_owned(), attr);
    }
    let reference = FlakeRef::from_attrs(&fetcher(machine)?.settings, attrs).map_err(|e| fetch_error(&e))?;
    let url = reference.to_url().map_err(|e| fetch_error(&e))?;
    Ok(Value::string(url.as_bytes(), Context::EMPTY))
}
