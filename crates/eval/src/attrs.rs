//! Attribute set literals: plain, recursive, with overrides, with computed names.

use crate::frame::Frame;
use crate::{Machine, colored};
use firn_ir as ir;
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Error, ErrorKind, Expr, Guard, Result, Value};
use smallvec::SmallVec;

/// Attributes on their way into a set.
type Entries = SmallVec<[(Symbol, Pos, Value); 16]>;

impl Machine {
    /// A set.
    #[inline]
    pub(crate) fn attrs(&self, node: &'static ir::Attrs<Value>, frame: Frame<'_>) -> Result<Value> {
        if !node.plain {
            return self.attrs_in_general(node, frame);
        }
        Ok(self.plain_attrs(node, frame))
    }

    /// A set of nothing but names and values.
    #[inline]
    pub(crate) fn plain_attrs(&self, node: &'static ir::Attrs<Value>, frame: Frame<'_>) -> Value {
        // PERF: a set of one attribute needs neither loop nor registers.
        if let [only] = node.values {
            return AttrsBuilder::of_one(node.shape, self.delay(only, frame));
        }
        self.attrs_of_names(node, frame)
    }

    #[inline(never)]
    fn attrs_of_names(&self, node: &'static ir::Attrs<Value>, frame: Frame<'_>) -> Value {
        AttrsBuilder::of_shape(node.shape, node.values.iter().map(|v| self.delay(v, frame)))
    }

    #[inline(never)]
    fn attrs_in_general(&self, node: &'static ir::Attrs<Value>, frame: Frame<'_>) -> Result<Value> {
        match node.rec {
            None => {
                if !node.from.is_empty() {
                    self.bind(node.from, frame);
                }
                if node.dynamic.is_empty() {
                    let set = self.attrs_of_names(node, frame);
                    let guard = Some(Guard(node.guard)).filter(|guard| guard.0 != 0);
                    return Ok(set.as_attrs().map_or(set, |made| made.guarded_by(guard)));
                }
            }
            Some(rec) => {
                self.bind_rec(node, rec.first, frame);
                if node.dynamic.is_empty() && rec.overrides.is_none() {
                    let cell = |&i: &u32| frame.local(rec.first + i);
                    return Ok(AttrsBuilder::of_shape(node.shape, rec.order.iter().map(cell)));
                }
            }
        }
        self.attrs_with_extras(node, frame)
    }

    /// Binds the names of a recursive set and the sources of its `inherit (…)`.
    fn bind_rec(&self, node: &'static ir::Attrs<Value>, first: u32, frame: Frame<'_>) {
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
    fn attrs_with_extras(&self, node: &'static ir::Attrs<Value>, frame: Frame<'_>) -> Result<Value> {
        if let [dynamic] = node.dynamic
            && node.rec.as_ref().is_none_or(|rec| rec.overrides.is_none())
        {
            return self.attrs_and_one(node, dynamic, frame);
        }
        let mut entries: Entries = SmallVec::with_capacity(node.shape.len() + node.dynamic.len());
        for i in 0..node.shape.len() {
            let cell = match node.rec {
                None => self.delay(&node.values[i], frame),
                Some(rec) => frame.local(rec.first + rec.order[i]),
            };
            entries.push((node.shape.names()[i], node.shape.positions()[i], cell));
        }
        if let Some(rec) = node.rec
            && let Some(index) = rec.overrides
        {
            self.override_names(node, rec, index, frame, &mut entries)?;
        }
        for dynamic in node.dynamic {
            let Some(name) = self.dynamic_name(dynamic, frame)? else { continue };
            if let Some(&(_, pos, _)) = entries.iter().find(|e| e.0 == name) {
                return Err(already_defined(name, pos, dynamic.pos));
            }
            entries.push((name, dynamic.pos, self.delay(&dynamic.value, frame)));
        }
        Ok(AttrsBuilder::from(entries).finish_first())
    }

    /// A set with one computed name.
    #[inline(always)]
    fn attrs_and_one(&self, node: &'static ir::Attrs<Value>, extra: &'static ir::DynamicAttr<Value>, frame: Frame<'_>) -> Result<Value> {
        let name = self.dynamic_name(extra, frame)?;
        if let Some(name) = name
            && let Some(i) = node.shape.index(name)
        {
            return Err(already_defined(name, node.shape.positions()[i], extra.pos));
        }
        let cell = |i| match node.rec {
            None => self.delay(&node.values[i], frame),
            Some(rec) => frame.local(rec.first + rec.order[i]),
        };
        let values = (0..node.shape.len()).map(cell);
        Ok(match name {
            None => AttrsBuilder::of_shape(node.shape, values),
            Some(name) => AttrsBuilder::extended(node.shape, values, (name, extra.pos, self.delay(&extra.value, frame))),
        })
    }

    /// The name of a dynamic attribute; none if it is null.
    #[inline]
    fn dynamic_name(&self, dynamic: &'static ir::DynamicAttr<Value>, frame: Frame<'_>) -> Result<Option<Symbol>> {
        let name = match &dynamic.name {
            Expr::Concat(node) => match self.concat_name(node, frame)? {
                Ok(name) => return Ok(Some(name)),
                Err(value) => value,
            },
            other => self.eval(other, frame)?,
        };
        if name == Value::NULL {
            return Ok(None);
        }
        let name = self.force_string_no_context(name, dynamic.pos, "while evaluating the name of a dynamic attribute")?;
        Ok(Some(name.symbol()))
    }

    /// NIX: `__overrides` replaces names of a recursive set for the other names too.
    fn override_names(
        &self,
        node: &'static ir::Attrs<Value>,
        rec: &'static ir::Rec,
        index: u32,
        frame: Frame<'_>,
        entries: &mut Entries,
    ) -> Result<()> {
        let cell = frame.local(rec.first + index);
        let overrides = self.force_attrs(cell, Pos::NONE, "while evaluating the `__overrides` attribute")?;
        for (name, pos, value) in overrides.iter() {
            match node.shape.index(name) {
                Some(i) => {
                    entries[i] = (name, pos, value);
                    frame.set(rec.first + rec.order[i], value);
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
