//! Calls: closures with their patterns, builtins, partial applications, functors.
//!
//! An argument is normally delayed. Where the function is known to force it first, it is evaluated at once and an
//! error is kept in the cell, so that the function raises it exactly where it would have (see `ir::strictness`).
//!
//! Length: every way into a function, which share their parts; a second file would hide which of them is the short one.

use crate::frame::{FEW_SLOTS, Frame, MOST_SLOTS, heap_slots, stack_slots};
use crate::{Machine, Stats};
use crate::times::{Doing, doing};
use firn_ir::{Call, Pattern, Plan};
use firn_source::Pos;
use firn_value::{Attrs, Closure, Error, ErrorKind, Expr, Function, Lambda, PartialApp, Primop, Result, Slot, Thunk, Value};

impl Machine {
    /// Evaluates a call expression.
    // PERF: whoever goes on from here does so by a jump, so that nothing is saved twice.
    #[inline]
    pub(crate) fn eval_call(&self, node: &'static Call<Value>, frame: Frame<'_>) -> Result<Value> {
        let function = match &node.fun {
            Expr::SelectName(selection) => self.select_at_hand(selection, frame),
            fun => self.glance(fun, frame),
        };
        match function {
            Some(function) => self.call_value(function, node, frame),
            None => self.call_evaluated(node, frame),
        }
    }

    #[inline(never)]
    fn call_evaluated(&self, node: &'static Call<Value>, frame: Frame<'_>) -> Result<Value> {
        let function = self.eval_node(&node.fun, frame)?;
        self.call_value(function, node, frame)
    }

    #[inline(always)]
    fn call_value(&self, function: Value, node: &'static Call<Value>, frame: Frame<'_>) -> Result<Value> {
        match function.as_function() {
            Some(Function::Closure(closure)) => {
                let lambda = closure.lambda();
                match (node.args.len(), lambda.few) {
                    (1, 1) => self.call_few::<1>(closure, lambda, node, frame),
                    (2, 2) => self.call_few::<2>(closure, lambda, node, frame),
                    (3, 3) => self.call_few::<3>(closure, lambda, node, frame),
                    _ => self.call_otherwise(closure, lambda, node, frame),
                }
            }
            Some(Function::Primop(primop)) if node.args.len() >= primop.arity as usize => {
                self.call_primop_expr(primop, node, frame)
            }
            Some(Function::Partial(partial)) => self.call_partial_expr(partial, node, frame),
            _ => self.call_delayed(function, node.args, node.pos, frame),
        }
    }

    /// The call that nearly every call is: of a function that needs few slots with exactly its `N` arguments.
    #[inline(never)]
    fn call_few<const N: usize>(
        &self,
        closure: Closure,
        lambda: &'static Lambda,
        node: &'static Call<Value>,
        frame: Frame<'_>,
    ) -> Result<Value> {
        let room = [const { Slot::new() }; FEW_SLOTS];
        let inside = Frame::of_few(closure, lambda, &room);
        let args: &'static [Expr; N] = node.args.try_into().expect("so many arguments");
        let strict = &lambda.strict;
        if N > 1 && !strict.in_order {
            self.pass_out_of_order(lambda, 0, args, &room[..N], frame)?;
            return self.enter_few(closure, lambda, &room, inside, node.pos);
        }
        let unseen = strict.unseen;
        let mut mask = self.pass_in_order(&args[0], &room[0], strict.mask, unseen & 1 != 0, N > 1, frame)?;
        if N > 1 {
            mask = self.pass_in_order(&args[1], &room[1], mask, unseen & 2 != 0, N > 2, frame)?;
        }
        if N > 2 {
            self.pass_in_order(&args[2], &room[2], mask, unseen & 4 != 0, false, frame)?;
        }
        self.enter_few(closure, lambda, &room, inside, node.pos)
    }

    /// Puts an argument into its slot, evaluated if the mask's first bit says so. The mask for the next one, if there is one.
    #[inline(always)]
    fn pass_in_order(&self, arg: &'static Expr, slot: &Slot, mask: u64, unseen: bool, more: bool, frame: Frame<'_>) -> Result<u64> {
        if mask & 1 == 0 {
            slot.set(match arg {
                Expr::Suspend(node) if unseen => self.make(node, frame),
                arg => self.delay(arg, frame),
            });
            return Ok(mask >> 1);
        }
        let cell = self.evaluate_early(arg, frame)?;
        slot.set(cell);
        Ok(if more && has_failed(cell) { 0 } else { mask >> 1 })
    }

