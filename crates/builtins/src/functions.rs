//! Functions and their arguments.

use firn_eval::{Builtin, Error, ErrorKind, Machine, Result};
use firn_source::Pos;
use firn_value::{Attrs, AttrsBuilder, Function, Value};

fn function_args(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force(args[0], pos)?;
    // NIX: a set with `__functor` is no function here.
    if function.as_function().is_none() {
        return Err(Error::new(ErrorKind::Type, "'functionArgs' requires a function").at(pos));
    }
    let Some(pattern) = machine.formals(function) else { return Ok(Attrs::empty()) };
    let mut set = AttrsBuilder::with_capacity(pattern.formals.len());
    for formal in pattern.formals {
        set.push(formal.name, formal.pos, Value::bool(formal.default.is_some()));
    }
    Ok(set.finish_first())
}

/// Has the calls of a function remembered (L1.8). The function is the same: nothing but time tells.
fn memoise(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force(args[0], pos)?;
    let mut inner = function;
    loop {
        match inner.as_function() {
            Some(Function::Closure(closure)) => closure.lambda().marks.remember(),
            Some(Function::Partial(partial)) => {
                inner = partial.function();
                continue;
            }
            Some(Function::Primop(_)) => {}
            None => return Err(Error::new(ErrorKind::Type, "'memoise' requires a function").at(pos)),
        }
        return Ok(function);
    }
}

/// Behind `memoise`.
pub(crate) const GATED: &[Builtin] = &[Builtin { name: "memoise", arity: 1, strict: 1, run: memoise }];

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "functionArgs", arity: 1, strict: 1, run: function_args }];
