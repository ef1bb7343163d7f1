//! `Tally`: what a server has seen since it started, for the page.

use super::shelf::{Merged, Survey};
use crate::object::Kind;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Pushes that are remembered for the page.
const RECENT: usize = 20;

/// Counts of a server.
pub(super) struct Tally {
    now: fn() -> i64,
    counted: Mutex<Counted>,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    /// Seconds since 1970 when the server started.
    pub started: i64,
    /// What there is.
    pub survey: Survey,
    /// Questions that were asked and had answers.
    pub found: u64,
    /// Questions that were asked and had none.
    pub missed: u64,
    /// Bytes given out.
    pub given: u64,
    /// Bytes taken.
    pub taken: u64,
    /// Answers taken.
    pub pushed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// The last pushes, newest first.
    pub recent: VecDeque<Push>,
}

/// One push.
#[derive(Clone, Debug)]
pub(super) struct Push {
    pub at: i64,
    pub question: String,
    pub attribute: String,
    pub signer: String,
    pub new: u64,
}

impl Tally {
    pub(super) fn new(survey: &Survey, now: fn() -> i64) -> Tally {
        let counted = Counted { started: now(), survey: *survey, ..Counted::default() };
        Tally { now, counted: Mutex::new(counted) }
    }

    fn add(&self, add: impl FnOnce(&mut Counted)) {
        add(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn read(&self) -> (i64, Counted) {
        ((self.now)(), self.counted.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Something was asked for.
    pub(super) fn asked(&self, kind: Kind, given: Option<usize>) {
        self.add(|counted| {
            if kind == Kind::Index {
                counted.found += u64::from(given.is_some());
                counted.missed += u64::from(given.is_none());
            }
            counted.given += given.unwrap_or(0) as u64;
        });
    }

    pub(super) fn refused(&self) {
        self.add(|counted| counted.refused += 1);
    }

    /// A node or an answer was taken.
    pub(super) fn took(&self, kind: Kind, bytes: usize) {
        self.add(|counted| {
            counted.survey.objects[kind as usize] += 1;
            counted.survey.bytes[kind as usize] += bytes as u64;
            counted.taken += bytes as u64;
        });
    }

    /// An index was merged.
    pub(super) fn merged(&self, question: String, bytes: usize, merged: Merged) {
        let at = (self.now)();
        self.add(|counted| {
            counted.survey.objects[Kind::Index as usize] += u64::from(merged.first);
            let size = &mut counted.survey.bytes[Kind::Index as usize];
            *size = size.saturating_add_signed(merged.grown);
            counted.taken += bytes as u64;
            counted.pushed += merged.new;
            let Merged { attribute, signer, new, .. } = merged;
            if new > 0 {
                counted.recent.push_front(Push { at, question, attribute, signer, new });
                counted.recent.truncate(RECENT);
            }
        });
    }
}
