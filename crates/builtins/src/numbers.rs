//! Numbers.

use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, color_bytes, colored};
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
    Ok(Value::bool(machine.less_than(left, right, Pos::NONE, "")?))
}

fn bitwise(
    machine: &Machine,
    pos: Pos,
    args: &[Value],
    contexts: [&'static str; 2],
    combine: fn(i64, i64) -> i64,
) -> Result<Value> {
    let left = machine.force_int(args[0], pos, contexts[0])?;
    let right = machine.force_int(args[1], pos, contexts[1])?;
    Ok(Value::int(combine(left, right)))
}

fn bit_and(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let contexts = [
        "while evaluating the first argument passed to builtins.bitAnd",
        "while evaluating the second argument passed to builtins.bitAnd",
    ];
    bitwise(machine, pos, args, contexts, |a, b| a & b)
}

fn bit_or(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let contexts = [
        "while evaluating the first argument passed to builtins.bitOr",
        "while evaluating the second argument passed to builtins.bitOr",
    ];
    bitwise(machine, pos, args, contexts, |a, b| a | b)
}

fn bit_xor(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let contexts = [
        "while evaluating the first argument passed to builtins.bitXor",
        "while evaluating the second argument passed to builtins.bitXor",
    ];
    bitwise(machine, pos, args, contexts, |a, b| a ^ b)
}

fn ceil(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let x = machine.force_float(args[0], pos, "while evaluating the first argument passed to builtins.ceil")?;
    whole(machine.force(args[0], pos)?, x.ceil(), pos)
}

fn floor(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let x = machine.force_float(args[0], pos, "while evaluating the first argument passed to builtins.floor")?;
    whole(machine.force(args[0], pos)?, x.floor(), pos)
}

/// The rounded argument as an integer. NIX: integers take the way over floats too, and those that would come back
/// changed are refused.
fn whole(arg: Value, rounded: f64, pos: Pos) -> Result<Value> {
    const BUG: &str = "Due to a bug (see https://github.com/NixOS/nix/issues/12899)";
    const FUTURE: &str = "Future Nix versions might implement the correct behavior.";
    const LOWEST: f64 = i64::MIN as f64;
    let fits = (LOWEST..-LOWEST).contains(&rounded);
    let message = match arg.as_int() {
        Some(n) if !fits => {
            format!("{BUG} the NixInt argument {} caused undefined behavior in previous Nix versions.\n\t{FUTURE}", colored(n))
                .into_bytes()
        }
        Some(n) if n != rounded as i64 => format!(
            "{BUG} a loss of precision occurred in previous Nix versions because the NixInt argument {} was rounded to {}.\n\t{FUTURE}",
            colored(n),
            colored(rounded as i64)
        )
        .into_bytes(),
        None if !fits => {
            let mut shown = Vec::new();
            firn_text::float::write_general(&mut shown, arg.as_float().unwrap_or_default());
            [b"NixFloat argument ", color_bytes(&shown).as_slice(), b" is not in the range of NixInt"].concat()
        }
        _ => return Ok(Value::int(rounded as i64)),
    };
    Err(Error::new(ErrorKind::Eval, message).at(pos))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "add", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Add) },
    Builtin { name: "sub", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Sub) },
    Builtin { name: "mul", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Mul) },
    Builtin { name: "div", arity: 2, strict: 0b11, run: |m, pos, args| arithmetic(m, pos, args, BinaryOp::Div) },
    Builtin { name: "lessThan", arity: 2, strict: 0b11, run: less_than },
    Builtin { name: "bitAnd", arity: 2, strict: 0b01, run: bit_and },
    Builtin { name: "bitOr", arity: 2, strict: 0b01, run: bit_or },
    Builtin { name: "bitXor", arity: 2, strict: 0b01, run: bit_xor },
    Builtin { name: "ceil", arity: 1, strict: 1, run: ceil },
    Builtin { name: "floor", arity: 1, strict: 1, run: floor },
];
