//! Fresh memory of the system, and in what pages it comes.
//!
//! Where there are huge pages, one is cleared in a third of the time of the 512 small ones in its place, and the processor finds it by
//! one entry of its table. On a virtual machine it may take eight times as long instead: such memory as the machine below has to find
//! first. So each huge page is timed, and after a slow one small pages are taken for a while. In a large heap another thread fetches either
//! sort ahead (`fetch_ahead.rs`).

use super::{fetch_ahead, heap_bytes};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The size of a huge page, and of the stretches that are made ready one by one.
pub(super) const HUGE: usize = 2 << 20;
/// What is fetched at a time of a stretch in small pages.
const STEP: usize = 512 << 10;

/// A heap that is larger gets small pages.
// PERF: on a virtual machine NixOS of nixpkgs 20.03 (290 MB) takes a tenth less processor time with huge pages, all of nixpkgs (1.5 GB) a
// fifth more.
const HUGE_HEAP: u64 = 256 << 20;

/// What small pages take to fetch, and to use: the processor has to look their places up.
const SLOW: Duration = Duration::from_micros(3000);
/// So many stretches get small pages after a slow huge one, at first; then twice as many.
const REST: u32 = 8;

/// A heap that is smaller gets no huge page before the place for it is needed: it would be much of its memory.
const LARGE_HEAP: u64 = 32 << 20;

static RESTING: AtomicU32 = AtomicU32::new(0);
static NEXT_REST: AtomicU32 = AtomicU32::new(REST);

// PERF: an alignment that `calloc` gives by itself: fresh pages come zeroed from the system and are touched only when
// used, where a larger alignment makes the allocator clear the whole block.
/// Fresh memory in small pages, aligned to 16, that is never given back; null if there is none.
pub(super) fn small(bytes: usize) -> *mut u8 {
    let layout = Layout::from_size_align(bytes, 16).expect("block size is reasonable");
    // SAFETY: the layout is not of size zero; the block is never freed (invariant 1).
    unsafe { System.alloc_zeroed(layout) }
}

/// The same in stretches, aligned to them: a [`Front`] is told before they are used.
pub(super) fn large(bytes: usize) -> Option<*mut u8> {
    // Miri knows no huge pages.
    if cfg!(miri) || bytes <= HUGE {
        return None;
    }
    let length = bytes.checked_next_multiple_of(HUGE)?.checked_add(HUGE)?;
    // SAFETY: new pages, wherever the system has room; never unmapped (invariant 1).
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    start.ok().map(|start| start.wrapping_byte_add(start.align_offset(HUGE)).cast())
}

/// How far the fresh memory of a block is ready.
#[derive(Clone, Copy)]
pub(super) struct Front {
    /// Where what is ready ends.
    pub at: usize,
    /// The pages of the stretch there, and of the next one.
    here: Pages,
    next: Pages,
    /// What stretches are that nobody has decided on.
    undecided: Pages,
}

#[derive(Clone, Copy, PartialEq)]
enum Pages {
    Undecided,
    Small,
    Huge,
}

impl Front {
    /// Of a block from [`large`] that begins there, or of one from [`small`] that ends there.
    pub const fn new(at: usize) -> Front {
        Front { at, here: Pages::Undecided, next: Pages::Undecided, undecided: Pages::Undecided }
    }

    /// Of a block from [`large`] that begins there and is to have small pages.
    pub const fn in_small_pages(at: usize) -> Front {
        Front { at, here: Pages::Small, next: Pages::Small, undecided: Pages::Small }
    }

    /// Makes ready what lies before `needed`, in a block that ends at `end`.
    pub fn advance(mut self, needed: usize, end: usize) -> Front {
        while self.at < needed {
            self.step(end);
        }
        self
    }

    /// Makes the next step ready, and asks for what comes behind it.
    fn step(&mut self, end: usize) {
        if self.here == Pages::Undecided {
            self.here = which();
            if self.here == Pages::Huge {
                fetch(std::ptr::with_exposed_provenance_mut(self.at));
            }
        }
        self.at = (self.at + if self.here == Pages::Huge { HUGE / 2 } else { STEP }).min(end);
        let behind = self.at.next_multiple_of(HUGE);
        if self.at == behind {
            (self.here, self.next) = (self.next, self.undecided);
        }
        if self.at == end || !fetch_ahead::is_running() {
            return;
        }
        if self.at + HUGE / 2 == behind && behind < end && self.next == Pages::Undecided && heap_bytes() >= LARGE_HEAP {
            self.next = which();
            if self.next == Pages::Huge {
                fetch_ahead::ask(behind, true);
            }
        }
        if self.here == Pages::Small {
            fetch_ahead::ask(self.at, false);
        }
    }
}

fn which() -> Pages {
    if wants_huge() { Pages::Huge } else { Pages::Small }
}

/// Fetches pages that another thread will use, or uses already.
pub(super) fn fetch_for_another(at: usize, huge: bool) {
    let began = worked();
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let start = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: a step or stretch of a block from `large`, which is never unmapped; neither advice changes what is read there.
        unsafe {
            if huge {
                let _ = madvise(start, HUGE, Advice::LinuxHugepage);
            }
            let _ = madvise(start, if huge { HUGE } else { STEP }, Advice::LinuxPopulateWrite);
        }
    }
    if huge {
        judge(worked().saturating_sub(began));
    }
}

fn wants_huge() -> bool {
    if heap_bytes() >= HUGE_HEAP {
        return false;
    }
    let resting = RESTING.load(Ordering::Relaxed);
    // Two threads may count as one: nothing hangs on the exact number.
    RESTING.store(resting.saturating_sub(1), Ordering::Relaxed);
    resting == 0
}

/// How long the thread has worked: what others do meanwhile on the same processor does not make a page slow.
fn worked() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the C library writes the one time that it is given. (rustix reads the kernel's own page instead, which valgrind hides.)
    let told = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if told == 0 { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) } else { Duration::ZERO }
}

/// Has a stretch become a huge page, if the system will.
fn fetch(stretch: *mut u8) {
    let began = worked();
    // SAFETY: a stretch of a block from `large`, which has room for it whole; nobody uses it yet. Whatever the system makes of the
    // advice, it stays what it is.
    unsafe {
        #[cfg(target_os = "linux")]
        let _ = rustix::mm::madvise(stretch.cast(), HUGE, rustix::mm::Advice::LinuxHugepage);
        stretch.write_volatile(0);
    }
    judge(worked().saturating_sub(began));
}

/// After a slow huge page small ones are taken for a while.
fn judge(took: Duration) {
    if took > SLOW {
        let rest = NEXT_REST.load(Ordering::Relaxed);
        NEXT_REST.store(rest.saturating_mul(2), Ordering::Relaxed);
        RESTING.store(rest, Ordering::Relaxed);
    }
}
