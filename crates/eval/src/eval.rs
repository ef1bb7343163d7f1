//! `eval` and `delay`: the dispatch over code.

use crate::frame::{Frame, MOST_SLOTS, heap_slots, stack_slots};
use crate::{Machine, Stats};
use firn_ir::{Assert, Binary, BinaryOp, Binding, Dynamic, Lazy, Suspend, With};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Body, Closure, Error, ErrorKind, Expr, Lambda, ListBuilder, Result, Slot, Thunk, Value};

impl Machine {
    /// Evaluates code in strict position to weak head normal form.
    // PERF: atoms inline at every operand, and `eval_node` is nothing but tail calls, so that no frame is built for
    // the dispatch itself (fib 30: 0.19 s → see bench/).
    #[inline(always)]
    pub(crate) fn eval(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        match expr {
            Expr::Const(value) => self.force(*value, Pos::NONE),
            Expr::Local(slot, pos) => self.force(frame.local(*slot), *pos),
            Expr::Capture(index, pos) => self.force(frame.capture(*index), *pos),
            _ => self.eval_node(expr, frame),
        }
    }

    /// The value of an atom if it is evaluated, for fast paths: nothing is called, and what a label stands before is not seen.
    #[inline(always)]
    pub(crate) fn glance(&self, expr: &'static Expr, frame: Frame<'_>) -> Option<Value> {
        let cell = match expr {
            Expr::Const(value) => *value,
            Expr::Local(slot, _) => frame.local(*slot),
            Expr::Capture(index, _) => frame.capture(*index),
            _ => return None,
        };
        match cell.as_thunk() {
            None => Some(cell),
            Some(thunk) => thunk.forced(),
        }
    }

    /// Two operands that are small integers at hand.
    #[inline(always)]
    pub(crate) fn peek_ints(&self, node: &'static Binary<Value>, frame: Frame<'_>) -> (Option<i64>, Option<i64>) {
        let int = |expr| self.glance(expr, frame).and_then(Value::as_small_int);
        (int(&node.left), int(&node.right))
    }