    /// A call of a closure with any number of arguments.
    #[inline(never)]
    fn call_otherwise(
        &self,
        closure: Closure,
        lambda: &'static Lambda,
        node: &'static Call<Value>,
        frame: Frame<'_>,
    ) -> Result<Value> {
        if node.args.len() < lambda.arity() {
            return Ok(self.partial(closure, &[], node.args, frame));
        }
        if node.args.len() != lambda.arity() || lambda.body.locals as usize > MOST_SLOTS {
            return self.call_inexact(closure, &[], node, frame);
        }
        if lambda.body.locals as usize > FEW_SLOTS {
            return self.call_with_many(closure, lambda, node, frame);
        }
        stack_slots!(locals, FEW_SLOTS, lambda.body.locals as usize);
        self.pass_arguments(lambda, node.args, locals, frame)?;
        self.enter(closure, lambda, locals, node.pos)
    }

    /// A call of exactly the arguments of a function with more than a few slots.
    #[inline(never)]
    fn call_with_many(
        &self,
        closure: Closure,
        lambda: &'static Lambda,
        node: &'static Call<Value>,
        frame: Frame<'_>,
    ) -> Result<Value> {
        stack_slots!(locals, MOST_SLOTS, lambda.body.locals as usize);
        self.pass_arguments(lambda, node.args, locals, frame)?;
        self.enter(closure, lambda, locals, node.pos)
    }

    /// A call of what has got some arguments.
    #[inline(never)]
    fn call_partial_expr(&self, partial: PartialApp, node: &'static Call<Value>, frame: Frame<'_>) -> Result<Value> {
        let Some(Function::Closure(closure)) = partial.function().as_function() else {
            return self.call_delayed(partial.value(), node.args, node.pos, frame);
        };
        let (lambda, given) = (closure.lambda(), partial.args());
        // PERF: the rest of its arguments, none of which it forces first.
        if usize::from(lambda.few) == given.len() + node.args.len() && lambda.strict.mask >> given.len() == 0 {
            let room = [const { Slot::new() }; FEW_SLOTS];
            let inside = Frame::of_few(closure, lambda, &room);
            for (slot, arg) in room.iter().zip(given) {
                slot.set(arg.get());
            }
            for (slot, arg) in room[given.len()..].iter().zip(node.args) {
                slot.set(self.delay(arg, frame));
            }
            return self.enter_few(closure, lambda, &room, inside, node.pos);
        }
        self.call_inexact(closure, given, node, frame)
    }

    /// Applies a function to arguments that are all delayed.
    #[inline(never)]
    fn call_delayed(&self, function: Value, args: &'static [Expr], pos: Pos, frame: Frame<'_>) -> Result<Value> {
        match args {
            [a] => self.call(function, &[self.delay(a, frame)], pos),
            [a, b] => self.call(function, &[self.delay(a, frame), self.delay(b, frame)], pos),
            _ => self.call(function, &args.iter().map(|a| self.delay(a, frame)).collect::<Vec<_>>(), pos),
        }
    }

    /// Calls a closure that has got some arguments with those of a call expression.
    #[inline(never)]
    fn call_inexact(
        &self,
        closure: Closure,
        given: &[Slot],
        node: &'static Call<Value>,
        frame: Frame<'_>,
    ) -> Result<Value> {
        let lambda = closure.lambda();
        if node.args.len() + given.len() < lambda.arity() {
            return Ok(self.partial(closure, given, node.args, frame));
        }
        if lambda.body.locals as usize > FEW_SLOTS {
            return self.call_large(closure, given, node, frame);
        }
        stack_slots!(locals, FEW_SLOTS, lambda.body.locals as usize);
        self.call_in(closure, given, node, locals, frame)
    }

    #[inline(never)]
    fn call_large(&self, closure: Closure, given: &[Slot], node: &'static Call<Value>, frame: Frame<'_>) -> Result<Value> {
        let count = closure.lambda().body.locals as usize;
        if count > MOST_SLOTS {
            return self.call_in(closure, given, node, &heap_slots(count), frame);
        }
        stack_slots!(locals, MOST_SLOTS, count);
        self.call_in(closure, given, node, locals, frame)
    }

