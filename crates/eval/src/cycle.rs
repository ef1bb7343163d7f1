//! The definitions that need each other, when infinite recursion was found: the thunks between the one that was met again
//! and itself. They are noted while the error passes through them, so that nothing is kept where nothing fails.

use crate::place_of;
use firn_source::Pos;
use firn_value::{Thunk, Work};

/// Where the thunks of a circle are defined, the innermost first.
#[derive(Debug, Default)]
pub(crate) struct Cycle {
    /// The thunk that was met again; none once the circle is closed.
    target: Option<&'static Thunk>,
    steps: Vec<Pos>,
}

impl Cycle {
    /// A circle through a thunk that was just met again.
    pub fn of(target: &'static Thunk) -> Cycle {
        Cycle { target: Some(target), steps: Vec::new() }
    }

    /// The error passes through a thunk.
    pub fn leave(&mut self, thunk: &'static Thunk, work: Work) {
        let Some(target) = self.target else { return };
        self.steps.push(match work {
            Work::Run(body, _) => body.pos,
            Work::Apply(application) => application.function().map_or(Pos::NONE, place_of),
            Work::Transport(..) => Pos::NONE,
        });
        if std::ptr::eq(thunk, target) {
            self.target = None;
        }
    }

    /// The places, beginning with the thunk that was met again; none if no circle was closed.
    pub fn places(&self) -> Vec<Pos> {
        match self.target {
            None => self.steps.iter().rev().copied().filter(|pos| pos.is_some()).collect(),
            Some(_) => Vec::new(),
        }
    }
}
