//! The variables that lines of the REPL define and see.

use crate::failure::Failure;
use crate::session::Session;
use firn_eval::{Bindings, Error, ErrorKind};
use firn_source::{Origin, SourceFile, Symbol};
use firn_value::{Attrs, Value};
use std::collections::{BTreeMap, HashMap};

/// Names and their cells. A name that is defined again stands for the new cell in later lines.
#[derive(Debug, Default)]
pub(super) struct Scope {
    names: Vec<Symbol>,
    cells: Vec<Value>,
    index: HashMap<Symbol, usize>,
}

/// What a line is.
pub(super) enum Line {
    /// It defines these.
    Bindings(Attrs),
    /// It is an expression of this value.
    Value(Value),
    /// More must be typed.
    Incomplete,
}

impl Scope {
    /// Defines a variable.
    pub fn define(&mut self, name: Symbol, cell: Value) {
        match self.index.get(&name) {
            Some(&at) => self.cells[at] = cell,
            None => {
                self.index.insert(name, self.names.len());
                self.names.push(name);
                self.cells.push(cell);
            }
        }
    }

    /// Takes over what another scope defines and this one does not.
    pub fn add_missing(&mut self, other: &Scope) {
        for (&name, &cell) in other.names.iter().zip(&other.cells) {
            if !self.index.contains_key(&name) {
                self.define(name, cell);
            }
        }
    }

    /// Names that begin like this, those of the language among them.
    pub fn completions(&self, session: &Session, start: &[u8]) -> Vec<Vec<u8>> {
        let own = self.names.iter().copied();
        let all = own.chain(session.machine.shared.global_names());
        let found: BTreeMap<&[u8], ()> =
            all.map(|name| (name.as_bytes(), ())).filter(|(name, ())| name.starts_with(start)).collect();
        found.into_keys().map(<[u8]>::to_vec).collect()
    }

    /// The value of an expression; none if more must be typed.
    pub fn evaluate(&self, session: &Session, text: &[u8]) -> Result<Option<Value>, Failure> {
        let file = SourceFile::register(Origin::Expression, text.to_vec());
        let machine = &session.machine;
        let ast = match machine.parse(file, &session.here()?) {
            Err(error) if error.kind() == ErrorKind::Parse && is_incomplete(error.message()) => return Ok(None),
            parsed => parsed?,
        };
        let program = machine.lowered(ast, &self.names)?;
        Ok(Some(machine.run_program(program, &self.cells)?))
    }

    /// Reads a line: bindings if it can be that, otherwise an expression.
    pub fn read(&self, session: &Session, text: &[u8]) -> Result<Line, Failure> {
        let mut may_go_on = false;
        for closed in [false, true] {
            let file = SourceFile::register(Origin::Expression, text.to_vec());
            match session.machine.bindings(file, &session.here()?, &self.names, closed)? {
                Bindings::Set(program) => {
                    let set = session.machine.run_program(program, &self.cells)?;
                    return Ok(set.as_attrs().map_or(Line::Incomplete, Line::Bindings));
                }
                Bindings::Incomplete if closed => return Ok(Line::Incomplete),
                Bindings::Incomplete => may_go_on = true,
                Bindings::None => {}
            }
        }
        match self.evaluate(session, text) {
            // No expression, but bindings that are not finished: `x = {`.
            Err(Failure::Error(error)) if may_go_on && is_syntax_error_here(&error) => Ok(Line::Incomplete),
            Err(failure) => Err(failure),
            Ok(value) => Ok(value.map_or(Line::Incomplete, Line::Value)),
        }
    }
}

impl Scope {
    /// As [`Scope::evaluate`] for a text that will not become longer: one that ends too early is an error.
    pub fn read_to_end(&self, session: &Session, text: &[u8]) -> Result<Value, Failure> {
        let file = SourceFile::register(Origin::Expression, text.to_vec());
        let ast = session.machine.parse(file, &session.here()?)?;
        Ok(session.machine.run_program(session.machine.lowered(ast, &self.names)?, &self.cells)?)
    }
}

/// Whether what was typed is wrong, not a file that it imports.
fn is_syntax_error_here(error: &Error) -> bool {
    let origin = error.pos().file_offset().map(|(file, _)| file.origin());
    error.kind() == ErrorKind::Parse && matches!(origin, Some(Origin::Expression))
}

fn is_incomplete(message: &[u8]) -> bool {
    let end = b"unexpected end of file";
    message.windows(end.len()).any(|part| part == end)
}
