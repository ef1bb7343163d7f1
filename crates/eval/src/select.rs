//! Selection: `.`, `or`, `?`.

use crate::eval::at_hand;
use crate::frame::Frame;
use crate::{Machine, Stats};
use firn_ir::{InlineCache, SelectName};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Error, ErrorKind, Result, Value};

impl Machine {
    /// A set's attribute through an inline cache.
    #[inline(always)]
    pub(crate) fn lookup(&self, set: Attrs, name: Symbol, cache: &InlineCache) -> Option<Value> {
        Stats::bump(&self.stats.lookups);
        set.lookup(name, cache)
    }

    /// `base.name`.
    #[inline]
    pub(crate) fn select_name(&self, node: &'static SelectName<Value>, frame: Frame<'_>) -> Result<Value> {
        match self.select_at_hand(node, frame) {
            Some(value) => Ok(value),
            None => self.select_evaluated(node, frame),
        }
    }

    /// The same where set and value are at hand.
    // PERF: nothing is called and so nothing is saved on the stack.
    #[inline(always)]
    pub(crate) fn select_at_hand(&self, node: &'static SelectName<Value>, frame: Frame<'_>) -> Option<Value> {
        let set = self.glance(&node.base, frame)?.as_attrs()?;
        let value = at_hand(set.lookup_at_hand(&node.cache)?)?;
        Stats::bump(&self.stats.lookups);
        Some(value)
    }

    #[inline(never)]
    fn select_evaluated(&self, node: &'static SelectName<Value>, frame: Frame<'_>) -> Result<Value> {
        let base = self.eval(&node.base, frame)?;
        if let Some(set) = base.as_attrs()
            && let Some(cell) = self.lookup(set, node.name, &node.cache)
        {
            let Some(thunk) = cell.as_thunk() else { return Ok(cell) };
            if let Some(value) = self.known(thunk) {
                return Ok(value);
            }
            let pos = if thunk.is_application() { place(set, node.name, node.pos) } else { Pos::NONE };
            return match self.force_thunk(thunk, pos) {
                Ok(value) => Ok(value),
                Err(error) => Err(select_failed(error, node, set, cell)),
            };
        }
        Err(self.select_nothing(node, base))
    }

    /// The error of a selection from what is no set or lacks the attribute.
    #[cold]
    #[inline(never)]
    fn select_nothing(&self, node: &'static SelectName<Value>, base: Value) -> Box<Error> {
        match self.force_attrs(base, node.pos, "while selecting an attribute") {
            Ok(set) => missing_attribute(set, node.name, node.pos),
            Err(error) => error,
        }
    }

    /// Forces a cell found in a set; an error comes with the position at which the attribute was defined.
    // PERF: that position is looked up only where something can show it: in an error, or as the place of a call.
    #[inline]
    pub(crate) fn force_attribute(
        &self,
        cell: Value,
        set: Attrs,
        name: Symbol,
        at: Pos,
    ) -> std::result::Result<Value, (Box<Error>, Pos)> {
        let Some(thunk) = cell.as_thunk() else { return Ok(cell) };
        let pos = if thunk.is_application() { place(set, name, at) } else { Pos::NONE };
        self.force(cell, pos).map_err(|error| attribute_failed(error, cell, set, name, at))
    }
}

/// Where an attribute was defined, or else where it is needed.
#[inline(never)]
fn place(set: Attrs, name: Symbol, at: Pos) -> Pos {
    let pos = defined_at(set, name);
    if pos.is_some() { pos } else { at }
}

/// The error of an attribute, and where that was defined.
#[cold]
#[inline(never)]
fn attribute_failed(error: Box<Error>, cell: Value, set: Attrs, name: Symbol, at: Pos) -> (Box<Error>, Pos) {
    let unplaced = error.kind() == ErrorKind::InfiniteRecursion && !error.pos().is_some();
    let error = if unplaced && is_running(cell) { error.at(place(set, name, at)) } else { error };
    (error, defined_at(set, name))
}

#[cold]
#[inline(never)]
fn select_failed(error: Box<Error>, node: &'static SelectName<Value>, set: Attrs, cell: Value) -> Box<Error> {
    let (error, pos) = attribute_failed(error, cell, set, node.name, node.pos);
    selecting(error, pos, node.name)
}

#[cold]
fn selecting(error: Box<Error>, pos: Pos, name: Symbol) -> Box<Error> {
    let mut path = Vec::new();
    firn_text::literal::write_name(&mut path, name.as_bytes());
    in_attribute(error, pos, &path)
}

/// Where an attribute was defined.
#[cold]
pub(crate) fn defined_at(set: Attrs, name: Symbol) -> Pos {
    set.get_with_pos(name).map_or(Pos::NONE, |(_, pos)| pos)
}

fn is_running(cell: Value) -> bool {
    cell.as_thunk().is_some_and(|thunk| matches!(thunk.state(), firn_value::ThunkState::Claimed(_)))
}

/// The error for a missing attribute, with the nearest names.
#[cold]
pub(crate) fn missing_attribute(set: Attrs, name: Symbol, pos: Pos) -> Box<Error> {
    let (shape, _) = set.flat();
    let names: Vec<&[u8]> = shape.by_name().iter().map(|&i| shape.names()[i as usize].as_bytes()).collect();
    Error::new(ErrorKind::Eval, format!("attribute '{}' missing", crate::colored_name(name)))
        .at(pos)
        .suggest(crate::errors::best_matches(&names, name.as_bytes()))
}

/// Adds the frame of an attribute that was being evaluated.
#[cold]
pub(crate) fn in_attribute(error: Box<Error>, pos: Pos, path: &[u8]) -> Box<Error> {
    // NIX: attributes defined by Nix's own derivation wrapper do not appear in traces.
    let internal = pos.file_offset().is_none_or(|(file, _)| matches!(file.origin(), firn_source::Origin::Internal(_)));
    if internal {
        return error;
    }
    error.trace(pos, [b"while evaluating the attribute '", crate::color_bytes(path).as_slice(), b"'"].concat())
}
