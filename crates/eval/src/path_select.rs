//! Selection along paths with several or computed names, defaults, and `?`.

use crate::Machine;
use crate::frame::Frame;
use crate::select::{defined_at, in_attribute, missing_attribute};
use firn_ir::{AttrName, HasAttr, InlineCache, Select};
use firn_source::{Pos, Symbol};
use firn_value::{Attrs, Error, Expr, Result, Value};

impl Machine {
    fn attr_name(&self, name: &'static AttrName<Value>, frame: Frame<'_>) -> Result<(Symbol, Option<&'static InlineCache>)> {
        match name {
            AttrName::Static(name, cache) => Ok((*name, Some(cache))),
            AttrName::Dynamic(expr, _, pos) => {
                let value = match expr {
                    Expr::Concat(node) => match self.concat_name(node, frame)? {
                        Ok(name) => return Ok((name, None)),
                        Err(value) => value,
                    },
                    _ => self.eval(expr, frame)?,
                };
                let text = self.force_string_no_context(value, *pos, "while evaluating an attribute name")?;
                Ok((text.symbol(), None))
            }
        }
    }

    /// Selection in general.
    #[inline]
    pub(crate) fn select(&self, node: &'static Select<Value>, frame: Frame<'_>) -> Result<Value> {
        let mut current = self.eval(&node.base, frame)?;
        let mut last = None;
        // PERF: names written out and present are the common case by far.
        for (i, name) in node.path.iter().enumerate() {
            if let AttrName::Static(symbol, cache) = name
                && let Some(set) = current.as_attrs()
                && let Some(cell) = self.lookup(set, *symbol, cache)
            {
                let value = match cell.as_thunk().map(|thunk| self.known(thunk)) {
                    None => cell,
                    Some(Some(value)) => value,
                    Some(None) => match self.force_attribute(cell, set, *symbol, node.pos) {
                        Ok(value) => value,
                        Err((error, pos)) => return self.select_failed(node, error, pos, frame),
                    },
                };
                last = Some((set, *symbol));
                current = value;
            } else {
                return self.select_rest(node, i, current, last, frame);
            }
        }
        Ok(current)
    }

    #[cold]
    fn select_failed(&self, node: &'static Select<Value>, error: Box<Error>, pos: Pos, frame: Frame<'_>) -> Result<Value> {
        if !pos.is_some() {
            return Err(error);
        }
        Err(in_attribute(error, pos, &self.attribute_text(node.path, frame)))
    }

    /// The path from name `from` on; `last` is the set and name of the attribute reached last.
    #[inline(never)]
    fn select_rest(
        &self,
        node: &'static Select<Value>,
        from: usize,
        current: Value,
        last: Option<(Attrs, Symbol)>,
        frame: Frame<'_>,
    ) -> Result<Value> {
        let mut last = last;
        match self.select_path(node, from, current, &mut last, frame) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                let default = node.default.as_ref().expect("only a default lets a path be missing");
                self.eval(default, frame)
            }
            Err(error) => {
                let pos = last.map_or(Pos::NONE, |(set, name)| defined_at(set, name));
                self.select_failed(node, error, pos, frame)
            }
        }
    }

    fn select_path(
        &self,
        node: &'static Select<Value>,
        from: usize,
        current: Value,
        last: &mut Option<(Attrs, Symbol)>,
        frame: Frame<'_>,
    ) -> Result<Option<Value>> {
        let mut current = current;
        for name in &node.path[from..] {
            let (symbol, cache) = self.attr_name(name, frame)?;
            let set = if node.default.is_some() {
                match self.force(current, node.pos)?.as_attrs() {
                    Some(set) => set,
                    None => return Ok(None),
                }
            } else {
                self.force_attrs(current, node.pos, "while selecting an attribute")?
            };
            let found = match cache {
                Some(cache) => self.lookup(set, symbol, cache),
                None => set.get(symbol),
            };
            match found {
                Some(cell) => (current, *last) = (cell, Some((set, symbol))),
                None if node.default.is_some() => return Ok(None),
                None => return Err(missing_attribute(set, symbol, node.pos)),
            }
        }
        match *last {
            Some((set, name)) => self.force_attribute(current, set, name, node.pos).map(Some).map_err(|(error, _)| error),
            None => self.force(current, node.pos).map(Some),
        }
    }

    /// The path as messages show it: names as they came out, or their source where they fail.
    #[cold]
    fn attribute_text(&self, path: &'static [AttrName<Value>], frame: Frame<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        for (i, name) in path.iter().enumerate() {
            if i > 0 {
                text.push(b'.');
            }
            match (self.attr_name(name, frame), name) {
                (Ok((symbol, _)), _) | (Err(_), &AttrName::Static(symbol, _)) => {
                    firn_text::literal::write_name(&mut text, symbol.as_bytes());
                }
                (Err(_), AttrName::Dynamic(_, source, _)) => text.extend_from_slice(&[&b"\"${"[..], source, b"}\""].concat()),
            }
        }
        text
    }

    /// `base ? path`.
    #[inline]
    pub(crate) fn has_attr(&self, node: &'static HasAttr<Value>, frame: Frame<'_>) -> Result<Value> {
        let mut current = self.eval(&node.base, frame)?;
        for name in node.path {
            let value = self.force(current, node.pos)?;
            let (symbol, cache) = self.attr_name(name, frame)?;
            let found = value.as_attrs().and_then(|set| match cache {
                Some(cache) => self.lookup(set, symbol, cache),
                None => set.get(symbol),
            });
            match found {
                Some(cell) => current = cell,
                None => return Ok(Value::FALSE),
            }
        }
        Ok(Value::TRUE)
    }
}
