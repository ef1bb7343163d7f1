//! Checks that every variable of a tree is bound, without making code: what `--parse` needs.

use crate::lower::{Globals, LowerError, undefined};
use firn_source::{Pos, Symbol};
use firn_syntax::ast::{Ast, AttrName, AttrValue, AttrsId, Expr, ExprId, Lambda, Range};
use std::cell::RefCell;

/// The error of lowering this tree, if it has one.
pub fn check_names<V>(ast: &Ast, globals: &dyn Globals<V>) -> Result<(), Box<LowerError>> {
    let mut check = Check { ast, globals, bound: BOUND.take(), withs: 0, depth: 0 };
    check.expr(ast.root())?;
    // Every name is unbound again.
    BOUND.set(check.bound);
    Ok(())
}

thread_local! {
    /// Kept from one tree to the next, all zeros.
    static BOUND: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

struct Check<'a, V> {
    ast: &'a Ast,
    globals: &'a dyn Globals<V>,
    /// How many binders each symbol has, by its number.
    bound: Vec<u32>,
    withs: u32,
    depth: u32,
}

impl<V> Check<'_, V> {
    fn bind(&mut self, name: Symbol) {
        let index = name.id() as usize;
        if index >= self.bound.len() {
            self.bound.resize(index + index / 2 + 1, 0);
        }
        self.bound[index] += 1;
    }

    fn unbind(&mut self, name: Symbol) {
        self.bound[name.id() as usize] -= 1;
    }

    fn variable(&self, name: Symbol, pos: Pos) -> Result<(), Box<LowerError>> {
        let known = self.withs > 0
            || self.bound.get(name.id() as usize).is_some_and(|&count| count > 0)
            || self.globals.global(name).is_some();
        if known { Ok(()) } else { Err(undefined(name, pos)) }
    }

    fn expr(&mut self, id: ExprId) -> Result<(), Box<LowerError>> {
        self.depth += 1;
        let result = if self.depth.is_multiple_of(64) {
            stacker::maybe_grow(128 << 10, 4 << 20, || self.node(id))
        } else {
            self.node(id)
        };
        self.depth -= 1;
        result
    }

    fn all(&mut self, range: Range) -> Result<(), Box<LowerError>> {
        let ast = self.ast;
        ast.exprs(range).iter().try_for_each(|&id| self.expr(id))
    }

    fn path(&mut self, path: Range) -> Result<(), Box<LowerError>> {
        let ast = self.ast;
        ast.path(path).iter().try_for_each(|name| match name {
            AttrName::Static(_) => Ok(()),
            AttrName::Dynamic(id) => self.expr(*id),
        })
    }

    fn node(&mut self, id: ExprId) -> Result<(), Box<LowerError>> {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Int(_) | Expr::Float(_) | Expr::String(_) | Expr::Path(_) | Expr::CurPos(_) => Ok(()),
            Expr::Var { name, pos } => self.variable(name, pos),
            Expr::Select { base, path, default, .. } => {
                self.expr(base)?;
                self.path(path)?;
                default.map_or(Ok(()), |d| self.expr(d.expr()))
            }
            Expr::HasAttr { base, path } => {
                self.expr(base)?;
                self.path(path)
            }
            Expr::Attrs(set) => self.set(set, None),
            Expr::List(items) => self.all(items),
            Expr::Lambda(lambda) => self.lambda(ast.lambda(lambda)),
            Expr::Call { fun, args, .. } => {
                self.expr(fun)?;
                self.all(args)
            }
            Expr::Arith { lhs, rhs, .. } | Expr::Binary { lhs, rhs, .. } => {
                self.expr(lhs)?;
                self.expr(rhs)
            }
            Expr::Not(operand) => self.expr(operand),
            Expr::Let { attrs, body } => self.set(attrs, Some(body)),
            Expr::With { attrs, body, .. } => {
                self.expr(attrs)?;
                self.withs += 1;
                let result = self.expr(body);
                self.withs -= 1;
                result
            }
            Expr::If { cond, then, other, .. } => {
                self.expr(cond)?;
                self.expr(then)?;
                self.expr(other)
            }
            Expr::Assert { cond, body, .. } => {
                self.expr(cond)?;
                self.expr(body)
            }
            Expr::Concat { parts, .. } => ast.parts(parts).iter().try_for_each(|part| self.expr(part.expr)),
        }
    }

    /// An attribute set, or the bindings of a `let` with its body.
    fn set(&mut self, id: AttrsId, body: Option<ExprId>) -> Result<(), Box<LowerError>> {
        let ast = self.ast;
        let set = ast.attrs(id);
        let defs = ast.attr_defs(set.defs);
        for def in defs {
            if def.value == AttrValue::Inherited {
                self.variable(def.name, def.pos)?;
            }
        }
        let recursive = set.recursive || body.is_some();
        if recursive {
            defs.iter().for_each(|def| self.bind(def.name));
        }
        for source in ast.inherit_sources(set.sources) {
            self.expr(source.expr)?;
        }
        for def in defs {
            if let AttrValue::Plain(id) = def.value {
                self.expr(id)?;
            }
        }
        for def in ast.dynamic_defs(set.dynamic) {
            self.expr(def.name)?;
            self.expr(def.value)?;
        }
        body.map_or(Ok(()), |body| self.expr(body))?;
        if recursive {
            defs.iter().for_each(|def| self.unbind(def.name));
        }
        Ok(())
    }

    fn lambda(&mut self, lambda: &Lambda) -> Result<(), Box<LowerError>> {
        let ast = self.ast;
        let formals = lambda.formals.map_or(&[][..], |formals| ast.formals(formals.list));
        lambda.arg.into_iter().for_each(|name| self.bind(name));
        formals.iter().for_each(|formal| self.bind(formal.name));
        for default in formals.iter().filter_map(|formal| formal.default) {
            self.expr(default)?;
        }
        self.expr(lambda.body)?;
        formals.iter().for_each(|formal| self.unbind(formal.name));
        lambda.arg.into_iter().for_each(|name| self.unbind(name));
        Ok(())
    }
}
