//! Evaluation control: strictness, errors, traces.

use firn_eval::{Builtin, Coercion, Error, ErrorKind, Machine, Result};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Value};

fn throw(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let how = Coercion { copy_to_store: false, ..Coercion::INTERPOLATE };
    let text = machine.coerce_to_string(args[0], pos, "while evaluating the error message passed to builtin.throw", how)?;
    Err(Error::new(ErrorKind::Thrown, text.as_str().map_or(&[][..], |s| s.bytes())))
}

fn seq(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    machine.force(args[0], pos)?;
    machine.force(args[1], pos)
}

fn deep_seq(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    machine.force_deep(args[0])?;
    machine.force(args[1], pos)
}

fn try_eval(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let (value, success) = match machine.force(args[0], pos) {
        Ok(_) => (args[0], true),
        Err(error) if error.is_catchable() => (Value::FALSE, false),
        Err(error) => return Err(error),
    };
    let names = machine.names();
    let mut set = AttrsBuilder::with_capacity(2);
    set.push(names.value, Pos::NONE, value);
    set.push(names.success, Pos::NONE, Value::bool(success));
    Ok(set.finish())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "throw", arity: 1, strict: 0, run: throw },
    Builtin { name: "seq", arity: 2, strict: 0b11, run: seq },
    Builtin { name: "deepSeq", arity: 2, strict: 0, run: deep_seq },
    Builtin { name: "tryEval", arity: 1, strict: 0, run: try_eval },
];
