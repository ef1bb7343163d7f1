//! A thread that fetches pages before they are used.
//!
//! On a virtual machine fresh pages are a quarter of the time that a large evaluation takes. Who uses up a step of fresh memory asks for
//! the next one here and goes on; if it comes there before this thread has, it fetches the pages by using them, as ever. Nothing waits for
//! this thread, and it takes no lock and allocates nothing.

use super::pages;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Thread;

/// What may be asked for at a time; where more is, what was asked for long ago is forgotten.
const PLACES: usize = 8;
const STACK: usize = 64 << 10;

static ASKED: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];
static NEXT: AtomicUsize = AtomicUsize::new(0);
static THREAD: OnceLock<Option<Thread>> = OnceLock::new();

/// Starts the thread, if there is none. Not to be called while memory is being allocated: it allocates.
pub(super) fn start() {
    // Miri has no pages.
    if cfg!(any(miri, not(target_os = "linux"))) {
        return;
    }
    THREAD.get_or_init(|| {
        let builder = std::thread::Builder::new().name("pages".to_owned()).stack_size(STACK);
        builder.spawn(serve).ok().map(|handle| handle.thread().clone())
    });
}

/// Whether there is somebody to ask.
pub(super) fn is_running() -> bool {
    matches!(THREAD.get(), Some(Some(_)))
}

/// Asks for a step of fresh memory, or for the stretch that begins there in a huge page.
pub(super) fn ask(step: usize, huge: bool) {
    let Some(Some(thread)) = THREAD.get() else { return };
    let place = NEXT.fetch_add(1, Ordering::Relaxed) % PLACES;
    // Steps are even.
    ASKED[place].store(step | usize::from(huge), Ordering::Relaxed);
    thread.unpark();
}

fn serve() {
    loop {
        let mut served = false;
        for place in &ASKED {
            let asked = place.swap(0, Ordering::Relaxed);
            if asked != 0 {
                served = true;
                pages::fetch_for_another(asked & !1, asked & 1 == 1);
            }
        }
        if !served {
            std::thread::park();
        }
    }
}