    /// Calls a closure with all its arguments in these slots.
    #[inline(always)]
    fn call_in(
        &self,
        closure: Closure,
        given: &[Slot],
        node: &'static Call<Value>,
        locals: &[Slot],
        frame: Frame<'_>,
    ) -> Result<Value> {
        let lambda = closure.lambda();
        let (now, rest) = node.args.split_at(lambda.arity() - given.len());
        for (slot, arg) in locals.iter().zip(given) {
            slot.set(arg.get());
        }
        if given.is_empty() {
            self.pass_arguments(lambda, now, locals, frame)?;
        } else {
            self.pass_out_of_order(lambda, given.len(), now, locals, frame)?;
        }
        let result = self.enter(closure, lambda, locals, node.pos);
        if rest.is_empty() {
            return result;
        }
        self.call_delayed(result?, rest, node.pos, frame)
    }

    #[inline(never)]
    fn partial(&self, closure: Closure, given: &[Slot], args: &'static [Expr], frame: Frame<'_>) -> Value {
        let done = given.len();
        PartialApp::of(closure.value(), done + args.len(), |i| {
            if i < done { given[i].get() } else { self.delay(&args[i - done], frame) }
        })
    }

    /// Puts all arguments into the function's slots: those it forces first evaluated, in its order, the others delayed.
    #[inline(always)]
    fn pass_arguments(
        &self,
        lambda: &'static Lambda,
        args: &'static [Expr],
        locals: &[Slot],
        frame: Frame<'_>,
    ) -> Result<()> {
        let strict = &lambda.strict;
        if !strict.in_order {
            return self.pass_out_of_order(lambda, 0, args, locals, frame);
        }
        let mut mask = strict.mask;
        for (arg, slot) in args.iter().zip(locals) {
            mask = self.pass_in_order(arg, slot, mask, false, true, frame)?;
        }
        Ok(())
    }

    /// As [`Machine::pass_arguments`] for the arguments from number `done` on, in whatever order the function forces them.
    #[inline(never)]
    fn pass_out_of_order(
        &self,
        lambda: &'static Lambda,
        done: usize,
        args: &'static [Expr],
        locals: &[Slot],
        frame: Frame<'_>,
    ) -> Result<()> {
        let mut early = 0u64;
        for &i in lambda.strict.order() {
            let i = i as usize;
            if i < done {
                // An argument given before that is not evaluated yet must be forced first, by the body.
                if locals[i].get().as_thunk().is_some_and(|thunk| !thunk.is_evaluated()) {
                    break;
                }
                continue;
            }
            let cell = self.evaluate_early(&args[i - done], frame)?;
            locals[i].set(cell);
            early |= 1 << i;
            if has_failed(cell) {
                break;
            }
        }
        for (i, arg) in args.iter().enumerate() {
            let i = i + done;
            if i >= 64 || early >> i & 1 == 0 {
                locals[i].set(self.delay(arg, frame));
            }
        }
        Ok(())
    }

    /// Evaluates an argument that the function forces first. An error stays in the cell, which then [has failed](has_failed):
    /// the function will not get to the arguments it forces later, so those must not be evaluated early.
    #[inline(always)]
    pub(crate) fn evaluate_early(&self, arg: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        if let Expr::Suspend(node) = arg {
            return match self.run_now(node, frame) {
                Ok(value) if !value.is_perhaps_told_apart() => Ok(value),
                result => self.keep_early(result),
            };
        }
        let cell = self.delay(arg, frame);
        if cell.is_whnf() { Ok(cell) } else { self.force_early(cell) }
    }

    /// A cell for the result of an argument that was evaluated early.
    #[inline(never)]
    fn keep_early(&self, result: Result<Value>) -> Result<Value> {
        match result {
            Ok(value) => Ok(own_cell(value)),
            Err(error) => self.keep_waiting(error).map(|error| {
                // The error lies in a cell that has no code to run again.
                self.make_noise();
                Thunk::failed(error)
            }),
        }
    }

    /// Forces a variable's cell so that arguments keep their order; the cell remembers its own failure.
    #[inline(never)]
    fn force_early(&self, cell: Value) -> Result<Value> {
        if cell.as_thunk().is_none_or(Thunk::is_evaluated) {
            return Ok(cell);
        }
        match self.force(cell, Pos::NONE) {
            Ok(_) => Ok(cell),
            Err(error) => self.keep_waiting(error).map(|_| cell),
        }
    }

