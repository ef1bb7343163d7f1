//! Remembered calls (L1.4): a call of equal key gets the result of the first, carried over into an instance of its own.
//!
//! 1. The key is taken: code, captures, arguments. It forces nothing that the call would not force next.
//! 2. A call that is not remembered is made in a new instance: whatever it makes, now or later, carries its stamp.
//! 3. Its result is remembered if producing it was quiet and did not fail.
//! 4. A call that is remembered gets the first one's result through a map (`memo::Map`): cells inside the first call appear
//!    as cells of the second, everything else as itself.

use crate::frame::Frame;
use crate::{Machine, Stats};
use firn_memo::kept::labels;
use firn_memo::{Closed, ClosedTerms, Entry, Instances, Key, Memo, Mode, Pairs};
use firn_source::{Pos, Symbol};
use firn_value::{Closure, Expr, Label, Lambda, Production, Result, Slot, Stamp, Thunk, Value, Work};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

impl Machine {
    /// Runs a closure whose calls are remembered or measured; its arguments are in its first slots.
    #[inline(never)]
    pub(crate) fn enter_remembered(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        if !self.shared.memo.is_on() {
            return self.enter_plain(closure, lambda, locals, pos);
        }
        match lambda.marks.measured() {
            Some(0) if Memo::spares_first() => {
                lambda.marks.measure_on(0);
                self.enter_plain(closure, lambda, locals, pos)
            }
            Some(calls) => self.enter_measured(calls, closure, lambda, locals, pos),
            None => self.enter_looked_up(closure, lambda, locals, pos),
        }
    }

    /// Runs a closure unless an equal call was made before.
    // PERF: four of five calls that come by here end with the glance, so what keys need is made by those that go on: with the first calls
    // unmeasured, 0.28 → 0.18 million instructions of the 695 of a single package.
    #[inline(never)]
    fn enter_looked_up(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        let memo = &self.shared.memo;
        if memo.is_deep() {
            firn_memo::Stats::bump(&memo.stats.misses_deep);
            return self.enter_plain(closure, lambda, locals, pos);
        }
        if lambda.pattern.is_some() && !is_known_set(locals[lambda.params.len()].get()) {
            self.force_pattern_argument(closure, lambda, locals, pos)?;
        }
        let words = (closure.captures(), &locals[..lambda.arity()]);
        if memo.is_hopeless(lambda, words, &|| self.innermost()) {
            return self.enter_plain(closure, lambda, locals, pos);
        }
        self.enter_keyed(closure, lambda, locals, pos)
    }

