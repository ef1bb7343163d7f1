//! Selection: `.`, `or`, `?`.

use crate::frame::Frame;
use crate::{Machine, Stats};
use firn_ir::{InlineCache, SelectName};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Error, ErrorKind, Result, Value};

impl Machine {
    /// A set's attribute through an inline cache: the cell and where it was defined.
    #[inline]
    pub(crate) fn lookup(&self, set: Attrs, name: Symbol, cache: &InlineCache) -> Option<(Value, Pos)> {
        Stats::bump(&self.stats.lookups);
        let Some(shape) = set.flat_shape() else { return set.get_with_pos(name) };
        if let Some(index) = cache.get(shape) {
            return Some((set.cell(shape, index), shape.positions()[index]));
        }
        let index = shape.index(name)?;
        cache.set(shape, index);
        Some((set.cell(shape, index), shape.positions()[index]))
    }

    /// `base.name`.
    #[inline(never)]
    pub(crate) fn select_name(&self, node: &'static SelectName<Value>, frame: &Frame<'_>) -> Result<Value> {
        let base = self.eval(&node.base, frame)?;
        let Some(set) = base.as_attrs() else {
            return Err(self.force_attrs(base, node.pos, "while selecting an attribute").expect_err("it is no set"));
        };
        let Some((cell, pos)) = self.lookup(set, node.name, &node.cache) else {
            return Err(missing_attribute(set, node.name, node.pos));
        };
        match self.force(cell, if pos.is_some() { pos } else { node.pos }) {
            Ok(value) => Ok(value),
            Err(error) => {
                let mut path = Vec::new();
                firn_text::literal::write_name(&mut path, node.name.as_bytes());
                Err(in_attribute(error, pos, &path))
            }
        }
    }
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
