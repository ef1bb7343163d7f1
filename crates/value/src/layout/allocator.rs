//! Memory for everything that is no value: syntax trees, code, shapes, texts, tables. The program's global allocator.
//!
//! Much of what an evaluator allocates stays for good, and one thread does most of it. So a thread cuts small pieces from a slab of its
//! own and keeps those that come back in a list for each size; a list that grows long is shared with the other threads. Large pieces
//! and slabs are cut from one ground, and what comes back is joined with its neighbours there (`ground.rs`). Pieces have no headers: who
//! frees says how large they were.
//!
//! Invariants:
//! 1. A piece of a class has [`size_of_class`] bytes, is aligned to [`GRAIN`], and belongs to who asked for it or lies in one list.
//! 2. A piece in a list holds the next one in its first word; the first of a shared list holds the next shared list in its second.
//! 3. Ground is never given back: a piece may be freed by another thread than the one that cut it, and outlive that one.
//! 4. Whether a piece is small, large or the system's can be told from its layout alone: what was cut here comes back here.

use super::ground::{self, Ground};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Sizes are multiples of it up to [`FINE`] bytes; from there on each doubling has four.
const GRAIN: usize = 16;
const FINE: usize = 1 << 10;
/// Larger pieces come from the ground itself.
const SMALL: usize = 32 << 10;
/// Larger requests are the system's.
const LARGEST: usize = 4 << 20;
const FINE_CLASSES: usize = FINE / GRAIN + 1;
const CLASSES: usize = FINE_CLASSES + 4 * (SMALL / FINE).ilog2() as usize;
/// From what a thread cuts.
const SLAB: usize = 256 << 10;
/// What a thread keeps of one class before it shares.
const KEPT: usize = 64 << 10;

/// firn's allocator, for `#[global_allocator]`.
pub struct Allocator;

