//! A thunk that this thread has claimed: what it has to do, and how its claim ends.

use super::thunk::{body_at, single_threaded};
use super::{Application, Item, Label, Production, Slot, Thunk, Value, Work, beside, heap, kind};
use super::{header, header_address, header_count, header_kind, header_low, header_stamp, with_kind};
use crate::{Body, Error};

/// A thunk that this thread has claimed. It must be published, failed or given back.
#[derive(Debug)]
#[must_use]
pub struct Claim {
    pub(super) thunk: &'static Thunk,
    pub(super) head: u64,
}

impl Claim {
    /// The code and captures of a thunk that has such: what nearly every thunk has to do.
    // PERF: a claim is two words and says what to do when asked; carrying it along cost a tenth of forcing.
    #[inline]
    pub fn body(&self) -> Option<(&'static Body, &'static [Slot])> {
        (header_kind(self.head) == kind::SUSPENDED).then(|| {
            let body = body_at(header_address(self.head));
            (body, self.thunk.parts(self.head, body.captures.len()))
        })
    }

    /// What is to be done.
    #[inline]
    pub fn work(&self) -> Work {
        match (self.body(), header_kind(self.head)) {
            (Some((body, captures)), _) => Work::Run(body, captures),
            (None, kind::APPLY | kind::ITEM) => Work::Apply(self.application_here()),
            (None, _) => self.thunk.transported(self.head),
        }
    }

    /// Begins the production of the thunk's value, in its own instance.
    #[inline]
    pub fn begin(&self) -> Production {
        Production::begin_of(self.head)
    }

    /// Whether the thunk belongs to another instance than the production around it.
    #[inline]
    pub fn is_elsewhere(&self, outer: Production) -> bool {
        !outer.is_of(self.head)
    }

    /// The thunk.
    pub fn cell(&self) -> Value {
        self.thunk.value()
    }

    /// Publishes the result.
    #[inline]
    pub fn publish(self, value: Value) {
        self.publish_as(kind::FORCED, value);
    }

    /// The code and captures of a thunk claimed by [`Thunk::claim_code_alone`].
    #[inline]
    pub fn body_alone(&self) -> (&'static Body, &'static [Slot]) {
        let body = body_at(header_address(self.head));
        // SAFETY: code has that many captures, and outside instances nothing lies before them (invariants 1, 3, 6).
        (body, unsafe { std::slice::from_raw_parts(self.thunk.first_slot(), body.captures.len()) })
    }

    /// The parts of a thunk claimed by [`Thunk::claim_application_alone`].
    #[inline]
    pub fn application_alone(&self) -> Application {
        if header_kind(self.head) == kind::ITEM {
            return Application::Item(Item::of(self.thunk, header_low(self.head)));
        }
        // SAFETY: the header of an application counts its parts; outside instances nothing lies before them
        // (invariants 1, 3, 6).
        Application::Slots(unsafe { std::slice::from_raw_parts(self.thunk.first_slot(), header_count(self.head) as usize) })
    }

    /// Whether the running production is of the thunk's instance and has been quiet: nothing but the value is to be kept.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        // One that was noisy or has a label has more bits than a stamp, and is no thunk's.
        header_stamp(self.head) == heap::production()
    }

    /// The parts of a thunk claimed by [`Thunk::claim_application_here`].
    #[inline]
    pub fn application_here(&self) -> Application {
        if header_kind(self.head) == kind::ITEM {
            return Application::Item(Item::of(self.thunk, header_low(self.head)));
        }
        Application::Slots(self.thunk.parts(self.head, header_count(self.head) as usize))
    }

    /// The code and captures of a thunk claimed by [`Thunk::claim_code_here`].
    #[inline]
    pub fn body_here(&self) -> (&'static Body, &'static [Slot]) {
        let body = body_at(header_address(self.head));
        (body, self.thunk.parts(self.head, body.captures.len()))
    }

    /// Publishes the result of a thunk claimed alone or by [`Thunk::claim_code_here`] and its like.
    #[inline]
    pub fn publish_alone(self, value: Value) {
        debug_assert!(value.is_whnf());
        if !single_threaded(true) {
            return self.publish_to_others(value);
        }
        self.thunk.slot(0).set(value);
        self.thunk.head.publish_alone(with_kind(self.head, kind::FORCED));
    }

    #[cold]
    #[inline(never)]
    fn publish_to_others(self, value: Value) {
        self.publish(value);
    }

    /// Publishes a result whose production was noisy and observed this.
    pub fn publish_noisy(self, value: Value, label: Label) {
        self.publish_with(kind::NOISY, kind::NOISY_LABELLED, value, label);
    }

    /// Publishes a result for others than the thunk's own instance, and what its production observed.
    pub fn publish_ahead(self, value: Value, label: Label) {
        self.publish_with(kind::AHEAD, kind::AHEAD_LABELLED, value, label);
    }

    /// Publishes a result of an instance's thunk as the one kind without a label, as the other with one.
    fn publish_with(self, plain: u8, labelled: u8, value: Value, label: Label) {
        if label == 0 {
            return self.publish_as(plain, value);
        }
        debug_assert!(value.is_whnf() && header_stamp(self.head) != 0);
        self.thunk.finish(with_kind(self.head, labelled), || self.thunk.slot(0).set(beside::put(value, label)));
    }

    #[inline]
    fn publish_as(self, kind: u8, value: Value) {
        debug_assert!(value.is_whnf());
        self.thunk.finish(with_kind(self.head, kind), || self.thunk.slot(0).set(value));
    }

    /// Publishes a result whose production observed something.
    #[inline]
    pub fn publish_labelled(self, value: Value, label: Label) {
        debug_assert!(value.is_whnf());
        if header_stamp(self.head) != 0 {
            // Its header has no room for a label.
            return self.publish_with(kind::FORCED, kind::LABELLED, value, label);
        }
        self.thunk.finish(header(kind::LABELLED, 0, u64::from(label)), || self.thunk.slot(0).set(value));
    }

    /// Publishes a lasting failure and what was observed until then.
    #[cold]
    pub fn fail(self, error: Box<Error>, label: Label) {
        let error: &'static Error = Box::leak(error);
        let word = Value(std::ptr::from_ref(error).expose_provenance() as u64);
        // The code of a thunk of an instance is needed for others; one outside all instances needs it no more.
        let (head, word) = match (header_stamp(self.head), label) {
            (0, _) => (header(kind::FAILED, 0, u64::from(label)), word),
            (_, 0) => (with_kind(self.head, kind::FAILED), word),
            _ => (with_kind(self.head, kind::FAILED_LABELLED), beside::put(word, label)),
        };
        self.thunk.finish(head, || self.thunk.slot(0).set(word));
    }

    /// Gives the thunk back unevaluated.
    #[cold]
    pub fn restore(self) {
        self.thunk.finish(self.head, || ());
    }
}
