//! Bindings: `name = value;` and `inherit`, with the merging of nested definitions.
//!
//! While a text is parsed, any set in it may still grow (`a = { … }; a.b = …;`), so definitions are kept in chains;
//! [`Parser::lay_out_sets`] puts each set's side by side when all is read.

use super::{Parsed, Parser};
use crate::ast::{AttrDef, AttrName, AttrValue, AttrsId, DynamicDef, Expr, ExprId, InheritSource, Range};
use crate::token::Kind;
use firn_source::{Pos, Symbol};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

const END: u32 = u32::MAX;

/// A list threaded through a [`Links`].
#[derive(Clone, Copy)]
struct Chain {
    head: u32,
    tail: u32,
    len: u32,
}

impl Chain {
    const EMPTY: Chain = Chain { head: END, tail: END, len: 0 };
}

/// Elements of many chains, each with the index of the next in its chain.
struct Links<T>(Vec<(T, u32)>);

impl<T> Default for Links<T> {
    fn default() -> Links<T> {
        Links(Vec::new())
    }
}

impl<T: Copy> Links<T> {
    fn push(&mut self, chain: &mut Chain, item: T) -> u32 {
        let index = self.0.len() as u32;
        self.0.push((item, END));
        match chain.tail {
            END => chain.head = index,
            tail => self.0[tail as usize].1 = index,
        }
        chain.tail = index;
        chain.len += 1;
        index
    }

    /// Appends one chain to another.
    fn join(&mut self, chain: &mut Chain, other: Chain) {
        if other.len == 0 {
            return;
        }
        match chain.tail {
            END => chain.head = other.head,
            tail => self.0[tail as usize].1 = other.head,
        }
        chain.tail = other.tail;
        chain.len += other.len;
    }

    fn iter(&self, chain: Chain) -> impl Iterator<Item = (u32, T)> + '_ {
        let mut at = chain.head;
        std::iter::from_fn(move || {
            let (item, next) = *self.0.get(at as usize)?;
            Some((std::mem::replace(&mut at, next), item))
        })
    }

    fn lay_out(&self, chain: Chain, out: &mut Vec<T>) -> Range {
        let start = out.len() as u32;
        out.extend(self.iter(chain).map(|(_, item)| item));
        Range { start, len: chain.len }
    }
}

/// A set that may still grow.
struct Open {
    defs: Chain,
    dynamic: Chain,
    sources: Chain,
    /// Its names are in [`Sets::index`].
    indexed: bool,
}

/// The sets of the text being parsed, by [`AttrsId`].
#[derive(Default)]
pub(super) struct Sets {
    open: Vec<Open>,
    defs: Links<AttrDef>,
    dynamic: Links<DynamicDef>,
    sources: Links<InheritSource>,
    /// Where a name is defined, for sets too large to search.
    index: HashMap<(u32, Symbol), u32, FxBuildHasher>,
}

/// Sets up to this size are searched one by one.
const SMALL: u32 = 8;

impl Sets {
    pub(super) fn clear(&mut self) {
        self.open.clear();
        self.defs.0.clear();
        self.dynamic.0.clear();
        self.sources.0.clear();
        self.index.clear();
    }

    pub(super) fn open(&mut self) {
        let (defs, dynamic, sources) = (Chain::EMPTY, Chain::EMPTY, Chain::EMPTY);
        self.open.push(Open { defs, dynamic, sources, indexed: false });
    }

    pub(super) fn has_dynamic(&self, set: AttrsId) -> bool {
        self.open[set.index()].dynamic.len > 0
    }

    fn find(&self, set: AttrsId, name: Symbol) -> Option<AttrDef> {
        let open = &self.open[set.index()];
        if open.indexed {
            return self.index.get(&(set.0, name)).map(|&i| self.defs.0[i as usize].0);
        }
        self.defs.iter(open.defs).map(|(_, def)| def).find(|def| def.name == name)
    }

    fn define(&mut self, set: AttrsId, def: AttrDef) {
        let open = &mut self.open[set.index()];
        let at = self.defs.push(&mut open.defs, def);
        if open.indexed {
            self.index.insert((set.0, def.name), at);
        } else if open.defs.len > SMALL {
            open.indexed = true;
            let chain = open.defs;
            self.index.extend(self.defs.iter(chain).map(|(i, d)| ((set.0, d.name), i)));
        }
    }
}

