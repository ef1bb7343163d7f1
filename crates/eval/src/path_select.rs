//! Selection along paths with several or computed names, defaults, and `?`.

use crate::Machine;
use crate::frame::Frame;
use crate::select::{in_attribute, missing_attribute};
use firn_ir::{AttrName, HasAttr, InlineCache, Select};
use firn_source::{Pos, Symbol};
use firn_value::{Result, Value};

impl Machine {
    fn attr_name(&self, name: &'static AttrName<Value>, frame: &Frame<'_>) -> Result<(Symbol, Option<&'static InlineCache>)> {
        match name {
            AttrName::Static(name, cache) => Ok((*name, Some(cache))),
            AttrName::Dynamic(expr, _, pos) => {
                let value = self.eval(expr, frame)?;
                let text = self.force_string_no_context(value, *pos, "while evaluating an attribute name")?;
                Ok((Symbol::intern(text.bytes()), None))
            }
        }
    }

    /// Selection in general.
    #[inline(never)]
    pub(crate) fn select(&self, node: &'static Select<Value>, frame: &Frame<'_>) -> Result<Value> {
        let base = self.eval(&node.base, frame)?;
        let mut last = Pos::NONE;
        match self.select_path(node, base, frame, &mut last) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => {
                let default = node.default.as_ref().expect("only a default lets a path be missing");
                self.eval(default, frame)
            }
            Err(error) if last.is_some() => Err(in_attribute(error, last, &self.path_text(node.path, frame))),
            Err(error) => Err(error),
        }
    }

    fn select_path(
        &self,
        node: &'static Select<Value>,
        base: Value,
        frame: &Frame<'_>,
        last: &mut Pos,
    ) -> Result<Option<Value>> {
        let mut current = base;
        for name in node.path {
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
                None => set.get_with_pos(symbol),
            };
            match found {
                Some((cell, pos)) => (current, *last) = (cell, pos),
                None if node.default.is_some() => return Ok(None),
                None => return Err(missing_attribute(set, symbol, node.pos)),
            }
        }
        self.force(current, if last.is_some() { *last } else { node.pos }).map(Some)
    }

    /// The path as messages show it: names as they came out, or their source where they fail.
    #[cold]
    fn path_text(&self, path: &'static [AttrName<Value>], frame: &Frame<'_>) -> Vec<u8> {
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
    #[inline(never)]
    pub(crate) fn has_attr(&self, node: &'static HasAttr<Value>, frame: &Frame<'_>) -> Result<Value> {
        let mut current = self.eval(&node.base, frame)?;
        for name in node.path {
            let value = self.force(current, node.pos)?;
            let (symbol, cache) = self.attr_name(name, frame)?;
            let found = value.as_attrs().and_then(|set| match cache {
                Some(cache) => self.lookup(set, symbol, cache),
                None => set.get_with_pos(symbol),
            });
            match found {
                Some((cell, _)) => current = cell,
                None => return Ok(Value::FALSE),
            }
        }
        Ok(Value::TRUE)
    }
}
