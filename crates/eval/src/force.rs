//! Forcing: a cell becomes a value in weak head normal form, once.

use crate::frame::{Frame, MOST_SLOTS, heap_slots, stack_slots};
use crate::cycle::Cycle;
use crate::times::{Doing, doing};
use crate::{Machine, Manner, Stats};
use firn_memo::kept::labels;
use firn_source::Pos;
use firn_value::{Application, Body, Claim, Error, ErrorKind, Function, Label, Production, Result, Slot, Thunk, ThunkState, Value, Work};

impl Machine {
    /// The value in weak head normal form. `pos` is where it is needed, for messages.
    #[inline]
    pub fn force(&self, value: Value, pos: Pos) -> Result<Value> {
        match value.as_thunk() {
            None => Ok(value),
            Some(thunk) => match thunk.forced() {
                Some(value) => Ok(value),
                None => self.force_thunk(thunk, pos),
            },
        }
    }

    /// The value of a thunk that has been evaluated.
    #[inline(always)]
    pub(crate) fn known(&self, thunk: &'static Thunk) -> Option<Value> {
        match thunk.forced() {
            Some(value) => Some(value),
            None if !self.labelled.get() => None,
            None => taken(thunk),
        }
    }

    #[inline(never)]
    pub(crate) fn force_thunk(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        doing(|| Doing::Force, || {
            if !self.is_clear() {
                return self.force_carefully(thunk, pos);
            }
            self.force_here(thunk, pos)
        })
    }

    /// Forces a thunk of the running instance while the running production has nothing but values to keep.
    // PERF: with the memo and without it, and where values may have labels, this is the same code: nearly every thunk is of the running instance,
    // and quiet.
    #[inline(always)]
    fn force_here(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        let Some(claim) = thunk.claim_code_here(self.thread) else { return self.force_otherwise(thunk, pos) };
        Stats::bump(&self.stats.forces);
        let (body, captures) = claim.code();
        match self.run(body, captures) {
            Ok(value) if claim.ends_evenly() => {
                claim.publish_evenly(value);
                Ok(value)
            }
            Ok(value) if claim.is_quiet() => {
                claim.publish(value);
                Ok(value)
            }
            result => self.end_here(thunk, claim, result),
        }
    }

    /// The same for what is no code, or not of the running instance, or evaluated and has a label, or where the running production has one.
    #[inline(never)]
    fn force_otherwise(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        if self.labelled.get() {
            return self.force_carefully(thunk, pos);
        }
        if thunk.is_code() { self.force_elsewhere(thunk, pos) } else { self.force_application_here(thunk, pos) }
    }

    /// Forces with little stack, on behalf of another instance, where values may have labels, or parts of an earlier evaluation are taken.
    #[inline(never)]
    fn force_carefully(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        if !self.labelled.get() {
            return self.force_watched(thunk, pos);
        }
        if self.learning.following.get().is_some() {
            return self.force_following(thunk, pos);
        }
        match thunk.labelled() {
            Some((value, label)) => take_value(thunk, value, label),
            None => self.force_labelled(thunk, pos),
        }
    }

    /// The same while parts are taken.
    #[inline(never)]
    fn force_following(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        match self.learning.following.get() {
            Some(following) if following.may_have(thunk) => self.force_followed(following, thunk, pos),
            _ => self.force_labelled(thunk, pos),
        }
    }

    /// Forces without looking for a part.
    #[inline(never)]
    pub(crate) fn force_anew(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        match taken(thunk) {
            Some(value) => Ok(value),
            None => self.force_labelled(thunk, pos),
        }
    }

