//! `fetchTree` and `fetchGit`: inputs given as sets or URLs.

use crate::fetched::{call_error, check_uri, fetch_error, fetch_input, fetcher, tree_attrs};
use firn_eval::{Builtin, Coercion, Error, ErrorKind, Machine, Result, colored, colored_name, missing_feature, show_type};
use firn_host::fetch::{Attr, Attrs, Fetcher, Input, Url, UseRegistries, fix_git_url};
use firn_source::Pos;
use firn_value::{ContextBuilder, Value};

/// Which of the builtins it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Tree,
    Git,
    /// What flakes fetch with: attributes of a lock file are all there is to know.
    Final,
}

impl Who {
    fn name(self) -> &'static str {
        if self == Who::Git { "fetchGit" } else { "fetchTree" }
    }
}

fn utf8(bytes: &[u8], pos: Pos) -> Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| {
        let shown = colored(String::from_utf8_lossy(bytes));
        call_error(format!("'{shown}' cannot name an input: it is not UTF-8"), pos)
    })
}

fn read_set(machine: &Machine, pos: Pos, set: firn_value::Attrs, who: Who) -> Result<Attrs> {
    let mut attrs = Attrs::new();
    let kind = machine.names().type_;
    let given = match set.get_with_pos(kind) {
        Some(_) if who == Who::Git => return Err(call_error("unexpected argument 'type'", pos)),
        Some((cell, at)) => {
            let what = "while evaluating the `type` argument passed to 'fetchTree'";
            utf8(machine.force_string_no_context(cell, at, what)?.bytes(), pos)?
        }
        None if who == Who::Git => "git".to_owned(),
        None => {
            let message = format!("argument 'type' is missing in call to '{}'", colored(who.name()));
            return Err(call_error(message, pos));
        }
    };
    attrs.insert("type".to_owned(), given.into());
    for (name, at, cell) in set.iter().filter(|(name, ..)| *name != kind) {
        let value = machine.force(cell, at)?;
        let key = String::from_utf8_lossy(name.as_bytes()).into_owned();
        let attr = read_attr(machine, pos, (name, at), value, who)?;
        attrs.insert(key, attr);
    }
    Ok(attrs)
}

fn read_attr(
    machine: &Machine,
    pos: Pos,
    (name, at): (firn_source::Symbol, Pos),
    value: Value,
    who: Who,
) -> Result<Attr> {
    if value.as_str().is_some() || value.as_path().is_some() {
        let text = machine.coerce_to_string(value, at, "", Coercion::PLAIN)?;
        let text = utf8(text.as_str().map_or(&[], |s| s.bytes()), at)?;
        if who == Who::Git && name.as_bytes() == b"url" {
            return Ok(fix_git_url(&text).map_err(|e| fetch_error(&e))?.to_string().into());
        }
        return Ok(text.into());
    }
    if let Some(flag) = value.as_bool() {
        return Ok(Attr::Flag(flag));
    }
    if let Some(number) = value.as_int() {
        return u64::try_from(number).map(Attr::Number).map_err(|_| {
            let parts = (colored(who.name()), colored(name), colored(number));
            call_error(format!("negative value given for '{}' argument '{}': {}", parts.0, parts.1, parts.2), pos)
        });
    }
    if name.as_bytes() == b"publicKeys" {
        if !fetcher(machine)?.settings.verified_fetches {
            return Err(missing_feature("verified-fetches"));
        }
        let (mut json, mut context) = (Vec::new(), ContextBuilder::default());
        crate::value_to_json(machine, value, true, pos, &mut json, &mut context, true)?;
        return Ok(utf8(&json, at)?.into());
    }
    let message = format!(
        "argument '{}' to '{}' is {} while a string, Boolean or integer is expected",
        colored_name(name),
        colored(who.name()),
        colored(show_type(value))
    );
    Err(Error::new(ErrorKind::Type, message))
}

