//! `fetchClosure`: a store path with all it refers to, from a binary cache. What is in the store already is given;
//! copying from a cache is not done here, and is said so.

use crate::fetched::call_error;
use crate::store;
use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, color_bytes, colored, colored_name, store_error};
use firn_source::Pos;
use firn_store::path::StorePath;
use firn_value::Value;

#[derive(Default)]
struct Request {
    from: Option<StorePath>,
    /// Where the rewritten path is expected; an empty text asks for it.
    to: Option<Option<StorePath>>,
    store: Option<Vec<u8>>,
    input_addressed: bool,
}

fn store_path(machine: &Machine, pos: Pos, cell: Value, what: &'static str) -> Result<StorePath> {
    let (path, _) = machine.coerce_to_path(cell, pos, what)?;
    machine.store_dir().parse(path.as_bytes()).map_err(|e| store_error(&e).trace(pos, what))
}

fn read(machine: &Machine, pos: Pos, arg: Value) -> Result<Request> {
    let set = machine.force_attrs(arg, pos, "while evaluating the argument passed to builtins.fetchClosure")?;
    let mut request = Request::default();
    for (name, at, cell) in set.iter() {
        match name.as_bytes() {
            b"fromPath" => {
                let what = "while evaluating the attribute 'fromPath' passed to builtins.fetchClosure";
                request.from = Some(store_path(machine, at, cell, what)?);
            }
            b"toPath" => {
                let value = machine.force(cell, at)?;
                let empty = value.as_str().is_some_and(|text| text.bytes().is_empty());
                let what = "while evaluating the attribute 'toPath' passed to builtins.fetchClosure";
                request.to = Some(if empty { None } else { Some(store_path(machine, at, value, what)?) });
            }
            b"fromStore" => {
                let what = "while evaluating the attribute 'fromStore' passed to builtins.fetchClosure";
                request.store = Some(machine.force_string_no_context(cell, at, what)?.bytes().to_vec());
            }
            b"inputAddressed" => {
                let what = "while evaluating the attribute 'inputAddressed' passed to builtins.fetchClosure";
                request.input_addressed = machine.force_bool(cell, at, what)?;
            }
            _ => {
                let message = format!("attribute '{}' isn't supported in call to 'fetchClosure'", colored_name(name));
                return Err(call_error(message, pos));
            }
        }
    }
    Ok(request)
}

fn missing(name: &str, pos: Pos) -> Box<Error> {
    call_error(format!("attribute '{}' is missing in call to 'fetchClosure'", colored(name)), pos)
}

fn fetch_closure(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let request = read(machine, pos, args[0])?;
    let from = request.from.ok_or_else(|| missing("fromPath", pos))?;
    if request.input_addressed && request.to.is_some() {
        let parts = (colored("inputAddressed"), colored("toPath"));
        let message = format!("attribute '{}' is set to true, but '{}' is also set. Please remove one of them", parts.0, parts.1);
        return Err(call_error(message, pos));
    }
    let url = request.store.ok_or_else(|| missing("fromStore", pos))?;
    if !url.starts_with(b"http://") && !url.starts_with(b"https://") {
        return Err(call_error("'fetchClosure' only supports http:// and https:// stores", pos));
    }
    if url.contains(&b'?') {
        let parts = [b"'fetchClosure' does not support URL query parameters (in '".as_slice(), &color_bytes(&url), b"')"];
        return Err(call_error(parts.concat(), pos));
    }
    let wanted = match request.to {
        Some(Some(to)) => Some(to),
        Some(None) => None,
        None => Some(from.clone()),
    };
    let store = store::store(machine);
    if let Some(wanted) = wanted
        && store.backend.is_valid(&wanted).map_err(|e| store_error(&e))?
    {
        for part in store.closure(machine, &wanted)? {
            store::allow(machine, &part)?;
        }
        return Ok(store::store_path_string(machine, &wanted));
    }
    let shown = [color_bytes(&machine.store_dir().print(&from)), color_bytes(&url)];
    let parts = [
        b"cannot copy '".as_slice(),
        &shown[0],
        b"' from '",
        &shown[1],
        b"': it is not in the store, and copying from binary caches is not supported",
    ];
    Err(Error::new(ErrorKind::Store, parts.concat()).at(pos))
}

/// The builtin behind the feature `fetch-closure`.
pub(crate) const GATED: &[Builtin] = &[Builtin { name: "fetchClosure", arity: 1, strict: 1, run: fetch_closure }];
