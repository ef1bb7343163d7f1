//! A schedule that is not the usual one, for tests (E7): before some claims a thread lets others run, so that races which
//! are rare on an idle machine happen often. Off unless [`perturb_schedule`] is called before threads start.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The seed; zero is off.
static SEED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Lets threads yield at random before they claim thunks. The same seed gives each thread the same sequence of choices.
pub fn perturb_schedule(seed: u64) {
    SEED.store(seed, Ordering::SeqCst);
}

/// Lets another thread run, now and then, if the schedule is perturbed.
#[inline]
pub(super) fn perhaps_yield() {
    let seed = SEED.load(Ordering::Relaxed);
    if seed != 0 {
        choose(seed);
    }
}

#[cold]
fn choose(seed: u64) {
    STATE.with(|state| {
        let mut x = state.get();
        if x == 0 {
            x = seed ^ u64::from(super::Thunk::this_thread()).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        state.set(x);
        if x.is_multiple_of(4096) {
            std::thread::sleep(Duration::from_micros(100));
        } else if x.is_multiple_of(32) {
            std::thread::yield_now();
        }
    });
}
