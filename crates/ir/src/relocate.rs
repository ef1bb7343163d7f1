//! Relocation: the code of a file, copied for another file with the same bytes.
//!
//! The copy is what lowering the other file would give: every position is the same place in that file, relative paths start from its
//! directory, and nothing has been found out yet by running it. What only depends on names is shared: captures, lists of names, texts. Code
//! that is not made yet is made when it first runs, from the code of the first file, which is made with it if need be.
//! Invariant: only code that was lowered is copied, never a copy, so that its ties are known.

use crate::arena::{keep, keep_each};
use crate::expr::*;
use crate::lower::{Literals, Program};
use crate::tie::{Ties, Untied};
use crate::{Marks, Plans, Shape};
use firn_source::{Pos, SourceFile};

/// Where a copy lies.
#[derive(Debug)]
pub struct Place {
    /// Where the text begins that was lowered, and where the other one does.
    from: Pos,
    to: Pos,
    /// The directory that relative paths start from.
    base: Box<[u8]>,
    /// The guard of the set that is guarded, if one is.
    guard: u32,
}

impl Place {
    /// The place of `to`, as seen from `from`, which has the same text.
    pub fn new(from: &SourceFile, to: &SourceFile, base: &[u8], guard: u32) -> Place {
        Place { from: from.pos(0), to: to.pos(0), base: base.into(), guard }
    }

    #[inline]
    fn pos(&self, pos: Pos) -> Pos {
        pos.moved(self.from, self.to)
    }

    /// The same names, written here.
    pub(crate) fn shape(&self, shape: &'static Shape) -> &'static Shape {
        shape.moved(|pos| self.pos(pos))
    }

    /// What a path literal means here.
    pub(crate) fn path(&self, literal: &[u8]) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.base.len() + literal.len());
        firn_syntax::path_literal(&self.base, literal, &mut path);
        path
    }
}

/// The program of a file for another place.
pub fn relocate<L: Literals>(program: &Program<L::Value>, place: Place) -> &'static Program<L::Value> {
    let body = copy::<L>(&program.body, program.ties, keep(place));
    keep(Program { body, is_attrs: program.is_attrs, ties: Ties::default() })
}

/// A body for another place.
pub(crate) fn copy<L: Literals>(
    body: &Body<L::Value>,
    ties: Ties<L::Value>,
    place: &'static Place,
) -> Body<L::Value> {
    Copying { place, untied: Untied::new(ties, place, &mut L::default()) }.body(body)
}

struct Copying<'a, L: Literals> {
    place: &'static Place,
    untied: Untied<'a, L>,
}

