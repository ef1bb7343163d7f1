//! Lowering of functions.

use super::{Lowered, Lowering};
use crate::{Marks, Plans};
use crate::arena::{keep, keep_all};
use crate::expr::*;
use crate::lower::{Literals, LowerError};
use crate::strictness;
use firn_syntax::ast::{self, LambdaId};

impl<L: Literals> Lowering<'_, L> {
    /// A function; directly nested plain functions become one function of several arguments.
    pub(super) fn lambda(&mut self, id: LambdaId) -> Lowered<L::Value> {
        let ast = self.ast;
        let outer = *ast.lambda(id);
        let mut params = Vec::new();
        let mut last = outer;
        loop {
            let (None, Some(arg)) = (last.formals, last.arg) else { break };
            params.push(Param { name: arg, pos: last.pos });
            match ast.expr(last.body) {
                ast::Expr::Lambda(inner) if params.len() < 200 => last = *ast.lambda(inner),
                _ => break,
            }
        }
        self.scopes.enter();
        let lowered = stacker::maybe_grow(128 << 10, 4 << 20, || self.function_body(&params, &last));
        let (locals, captures) = self.scopes.leave();
        let (pattern, expr) = lowered?;
        let arity = params.len();
        let strict = match &pattern {
            Some(_) if arity < 64 => vec![arity as u8],
            Some(_) => Vec::new(),
            None => strictness::forced_first(&expr, arity, self.literals),
        };
        let unseen = if pattern.is_none() && locals as usize <= FEW_SLOTS { strictness::unseen(&expr, arity) } else { 0 };
        let strict = Strict::new(&strict, unseen);
        let body = Body { expr, locals, captures, pos: ast.pos_of(last.body), now: None };
        let params = keep_all(params);
        let arity = params.len() as u32 + u32::from(pattern.is_some());
        let few = if pattern.is_none() && body.locals as usize <= FEW_SLOTS { arity as u8 } else { 0 };
        let marks = Marks::default();
        Ok(Expr::Lambda(keep(Lambda { params, pattern, body, name: outer.name, strict, arity, few, marks })))
    }

    #[allow(clippy::type_complexity)]
    fn function_body(
        &mut self,
        params: &[Param],
        last: &ast::Lambda,
    ) -> Result<(Option<&'static Pattern<L::Value>>, Expr<L::Value>), Box<LowerError>> {
        let ast = self.ast;
        let first = self.scopes.slots(params.len() as u32);
        for (i, param) in params.iter().enumerate() {
            self.scopes.bind(param.name, first + i as u32);
        }
        let Some(formals) = last.formals else {
            let expr = self.strict(last.body)?;
            self.scopes.unbind(params.len());
            return Ok((None, expr));
        };
        let whole = self.scopes.slots(1);
        if let Some(at) = last.arg {
            self.scopes.bind(at, whole);
        }
        let listed = ast.formals(formals.list);
        let slot = self.scopes.slots(listed.len() as u32);
        for (i, formal) in listed.iter().enumerate() {
            self.scopes.bind(formal.name, slot + i as u32);
        }
        let mut lowered = Vec::with_capacity(listed.len());
        for (i, formal) in listed.iter().enumerate() {
            let pending = slot + i as u32..slot + listed.len() as u32;
            let default = formal.default.map(|d| self.binding(d, &pending)).transpose()?;
            lowered.push(Formal { name: formal.name, pos: formal.pos, default });
        }
        let expr = self.strict(last.body)?;
        self.scopes.unbind(params.len() + usize::from(last.arg.is_some()) + listed.len());
        let pattern = Pattern {
            formals: keep_all(lowered),
            first: slot,
            ellipsis: formals.ellipsis,
            at: last.arg,
            pos: last.pos,
            plans: Plans::default(),
        };
        Ok((Some(keep(pattern)), expr))
    }
}
