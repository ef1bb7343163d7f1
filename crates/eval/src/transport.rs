//! Forcing a cell that stands for one of another instance.
//!
//! If the original has a value that was produced quietly, that value is taken, carried over. If it was not evaluated yet, it is
//! evaluated now, on behalf of this cell (*ahead*): nothing is printed and no failure is kept, and if it comes to either,
//! the attempt is given up. In every other case the original's own code runs, with what it captured carried over: that is
//! what a plain evaluation does. An original whose value was for anyone to take has its code no more: then the program begins
//! again.

use crate::Machine;
use crate::frame::heap_slots;
use firn_memo::{Map, doubt};
use firn_memo::kept::labels;
use firn_source::Pos;
use firn_value::{Claim, ErrorKind, Label, Production, Result, Thunk, ThunkState, Value, Work};
use std::sync::Arc;

impl Machine {
    /// The value of a cell that stands for `original` by the map of a number.
    #[inline(never)]
    pub(crate) fn transport(&self, number: u32, original: Value, pos: Pos) -> Result<Value> {
        let memo = &self.shared.memo;
        let map = memo.maps.get(number);
        let Some(thunk) = original.as_thunk() else { return Ok(map.carry(original, &memo.instances)) };
        if map.may_share(&memo.instances) && !memo.is_deep() && !memo.is_left_alone(original) {
            let value = self.value_for_others(thunk, &map, pos)?;
            if let Some(value) = value
                && map.may_share(&memo.instances)
            {
                firn_memo::Stats::bump(&memo.stats.shared);
                return Ok(map.carry(value, &memo.instances));
            }
        }
        firn_memo::Stats::bump(&memo.stats.rerun);
        self.run_again(&map, thunk, pos)
    }

    fn value_for_others(&self, thunk: &'static Thunk, map: &Map, pos: Pos) -> Result<Option<Value>> {
        match settled(thunk) {
            ThunkState::Forced(value) => Ok(Some(value)),
            ThunkState::Ahead(value, label) | ThunkState::Labelled(value, label) => {
                labels::take(label);
                Ok(Some(value))
            }
            ThunkState::Noisy(..) | ThunkState::Failed(..) | ThunkState::Claimed(_) => Ok(None),
            ThunkState::Suspended => {
                self.on_behalf.borrow_mut().push(map.from);
                self.aheads.set(self.aheads.get() + 1);
                self.set_fence();
                let result = self.force(thunk.value(), pos);
                self.aheads.set(self.aheads.get() - 1);
                self.set_fence();
                self.on_behalf.borrow_mut().pop();
                match result {
                    // Another thread may have been faster, and noisy.
                    Ok(_) if matches!(thunk.state(), ThunkState::Noisy(..)) => Ok(None),
                    Ok(value) => {
                        firn_memo::Stats::bump(&self.shared.memo.stats.ahead);
                        Ok(Some(value))
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted || doubt::must_begin_again() => Err(error),
                    Err(error) => {
                        error.rewind();
                        self.shared.memo.leave_alone(thunk.value());
                        Ok(None)
                    }
                }
            }
        }
    }

    /// Runs the original's code with what it captured carried over.
    fn run_again(&self, map: &Arc<Map>, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        let memo = &self.shared.memo;
        let carry = |value: Value| map.carry(value, &memo.instances);
        match thunk.retained() {
            Some(Work::Run(body, captures)) => {
                let slots = heap_slots(captures.len());
                slots.iter().zip(captures).for_each(|(slot, capture)| slot.set(carry(capture.get())));
                self.run(body, &slots)
            }
            Some(Work::Apply(application)) => {
                let words: Vec<Value> = application.parts().map(carry).collect();
                self.call(words[0], &words[1..], pos)
            }
            Some(Work::Transport(inner, original)) => {
                let through = memo.maps.through(map, &memo.maps.get(inner), &memo.instances);
                self.transport(through.number, original, pos)
            }
            None => {
                doubt::code_missed();
                Err(crate::force::postponed())
            }
        }
    }

    /// The end of a production that was noisy, observed something or ran on behalf of another instance.
    #[inline(never)]
    pub(crate) fn publish_specially(&self, claim: Claim, production: Production, value: Value) -> Result<Value> {
        let stamp = production.stamp();
        let label = labels::handed_on(production, Some(value));
        if !firn_memo::Instances::is_call(stamp) {
            // What is outside all calls is produced once, whoever needs it.
            publish(claim, value, label);
            return Ok(value);
        }
        let ahead = !self.is_here() && self.is_ahead(stamp);
        match (production.is_noisy(), ahead) {
            (true, true) => {
                claim.restore();
                return Err(crate::force::postponed());
            }
            (true, false) => {
                claim.publish_noisy(value, label);
                self.noise()?;
            }
            (false, true) => claim.publish_ahead(value, label),
            (false, false) => publish(claim, value, label),
        }
        Ok(value)
    }
}

/// The state of a thunk once no other thread works on it, unless that thread waits for this one.
fn settled(thunk: &'static Thunk) -> ThunkState {
    loop {
        match thunk.state() {
            ThunkState::Claimed(owner) if owner != Thunk::this_thread() && thunk.wait(owner, true) => {}
            state => return state,
        }
    }
}

/// Publishes a result that is anyone's to take, with its label.
fn publish(claim: Claim, value: Value, label: Label) {
    if label != 0 { claim.publish_labelled(value, label) } else { claim.publish(value) }
}
