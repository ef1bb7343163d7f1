//! Attribute paths as the command line takes them (`-A a.b.0."c.d"`): names, and indices into lists.

use crate::errors::color_bytes;
use crate::{Machine, show_type};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Error, ErrorKind, Result, Value};

/// Splits a path at its dots; quotes protect dots, and nothing protects a quote.
pub fn parse(path: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    let mut name = Vec::new();
    let mut quoted = false;
    for &byte in path {
        match byte {
            b'"' => quoted = !quoted,
            b'.' if !quoted => names.push(std::mem::take(&mut name)),
            _ => name.push(byte),
        }
    }
    if quoted {
        return Err(failure(ErrorKind::Parse, "missing closing quote in selection path '", path, "'"));
    }
    // NIX: an empty last name is no name at all.
    if !name.is_empty() {
        names.push(name);
    }
    Ok(names)
}

fn failure(kind: ErrorKind, before: &str, what: &[u8], after: &str) -> Box<Error> {
    Error::new(kind, [before.as_bytes(), &color_bytes(what), after.as_bytes()].concat())
}

fn wrong_type(path: &[u8], wanted: &str, found: Value) -> Box<Error> {
    let after = format!("' should be {wanted} but is {}", crate::colored(show_type(found)));
    failure(ErrorKind::Type, "the expression selected by the selection path '", path, &after)
}

/// A name that is a number in 32 bits selects from a list.
fn index(name: &[u8]) -> Option<u32> {
    std::str::from_utf8(name).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

impl Machine {
    /// The cell that the path selects from `root`, and where it was defined. Functions on the way are called with `args`.
    pub fn find_along(&self, path: &[u8], args: Attrs, root: Value) -> Result<(Value, Pos)> {
        let mut found = (root, Pos::NONE);
        for name in parse(path)? {
            let value = self.auto_call(args, found.0)?;
            self.begin_names(value);
            found = match index(&name) {
                None => self.step_into_set(path, &name, value)?,
                Some(index) => (step_into_list(path, index, value)?, Pos::NONE),
            };
        }
        Ok(found)
    }

    fn step_into_set(&self, path: &[u8], name: &[u8], value: Value) -> Result<(Value, Pos)> {
        let set = value.as_attrs().ok_or_else(|| wrong_type(path, "a set", value))?;
        if name.is_empty() {
            return Err(failure(ErrorKind::Eval, "empty attribute name in selection path '", path, "'"));
        }
        set.get_with_pos(Symbol::intern(name)).ok_or_else(|| {
            let names: Vec<&[u8]> = set.iter_by_name().map(|(name, _, _)| name.as_bytes()).collect();
            let message =
                [b"attribute '", &color_bytes(name)[..], b"' in selection path '", &color_bytes(path), b"' not found"];
            Error::new(ErrorKind::Eval, message.concat()).suggest(crate::errors::best_matches(&names, name))
        })
    }
}

fn step_into_list(path: &[u8], index: u32, value: Value) -> Result<Value> {
    let list = value.as_list().ok_or_else(|| wrong_type(path, "a list", value))?;
    if index as usize >= list.len() {
        let before = format!("list index {} in selection path '", crate::colored(index));
        return Err(failure(ErrorKind::Eval, &before, path, "' is out of range"));
    }
    Ok(list.get(index as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_split_at_dots_outside_quotes() {
        let split = |path: &[u8]| {
            parse(path).map(|names| names.iter().map(|n| String::from_utf8_lossy(n).into_owned()).collect::<Vec<_>>())
        };
        assert_eq!(split(b"").expect("empty"), Vec::<String>::new());
        assert_eq!(split(b"a.b.0").expect("plain"), ["a", "b", "0"]);
        assert_eq!(split(b"a.\"b.c\"d.").expect("quoted"), ["a", "b.cd"]);
        assert_eq!(split(b".a").expect("leading"), ["", "a"]);
        assert!(split(b"a.\"b").is_err());
    }
}
