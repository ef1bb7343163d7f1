//! Attribute sets.

use firn_eval::{Builtin, Machine, Result};
use firn_source::Pos;
use firn_value::{Context, ListBuilder, Value};

fn attr_names(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[0], pos, "while evaluating the argument passed to builtins.attrNames")?;
    let mut names = ListBuilder::new(set.len());
    for (name, _, _) in set.iter_by_name() {
        names.push(Value::string(name.as_bytes(), Context::EMPTY));
    }
    Ok(names.finish())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "attrNames", arity: 1, strict: 1, run: attr_names }];
