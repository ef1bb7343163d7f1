//! Fetchers: not here yet. Each says what is missing instead of an undefined variable.

use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, colored};
use firn_source::Pos;
use firn_value::Value;

fn missing(name: &str, pos: Pos) -> Result<Value> {
    let message = format!("'{}' is not supported: this evaluator fetches nothing", colored(format_args!("builtins.{name}")));
    Err(Error::new(ErrorKind::Eval, message).at(pos))
}

fn fetchurl(_: &Machine, pos: Pos, _: &[Value]) -> Result<Value> {
    missing("fetchurl", pos)
}

fn fetch_tarball(_: &Machine, pos: Pos, _: &[Value]) -> Result<Value> {
    missing("fetchTarball", pos)
}

fn fetch_git(_: &Machine, pos: Pos, _: &[Value]) -> Result<Value> {
    missing("fetchGit", pos)
}

fn fetch_mercurial(_: &Machine, pos: Pos, _: &[Value]) -> Result<Value> {
    missing("fetchMercurial", pos)
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "fetchurl", arity: 1, strict: 0, run: fetchurl },
    Builtin { name: "fetchTarball", arity: 1, strict: 0, run: fetch_tarball },
    Builtin { name: "fetchGit", arity: 1, strict: 0, run: fetch_git },
    Builtin { name: "fetchMercurial", arity: 1, strict: 0, run: fetch_mercurial },
];
