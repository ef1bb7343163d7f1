//! Where code is kept: bump regions that live as long as the process, one per thread.

use bumpalo::Bump;
use std::cell::Cell;
use std::mem::{align_of, size_of};

/// Regions are not doubled as a [`Bump`] would: the half that a large one leaves empty is memory too.
const REGION: usize = 240 << 10;

/// The bits from the fortieth on that no address of code has, so that headers can say with them that they have none. No system
/// that firn runs on puts anything there.
pub const FORBIDDEN: u64 = 0xC0;

thread_local! {
    static ARENA: Cell<&'static Bump> = Cell::new(region(REGION));
}

fn region(bytes: usize) -> &'static Bump {
    let region: &'static Bump = Box::leak(Box::new(Bump::with_capacity(bytes)));
    // It is filled from its end on.
    let end = std::ptr::from_ref(region.alloc(0u8)).addr() as u64;
    let is_fine = |at: u64| at >> 40 != FORBIDDEN;
    assert!(is_fine(end) && is_fine(end - bytes as u64), "code at an address that means something else");
    region
}

/// The thread's region, with room for so many of these.
#[inline]
fn arena<T>(count: usize) -> &'static Bump {
    let needed = size_of::<T>() * count + align_of::<T>();
    ARENA.with(|arena| {
        if arena.get().chunk_capacity() < needed {
            renew(arena, needed);
        }
        arena.get()
    })
}

#[cold]
fn renew(arena: &Cell<&'static Bump>, needed: usize) {
    arena.set(region(needed.max(REGION)));
}

/// Keeps a node.
pub(crate) fn keep<T>(node: T) -> &'static T {
    arena::<T>(1).alloc(node)
}

/// Keeps a sequence of nodes.
pub(crate) fn keep_all<T>(nodes: Vec<T>) -> &'static [T] {
    keep_each(nodes.into_iter())
}

/// Keeps what an iterator gives.
pub(crate) fn keep_each<T>(nodes: impl ExactSizeIterator<Item = T>) -> &'static [T] {
    if nodes.len() == 0 {
        return &[];
    }
    arena::<T>(nodes.len()).alloc_slice_fill_iter(nodes)
}

/// Keeps a text.
pub(crate) fn keep_bytes(bytes: &[u8]) -> &'static [u8] {
    arena::<u8>(bytes.len()).alloc_slice_copy(bytes)
}
