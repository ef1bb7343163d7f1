//! Versions and derivation names.

use firn_eval::{Builtin, Machine, Result};
use firn_source::Pos;
use firn_text::version;
use firn_value::{AttrsBuilder, Context, ListBuilder, Value};

fn parse_drv_name(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.parseDrvName";
    let string = machine.force_string_no_context(args[0], pos, context)?;
    let (name, version) = version::parse_drv_name(string.bytes());
    let mut set = AttrsBuilder::with_capacity(2);
    set.push(machine.names().name, Pos::NONE, Value::string(name, Context::EMPTY));
    set.push(machine.names().version, Pos::NONE, Value::string(version, Context::EMPTY));
    Ok(set.finish())
}

fn compare_versions(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.compareVersions";
    let left = machine.force_string_no_context(args[0], pos, context)?;
    let context = "while evaluating the second argument passed to builtins.compareVersions";
    let right = machine.force_string_no_context(args[1], pos, context)?;
    Ok(Value::int(version::compare(left.bytes(), right.bytes()) as i64))
}

fn split_version(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.splitVersion";
    let string = machine.force_string_no_context(args[0], pos, context)?;
    let parts: Vec<Value> =
        version::components(string.bytes()).map(|part| Value::string(part, Context::EMPTY)).collect();
    Ok(ListBuilder::of(&parts))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "parseDrvName", arity: 1, strict: 1, run: parse_drv_name },
    Builtin { name: "compareVersions", arity: 2, strict: 1, run: compare_versions },
    Builtin { name: "splitVersion", arity: 1, strict: 1, run: split_version },
];
