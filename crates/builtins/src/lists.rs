//! Lists.

use firn_eval::{Builtin, Machine, Result};
use firn_source::Pos;
use firn_value::{ListBuilder, Thunk, Value};

fn length(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[0], pos, "while evaluating the first argument passed to builtins.length")?;
    Ok(Value::int(list.len() as i64))
}

fn map(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.map")?;
    if list.is_empty() {
        return Ok(list.value());
    }
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.map")?;
    let mut out = ListBuilder::new(list.len());
    for item in list.iter() {
        out.push(Thunk::apply(function, &[item]));
    }
    Ok(out.finish())
}

fn foldl(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.foldlStrict")?;
    let list = machine.force_list(args[2], pos, "while evaluating the third argument passed to builtins.foldlStrict")?;
    let mut accumulator = args[1];
    for item in list.iter() {
        accumulator = machine.call(function, &[accumulator, item], pos)?;
    }
    machine.force(accumulator, pos)
}

fn gen_list(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let count = machine.force_int(args[1], pos, "while evaluating the second argument passed to builtins.genList")?;
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.genList")?;
    let mut out = ListBuilder::new(count as usize);
    for i in 0..count {
        out.push(Thunk::apply(function, &[Value::int(i)]));
    }
    Ok(out.finish())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "length", arity: 1, strict: 1, run: length },
    Builtin { name: "map", arity: 2, strict: 0b10, run: map },
    Builtin { name: "foldl'", arity: 3, strict: 0b001, run: foldl },
    Builtin { name: "genList", arity: 2, strict: 0b10, run: gen_list },
];
