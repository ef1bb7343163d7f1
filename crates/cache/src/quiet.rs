//! A limit on the size of files makes writing fail with an error, not with a signal that ends the process.

use unix::sys::signal::{SigSet, Signal};

/// Runs `write`, having blocked the signal for too large files in this thread for good: unblocking it would deliver one
/// that is pending.
pub(crate) fn quietly<T>(write: impl FnOnce() -> T) -> T {
    let mut signal = SigSet::empty();
    signal.add(Signal::SIGXFSZ);
    // Where it cannot be blocked the signal does what it always did.
    let _ = signal.thread_block();
    write()
}