    /// Forces what is not evaluated where values may have labels, in a production of its own.
    // PERF: three tenths of what jobs of nixpkgs force is forced by who has observed something already.
    #[inline(always)]
    fn force_labelled(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        if self.is_stack_low() || !self.is_here() {
            return self.force_watched(thunk, pos);
        }
        let Some(claim) = thunk.claim_code(self.thread) else { return self.force_application_here(thunk, pos) };
        Stats::bump(&self.stats.forces);
        let outer = claim.begin();
        let (body, captures) = claim.code();
        let result = if claim.is_elsewhere(outer) { self.run_in_instance(&claim) } else { self.run(body, captures) };
        let production = Production::end(outer);
        match result {
            Ok(value) if !production.is_marked() => {
                claim.publish(value);
                Ok(value)
            }
            result => self.end_production(thunk, claim, production, result),
        }
    }

    /// Runs the code of a thunk of another instance.
    #[inline(never)]
    fn run_in_instance(&self, claim: &Claim) -> Result<Value> {
        let around = self.running.enter(claim.stamp());
        let (body, captures) = claim.code();
        let result = self.run(body, captures);
        self.running.leave(around);
        result
    }

    /// Forces an application of the running instance.
    #[inline(never)]
    fn force_application_here(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        let Some(claim) = thunk.claim_application_here(self.thread) else { return self.force_watched(thunk, pos) };
        Stats::bump(&self.stats.forces);
        match self.apply(claim.application(), pos) {
            Ok(value) if claim.ends_evenly() => {
                claim.publish_evenly(value);
                Ok(value)
            }
            Ok(value) if claim.is_quiet() => {
                claim.publish(value);
                Ok(value)
            }
            result => self.end_here(thunk, claim, result),
        }
    }

    /// Forces code of another instance.
    #[inline(never)]
    fn force_elsewhere(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        // PERF: nearly all of this code is data in files of its own, such as who maintains a package.
        if let Some(value) = thunk.code_alone().and_then(|body| self.constant(body)) {
            Stats::bump(&self.stats.forces);
            thunk.publish_constant(value);
            return Ok(value);
        }
        self.run_elsewhere(thunk, pos)
    }

    /// Forces code of another instance that is no constant.
    #[inline(never)]
    fn run_elsewhere(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        if Production::current().is_marked() {
            return self.force_watched(thunk, pos);
        }
        let Some(claim) = thunk.claim_code(self.thread) else { return self.force_watched(thunk, pos) };
        Stats::bump(&self.stats.forces);
        let outer = claim.begin();
        let result = self.run_in_instance(&claim);
        let production = Production::end(outer);
        match result {
            Ok(value) if claim.ends_evenly() => {
                claim.publish_evenly(value);
                Ok(value)
            }
            result => self.end_production(thunk, claim, production, result),
        }
    }

    /// Ends a production that was not changed for the thunk.
    #[inline(never)]
    fn end_here(&self, thunk: &'static Thunk, claim: Claim, result: Result<Value>) -> Result<Value> {
        self.end_production(thunk, claim, Production::current(), result)
    }

    /// Ends a production with a closer look at what is to be kept of it.
    #[inline(never)]
    fn end_production(&self, thunk: &'static Thunk, claim: Claim, production: Production, result: Result<Value>) -> Result<Value> {
        match result {
            Ok(value) if production.is_marked() || !self.is_here() => self.publish_specially(claim, production, value),
            Ok(value) => {
                claim.publish(value);
                Ok(value)
            }
            Err(error) => self.failed(thunk, claim, production, error),
        }
    }

    /// Forces whatever state and instance the thunk is of.
    #[inline(never)]
    fn force_watched(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        let Some(claim) = thunk.claim_by(self.thread) else { return self.force_claimed(thunk, pos) };
        Stats::bump(&self.stats.forces);
        let outer = claim.begin();
        let around = claim.is_elsewhere(outer).then(|| self.running.enter(claim.stamp()));
        // PERF: nearly every thunk is code; what else there is stays out of the way.
        let result = match claim.body() {
            Some((body, captures)) if !self.is_stack_low() => self.run(body, captures),
            _ => self.with_stack(|| self.perform(claim.work(), pos)),
        };
        if let Some(around) = around {
            self.running.leave(around);
        }
        let production = Production::end(outer);
        self.end_production(thunk, claim, production, result)
    }

