//! Attribute set literals: plain, recursive, with overrides, with computed names.

use crate::frame::Frame;
use crate::{Machine, colored};
use firn_ir as ir;
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Error, ErrorKind, Expr, Result, Value};

impl Machine {
    #[inline(never)]
    pub(crate) fn attrs(&self, node: &'static ir::Attrs<Value>, frame: &Frame<'_>) -> Result<Value> {
        match &node.rec {
            None => {
                if !node.from.is_empty() {
                    self.bind(node.from, frame);
                }
                if node.dynamic.is_empty() {
                    return Ok(AttrsBuilder::of_shape(node.shape, node.values.iter().map(|v| self.delay(v, frame))));
                }
            }
            Some(rec) => {
                self.bind_rec(node, rec.first, frame);
                if node.dynamic.is_empty() && rec.overrides.is_none() {
                    let cell = |&i: &u32| frame.locals[(rec.first + i) as usize].get();
                    return Ok(AttrsBuilder::of_shape(node.shape, rec.order.iter().map(cell)));
                }
            }
        }
        self.attrs_with_extras(node, frame)
    }

    /// Binds the names of a recursive set and the sources of its `inherit (…)`.
    fn bind_rec(&self, node: &'static ir::Attrs<Value>, first: u32, frame: &Frame<'_>) {
        for from in node.from {
            self.make_cell(&from.value, from.slot, frame);
        }
        for (i, value) in node.values.iter().enumerate() {
            self.make_cell(value, first + i as u32, frame);
        }
        for from in node.from {
            self.fill_cell(&from.value, from.slot, frame);
        }
        for (i, value) in node.values.iter().enumerate() {
            self.fill_cell(value, first + i as u32, frame);
        }
    }

    #[inline(never)]
    fn attrs_with_extras(&self, node: &'static ir::Attrs<Value>, frame: &Frame<'_>) -> Result<Value> {
        let mut entries: Vec<(Symbol, Pos, Value)> = Vec::with_capacity(node.shape.len() + node.dynamic.len());
        for i in 0..node.shape.len() {
            let cell = match &node.rec {
                None => self.delay(&node.values[i], frame),
                Some(rec) => frame.locals[(rec.first + rec.order[i]) as usize].get(),
            };
            entries.push((node.shape.names()[i], node.shape.positions()[i], cell));
        }
        if let Some(rec) = &node.rec
            && let Some(index) = rec.overrides
        {
            self.override_names(node, rec, index, frame, &mut entries)?;
        }
        for dynamic in node.dynamic {
            let name = self.eval(&dynamic.name, frame)?;
            if name == Value::NULL {
                continue;
            }
            let name = self.force_string_no_context(name, dynamic.pos, "while evaluating the name of a dynamic attribute")?;
            let name = Symbol::intern(name.bytes());
            if let Some(&(_, pos, _)) = entries.iter().find(|e| e.0 == name) {
                return Err(already_defined(name, pos, dynamic.pos));
            }
            entries.push((name, dynamic.pos, self.delay(&dynamic.value, frame)));
        }
        let mut set = AttrsBuilder::with_capacity(entries.len());
        for (name, pos, value) in entries {
            set.push(name, pos, value);
        }
        Ok(set.finish())
    }

    /// NIX: `__overrides` replaces names of a recursive set for the other names too.
    fn override_names(
        &self,
        node: &'static ir::Attrs<Value>,
        rec: &'static ir::Rec,
        index: u32,
        frame: &Frame<'_>,
        entries: &mut Vec<(Symbol, Pos, Value)>,
    ) -> Result<()> {
        let cell = frame.locals[(rec.first + index) as usize].get();
        let overrides = self.force_attrs(cell, Pos::NONE, "while evaluating the `__overrides` attribute")?;
        for (name, pos, value) in overrides.iter() {
            match node.shape.index(name) {
                Some(i) => {
                    entries[i] = (name, pos, value);
                    frame.locals[(rec.first + rec.order[i]) as usize].set(value);
                }
                None => entries.push((name, pos, value)),
            }
        }
        // Cells that have not begun see the replaced names; a replaced cell was made for other code and is left alone.
        for (i, value) in node.values.iter().enumerate() {
            if matches!(value, Expr::Suspend(_)) {
                self.fill_cell(value, rec.first + i as u32, frame);
            }
        }
        Ok(())
    }
}

#[cold]
fn already_defined(name: Symbol, first: Pos, pos: Pos) -> Box<Error> {
    let at = first.resolve().map_or_else(|| "«none»".to_owned(), |l| crate::print::show_location(&l));
    let message = format!("dynamic attribute '{}' already defined at {}", crate::colored_name(name), colored(at));
    Error::new(ErrorKind::Eval, message).at(pos)
}
