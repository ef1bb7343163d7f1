//! The walk over a value that is lowered later: reaches every variable that its code will, and makes nothing.
//!
//! Names bound inside the value are bound here too, to no slot in particular: they are not captured.

use super::Lowering;
use crate::lower::{Literals, LowerError, operator, undefined};
use firn_source::{Pos, Symbol};
use firn_syntax::ast::{Arith, AttrName, AttrValue, AttrsId, Expr, ExprId, Lambda, Range};

type Touched = Result<(), Box<LowerError>>;

impl<L: Literals> Lowering<'_, L> {
    fn touch_name(&mut self, name: Symbol, pos: Pos) -> Touched {
        if let Some(binder) = self.scopes.lookup(name) {
            if let Some(index) = self.scopes.reach_new(binder) {
                self.found.names.push((name, index));
            }
        } else if let Some(value) = self.globals.global(name) {
            if self.found.globals.iter().all(|(known, _)| *known != name) {
                self.found.globals.push((name, value));
            }
        } else if self.scopes.has_with() {
            self.found.dynamic = true;
        } else {
            return Err(undefined(name, pos));
        }
        Ok(())
    }

    pub(super) fn touch(&mut self, id: ExprId) -> Touched {
        let deep = self.scopes.deeper();
        let touched = if deep {
            stacker::maybe_grow(128 << 10, 4 << 20, || self.touch_node(id))
        } else {
            self.touch_node(id)
        };
        self.scopes.shallower();
        touched
    }

    fn touch_all(&mut self, range: Range) -> Touched {
        let ast = self.ast;
        ast.exprs(range).iter().try_for_each(|&id| self.touch(id))
    }

    fn touch_path(&mut self, path: Range) -> Touched {
        let ast = self.ast;
        ast.path(path).iter().try_for_each(|name| match name {
            AttrName::Static(_) => Ok(()),
            AttrName::Dynamic(id) => self.touch(*id),
        })
    }

    fn touch_node(&mut self, id: ExprId) -> Touched {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Int(_) | Expr::Float(_) | Expr::String(_) | Expr::Path(_) | Expr::CurPos(_) => Ok(()),
            Expr::Var { name, pos } => self.touch_name(name, pos),
            Expr::Select { base, path, default, .. } => {
                self.touch(base)?;
                self.touch_path(path)?;
                default.map_or(Ok(()), |default| self.touch(default.expr()))
            }
            Expr::HasAttr { base, path } => {
                self.touch(base)?;
                self.touch_path(path)
            }
            Expr::Attrs(set) => self.touch_set(set, None),
            Expr::List(items) => self.touch_all(items),
            Expr::Lambda(lambda) => self.touch_lambda(ast.lambda(lambda)),
            Expr::Call { fun, args, .. } => {
                self.touch(fun)?;
                self.touch_all(args)
            }
            Expr::Arith { op, lhs, rhs, .. } => {
                self.touch_operator(op)?;
                self.touch(lhs)?;
                self.touch(rhs)
            }
            Expr::Binary { lhs, rhs, .. } => {
                self.touch(lhs)?;
                self.touch(rhs)
            }
            Expr::Not(operand) => self.touch(operand),
            Expr::Let { attrs, body } => self.touch_set(attrs, Some(body)),
            Expr::With { attrs, body, pos } => {
                self.touch(attrs)?;
                self.scopes.open_with(0, pos);
                self.touch(body)?;
                self.scopes.close_with();
                Ok(())
            }
            Expr::If { cond, then, other, .. } => {
                self.touch(cond)?;
                self.touch(then)?;
                self.touch(other)
            }
            Expr::Assert { cond, body, .. } => {
                self.touch(cond)?;
                self.touch(body)
            }
            Expr::Concat { parts, .. } => ast.parts(parts).iter().try_for_each(|part| self.touch(part.expr)),
        }
    }

    /// NIX: arithmetic calls whatever `__sub`, `__lessThan`, … mean in scope.
    fn touch_operator(&mut self, op: Arith) -> Touched {
        let name = Symbol::from(operator(op).0);
        if self.scopes.lookup(name).is_some() { self.touch_name(name, Pos::NONE) } else { Ok(()) }
    }

    /// An attribute set, or the bindings of a `let` with its body.
    fn touch_set(&mut self, id: AttrsId, body: Option<ExprId>) -> Touched {
        let ast = self.ast;
        let set = ast.attrs(id);
        let defs = ast.attr_defs(set.defs);
        for def in defs {
            if def.value == AttrValue::Inherited {
                self.touch_name(def.name, def.pos)?;
            }
        }
        let bound = if set.recursive || body.is_some() { defs } else { &[] };
        bound.iter().for_each(|def| self.scopes.bind(def.name, 0));
        for source in ast.inherit_sources(set.sources) {
            self.touch(source.expr)?;
        }
        for def in defs {
            if let AttrValue::Plain(id) = def.value {
                self.touch(id)?;
            }
        }
        for def in ast.dynamic_defs(set.dynamic) {
            self.touch(def.name)?;
            self.touch(def.value)?;
        }
        body.map_or(Ok(()), |body| self.touch(body))?;
        self.scopes.unbind(bound.len());
        Ok(())
    }

    fn touch_lambda(&mut self, lambda: &Lambda) -> Touched {
        let ast = self.ast;
        let formals = lambda.formals.map_or(&[][..], |formals| ast.formals(formals.list));
        lambda.arg.into_iter().for_each(|name| self.scopes.bind(name, 0));
        formals.iter().for_each(|formal| self.scopes.bind(formal.name, 0));
        for default in formals.iter().filter_map(|formal| formal.default) {
            self.touch(default)?;
        }
        self.touch(lambda.body)?;
        self.scopes.unbind(formals.len() + usize::from(lambda.arg.is_some()));
        Ok(())
    }
}
