//! Selection: `.`, `or`, `?`.

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
    #[inline(never)]
    pub(crate) fn select_name(&self, node: &'static SelectName<Value>, frame: Frame<'_>) -> Result<Value> {
        // PERF: where set and value are at hand, nothing is called and so nothing is saved on the stack.
        if let Some(set) = self.glance(&node.base, frame).and_then(Value::as_attrs)
            && let Some(cell) = set.lookup_at_hand(&node.cache)
        {
            let value = match cell.as_thunk() {
                None => Some(cell),
                Some(thunk) => thunk.forced(),
            };
            if let Some(value) = value {
                Stats::bump(&self.stats.lookups);
                return Ok(value);
            }
        }
        self.select_evaluated(node, frame)
    }

    #[inline(never)]
    fn select_evaluated(&self, node: &'static SelectName<Value>, frame: Frame<'_>) -> Result<Value> {
        let base = self.eval(&node.base, frame)?;
        if let Some(set) = base.as_attrs()
            && let Some(cell) = self.lookup(set, node.name, &node.cache)
        {
            return match cell.as_thunk().map(|thunk| self.known(thunk)) {
                None => Ok(cell),
                Some(Some(value)) => Ok(value),
                Some(None) => self.select_unevaluated(node, set, cell),
            };
        }
        Err(self.select_nothing(node, base))
    }

    /// The rest of a selection whose attribute is to be evaluated.
    #[inline(never)]
    fn select_unevaluated(&self, node: &'static SelectName<Value>, set: Attrs, cell: Value) -> Result<Value> {
        match self.force_attribute(cell, set, node.name, node.pos) {
            Ok(value) => Ok(value),
            Err((error, pos)) => Err(selecting(error, pos, node.name)),
        }
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
        let place = |pos: Pos| if pos.is_some() { pos } else { at };
        let pos = if thunk.is_application() { place(defined_at(set, name)) } else { Pos::NONE };
        self.force(cell, pos).map_err(|error| {
            let pos = defined_at(set, name);
            let unplaced = error.kind() == ErrorKind::InfiniteRecursion && !error.pos().is_some();
            (if unplaced && is_running(cell) { error.at(place(pos)) } else { error }, pos)
        })
    }
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
