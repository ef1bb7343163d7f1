//! Bump allocation, one region per thread.

use super::header::STAMP;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::alloc::{GlobalAlloc, Layout, System, handle_alloc_error};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST_BLOCK: usize = 1 << 20;
const LARGEST_BLOCK: usize = 32 << 20;

struct Region {
    next: Cell<usize>,
    end: Cell<usize>,
    block: Cell<usize>,
    production: Cell<u64>,
}

thread_local! {
    static REGION: Region = const { Region { next: Cell::new(0), end: Cell::new(0), block: Cell::new(FIRST_BLOCK), production: Cell::new(0) } };
}

static BLOCK_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes of all blocks handed to values so far (unused ends of blocks included).
pub fn heap_bytes() -> u64 {
    BLOCK_BYTES.load(Ordering::Relaxed)
}

/// The thread's production: the stamp in its place, and bits that are no part of it.
#[inline]
pub(super) fn production() -> u64 {
    REGION.with(|region| region.production.get())
}

/// Replaces the thread's production.
#[inline]
pub(super) fn set_production(word: u64) -> u64 {
    REGION.with(|region| region.production.replace(word))
}

/// The stamp of what is made now, in its place in a header.
#[inline]
pub(super) fn stamp() -> u64 {
    production() & STAMP
}

/// Zeroed memory for `words` words, never freed. Invariant 1.
#[inline]
pub(super) fn alloc(words: usize) -> *mut u64 {
    REGION.with(|region| {
        let start = region.next.get();
        let end = start + words * 8;
        if end <= region.end.get() {
            region.next.set(end);
            return std::ptr::with_exposed_provenance_mut(start);
        }
        refill(region, words)
    })
}

/// As [`alloc`], if the thread's block has room: without a call, so that who needs no more than this saves no registers.
#[inline(always)]
pub(super) fn alloc_at_hand(words: usize) -> Option<*mut u64> {
    REGION.with(|region| {
        let start = region.next.get();
        let end = start + words * 8;
        (end <= region.end.get()).then(|| {
            region.next.set(end);
            std::ptr::with_exposed_provenance_mut(start)
        })
    })
}

#[cold]
#[inline(never)]
fn refill(region: &Region, words: usize) -> *mut u64 {
    let bytes = words.checked_mul(8).expect("allocation size fits in memory");
    if bytes > FIRST_BLOCK / 4 {
        return block(bytes);
    }
    let size = region.block.get();
    region.block.set((size * 2).min(LARGEST_BLOCK));
    let start = block(size);
    region.next.set(start.expose_provenance() + bytes);
    region.end.set(start.expose_provenance() + size);
    start
}

/// A page that the processor finds by one entry of its table where small pages take 512, where the system has such.
const HUGE: usize = 2 << 20;

/// A heap that is larger gets small pages.
// PERF: on a virtual machine NixOS of nixpkgs 20.03 (290 MB) takes a tenth less processor time with huge pages, all of nixpkgs (1.5 GB) a
// fifth more: free memory that lies together is memory which the machine below has to find first.
const HUGE_HEAP: u64 = 256 << 20;

/// Fresh memory that is never given back, aligned to 16; null if there is none.
pub(super) fn pages(bytes: usize) -> *mut u8 {
    // Miri knows no huge pages.
    let start = if bytes > HUGE && heap_bytes() < HUGE_HEAP && !cfg!(miri) { huge(bytes) } else { None };
    start.unwrap_or_else(|| small(bytes))
}

fn block(bytes: usize) -> *mut u64 {
    let start = pages(bytes).cast::<u64>();
    if start.is_null() {
        handle_alloc_error(Layout::array::<u8>(bytes).expect("block size is reasonable"));
    }
    assert!((start.addr() as u64) < 1 << 48 && ((start.addr() + bytes) as u64) < 1 << 48, "address beyond 48 bits");
    BLOCK_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    start
}

// PERF: an alignment that `calloc` gives by itself: fresh pages come zeroed from the system and are touched only when
// used, where a larger alignment makes the allocator clear the whole block.
pub(super) fn small(bytes: usize) -> *mut u8 {
    let layout = Layout::from_size_align(bytes, 16).expect("block size is reasonable");
    // SAFETY: the layout is not of size zero; the block is never freed (invariant 1).
    unsafe { System.alloc_zeroed(layout) }
}

/// Fresh pages of the system, in huge pages if it will: a program that fills the heap spends less time in the kernel.
fn huge(bytes: usize) -> Option<*mut u8> {
    let length = bytes.checked_next_multiple_of(HUGE).filter(|length| length.checked_add(HUGE).is_some())?;
    // SAFETY: new pages, wherever the system has room; never unmapped (invariant 1).
    let start = unsafe {
        mmap_anonymous(std::ptr::null_mut(), length + HUGE, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let start = start.ok()?;
    let aligned = start.wrapping_byte_add(start.align_offset(HUGE));
    // SAFETY: within the pages above: what lies before and behind is never touched. Whatever the system makes of it, they stay
    // what they are.
    #[cfg(target_os = "linux")]
    let _ = unsafe { rustix::mm::madvise(aligned, length, rustix::mm::Advice::LinuxHugepage) };
    Some(aligned.cast())
}
