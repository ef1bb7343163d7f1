//! Which cells are evaluated shows where unevaluated parts of a value are printed, and answers from memory leave cells
//! unevaluated that a plain evaluation would have evaluated. So whoever shows an unevaluated cell after an answer from memory is in
//! doubt, and a program that can begins again without the memo. So is whoever shows a function that was built before it was
//! looked at: whether it ever was is not known. The state is the process's.

use std::sync::atomic::{AtomicBool, Ordering};

static ANSWERED: AtomicBool = AtomicBool::new(false);
static DOUBTFUL: AtomicBool = AtomicBool::new(false);
static CAN_BEGIN_AGAIN: AtomicBool = AtomicBool::new(false);

/// Notes an answer from memory.
pub(crate) fn answered() {
    ANSWERED.store(true, Ordering::Relaxed);
}

/// Notes that an unevaluated cell is shown.
pub fn unevaluated_shown() {
    if ANSWERED.load(Ordering::Relaxed) {
        DOUBTFUL.store(true, Ordering::Relaxed);
    }
}

/// Notes that a function is shown of which nobody knows whether Nix would have evaluated its cell.
pub fn function_shown() {
    DOUBTFUL.store(true, Ordering::Relaxed);
}

/// Says that the program begins again when what it shows is in doubt: then nothing doubtful must be printed.
pub fn can_begin_again(can: bool) {
    CAN_BEGIN_AGAIN.store(can, Ordering::Relaxed);
}

/// Whether what was shown is in doubt and the program can begin again.
pub fn must_begin_again() -> bool {
    DOUBTFUL.load(Ordering::Relaxed) && CAN_BEGIN_AGAIN.load(Ordering::Relaxed)
}

/// Forgets all of it: the program begins again.
pub fn begin_again() {
    ANSWERED.store(false, Ordering::Relaxed);
    DOUBTFUL.store(false, Ordering::Relaxed);
}
