//! `fetchClosure`: a store path with all it refers to, from a binary cache. Arguments are read as Nix does; finding the
//! closure is the fetcher's business.

use crate::fetched::{call_error, fetch_error, fetcher, show};
use crate::store;
use firn_eval::{Builtin, Error, Machine, Result, color_bytes, colored, colored_name, store_error};
use firn_host::fetch::{ClosureRequest, Copied, FetchErrorKind};
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

/// Refuses a store that closures are not fetched from. NIX: `file:` is there for those who test Nix.
fn check_url(machine: &Machine, pos: Pos, url: &[u8]) -> Result<()> {
    let network = url.starts_with(b"http://") || url.starts_with(b"https://");
    if !network && !(url.starts_with(b"file://") && machine.host().env(b"_NIX_IN_TEST").is_some()) {
        return Err(call_error("'fetchClosure' only supports http:// and https:// stores", pos));
    }
    if url.contains(&b'?') {
        let parts = [b"'fetchClosure' does not support URL query parameters (in '".as_slice(), &color_bytes(url), b"')"];
        return Err(call_error(parts.concat(), pos));
    }
    Ok(())
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
    check_url(machine, pos, &url)?;
    let url = String::from_utf8_lossy(&url).into_owned();
    let wanted = ClosureRequest { url, from, to: request.to, input_addressed: request.input_addressed };
    let store = store::store(machine);
    let closure = fetcher(machine)?.fetch_closure(&wanted, &*store.backend, machine.store_dir());
    let closure = closure.map_err(|error| {
        let at_call = error.kind() == FetchErrorKind::AtCall;
        if at_call { fetch_error(&error).at(pos) } else { fetch_error(&error) }
    })?;
    for Copied { info, mount } in &closure.objects {
        if let Some(mount) = mount {
            // Shown first: a store that writes behind evaluation is not waited for.
            show(machine, &info.path, mount)?;
            store.backend.add_object(info, &mount.root, &mount.host).map_err(|e| store_error(&e))?;
        }
        store::allow(machine, &info.path)?;
    }
    Ok(store::store_path_string(machine, &closure.path))
}

/// The builtin behind the feature `fetch-closure`.
pub(crate) const GATED: &[Builtin] = &[Builtin { name: "fetchClosure", arity: 1, strict: 1, run: fetch_closure }];
