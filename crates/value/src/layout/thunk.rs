//! Suspended values and the state machine that forces each once (E7).
//!
//! A thread claims a thunk before it reads the captures for evaluation; the result overwrites the first slot and is
//! published by the header. The states are in `claim.rs`, waiting is in `waits.rs`; both are model-checked by
//! `crates/value/tests/thunk_protocol.rs`.

use super::claim::Head;
use super::perturb;
use super::waits::Waits;
use super::{Slot, Value, header, header_count, header_kind, header_low, heap, kind, word::tag};
use crate::{Body, Error};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};

/// A suspended or formerly suspended value.
#[repr(C)]
pub struct Thunk {
    head: Head,
}

/// What a thunk is at the moment of asking.
#[derive(Clone, Copy, Debug)]
pub enum ThunkState {
    /// Evaluated.
    Forced(Value),
    /// Not begun.
    Suspended,
    /// Being evaluated by the thread of this number.
    Claimed(u32),
    /// Evaluation failed for good.
    Failed(&'static Error),
}

/// What a claimed thunk has to do.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Run a body with these captures.
    Run(&'static Body, &'static [Slot]),
    /// Apply the first slot to the others.
    Apply(&'static [Slot]),
}

static SHARED: AtomicBool = AtomicBool::new(false);
static WAITS: Waits<&'static Head> = Waits::new(Mutex::new(Vec::new()), Condvar::new());
static NEXT_THREAD: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static THREAD: u32 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// Whether thunks are claimed without synchronisation. Call with `false` before a second thread evaluates anything;
/// it cannot be turned back.
pub fn single_threaded(single: bool) -> bool {
    if !single {
        SHARED.store(true, Ordering::SeqCst);
    }
    !SHARED.load(Ordering::Relaxed)
}

impl Thunk {
    /// A suspended body whose captures are still unset.
    #[inline]
    pub fn suspend(body: &'static Body) -> &'static Thunk {
        let object = heap::alloc(1 + body.captures.len().max(1));
        let code = std::ptr::from_ref(body).expose_provenance() as u64;
        // SAFETY: the allocation holds the header and at least one slot (invariant 1).
        unsafe {
            object.write(header(kind::SUSPENDED, 0, code));
            &*object.cast::<Thunk>()
        }
    }

    /// The captures of a thunk that was made for `body` and has not begun, to be filled in; empty otherwise.
    #[inline]
    pub fn slots_of(&'static self, body: &'static Body) -> &'static [Slot] {
        let head = header(kind::SUSPENDED, 0, std::ptr::from_ref(body).expose_provenance() as u64);
        if self.head.load() == head { self.slots(body.captures.len()) } else { &[] }
    }

    /// A suspended application.
    pub fn apply(function: Value, args: &[Value]) -> Value {
        let count = 1 + args.len();
        let object = heap::alloc(1 + count);
        let count = u8::try_from(count).expect("an application has fewer than 255 arguments");
        // SAFETY: the allocation holds the header and `count` slots (invariant 1).
        unsafe {
            object.write(header(kind::APPLY, count, 0));
            object.add(1).write(function.0);
            for (i, arg) in args.iter().enumerate() {
                object.add(2 + i).write(arg.0);
            }
        }
        Value::from_ptr(object, tag::THUNK)
    }

    /// A new cell that holds an evaluated value.
    pub fn ready(value: Value) -> Value {
        debug_assert!(value.is_whnf());
        let object = heap::alloc(2);
        // SAFETY: two words were allocated (invariant 1).
        unsafe {
            object.write(header(kind::FORCED, 0, 0));
            object.add(1).write(value.0);
        }
        Value::from_ptr(object, tag::THUNK)
    }

    /// A cell that already failed: forcing it gives the error.
    #[cold]
    pub fn failed(error: Box<Error>) -> Value {
        let object = heap::alloc(2);
        // SAFETY: two words were allocated; the error is leaked, so it lives for ever.
        unsafe {
            object.write(header(kind::FAILED, 0, 0));
            object.add(1).write(std::ptr::from_ref(Box::leak(error)).expose_provenance() as u64);
        }
        Value::from_ptr(object, tag::THUNK)
    }

    /// The thunk as a value.
    #[inline]
    pub fn value(&'static self) -> Value {
        Value::from_ptr(std::ptr::from_ref(self).cast(), tag::THUNK)
    }

    /// Where the slots begin. A reference to the thunk reaches its header only, so the address is taken up anew: the
    /// whole block was exposed when it was allocated (invariant 1).
    #[inline]
    fn first_slot(&'static self) -> *const Slot {
        std::ptr::with_exposed_provenance(std::ptr::from_ref(self).addr() + size_of::<Thunk>())
    }

