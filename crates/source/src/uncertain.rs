//! Uncertain positions: a place where something may have been written, known to be this or another one. The memo hands them
//! out where it cannot tell, and whoever resolves one is noted, so that a program can begin again without the memo. They
//! take their numbers from the upper end of the position space.

use crate::Pos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

/// What the uncertain positions stand for, the first at the highest number.
static MEANT: RwLock<Vec<Pos>> = RwLock::new(Vec::new());
static SEEN: AtomicBool = AtomicBool::new(false);

/// The lowest number of an uncertain position: texts end before it.
pub(crate) const FIRST: u32 = u32::MAX - MOST as u32;
/// The most of them; more share the last, which says as little about any.
const MOST: usize = 1 << 20;

impl Pos {
    /// A position that may be this one or not; nowhere stays nowhere.
    pub fn uncertain(self) -> Pos {
        if !self.is_some() || self.is_uncertain() {
            return self;
        }
        let mut all = MEANT.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST {
            all.push(self);
        }
        Pos::from_number(u32::MAX - (all.len() - 1) as u32)
    }

    /// Whether nobody knows if it is the right one.
    #[inline]
    pub fn is_uncertain(self) -> bool {
        self.number() > FIRST
    }

    /// Whether an uncertain position was resolved, by anyone in this process.
    pub fn was_uncertain_seen() -> bool {
        SEEN.load(Ordering::Relaxed)
    }

    /// Forgets that: the program begins again.
    pub fn forget_uncertain_seen() {
        SEEN.store(false, Ordering::Relaxed);
    }

    /// What it stands for; notes that somebody wants to know.
    #[cold]
    pub fn seen_through(self) -> Pos {
        SEEN.store(true, Ordering::Relaxed);
        let index = (u32::MAX - self.number()) as usize;
        MEANT.read().unwrap_or_else(PoisonError::into_inner).get(index).copied().unwrap_or(Pos::NONE)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Origin, Pos, SourceFile};

    #[test]
    fn who_resolves_an_uncertain_position_is_noted() {
        let pos = SourceFile::register(Origin::Expression, b"one\ntwo".to_vec()).pos(4);
        let uncertain = pos.uncertain();
        assert!(uncertain.is_uncertain() && !pos.is_uncertain() && !Pos::NONE.uncertain().is_uncertain());
        assert_eq!(uncertain.uncertain(), uncertain);
        assert!(!Pos::was_uncertain_seen());
        assert_eq!(uncertain.resolve().map(|at| (at.line, at.column)), Some((2, 1)));
        assert!(Pos::was_uncertain_seen());
        Pos::forget_uncertain_seen();
        assert!(!Pos::was_uncertain_seen());
    }
}
