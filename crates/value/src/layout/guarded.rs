//! Guarded sets: what names such a set has, and what stands under them, rests on something outside, and nobody has taken that into
//! account yet. Whoever looks up a name observes that name, whoever goes through all of them observes all (spec L2.5).
//!
//! The names of such a set as a list, and pairs that are made of these names one by one, are guarded lists. Whoever looks at one in any way
//! but to make the next set of it observes all.
//!
//! A guarded set is an object of its own kind before the set itself, so every access to a set that is not flat meets it, and flat
//! sets pay nothing. Invariant: the set behind is flat or layered, and no layer is guarded.

use super::{Attrs, List, Value, header, header_count, header_kind, header_low, heap, kind, word::tag};
use firn_source::Symbol;
use std::sync::OnceLock;

/// The number of what a set's names rest on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard(pub u32);

/// Hears of what is seen of guarded sets.
pub trait Guards: Send + Sync {
    /// The running production looks up a name.
    fn see(&self, guard: Guard, name: Symbol);
    /// The running production looks up several names.
    fn see_each(&self, guard: Guard, names: &[Symbol]);
    /// The running production goes through all names.
    fn see_all(&self, guard: Guard);
    /// What two guards rest on.
    fn both(&self, one: Guard, other: Guard) -> Guard;
}

static GUARDS: OnceLock<&'static dyn Guards> = OnceLock::new();

/// Says who hears of guarded sets; the first counts. Before that there must be none.
pub fn hear_of_guards(guards: &'static dyn Guards) {
    let _ = GUARDS.set(guards);
}

fn guards() -> &'static dyn Guards {
    *GUARDS.get().expect("whoever guards sets hears of them")
}

impl Attrs {
    /// The guard and the set behind it.
    fn guarded(self) -> Option<(Guard, Attrs)> {
        // SAFETY: a GUARDED object is its header, with the guard, and the word of the set behind (invariants 2, 3).
        (header_kind(self.head()) == kind::GUARDED)
            .then(|| unsafe { (Guard(header_low(self.head()) as u32), Attrs::of(Value(self.object.add(1).read()))) })
    }

    /// The guard, if there is one.
    pub fn guard(self) -> Option<Guard> {
        self.guarded().map(|(guard, _)| guard)
    }

    /// The set behind the guard, of which nothing counts as seen: for who makes a set of it that is [guarded](Attrs::guarded_by) the
    /// same way, and lets nothing else depend on what is in it.
    pub fn unguarded(self) -> Attrs {
        self.guarded().map_or(self, |(_, behind)| behind)
    }

    /// The set behind the guard, of which this name is seen.
    #[inline(never)]
    pub(super) fn see(self, name: Symbol) -> Option<Attrs> {
        let (guard, behind) = self.guarded()?;
        guards().see(guard, name);
        Some(behind)
    }

    /// The set behind the guard, of which these names are seen.
    // PERF: one after the other each would be an observation set of its own.
    pub fn seen_each(self, names: &[Symbol]) -> Attrs {
        let Some((guard, behind)) = self.guarded() else { return self };
        guards().see_each(guard, names);
        behind
    }

    /// The set behind the guard, of which all is seen.
    #[inline(never)]
    pub(super) fn see_all(self) -> Option<Attrs> {
        let (guard, behind) = self.guarded()?;
        guards().see_all(guard);
        Some(behind)
    }

    /// The set with a guard, besides the one that it has.
    pub fn guarded_by(self, guard: Option<Guard>) -> Value {
        let Some(guard) = guard else { return self.value() };
        let (guard, behind) = match self.guarded() {
            Some((own, _)) if own == guard => return self.value(),
            Some((own, behind)) => (guards().both(own, guard), behind),
            None => (guard, self),
        };
        let object = heap::alloc(2);
        // SAFETY: two words were allocated (invariant 1).
        unsafe {
            object.write(header(kind::GUARDED, 0, guard.0.into()) | heap::stamp());
            object.add(1).write(behind.value().0);
        }
        Value::from_ptr(object, tag::ATTRS)
    }

    /// `self // over` where one of them is guarded: names of either rest on what both rest on.
    #[inline(never)]
    pub(super) fn update_guarded(self, over: Attrs) -> Value {
        let updated = self.unguarded().update(over.unguarded());
        let updated = Attrs::of(Attrs::of(updated).guarded_by(self.guard()));
        updated.guarded_by(over.guard())
    }
}

/// What the elements of a guarded list are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// All names of a set, in their order.
    Names = 0,
    /// For each name something that has it as its own name.
    Pairs = 1,
}

impl List {
    /// The guard, and what the elements are, if the list is guarded.
    pub fn guard(self) -> Option<(Guard, Row)> {
        let head = self.head();
        let row = if header_count(head) == 0 { Row::Names } else { Row::Pairs };
        (header_kind(head) == kind::GUARDED_LIST).then_some((Guard(header_low(head) as u32), row))
    }

    /// The list behind the guard, as [`Attrs::unguarded`].
    pub fn unguarded(self) -> List {
        match self.guard() {
            // SAFETY: a GUARDED_LIST object is its header and the word of the list behind (invariants 2, 3).
            Some(_) => unsafe { List::of(Value(self.object.add(1).read())) },
            None => self,
        }
    }

    /// The list behind the guard, of which all is seen.
    #[cold]
    pub(super) fn see_all(self) -> List {
        if let Some((guard, _)) = self.guard() {
            guards().see_all(guard);
        }
        self.unguarded()
    }

    /// The list behind the guard, a list of names, of which is seen whether it has these.
    pub fn seen_each(self, names: &[Symbol]) -> List {
        match self.guard() {
            Some((guard, Row::Names)) => guards().see_each(guard, names),
            Some((guard, Row::Pairs)) => guards().see_all(guard),
            None => {}
        }
        self.unguarded()
    }

    /// The list with a guard. It has none yet.
    pub fn guarded_by(self, guard: Guard, row: Row) -> Value {
        let object = heap::alloc(2);
        // SAFETY: two words were allocated (invariant 1).
        unsafe {
            object.write(header(kind::GUARDED_LIST, row as u8, guard.0.into()) | heap::stamp());
            object.add(1).write(self.value().0);
        }
        Value::from_ptr(object, tag::LIST)
    }
}
