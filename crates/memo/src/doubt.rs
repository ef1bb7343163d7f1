//! What an answer from memory may make visible, and who begins again because of it.
//!
//! Which cells are evaluated shows where unevaluated parts of a value are printed, and answers leave cells unevaluated that a
//! plain evaluation would have evaluated. So whoever shows an unevaluated cell after an answer is in doubt, and begins
//! again without the memo. So is whoever resolves an uncertain position, and whoever shows a function that was built before it
//! was looked at: whether it ever was is not known. And whoever would have to run the code of a cell that let its captures go when it
//! was evaluated. The state is the process's.

use firn_source::Pos;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

static ANSWERED: AtomicBool = AtomicBool::new(false);
static UNEVALUATED: AtomicBool = AtomicBool::new(false);
static CODE: AtomicBool = AtomicBool::new(false);
static PART: AtomicBool = AtomicBool::new(false);
static FUNCTION: AtomicBool = AtomicBool::new(false);
static REASONS: AtomicU8 = AtomicU8::new(Reasons::None as u8);

/// What a program begins again for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reasons {
    /// Nothing.
    None,
    /// What answers from memory leave in doubt.
    Answers,
    /// That, and functions of which nobody knows whether Nix would have evaluated their cells.
    All,
}

/// Notes an answer from memory.
pub(crate) fn answered() {
    ANSWERED.store(true, Ordering::Relaxed);
}

/// Whether there was an answer from memory.
pub fn is_answered() -> bool {
    ANSWERED.load(Ordering::Relaxed)
}

/// Notes that a part of an earlier evaluation was taken.
pub fn part_taken() {
    answered();
}

/// Notes that parts were taken, and that the store lacks what they name, or the evaluation failed: what it would have said is not known.
pub fn part_missed() {
    PART.store(true, Ordering::Relaxed);
}

/// Notes that an unevaluated cell is shown.
pub fn unevaluated_shown() {
    if is_answered() {
        UNEVALUATED.store(true, Ordering::Relaxed);
    }
}

/// Notes that the code of an evaluated cell would have to run once more, and is there no longer.
pub fn code_missed() {
    CODE.store(true, Ordering::Relaxed);
}

/// Takes that back: what would have run was an answer that is only looked at. Tells whether there was anything to take back.
pub fn forget_missed_code() -> bool {
    CODE.swap(false, Ordering::Relaxed)
}

/// Notes that a function is shown of which nobody knows whether Nix would have evaluated its cell.
pub fn function_shown() {
    FUNCTION.store(true, Ordering::Relaxed);
}

/// Says what the program begins again for: then nothing that is in doubt for that reason must be printed.
pub fn begin_again_for(reasons: Reasons) {
    REASONS.store(reasons as u8, Ordering::Relaxed);
}

/// Whether the program may begin again.
pub fn may_begin_again() -> bool {
    REASONS.load(Ordering::Relaxed) != Reasons::None as u8
}

/// Whether what was shown is in doubt and the program begins again for that.
pub fn must_begin_again() -> bool {
    let reasons = REASONS.load(Ordering::Relaxed);
    let answers = || UNEVALUATED.load(Ordering::Relaxed) || CODE.load(Ordering::Relaxed) || PART.load(Ordering::Relaxed) || Pos::was_uncertain_seen();
    reasons != Reasons::None as u8 && (answers() || reasons == Reasons::All as u8 && FUNCTION.load(Ordering::Relaxed))
}

/// Forgets all of it: the program begins again. Tells whether functions may have been a reason.
pub fn begin_again() -> bool {
    ANSWERED.store(false, Ordering::Relaxed);
    UNEVALUATED.store(false, Ordering::Relaxed);
    CODE.store(false, Ordering::Relaxed);
    PART.store(false, Ordering::Relaxed);
    FUNCTION.store(false, Ordering::Relaxed);
    Pos::forget_uncertain_seen();
    REASONS.load(Ordering::Relaxed) == Reasons::All as u8
}
