//! String contexts: asking for them, adding to them, dropping them.

use firn_eval::{
    Builtin, Coercion, Error, ErrorKind, Machine, Result, color_bytes, colored, colored_name, context_elements,
    context_of,
};
use firn_source::{Pos, Symbol};
use firn_store::context::{Built, Element};
use firn_store::path::StorePath;
use firn_value::{AttrsBuilder, Context, ListBuilder, Str, Value};
use std::collections::BTreeMap;

/// The argument as a string; paths are copied to the store.
fn coerced(machine: &Machine, value: Value, pos: Pos, context: &'static str) -> Result<Str> {
    let value = machine.coerce_to_string(value, pos, context, Coercion::INTERPOLATE)?;
    Ok(value.as_str().expect("coercion gives a string"))
}

fn with_context(string: Str, context: Context) -> Value {
    string.slice(0..string.bytes().len(), context)
}

fn has_context(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let string = machine.force_string(args[0], pos, "while evaluating the argument passed to builtins.hasContext")?;
    Ok(Value::bool(!string.context().is_empty()))
}

fn discard_context(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the argument passed to builtins.unsafeDiscardStringContext";
    Ok(with_context(coerced(machine, args[0], pos, context)?, Context::EMPTY))
}

fn discard_output_dependency(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the argument passed to builtins.unsafeDiscardOutputDependency";
    let string = coerced(machine, args[0], pos, context)?;
    let mut elements = context_elements(string.context());
    for element in &mut elements {
        if let Element::DrvDeep(path) = element {
            *element = Element::Opaque(path.clone());
        }
    }
    Ok(with_context(string, context_of(&elements)))
}

fn add_drv_output_dependencies(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the argument passed to builtins.addDrvOutputDependencies";
    let string = coerced(machine, args[0], pos, context)?;
    let elements = context_elements(string.context());
    let fail = |message: Vec<u8>| Err(Error::new(ErrorKind::Eval, message).at(pos));
    let [element] = &elements[..] else {
        let count = format!("' must have exactly one element, but has {}", colored(elements.len()));
        return fail([b"context of string '", &color_bytes(string.bytes())[..], count.as_bytes()].concat());
    };
    match element {
        Element::DrvDeep(_) => Ok(string.value()),
        Element::Opaque(path) if path.is_derivation() => {
            Ok(with_context(string, context_of([&Element::DrvDeep(path.clone())])))
        }
        Element::Opaque(path) => {
            let path = color_bytes(&machine.store_dir().print(path));
            fail([b"path '", &path[..], b"' is not a derivation"].concat())
        }
        Element::Built(built) => {
            let text: &[u8] =
                b"`addDrvOutputDependencies` can only act on derivations, not on a derivation output such as '";
            fail([text, &color_bytes(built.last_output()), b"'"].concat())
        }
    }
}

/// What a context says of one store path.
#[derive(Default)]
struct Info {
    path: bool,
    all_outputs: bool,
    outputs: Vec<Value>,
}

fn get_context(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let string = machine.force_string(args[0], pos, "while evaluating the argument passed to builtins.getContext")?;
    let mut infos: BTreeMap<StorePath, Info> = BTreeMap::new();
    for element in context_elements(string.context()) {
        match element {
            Element::Opaque(path) => infos.entry(path).or_default().path = true,
            Element::DrvDeep(path) => infos.entry(path).or_default().all_outputs = true,
            Element::Built(built) if built.is_dynamic() => return Err(unresolved(machine, &built)),
            Element::Built(built) => {
                let output = Value::string(&built.output, Context::EMPTY);
                infos.entry(built.drv).or_default().outputs.push(output);
            }
        }
    }
    let names = machine.names();
    let mut set = AttrsBuilder::with_capacity(infos.len());
    for (path, info) in infos {
        let mut inner = AttrsBuilder::with_capacity(3);
        if info.path {
            inner.push(names.path, Pos::NONE, Value::TRUE);
        }
        if info.all_outputs {
            inner.push(names.all_outputs, Pos::NONE, Value::TRUE);
        }
        if !info.outputs.is_empty() {
            inner.push(names.outputs, Pos::NONE, ListBuilder::of(&info.outputs));
        }
        set.push(Symbol::intern(&machine.store_dir().print(&path)), Pos::NONE, inner.finish());
    }
    Ok(set.finish())
}