    /// A call of a builtin with all its arguments.
    #[inline(never)]
    fn call_primop_expr(&self, primop: &'static Primop, node: &'static Call<Value>, frame: Frame<'_>) -> Result<Value> {
        let arity = primop.arity as usize;
        let (now, rest) = node.args.split_at(arity);
        let mut args = [Value::NULL; 8];
        let mut failed = false;
        for (i, arg) in now.iter().enumerate() {
            let early = primop.strict & 1 << i != 0 && !failed;
            args[i] = if early { self.evaluate_early(arg, frame)? } else { self.delay(arg, frame) };
            failed |= early && has_failed(args[i]);
        }
        let result = self.call_primop(primop, &args[..arity], node.pos)?;
        if rest.is_empty() {
            return Ok(result);
        }
        let rest: Vec<Value> = rest.iter().map(|arg| self.delay(arg, frame)).collect();
        self.call(result, &rest, node.pos)
    }

    /// Counts a nested call; the error when there are too many.
    #[inline]
    pub fn deeper(&self, pos: Pos) -> Result<u32> {
        let depth = self.depth.get();
        if depth >= self.depth_limit.get() {
            self.go_deep(depth, pos)?;
        }
        self.depth.set(depth + 1);
        Ok(depth)
    }

    /// The same for a function of the program; it notices an interruption as well.
    // PERF: two instructions a call of fib (473 without); for builtins as well it was twenty.
    #[inline(always)]
    fn deeper_into_function(&self, pos: Pos) -> Result<u32> {
        let depth = self.depth.get();
        if depth >= self.interruptible.get() {
            self.go_deep(depth, pos)?;
        }
        self.depth.set(depth + 1);
        Ok(depth)
    }

    /// Past half the depth, answers from memory end: until then any of them, wherever it is used, has needed no more depth
    /// than there is left.
    #[cold]
    fn go_deep(&self, depth: u32, pos: Pos) -> Result<()> {
        if crate::is_interrupted() {
            return Err(crate::interrupted());
        }
        if depth > self.max_depth {
            return Err(too_deep(pos));
        }
        self.shared.memo.go_deep();
        self.learning.is_deep.set(true);
        self.depth_limit.set(self.max_depth.saturating_add(1));
        self.interruptible.set(self.max_depth.saturating_add(1));
        Ok(())
    }

    /// Ends what `deeper` began.
    #[inline]
    pub fn shallower(&self, depth: u32) {
        self.depth.set(depth);
    }

    /// Does something one level deeper, as walks over nested values do: bounded by `max-call-depth`, not by the stack.
    pub fn nested<T>(&self, pos: Pos, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let depth = self.deeper(pos)?;
        let result = self.with_stack(work);
        self.shallower(depth);
        result
    }

    /// Runs a builtin on exactly its arguments.
    #[inline]
    fn call_primop(&self, primop: &'static Primop, args: &[Value], pos: Pos) -> Result<Value> {
        let depth = self.deeper(pos)?;
        Stats::bump(&self.stats.primop_calls);
        // NIX: a builtin does not know where it is called; only the frame around it does.
        let run = self.shared.primops[primop.index as usize];
        let result = if self.is_stack_low() {
            self.carefully(crate::Callee::Primop(primop), pos, || run(self, Pos::NONE, args))
        } else {
            doing(|| Doing::Builtins, || run(self, Pos::NONE, args))
        };
        self.shallower(depth);
        result.map_err(|error| if primop.trace { while_calling_builtin(error, primop, pos) } else { error })
    }

    /// Runs a closure whose arguments are in its first slots.
    #[inline(always)]
    fn enter(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        if lambda.marks.is_remembered() {
            return self.enter_remembered(closure, lambda, locals, pos);
        }
        self.enter_here(closure, lambda, locals, pos)
    }

    /// The same for a closure with few slots.
    #[inline(always)]
    fn enter_few(
        &self,
        closure: Closure,
        lambda: &'static Lambda,
        room: &[Slot; FEW_SLOTS],
        frame: Frame<'_>,
        pos: Pos,
    ) -> Result<Value> {
        if lambda.marks.is_remembered() {
            return self.enter_remembered(closure, lambda, &room[..lambda.body.locals as usize], pos);
        }
        let depth = self.deeper_into_function(pos)?;
        Stats::bump(&self.stats.calls);
        let result = if self.is_stack_low() {
            self.enter_carefully(lambda, frame, pos)
        } else {
            self.eval_node(&lambda.body.expr, frame)
        };
        self.shallower(depth);
        match result {
            Err(error) if self.show_trace => Err(while_calling(error, lambda, pos)),
            other => other,
        }
    }

