//! `fetchurl` and `fetchTarball`: what is pinned and already in the store is found there, the rest is downloaded.

use crate::fetched::{check_uri, fetch_error, fetch_input, fetcher, place as place_tree};
use crate::sources::parse_hash;
use crate::store::{self, eval_error};
use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, color_bytes, colored, store_error};
use firn_host::fetch::{Attr, Attrs, Input};
use firn_host::{AbsPath, Host, Mount};
use firn_source::Pos;
use firn_store::content_address::{ContentAddress, Method};
use firn_store::hash::{Algorithm, Format, Hash};
use firn_store::path::check_name;
use firn_store::store_dir::References;
use firn_value::Value;
use std::os::unix::ffi::OsStrExt;

/// What `fetchurl` and `fetchTarball` were asked for.
struct Request {
    url: Vec<u8>,
    name: Vec<u8>,
    hash: Option<Hash>,
    /// How an invalid name is mended, with `%` for the fetcher.
    advice: &'static str,
}

fn read_request(machine: &Machine, pos: Pos, arg: Value, who: &str, name: &str) -> Result<Request> {
    let value = machine.force(arg, pos)?;
    let (mut name, mut hash) = (name.as_bytes().to_vec(), None);
    let what = "while evaluating the url we should fetch";
    let Some(set) = value.as_attrs() else {
        let url = machine.force_string_no_context(value, pos, what)?.bytes().to_vec();
        let advice = "Please pass an attribute set with 'url' and 'name' attributes to '%',  so that it can create a \
                      valid store path.";
        return Ok(Request { url, name, hash, advice });
    };
    let mut url = None;
    let mut advice =
        "Please add a valid 'name' attribute to the argument for '%', so that it can create a valid store path.";
    for (key, at, value) in set.iter() {
        match key.as_bytes() {
            b"url" => url = Some(machine.force_string_no_context(value, at, what)?.bytes().to_vec()),
            b"sha256" => {
                let what = "while evaluating the sha256 of the content we should fetch";
                let text = machine.force_string_no_context(value, at, what)?;
                hash = Some(parse_hash(machine, text.bytes(), Some(Algorithm::Sha256))?);
            }
            b"name" => {
                let what = "while evaluating the name of the content we should fetch";
                name = machine.force_string_no_context(value, at, what)?.bytes().to_vec();
                advice = "Please change the value for the 'name' attribute passed to '%', so that it can create a \
                          valid store path.";
            }
            other => {
                let shown = [color_bytes(other), color_bytes(who.as_bytes())];
                let parts = [b"unsupported argument '".as_slice(), &shown[0], b"' to '", &shown[1], b"'"];
                return Err(eval_error(parts.concat(), pos));
            }
        }
    }
    match url {
        Some(url) => Ok(Request { url, name, hash, advice }),
        None => Err(eval_error("'url' argument required", pos)),
    }
}

fn base_name(url: &[u8]) -> &[u8] {
    let end = url.iter().rposition(|&byte| byte != b'/').map_or(url.len().min(1), |at| at + 1);
    let start = url[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    &url[start..end]
}

fn fetch(machine: &Machine, pos: Pos, arg: Value, who: &str, name: &str, method: Method) -> Result<Value> {
    let mut request = read_request(machine, pos, arg, who, name)?;
    if who == "fetchTarball" {
        request.url = firn_host::tarball_url(&request.url);
    }
    check_uri(machine, &request.url)?;
    if request.name.is_empty() {
        request.name = base_name(&request.url).to_vec();
    }
    if let Err(why) = check_name(&request.name) {
        return Err(bad_name(&request, why.message(), who, pos));
    }
    if machine.settings().pure_eval && request.hash.is_none() {
        let message = format!("in pure evaluation mode, '{}' requires a 'sha256' argument", colored(who));
        return Err(eval_error(message, pos));
    }
    if let Some(hash) = request.hash.filter(|hash| hash.algorithm() == Algorithm::Sha256) {
        let address = ContentAddress { method, hash };
        let dir = machine.store_dir();
        let path =
            dir.make_fixed_output_path(&request.name, &address, References::default()).map_err(|e| store_error(&e))?;
        if store::store(machine).backend.is_valid(&path).map_err(|e| store_error(&e))? {
            store::allow(machine, &path)?;
            return Ok(store::store_path_string(machine, &path));
        }
    }
    if method == Method::Nar { download_tree(machine, &request) } else { download_file(machine, &request) }
}

/// The tree in a tarball.
fn download_tree(machine: &Machine, request: &Request) -> Result<Value> {
    let text = |bytes: &[u8]| Attr::from(String::from_utf8_lossy(bytes).into_owned());
    let mut attrs = Attrs::from([("type".to_owned(), Attr::from("tarball")), ("url".to_owned(), text(&request.url))]);
    attrs.insert("name".to_owned(), text(&request.name));
    if let Some(hash) = request.hash {
        attrs.insert("narHash".to_owned(), hash.to_string(Format::Sri, true).into());
    }
    let input = Input::from_attrs(&fetcher(machine)?.settings, attrs).map_err(|e| fetch_error(&e))?;
    let tree = fetch_input(machine, &input)?;
    Ok(store::store_path_string(machine, &tree.store_path))
}

/// A file as it is.
fn download_file(machine: &Machine, request: &Request) -> Result<Value> {
    let fetcher = fetcher(machine)?;
    let url = String::from_utf8_lossy(&request.url);
    let place = fetcher.downloaded(&url).map_err(|e| fetch_error(&e))?;
    let root = AbsPath::new(place.as_os_str().as_bytes()).map_err(|e| machine.host_error(e))?;
    let mount = Mount { host: fetcher.fresh_disk(), root, excluded: Default::default() };
    let content = mount.host.read_once(&mount.root).map_err(|e| machine.host_error(e))?;
    let hash = Hash::of(Algorithm::Sha256, content.bytes());
    if let Some(wanted) = request.hash.filter(|wanted| *wanted != hash) {
        let parts = (colored(url), wanted.to_string(Format::Nix32, true), hash.to_string(Format::Nix32, true));
        let (specified, got) = (colored(parts.1), colored(parts.2));
        let message =
            format!("hash mismatch in file downloaded from '{}':\n  specified: {specified}\n  got:       {got}", parts.0);
        return Err(Error::new(ErrorKind::Eval, message).exit_with(102));
    }
    let address = ContentAddress { method: Method::Flat, hash };
    let dir = machine.store_dir();
    let path = dir.make_fixed_output_path(&request.name, &address, References::default()).map_err(|e| store_error(&e))?;
    place_tree(machine, &path, &mount, Method::Flat)?;
    Ok(store::store_path_string(machine, &path))
}

#[cold]
fn bad_name(request: &Request, why: &[u8], who: &str, pos: Pos) -> Box<Error> {
    let advice = request.advice.replace('%', who);
    let shown = color_bytes(&request.url);
    let parts =
        [b"invalid store path name when fetching URL '".as_slice(), &shown, b"': ", why, b". ", advice.as_bytes()];
    eval_error(parts.concat(), pos)
}

fn fetchurl(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    fetch(machine, pos, args[0], "fetchurl", "", Method::Flat)
}

fn fetch_tarball(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    fetch(machine, pos, args[0], "fetchTarball", "source", Method::Nar)
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "fetchurl", arity: 1, strict: 1, run: fetchurl },
    Builtin { name: "fetchTarball", arity: 1, strict: 1, run: fetch_tarball },
];