    /// Whether nothing is evaluated on behalf of another instance.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.aheads.get() == 0
    }

    #[inline(never)]
    fn perform(&self, work: Work, pos: Pos) -> Result<Value> {
        match work {
            Work::Run(body, captures) => self.run(body, captures),
            Work::Apply(application) => self.apply(application, pos),
            Work::Transport(map, original) => self.transport(map, original, pos),
        }
    }

    #[inline(never)]
    fn apply(&self, application: Application, pos: Pos) -> Result<Value> {
        match application {
            Application::Item(item) => match item.name() {
                Some(name) => self.call(item.function(), &[name, item.last()], pos),
                None => self.apply_to_one(item.function(), item.last(), pos),
            },
            Application::Slots([function, a]) => self.apply_to_one(function.get(), a.get(), pos),
            Application::Slots([function, a, b]) => self.call(function.get(), &[a.get(), b.get()], pos),
            Application::Slots(slots) => {
                let (function, args) = slots.split_first().expect("an application has a function");
                self.call(function.get(), &args.iter().map(Slot::get).collect::<Vec<_>>(), pos)
            }
        }
    }

    // PERF: what `map` and its kin make: a function of the program with all its arguments.
    #[inline(always)]
    fn apply_to_one(&self, function: Value, argument: Value, pos: Pos) -> Result<Value> {
        match function.as_function() {
            Some(Function::Closure(closure)) if closure.lambda().arity() == 1 => self.call_closure(closure, &[], &[argument], pos),
            _ => self.call(function, &[argument], pos),
        }
    }

    /// Runs a body with its captures in a frame of its own.
    #[inline(always)]
    pub(crate) fn run(&self, body: &'static Body, captures: &[Slot]) -> Result<Value> {
        if body.locals == 0 {
            return self.eval_node(&body.expr, Frame::new(body, &[], captures));
        }
        self.run_with_locals(body, captures)
    }

    #[inline(never)]
    fn run_with_locals(&self, body: &'static Body, captures: &[Slot]) -> Result<Value> {
        if body.locals as usize > MOST_SLOTS {
            return self.run_in(body, captures, &heap_slots(body.locals as usize));
        }
        stack_slots!(locals, MOST_SLOTS, body.locals as usize);
        self.eval(&body.expr, Frame::new(body, locals, captures))
    }

    #[inline(never)]
    fn run_in(&self, body: &'static Body, captures: &[Slot], locals: &[Slot]) -> Result<Value> {
        self.eval(&body.expr, Frame::new(body, locals, captures))
    }

    #[cold]
    fn failed(&self, thunk: &'static Thunk, claim: Claim, production: Production, error: Box<Error>) -> Result<Value> {
        if error.kind() == ErrorKind::InfiniteRecursion {
            self.cycle.borrow_mut().leave(thunk, claim.work());
        }
        let label = labels::handed_on(production, None);
        let ahead = self.is_ahead(production.stamp());
        if ahead {
            self.shared.memo.leave_alone(thunk.value());
        } else if production.is_noisy() && firn_memo::Instances::is_call(production.stamp()) {
            // Whoever catches the failure is as noisy; an attempt for others ends with this failure anyway.
            let _ = self.noise();
        }
        match self.manner {
            _ if ahead => claim.restore(),
            _ if !self.is_remembered(&error) => claim.restore(),
            Manner::Alone => {
                claim.fail(error.share(), label);
                if !self.is_here() {
                    error.mark(true);
                }
            }
            _ => claim.fail(Box::new((*error).clone()), label),
        }
        Err(error)
    }

    /// Whether thunks that fail with the error stay failed.
    pub(crate) fn is_remembered(&self, error: &Error) -> bool {
        match self.manner {
            Manner::Alone => error.is_lasting(),
            Manner::Beside => error.is_lasting() && error.kind() != ErrorKind::InfiniteRecursion,
            Manner::Ahead => false,
        }
    }

    /// The thunk is not ours to evaluate: it is done, failed, or being evaluated.
    #[cold]
    fn force_claimed(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        loop {
            match thunk.state() {
                ThunkState::Forced(value) => return Ok(value),
                ThunkState::Noisy(value, label) => {
                    labels::take(label);
                    self.noise()?;
                    return Ok(value);
                }
                ThunkState::Ahead(value, label) => {
                    labels::take(label);
                    if !self.is_ahead(thunk.stamp()) {
                        thunk.settle();
                    }
                    return Ok(value);
                }
                ThunkState::Labelled(value, label) => {
                    labels::take(label);
                    return Ok(value);
                }
                ThunkState::Failed(error, label) => {
                    labels::take(label);
                    if self.manner != Manner::Alone {
                        return Err(Box::new(error.clone()));
                    }
                    let error = error.raise();
                    if !self.is_here() {
                        // A cell of the attempt's own was made with a failure that may come from further in.
                        error.mark(!self.is_ahead(thunk.stamp()));
                    }
                    return Err(error);
                }
                ThunkState::Suspended => return self.force_thunk(thunk, pos),
                // Another thread's claim is waited for, unless that thread waits for this one.
                ThunkState::Claimed(owner) if owner == Thunk::this_thread() => {
                    *self.cycle.borrow_mut() = Cycle::of(thunk);
                    return Err(infinite_recursion(pos));
                }
                ThunkState::Claimed(owner) if thunk.wait(owner, self.manner == Manner::Ahead) => {}
                ThunkState::Claimed(_) if self.manner == Manner::Alone => return Err(infinite_recursion(pos)),
                ThunkState::Claimed(_) => return Err(postponed()),
            }
        }
    }
}