    /// Forces the set that the pattern is matched against, which is the first thing that the call does.
    #[inline(never)]
    fn force_pattern_argument(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<()> {
        let Some(pattern) = &lambda.pattern else { return Ok(()) };
        let depth = self.deeper(pos)?;
        let frame = Frame::of(closure, lambda, locals);
        let set = self.pattern_argument(lambda, pattern, frame, pos);
        self.shallower(depth);
        set.map(|_| ())
    }

    /// The instances whose productions run, as many as a key looks at.
    fn innermost(&self) -> SmallVec<[Stamp; firn_memo::INNERMOST]> {
        let mut running = self.running.innermost(firn_memo::INNERMOST - 1);
        running.push(Production::current().stamp());
        running
    }

    /// Runs a closure that may have a key, unless an equal call was made before.
    #[inline(never)]
    fn enter_keyed(&self, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        let memo = &self.shared.memo;
        let words = (closure.captures(), &locals[..lambda.arity()]);
        let key = memo.key(lambda, words, &|| self.innermost(), &|thunk| self.build(thunk));
        let key = match key {
            Ok(key) => key,
            Err(why) => {
                memo.stats.miss(why);
                return self.enter_plain(closure, lambda, locals, pos);
            }
        };
        match self.answer(&key) {
            Some(value) if memo.mode == Mode::Shadow => {
                let fresh = self.enter_plain(closure, lambda, locals, pos)?;
                self.shadow(value, fresh, lambda.name);
                Ok(fresh)
            }
            Some(value) => Ok(value),
            None if memo.waits(&key) => self.enter_plain(closure, lambda, locals, pos),
            None => self.enter_new(key, closure, locals, pos),
        }
    }

    /// Runs a closure and measures what that costs.
    #[inline(never)]
    fn enter_measured(&self, calls: u8, closure: Closure, lambda: &'static Lambda, locals: &[Slot], pos: Pos) -> Result<Value> {
        let before = self.steps();
        let result = self.enter_plain(closure, lambda, locals, pos);
        self.shared.memo.measured(lambda, calls, self.steps() - before);
        result
    }

    /// Builds what nothing but a list, a set or a function is written for, so that it can be compared. That evaluates nothing, prints
    /// nothing and cannot fail, and the cell goes on counting as unevaluated.
    fn build(&self, thunk: &'static Thunk) -> Option<Value> {
        thunk.suspended_body().filter(|(body, _)| is_literal(&body.expr))?;
        let claim = thunk.claim()?;
        let outer = claim.begin();
        let built = match claim.work() {
            Work::Run(body, captures) => self.run(body, captures).ok(),
            Work::Apply(_) | Work::Transport(..) => None,
        };
        Production::end(outer);
        match built {
            Some(value) => claim.publish_ahead(value, 0),
            None => claim.restore(),
        }
        built
    }

    /// The result of an equal call made before, as it appears in this one.
    fn answer(&self, key: &Key) -> Option<Value> {
        let memo = &self.shared.memo;
        let entry = memo.table.get(key.hash)?;
        if memo.instances.is_knotted(entry.instance) {
            firn_memo::Stats::bump(&memo.stats.misses_knotted);
            return None;
        }
        let pairs = Pairs::of(&entry.key, key, &memo.instances, entry.instance)?;
        if !self.may_answer(entry.cost) {
            return None;
        }
        // The answer rests on what the first call observed, and on the inputs' being equal.
        labels::take(entry.label);
        pairs.labels.iter().copied().for_each(labels::take);
        let result = if has_cells(entry.result) {
            let Some(to) = memo.instances.copy(entry.instance, Production::current().stamp()) else {
                firn_memo::Stats::bump(&memo.stats.misses_full);
                return None;
            };
            memo.maps.add(entry.instance, to, pairs).carry(entry.result, &memo.instances)
        } else {
            entry.result
        };
        entry.hit();
        memo.answered(key.code, entry.cost);
        Some(result)
    }

    /// Makes a call in an instance of its own and remembers it.
    fn enter_new(&self, key: Key, closure: Closure, locals: &[Slot], pos: Pos) -> Result<Value> {
        let memo = &self.shared.memo;
        if !memo.has_room(firn_host::memory_pressure) {
            return self.enter_plain(closure, key.code, locals, pos);
        }
        firn_memo::Stats::bump(&memo.stats.misses_new);
        let opened = memo.instances.open(Production::current().stamp(), self.running.all().into_iter(), &key);
        let instance = match opened {
            Ok(instance) => instance,
            Err(why) => {
                firn_memo::Stats::bump(match why {
                    Closed::Full => &memo.stats.misses_full,
                    Closed::Knotted => &memo.stats.misses_knotted,
                });
                return self.enter_plain(closure, key.code, locals, pos);
            }
        };
        let before = self.steps();
        let (result, production, label) = self.in_instance(instance, || self.enter_plain(closure, key.code, locals, pos));
        if production.is_noisy() {
            firn_memo::Stats::bump(&memo.stats.misses_noise);
            self.noise()?;
        } else if let Ok(value) = result
            && !memo.is_deep()
            && !memo.instances.is_knotted(instance)
        {
            memo.enter(Entry::new(key, instance, value, self.steps() - before, label));
        }
        result
    }

    /// Runs code without captures: once, if what it gives is plain and it is quiet.
    #[inline(never)]
    pub(crate) fn eval_closed(&self, code: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        // PERF: most programs keep no such value.
        if self.labelled.get() || !self.shared.memo.closed.is_empty() {
            return self.run_known(code, frame);
        }
        let (before, noises) = (self.steps(), self.noises.get());
        let value = self.eval_node(code, frame)?;
        let steps = self.steps() - before;
        if ClosedTerms::is_worth(steps) {
            self.keep_closed(code, value, steps, noises);
        }
        Ok(value)
    }

    /// The same where values are kept, or may have labels.
    #[inline(never)]
    fn run_known(&self, code: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        let memo = &self.shared.memo;
        if !memo.is_on() || memo.is_deep() {
            return self.eval_node(code, frame);
        }
        let known = if memo.closed.is_empty() { None } else { memo.closed.get(code) };
        if let Some((value, steps)) = known
            && memo.mode != Mode::Shadow
        {
            firn_memo::Stats::bump(&memo.stats.closed_hits);
            memo.stats.steps_saved.fetch_add(steps, Ordering::Relaxed);
            return Ok(value);
        }
        let (before, noises) = (self.steps(), self.noises.get());
        let (value, label) = if self.labelled.get() { self.run_apart(code, frame) } else { (self.eval_node(code, frame), 0) };
        let value = value?;
        match known {
            Some((known, _)) => self.shadow(known, value, None),
            None if label == 0 => self.keep_closed(code, value, self.steps() - before, noises),
            None => {}
        }
        Ok(value)
    }

    /// Keeps the value of a closed term if it was not cheap and as many productions have been noisy as before.
    #[inline(never)]
    fn keep_closed(&self, code: &'static Expr, value: Value, steps: u64, noises: u64) {
        let memo = &self.shared.memo;
        if self.noises.get() == noises && memo.is_on() && !memo.is_deep() {
            memo.closed.keep(code, value, steps);
        }
    }

    /// Runs code in a production of its own: what the one around it has observed already, this may observe again.
    fn run_apart(&self, code: &'static Expr, frame: Frame<'_>) -> (Result<Value>, Label) {
        let outer = labels::begin();
        let value = self.eval_node(code, frame);
        let production = Production::end(outer);
        let label = labels::handed_on(production, None);
        if production.is_noisy() {
            Production::make_noise();
        }
        (value, label)
    }

    #[inline]
    fn steps(&self) -> u64 {
        self.stats.calls.get() + self.stats.forces.get()
    }

    /// Does something for another instance; what that observed, the running production has observed too.
    pub(crate) fn in_instance<T>(&self, instance: Stamp, work: impl FnOnce() -> T) -> (T, Production, Label) {
        let around = self.running.enter(instance);
        let outer = Production::begin(instance);
        let result = work();
        let production = Production::end(outer);
        let label = labels::handed_on(production, None);
        self.running.leave(around);
        (result, production, label)
    }

    /// Notes that the running production does what a second one would do again, or what depends on more than its inputs.
    /// Fails when it runs for another instance than its own, which then must run itself.
    pub fn noise(&self) -> Result<()> {
        let stamp = Production::current().stamp();
        if Instances::is_call(stamp) {
            if self.is_ahead(stamp) {
                return Err(crate::force::postponed());
            }
            self.make_noise();
        } else {
            self.noises.set(self.noises.get() + 1);
        }
        Ok(())
    }

    /// Makes the running production noisy. What is outside all calls is produced once: there it is nothing but counted.
    pub(crate) fn make_noise(&self) {
        self.noises.set(self.noises.get() + 1);
        if self.labelled.get() || Instances::is_call(Production::current().stamp()) {
            Production::make_noise();
        }
    }

    /// Notes that the running production looks at a position: if a call has it from its arguments, nothing more is taken from that
    /// call. Whoever looks at an uncertain one begins again.
    pub fn look_at(&self, pos: Pos) -> Result<()> {
        if pos.is_uncertain() {
            pos.seen_through();
            if firn_memo::doubt::must_begin_again() {
                return Err(crate::force::postponed());
            }
        }
        let stamp = Production::current().stamp();
        if Instances::is_call(stamp) {
            self.shared.memo.instances.look_at(stamp, pos);
        }
        Ok(())
    }

    /// Whether cells of the instance are being evaluated on behalf of another.
    pub(crate) fn is_ahead(&self, stamp: Stamp) -> bool {
        let ahead = self.on_behalf.borrow();
        ahead.iter().any(|&from| self.shared.memo.instances.is_inside(stamp, from))
    }

    /// Keeps an answer from memory beside what a fresh evaluation gave.
    #[cold]
    fn shadow(&self, answer: Value, fresh: Value, name: Option<Symbol>) {
        let mut shadows = self.shared.memo.shadows.lock().unwrap_or_else(|e| e.into_inner());
        shadows.push((answer, fresh, name));
        Stats::bump(&self.stats.shadows);
    }
}

/// Whether code does nothing but build a list, a set or a function.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::List(_) | Expr::Lambda(_) => true,
        Expr::Attrs(node) => node.dynamic.is_empty() && node.rec.is_none(),
        _ => false,
    }
}

/// Whether the cell is a set that anyone may take.
fn is_known_set(cell: Value) -> bool {
    let value = cell.as_thunk().map_or(Some(cell), |thunk| thunk.forced());
    value.is_some_and(|value| value.as_attrs().is_some())
}

/// Whether the value consists of cells.
fn has_cells(value: Value) -> bool {
    value.as_attrs().is_some() || value.as_list().is_some() || value.is_told_apart_by_cell()
}
