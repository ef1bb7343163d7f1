//! TOML: `fromTOML`.

use crate::json::refuse_nul;
use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, color_bytes};
use firn_source::{Pos, Symbol};
use firn_text::toml;
use firn_value::{AttrsBuilder, Context, ListBuilder, Value};

fn from_toml(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the argument passed to builtins.fromTOML";
    let text = machine.force_string_no_context(args[0], pos, context)?;
    let fail = |why: &[u8]| {
        let message = [b"while parsing TOML: ", &color_bytes(why)[..]].concat();
        Error::new(ErrorKind::Eval, message).at(pos)
    };
    let document = toml::parse(text.bytes()).map_err(|error| fail(error.message()))?;
    table(machine, &document).map_err(|why| fail(&why))
}

/// A value, or why a document that is TOML has none.
type Made<T> = std::result::Result<T, Vec<u8>>;

fn nix_string(text: &[u8]) -> Made<()> {
    // NIX: an error inside an error keeps its prefix.
    refuse_nul(text).map_err(|error| [b"error: ", error.message()].concat())
}

fn table(machine: &Machine, table: &toml::Table) -> Made<Value> {
    let mut set = AttrsBuilder::with_capacity(table.entries.len());
    for (name, entry) in &table.entries {
        nix_string(name)?;
        set.push(Symbol::intern(name), Pos::NONE, value(machine, entry)?);
    }
    Ok(set.finish())
}

/// The parser bounds how deep a document is, so this may recurse.
fn value(machine: &Machine, from: &toml::Value) -> Made<Value> {
    Ok(match from {
        toml::Value::Boolean(b) => Value::bool(*b),
        toml::Value::Integer(n) => Value::int(*n),
        toml::Value::Float(x) => Value::float(*x),
        toml::Value::String(text) => {
            nix_string(text)?;
            Value::string(text, Context::EMPTY)
        }
        toml::Value::Timestamp(text) => {
            if !machine.settings().features.parse_toml_timestamps {
                return Err(toml::TIMESTAMPS_REFUSED.into());
            }
            let mut set = AttrsBuilder::with_capacity(2);
            set.insert("_type", Value::string(b"timestamp", Context::EMPTY));
            set.push(machine.names().value, Pos::NONE, Value::string(text.as_bytes(), Context::EMPTY));
            set.finish()
        }
        toml::Value::Array(array) => {
            let mut list = ListBuilder::new(array.items.len());
            for item in &array.items {
                list.push(value(machine, item)?);
            }
            list.finish()
        }
        toml::Value::Table(inner) => table(machine, inner)?,
    })
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "fromTOML", arity: 1, strict: 1, run: from_toml }];
