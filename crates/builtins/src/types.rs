//! Questions about types.

use firn_eval::{Builtin, Machine, Result};
use firn_source::Pos;
use firn_value::{Context, Type, Value};

fn is(machine: &Machine, value: Value, pos: Pos, wanted: Type) -> Result<Value> {
    Ok(Value::bool(machine.force(value, pos)?.get_type() == Some(wanted)))
}

fn type_of(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let name = match machine.force(args[0], pos)?.get_type() {
        Some(Type::Null) | None => "null",
        Some(Type::Bool) => "bool",
        Some(Type::Int) => "int",
        Some(Type::Float) => "float",
        Some(Type::String) => "string",
        Some(Type::Path) => "path",
        Some(Type::List) => "list",
        Some(Type::Attrs) => "set",
        Some(Type::Function) => "lambda",
    };
    Ok(Value::string(name.as_bytes(), Context::EMPTY))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "isNull", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Null) },
    Builtin { name: "isBool", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Bool) },
    Builtin { name: "isInt", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Int) },
    Builtin { name: "isFloat", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Float) },
    Builtin { name: "isString", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::String) },
    Builtin { name: "isPath", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Path) },
    Builtin { name: "isList", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::List) },
    Builtin { name: "isAttrs", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Attrs) },
    Builtin { name: "isFunction", arity: 1, strict: 1, run: |m, pos, args| is(m, args[0], pos, Type::Function) },
    Builtin { name: "typeOf", arity: 1, strict: 1, run: type_of },
];
