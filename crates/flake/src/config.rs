//! `nixConfig`: settings that a flake asks for. They are read as literals; whether any takes effect is the user's
//! decision, made by whoever runs the program (`accept-flake-config`, a list of harmless names).

use firn_eval::{Coercion, Error, ErrorKind, Machine, Result, colored_name, show_type};
use firn_source::Pos;
use firn_value::{Type, Value};

use crate::inputs::{expect, force_trivial};

/// A setting that a flake asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value, as `nix.conf` would have it.
    pub value: Vec<u8>,
}

/// Settings that a flake may set without being trusted.
const HARMLESS: [&str; 6] = [
    "bash-prompt",
    "bash-prompt-prefix",
    "bash-prompt-suffix",
    "flake-registry",
    "commit-lock-file-summary",
    "commit-lockfile-summary",
];

impl Setting {
    /// Whether it takes effect without the user's leave.
    pub fn is_harmless(&self) -> bool {
        HARMLESS.contains(&self.name.strip_prefix("extra-").unwrap_or(&self.name))
    }
}

/// The settings of a `nixConfig`, in order of names.
pub(crate) fn read(machine: &Machine, value: Value, pos: Pos) -> Result<Vec<Setting>> {
    let set = expect(machine, Type::Attrs, value, pos)?;
    let mut all = Vec::new();
    for (name, at, cell) in set.as_attrs().iter().flat_map(|set| set.iter_by_name()) {
        let value = force_trivial(machine, cell, at)?;
        let value = match value.get_type() {
            Some(Type::String) => machine.force_string_no_context(value, at, "")?.bytes().to_vec(),
            Some(Type::Path) => {
                let text = machine.coerce_to_string(value, at, "", Coercion::INTERPOLATE)?;
                text.as_str().map_or_else(Vec::new, |text| text.bytes().to_vec())
            }
            Some(Type::Int) => machine.force_int(value, at, "")?.to_string().into_bytes(),
            Some(Type::Bool) => if value == Value::TRUE { &b"true"[..] } else { b"false" }.to_vec(),
            Some(Type::List) => {
                let mut words = Vec::new();
                for item in value.as_list().iter().flat_map(|list| list.iter()) {
                    if item.as_str().is_none() {
                        let message = format!(
                            "list element in flake configuration setting '{}' is {} while a string is expected",
                            colored_name(name),
                            firn_eval::colored(show_type(value))
                        );
                        return Err(Error::new(ErrorKind::Type, message));
                    }
                    words.push(machine.force_string_no_context(item, at, "")?.bytes().to_vec());
                }
                words.join(&b' ')
            }
            _ => {
                let found = firn_eval::colored(show_type(value));
                let message = format!("flake configuration setting '{}' is {found}", colored_name(name));
                return Err(Error::new(ErrorKind::Type, message));
            }
        };
        all.push(Setting { name: String::from_utf8_lossy(name.as_bytes()).into_owned(), value });
    }
    Ok(all)
}