/// What the argument means.
fn read_input(machine: &Machine, pos: Pos, arg: Value, who: Who, fetcher: &Fetcher) -> Result<Input> {
    let failed = |error| fetch_error(&error);
    let value = machine.force(arg, pos)?;
    if let Some(set) = value.as_attrs() {
        let mut attrs = read_set(machine, pos, set, who)?;
        if who == Who::Git {
            ignore_by_default(&mut attrs);
        } else {
            if attrs.get("type") == Some(&Attr::from("git")) && who == Who::Tree {
                attrs.entry("shallow".to_owned()).or_insert(Attr::Flag(true));
            }
            if attrs.contains_key("name") {
                let message = format!("argument 'name' isn’t supported in call to '{}'", colored(who.name()));
                return Err(call_error(message, pos));
            }
        }
        return Input::from_attrs(&fetcher.settings, attrs).map_err(failed);
    }
    let what = match who {
        Who::Git => "while evaluating the first argument passed to 'fetchGit'",
        _ => "while evaluating the first argument passed to 'fetchTree'",
    };
    let text = machine.coerce_to_string(value, pos, what, Coercion::PLAIN)?;
    let url = utf8(text.as_str().map_or(&[], |s| s.bytes()), pos)?;
    if who == Who::Git {
        let url = fix_git_url(&url).map_err(failed)?.to_string();
        let mut attrs = Attrs::from([("type".to_owned(), Attr::from("git")), ("url".to_owned(), url.into())]);
        ignore_by_default(&mut attrs);
        return Input::from_attrs(&fetcher.settings, attrs).map_err(failed);
    }
    if !machine.settings().features.flakes {
        let name = colored(who.name());
        let message = format!("passing a string argument to '{name}' requires the 'flakes' experimental feature");
        return Err(call_error(message, pos));
    }
    Input::from_url(&fetcher.settings, &Url::parse(&url, false).map_err(failed)?, true).map_err(failed)
}

/// NIX: `fetchGit` leaves out what `export-ignore` names, unless submodules are wanted.
fn ignore_by_default(attrs: &mut Attrs) {
    if !matches!(attrs.get("submodules"), Some(Attr::Flag(true))) {
        attrs.entry("exportIgnore".to_owned()).or_insert(Attr::Flag(true));
    }
}

fn fetch(machine: &Machine, pos: Pos, arg: Value, who: Who) -> Result<Value> {
    let failed = |error| fetch_error(&error);
    let fetcher = fetcher(machine)?;
    let mut input = read_input(machine, pos, arg, who, &fetcher)?;
    let pure = machine.settings().pure_eval;
    if !pure && !input.is_direct() && machine.settings().features.flakes {
        input = fetcher.look_up(&input, UseRegistries::Limited).map_err(failed)?.0;
    }
    if pure && !input.is_locked() {
        let shown = colored(input.show());
        if input.nar_hash().map_err(failed)?.is_none() {
            let name = colored(who.name());
            let message = format!("in pure evaluation mode, '{name}' doesn't fetch unlocked input '{shown}'");
            return Err(call_error(message, pos));
        }
        fetcher.warn(&format!(
            "Input '{shown}' is unlocked (e.g. lacks a Git revision) but is checked by NAR hash. This is not reproducible \
             and will break after garbage collection or when shared."
        ));
    }
    check_uri(machine, input.to_url().map_err(failed)?.to_string().as_bytes())?;
    if who == Who::Final {
        input.set("__final", Attr::Flag(true));
    } else if input.is_final() {
        let message = format!("input '{}' is not allowed to use the '__final' attribute", colored(input.show()));
        return Err(Error::new(ErrorKind::Host, message));
    }
    if !input.is_direct() {
        let shown = colored(input.show());
        let message = format!("'{shown}' is an indirect flake reference, but registry lookups are not allowed");
        return Err(Error::new(ErrorKind::Host, message));
    }
    let tree = fetch_input(machine, &input)?;
    tree_attrs(machine, &tree.store_path, &tree.input, who == Who::Git, false)
}

fn fetch_tree(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    fetch(machine, pos, args[0], Who::Tree)
}

fn fetch_git(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    fetch(machine, pos, args[0], Who::Git)
}

/// `fetchTree` for inputs of a lock file, which are final.
pub fn fetch_final_tree(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    fetch(machine, pos, args[0], Who::Final)
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "fetchGit", arity: 1, strict: 1, run: fetch_git }];

/// Those behind the feature `fetch-tree`.
pub(crate) const GATED: &[Builtin] = &[Builtin { name: "fetchTree", arity: 1, strict: 1, run: fetch_tree }];
