//! Finding the derivations in a value, as `nix-instantiate` and `nix-env` do: sets are searched one level deep, and deeper
//! where `recurseForDerivations` says so; lists are searched all the way.

use crate::{Machine, Walk, colored, place_of};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Error, ErrorKind, Result, Value};
use hashbrown::HashSet;

/// A derivation that was found.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    set: Attrs,
}

impl Package {
    /// Its attributes.
    pub fn attrs(self) -> Attrs {
        self.set
    }

    /// The store path of its `.drv` file, printed.
    pub fn drv_path(self, machine: &Machine) -> Result<Vec<u8>> {
        let context = "while evaluating the 'drvPath' attribute of a derivation";
        let Some((cell, pos)) = self.set.get_with_pos(machine.names().drv_path) else {
            return Err(Error::new(ErrorKind::Eval, "derivation does not contain a 'drvPath' attribute"));
        };
        let (path, _) = machine.coerce_to_path(cell, pos, context)?;
        if !path.as_bytes().ends_with(b".drv") {
            let message = [
                b"store path '",
                &crate::errors::color_bytes(path.base_name().unwrap_or_default())[..],
                b"' is not a valid derivation path",
            ];
            return Err(Error::new(ErrorKind::Eval, message.concat()).trace(pos, context));
        }
        Ok(path.as_bytes().to_vec())
    }

    /// The output that the set stands for.
    pub fn output_name(self, machine: &Machine) -> Result<Vec<u8>> {
        match self.set.get(Symbol::from("outputName")) {
            None => Ok(Vec::new()),
            Some(cell) => {
                let context = "while evaluating the output name of a derivation";
                Ok(machine.force_string_no_context(cell, Pos::NONE, context)?.bytes().to_vec())
            }
        }
    }
}

struct Search<'m> {
    machine: &'m Machine,
    args: Attrs,
    found: Vec<Package>,
    seen: HashSet<u64>,
}

impl Machine {
    /// The derivations in a value; functions met on the way are called with `args`.
    pub fn packages(&self, value: Value, args: Attrs) -> Result<Vec<Package>> {
        let mut search = Search { machine: self, args, found: Vec::new(), seen: HashSet::new() };
        search.all(value)?;
        Ok(search.found)
    }
}

impl Search<'_> {
    /// Takes a derivation; whether a search inside the value makes sense.
    fn one(&mut self, cell: Value) -> Result<bool> {
        let value = self.machine.force(cell, place_of(cell))?;
        let Some(set) = value.as_attrs() else {
            return Ok(true);
        };
        if !self.machine.is_derivation(set)? {
            return Ok(true);
        }
        if self.seen.insert(value.identity()) {
            let Some(name) = set.get(self.machine.names().name) else {
                return Err(Error::new(ErrorKind::Type, "derivation name missing"));
            };
            self.machine.force_string_no_context(
                name,
                Pos::NONE,
                "while evaluating the 'name' attribute of a derivation",
            )?;
            self.found.push(Package { set });
        }
        Ok(false)
    }

    fn all(&mut self, cell: Value) -> Result<()> {
        let depth = self.machine.deeper(place_of(cell))?;
        let machine = self.machine;
        let result = machine.with_stack(|| self.all_inside(cell));
        self.machine.shallower(depth);
        result
    }

    fn all_inside(&mut self, cell: Value) -> Result<()> {
        let value = self.machine.auto_call(self.args, cell)?;
        if !self.one(value)? {
            return Ok(());
        }
        if let Some(set) = value.as_attrs() {
            let combine = set.has(Symbol::from("_combineChannels"));
            let named = set.iter_by_name().filter(|(name, _, _)| is_package_name(name.as_bytes()));
            self.machine.offer(named.map(|(_, _, cell)| cell), Walk::Package);
            for (name, pos, cell) in set.iter_by_name().filter(|(name, _, _)| is_package_name(name.as_bytes())) {
                self.attribute(cell, combine)
                    .map_err(|e| e.trace(pos, format!("while evaluating the attribute '{}'", colored(name))))?;
            }
        } else if let Some(list) = value.as_list() {
            self.machine.offer(list.iter(), Walk::Package);
            for item in list.iter() {
                if self.one(item)? {
                    self.all(item)?;
                }
            }
        } else {
            let message = "expression does not evaluate to a derivation (or a set or list of those)";
            return Err(Error::new(ErrorKind::Type, message));
        }
        Ok(())
    }

    fn attribute(&mut self, cell: Value, combine: bool) -> Result<()> {
        if combine {
            return self.all(cell);
        }
        if !self.one(cell)? {
            return Ok(());
        }
        let value = self.machine.force(cell, Pos::NONE)?;
        let recurse = value.as_attrs().and_then(|set| set.get_with_pos(Symbol::from("recurseForDerivations")));
        if let Some((flag, pos)) = recurse
            && self.machine.force_bool(flag, pos, "while evaluating the attribute `recurseForDerivations`")?
        {
            self.all(cell)?;
        }
        Ok(())
    }
}

/// Names that can stand in an attribute path without quotes.
fn is_package_name(name: &[u8]) -> bool {
    let Some((first, rest)) = name.split_first() else {
        return false;
    };
    (first.is_ascii_alphabetic() || *first == b'_')
        && rest.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'+'))
}
