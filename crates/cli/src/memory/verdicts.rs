//! `Verdicts`: what was judged in a run. Threads that verify at the same time each have their own: most of what questions rest on
//! is theirs alone, and what is not costs less to judge twice than to wait for; groups of listings, which cost the most, they have in common. All see one state of the outside, so no two differ.

use super::lock;
use firn_memo::kept::{Counts, Judged};
use std::sync::Mutex;
use std::thread::{ThreadId, current};

/// What was judged, and by which thread last.
#[derive(Default)]
pub(super) struct Verdicts {
    idle: Mutex<Vec<(ThreadId, Judged)>>,
    /// Judges nothing: it has what all have in common.
    common: Mutex<Judged>,
}

impl Verdicts {
    /// Lets this thread judge, knowing what it has judged before, or else what somebody has who is not judging now.
    pub fn with<R>(&self, judge: impl FnOnce(&Judged) -> R) -> R {
        let thread = current().id();
        let judged = {
            let mut idle = lock(&self.idle);
            let at = idle.iter().position(|(of, _)| *of == thread).or(idle.len().checked_sub(1));
            at.map(|at| idle.swap_remove(at).1)
        };
        let judged = judged.unwrap_or_else(|| lock(&self.common).beside());
        let result = judge(&judged);
        lock(&self.idle).push((thread, judged));
        result
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        lock(&self.idle).iter().map(|(_, judged)| judged.counts()).fold(Counts::default(), Counts::and)
    }

    /// Nobody judges any more, and the process ends: what was judged is not taken apart.
    pub fn leave(&self) {
        std::mem::forget(std::mem::take(&mut *lock(&self.idle)));
    }

    /// Nodes have to be judged anew: trees have other roles now.
    pub fn forget_nodes(&self) {
        lock(&self.idle).iter().for_each(|(_, judged)| judged.forget_nodes());
    }
}
