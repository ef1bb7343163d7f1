//! The state machine of a thunk's header (E7). `crates/value/tests/thunk_protocol.rs` compiles this very file over loom's
//! atomics and tries every interleaving; it therefore uses nothing but `super::sync` and `super::header`.
//!
//! States: suspended (or an application, or standing for a cell of another instance) → claimed by a thread → forced or failed; an interruption gives a claimed thunk
//! back. A thread that finds a thunk claimed by another marks the header before it waits, so that whoever ends the claim
//! knows that there is someone to wake. While the process has one thread (`shared` is false), all of it is plain stores.

use super::header::{header, header_count, header_kind, header_low, header_stamp, kind};
use super::sync::{AtomicU64, Ordering};

/// A thunk's header word. Only this file changes it.
#[repr(transparent)]
pub struct Head(AtomicU64);

/// Count byte of a claimed header that another thread waits on.
const WAITED: u8 = 1;

impl Head {
    /// A header in the state of `word`.
    #[allow(dead_code, reason = "thunks are laid out by the heap; the model makes them here")]
    pub fn new(word: u64) -> Head {
        Head(AtomicU64::new(word))
    }

    /// The header word. What was written before it was published can be read after this.
    #[inline]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Takes a thunk whose header was `seen`, suspended or an application, for `thread`. False when another was faster.
    #[inline]
    pub fn claim(&self, seen: u64, thread: u32, shared: bool) -> bool {
        debug_assert!(matches!(header_kind(seen), kind::SUSPENDED | kind::APPLY | kind::ITEM | kind::TRANSPORT));
        let claimed = header(kind::CLAIMED, 0, thread as u64) | header_stamp(seen);
        if shared {
            return self.0.compare_exchange(seen, claimed, Ordering::Acquire, Ordering::Relaxed).is_ok();
        }
        self.0.store(claimed, Ordering::Relaxed);
        true
    }

    /// As [`Head::claim`] in a process of one thread, for a thunk with this stamp, which is none outside all instances.
    #[inline]
    #[allow(dead_code, reason = "the model has several threads")]
    pub fn claim_alone(&self, thread: u32, stamp: u64) {
        self.0.store(header(kind::CLAIMED, 0, thread as u64) | stamp, Ordering::Relaxed);
    }

    /// As [`Head::finish`] in a process of one thread.
    #[inline]
    #[allow(dead_code, reason = "the model has several threads")]
    pub fn publish_alone(&self, word: u64) {
        self.0.store(word, Ordering::Release);
    }

    /// The thread that has claimed the thunk of this header.
    #[inline]
    pub fn owner(word: u64) -> Option<u32> {
        (header_kind(word) == kind::CLAIMED).then_some(header_low(word) as u32)
    }

    /// Marks a thunk claimed by `owner` as waited for. False when `owner` has ended its claim.
    pub fn mark_waited(&self, owner: u32) -> bool {
        let stamp = header_stamp(self.load());
        let claimed = header(kind::CLAIMED, 0, owner as u64) | stamp;
        let marked = header(kind::CLAIMED, WAITED, owner as u64) | stamp;
        match self.0.compare_exchange(claimed, marked, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(now) => now == marked,
        }
    }

    /// Ends a claim: writes the result, then the header that announces it. True when someone waits and must be woken.
    #[inline]
    pub fn finish(&self, word: u64, shared: bool, write_result: impl FnOnce()) -> bool {
        write_result();
        if shared {
            return header_count(self.0.swap(word, Ordering::AcqRel)) == WAITED;
        }
        self.0.store(word, Ordering::Release);
        false
    }
}