    /// As `enter`, whatever is remembered.
    #[inline(never)]
    pub(crate) fn enter_plain(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        self.enter_here(closure, lambda, locals, pos)
    }

    #[inline(always)]
    pub(crate) fn enter_here(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        let depth = self.deeper_into_function(pos)?;
        let frame = Frame::of(closure, lambda, locals);
        let result = match &lambda.pattern {
            None => Ok(()),
            Some(pattern) => self.match_pattern(lambda, pattern, frame, pos),
        };
        let result = match result {
            Ok(()) => {
                Stats::bump(&self.stats.calls);
                let result = if self.is_stack_low() {
                    self.enter_carefully(lambda, frame, pos)
                } else {
                    self.eval_node(&lambda.body.expr, frame)
                };
                match result {
                    Err(error) if self.show_trace => Err(while_calling(error, lambda, pos)),
                    other => other,
                }
            }
            Err(error) => Err(error),
        };
        self.shallower(depth);
        result
    }

    /// Binds a pattern's formals from the set in its slot.
    #[inline(never)]
    fn match_pattern(&self, lambda: &'static Lambda, pattern: &'static Pattern<Value>, frame: Frame<'_>, pos: Pos) -> Result<()> {
        let set = self.pattern_argument(lambda, pattern, frame, pos)?;
        if let Some(shape) = set.flat_shape()
            && let Some(plan) = pattern.plans.find(shape)
        {
            self.bind_planned(pattern, plan, set.flat().1, frame);
            return Ok(());
        }
        let (mut used, mut missing) = (0, false);
        for (i, formal) in pattern.formals.iter().enumerate() {
            let slot = pattern.first + i as u32;
            match (set.get(formal.name), &formal.default) {
                (Some(value), _) => {
                    frame.set(slot, value);
                    used += 1;
                }
                (None, Some(default)) => {
                    self.make_cell(default, slot, frame);
                    missing = true;
                }
                (None, None) => return Err(missing_argument(lambda, formal.name, pattern.pos, pos)),
            }
        }
        if missing {
            for (i, formal) in pattern.formals.iter().enumerate() {
                if let Some(default) = &formal.default
                    && !set.has(formal.name)
                {
                    self.fill_cell(default, pattern.first + i as u32, frame);
                }
            }
        }
        if !pattern.ellipsis && used != set.len() {
            return Err(unexpected_argument(lambda, pattern, set, pos));
        }
        if let Some(shape) = set.flat_shape() {
            pattern.plans.fitted(shape, pattern.formals.iter().map(|formal| formal.name));
        }
        Ok(())
    }

    /// Binds a pattern's formals from the cells of a set whose shape has a plan.
    #[inline]
    fn bind_planned(&self, pattern: &'static Pattern<Value>, plan: &Plan, cells: &[Slot], frame: Frame<'_>) {
        for (i, &index) in plan.indices.iter().enumerate() {
            let slot = pattern.first + i as u32;
            match cells.get(index as usize) {
                Some(cell) => frame.set(slot, cell.get()),
                None => self.bind_default(&pattern.formals[i].default, slot, frame, Machine::make_cell),
            }
        }
        if plan.lacking {
            for (i, &index) in plan.indices.iter().enumerate() {
                if usize::from(index) >= cells.len() {
                    let slot = pattern.first + i as u32;
                    self.bind_default(&pattern.formals[i].default, slot, frame, Machine::fill_cell);
                }
            }
        }
    }

    #[inline(always)]
    fn bind_default(
        &self,
        default: &'static Option<Expr>,
        slot: u32,
        frame: Frame<'_>,
        step: impl Fn(&Machine, &'static Expr, u32, Frame<'_>),
    ) {
        step(self, default.as_ref().expect("a planned set lacks only formals with defaults"), slot, frame);
    }

