//! `eval` and `delay`: the dispatch over code.

use crate::frame::{Frame, with_slots};
use crate::force::{RED_ZONE, SEGMENT};
use crate::{Machine, Stats};
use firn_ir::{Assert, Binding, Dynamic, With};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Body, Closure, Error, ErrorKind, Expr, Lambda, ListBuilder, Result, Slot, Thunk, Value};

impl Machine {
    /// Evaluates code in strict position to weak head normal form.
    pub(crate) fn eval(&self, expr: &'static Expr, frame: &Frame<'_>) -> Result<Value> {
        match expr {
            Expr::Const(value) => self.force(*value, Pos::NONE),
            Expr::Local(slot, pos) => self.force(frame.locals[*slot as usize].get(), *pos),
            Expr::Capture(index, pos) => self.force(frame.captures[*index as usize].get(), *pos),
            Expr::Dynamic(dynamic) => self.dynamic(dynamic, frame),
            Expr::SelectName(node) => self.select_name(node, frame),
            Expr::Select(node) => self.select(node, frame),
            Expr::HasAttr(node) => self.has_attr(node, frame),
            Expr::Attrs(node) => self.attrs(node, frame),
            Expr::List(items) => Ok(self.list(items, frame)),
            Expr::Lambda(lambda) => Ok(self.closure(lambda, false, frame)),
            Expr::Call(node) => self.eval_call(node, frame),
            Expr::Let(node) => {
                self.bind(node.bindings, frame);
                self.eval(&node.body, frame)
            }
            Expr::With(node) => self.with(node, frame),
            Expr::If(node) => {
                let branch = match self.eval(&node.cond, frame) {
                    Ok(Value::TRUE) => &node.then,
                    Ok(Value::FALSE) => &node.otherwise,
                    other => {
                        let chosen = self.as_bool(other, node.pos, "while evaluating a branch condition")?;
                        if chosen { &node.then } else { &node.otherwise }
                    }
                };
                self.eval(branch, frame)
            }
            Expr::Assert(node) => self.assert(node, frame),
            Expr::Not(node) => {
                let operand = self.eval(&node.operand, frame);
                Ok(Value::bool(!self.as_bool(operand, node.pos, "in the argument of the not operator")?))
            }
            Expr::Binary(op, node) => self.binary(*op, node, frame),
            Expr::Concat(node) => self.concat(node, frame),
            Expr::CurPos(pos) => Ok(self.position(*pos)),
            Expr::Suspend(body) => self.run_now(body, frame),
            Expr::Deep(inner) => stacker::maybe_grow(RED_ZONE, SEGMENT, || self.eval(inner, frame)),
        }
    }

    /// Makes a cell of code in delayed position; evaluates nothing.
    #[inline]
    pub(crate) fn delay(&self, expr: &'static Expr, frame: &Frame<'_>) -> Value {
        match expr {
            Expr::Const(value) => *value,
            Expr::Local(slot, _) => frame.locals[*slot as usize].get(),
            Expr::Capture(index, _) => frame.captures[*index as usize].get(),
            Expr::Suspend(body) => self.suspend(body, frame),
            Expr::Lambda(lambda) => self.closure(lambda, true, frame),
            _ => unreachable!("lowering delays only atoms, functions and suspensions"),
        }
    }

    #[inline]
    fn suspend(&self, body: &'static Body, frame: &Frame<'_>) -> Value {
        Stats::bump(&self.stats.thunks);
        let thunk = Thunk::suspend(body);
        self.capture(body, thunk.slots_of(body), frame);
        thunk.value()
    }

    #[inline]
    fn capture(&self, body: &'static Body, slots: &[Slot], frame: &Frame<'_>) {
        for (slot, &var) in slots.iter().zip(body.captures) {
            slot.set(frame.get(var));
        }
    }

    #[inline]
    fn closure(&self, lambda: &'static Lambda, delayed: bool, frame: &Frame<'_>) -> Value {
        let closure = Closure::new(lambda, delayed);
        self.capture(&lambda.body, closure.captures(), frame);
        closure.value()
    }

