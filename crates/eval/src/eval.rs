//! `eval` and `delay`: code in strict and in delayed position.

use crate::frame::{FEW_SLOTS, Frame, MOST_SLOTS, heap_slots, stack_slots};
use crate::times::Doing;
use crate::{Machine, Stats};
use firn_ir::{Assert, Binary, BinaryOp, Binding, Dynamic, Lazy, Suspend, With};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Body, Closure, Error, ErrorKind, Expr, Lambda, ListBuilder, Result, Slot, Thunk, Value};

impl Machine {
    /// Evaluates code in strict position to weak head normal form.
    // PERF: atoms inline at every operand; everything else goes by the table in `dispatch.rs`.
    #[inline(always)]
    pub(crate) fn eval(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        let Some(cell) = self.cell(expr, frame) else { return self.eval_node(expr, frame) };
        let Some(thunk) = cell.as_thunk() else { return Ok(cell) };
        match thunk.forced() {
            Some(value) => Ok(value),
            None => self.force_atom(thunk, expr),
        }
    }

    /// Forces the cell of an atom.
    #[inline(never)]
    fn force_atom(&self, thunk: &'static Thunk, expr: &'static Expr) -> Result<Value> {
        let pos = if let Expr::Local(_, pos) | Expr::Capture(_, pos) = expr { *pos } else { Pos::NONE };
        self.force_thunk(thunk, pos)
    }

    /// The cell of an atom, for fast paths.
    #[inline(always)]
    pub(crate) fn cell(&self, expr: &'static Expr, frame: Frame<'_>) -> Option<Value> {
        match expr {
            Expr::Const(value, _) => Some(*value),
            Expr::Local(slot, _) => Some(frame.local(*slot)),
            Expr::Capture(index, _) => Some(frame.capture(*index)),
            _ => None,
        }
    }

    /// The value of an atom if it is evaluated, for fast paths: nothing is called, and what a label stands before is not seen.
    #[inline(always)]
    pub(crate) fn glance(&self, expr: &'static Expr, frame: Frame<'_>) -> Option<Value> {
        at_hand(self.cell(expr, frame)?)
    }

    /// A comparison whose operands are at hand and simple.
    #[inline(always)]
    pub(crate) fn quick_comparison(&self, op: BinaryOp, node: &'static Binary<Value>, frame: Frame<'_>) -> Option<bool> {
        let a = self.cell(&node.left, frame)?;
        let b = self.cell(&node.right, frame)?;
        // PERF: most operands are numbers and no thunks.
        if let Some((a, b)) = Value::small_ints(a, b) {
            return compare_ints(op, a, b);
        }
        let (a, b) = (at_hand(a)?, at_hand(b)?);
        if let Some((a, b)) = Value::small_ints(a, b) {
            return compare_ints(op, a, b);
        }
        if !matches!(op, BinaryOp::Eq | BinaryOp::NEq) {
            return None;
        }
        // Null and Booleans are equal to nothing but themselves.
        if a.is_immediate() || b.is_immediate() {
            return Some((a == b) == (op == BinaryOp::Eq));
        }
        // A list is compared with the empty one without looking into it. NIX: not where calls are too deep.
        let (a, b) = (a.as_list()?.len(), b.as_list()?.len());
        let simple = (a == 0 || b == 0) && self.depth.get() < self.depth_limit.get();
        simple.then_some((a == b) == (op == BinaryOp::Eq))
    }

    /// Code that is lowered when it first runs.
    #[cold]
    #[inline(never)]
    pub(crate) fn eval_lazy(&self, node: &'static Lazy<Value>, frame: Frame<'_>) -> Result<Value> {
        let body = self.lowered_now(node);
        match body.expr {
            Expr::Const(value, _) if value.is_whnf() => Ok(value),
            _ => self.run(body, frame.captures(body)),
        }
    }

