//! Suspended values and the state machine that forces each once (E7).
//!
//! A thread claims a thunk before it reads the captures for evaluation; the result overwrites the first slot and is
//! published by the header. The states are in `claim.rs`, waiting is in `waits.rs`; both are model-checked by
//! `crates/value/tests/thunk_protocol.rs`.

use super::beside;
use super::claim::Head;
use super::perturb;
use super::waits::Waits;
use super::header::{ITEMS, STAMP, kind_and_stamp, stamp_number};
use super::{Activation, Application, Claim, Item, Label, Production, Slot, Stamp, Value, heap, kind, word::tag};
use super::{header, header_address, header_count, header_kind, header_low, header_of, header_payload, header_stamp, with_kind};
use crate::{Body, Error};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Condvar, Mutex};

/// A suspended or formerly suspended value.
#[repr(C)]
pub struct Thunk {
    pub(super) head: Head,
}

/// What a thunk is at the moment of asking.
#[derive(Clone, Copy, Debug)]
pub enum ThunkState {
    /// Evaluated.
    Forced(Value),
    /// Evaluated; a second production would print again. With what was observed.
    Noisy(Value, Label),
    /// Evaluated on behalf of another instance before its own needed it. With what was observed.
    Ahead(Value, Label),
    /// Evaluated; producing the value observed something of the outside, which whoever takes the value observes too.
    Labelled(Value, Label),
    /// Not begun.
    Suspended,
    /// Being evaluated by the thread of this number.
    Claimed(u32),
    /// Evaluation failed for good, having observed this.
    Failed(&'static Error, Label),
}

/// What a claimed thunk has to do.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// Run a body with these captures.
    Run(&'static Body, &'static [Slot]),
    /// Apply a function.
    Apply(Application),
    /// Stand for a cell of another instance, by the map of this number.
    Transport(u32, Value),
}

static SHARED: AtomicBool = AtomicBool::new(false);
/// Whether whoever ends a production has to look what is to be kept besides the value, and who waits: some production was noisy or
/// observed something, or there are several threads. Until then none has to.
static UNEVEN: AtomicBool = AtomicBool::new(false);
/// In what suspended code of the running instance differs from a quiet production ([`Production::differs`]). With several threads no
/// thunk differs so.
// PERF: compared with what is in memory, a thunk is found to be ours, code and unshared at once.
static CODE_HERE: AtomicU64 = AtomicU64::new(kind_and_stamp(header(kind::SUSPENDED, 0, 0)));
static WAITS: Waits<&'static Head> = Waits::new(Mutex::new(Vec::new()), Condvar::new());
static NEXT_THREAD: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static THREAD: u32 = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// Whether thunks are claimed without synchronisation. Call with `false` before a second thread evaluates anything;
/// it cannot be turned back.
#[inline]
pub fn single_threaded(single: bool) -> bool {
    if !single {
        SHARED.store(true, Ordering::SeqCst);
        CODE_HERE.store(u64::MAX, Ordering::SeqCst);
        end_unevenly();
    }
    !SHARED.load(Ordering::Relaxed)
}

/// Has productions end with a closer look from now on.
#[inline]
pub(super) fn end_unevenly() {
    // Productions are a thread's own: who marks one knows of it, and a second thread begins after this.
    if ends_evenly() {
        UNEVEN.store(true, Ordering::SeqCst);
    }
}

/// Whether productions end without a closer look.
#[inline]
pub(super) fn ends_evenly() -> bool {
    !UNEVEN.load(Ordering::Relaxed)
}

/// What stands in the number of a header whose payload is no address: an application (with its count) or a transport
/// (with none). No code is there, since an address of code is a multiple of 16 below an object of more than 16 bytes.
pub(super) const NO_CODE: u64 = (1 << 36) - 1;

const _: () = assert!(ITEMS as u64 == firn_ir::FORBIDDEN, "no code has an address that would be an item's header");

pub(super) fn body_at(address: u64) -> &'static Body {
    // SAFETY: callers pass the address that `suspend` put into a header: code, which lives for ever.
    unsafe { &*std::ptr::with_exposed_provenance(address as usize) }
}