impl Allocator {
    /// Has the C library take what its own parts ask for from one arena, whichever thread asks. To be called before there are other threads.
    // PERF: it would make one for each thread and let it grow page by page, and each time every processor is told: the database asked for a dozen to
    // some hundred pages when an answer was kept.
    pub fn begin(&self) {
        #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
        // SAFETY: sets a number in the C library; nothing else runs yet.
        unsafe {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

#[derive(Clone, Copy)]
struct List {
    first: *mut u8,
    /// How much more may come before the list is shared, in bytes; a hint.
    room: usize,
}

struct Pieces {
    lists: [List; CLASSES],
    next: *mut u8,
    left: usize,
}

const EMPTY: List = List { first: null_mut(), room: KEPT };
/// As a thread begins: the first piece that comes back goes the long way, where the thread's end is prepared.
const UNUSED: List = List { first: null_mut(), room: 0 };

thread_local! {
    // Without a destructor, so that it is there from a thread's first instruction to its last.
    static PIECES: UnsafeCell<Pieces> = const { UnsafeCell::new(Pieces { lists: [UNUSED; CLASSES], next: null_mut(), left: 0 }) };
    static BEGUN: Cell<bool> = const { Cell::new(false) };
    static END: End = const { End };
}

/// Shared lists of each class. They change while the ground is held.
static SHARED: [AtomicPtr<u8>; CLASSES] = [const { AtomicPtr::new(null_mut()) }; CLASSES];

enum Sort {
    Small(usize),
    /// With its size, in whole pages.
    Large(usize),
    System,
}

#[inline(always)]
fn sort_of(layout: Layout) -> Sort {
    let size = layout.size();
    match layout.align() <= GRAIN {
        true if size <= FINE => Sort::Small(size.div_ceil(GRAIN)),
        true if size <= SMALL => Sort::Small(coarse(size)),
        true if size <= LARGEST => Sort::Large(size.next_multiple_of(ground::PAGE)),
        _ => Sort::System,
    }
}

/// The class of more than [`FINE`] bytes: which doubling, and which quarter of it.
fn coarse(size: usize) -> usize {
    let doubling = (size - 1).ilog2();
    let quarter = (size - 1) >> (doubling - 2) & 3;
    FINE_CLASSES + 4 * (doubling - FINE.ilog2()) as usize + quarter
}

#[inline]
fn size_of_class(class: usize) -> usize {
    if class < FINE_CLASSES {
        return class * GRAIN;
    }
    let (doubling, quarter) = ((class - FINE_CLASSES) / 4, (class - FINE_CLASSES) % 4);
    (FINE << doubling) / 4 * (5 + quarter)
}

// SAFETY: pieces are as large and aligned as asked for and nobody else's (invariant 1); the rest is the system's, which is told of what
// it gave and of nothing else (invariant 4).
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = match sort_of(layout) {
            Sort::Small(class) => class,
            Sort::Large(size) => return Ground::hold().cut(size).0,
            // SAFETY: as promised to this function.
            Sort::System => return unsafe { System.alloc(layout) },
        };
        PIECES.with(|pieces| {
            // SAFETY: no other reference to the thread's pieces is alive: nothing that is called while there is one makes another.
            let pieces = unsafe { &mut *pieces.get() };
            // SAFETY: a class is below their number.
            let list = unsafe { pieces.lists.get_unchecked_mut(class) };
            let piece = list.first;
            if piece.is_null() {
                return cut(class, pieces);
            }
            list.room += size_of_class(class);
            // SAFETY: a piece in a list holds the next (invariant 2).
            list.first = unsafe { next_of(piece).read() };
            piece
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (piece, is_zero) = match sort_of(layout) {
            // SAFETY: as promised to this function.
            Sort::Small(_) => (unsafe { self.alloc(layout) }, false),
            Sort::Large(size) => Ground::hold().cut(size),
            // SAFETY: as promised to this function.
            Sort::System => return unsafe { System.alloc_zeroed(layout) },
        };
        if !is_zero && !piece.is_null() {
            // SAFETY: a piece has as many bytes as were asked for.
            unsafe { piece.write_bytes(0, layout.size()) };
        }
        piece
    }

    #[inline]
    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        let class = match sort_of(layout) {
            Sort::Small(class) => class,
            // SAFETY: cut there with that size (invariant 4), and free from here on.
            Sort::Large(size) => return unsafe { Ground::hold().take_back(ground::whole(piece), size) },
            // SAFETY: as promised to this function.
            Sort::System => return unsafe { System.dealloc(piece, layout) },
        };
        let piece = ground::whole(piece);
        PIECES.with(|pieces| {
            // SAFETY: as in `alloc`.
            let pieces = unsafe { &mut *pieces.get() };
            // SAFETY: a class is below their number; the piece is of this class (invariant 4) and free from here on.
            unsafe {
                let list = pieces.lists.get_unchecked_mut(class);
                next_of(piece).write(list.first);
                list.first = piece;
                match list.room.checked_sub(size_of_class(class)) {
                    Some(room) => list.room = room,
                    None => share(class, list),
                }
            }
        });
    }

    #[inline]
    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for the size.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (sort_of(layout), sort_of(wanted)) {
            // SAFETY: the system gave it and gives the new one.
            (Sort::System, Sort::System) => return unsafe { System.realloc(piece, layout, size) },
            (Sort::Small(was), Sort::Small(is)) if was == is => return ground::whole(piece),
            // SAFETY: cut from the ground with that size (invariant 4).
            (Sort::Large(was), Sort::Large(is)) if unsafe { Ground::hold().resize(ground::whole(piece), was, is) } => {
                return ground::whole(piece);
            }
            _ => {}
        }
        // SAFETY: two pieces that do not overlap, both as large as what is copied.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                piece.copy_to_nonoverlapping(new, layout.size().min(size));
                self.dealloc(piece, layout);
            }
            new
        }
    }
}

fn next_of(piece: *mut u8) -> *mut *mut u8 {
    piece.cast()
}

/// Where the first piece of a shared list holds the next such list.
fn beyond(piece: *mut u8) -> *mut *mut u8 {
    piece.cast::<*mut u8>().wrapping_add(1)
}

/// A piece where the thread's list has none: of a shared list, or of the slab.
fn cut(class: usize, pieces: &mut Pieces) -> *mut u8 {
    if !SHARED[class].load(Ordering::Relaxed).is_null() && unshare(class, &mut pieces.lists[class]) {
        let list = &mut pieces.lists[class];
        let piece = list.first;
        // PERF: otherwise the list is shared again when the piece comes back, and taken again for the next one.
        list.room = size_of_class(class);
        // SAFETY: as in `alloc`.
        list.first = unsafe { next_of(piece).read() };
        return piece;
    }
    let size = size_of_class(class);
    if size > pieces.left && !refill(size, pieces) {
        return null_mut();
    }
    let piece = pieces.next;
    pieces.left -= size;
    pieces.next = piece.wrapping_add(size);
    piece
}