impl Parser<'_> {
    /// `binds`: as many definitions as follow, into `set`.
    pub(super) fn binds(&mut self, set: AttrsId) -> Parsed<()> {
        loop {
            match self.kind() {
                Kind::Id | Kind::OrKw | Kind::Quote | Kind::DollarCurly => self.bind(set)?,
                Kind::Inherit => self.inherit(set)?,
                _ => return Ok(()),
            }
        }
    }

    fn bind(&mut self, set: AttrsId) -> Parsed<()> {
        let pos = self.pos(self.token());
        let from = self.path.len();
        self.attr_names()?;
        self.expect(Kind::Assign)?;
        let (start, below) = (self.token().start, self.ast.bound);
        let value = self.expr()?;
        if self.kind() != Kind::Semicolon {
            return self.unexpected();
        }
        if self.notes_leaves {
            self.note_leaf(from, value, start, below);
        }
        self.define_path(set, from, pos, value)?;
        self.path.truncate(from);
        self.advance();
        Ok(())
    }

    /// Notes a binding whose value begins at `start`; it is a leaf if nothing was bound since there were `below` bindings. What would be
    /// another cell if it were one (a variable but for `true` and its like, a function), or may still grow (a set), is none, nor what says
    /// of what a package set is made. Its names are on the path from `from` on.
    #[cold]
    fn note_leaf(&mut self, from: usize, value: ExprId, start: u32, below: u32) {
        let is_leaf = self.ast.bound == below;
        self.ast.bound += 1;
        let names = &self.path[from..];
        let name = |name: Option<&AttrName>| name.and_then(|name| if let AttrName::Static(name) = name { Some(*name) } else { None });
        let is_ground = crate::leaves::is_ground(name(names.first()), name(names.last()));
        let is_leaf = is_leaf
            && !is_ground
            && match self.ast.nodes[value.index()] {
                Expr::Attrs(_) | Expr::Lambda(_) => false,
                Expr::Var { name, .. } => crate::leaves::is_constant(name),
                _ => true,
            };
        if is_leaf {
            self.ast.leaves.push((value, start..self.token().start));
        }
    }

    fn inherit(&mut self, set: AttrsId) -> Parsed<()> {
        self.advance();
        let mut source = None;
        if self.kind() == Kind::LParen {
            self.advance();
            let pos = self.pos(self.token());
            let expr = self.expr()?;
            self.expect(Kind::RParen)?;
            source = Some(InheritSource { expr, pos });
        }
        let from = self.inherited.len();
        while matches!(self.kind(), Kind::Id | Kind::OrKw | Kind::Quote | Kind::DollarCurly) {
            let pos = self.pos(self.token());
            match self.attr_name()? {
                AttrName::Static(name) => self.inherited.push((name, pos)),
                AttrName::Dynamic(_) => return self.fail(pos, "dynamic attributes not allowed in inherit"),
            }
        }
        if self.kind() != Kind::Semicolon {
            return self.unexpected();
        }
        let value = match source {
            None => AttrValue::Inherited,
            Some(source) => {
                let open = &mut self.sets.open[set.index()];
                let number = open.sources.len;
                self.sets.sources.push(&mut open.sources, source);
                AttrValue::InheritedFrom(number)
            }
        };
        for i in from..self.inherited.len() {
            let (name, pos) = self.inherited[i];
            if let Some(before) = self.sets.find(set, name) {
                return self.duplicate(&[AttrName::Static(name)], pos, before.pos);
            }
            self.sets.define(set, AttrDef { name, pos, value });
        }
        self.inherited.truncate(from);
        self.advance();
        Ok(())
    }

    /// Defines the path above `from` in `set`, making and merging the sets on the way.
    fn define_path(&mut self, set: AttrsId, from: usize, pos: Pos, value: ExprId) -> Parsed<()> {
        let mut set = set;
        let last = self.path.len() - 1;
        for i in from..last {
            set = match self.path[i] {
                AttrName::Static(name) => match self.sets.find(set, name) {
                    Some(def) => match self.set_of(def.value) {
                        Some(nested) => nested,
                        None => return self.duplicate(&self.path[from..=i].to_vec(), pos, def.pos),
                    },
                    None => {
                        let (nested, node) = self.implied_set();
                        self.sets.define(set, AttrDef { name, pos, value: AttrValue::Plain(node) });
                        nested
                    }
                },
                AttrName::Dynamic(name) => {
                    let (nested, node) = self.implied_set();
                    self.define_dynamic(set, DynamicDef { name, value: node, pos });
                    nested
                }
            };
        }
        match self.path[last] {
            AttrName::Static(name) => self.define(set, from, AttrDef { name, pos, value: AttrValue::Plain(value) }),
            AttrName::Dynamic(name) => {
                self.define_dynamic(set, DynamicDef { name, value, pos });
                Ok(())
            }
        }
    }

    fn implied_set(&mut self) -> (AttrsId, ExprId) {
        let set = self.new_attrs(Pos::NONE);
        (set, self.add(Expr::Attrs(set)))
    }

    fn define_dynamic(&mut self, set: AttrsId, def: DynamicDef) {
        let open = &mut self.sets.open[set.index()];
        self.sets.dynamic.push(&mut open.dynamic, def);
    }

    fn set_of(&self, value: AttrValue) -> Option<AttrsId> {
        match value {
            AttrValue::Plain(expr) => match self.ast.nodes[expr.index()] {
                Expr::Attrs(set) => Some(set),
                _ => None,
            },
            _ => None,
        }
    }

    /// Defines one name; `self.path[from..]` ends with it. Two sets under one name become one.
    /// NIX: the later set's `rec` is forgotten, the earlier one's covers both.
    fn define(&mut self, set: AttrsId, from: usize, def: AttrDef) -> Parsed<()> {
        let Some(before) = self.sets.find(set, def.name) else {
            self.sets.define(set, def);
            if let AttrValue::Plain(value) = def.value {
                self.name_functions(value, def.name);
            }
            return Ok(());
        };
        match (self.set_of(before.value), self.set_of(def.value)) {
            (Some(into), Some(other)) => self.deeper(|p| p.merge(into, other, from)),
            _ => self.duplicate(&self.path[from..].to_vec(), def.pos, before.pos),
        }
    }

    /// Moves all of `other` into `into`. Nix renumbers the sources of `inherit (e) a b` once per name, which breaks
    /// when `into` has sources of its own; here each name keeps its source.
    fn merge(&mut self, into: AttrsId, other: AttrsId, from: usize) -> Parsed<()> {
        let offset = self.sets.open[into.index()].sources.len;
        let moved = std::mem::replace(&mut self.sets.open[other.index()].defs, Chain::EMPTY);
        let defs: Vec<AttrDef> = self.sets.defs.iter(moved).map(|(_, def)| def).collect();
        for mut def in defs {
            if let AttrValue::InheritedFrom(source) = &mut def.value {
                *source += offset;
            }
            self.path.push(AttrName::Static(def.name));
            self.define(into, from, def)?;
            self.path.pop();
        }
        let other = &mut self.sets.open[other.index()];
        let dynamic = std::mem::replace(&mut other.dynamic, Chain::EMPTY);
        let sources = std::mem::replace(&mut other.sources, Chain::EMPTY);
        let open = &mut self.sets.open[into.index()];
        self.sets.dynamic.join(&mut open.dynamic, dynamic);
        self.sets.sources.join(&mut open.sources, sources);
        Ok(())
    }

    /// `f = x: y: …` names both functions.
    fn name_functions(&mut self, value: ExprId, name: Symbol) {
        let mut value = value;
        while let Expr::Lambda(lambda) = self.ast.nodes[value.index()] {
            let lambda = &mut self.ast.lambdas[lambda.index()];
            lambda.name = Some(name);
            value = lambda.body;
        }
    }

    fn duplicate<T>(&mut self, path: &[AttrName], pos: Pos, before: Pos) -> Parsed<T> {
        if self.names.are_apart() {
            return self.fail(pos, "");
        }
        self.lay_out_sets(); // the path may hold expressions to print
        let mut message = b"attribute '".to_vec();
        crate::print::write_path(&self.ast, path, &mut message);
        message.extend_from_slice(b"' already defined at ");
        crate::error::write_place(before, &mut message);
        self.fail(pos, message)
    }

    /// Gives every set its ranges in the tree.
    pub(super) fn lay_out_sets(&mut self) {
        let (sets, ast) = (&self.sets, &mut self.ast);
        ast.attr_defs.reserve_exact(sets.defs.0.len());
        for (attrs, open) in ast.attrs.iter_mut().zip(&sets.open) {
            attrs.defs = sets.defs.lay_out(open.defs, &mut ast.attr_defs);
            attrs.dynamic = sets.dynamic.lay_out(open.dynamic, &mut ast.dynamic);
            attrs.sources = sets.sources.lay_out(open.sources, &mut ast.sources);
        }
    }
}
