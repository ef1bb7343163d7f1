//! What the machine has found out about a function: whether its calls are remembered, how many came to nothing, or that it is
//! still being measured (M4). Kept with the code; races only blur the counts.

use std::sync::atomic::{AtomicU8, Ordering};

/// The state of one function:
/// - 0: nothing of it is remembered, and nobody looks.
/// - 1 to 31: its calls are remembered because of what it is (a file's function, or the user's choice), and so many were not answered.
/// - 32 to 63: the same, and that has paid before.
/// - 64 to 127: the same, because calls were expensive.
/// - 128 on: it is being measured, and so many calls were cheap.
#[derive(Debug)]
pub struct Marks(AtomicU8);

const CHOSEN: u8 = 1;
const PAID: u8 = 32;
const EXPENSIVE: u8 = 64;
const MEASURED: u8 = 128;

/// What new functions begin with.
static FIRST: AtomicU8 = AtomicU8::new(0);

/// Has functions measured whose code is made from now on, or no longer.
pub fn measure_calls(measure: bool) {
    FIRST.store(if measure { MEASURED } else { 0 }, Ordering::Relaxed);
}

/// Whether functions are measured whose code is made now.
pub(crate) fn are_calls_measured() -> bool {
    FIRST.load(Ordering::Relaxed) != 0
}

/// What is to be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Plain,
    /// It is measured; so many were cheap before.
    Measured(u8),
    /// It is looked up because of what the function is; so many were not answered since one was.
    Chosen(u8),
    /// It is looked up because calls were expensive; so many were not answered since one was.
    Expensive(u8),
}

impl Default for Marks {
    fn default() -> Marks {
        Marks(AtomicU8::new(FIRST.load(Ordering::Relaxed)))
    }
}

impl Marks {
    /// Whether something is to be done with calls of the function.
    #[inline]
    pub fn is_remembered(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// What is to be done.
    pub fn standing(&self) -> Standing {
        match self.0.load(Ordering::Relaxed) {
            0 => Standing::Plain,
            n @ MEASURED.. => Standing::Measured(n - MEASURED),
            n @ EXPENSIVE.. => Standing::Expensive(n - EXPENSIVE),
            n @ PAID.. => Standing::Chosen(n - PAID),
            n => Standing::Chosen(n - CHOSEN),
        }
    }

    /// How many calls were cheap before, if the function is being measured.
    #[inline]
    pub fn measured(&self) -> Option<u8> {
        self.0.load(Ordering::Relaxed).checked_sub(MEASURED)
    }

    /// Has calls of the function remembered, whatever they cost.
    pub fn remember(&self) {
        if !matches!(self.standing(), Standing::Chosen(_)) {
            self.0.store(CHOSEN, Ordering::Relaxed);
        }
    }

    /// Has calls of the function remembered because one was expensive.
    pub fn admit(&self) {
        if matches!(self.standing(), Standing::Plain | Standing::Measured(_)) {
            self.0.store(EXPENSIVE, Ordering::Relaxed);
        }
    }

    /// Notes that one more call of a function that is being measured was cheap, after so many.
    #[inline]
    pub fn measure_on(&self, calls: u8) {
        self.0.store(MEASURED + 1 + calls, Ordering::Relaxed);
    }

    /// Counts calls that were cheap, or not answered.
    pub fn count(&self, calls: u8) {
        let n = self.0.load(Ordering::Relaxed);
        let last = match n {
            0 => return,
            MEASURED.. => u8::MAX,
            EXPENSIVE.. => MEASURED - 1,
            PAID.. => EXPENSIVE - 1,
            _ => PAID - 1,
        };
        self.0.store(n.saturating_add(calls).min(last), Ordering::Relaxed);
    }

    /// Begins to count anew: remembering has paid, or may.
    pub fn renew(&self) {
        let n = match self.standing() {
            Standing::Chosen(_) => PAID,
            Standing::Expensive(_) => EXPENSIVE,
            Standing::Plain | Standing::Measured(_) => return,
        };
        self.0.store(n, Ordering::Relaxed);
    }

    /// Whether remembering has paid, or may, as far as that is still known.
    pub fn has_paid(&self) -> bool {
        (PAID..EXPENSIVE).contains(&self.0.load(Ordering::Relaxed))
    }

    /// Ends it: the calls are not worth remembering.
    pub fn forget(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_never_changes_what_it_counts() {
        for begin in [CHOSEN, PAID, EXPENSIVE, MEASURED] {
            let marks = Marks(AtomicU8::new(begin));
            let kind = std::mem::discriminant(&marks.standing());
            (0..300).for_each(|n| marks.count(n as u8));
            assert_eq!(std::mem::discriminant(&marks.standing()), kind);
        }
        let marks = Marks(AtomicU8::new(0));
        marks.count(1);
        assert_eq!(marks.standing(), Standing::Plain);
        marks.remember();
        marks.count(1);
        marks.remember();
        assert_eq!((marks.standing(), marks.has_paid()), (Standing::Chosen(1), false));
        marks.renew();
        assert_eq!((marks.standing(), marks.has_paid()), (Standing::Chosen(0), true));
    }
}