/// Gets a slab with room for a piece.
#[cold]
fn refill(size: usize, pieces: &mut Pieces) -> bool {
    begin();
    let mut ground = Ground::hold();
    give_up(pieces, &mut ground);
    (pieces.next, pieces.left) = ground.slab(size, SLAB);
    pieces.left > 0
}

/// Sees to it that the thread leaves to others what it has. One that is ending already does not: it allocates little.
fn begin() {
    if !BEGUN.replace(true) {
        // What this registers is the system's.
        let _ = END.try_with(|_| ());
    }
}

/// Puts whole pages of a slab back; less than one is lost.
fn give_up(pieces: &mut Pieces, ground: &mut Ground) {
    let skipped = pieces.next.align_offset(ground::PAGE);
    if pieces.left >= skipped + ground::PAGE {
        // SAFETY: the unused part of a slab, which ends on a page.
        unsafe { ground.take_back(pieces.next.wrapping_add(skipped), pieces.left - skipped) };
    }
    (pieces.next, pieces.left) = (null_mut(), 0);
}

/// Makes a list one of the shared ones.
#[cold]
fn share(class: usize, list: &mut List) {
    begin();
    let _held = Ground::hold();
    // SAFETY: invariant 2; two words are the least size of a piece.
    unsafe { beyond(list.first).write(SHARED[class].load(Ordering::Relaxed)) };
    SHARED[class].store(list.first, Ordering::Relaxed);
    *list = EMPTY;
}

/// Makes one of the shared lists the thread's own, which has none.
#[cold]
fn unshare(class: usize, list: &mut List) -> bool {
    begin();
    let _held = Ground::hold();
    let first = SHARED[class].load(Ordering::Relaxed);
    if first.is_null() {
        return false;
    }
    // SAFETY: invariant 2.
    SHARED[class].store(unsafe { beyond(first).read() }, Ordering::Relaxed);
    *list = List { first, room: 0 };
    true
}

/// Leaves a thread's pieces to the others when it ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        PIECES.with(|pieces| {
            // SAFETY: as in `alloc`.
            let pieces = unsafe { &mut *pieces.get() };
            for (class, list) in pieces.lists.iter_mut().enumerate().filter(|(_, list)| !list.first.is_null()) {
                share(class, list);
            }
            give_up(pieces, &mut Ground::hold());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For Miri: `tests/allocator.rs`, whose boxes own their memory while they free it, is beyond its rules.
    #[test]
    fn pieces_by_hand() {
        let sizes = [1, 16, 17, 900, 1_025, 5_000, 32 << 10, (32 << 10) + 1, 200_000];
        let round = |seed: usize| {
            let mut pieces: Vec<(*mut u8, usize, u8)> = Vec::new();
            let mut state = seed;
            for step in 0..if cfg!(miri) { 60 } else { 20_000 } {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let (size, which) = (sizes[(state >> 33) % sizes.len()], (state >> 40) % pieces.len().max(1));
                let layout = |size| Layout::from_size_align(size, 8).expect("a small size");
                // SAFETY: layouts are those that pieces have; the first and last byte are within.
                unsafe {
                    match (state >> 50) % 4 {
                        0 | 1 => {
                            let piece = Allocator.alloc(layout(size));
                            piece.write(step as u8);
                            piece.add(size - 1).write(step as u8);
                            pieces.push((piece, size, step as u8));
                        }
                        2 if !pieces.is_empty() => {
                            let (piece, was, mark) = pieces[which];
                            let piece = Allocator.realloc(piece, layout(was), size);
                            assert_eq!(piece.read(), mark);
                            piece.add(size - 1).write(mark);
                            pieces[which] = (piece, size, mark);
                        }
                        _ if !pieces.is_empty() => {
                            let (piece, size, mark) = pieces.swap_remove(which);
                            assert_eq!((piece.read(), piece.add(size - 1).read()), (mark, mark));
                            Allocator.dealloc(piece, layout(size));
                        }
                        _ => {}
                    }
                }
            }
        };
        for seed in 0..2 {
            std::thread::scope(|scope| {
                scope.spawn(move || round(2 * seed));
                scope.spawn(move || round(2 * seed + 1));
            });
        }
    }
}
