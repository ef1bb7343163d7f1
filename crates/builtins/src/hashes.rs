//! Hashes of strings and their written forms.

use firn_eval::{Builtin, Machine, Result, missing_feature, store_error};
use firn_source::{Pos, Symbol};
use firn_store::hash::{Algorithm, Format, Hash};
use firn_value::{Attrs, Context, Str, Value};

/// The algorithm of that name, if the settings allow it.
pub(crate) fn algorithm(machine: &Machine, name: &[u8]) -> Result<Algorithm> {
    match Algorithm::parse(name) {
        Ok(Algorithm::Blake3) if !machine.settings().features.blake3_hashes => Err(missing_feature("blake3-hashes")),
        Ok(algorithm) => Ok(algorithm),
        Err(error) => Err(store_error(&error)),
    }
}

/// A hash as a string value, without the name of its algorithm unless the format has it.
pub(crate) fn written(hash: &Hash, format: Format) -> Value {
    let mut text = Vec::with_capacity(144);
    hash.write(format, false, &mut text);
    Value::string(&text, Context::EMPTY)
}

fn hash_string(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.hashString";
    let name = machine.force_string_no_context(args[0], pos, context)?;
    let algorithm = algorithm(machine, name.bytes())?;
    let context = "while evaluating the second argument passed to builtins.hashString";
    let string = machine.force_string(args[1], pos, context)?;
    Ok(written(&Hash::of(algorithm, string.bytes()), Format::Base16))
}

fn required(
    machine: &Machine,
    set: Attrs,
    pos: Pos,
    name: &str,
    locating: &'static str,
    evaluating: &'static str,
) -> Result<Str> {
    let Some(cell) = set.get(Symbol::from(name)) else {
        return Err(crate::sets::missing(Symbol::from(name), locating));
    };
    machine.force_string_no_context(cell, pos, evaluating)
}

fn convert_hash(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.convertHash";
    let set = machine.force_attrs(args[0], pos, context)?;
    let (locating, evaluating) = ("while locating the attribute 'hash'", "while evaluating the attribute 'hash'");
    let text = required(machine, set, pos, "hash", locating, evaluating)?;
    let expected = match set.get(Symbol::from("hashAlgo")) {
        None => None,
        Some(cell) => {
            let name = machine.force_string_no_context(cell, pos, "while evaluating the attribute 'hashAlgo'")?;
            Some(algorithm(machine, name.bytes())?)
        }
    };
    let locating = "while locating the attribute 'toHashFormat'";
    let evaluating = "while evaluating the attribute 'toHashFormat'";
    let name = required(machine, set, pos, "toHashFormat", locating, evaluating)?;
    let format = Format::parse(name.bytes()).map_err(|e| store_error(&e))?;
    if name.bytes() == b"base32" {
        machine.log(&[b"warning: ", Format::BASE32_WARNING.as_bytes(), b"\n"].concat())?;
    }
    let hash = Hash::parse_any(text.bytes(), expected).map_err(|e| store_error(&e))?;
    if hash.algorithm() == Algorithm::Blake3 {
        algorithm(machine, b"blake3")?;
    }
    Ok(written(&hash, format))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "hashString", arity: 2, strict: 1, run: hash_string },
    Builtin { name: "convertHash", arity: 1, strict: 1, run: convert_hash },
];
