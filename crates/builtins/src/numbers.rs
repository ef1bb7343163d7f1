//! Numbers.

use firn_eval::{Builtin, Machine, Result};
use firn_ir::BinaryOp;
use firn_source::Pos;
use firn_value::Value;

fn arithmetic(machine: &Machine, pos: Pos, args: &[Value], op: BinaryOp) -> Result<Value> {
    let left = machine.force(args[0], pos)?;
    let right = machine.force(args[1], pos)?;
    machine.arithmetic(op, left, right, pos)
}

fn less_than(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let left = machine.force(args[0], pos)?;
    let right = machine.force(args[1], pos)?;
    Ok(Value::bool(machine.less_than(left, right, pos, "while evaluating the ordering function")?))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "add", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Add) },
    Builtin { name: "sub", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Sub) },
    Builtin { name: "mul", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Mul) },
    Builtin { name: "div", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Div) },
    Builtin { name: "lessThan", arity: 2, strict: 0b11, run: less_than },
];