    /// The set that a pattern is matched against.
    #[inline]
    pub(crate) fn pattern_argument(
        &self,
        lambda: &'static Lambda,
        pattern: &'static Pattern<Value>,
        frame: Frame<'_>,
        pos: Pos,
    ) -> Result<Attrs> {
        let cell = frame.local(lambda.params.len() as u32);
        self.force_attrs(cell, pattern.pos, "while evaluating the value passed for the lambda argument")
            .map_err(|e| if pos.is_some() { e.trace(pos, "from call site") } else { e })
    }

    /// Applies a function to cells.
    #[inline]
    pub fn call(&self, function: Value, args: &[Value], pos: Pos) -> Result<Value> {
        // PERF: a function of the program with all its arguments: what nearly every call of a builtin is.
        if let Some(Function::Closure(closure)) = function.as_function()
            && closure.lambda().arity() == args.len()
        {
            return doing(|| Doing::Call, || self.call_closure(closure, &[], args, pos));
        }
        self.call_any(function, args, pos)
    }

    #[inline(never)]
    fn call_any(&self, function: Value, args: &[Value], pos: Pos) -> Result<Value> {
        let mut current = self.force(function, pos)?;
        let mut args = args;
        while !args.is_empty() {
            match current.as_function() {
                Some(Function::Closure(closure)) => {
                    let lambda = closure.lambda();
                    let arity = lambda.arity();
                    if args.len() < arity {
                        return Ok(PartialApp::new(current, args));
                    }
                    let (now, rest) = args.split_at(arity);
                    current = self.call_closure(closure, &[], now, pos)?;
                    args = rest;
                }
                Some(Function::Primop(primop)) => {
                    let arity = primop.arity as usize;
                    if args.len() < arity {
                        return Ok(PartialApp::new(current, args));
                    }
                    let (now, rest) = args.split_at(arity);
                    current = self.call_primop(primop, now, pos)?;
                    args = rest;
                }
                Some(Function::Partial(partial)) => {
                    return self.call_partial(partial, args, pos);
                }
                None => {
                    current = self.call_functor(current, args[0], pos)?;
                    args = &args[1..];
                }
            }
        }
        Ok(current)
    }

    #[inline(never)]
    pub(crate) fn call_closure(&self, closure: Closure, given: &[Slot], args: &[Value], pos: Pos) -> Result<Value> {
        let lambda = closure.lambda();
        if lambda.few == 0 {
            return self.call_closure_large(closure, given, args, pos);
        }
        let room = [const { Slot::new() }; FEW_SLOTS];
        let inside = Frame::of_few(closure, lambda, &room);
        place(&room, given, args);
        self.enter_few(closure, lambda, &room, inside, pos)
    }

    #[inline(never)]
    fn call_closure_large(&self, closure: Closure, given: &[Slot], args: &[Value], pos: Pos) -> Result<Value> {
        let lambda = closure.lambda();
        if lambda.body.locals as usize > MOST_SLOTS {
            return self.call_closure_huge(closure, given, args, pos);
        }
        stack_slots!(locals, MOST_SLOTS, lambda.body.locals as usize);
        place(locals, given, args);
        self.enter(closure, lambda, locals, pos)
    }

    #[inline(never)]
    fn call_closure_huge(&self, closure: Closure, given: &[Slot], args: &[Value], pos: Pos) -> Result<Value> {
        let lambda = closure.lambda();
        let locals = heap_slots(lambda.body.locals as usize);
        fill(&locals, given, args);
        self.enter(closure, lambda, &locals, pos)
    }

    /// Applies a function that has got some arguments.
    #[inline(never)]
    fn call_partial(&self, partial: PartialApp, args: &[Value], pos: Pos) -> Result<Value> {
        let given = partial.args();
        if let Some(Function::Closure(closure)) = partial.function().as_function() {
            let needed = closure.lambda().arity() - given.len();
            if args.len() >= needed {
                let (now, rest) = args.split_at(needed);
                let result = self.call_closure(closure, given, now, pos)?;
                return if rest.is_empty() { Ok(result) } else { self.call(result, rest, pos) };
            }
        }
        let all: Vec<Value> = given.iter().map(Slot::get).chain(args.iter().copied()).collect();
        self.call(partial.function(), &all, pos)
    }

