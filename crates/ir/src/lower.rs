//! Lowering: from the syntax tree to code. Resolves every variable, computes captures, folds constants, decides what
//! is suspended and what is built at once.

mod closed;
mod functions;
pub(crate) mod lazy;
mod sets;

use crate::arena::{keep, keep_all, keep_bytes, keep_each};
use crate::expr::*;
use crate::scope::Scopes;
use crate::shape::Shape;
use crate::tie::Ties;
use firn_source::{Pos, Symbol};
use firn_syntax::ast::{self, Arith, Ast, AttrName as AstName, BinOp, ExprId};
use lazy::Found;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

static FUNCTIONS_WAIT: AtomicBool = AtomicBool::new(false);

/// From here on functions in delayed position are suspended as anything else is, as in Nix: who shows values that are not all
/// evaluated sees which of them were looked at. Slower, and otherwise the same.
pub fn let_functions_wait() {
    FUNCTIONS_WAIT.store(true, Ordering::Relaxed);
}

/// Makes the machine's constants.
pub trait Literals: Default {
    /// The machine's constant type.
    type Value: Copy + 'static;
    /// An integer.
    fn int(&mut self, n: i64) -> Self::Value;
    /// A float.
    fn float(&mut self, x: f64) -> Self::Value;
    /// A string.
    fn string(&mut self, text: &[u8]) -> Self::Value;
    /// An absolute path.
    fn path(&mut self, path: &[u8]) -> Self::Value;
    /// A list of constants.
    fn list(&mut self, items: &[Self::Value]) -> Self::Value;
    /// A set of constants in shape order.
    fn attrs(&mut self, shape: &'static Shape, values: &[Self::Value]) -> Self::Value;
    /// The same set under another shape of the same names.
    fn reshaped(&mut self, set: Self::Value, shape: impl FnOnce(&'static Shape) -> &'static Shape) -> Self::Value;
    /// Another list of the same constants.
    fn list_again(&mut self, list: Self::Value) -> Self::Value;
    /// A cell that has the value; whoever takes it has seen the leaf of this number.
    fn leaf(&mut self, value: Self::Value, number: u32) -> Self::Value;
    /// For a builtin function its arity and a mask of the arguments it forces first, in order; otherwise zeros.
    fn strict_args(&self, value: Self::Value) -> (usize, u8);
    /// The builtin function that a constant set has under a name, if it has one there.
    fn builtin_in(&self, set: Self::Value, name: Symbol) -> Option<Self::Value>;
}

/// The variables that are there before any program: `builtins`, `true`, `map`, ….
pub trait Globals<V> {
    /// The value of a global variable.
    fn global(&self, name: Symbol) -> Option<V>;
}

/// A program that cannot be lowered.
#[derive(Debug, Clone)]
pub struct LowerError {
    /// The message, as Nix words it.
    pub message: String,
    /// Where.
    pub pos: Pos,
}

/// A lowered file or expression.
#[derive(Debug)]
pub struct Program<V: 'static> {
    /// The code; its first slots hold the given scope, if there was one.
    pub body: Body<V>,
    /// Whether the program is an attribute set literal (flakes must be).
    pub is_attrs: bool,
    /// What of the code, but for positions, depends on where the file lies.
    pub(crate) ties: Ties<V>,
}

/// Lowers a tree. `scope` names variables that the caller puts into the first slots (for `scopedImport` and the REPL).
pub fn lower<L: Literals>(
    ast: &Arc<Ast>,
    scope: &[Symbol],
    globals: &dyn Globals<L::Value>,
    literals: &mut L,
) -> Result<&'static Program<L::Value>, Box<LowerError>> {
    let mut scopes = Scopes::new();
    scopes.enter();
    let first = scopes.slots(scope.len() as u32);
    for (i, &name) in scope.iter().enumerate() {
        scopes.bind(name, first + i as u32);
    }
    let mut lowering = Lowering::new(ast, globals, literals, scopes);
    let expr = lowering.strict(ast.root())?;
    let (locals, captures) = lowering.scopes.leave();
    debug_assert!(captures.is_empty());
    lowering.scopes.finish();
    let is_attrs = matches!(ast.expr(ast.root()), ast::Expr::Attrs(_));
    let ties = lowering.ties;
    let body = Body { expr, locals, captures: &[], pos: ast.pos_of(ast.root()), now: None };
    Ok(keep(Program { body, is_attrs, ties }))
}