impl Thunk {
    /// A suspended body whose captures are still unset.
    #[inline]
    pub fn suspend(body: &'static Body) -> &'static Thunk {
        let head = header_of(kind::SUSPENDED, std::ptr::from_ref(body).expose_provenance() as u64) | heap::stamp();
        let object = heap::alloc(1 + body.captures.len().max(1));
        // SAFETY: the allocation holds the header and at least one slot (invariant 1).
        unsafe {
            object.write(head);
            &*object.cast::<Thunk>()
        }
    }

    /// A suspended body with what it captures of its surroundings.
    #[inline(always)]
    pub fn capture(body: &'static Body, frame: Activation<'_>) -> Value {
        // PERF: with room at hand there is nothing to call: 53 → 31 instructions a thunk.
        if let Some(object) = heap::alloc_at_hand(1 + body.captures.len().max(1)) {
            let head = header_of(kind::SUSPENDED, std::ptr::from_ref(body).expose_provenance() as u64) | heap::stamp();
            // SAFETY: the allocation holds the header and a slot for each capture, at least one (invariant 1).
            unsafe {
                object.write(head);
                frame.copy(body.captures, object.add(1));
            }
            return Value::from_ptr(object, tag::THUNK);
        }
        Thunk::capture_slowly(body, frame)
    }

    #[cold]
    #[inline(never)]
    fn capture_slowly(body: &'static Body, frame: Activation<'_>) -> Value {
        let thunk = Thunk::suspend(body);
        for (slot, &var) in thunk.slots_of(body).iter().zip(body.captures) {
            slot.set(frame.get(var));
        }
        thunk.value()
    }

    /// The captures of a thunk that was made for `body` and has not begun, to be filled in; empty otherwise.
    #[inline]
    pub fn slots_of(&'static self, body: &'static Body) -> &'static [Slot] {
        let head = self.head.load();
        let made = header_of(kind::SUSPENDED, std::ptr::from_ref(body).expose_provenance() as u64);
        if head & !STAMP == made { self.parts(body.captures.len()) } else { &[] }
    }

    /// A suspended application.
    pub fn apply(function: Value, args: &[Value]) -> Value {
        let count = 1 + args.len();
        let counted = u8::try_from(count).ok().filter(|&count| count < ITEMS).expect("an application has few arguments");
        Thunk::made_of(header(kind::APPLY, counted, NO_CODE), count, |i| if i == 0 { function } else { args[i - 1] })
    }

    /// A cell that stands for a cell of another instance: `map` says how one becomes the other.
    ///
    /// # Panics
    /// Outside all instances: such a cell belongs to one.
    pub fn transport(map: u32, original: Value) -> Value {
        assert!(heap::stamp() != 0, "a transported cell belongs to an instance");
        Thunk::made_of(header(kind::TRANSPORT, 0, NO_CODE), 2, |i| if i == 0 { original } else { Value::int(i64::from(map)) })
    }