    fn lowered_now(&self, node: &'static Lazy<Value>) -> &'static Body {
        if node.is_lowered() { node.body() } else { Stats::time(&self.stats.lower_time, Doing::Lower, || node.body()) }
    }

    /// The value of code that is a constant, which belongs to no instance.
    #[inline]
    pub(crate) fn constant(&self, body: &'static Body) -> Option<Value> {
        let body = if let Expr::Lazy(node) = body.expr { self.lowered_now(node) } else { body };
        match body.expr {
            Expr::Const(value, _) if value.is_whnf() => Some(value),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn eval_list(&self, items: &'static &'static [Expr], frame: Frame<'_>) -> Result<Value> {
        Ok(self.list(items, frame))
    }

    #[inline]
    pub(crate) fn eval_lambda(&self, lambda: &'static Lambda, frame: Frame<'_>) -> Result<Value> {
        Ok(Closure::capture(lambda, false, frame))
    }

    #[inline]
    pub(crate) fn eval_position(&self, pos: &Pos, _: Frame<'_>) -> Result<Value> {
        Ok(self.position(*pos))
    }

    #[inline(never)]
    pub(crate) fn eval_deep(&self, inner: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        self.with_stack(|| self.eval(inner, frame))
    }

    #[inline]
    pub(crate) fn let_in(&self, node: &'static firn_ir::Let<Value>, frame: Frame<'_>) -> Result<Value> {
        if !node.bindings.is_empty() {
            self.bind(node.bindings, frame);
        }
        if let Some(Binding { slot, value, .. }) = &node.early {
            frame.set(*slot, self.evaluate_early(value, frame)?);
        }
        self.eval(&node.body, frame)
    }

    #[inline]
    pub(crate) fn if_then(&self, node: &'static firn_ir::If<Value>, frame: Frame<'_>) -> Result<Value> {
        // PERF: a condition on what is at hand needs no value of its own, and what goes on elsewhere no frame here.
        if let Expr::Binary(op, operands) = &node.cond
            && let Some(holds) = self.quick_comparison(*op, operands, frame)
        {
            return self.eval_node(if holds { &node.then } else { &node.otherwise }, frame);
        }
        self.if_evaluated(node, frame)
    }

    #[inline(never)]
    fn if_evaluated(&self, node: &'static firn_ir::If<Value>, frame: Frame<'_>) -> Result<Value> {
        let branch = match self.eval(&node.cond, frame) {
            Ok(Value::TRUE) => &node.then,
            Ok(Value::FALSE) => &node.otherwise,
            other => return self.if_no_bool(other, node.pos),
        };
        self.eval(branch, frame)
    }

    #[cold]
    fn if_no_bool(&self, cond: Result<Value>, pos: Pos) -> Result<Value> {
        self.as_bool(cond, pos, "while evaluating a branch condition").map(Value::bool)
    }

    #[inline]
    pub(crate) fn not(&self, node: &'static firn_ir::Not<Value>, frame: Frame<'_>) -> Result<Value> {
        let operand = self.eval(&node.operand, frame);
        Ok(Value::bool(!self.as_bool(operand, node.pos, "in the argument of the not operator")?))
    }

    /// Makes a cell of code in delayed position; evaluates nothing.
    #[inline(always)]
    pub(crate) fn delay(&self, expr: &'static Expr, frame: Frame<'_>) -> Value {
        match expr {
            Expr::Const(value, _) => *value,
            Expr::Local(slot, _) => frame.local(*slot),
            Expr::Capture(index, _) => frame.capture(*index),
            Expr::Suspend(node) => self.suspend(&node.body, frame),
            Expr::Lambda(lambda) => self.delay_lambda(lambda, frame),
            _ => unreachable!("lowering delays only atoms, functions and suspensions"),
        }
    }

    #[inline(never)]
    fn suspend(&self, body: &'static Body, frame: Frame<'_>) -> Value {
        Stats::bump(&self.stats.thunks);
        Thunk::capture(body, frame)
    }

    /// A cell of suspended code that nobody sees: lists and sets of delayed values are made at once.
    #[inline(never)]
    pub(crate) fn make(&self, node: &'static Suspend<Value>, frame: Frame<'_>) -> Value {
        let body = &node.body;
        if body.captures.len() > FEW_SLOTS {
            return self.suspend(body, frame);
        }
        let room = [const { Slot::new() }; FEW_SLOTS];
        let captures = &room[..body.captures.len()];
        match body.expr {
            Expr::Attrs(set) if set.plain => {
                self.capture(body, captures, frame);
                self.plain_attrs(set, Frame::new(body, &[], captures))
            }
            Expr::List(items) => {
                self.capture(body, captures, frame);
                self.list(items, Frame::new(body, &[], captures))
            }
            _ => self.suspend(body, frame),
        }
    }

    #[inline]
    fn capture(&self, body: &'static Body, slots: &[Slot], frame: Frame<'_>) {
        for (slot, &var) in slots.iter().zip(body.captures) {
            slot.set(frame.get(var));
        }
    }

    #[inline(never)]
    fn delay_lambda(&self, lambda: &'static Lambda, frame: Frame<'_>) -> Value {
        Closure::capture(lambda, true, frame)
    }

    fn list(&self, items: &'static [Expr], frame: Frame<'_>) -> Value {
        let mut list = ListBuilder::new(items.len());
        for item in items {
            list.push(self.delay(item, frame));
        }
        list.finish()
    }

    /// Evaluates suspended code at once: in this frame if it was lowered for it too, otherwise with its captures on the
    /// native stack. No thunk is made.
    #[inline(always)]
    pub(crate) fn run_now(&self, node: &'static Suspend<Value>, frame: Frame<'_>) -> Result<Value> {
        match node.body.now {
            Some(expr) => self.eval_node(expr, frame),
            None => self.run_captured(&node.body, frame),
        }
    }

    #[inline(never)]
    fn run_captured(&self, body: &'static Body, frame: Frame<'_>) -> Result<Value> {
        if body.captures.len() > FEW_SLOTS {
            return self.run_captured_many(body, frame);
        }
        stack_slots!(captures, FEW_SLOTS, body.captures.len());
        self.capture(body, captures, frame);
        self.run(body, captures)
    }

    #[inline(never)]
    fn run_captured_many(&self, body: &'static Body, frame: Frame<'_>) -> Result<Value> {
        if body.captures.len() > MOST_SLOTS {
            let captures = heap_slots(body.captures.len());
            self.capture(body, &captures, frame);
            return self.run(body, &captures);
        }
        stack_slots!(captures, MOST_SLOTS, body.captures.len());
        self.capture(body, captures, frame);
        self.run(body, captures)
    }

    /// Binds mutually visible cells: makes each, then fills in what each captures.
    #[inline(never)]
    pub(crate) fn bind(&self, bindings: &'static [Binding<Value>], frame: Frame<'_>) {
        let mut together = false;
        for binding in bindings {
            if binding.alone {
                frame.set(binding.slot, self.delay(&binding.value, frame));
            } else {
                self.make_cell(&binding.value, binding.slot, frame);
                together = true;
            }
        }
        if together {
            for binding in bindings.iter().filter(|binding| !binding.alone) {
                self.fill_cell(&binding.value, binding.slot, frame);
            }
        }
    }

    /// First step of binding.
    #[inline]
    pub(crate) fn make_cell(&self, expr: &'static Expr, slot: u32, frame: Frame<'_>) {
        let cell = match expr {
            Expr::Const(value, _) => *value,
            Expr::Local(from, _) => frame.local(*from),
            Expr::Capture(index, _) => frame.capture(*index),
            Expr::Lambda(lambda) => Closure::new(lambda, true).value(),
            Expr::Suspend(node) => {
                Stats::bump(&self.stats.thunks);
                Thunk::suspend(&node.body).value()
            }
            _ => unreachable!("lowering binds only atoms, functions and suspensions"),
        };
        frame.set(slot, cell);
    }

    /// Second step of binding.
    #[inline]
    pub(crate) fn fill_cell(&self, expr: &'static Expr, slot: u32, frame: Frame<'_>) {
        let cell = frame.local(slot);
        match expr {
            Expr::Lambda(lambda) => {
                if let Some(firn_value::Function::Closure(closure)) = cell.as_function() {
                    self.capture(&lambda.body, closure.captures(), frame);
                }
            }
            Expr::Suspend(node) => {
                if let Some(thunk) = cell.as_thunk() {
                    self.capture(&node.body, thunk.slots_of(&node.body), frame);
                }
            }
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn with(&self, node: &'static With<Value>, frame: Frame<'_>) -> Result<Value> {
        frame.set(node.slot, self.delay(&node.scope, frame));
        self.eval(&node.body, frame)
    }

    /// Looks a name up in the `with` scopes, innermost first.
    #[inline]
    pub(crate) fn dynamic(&self, node: &'static Dynamic, frame: Frame<'_>) -> Result<Value> {
        for scope in node.scopes {
            let set = self.force_attrs(frame.get(scope.var), scope.pos, "while evaluating the first subexpression of a with expression")?;
            if let Some(cell) = self.lookup(set, node.name, &scope.cache) {
                return self.force(cell, node.pos);
            }
        }
        Err(Error::new(ErrorKind::UndefinedVar, format!("undefined variable '{}'", crate::colored(node.name))).at(node.pos))
    }

    #[inline]
    pub(crate) fn assert(&self, node: &'static Assert<Value>, frame: Frame<'_>) -> Result<Value> {
        let cond = self.eval(&node.cond, frame);
        if self.as_bool(cond, node.pos, "in the condition of the assert statement")? {
            return self.eval(&node.body, frame);
        }
        if let Expr::Binary(firn_ir::BinaryOp::Eq, operands) = &node.cond {
            let left = self.eval(&operands.left, frame)?;
            let right = self.eval(&operands.right, frame)?;
            if let Err(error) = self.assert_equal(left, right, operands.pos) {
                let error = if error.kind() == ErrorKind::Assertion {
                    let text = [b"while evaluating the condition of the assertion '", crate::color_bytes(node.text).as_slice(), b"'"].concat();
                    error.trace(node.pos, text)
                } else {
                    error
                };
                return Err(error);
            }
        }
        let text = [b"assertion '", crate::color_bytes(node.text).as_slice(), b"' failed"].concat();
        Err(Error::new(ErrorKind::Assertion, text).at(node.pos))
    }

    /// `{ file; line; column; }` of a position, or null.
    pub fn position(&self, pos: Pos) -> Value {
        let Some((file, _)) = pos.file_offset() else { return Value::NULL };
        let firn_source::Origin::File(path) = file.origin() else { return Value::NULL };
        let names = self.names();
        let [line, column, lazy_file] = self.shared.position_parts;
        let number = Value::int(i64::from(pos.number()));
        let mut set = AttrsBuilder::with_capacity(3);
        let file = if self.host().notes_places() {
            Thunk::apply(lazy_file, &[number])
        } else {
            Value::string(path, firn_value::Context::EMPTY)
        };
        set.push(names.file, Pos::NONE, file);
        set.push(names.line, Pos::NONE, Thunk::apply(line, &[number]));
        set.push(names.column, Pos::NONE, Thunk::apply(column, &[number]));
        set.finish()
    }
}

/// The comparison of two integers; none for other operators.
#[inline(always)]
fn compare_ints(op: BinaryOp, a: i64, b: i64) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => a == b,
        BinaryOp::NEq => a != b,
        BinaryOp::Less => a < b,
        BinaryOp::Greater => a > b,
        BinaryOp::LessEq => a <= b,
        BinaryOp::GreaterEq => a >= b,
        _ => return None,
    })
}

/// The value of a cell that is evaluated.
#[inline(always)]
pub(crate) fn at_hand(cell: Value) -> Option<Value> {
    match cell.as_thunk() {
        None => Some(cell),
        Some(thunk) => thunk.forced(),
    }
}
