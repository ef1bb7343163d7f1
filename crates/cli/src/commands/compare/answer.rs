//! What this evaluation says about an attribute.

use super::list::{Answer, Row};
use firn_eval::{Error, Machine, Result};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Value};

/// The row of an attribute as evaluated here, and the error behind it.
#[derive(Debug)]
pub struct Answered {
    /// The row.
    pub row: Row,
    /// The first error, if a column is one.
    pub error: Option<Box<Error>>,
}

/// Evaluates an attribute. `plain` asks for two columns, of which the second may be any string.
pub fn answer(machine: &Machine, attribute: &[u8], cell: Result<Value>, plain: bool) -> Answered {
    let mut error = None;
    // Functions are not called here: what they give is no attribute of the set.
    let value = cell.and_then(|cell| machine.force(cell, Pos::NONE));
    let drv = column(value.clone().and_then(|value| drv_path(machine, value, plain)), &mut error);
    let out = (!plain).then(|| column(value.and_then(|value| out_path(machine, value)), &mut error));
    Answered { row: Row { attribute: attribute.to_vec(), drv, out }, error }
}

/// The column for a result; its error is kept if it is the first.
fn column(result: Result<Option<Vec<u8>>>, first: &mut Option<Box<Error>>) -> Answer {
    match result {
        Ok(Some(text)) => Answer::Text(text),
        Ok(None) => Answer::Nothing,
        Err(error) => {
            let answer = if error.is_catchable() { Answer::Caught } else { Answer::Fatal };
            first.get_or_insert(error);
            answer
        }
    }
}

fn drv_path(machine: &Machine, value: Value, plain: bool) -> Result<Option<Vec<u8>>> {
    if let Some(text) = value.as_str().filter(|_| plain) {
        return Ok(Some(text.bytes().to_vec()));
    }
    part(machine, value, machine.names().drv_path)
}

fn out_path(machine: &Machine, value: Value) -> Result<Option<Vec<u8>>> {
    part(machine, value, machine.names().out_path)
}

/// A string in a derivation; nothing for what is not one.
fn part(machine: &Machine, value: Value, name: Symbol) -> Result<Option<Vec<u8>>> {
    let Some(set) = value.as_attrs() else { return Ok(None) };
    if !machine.is_derivation(set)? {
        return Ok(None);
    }
    let Some((cell, pos)) = set.get_with_pos(name) else {
        let message = format!("derivation does not contain a '{}' attribute", firn_eval::colored(name));
        return Err(Error::new(firn_eval::ErrorKind::Eval, message));
    };
    let text = machine.force_string(cell, pos, "while evaluating a path of a derivation")?;
    Ok(Some(text.bytes().to_vec()))
}

/// The names of a set as attribute paths, with their cells. A name that a path cannot spell is left out.
pub fn attributes(set: Attrs) -> Vec<(Vec<u8>, Value)> {
    let spelled = |name: &[u8]| match name {
        name if name.is_empty() || name.iter().any(|b| matches!(b, b'"' | b'\t' | b'\n')) => None,
        name if name.contains(&b'.') => Some([b"\"", name, b"\""].concat()),
        name => Some(name.to_vec()),
    };
    set.iter_by_name()
        .filter_map(|(name, _, cell): (Symbol, Pos, Value)| Some((spelled(name.as_bytes())?, cell)))
        .collect()
}