impl<L: Literals> Copying<'_, L> {
    #[inline]
    fn pos(&self, pos: Pos) -> Pos {
        self.place.pos(pos)
    }

    fn body(&mut self, body: &Body<L::Value>) -> Body<L::Value> {
        let Body { expr, locals, captures, pos, now } = body;
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            let now = now.map(|now| keep(self.expr(now)));
            Body { expr: self.expr(expr), locals: *locals, captures, pos: self.pos(*pos), now }
        })
    }

    fn exprs(&mut self, exprs: &[Expr<L::Value>]) -> &'static [Expr<L::Value>] {
        keep_each(exprs.iter().map(|expr| self.expr(expr)))
    }

    fn optional(&mut self, expr: &Option<Expr<L::Value>>) -> Option<Expr<L::Value>> {
        expr.as_ref().map(|expr| self.expr(expr))
    }

    fn expr(&mut self, expr: &Expr<L::Value>) -> Expr<L::Value> {
        match expr {
            Expr::Const(value, tie) => Expr::Const(self.untied.constant(*value, *tie), Tie::NONE),
            Expr::Local(slot, pos) => Expr::Local(*slot, self.pos(*pos)),
            Expr::Capture(index, pos) => Expr::Capture(*index, self.pos(*pos)),
            Expr::Dynamic(Dynamic { name, pos, scopes }) => {
                let scope = |WithScope { var, pos, cache: _ }: &WithScope| {
                    WithScope { var: *var, pos: self.pos(*pos), cache: InlineCache::default() }
                };
                let scopes = keep_each(scopes.iter().map(scope));
                Expr::Dynamic(keep(Dynamic { name: *name, pos: self.pos(*pos), scopes }))
            }
            Expr::SelectName(SelectName { base, name, pos, cache: _ }) => {
                let (base, pos) = (self.expr(base), self.pos(*pos));
                Expr::SelectName(keep(SelectName { base, name: *name, pos, cache: InlineCache::default() }))
            }
            Expr::Select(Select { base, path, default, pos }) => {
                let (base, path, default) = (self.expr(base), self.path(path), self.optional(default));
                Expr::Select(keep(Select { base, path, default, pos: self.pos(*pos) }))
            }
            Expr::HasAttr(HasAttr { base, path, pos }) => {
                Expr::HasAttr(keep(HasAttr { base: self.expr(base), path: self.path(path), pos: self.pos(*pos) }))
            }
            Expr::Attrs(set) => self.attrs(set),
            Expr::List(items) => Expr::List(keep(self.exprs(items))),
            Expr::Lambda(lambda) => self.lambda(lambda),
            Expr::Call(Call { fun, args, pos }) => {
                Expr::Call(keep(Call { fun: self.expr(fun), args: self.exprs(args), pos: self.pos(*pos) }))
            }
            Expr::Suspend(Suspend { body }) => Expr::Suspend(keep(Suspend { body: self.body(body) })),
            Expr::Lazy(lazy) => Expr::Lazy(keep(lazy.at(self.place))),
            Expr::Closed(inner) => Expr::Closed(keep(self.expr(inner))),
            Expr::CurPos(pos) => Expr::CurPos(self.pos(*pos)),
            Expr::Deep(inner) => Expr::Deep(keep(stacker::maybe_grow(128 << 10, 4 << 20, || self.expr(inner)))),
            Expr::Watched(Watched { inner, number }) => Expr::Watched(keep(Watched { inner: self.expr(inner), number: *number })),
            _ => self.control(expr),
        }
    }

    fn path(&mut self, path: &[AttrName<L::Value>]) -> &'static [AttrName<L::Value>] {
        keep_each(path.iter().map(|name| match name {
            AttrName::Static(name, _) => AttrName::Static(*name, InlineCache::default()),
            AttrName::Dynamic(expr, text, pos) => AttrName::Dynamic(self.expr(expr), self.untied.text(text), self.pos(*pos)),
        }))
    }

    fn binding(&mut self, binding: &Binding<L::Value>) -> Binding<L::Value> {
        let Binding { slot, alone, value } = binding;
        Binding { slot: *slot, alone: *alone, value: self.expr(value) }
    }

    fn bindings(&mut self, bindings: &[Binding<L::Value>]) -> &'static [Binding<L::Value>] {
        keep_each(bindings.iter().map(|binding| self.binding(binding)))
    }

    fn attrs(&mut self, set: &Attrs<L::Value>) -> Expr<L::Value> {
        let Attrs { shape, from, values, rec, dynamic, plain, guard, pos } = set;
        let dynamic = keep_each(dynamic.iter().map(|DynamicAttr { name, value, pos }| {
            DynamicAttr { name: self.expr(name), value: self.expr(value), pos: self.pos(*pos) }
        }));
        Expr::Attrs(keep(Attrs {
            shape: self.place.shape(shape),
            from: self.bindings(from),
            values: self.exprs(values),
            rec: *rec,
            dynamic,
            plain: *plain,
            guard: if *guard == 0 { 0 } else { self.place.guard },
            pos: self.pos(*pos),
        }))
    }

    fn lambda(&mut self, lambda: &Lambda<L::Value>) -> Expr<L::Value> {
        let Lambda { params, pattern, body, name, strict, arity, few, marks: _ } = lambda;
        let params = keep_each(params.iter().map(|Param { name, pos }| Param { name: *name, pos: self.pos(*pos) }));
        let pattern = pattern.map(|Pattern { formals, first, ellipsis, at, pos, plans: _ }| {
            let formals = keep_each(formals.iter().map(|Formal { name, pos, default }| {
                Formal { name: *name, pos: self.pos(*pos), default: self.optional(default) }
            }));
            let (first, ellipsis, at, pos) = (*first, *ellipsis, *at, self.pos(*pos));
            keep(Pattern { formals, first, ellipsis, at, pos, plans: Plans::default() })
        });
        let (body, strict, marks) = (self.body(body), strict.clone(), Marks::default());
        Expr::Lambda(keep(Lambda { params, pattern, body, name: *name, strict, arity: *arity, few: *few, marks }))
    }

    fn control(&mut self, expr: &Expr<L::Value>) -> Expr<L::Value> {
        match expr {
            Expr::Let(Let { bindings, early, body }) => {
                let early = early.as_ref().map(|early| self.binding(early));
                Expr::Let(keep(Let { bindings: self.bindings(bindings), early, body: self.expr(body) }))
            }
            Expr::With(With { slot, scope, body }) => {
                Expr::With(keep(With { slot: *slot, scope: self.expr(scope), body: self.expr(body) }))
            }
            Expr::If(If { cond, then, otherwise, pos }) => {
                let (cond, then, otherwise) = (self.expr(cond), self.expr(then), self.expr(otherwise));
                Expr::If(keep(If { cond, then, otherwise, pos: self.pos(*pos) }))
            }
            Expr::Assert(Assert { cond, body, text, pos }) => {
                let (cond, body) = (self.expr(cond), self.expr(body));
                Expr::Assert(keep(Assert { cond, body, text: self.untied.text(text), pos: self.pos(*pos) }))
            }
            Expr::Not(Not { operand, pos }) => Expr::Not(keep(Not { operand: self.expr(operand), pos: self.pos(*pos) })),
            Expr::Binary(op, Binary { left, right, pos, operands }) => {
                let (left, right, operands) = (self.expr(left), self.expr(right), operands.map(|pos| self.pos(pos)));
                Expr::Binary(*op, keep(Binary { left, right, pos: self.pos(*pos), operands }))
            }
            Expr::Concat(Concat { force_string, parts, pos }) => {
                let parts = keep_each(parts.iter().map(|(part, pos)| (self.expr(part), self.pos(*pos))));
                Expr::Concat(keep(Concat { force_string: *force_string, parts, pos: self.pos(*pos) }))
            }
            Expr::Sum(Sum { first, rest }) => {
                let first = self.expr(first);
                let rest = keep_each(rest.iter().map(|Addend { right, pos, operands }| {
                    Addend { right: self.expr(right), pos: self.pos(*pos), operands: operands.map(|pos| self.pos(pos)) }
                }));
                Expr::Sum(keep(Sum { first, rest }))
            }
            _ => unreachable!("the other forms are copied by `expr`"),
        }
    }
}