    #[inline]
    fn slot(&'static self, index: usize) -> &'static Slot {
        // SAFETY: callers stay within the slots the header or body gives (invariants 1, 3); slot 0 always exists.
        unsafe { &*self.first_slot().add(index) }
    }

    /// The result, if there is one: the fast path of forcing.
    #[inline]
    pub fn forced(&'static self) -> Option<Value> {
        (header_kind(self.head.load()) == kind::FORCED).then(|| self.slot(0).get())
    }

    /// The state.
    pub fn state(&'static self) -> ThunkState {
        let head = self.head.load();
        if let Some(owner) = Head::owner(head) {
            return ThunkState::Claimed(owner);
        }
        match header_kind(head) {
            kind::FORCED => ThunkState::Forced(self.slot(0).get()),
            // SAFETY: a FAILED thunk's first slot is the address of a leaked error, published by the header.
            kind::FAILED => ThunkState::Failed(unsafe {
                &*std::ptr::with_exposed_provenance(self.slot(0).get().0 as usize)
            }),
            _ => ThunkState::Suspended,
        }
    }

    /// Claims a suspended thunk for this thread; `None` when it is in any other state.
    #[inline]
    pub fn claim(&'static self) -> Option<Work> {
        let head = self.head.load();
        let work = match header_kind(head) {
            kind::SUSPENDED => {
                // SAFETY: a SUSPENDED header holds the address of code, which lives for ever.
                let body: &'static Body = unsafe { &*std::ptr::with_exposed_provenance(header_low(head) as usize) };
                Work::Run(body, self.slots(body.captures.len()))
            }
            kind::APPLY => Work::Apply(self.slots(header_count(head) as usize)),
            _ => return None,
        };
        let shared = SHARED.load(Ordering::Relaxed);
        if shared {
            perturb::perhaps_yield();
        }
        if !self.head.claim(head, Thunk::this_thread(), shared) {
            return None;
        }
        Some(work)
    }

    /// This thread's number as it appears in [`ThunkState::Claimed`].
    pub fn this_thread() -> u32 {
        THREAD.with(|&t| t)
    }

    /// The first `count` slots; `count` comes from the header or the body the thunk was made with.
    #[inline]
    fn slots(&'static self, count: usize) -> &'static [Slot] {
        // SAFETY: the thunk was allocated with that many slots (invariants 1, 3).
        unsafe { std::slice::from_raw_parts(self.first_slot(), count) }
    }

    /// Publishes the result of a claimed thunk.
    #[inline]
    pub fn publish(&'static self, value: Value) {
        debug_assert!(value.is_whnf());
        self.finish(header(kind::FORCED, 0, 0), || self.slot(0).set(value));
    }

    /// Publishes a lasting failure of a claimed thunk.
    #[cold]
    pub fn fail(&'static self, error: Box<Error>) {
        let error: &'static Error = Box::leak(error);
        let word = Value(std::ptr::from_ref(error).expose_provenance() as u64);
        self.finish(header(kind::FAILED, 0, 0), || self.slot(0).set(word));
    }

    /// Gives a claimed thunk back unevaluated.
    #[cold]
    pub fn restore(&'static self, work: Work) {
        let head = match work {
            Work::Run(body, _) => header(kind::SUSPENDED, 0, std::ptr::from_ref(body).expose_provenance() as u64),
            Work::Apply(slots) => header(kind::APPLY, slots.len() as u8, 0),
        };
        self.finish(head, || ());
    }

    /// Ends the claim of this thread and wakes who waits for it.
    #[inline]
    fn finish(&'static self, head: u64, write_result: impl FnOnce()) {
        if self.head.finish(head, SHARED.load(Ordering::Relaxed), write_result) {
            WAITS.wake();
        }
    }

    /// Sleeps until thread `owner` has ended its claim. False when the two threads need each other: infinite recursion.
    #[cold]
    pub fn wait(&'static self, owner: u32) -> bool {
        WAITS.wait(&self.head, owner, Thunk::this_thread())
    }

    /// The function of an application that has not begun; none if it is applied to nothing.
    pub fn applied_function(&'static self) -> Option<Value> {
        let head = self.head.load();
        (header_kind(head) == kind::APPLY && header_count(head) > 1).then(|| self.slot(0).get())
    }

    /// Whether it is an application that has not begun.
    pub fn is_application(&'static self) -> bool {
        header_kind(self.head.load()) == kind::APPLY
    }

    /// The code and captures of a thunk that has not begun.
    pub fn suspended_body(&'static self) -> Option<(&'static Body, &'static [Slot])> {
        let head = self.head.load();
        (header_kind(head) == kind::SUSPENDED).then(|| {
            // SAFETY: as in `claim`.
            let body: &'static Body = unsafe { &*std::ptr::with_exposed_provenance(header_low(head) as usize) };
            (body, self.slots(body.captures.len()))
        })
    }
}

impl std::fmt::Debug for Thunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("thunk")
    }
}