/// An output of a derivation that is itself an output: which path it is, only a build could tell.
#[cold]
fn unresolved(machine: &Machine, built: &Built) -> Box<Error> {
    let drv = color_bytes(&machine.store_dir().print(&built.drv));
    let message =
        [&b"cannot operate on output '"[..], &color_bytes(&built.output), b"' of the unbuilt derivation '", &drv, b"'"];
    Error::new(ErrorKind::Store, message.concat())
}

fn append_context(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.appendContext";
    let string = machine.force_string(args[0], Pos::NONE, context)?;
    let context = "while evaluating the second argument passed to builtins.appendContext";
    let set = machine.force_attrs(args[1], pos, context)?;
    let mut added = Vec::new();
    for (name, name_pos, cell) in set.iter() {
        let Ok(path) = machine.store_dir().parse(name.as_bytes()) else {
            let message = format!("context key '{}' is not a store path", colored_name(name));
            return Err(Error::new(ErrorKind::Eval, message).at(name_pos));
        };
        crate::store::store(machine).ensure(machine, &path)?;
        append_of(machine, (name, name_pos, &path), cell, &mut added)?;
    }
    Ok(with_context(string, string.context().union(context_of(&added))))
}

/// Adds what the set in `cell` says of one path.
fn append_of(machine: &Machine, key: (Symbol, Pos, &StorePath), cell: Value, added: &mut Vec<Element>) -> Result<()> {
    let (name, name_pos, path) = key;
    let names = machine.names();
    let no_derivation = |what: &str| {
        let name = colored_name(name);
        let message = format!("tried to add {what} context of {name}, which is not a derivation, to a string");
        Error::new(ErrorKind::Eval, message).at(name_pos)
    };
    let is_derivation = name.as_bytes().ends_with(b".drv");
    let info = machine.force_attrs(cell, name_pos, "while evaluating the value of a string context")?;
    if let Some((cell, pos)) = info.get_with_pos(names.path) {
        let context = "while evaluating the `path` attribute of a string context";
        if machine.force_bool(cell, pos, context)? {
            added.push(Element::Opaque(path.clone()));
        }
    }
    if let Some((cell, pos)) = info.get_with_pos(names.all_outputs) {
        let context = "while evaluating the `allOutputs` attribute of a string context";
        if machine.force_bool(cell, pos, context)? {
            if !is_derivation {
                return Err(no_derivation("all-outputs"));
            }
            added.push(Element::DrvDeep(path.clone()));
        }
    }
    if let Some((cell, pos)) = info.get_with_pos(names.outputs) {
        let context = "while evaluating the `outputs` attribute of a string context";
        let list = machine.force_list(cell, pos, context)?;
        if !list.is_empty() && !is_derivation {
            return Err(no_derivation("derivation output"));
        }
        for item in list.iter() {
            let context = "while evaluating an output name within a string context";
            let output = machine.force_string_no_context(item, pos, context)?;
            added.push(Element::Built(Built::new(path.clone(), output.bytes().into())));
        }
    }
    Ok(())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "hasContext", arity: 1, strict: 1, run: has_context },
    Builtin { name: "getContext", arity: 1, strict: 1, run: get_context },
    Builtin { name: "appendContext", arity: 2, strict: 1, run: append_context },
    Builtin { name: "unsafeDiscardStringContext", arity: 1, strict: 1, run: discard_context },
    Builtin { name: "unsafeDiscardOutputDependency", arity: 1, strict: 1, run: discard_output_dependency },
    Builtin { name: "addDrvOutputDependencies", arity: 1, strict: 1, run: add_drv_output_dependencies },
];
