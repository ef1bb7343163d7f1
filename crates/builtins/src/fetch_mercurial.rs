//! `fetchMercurial`: arguments are read as Nix does; the tree is the fetcher's business.

use crate::fetched::{call_error, check_uri, fetch_error, fetch_input, fetcher};
use crate::store;
use firn_eval::{Builtin, Coercion, Error, ErrorKind, Machine, Result, colored_name};
use firn_host::fetch::{Attr, Attrs, Input};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Context, Value};

#[derive(Default)]
struct Request {
    url: String,
    name: Option<String>,
    rev: Option<String>,
    branch: Option<String>,
}

fn text(machine: &Machine, value: Value, pos: Pos, what: &'static str) -> Result<String> {
    let text = machine.coerce_to_string(value, pos, what, Coercion::PLAIN)?;
    Ok(text.as_str().map_or_else(String::new, |s| String::from_utf8_lossy(s.bytes()).into_owned()))
}

fn read(machine: &Machine, pos: Pos, arg: Value) -> Result<Request> {
    let value = machine.force(arg, pos)?;
    let mut request = Request::default();
    let Some(set) = value.as_attrs() else {
        let what = "while evaluating the first argument passed to builtins.fetchMercurial";
        request.url = text(machine, value, pos, what)?;
        return Ok(request);
    };
    for (name, at, cell) in set.iter() {
        match name.as_bytes() {
            b"url" => {
                let what = "while evaluating the `url` attribute passed to builtins.fetchMercurial";
                request.url = text(machine, cell, at, what)?;
            }
            b"rev" => {
                let what = "while evaluating the `rev` attribute passed to builtins.fetchMercurial";
                let rev = machine.force_string_no_context(cell, at, what)?;
                let rev = String::from_utf8_lossy(rev.bytes()).into_owned();
                let is_hash = rev.len() == 40 && rev.bytes().all(|byte| byte.is_ascii_hexdigit());
                if is_hash { request.rev = Some(rev) } else { request.branch = Some(rev) }
            }
            b"name" => {
                let what = "while evaluating the `name` attribute passed to builtins.fetchMercurial";
                let name = machine.force_string_no_context(cell, at, what)?;
                request.name = Some(String::from_utf8_lossy(name.bytes()).into_owned());
            }
            _ => {
                let message = format!("unsupported argument '{}' to 'fetchMercurial'", colored_name(name));
                return Err(call_error(message, at));
            }
        }
    }
    if request.url.is_empty() { Err(call_error("'url' argument required", pos)) } else { Ok(request) }
}

fn fetch_mercurial(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let request = read(machine, pos, args[0])?;
    check_uri(machine, request.url.as_bytes())?;
    if machine.settings().pure_eval && request.rev.is_none() {
        let message = "in pure evaluation mode, 'fetchMercurial' requires a Mercurial revision";
        return Err(Error::new(ErrorKind::Host, message));
    }
    let url = if request.url.contains("://") { request.url } else { format!("file://{}", request.url) };
    let mut attrs = Attrs::from([("type".to_owned(), Attr::from("hg")), ("url".to_owned(), url.into())]);
    attrs.insert("name".to_owned(), request.name.unwrap_or_else(|| "source".to_owned()).into());
    for (name, value) in [("ref", request.branch), ("rev", request.rev)] {
        attrs.extend(value.map(|value| (name.to_owned(), Attr::from(value))));
    }
    let input = Input::from_attrs(&fetcher(machine)?.settings, attrs).map_err(|e| fetch_error(&e))?;
    let tree = fetch_input(machine, &input)?;
    let plain = |text: &str| Value::string(text.as_bytes(), Context::EMPTY);
    let mut set = AttrsBuilder::with_capacity(5);
    set.insert("outPath", store::store_path_string(machine, &tree.store_path));
    if let Some(branch) = tree.input.text("ref") {
        set.insert("branch", plain(branch));
    }
    let rev = tree.input.rev_text().map_err(|e| fetch_error(&e))?.unwrap_or_else(|| "0".repeat(40));
    set.insert("rev", plain(&rev));
    set.insert("shortRev", plain(&rev[..12]));
    if let Some(Attr::Number(count)) = tree.input.attrs.get("revCount") {
        set.insert("revCount", Value::int(i64::try_from(*count).unwrap_or(i64::MAX)));
    }
    Ok(set.finish())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "fetchMercurial", arity: 1, strict: 1, run: fetch_mercurial }];
