//! Where the allocator's slabs and large pieces are cut from: first from what came back, then from fresh blocks.
//!
//! Invariants:
//! 1. Free stretches are disjoint, begin and end on pages, lie in the order of their addresses, and no two of them touch.
//! 2. A free stretch holds in its first two words where the next one is and how long itself is.
//! 3. `fresh` is followed by `left` bytes that were never handed out, and are zero; before they are, they are made ready.

use super::pages::{self, Front};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(super) const PAGE: usize = 4 << 10;
/// The first block has small pages: a program that does little touches no more than it needs.
const FIRST_BLOCK: usize = 16 << 20;
const BLOCK: usize = 32 << 20;

pub(super) struct Ground {
    free: *mut Stretch,
    fresh: *mut u8,
    left: usize,
    /// How much of them is ready.
    ready: Front,
}

struct Stretch {
    next: *mut Stretch,
    length: usize,
}

// SAFETY: nobody's memory, reached through the lock alone.
unsafe impl Send for Ground {}

static GROUND: Mutex<Ground> = Mutex::new(Ground { free: null_mut(), fresh: null_mut(), left: 0, ready: Front::new(0) });

/// A piece as it was cut: whose it was may reach as much of it as was asked for, and no more.
#[inline(always)]
pub(super) fn whole(piece: *mut u8) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(piece.addr())
}

impl Ground {
    pub fn hold() -> MutexGuard<'static, Ground> {
        GROUND.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece, and whether it is known to be zero; null if there is no memory.
    pub fn cut(&mut self, size: usize) -> (*mut u8, bool) {
        let (mut best, mut at) = (null_mut::<*mut Stretch>(), &raw mut self.free);
        // SAFETY: links of the list (invariant 2), which nobody else has while the ground is held.
        unsafe {
            while !(*at).is_null() {
                let length = (**at).length;
                if length >= size && (best.is_null() || length < (**best).length) {
                    best = at;
                }
                at = &raw mut (**at).next;
            }
            if best.is_null() { (self.cut_fresh(size), true) } else { (cut_off(best, size), false) }
        }
    }

    /// Room for small pieces, `least` bytes or more: a free stretch of whatever length, if there is one, and `most` at most.
    pub fn slab(&mut self, least: usize, most: usize) -> (*mut u8, usize) {
        let mut at = &raw mut self.free;
        // SAFETY: as in `cut`.
        unsafe {
            while !(*at).is_null() {
                let length = (**at).length.min(most);
                if length >= least {
                    return (cut_off(at, length), length);
                }
                at = &raw mut (**at).next;
            }
        }
        let start = self.cut_fresh(most);
        (start, if start.is_null() { 0 } else { most })
    }

    fn cut_fresh(&mut self, size: usize) -> *mut u8 {
        if size > self.left {
            let is_first = self.fresh.is_null() && size <= FIRST_BLOCK / 2;
            let bytes = if is_first { FIRST_BLOCK } else { BLOCK };
            let large = pages::large(bytes);
            let start = large.unwrap_or_else(|| pages::small(bytes));
            if start.is_null() {
                return start;
            }
            let at = start.expose_provenance();
            self.ready = match large {
                Some(_) if is_first => Front::in_small_pages(at),
                Some(_) => Front::new(at),
                None => Front::new(at + bytes),
            };
            let skipped = start.align_offset(PAGE);
            let (old, rest) = (self.fresh, self.left);
            (self.fresh, self.left) = (start.wrapping_add(skipped), (bytes - skipped) & !(PAGE - 1));
            if rest > 0 {
                // SAFETY: what was fresh until now is nobody's.
                unsafe { self.take_back(old, rest) };
            }
        }
        let start = self.fresh;
        self.ready = self.ready.advance(start.addr() + size, start.addr() + self.left);
        self.fresh = start.wrapping_add(size);
        self.left -= size;
        start
    }

    /// Takes whole pages back and joins them with what lies next to them.
    ///
    /// # Safety
    /// They were cut here and are nobody's from here on.
    pub unsafe fn take_back(&mut self, start: *mut u8, mut size: usize) {
        let mut at = &raw mut self.free;
        // SAFETY: as in `cut`; the new stretch has room for two words, and joined stretches are one allocation of blocks that touch.
        unsafe {
            let mut before = null_mut::<Stretch>();
            while !(*at).is_null() && (*at).cast::<u8>() < start {
                before = *at;
                at = &raw mut (**at).next;
            }
            let mut next = *at;
            if !next.is_null() && start.wrapping_add(size) == next.cast() {
                size += (*next).length;
                next = (*next).next;
            }
            if !before.is_null() && before.cast::<u8>().wrapping_add((*before).length) == start {
                (*before).length += size;
                (*before).next = next;
            } else {
                let stretch = start.cast::<Stretch>();
                stretch.write(Stretch { next, length: size });
                *at = stretch;
            }
        }
    }

    /// Makes a piece longer or shorter where it lies, if that can be.
    ///
    /// # Safety
    /// It was cut here with the size it has.
    pub unsafe fn resize(&mut self, piece: *mut u8, was: usize, is: usize) -> bool {
        let end = piece.wrapping_add(was);
        if is > was && end == self.fresh && is - was <= self.left {
            self.ready = self.ready.advance(piece.addr() + is, end.addr() + self.left);
            self.fresh = piece.wrapping_add(is);
            self.left -= is - was;
            return true;
        }
        if is < was {
            // SAFETY: the end of a piece that is its owner's.
            unsafe { self.take_back(piece.wrapping_add(is), was - is) };
        }
        is <= was
    }
}

/// Takes the beginning of the free stretch that a link leads to.
///
/// # Safety
/// The link is one of the list's, and its stretch is that long.
unsafe fn cut_off(link: *mut *mut Stretch, size: usize) -> *mut u8 {
    // SAFETY: the stretch and what remains of it, which has room for two words, being a page at least.
    unsafe {
        let stretch = *link;
        let Stretch { next, length } = stretch.read();
        *link = next;
        if length > size {
            let rest = stretch.cast::<u8>().wrapping_add(size).cast::<Stretch>();
            rest.write(Stretch { next, length: length - size });
            *link = rest;
        }
        stretch.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stretch is made ready before it is used: later the first byte of a huge page is no longer free to be written.
    #[test]
    fn a_piece_grows_into_what_is_ready() {
        let mut ground = Ground { free: null_mut(), fresh: null_mut(), left: 0, ready: Front::new(0) };
        // Beyond the first block's size, so that pages may be huge; it ends half way through a stretch.
        let sizes = [FIRST_BLOCK / 2 + pages::HUGE / 2, 16 * PAGE];
        let [_, (piece, _)] = sizes.map(|size| ground.cut(size));
        let long = pages::HUGE + 16 * PAGE;
        // SAFETY: the piece has the size it was cut with, and then the other one.
        unsafe {
            assert!(ground.resize(piece, sizes[1], long));
        }
        assert!(ground.ready.at >= ground.fresh.addr());
    }
}
