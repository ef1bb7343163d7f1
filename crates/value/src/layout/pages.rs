//! Fresh memory of the system, and in what pages it comes.
//!
//! Where there are huge pages, one is cleared in a third of the time of the 512 small ones in its place, and the processor finds it by
//! one entry of its table. On a virtual machine it may take eight times as long instead: such memory as the machine below has to find
//! first. So each huge page is timed, and after a slow one small pages are taken for a while.

use super::heap_bytes;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The size of a huge page, and of the stretches that are made ready one by one.
pub(super) const HUGE: usize = 2 << 20;

/// A heap that is larger gets small pages.
// PERF: on a virtual machine NixOS of nixpkgs 20.03 (290 MB) takes a tenth less processor time with huge pages, all of nixpkgs (1.5 GB) a
// fifth more.
const HUGE_HEAP: u64 = 256 << 20;

/// What small pages take to fetch, and to use: the processor has to look their places up.
const SLOW: Duration = Duration::from_micros(3000);
/// So many stretches get small pages after a slow huge one, at first; then twice as many.
const REST: u32 = 8;

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

/// The same in stretches, aligned to them: [`ready`] is told before they are used.
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

/// Makes ready the stretches from `at`, which begins one, that lie before `needed`, in a block that ends at `end`. Gives where they end.
pub(super) fn ready(mut at: usize, needed: usize, end: usize) -> usize {
    while at < needed {
        if wants_huge() {
            fetch(std::ptr::with_exposed_provenance_mut(at));
        }
        at = (at + HUGE).min(end);
    }
    at
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
    if worked().saturating_sub(began) > SLOW {
        let rest = NEXT_REST.load(Ordering::Relaxed);
        NEXT_REST.store(rest.saturating_mul(2), Ordering::Relaxed);
        RESTING.store(rest, Ordering::Relaxed);
    }
}
