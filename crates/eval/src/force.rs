//! Forcing: a cell becomes a value in weak head normal form, once.

use crate::frame::{Frame, with_slots};
use crate::{Machine, Stats};
use firn_source::Pos;
use firn_value::{Body, Error, ErrorKind, Result, Slot, Thunk, ThunkState, Value, Work};
use std::sync::{Condvar, Mutex};
use std::time::Duration;


/// Which thread waits for which: used to find cycles across threads.
static WAITING: Mutex<Vec<(u32, u32)>> = Mutex::new(Vec::new());
static PUBLISHED: Condvar = Condvar::new();

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

    #[inline(never)]
    fn force_thunk(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        let Some(work) = thunk.claim() else { return self.force_claimed(thunk, pos) };
        Stats::bump(&self.stats.forces);
        let result = self.with_stack(|| self.perform(work, pos));
        match result {
            Ok(value) => {
                thunk.publish(value);
                self.wake();
                Ok(value)
            }
            Err(error) => self.failed(thunk, work, error),
        }
    }

    #[inline(always)]
    fn perform(&self, work: Work, pos: Pos) -> Result<Value> {
        match work {
            Work::Run(body, captures) => self.run(body, captures),
            Work::Apply(slots) => {
                let (function, args) = slots.split_first().expect("an application has a function");
                match args {
                    [a] => self.call(function.get(), &[a.get()], pos),
                    [a, b] => self.call(function.get(), &[a.get(), b.get()], pos),
                    _ => self.call(function.get(), &args.iter().map(Slot::get).collect::<Vec<_>>(), pos),
                }
            }
        }
    }

    /// Runs a body with its captures in a frame of its own.
    #[inline]
    pub(crate) fn run(&self, body: &'static Body, captures: &[Slot]) -> Result<Value> {
        if body.locals == 0 {
            return self.eval(&body.expr, &Frame { locals: &[], captures });
        }
        with_slots(body.locals as usize, |locals| self.eval(&body.expr, &Frame { locals, captures }))
    }

    #[cold]
    fn failed(&self, thunk: &'static Thunk, work: Work, error: Box<Error>) -> Result<Value> {
        if error.is_lasting() { thunk.fail(error.clone()) } else { thunk.restore(work) }
        self.wake();
        Err(error)
    }

    #[inline]
    fn wake(&self) {
        if !firn_value::single_threaded(true) {
            PUBLISHED.notify_all();
        }
    }

    /// The thunk is not ours to evaluate: it is done, failed, or being evaluated.
    #[cold]
    fn force_claimed(&self, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        loop {
            match thunk.state() {
                ThunkState::Forced(value) => return Ok(value),
                ThunkState::Failed(error) => return Err(Box::new(error.clone())),
                ThunkState::Suspended => return self.force_thunk(thunk, pos),
                ThunkState::Claimed(owner) if owner == Thunk::this_thread() => {
                    return Err(infinite_recursion(pos));
                }
                ThunkState::Claimed(owner) => self.wait_for(thunk, owner, pos)?,
            }
        }
    }

    /// Waits until another thread publishes, unless that thread (or one it waits for) waits for this one.
    fn wait_for(&self, thunk: &'static Thunk, owner: u32, pos: Pos) -> Result<()> {
        let me = Thunk::this_thread();
        let mut waiting = WAITING.lock().unwrap_or_else(|e| e.into_inner());
        waiting.push((me, owner));
        let result = loop {
            match thunk.state() {
                ThunkState::Claimed(now) if now == owner => {}
                _ => break Ok(()),
            }
            if reaches(&waiting, owner, me) {
                break Err(infinite_recursion(pos));
            }
            // The publisher does not take the lock, so a wake-up can be missed: look again after a moment.
            waiting = match PUBLISHED.wait_timeout(waiting, Duration::from_micros(500)) {
                Ok((guard, _)) => guard,
                Err(e) => e.into_inner().0,
            };
        };
        waiting.retain(|&(thread, _)| thread != me);
        result
    }
}

/// Whether following waits from `from` leads to `to`.
fn reaches(waiting: &[(u32, u32)], from: u32, to: u32) -> bool {
    let mut at = from;
    for _ in 0..=waiting.len() {
        if at == to {
            return true;
        }
        match waiting.iter().find(|&&(thread, _)| thread == at) {
            Some(&(_, next)) => at = next,
            None => return false,
        }
    }
    false
}

fn infinite_recursion(pos: Pos) -> Box<Error> {
    Error::new(ErrorKind::InfiniteRecursion, "infinite recursion encountered").at(pos)
}