/// The value of a thunk with a label, which the running production takes.
#[inline]
fn taken(thunk: &'static Thunk) -> Option<Value> {
    let (value, label) = thunk.labelled()?;
    take_value(thunk, value, label).ok()
}

/// The running production takes the value of a thunk, which has this label.
// PERF: more than half of what jobs of nixpkgs take was evaluated before there was a ground, and is taken again and again.
#[inline(never)]
fn take_value(thunk: &'static Thunk, value: Value, label: Label) -> Result<Value> {
    if labels::take_value(label) {
        thunk.forget_label();
    }
    Ok(value)
}

/// What is given up for now, to be evaluated again in its turn.
#[cold]
pub(crate) fn postponed() -> Box<Error> {
    Error::new(ErrorKind::Postponed, "evaluation was postponed")
}

fn infinite_recursion(pos: Pos) -> Box<Error> {
    Error::new(ErrorKind::InfiniteRecursion, "infinite recursion encountered").at(pos)
}

/// NIX: where a cell says it is from when nothing else does: a function's place, also that of an application not yet made.
pub fn place_of(cell: Value) -> Pos {
    let mut value = cell;
    let mut done = 0;
    loop {
        if let Some(thunk) = value.as_thunk() {
            match (thunk.applied_function(), thunk.forced()) {
                (Some(function), _) | (None, Some(function)) => value = function,
                // Another thread works on it: what it is for this one shows when that is over.
                (None, None) => match thunk.state() {
                    ThunkState::Claimed(owner) if owner != Thunk::this_thread() && thunk.wait(owner, true) => {}
                    ThunkState::Forced(result) | ThunkState::Noisy(result, _) | ThunkState::Ahead(result, _) => value = result,
                    // Where a function is from shows in messages only.
                    ThunkState::Labelled(result, _) => value = result,
                    _ => return Pos::NONE,
                },
            }
            continue;
        }
        match value.as_function() {
            Some(Function::Closure(closure)) => return closure.lambda().pos_at(done),
            Some(Function::Partial(partial)) => {
                done = partial.args().len();
                value = partial.function();
            }
            Some(Function::Primop(_)) | None => return Pos::NONE,
        }
    }
}