    #[inline(never)]
    fn call_functor(&self, current: Value, arg: Value, pos: Pos) -> Result<Value> {
        let functor = current.as_attrs().and_then(|set| set.get_with_pos(self.names().functor));
        let Some((functor, functor_pos)) = functor else {
            let kind = crate::colored(crate::show_type(current));
            let message = [
                format!("attempt to call something which is not a function but {kind}: ").into_bytes(),
                self.show(current),
            ];
            return Err(Error::new(ErrorKind::Type, message.concat()).at(pos));
        };
        let depth = self.deeper(pos)?;
        let result = self.call(functor, &[current, arg], functor_pos);
        self.shallower(depth);
        result.map_err(|e| e.trace(pos, "while calling a functor (an attribute set with a '__functor' attribute)"))
    }
}

/// Puts the arguments into a function's first slots.
// PERF: one or two arguments and none given before is what `map`, `foldl'` and their kin call with.
#[inline(always)]
fn place(locals: &[Slot], given: &[Slot], args: &[Value]) {
    match (given, args) {
        ([], [a]) => locals[0].set(*a),
        ([], [a, b]) => {
            locals[1].set(*b);
            locals[0].set(*a);
        }
        _ => fill(locals, given, args),
    }
}

#[inline(never)]
fn fill(locals: &[Slot], given: &[Slot], args: &[Value]) {
    for (slot, arg) in locals.iter().zip(given.iter().map(Slot::get).chain(args.iter().copied())) {
        slot.set(arg);
    }
}

/// Whether an argument that was evaluated early has failed; perhaps also where it has not.
#[inline(always)]
fn has_failed(cell: Value) -> bool {
    cell.as_thunk().is_some_and(|thunk| !thunk.is_evaluated())
}

/// A cell for a result. NIX: functions (and NaN) are told apart by their cells, so one gets a cell of its own (M7).
#[inline]
pub fn own_cell(value: Value) -> Value {
    if value.is_told_apart_by_cell() { Thunk::ready(value) } else { value }
}

impl Machine {
    /// A failure met early waits for whoever needs the argument first; one that no thunk remembers is raised at once.
    #[cold]
    fn keep_waiting(&self, error: Box<Error>) -> Result<Box<Error>> {
        if !self.is_remembered(&error) {
            return Err(error);
        }
        error.wait();
        Ok(error)
    }
}

#[cold]
fn too_deep(pos: Pos) -> Box<Error> {
    Error::new(ErrorKind::StackOverflow, "stack overflow; max-call-depth exceeded").at(pos)
}

#[cold]
fn while_calling_builtin(error: Box<Error>, primop: &Primop, pos: Pos) -> Box<Error> {
    error.trace(pos, format!("while calling the '{}' builtin", crate::colored(primop.name)))
}

fn name_of(lambda: &Lambda) -> String {
    lambda.name.map_or_else(|| "anonymous lambda".to_owned(), |name| name.to_string())
}

#[cold]
fn while_calling(error: Box<Error>, lambda: &'static Lambda, pos: Pos) -> Box<Error> {
    let what = match lambda.name {
        Some(name) => format!("while calling {}", crate::colored(format_args!("'{name}'"))),
        None => format!("while calling {}", crate::colored("anonymous lambda")),
    };
    let error = error.trace(lambda.pos_at(lambda.arity() - 1), what);
    if pos.is_some() { error.trace(pos, "from call site") } else { error }
}

#[cold]
fn missing_argument(lambda: &'static Lambda, name: firn_source::Symbol, at: Pos, pos: Pos) -> Box<Error> {
    let message = format!(
        "function '{}' called without required argument '{}'",
        crate::colored(name_of(lambda)),
        crate::colored_name(name)
    );
    Error::new(ErrorKind::Type, message).at(at).trace(pos, "from call site")
}

#[cold]
fn unexpected_argument(lambda: &'static Lambda, pattern: &'static Pattern<Value>, set: Attrs, pos: Pos) -> Box<Error> {
    let is_formal = |name| pattern.formals.iter().any(|f| f.name == name);
    // NIX: the first in symbol order is reported.
    let name = set.iter().map(|(name, _, _)| name).find(|&name| !is_formal(name)).expect("some attribute is no formal");
    let formals: Vec<&[u8]> = pattern.formals.iter().map(|f| f.name.as_bytes()).collect();
    let message = format!(
        "function '{}' called with unexpected argument '{}'",
        crate::colored(name_of(lambda)),
        crate::colored_name(name)
    );
    Error::new(ErrorKind::Type, message)
        .at(pattern.pos)
        .trace(pos, "from call site")
        .suggest(crate::errors::best_matches(&formals, name.as_bytes()))
}