    fn list(&self, items: &'static [Expr], frame: &Frame<'_>) -> Value {
        let mut list = ListBuilder::new(items.len());
        for item in items {
            list.push(self.delay(item, frame));
        }
        list.finish()
    }

    /// Evaluates a suspended body at once, its captures on the native stack: no thunk is made.
    #[inline(never)]
    pub(crate) fn run_now(&self, body: &'static Body, frame: &Frame<'_>) -> Result<Value> {
        with_slots(body.captures.len(), |captures| {
            self.capture(body, captures, frame);
            self.run(body, captures)
        })
    }

    /// Binds mutually visible cells: makes each, then fills in what each captures.
    #[inline(never)]
    pub(crate) fn bind(&self, bindings: &'static [Binding<Value>], frame: &Frame<'_>) {
        for binding in bindings {
            self.make_cell(&binding.value, binding.slot, frame);
        }
        for binding in bindings {
            self.fill_cell(&binding.value, binding.slot, frame);
        }
    }

    /// First step of binding.
    #[inline]
    pub(crate) fn make_cell(&self, expr: &'static Expr, slot: u32, frame: &Frame<'_>) {
        let cell = match expr {
            Expr::Const(value) => *value,
            Expr::Local(from, _) => frame.locals[*from as usize].get(),
            Expr::Capture(index, _) => frame.captures[*index as usize].get(),
            Expr::Lambda(lambda) => Closure::new(lambda, true).value(),
            Expr::Suspend(body) => {
                Stats::bump(&self.stats.thunks);
                Thunk::suspend(body).value()
            }
            _ => unreachable!("lowering binds only atoms, functions and suspensions"),
        };
        frame.locals[slot as usize].set(cell);
    }

    /// Second step of binding.
    #[inline]
    pub(crate) fn fill_cell(&self, expr: &'static Expr, slot: u32, frame: &Frame<'_>) {
        let cell = frame.locals[slot as usize].get();
        match expr {
            Expr::Lambda(lambda) => {
                if let Some(firn_value::Function::Closure(closure)) = cell.as_function() {
                    self.capture(&lambda.body, closure.captures(), frame);
                }
            }
            Expr::Suspend(body) => {
                if let Some(thunk) = cell.as_thunk() {
                    self.capture(body, thunk.slots_of(body), frame);
                }
            }
            _ => {}
        }
    }

    #[inline(never)]
    fn with(&self, node: &'static With<Value>, frame: &Frame<'_>) -> Result<Value> {
        frame.locals[node.slot as usize].set(self.delay(&node.scope, frame));
        self.eval(&node.body, frame)
    }

    /// Looks a name up in the `with` scopes, innermost first.
    #[inline(never)]
    fn dynamic(&self, node: &'static Dynamic, frame: &Frame<'_>) -> Result<Value> {
        for &(scope, pos) in node.scopes {
            let set = self.force_attrs(frame.get(scope), pos, "while evaluating the first subexpression of a with expression")?;
            if let Some((cell, _)) = self.lookup(set, node.name, &node.cache) {
                return self.force(cell, node.pos);
            }
        }
        Err(Error::new(ErrorKind::UndefinedVar, format!("undefined variable '{}'", crate::colored(node.name))).at(node.pos))
    }

    #[inline(never)]
    fn assert(&self, node: &'static Assert<Value>, frame: &Frame<'_>) -> Result<Value> {
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
        let Some(location) = pos.resolve() else { return Value::NULL };
        let firn_source::Origin::File(path) = location.file.origin() else { return Value::NULL };
        let names = self.names();
        let mut set = AttrsBuilder::with_capacity(3);
        set.push(names.file, Pos::NONE, Value::string(path, firn_value::Context::EMPTY));
        set.push(names.line, Pos::NONE, Value::int(i64::from(location.line)));
        set.push(names.column, Pos::NONE, Value::int(i64::from(location.column)));
        set.finish()
    }
}