    #[inline]
    fn made_of(head: u64, count: usize, part: impl Fn(usize) -> Value) -> Value {
        let object = heap::alloc(1 + count);
        // SAFETY: the allocation holds the header and `count` slots (invariant 1).
        unsafe {
            object.write(head | heap::stamp());
            for i in 0..count {
                object.add(1 + i).write(part(i).0);
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
            object.write(header(kind::FORCED, 0, 0) | heap::stamp());
            object.add(1).write(value.0);
        }
        Value::from_ptr(object, tag::THUNK)
    }

    /// A new cell that holds an evaluated value with a label.
    pub fn ready_labelled(value: Value, label: Label) -> Value {
        debug_assert!(value.is_whnf());
        let object = heap::alloc(2);
        // SAFETY: two words were allocated (invariant 1).
        unsafe {
            object.write(header(kind::LABELLED, 0, u64::from(label)) | heap::stamp());
            object.add(1).write(value.0);
        }
        Value::from_ptr(object, tag::THUNK)
    }

    /// Sets the value of a cell made by [`Thunk::ready`] that nobody else has seen yet.
    pub fn set_ready(&'static self, value: Value) {
        assert!(self.is_ready(), "only a cell that was made with its value gets another");
        self.slot(0).set(value);
    }

    /// Whether it was made with its value.
    pub fn is_ready(&'static self) -> bool {
        let head = self.head.load();
        header_kind(head) == kind::FORCED && header_payload(head) == 0
    }

    /// A cell that already failed: forcing it gives the error.
    #[cold]
    pub fn failed(error: Box<Error>) -> Value {
        let object = heap::alloc(2);
        // SAFETY: two words were allocated; the error is leaked, so it lives for ever.
        unsafe {
            object.write(header(kind::FAILED, 0, 0) | heap::stamp());
            object.add(1).write(std::ptr::from_ref(Box::leak(error)).expose_provenance() as u64);
        }
        Value::from_ptr(object, tag::THUNK)
    }

    /// The thunk as a value.
    #[inline]
    pub fn value(&'static self) -> Value {
        Value::from_ptr(std::ptr::from_ref(self).cast(), tag::THUNK)
    }

    /// The instance that made it.
    #[inline]
    pub fn stamp(&'static self) -> Stamp {
        Stamp::new(stamp_number(self.head.load()))
    }

    /// Where the slots begin. A reference to the thunk reaches its header only, so the address is taken up anew: the
    /// whole block was exposed when it was allocated (invariant 1).
    #[inline]
    pub(super) fn first_slot(&'static self) -> *const Slot {
        std::ptr::with_exposed_provenance(std::ptr::from_ref(self).addr() + size_of::<Thunk>())
    }

    #[inline]
    pub(super) fn slot(&'static self, index: usize) -> &'static Slot {
        // SAFETY: callers stay within the slots the header or body gives (invariants 1, 3); slot 0 always exists.
        unsafe { &*self.first_slot().add(index) }
    }

    /// The result, if there is one that anyone may take: the fast path of forcing.
    #[inline]
    pub fn forced(&'static self) -> Option<Value> {
        (header_kind(self.head.load()) == kind::FORCED).then(|| self.slot(0).get())
    }

    /// Whether there is a result that anyone may take.
    #[inline]
    pub fn is_evaluated(&'static self) -> bool {
        matches!(header_kind(self.head.load()), kind::FORCED | kind::LABELLED)
    }

    /// A result that anyone may take, and its label: zero for none.
    #[inline]
    pub fn evaluated(&'static self) -> Option<(Value, Label)> {
        let head = self.head.load();
        let label = match header_kind(head) {
            kind::FORCED => 0,
            kind::LABELLED => header_low(head) as Label,
            _ => return None,
        };
        Some((self.slot(0).get(), label))
    }

    /// The result and its label, if it has one.
    #[inline]
    pub fn labelled(&'static self) -> Option<(Value, Label)> {
        let head = self.head.load();
        (header_kind(head) == kind::LABELLED).then(|| (self.slot(0).get(), header_low(head) as Label))
    }

    /// The state.
    pub fn state(&'static self) -> ThunkState {
        let head = self.head.load();
        if let Some(owner) = Head::owner(head) {
            return ThunkState::Claimed(owner);
        }
        let (word, label) = (self.slot(0).get(), header_low(head) as Label);
        match header_kind(head) {
            kind::FORCED => ThunkState::Forced(word),
            kind::LABELLED => ThunkState::Labelled(word, label),
            kind::AHEAD => ThunkState::Ahead(word, label),
            kind::FAILED => beside::failure(word, label),
            kind::NOISY => {
                let (word, label) = beside::read(word);
                ThunkState::Noisy(word, label)
            }
            kind::FAILED_HERE => {
                let (word, label) = beside::read(word);
                beside::failure(word, label)
            }
            _ => ThunkState::Suspended,
        }
    }

    /// Claims a suspended thunk for this thread; `None` when it is in any other state.
    #[inline]
    pub fn claim(&'static self) -> Option<Claim> {
        self.claim_by(Thunk::this_thread())
    }

    /// The same for who knows this thread's number.
    #[inline]
    pub fn claim_by(&'static self, thread: u32) -> Option<Claim> {
        let head = self.head.load();
        if !matches!(header_kind(head), kind::SUSPENDED | kind::APPLY | kind::ITEM | kind::TRANSPORT) {
            return None;
        }
        let shared = SHARED.load(Ordering::Relaxed);
        if shared {
            perturb::perhaps_yield();
        }
        if !self.head.claim(head, thread, shared) {
            return None;
        }
        Some(Claim { thunk: self, head })
    }

    /// As [`Thunk::claim`], for code of the running production's own instance, where there is one thread of this number and
    /// the production has been quiet: then it need not be changed for another.
    #[inline(always)]
    pub fn claim_code_here(&'static self, thread: u32) -> Option<Claim> {
        let head = self.head.load();
        let production = Production::current();
        if production.differs(head) != CODE_HERE.load(Ordering::Relaxed) {
            return None;
        }
        self.head.claim_alone(thread, production.word());
        Some(Claim { thunk: self, head })
    }

    /// The same for applications.
    #[inline(always)]
    pub fn claim_application_here(&'static self, thread: u32) -> Option<Claim> {
        let head = self.head.load();
        let production = Production::current();
        let differs = production.differs(head);
        let fits = [kind::APPLY, kind::ITEM].iter().any(|&kind| differs == kind_and_stamp(header(kind, 0, 0)));
        if !fits || SHARED.load(Ordering::Relaxed) {
            return None;
        }
        self.head.claim_alone(thread, production.word());
        Some(Claim { thunk: self, head })
    }

    /// As [`Thunk::claim`], for code of any instance, where there is one thread of this number.
    #[inline(always)]
    pub fn claim_code(&'static self, thread: u32) -> Option<Claim> {
        let head = self.head.load();
        if header_kind(head) != kind::SUSPENDED || SHARED.load(Ordering::Relaxed) {
            return None;
        }
        self.head.claim_alone(thread, header_stamp(head));
        Some(Claim { thunk: self, head })
    }

    /// The code of a thunk that has not begun, where there is one thread.
    #[inline]
    pub fn code_alone(&'static self) -> Option<&'static Body> {
        let head = self.head.load();
        (header_kind(head) == kind::SUSPENDED && !SHARED.load(Ordering::Relaxed)).then(|| body_at(header_address(head)))
    }

    /// Gives a thunk that has [code alone](Thunk::code_alone) the value that the code is, without running it.
    #[inline]
    pub fn publish_constant(&'static self, value: Value) {
        let head = self.head.load();
        debug_assert!(value.is_whnf() && header_kind(head) == kind::SUSPENDED && single_threaded(true));
        self.slot(0).set(value);
        self.head.publish_alone(with_kind(head, kind::FORCED));
    }

    /// Whether it is code that has not begun.
    #[inline]
    pub fn is_code(&'static self) -> bool {
        header_kind(self.head.load()) == kind::SUSPENDED
    }

    #[cold]
    pub(super) fn transported(&'static self) -> Work {
        let parts = self.parts(2);
        let map = parts[1].get().as_int().and_then(|map| u32::try_from(map).ok()).expect("a transport names its map");
        Work::Transport(map, parts[0].get())
    }

    /// What a thunk has to do or, if it is of an instance and was noisy or failed, had to do.
    pub fn retained(&'static self) -> Option<Work> {
        match header_kind(self.head.load()) {
            kind::NOISY | kind::FAILED_HERE => beside::made(self.slot(0).get()).suspended_work(),
            _ => self.suspended_work(),
        }
    }

    /// This thread's number as it appears in [`ThunkState::Claimed`].
    pub fn this_thread() -> u32 {
        THREAD.with(|&t| t)
    }

    /// The first `count` captures or parts; `count` comes from the header or the body the thunk was made with.
    #[inline]
    pub(super) fn parts(&'static self, count: usize) -> &'static [Slot] {
        // SAFETY: the thunk was allocated with that many slots (invariants 1, 3).
        unsafe { std::slice::from_raw_parts(self.first_slot(), count) }
    }

    /// What a thunk with this header applies.
    #[inline]
    pub(super) fn application(&'static self, head: u64) -> Application {
        match header_count(head) {
            ITEMS => Application::Item(Item::of(self, header_low(head))),
            count => Application::Slots(self.parts(count as usize)),
        }
    }

    /// Ends the claim of this thread and wakes who waits for it.
    #[inline]
    pub(super) fn finish(&'static self, head: u64, write_result: impl FnOnce()) {
        let shared = SHARED.load(Ordering::Relaxed);
        if shared {
            // Who reads the result where a part was sees that the thunk was claimed (`suspended_work`).
            fence(Ordering::Release);
        }
        if self.head.finish(head, shared, write_result) {
            WAITS.wake();
        }
    }

    /// Lets anyone take the value of a thunk that was forced on behalf of another instance: its own has come to need it.
    pub fn settle(&'static self) {
        let head = self.head.load();
        if header_kind(head) == kind::AHEAD {
            self.finish(with_kind(head, if header_low(head) == 0 { kind::FORCED } else { kind::LABELLED }), || ());
        }
    }

    /// Lets anyone take the value without its label: whoever does rests on all that is in it anyway.
    pub fn forget_label(&'static self) {
        let head = self.head.load();
        if header_kind(head) == kind::LABELLED {
            self.finish(with_kind(head, kind::FORCED), || ());
        }
    }

    /// Sleeps until thread `owner` has ended its claim. False when the two threads need each other: infinite recursion, or,
    /// for one that `gives_way`, something that others can do without it.
    #[cold]
    pub fn wait(&'static self, owner: u32, gives_way: bool) -> bool {
        WAITS.wait(&self.head, owner, Thunk::this_thread(), gives_way)
    }

    /// The function of an application that has not begun; none if it is applied to nothing.
    pub fn applied_function(&'static self) -> Option<Value> {
        match self.suspended_work()? {
            Work::Apply(application) => applied(application),
            // What stands for an application is one, of a function of the same code.
            Work::Transport(..) => match self.original().and_then(Thunk::retained) {
                Some(Work::Apply(application)) => applied(application),
                _ => None,
            },
            Work::Run(..) => None,
        }
    }

    /// Whether it is an application that has not begun.
    #[inline]
    pub fn is_application(&'static self) -> bool {
        match header_kind(self.head.load()) {
            kind::SUSPENDED => false,
            kind::APPLY | kind::ITEM => true,
            _ => self.stands_for_application(),
        }
    }

    #[inline(never)]
    fn stands_for_application(&'static self) -> bool {
        let transport = header_kind(self.head.load()) == kind::TRANSPORT;
        transport && matches!(self.original().and_then(Thunk::retained), Some(Work::Apply(_)))
    }

    /// The cell that a transport that has not begun stands for, through other transports.
    pub fn original(&'static self) -> Option<&'static Thunk> {
        let mut thunk = self;
        loop {
            match thunk.retained() {
                Some(Work::Transport(_, original)) => thunk = original.as_thunk()?,
                _ => return Some(thunk),
            }
        }
    }

    /// The code and captures of a thunk that has not begun.
    pub fn suspended_body(&'static self) -> Option<(&'static Body, &'static [Slot])> {
        let head = self.head.load();
        (header_kind(head) == kind::SUSPENDED).then(|| {
            let body = body_at(header_address(head));
            (body, self.parts(body.captures.len()))
        })
    }

    /// What a thunk that has not begun has to do.
    pub fn suspended_work(&'static self) -> Option<Work> {
        let shared = SHARED.load(Ordering::Relaxed);
        loop {
            let head = self.head.load();
            let parts = |count: usize| if shared { copied(self.parts(count)) } else { self.parts(count) };
            let work = match (header_kind(head), header_count(head)) {
                (kind::SUSPENDED, _) => {
                    let body = body_at(header_address(head));
                    Work::Run(body, parts(body.captures.len()))
                }
                (kind::APPLY, count) => Work::Apply(Application::Slots(parts(count as usize))),
                (kind::ITEM, _) => Work::Apply(self.application(head)),
                (kind::TRANSPORT, _) => self.transported(),
                _ => return None,
            };
            // A result overwrites the first part: what another thread has claimed meanwhile is looked at anew. What was given back is as
            // it was.
            fence(Ordering::Acquire);
            if !shared || self.head.load() == head {
                return Some(work);
            }
        }
    }
}

/// Slots of their own with the same words.
fn copied(slots: &[Slot]) -> &'static [Slot] {
    if slots.is_empty() {
        return &[];
    }
    let copy = heap::alloc(slots.len());
    // SAFETY: as many words were allocated as are written and then read (invariant 1).
    unsafe {
        for (at, slot) in slots.iter().enumerate() {
            copy.add(at).write(slot.get().0);
        }
        std::slice::from_raw_parts(copy.cast::<Slot>(), slots.len())
    }
}

/// The function of an application, if it is to anything.
fn applied(application: Application) -> Option<Value> {
    application.function().filter(|_| application.len() > 1)
}

impl std::fmt::Debug for Thunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("thunk")
    }
}
