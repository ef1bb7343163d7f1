//! Lowering of attribute sets and `let`.
//!
//! Bindings that see each other are made in two steps at run time: first every cell, then every cell's captures. What
//! is bound there is therefore a constant, a function, a suspended body, or a variable whose cell exists already;
//! NIX: an alias of a name that comes later is a cell of its own, as in Nix.

use super::{Lowered, Lowering};
use crate::arena::{keep, keep_all};
use crate::expr::*;
use crate::lower::{Literals, LowerError};
use crate::scope::Binder;
use crate::shape::Shape;
use crate::strictness;
use firn_source::{Pos, Symbol};
use firn_syntax::MANY;
use firn_syntax::ast::{self, AttrDef, AttrValue, AttrsId, ExprId};
use std::ops::Range;

/// Where the source of an `inherit (e)` is found.
#[derive(Clone, Copy)]
enum Source<V> {
    Bound(Binder),
    Constant(V, Tie),
}

impl<L: Literals> Lowering<'_, L> {
    /// Lowers a value bound among others; `pending` are the slots whose cells do not exist yet at that moment.
    pub(super) fn binding(&mut self, id: ExprId, pending: &Range<u32>) -> Lowered<L::Value> {
        let is_pending = |this: &Self, name| {
            this.scopes.lookup(name).is_some_and(|b| b.level == this.scopes.level() && pending.contains(&b.slot))
        };
        match self.ast.expr(id) {
            ast::Expr::Var { name, .. } if is_pending(self, name) => self.own_cell(id),
            _ => self.delayed(id),
        }
    }

    fn own_cell(&mut self, id: ExprId) -> Lowered<L::Value> {
        let number = self.ast.watched(id);
        self.suspend(self.ast.pos_of(id), |this| {
            let inner = this.strict_node(id)?;
            Ok(if number == 0 { inner } else { Expr::Watched(keep(Watched { inner, number })) })
        })
    }

    /// Sources of `inherit (e)`: a variable or constant is used as it is, anything else gets a slot.
    #[allow(clippy::type_complexity)]
    fn sources(
        &mut self,
        set: &ast::Attrs,
        pending: &Range<u32>,
    ) -> Result<(Vec<Binding<L::Value>>, Vec<Source<L::Value>>), Box<LowerError>> {
        let ast = self.ast;
        let (mut bindings, mut sources) = (Vec::new(), Vec::new());
        for source in ast.inherit_sources(set.sources) {
            if let ast::Expr::Var { name, .. } = ast.expr(source.expr)
                && let Some(binder) = self.scopes.lookup(name)
            {
                sources.push(Source::Bound(binder));
                continue;
            }
            match self.binding(source.expr, pending)? {
                Expr::Const(value, tie) => sources.push(Source::Constant(value, tie)),
                value => {
                    let slot = self.scopes.slots(1);
                    sources.push(Source::Bound(self.scopes.binder(slot)));
                    bindings.push(Binding { slot, alone: false, value });
                }
            }
        }
        Ok((bindings, sources))
    }

    fn inherited_from(&mut self, source: Source<L::Value>, name: Symbol, pos: Pos) -> Lowered<L::Value> {
        self.suspend(pos, |this| {
            let base = match source {
                Source::Constant(value, tie) => Expr::Const(value, tie),
                Source::Bound(binder) => Expr::variable(this.scopes.reach(binder), pos),
            };
            Ok(Expr::SelectName(keep(SelectName { base, name, pos, cache: InlineCache::default() })))
        })
    }

    /// The value of an `inherit name`, in the scope around the set.
    fn inherited(&mut self, def: &AttrDef) -> Lowered<L::Value> {
        if self.scopes.lookup(def.name).is_some() || self.globals.global(def.name).is_some() {
            return self.variable(def.name, def.pos);
        }
        self.suspend(def.pos, |this| this.variable(def.name, def.pos))
    }

    /// Values of mutually visible definitions bound to slots `first…` in order, onto the stack of expressions; and what
    /// is bound before them.
    fn recursive_values(
        &mut self,
        set: &ast::Attrs,
        defs: &[AttrDef],
        first: u32,
        own_cells: bool,
    ) -> Result<Vec<Binding<L::Value>>, Box<LowerError>> {
        let (ast, outer) = (self.ast, self.exprs.len());
        for def in defs {
            if def.value == AttrValue::Inherited {
                let value = self.inherited(def)?;
                self.exprs.push(value);
            }
        }
        let end = first + defs.len() as u32;
        for (i, def) in defs.iter().enumerate() {
            self.scopes.bind(def.name, first + i as u32);
        }
        let (from, sources) = self.sources(set, &(first..end))?;
        let many = defs.len() >= MANY;
        let mut inherited = outer;
        for (i, def) in defs.iter().enumerate() {
            let value = match def.value {
                AttrValue::Inherited => {
                    // Lowered above; nothing looks at the place again.
                    inherited += 1;
                    std::mem::replace(&mut self.exprs[inherited - 1], Expr::CurPos(Pos::NONE))
                }
                AttrValue::InheritedFrom(k) => self.inherited_from(sources[k as usize], def.name, def.pos)?,
                AttrValue::Plain(id) if own_cells => self.own_cell(id)?,
                AttrValue::Plain(id) if many && ast.watched(id) == 0 && self.is_worth_delaying(id) => self.lazy(id)?,
                AttrValue::Plain(id) => self.binding(id, &(first + i as u32..end))?,
            };
            self.exprs.push(value);
        }
        self.exprs.drain(outer..inherited);
        Ok(from)
    }

    pub(super) fn let_in(&mut self, attrs: AttrsId, body: ExprId) -> Lowered<L::Value> {
        let ast = self.ast;
        let set = *ast.attrs(attrs);
        let defs = ast.attr_defs(set.defs);
        let mark = self.scopes.mark();
        let first = self.scopes.slots(defs.len() as u32);
        let values = self.exprs.len();
        let mut bindings = self.recursive_values(&set, defs, first, false)?;
        let values = self.exprs.drain(values..).enumerate();
        bindings.extend(values.map(|(i, value)| Binding::new(first + i as u32, value, first)));
        let made = strictness::made_binding(&bindings);
        made.into_iter().for_each(|i| self.scopes.watch(bindings[i].slot));
        let body = self.strict(body);
        let used_once = made.filter(|_| self.scopes.unwatch() == 1);
        let body = body?;
        self.scopes.unbind(defs.len());
        self.scopes.free_from(mark);
        let early = strictness::forced_binding(&body, &bindings, self.literals)
            .or(used_once.filter(|&i| strictness::forces(&body, bindings[i].slot, self.literals)))
            .map(|i| bindings.remove(i));
        Ok(Expr::Let(keep(Let { bindings: keep_all(bindings), early, body })))
    }

    pub(super) fn attrs(&mut self, id: AttrsId) -> Lowered<L::Value> {
        let ast = self.ast;
        let set = *ast.attrs(id);
        let defs = ast.attr_defs(set.defs);
        let mut order: Vec<u32> = (0..defs.len() as u32).collect();
        order.sort_unstable_by_key(|&i| defs[i as usize].name);
        let in_order = || order.iter().map(|&i| &defs[i as usize]);
        self.names.clear();
        self.names.extend(in_order().map(|def| def.name));
        self.positions.clear();
        self.positions.extend(in_order().map(|def| def.pos));
        let shape = Shape::new(&self.names, &self.positions);
        let mark = self.scopes.mark();
        if set.recursive {
            let lowered = self.rec_attrs(&set, defs, shape, order);
            self.scopes.free_from(mark);
            return lowered;
        }
        let (from, sources) = self.sources(&set, &(0..0))?;
        let many = defs.len() >= MANY;
        let first = self.exprs.len();
        for def in in_order() {
            let value = match def.value {
                AttrValue::Plain(id) if many && ast.watched(id) == 0 && self.is_worth_delaying(id) => self.lazy(id)?,
                AttrValue::Plain(id) => self.delayed(id)?,
                AttrValue::Inherited => self.inherited(def)?,
                AttrValue::InheritedFrom(k) => self.inherited_from(sources[k as usize], def.name, def.pos)?,
            };
            self.exprs.push(value);
        }
        let dynamic = self.dynamic_attrs(&set)?;
        self.scopes.free_from(mark);
        let guard = ast.guard_of(id);
        if guard == 0
            && dynamic.is_empty()
            && let Some(ties) = self.constants(first)
        {
            let tie = self.ties.set(shape, &self.values, &ties);
            return Ok(Expr::Const(self.literals.attrs(shape, &self.values), tie));
        }
        let (from, values) = (keep_all(from), self.collected(first));
        let plain = guard == 0 && from.is_empty() && dynamic.is_empty();
        Ok(Expr::Attrs(keep(Attrs { shape, from, values, rec: None, dynamic, plain, guard, pos: set.pos })))
    }

    fn rec_attrs(
        &mut self,
        set: &ast::Attrs,
        defs: &[AttrDef],
        shape: &'static Shape,
        order: Vec<u32>,
    ) -> Lowered<L::Value> {
        let first = self.scopes.slots(defs.len() as u32);
        let overrides = shape.index(Symbol::from("__overrides")).map(|i| order[i]);
        let values = self.exprs.len();
        let from = self.recursive_values(set, defs, first, overrides.is_some())?;
        let dynamic = self.dynamic_attrs(set)?;
        self.scopes.unbind(defs.len());
        let rec = Some(keep(Rec { first, order: keep_all(order), overrides }));
        let (from, values) = (keep_all(from), self.collected(values));
        Ok(Expr::Attrs(keep(Attrs { shape, from, values, rec, dynamic, plain: false, guard: 0, pos: set.pos })))
    }

    fn dynamic_attrs(&mut self, set: &ast::Attrs) -> Result<&'static [DynamicAttr<L::Value>], Box<LowerError>> {
        let ast = self.ast;
        let mut all = Vec::with_capacity(set.dynamic.len());
        for def in ast.dynamic_defs(set.dynamic) {
            all.push(DynamicAttr { name: self.strict(def.name)?, value: self.delayed(def.value)?, pos: def.pos });
        }
        Ok(keep_all(all))
    }
}
