//! `outputOf`: the output of a derivation that is itself built (dynamic derivations).

use crate::store::store;
use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, color_bytes, context_elements, context_of, store_error};
use firn_source::Pos;
use firn_store::context::{Built, Element};
use firn_store::path::StorePath;
use firn_value::Value;

/// What a string with one context element refers to.
enum Derived {
    Opaque(StorePath),
    Built(Built),
}

/// The string that stands for an output: its path where that is known, otherwise a placeholder.
fn output_string(machine: &Machine, built: &Built) -> Result<Vec<u8>> {
    if !built.is_dynamic() {
        let drv = store(machine).read_derivation(machine, &built.drv)?;
        let dir = machine.store_dir();
        let Some(output) = drv.outputs.get(&built.output) else {
            let message = [
                b"derivation '".as_slice(),
                &color_bytes(&dir.print(&built.drv)),
                b"' does not have output '",
                &color_bytes(&built.output),
                b"'",
            ];
            return Err(Error::new(ErrorKind::Store, message.concat()));
        };
        if let Some(path) = output.path(dir, &drv.name, &built.output).map_err(|e| store_error(&e))? {
            return Ok(dir.print(&path));
        }
    }
    Ok(built.placeholder().render().into_bytes())
}

/// NIX: a reference to one store object or one output, whose string is what Nix would have made for it.
fn single_derived_path(machine: &Machine, value: Value, pos: Pos, context: &'static str) -> Result<Derived> {
    let string = machine.force_string(value, pos, context)?;
    let fail = |message: Vec<u8>| Err(Error::new(ErrorKind::Eval, message).trace(pos, context));
    let shown = color_bytes(string.bytes());
    let elements = context_elements(string.context());
    let [element] = elements.as_slice() else {
        let count = color_bytes(elements.len().to_string().as_bytes());
        let text = [b"string '".as_slice(), &shown, b"' has ", &count, b" entries in its context. It should only have exactly one entry"];
        return fail(text.concat());
    };
    let (derived, expected) = match element {
        Element::Opaque(path) => (Derived::Opaque(path.clone()), machine.store_dir().print(path)),
        Element::Built(built) => (Derived::Built(built.clone()), output_string(machine, built)?),
        Element::DrvDeep(_) => {
            let text = b"' has a context which refers to a complete source and binary closure. This is not supported at this time";
            return fail([b"string '".as_slice(), &shown, text].concat());
        }
    };
    if expected == string.bytes() {
        return Ok(derived);
    }
    let expected = color_bytes(&expected);
    match &derived {
        Derived::Opaque(_) => {
            fail([b"path string '".as_slice(), &shown, b"' has context with the different path '", &expected, b"'"].concat())
        }
        Derived::Built(built) => {
            let text = [
                b"string '".as_slice(),
                &shown,
                b"' has context with the output '",
                &color_bytes(built.last_output()),
                b"' from derivation '",
                &color_bytes(&machine.store_dir().print(&built.drv)),
                b"', but the string is not the right placeholder for this derivation output. It should be '",
                &expected,
                b"'",
            ];
            fail(text.concat())
        }
    }
}

fn output_of(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let derived = single_derived_path(machine, args[0], pos, "while evaluating the first argument to builtins.outputOf")?;
    let output = machine.force_string_no_context(args[1], pos, "while evaluating the second argument to builtins.outputOf")?;
    let built = match derived {
        Derived::Opaque(path) => Built::new(path, output.bytes().into()),
        Derived::Built(built) => built.output_of(output.bytes().into()).map_err(|e| store_error(&e))?,
    };
    let text = output_string(machine, &built)?;
    Ok(Value::string(&text, context_of([&Element::Built(built)])))
}

/// Behind `dynamic-derivations`.
pub(crate) const GATED: &[Builtin] = &[Builtin { name: "outputOf", arity: 2, strict: 1, run: output_of }];