    /// A comparison whose operands are at hand and simple.
    #[inline(always)]
    pub(crate) fn quick_comparison(&self, op: BinaryOp, node: &'static Binary<Value>, frame: Frame<'_>) -> Option<bool> {
        let (a, b) = (self.glance(&node.left, frame)?, self.glance(&node.right, frame)?);
        if let (Some(a), Some(b)) = (a.as_small_int(), b.as_small_int()) {
            return Some(match op {
                BinaryOp::Eq => a == b,
                BinaryOp::NEq => a != b,
                BinaryOp::Less => a < b,
                BinaryOp::Greater => a > b,
                BinaryOp::LessEq => a <= b,
                BinaryOp::GreaterEq => a >= b,
                _ => return None,
            });
        }
        // Null and Booleans are equal to nothing but themselves.
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::NEq) && (a.is_immediate() || b.is_immediate());
        equality.then_some((a == b) == (op == BinaryOp::Eq))
    }

    #[inline(always)]
    fn eval_node(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        match expr {
            Expr::Const(_) | Expr::Local(..) | Expr::Capture(..) => self.eval_atom(expr, frame),
            Expr::Dynamic(dynamic) => self.dynamic(dynamic, frame),
            Expr::SelectName(node) => self.select_name(node, frame),
            Expr::Select(node) => self.select(node, frame),
            Expr::HasAttr(node) => self.has_attr(node, frame),
            Expr::Attrs(node) => self.attrs(node, frame),
            Expr::List(items) => self.eval_list(items, frame),
            Expr::Lambda(lambda) => self.eval_lambda(lambda, frame),
            Expr::Call(node) => self.eval_call(node, frame),
            Expr::Let(node) => self.let_in(node, frame),
            Expr::With(node) => self.with(node, frame),
            Expr::If(node) => self.if_then(node, frame),
            Expr::Assert(node) => self.assert(node, frame),
            Expr::Not(node) => self.not(node, frame),
            Expr::Binary(op, node) => match op {
                BinaryOp::Eq | BinaryOp::NEq => self.compare_equal(*op, node, frame),
                BinaryOp::And | BinaryOp::Or | BinaryOp::Impl => self.logic(*op, node, frame),
                BinaryOp::Update => self.update(node, frame),
                BinaryOp::ConcatLists => self.concat_two_lists(node, frame),
                BinaryOp::Add => self.add(node, frame),
                BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => self.arithmetic_expr(*op, node, frame),
                _ => self.less_expr(*op, node, frame),
            },
            Expr::Concat(node) => self.concat(node, frame),
            Expr::Sum(node) => self.sum(node, frame),
            Expr::CurPos(pos) => self.eval_position(*pos),
            Expr::Lazy(node) => self.eval_lazy(node, frame),
            Expr::Suspend(node) => self.run_now(node, frame),
            Expr::Deep(inner) => self.eval_deep(inner, frame),
        }
    }

    /// Code that is lowered when it first runs.
    #[cold]
    #[inline(never)]
    fn eval_lazy(&self, node: &'static Lazy<Value>, frame: Frame<'_>) -> Result<Value> {
        let body = if node.is_lowered() { node.body() } else { Stats::time(&self.stats.lower_time, || node.body()) };
        self.run(body, frame.captures(body))
    }

    #[inline(never)]
    fn eval_atom(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        self.eval(expr, frame)
    }

    #[inline(never)]
    fn eval_list(&self, items: &'static [Expr], frame: Frame<'_>) -> Result<Value> {
        Ok(self.list(items, frame))
    }

    #[inline(never)]
    fn eval_lambda(&self, lambda: &'static Lambda, frame: Frame<'_>) -> Result<Value> {
        Ok(Closure::capture(lambda, false, frame))
    }

    #[inline(never)]
    fn eval_position(&self, pos: Pos) -> Result<Value> {
        Ok(self.position(pos))
    }

    #[inline(never)]
    fn eval_deep(&self, inner: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        self.with_stack(|| self.eval(inner, frame))
    }

    #[inline(never)]
    fn let_in(&self, node: &'static firn_ir::Let<Value>, frame: Frame<'_>) -> Result<Value> {
        if !node.bindings.is_empty() {
            self.bind(node.bindings, frame);
        }
        if let Some(Binding { slot, value }) = &node.early {
            frame.set(*slot, self.evaluate_early(value, frame, &mut false)?);
        }
        self.eval(&node.body, frame)
    }

    #[inline(never)]
    fn if_then(&self, node: &'static firn_ir::If<Value>, frame: Frame<'_>) -> Result<Value> {
        // PERF: a condition on what is at hand needs no value of its own, and what goes on elsewhere no frame here.
        if let Expr::Binary(op, operands) = &node.cond
            && let Some(holds) = self.quick_comparison(*op, operands, frame)
        {
            return self.eval_onward(if holds { &node.then } else { &node.otherwise }, frame);
        }
        self.if_evaluated(node, frame)
    }

    /// As [`Machine::eval`], for who has nothing left to do: a jump.
    #[inline(never)]
    pub(crate) fn eval_onward(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        self.eval(expr, frame)
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

    #[inline(never)]
    fn not(&self, node: &'static firn_ir::Not<Value>, frame: Frame<'_>) -> Result<Value> {
        let operand = self.eval(&node.operand, frame);
        Ok(Value::bool(!self.as_bool(operand, node.pos, "in the argument of the not operator")?))
    }

    /// Makes a cell of code in delayed position; evaluates nothing.
    #[inline(always)]
    pub(crate) fn delay(&self, expr: &'static Expr, frame: Frame<'_>) -> Value {
        match expr {
            Expr::Const(value) => *value,
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
    #[inline]
    pub(crate) fn run_now(&self, node: &'static Suspend<Value>, frame: Frame<'_>) -> Result<Value> {
        match node.body.now {
            Some(expr) => self.eval_node(expr, frame),
            None => self.run_captured(&node.body, frame),
        }
    }

    #[inline(never)]
    fn run_captured(&self, body: &'static Body, frame: Frame<'_>) -> Result<Value> {
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
        for binding in bindings {
            self.make_cell(&binding.value, binding.slot, frame);
        }
        for binding in bindings {
            self.fill_cell(&binding.value, binding.slot, frame);
        }
    }

    /// First step of binding.
    #[inline]
    pub(crate) fn make_cell(&self, expr: &'static Expr, slot: u32, frame: Frame<'_>) {
        let cell = match expr {
            Expr::Const(value) => *value,
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

    #[inline(never)]
    fn with(&self, node: &'static With<Value>, frame: Frame<'_>) -> Result<Value> {
        frame.set(node.slot, self.delay(&node.scope, frame));
        self.eval(&node.body, frame)
    }

    /// Looks a name up in the `with` scopes, innermost first.
    #[inline(never)]
    fn dynamic(&self, node: &'static Dynamic, frame: Frame<'_>) -> Result<Value> {
        for scope in node.scopes {
            let set = self.force_attrs(frame.get(scope.var), scope.pos, "while evaluating the first subexpression of a with expression")?;
            if let Some(cell) = self.lookup(set, node.name, &scope.cache) {
                return self.force(cell, node.pos);
            }
        }
        Err(Error::new(ErrorKind::UndefinedVar, format!("undefined variable '{}'", crate::colored(node.name))).at(node.pos))
    }

    #[inline(never)]
    fn assert(&self, node: &'static Assert<Value>, frame: Frame<'_>) -> Result<Value> {
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
