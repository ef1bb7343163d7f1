//! The set that is looked into: evaluated when somebody needs it, once.

use firn_eval::{Machine, Result};
use firn_ir::Program;
use firn_memo::kept::labels;
use firn_source::Pos;
use firn_value::{Attrs, Label, Value};
use std::sync::{Mutex, PoisonError};

/// Where the set comes from.
enum Origin {
    /// It is what a program gives, called with the automatic arguments if it is a function.
    Program(&'static Program<Value>, Attrs),
    /// It is there.
    Value(Value, Label),
}

/// The set.
pub(super) struct Root {
    origin: Origin,
    /// The function of `--select`.
    select: Option<&'static Program<Value>>,
    known: Mutex<Option<(Value, Label)>>,
}

impl Root {
    /// What a program gives.
    pub fn program(program: &'static Program<Value>, arguments: Attrs, select: Option<&'static Program<Value>>) -> Root {
        Root { origin: Origin::Program(program, arguments), select, known: Mutex::default() }
    }

    /// A value, and what was observed to get it.
    pub fn value((value, label): (Value, Label), select: Option<&'static Program<Value>>) -> Root {
        Root { origin: Origin::Value(value, label), select, known: Mutex::default() }
    }

    /// The value; what it took to get it counts as observed.
    pub fn get(&self, machine: &Machine) -> Result<Value> {
        // Whoever needs the set waits for whoever evaluates it.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, label) = match *known {
            Some(known) => known,
            None => {
                // Whatever is asked of the set rests on it.
                let (value, label) = machine.lay_ground(|| self.evaluate(machine));
                labels::take(label);
                *known.insert((value?, label))
            }
        };
        labels::take(label);
        Ok(value)
    }

    fn evaluate(&self, machine: &Machine) -> Result<Value> {
        let root = match self.origin {
            Origin::Program(program, arguments) => machine.auto_call(arguments, machine.run_program(program, &[])?)?,
            Origin::Value(value, label) => {
                labels::take(label);
                value
            }
        };
        let Some(select) = self.select else { return Ok(root) };
        let function = machine.run_program(select, &[])?;
        let selected = machine.call(function, &[root], Pos::NONE)?;
        machine.force_attrs(selected, Pos::NONE, "'--select' must evaluate to an attrset (the traversal root)")?;
        Ok(selected)
    }
}
