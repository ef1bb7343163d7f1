//! Bump allocation, one region per thread.

use super::fetch_ahead;
use super::header::STAMP;
use super::pages::{self, Front};
use std::alloc::{Layout, handle_alloc_error};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

const FIRST_BLOCK: usize = 1 << 20;
const LARGEST_BLOCK: usize = 32 << 20;
/// From a block of this size on, pages are fetched ahead: smaller heaps are not worth a thread.
const AHEAD: usize = 4 << 20;

struct Region {
    next: Cell<usize>,
    /// Where what is ready ends.
    end: Cell<usize>,
    ready: Cell<Front>,
    block_end: Cell<usize>,
    /// The size of the next block.
    block: Cell<usize>,
    production: Cell<u64>,
}

thread_local! {
    static REGION: Region = const { Region { next: Cell::new(0), end: Cell::new(0), ready: Cell::new(Front::new(0)), block_end: Cell::new(0), block: Cell::new(FIRST_BLOCK), production: Cell::new(0) } };
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
        let (start, ready) = block(bytes);
        let end = start.addr() + bytes;
        ready.advance(end, end);
        return start;
    }
    if region.next.get() + bytes > region.block_end.get() {
        let size = region.block.get();
        if size >= AHEAD {
            fetch_ahead::start();
        }
        region.block.set((size * 2).min(LARGEST_BLOCK));
        let (start, ready) = block(size);
        region.next.set(start.addr());
        region.ready.set(ready);
        region.block_end.set(start.addr() + size);
    }
    let start = region.next.get();
    region.next.set(start + bytes);
    let ready = region.ready.get().advance(start + bytes, region.block_end.get());
    region.ready.set(ready);
    region.end.set(ready.at);
    std::ptr::with_exposed_provenance_mut(start)
}

/// A new block and how much of it is ready.
fn block(bytes: usize) -> (*mut u64, Front) {
    let large = pages::large(bytes);
    let start = large.unwrap_or_else(|| pages::small(bytes));
    if start.is_null() {
        handle_alloc_error(Layout::array::<u8>(bytes).expect("block size is reasonable"));
    }
    let at = start.expose_provenance();
    assert!((at as u64) < 1 << 48 && ((at + bytes) as u64) < 1 << 48, "address beyond 48 bits");
    BLOCK_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    (start.cast(), Front::new(if large.is_some() { at } else { at + bytes }))
}