struct Lowering<'a, L: Literals> {
    ast: &'a Arc<Ast>,
    globals: &'a dyn Globals<L::Value>,
    literals: &'a mut L,
    scopes: Scopes,
    text: Vec<u8>,
    /// Stack of what is being collected: elements, arguments, values of attributes.
    exprs: Vec<Expr<L::Value>>,
    /// Constants among them, while a constant list or set is made.
    values: Vec<L::Value>,
    ties: Ties<L::Value>,
    found: Found<L::Value>,
    /// Of the set whose shape is made.
    names: Vec<Symbol>,
    positions: Vec<Pos>,
}

type Lowered<V> = Result<Expr<V>, Box<LowerError>>;

impl<'a, L: Literals> Lowering<'a, L> {
    fn new(
        ast: &'a Arc<Ast>,
        globals: &'a dyn Globals<L::Value>,
        literals: &'a mut L,
        scopes: Scopes,
    ) -> Lowering<'a, L> {
        let (text, exprs, values, ties, found, names, positions) = Default::default();
        Lowering { ast, globals, literals, scopes, text, exprs, values, ties, found, names, positions }
    }

    /// Lowers into strict position.
    fn strict(&mut self, id: ExprId) -> Lowered<L::Value> {
        let deep = self.scopes.deeper();
        let lowered = if deep {
            let inner = stacker::maybe_grow(128 << 10, 4 << 20, || self.strict_node(id))?;
            Ok(Expr::Deep(keep(inner)))
        } else {
            self.strict_node(id)
        };
        self.scopes.shallower();
        lowered
    }

    fn strict_node(&mut self, id: ExprId) -> Lowered<L::Value> {
        let ast = self.ast;
        Ok(match ast.expr(id) {
            ast::Expr::Int(n) => Expr::Const(self.literals.int(n), Tie::NONE),
            ast::Expr::Float(x) => Expr::Const(self.literals.float(x), Tie::NONE),
            ast::Expr::String(text) => Expr::Const(self.literals.string(ast.text(text)), Tie::NONE),
            ast::Expr::Path(text) => {
                self.text.clear();
                ast.path_literal(text, &mut self.text);
                let tie = ast.relative_path(text).map_or(Tie::NONE, |literal| self.ties.path(literal));
                Expr::Const(self.literals.path(&self.text), tie)
            }
            ast::Expr::Var { name, pos } => self.variable(name, pos)?,
            ast::Expr::Select { base, path, default, pos } => self.select(base, path, default, pos)?,
            ast::Expr::HasAttr { base, path } => {
                let pos = ast.pos_of(base);
                Expr::HasAttr(keep(HasAttr { base: self.strict(base)?, path: self.path(path)?, pos }))
            }
            ast::Expr::Attrs(set) => self.attrs(set)?,
            ast::Expr::List(range) => self.list(range)?,
            ast::Expr::Lambda(lambda) => self.lambda(lambda)?,
            ast::Expr::Call { fun, args, pos } => {
                let fun = self.strict(fun)?;
                let fun = self.called(fun);
                let from = self.exprs.len();
                for &arg in ast.exprs(args) {
                    let arg = self.argument(arg)?;
                    self.exprs.push(arg);
                }
                Expr::Call(keep(Call { fun, args: self.collected(from), pos }))
            }
            ast::Expr::Arith { op, lhs, rhs, pos } => self.arithmetic(op, lhs, rhs, pos)?,
            ast::Expr::Binary { op, lhs, rhs, pos } => {
                let op = match op {
                    BinOp::Eq => BinaryOp::Eq,
                    BinOp::NEq => BinaryOp::NEq,
                    BinOp::And => BinaryOp::And,
                    BinOp::Or => BinaryOp::Or,
                    BinOp::Impl => BinaryOp::Impl,
                    BinOp::Update => BinaryOp::Update,
                    BinOp::ConcatLists => BinaryOp::ConcatLists,
                };
                self.binary(op, lhs, rhs, pos)?
            }
            ast::Expr::Not(operand) => {
                Expr::Not(keep(Not { operand: self.strict(operand)?, pos: ast.pos_of(operand) }))
            }
            ast::Expr::Let { attrs, body } => self.let_in(attrs, body)?,
            ast::Expr::With { attrs, body, pos } => self.with(attrs, body, pos)?,
            ast::Expr::If { cond, then, other, pos } => {
                let cond = self.strict(cond)?;
                let then = self.strict(then)?;
                let otherwise = self.strict(other)?;
                Expr::If(keep(If { cond, then, otherwise, pos }))
            }
            ast::Expr::Assert { cond, body, pos } => {
                let text = self.source_of(cond);
                let cond = self.strict(cond)?;
                Expr::Assert(keep(Assert { cond, body: self.strict(body)?, text, pos }))
            }
            ast::Expr::Concat { force_string, parts, pos } => self.concat(force_string, parts, pos)?,
            ast::Expr::CurPos(pos) => Expr::CurPos(pos),
        })
    }

    /// What is called: `builtins.name` is known here. Only here, since elsewhere it would be a cell of its own (M7).
    // PERF: a selection less for each such call, and which arguments are forced first is known.
    fn called(&self, fun: Expr<L::Value>) -> Expr<L::Value> {
        if let Expr::SelectName(node) = &fun
            && let Expr::Const(set, _) = node.base
            && let Some(builtin) = self.literals.builtin_in(set, node.name)
        {
            return Expr::Const(builtin, Tie::NONE);
        }
        fun
    }

    /// Lowers into delayed position.
    fn delayed(&mut self, id: ExprId) -> Lowered<L::Value> {
        let ast = self.ast;
        let number = ast.watched(id);
        if number != 0 {
            return self.leaf(id, number);
        }
        match ast.expr(id) {
            ast::Expr::Lambda(_) if FUNCTIONS_WAIT.load(Ordering::Relaxed) => {
                self.suspend(ast.pos_of(id), |this| this.strict_node(id))
            }
            ast::Expr::Int(_) | ast::Expr::Float(_) | ast::Expr::String(_) | ast::Expr::Path(_) | ast::Expr::Lambda(_) => {
                self.strict_node(id)
            }
            ast::Expr::Var { name, .. } if self.scopes.lookup(name).is_some() || self.globals.global(name).is_some() => {
                self.strict_node(id)
            }
            // NIX: only the empty list is no thunk.
            ast::Expr::List(range) if range.is_empty() => self.list(range),
            _ => self.suspend(ast.pos_of(id), |this| this.strict_node(id)),
        }
    }

    /// Lowers a leaf that is watched into delayed position: what is no thunk without that is none with it.
    fn leaf(&mut self, id: ExprId, number: u32) -> Lowered<L::Value> {
        let is_ready = match self.ast.expr(id) {
            ast::Expr::Int(_) | ast::Expr::Float(_) | ast::Expr::String(_) | ast::Expr::Path(_) => true,
            ast::Expr::List(range) => range.is_empty(),
            // One that is a constant.
            ast::Expr::Var { .. } => true,
            _ => false,
        };
        if is_ready && let Expr::Const(value, tie) = self.strict_node(id)? {
            return Ok(Expr::Const(self.literals.leaf(value, number), tie));
        }
        self.suspend(self.ast.pos_of(id), |this| Ok(Expr::Watched(keep(Watched { inner: this.strict_node(id)?, number }))))
    }

    /// Lowers an argument: delayed, and when it is small also for the frame around it.
    // PERF: arguments such as `n - 1` or `x.y` of functions that force them need neither thunk nor captures.
    fn argument(&mut self, id: ExprId) -> Lowered<L::Value> {
        let small = match self.ast.expr(id) {
            ast::Expr::Arith { lhs, rhs, .. } => self.is_atom(lhs) && self.is_atom(rhs),
            ast::Expr::Binary { lhs, rhs, .. } => self.is_atom(lhs) && self.is_atom(rhs),
            ast::Expr::Concat { force_string: false, parts, .. } => {
                self.ast.parts(parts).iter().all(|part| self.is_atom(part.expr))
            }
            ast::Expr::Select { base, default: None, .. } => self.is_atom(base),
            ast::Expr::Not(operand) => self.is_atom(operand),
            ast::Expr::Attrs(set) => self.is_record(set),
            _ => false,
        };
        if !small {
            return self.delayed(id);
        }
        let pos = self.ast.pos_of(id);
        self.scopes.enter();
        let expr = self.strict_node(id);
        let (locals, captures) = self.scopes.leave();
        let now = Some(keep(self.strict_node(id)?));
        let body = Body { expr: expr?, locals, captures, pos, now };
        Ok(Expr::Suspend(keep(Suspend { body })))
    }

    /// A set of atoms under written names, as functions with patterns are often given.
    fn is_record(&self, id: ast::AttrsId) -> bool {
        let set = self.ast.attrs(id);
        !set.recursive
            && set.sources.is_empty()
            && set.dynamic.is_empty()
            && self.ast.attr_defs(set.defs).iter().all(|def| match def.value {
                ast::AttrValue::Plain(id) => self.is_atom(id),
                ast::AttrValue::Inherited => true,
                ast::AttrValue::InheritedFrom(_) => false,
            })
    }

    fn is_atom(&self, id: ExprId) -> bool {
        matches!(self.ast.expr(id), ast::Expr::Int(_) | ast::Expr::Var { .. } | ast::Expr::String(_))
    }

    /// A body of its own for later.
    fn suspend(&mut self, pos: Pos, lower: impl FnOnce(&mut Self) -> Lowered<L::Value>) -> Lowered<L::Value> {
        self.scopes.enter();
        let expr = stacker::maybe_grow(128 << 10, 4 << 20, || lower(self));
        let (locals, captures) = self.scopes.leave();
        let body = closed::closed(expr?, locals, captures, pos);
        Ok(Expr::Suspend(keep(Suspend { body })))
    }

    fn variable(&mut self, name: Symbol, pos: Pos) -> Lowered<L::Value> {
        if let Some(binder) = self.scopes.lookup(name) {
            return Ok(Expr::variable(self.scopes.reach(binder), pos));
        }
        if let Some(value) = self.globals.global(name) {
            return Ok(Expr::Const(value, Tie::NONE));
        }
        let scopes = self.scopes.with_scopes();
        if scopes.is_empty() {
            return Err(undefined(name, pos));
        }
        Ok(Expr::Dynamic(keep(Dynamic { name, pos, scopes })))
    }

    fn list(&mut self, range: ast::Range) -> Lowered<L::Value> {
        let ast = self.ast;
        let from = self.exprs.len();
        for &item in ast.exprs(range) {
            let item = self.delayed(item)?;
            self.exprs.push(item);
        }
        if let Some(ties) = self.constants(from) {
            let tie = self.ties.list(&self.values, &ties);
            return Ok(Expr::Const(self.literals.list(&self.values), tie));
        }
        Ok(Expr::List(keep(self.collected(from))))
    }

    /// What was collected above `from`, for good.
    fn collected(&mut self, from: usize) -> &'static [Expr<L::Value>] {
        keep_each(self.exprs.drain(from..))
    }

    /// If all that was collected above `from` is constant, it is left in `values` only; what ties it to the file, if anything does.
    fn constants(&mut self, from: usize) -> Option<Vec<Tie>> {
        let constant = |e: &Expr<L::Value>| if let Expr::Const(value, tie) = e { Some((*value, *tie)) } else { None };
        let all = &self.exprs[from..];
        if all.iter().any(|e| constant(e).is_none()) {
            return None;
        }
        let constants = || all.iter().filter_map(constant);
        self.values.clear();
        self.values.extend(constants().map(|(value, _)| value));
        let is_tied = constants().any(|(_, tie)| tie != Tie::NONE);
        let ties = if is_tied { constants().map(|(_, tie)| tie).collect() } else { Vec::new() };
        self.exprs.truncate(from);
        Some(ties)
    }

    fn select(
        &mut self,
        base: ExprId,
        path: ast::Range,
        default: Option<ast::DefaultId>,
        pos: Pos,
    ) -> Lowered<L::Value> {
        let is_root = self.ast.root_watched() == Some(base);
        let mut base = self.strict(base)?;
        if is_root {
            base = Expr::Watched(keep(Watched { inner: base, number: Watched::<L::Value>::ROOT }));
        }
        if let (&[AstName::Static(name)], None) = (self.ast.path(path), default) {
            return Ok(Expr::SelectName(keep(SelectName { base, name, pos, cache: InlineCache::default() })));
        }
        let path = self.path(path)?;
        let default = default.map(|d| self.strict(d.expr())).transpose()?;
        Ok(Expr::Select(keep(Select { base, path, default, pos })))
    }

    fn path(&mut self, path: ast::Range) -> Result<&'static [AttrName<L::Value>], Box<LowerError>> {
        let ast = self.ast;
        let mut names = Vec::with_capacity(path.len());
        for &name in ast.path(path) {
            names.push(match name {
                AstName::Static(name) => AttrName::Static(name, InlineCache::default()),
                AstName::Dynamic(id) => {
                    let text = self.source_of(id);
                    AttrName::Dynamic(self.strict(id)?, text, ast.pos_of(id))
                }
            });
        }
        Ok(keep_all(names))
    }

    fn source_of(&mut self, id: ExprId) -> &'static [u8] {
        self.text.clear();
        let mut paths = Vec::new();
        firn_syntax::print_expr(self.ast, id, &mut self.text, |range, literal| paths.push((range, keep_bytes(literal))));
        let text = keep_bytes(&self.text);
        self.ties.text(text, paths);
        text
    }

    fn binary(&mut self, op: BinaryOp, lhs: ExprId, rhs: ExprId, pos: Pos) -> Lowered<L::Value> {
        let operands = [self.ast.pos_of(lhs), self.ast.pos_of(rhs)];
        let left = self.strict(lhs)?;
        let right = self.strict(rhs)?;
        Ok(Expr::Binary(op, keep(Binary { left, right, pos, operands })))
    }

    /// NIX: arithmetic calls whatever `__sub`, `__lessThan`, … mean in scope.
    fn arithmetic(&mut self, op: Arith, lhs: ExprId, rhs: ExprId, pos: Pos) -> Lowered<L::Value> {
        let (name, binary) = operator(op);
        let name = Symbol::from(name);
        if self.scopes.lookup(name).is_none() {
            return self.binary(binary, lhs, rhs, pos);
        }
        let fun = self.variable(name, Pos::NONE)?;
        let swapped = matches!(op, Arith::Greater | Arith::LessEq);
        let (first, second) = if swapped { (rhs, lhs) } else { (lhs, rhs) };
        let args = vec![self.delayed(first)?, self.delayed(second)?];
        let call = Expr::Call(keep(Call { fun, args: keep_all(args), pos }));
        Ok(match op {
            Arith::LessEq | Arith::GreaterEq => Expr::Not(keep(Not { operand: call, pos })),
            _ => call,
        })
    }

    fn with(&mut self, scope: ExprId, body: ExprId, pos: Pos) -> Lowered<L::Value> {
        let scope = self.delayed(scope)?;
        let mark = self.scopes.mark();
        let slot = self.scopes.slots(1);
        self.scopes.open_with(slot, pos);
        let body = self.strict(body)?;
        self.scopes.close_with();
        self.scopes.free_from(mark);
        Ok(Expr::With(keep(With { slot, scope, body })))
    }

    /// `a + b`; what is written `a + b + c` is one sum.
    // PERF: strings are built once and numbers added without a frame per operator.
    fn sum(&mut self, left: ast::Part, right: ast::Part, pos: Pos) -> Lowered<L::Value> {
        let mut addends = vec![(right, pos, [left.pos, right.pos])];
        let mut first = left;
        while let ast::Expr::Concat { force_string: false, parts, pos } = self.ast.expr(first.expr)
            && let &[left, right] = self.ast.parts(parts)
        {
            addends.push((right, pos, [left.pos, right.pos]));
            first = left;
        }
        let first = self.strict(first.expr)?;
        let mut rest = Vec::with_capacity(addends.len());
        for (part, pos, operands) in addends.into_iter().rev() {
            rest.push(Addend { right: self.strict(part.expr)?, pos, operands });
        }
        if rest.len() == 1 {
            let Addend { right, pos, operands } = rest.remove(0);
            return Ok(Expr::Binary(BinaryOp::Add, keep(Binary { left: first, right, pos, operands })));
        }
        Ok(Expr::Sum(keep(Sum { first, rest: keep_all(rest) })))
    }

    fn concat(&mut self, force_string: bool, parts: ast::Range, pos: Pos) -> Lowered<L::Value> {
        let ast = self.ast;
        let parts = ast.parts(parts);
        if let (false, &[left, right]) = (force_string, parts) {
            return self.sum(left, right, pos);
        }
        let parts = parts.iter().map(|p| Ok((self.strict(p.expr)?, p.pos))).collect::<Result<Vec<_>, Box<LowerError>>>()?;
        Ok(Expr::Concat(keep(Concat { force_string, parts: keep_all(parts), pos })))
    }
}

/// The builtin that an operator calls, and the operator itself.
fn operator(op: Arith) -> (&'static str, BinaryOp) {
    match op {
        Arith::Sub => ("__sub", BinaryOp::Sub),
        Arith::Mul => ("__mul", BinaryOp::Mul),
        Arith::Div => ("__div", BinaryOp::Div),
        Arith::Less => ("__lessThan", BinaryOp::Less),
        Arith::Greater => ("__lessThan", BinaryOp::Greater),
        Arith::LessEq => ("__lessThan", BinaryOp::LessEq),
        Arith::GreaterEq => ("__lessThan", BinaryOp::GreaterEq),
    }
}

/// The error for a variable that nothing binds.
pub(crate) fn undefined(name: Symbol, pos: Pos) -> Box<LowerError> {
    Box::new(LowerError { message: format!("undefined variable '\x1b[35;1m{name}\x1b[0m'"), pos })
}
