//! A thunk that this thread has claimed: what it has to do, and how its claim ends.

use super::thunk::{body_at, ends_evenly, single_threaded};
use super::{Application, Item, Label, Production, Slot, Stamp, Thunk, Value, Work, beside, kind};
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
            (body, self.thunk.parts(body.captures.len()))
        })
    }

    /// What is to be done.
    #[inline]
    pub fn work(&self) -> Work {
        match (self.body(), header_kind(self.head)) {
            (Some((body, captures)), _) => Work::Run(body, captures),
            (None, kind::APPLY | kind::ITEM) => Work::Apply(self.application()),
            (None, _) => self.thunk.transported(),
        }
    }

    /// Begins the production of the thunk's value, in its own instance.
    #[inline]
    pub fn begin(&self) -> Production {
        Production::begin_of(self.head)
    }

    /// The instance that made the thunk.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        Stamp::of_header(self.head)
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
        let head = with_kind(self.head, kind::FORCED);
        self.end(head, value);
    }

    /// The code and captures of a thunk that was claimed as code.
    #[inline]
    pub fn code(&self) -> (&'static Body, &'static [Slot]) {
        debug_assert_eq!(header_kind(self.head), kind::SUSPENDED);
        let body = body_at(header_address(self.head));
        (body, self.thunk.parts(body.captures.len()))
    }

    /// The parts of a thunk that was claimed as an application.
    #[inline]
    pub fn application(&self) -> Application {
        if header_kind(self.head) == kind::ITEM {
            return Application::Item(Item::of(self.thunk, header_low(self.head)));
        }
        Application::Slots(self.thunk.parts(header_count(self.head) as usize))
    }

    /// Whether the production that runs again, which is of the thunk's instance, has been quiet: nothing but the value is to be kept.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        debug_assert!(Production::current().is_of(self.head));
        !Production::current().is_marked()
    }

    /// Whether nothing but the value is to be kept, and nobody waits, as it has been until now with every production. If not, whoever
    /// ends the claim looks closer.
    #[inline(always)]
    pub fn ends_evenly(&self) -> bool {
        ends_evenly()
    }

    /// Publishes the result of a thunk claimed by [`Thunk::claim_code_here`] and its like, if it [ends evenly](Claim::ends_evenly).
    #[inline(always)]
    pub fn publish_evenly(self, value: Value) {
        debug_assert!(value.is_whnf() && single_threaded(true));
        self.thunk.slot(0).set(value);
        self.thunk.head.publish_alone(with_kind(self.head, kind::FORCED));
    }

    /// Publishes a result whose production was noisy and observed this.
    pub fn publish_noisy(self, value: Value, label: Label) {
        debug_assert!(value.is_whnf());
        self.keep(kind::NOISY, value, label);
    }

    /// Ends the claim with a result that others do not take: they need what is to be done.
    #[cold]
    fn keep(self, kind: u8, result: Value, label: Label) {
        let kept = beside::put(self.head, self.work(), result, label);
        self.thunk.finish(header(kind, 0, 0) | header_stamp(self.head), || self.thunk.slot(0).set(kept));
    }

    /// Publishes a result for others than the thunk's own instance, and what its production observed.
    pub fn publish_ahead(self, value: Value, label: Label) {
        // The count tells it, once it is settled, from a cell that was made with its value.
        let head = header(kind::AHEAD, 1, u64::from(label)) | header_stamp(self.head);
        self.end(head, value);
    }

    #[inline]
    fn end(self, head: u64, value: Value) {
        debug_assert!(value.is_whnf());
        self.thunk.finish(head, || self.thunk.slot(0).set(value));
    }

    /// Publishes a result whose production observed something.
    #[inline]
    pub fn publish_labelled(self, value: Value, label: Label) {
        let head = header(kind::LABELLED, 0, u64::from(label)) | header_stamp(self.head);
        self.end(head, value);
    }

    /// Publishes a lasting failure and what was observed until then.
    #[cold]
    pub fn fail(self, error: Box<Error>, label: Label) {
        let error: &'static Error = Box::leak(error);
        let word = Value(std::ptr::from_ref(error).expose_provenance() as u64);
        if header_stamp(self.head) != 0 {
            return self.keep(kind::FAILED_HERE, word, label);
        }
        self.thunk.finish(header(kind::FAILED, 0, u64::from(label)), || self.thunk.slot(0).set(word));
    }

    /// Gives the thunk back unevaluated.
    #[cold]
    pub fn restore(self) {
        self.thunk.finish(self.head, || ());
    }
}
