//! String contexts: interned sets of context elements.
//!
//! An element is a symbol holding Nix's own encoding of it (`/nix/store/…`, `=/nix/store/….drv`,
//! `!out!/nix/store/….drv`). A context is interned, so equal contexts are one object and union of equals is free.

use firn_source::Symbol;
use hashbrown::HashSet;
use std::sync::{LazyLock, Mutex};

/// A set of context elements; the empty one is the common case.
#[derive(Clone, Copy, Debug)]
pub struct Context(Option<&'static ContextSet>);

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContextSet {
    /// Ascending by symbol number.
    elements: Box<[Symbol]>,
}

static INTERNED: LazyLock<Mutex<HashSet<&'static ContextSet>>> = LazyLock::new(Mutex::default);

impl Context {
    /// No context.
    pub const EMPTY: Context = Context(None);

    /// The context of these elements, in any order, repeats allowed.
    pub fn of(mut elements: Vec<Symbol>) -> Context {
        if elements.is_empty() {
            return Context::EMPTY;
        }
        elements.sort_unstable();
        elements.dedup();
        let set = ContextSet { elements: elements.into_boxed_slice() };
        let mut interned = INTERNED.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(&known) = interned.get(&set) {
            return Context(Some(known));
        }
        let set: &'static ContextSet = Box::leak(Box::new(set));
        interned.insert(set);
        Context(Some(set))
    }

    /// The context of one element.
    pub fn single(element: Symbol) -> Context {
        Context::of(vec![element])
    }

    pub(crate) fn from_set(set: Option<&'static ContextSet>) -> Context {
        Context(set)
    }

    pub(crate) fn as_set(self) -> Option<&'static ContextSet> {
        self.0
    }

    /// Whether there is nothing in it.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0.is_none()
    }

    /// The elements in ascending symbol order, which is no order for people: sort by bytes before printing.
    pub fn elements(self) -> &'static [Symbol] {
        self.0.map_or(&[], |set| &set.elements)
    }

    /// The elements in the order of their encodings.
    pub fn sorted(self) -> Vec<Symbol> {
        let mut all = self.elements().to_vec();
        all.sort_unstable_by_key(|s| s.as_bytes());
        all
    }

    /// Both contexts together.
    #[inline]
    pub fn union(self, other: Context) -> Context {
        if other.is_empty() || self == other {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        self.merge(other)
    }

    fn merge(self, other: Context) -> Context {
        if other.elements().iter().all(|e| self.elements().binary_search(e).is_ok()) {
            return self;
        }
        let mut all = self.elements().to_vec();
        all.extend_from_slice(other.elements());
        Context::of(all)
    }
}

impl Default for Context {
    fn default() -> Context {
        Context::EMPTY
    }
}

/// Collects the contexts of many strings and interns their union once.
#[derive(Clone, Debug, Default)]
pub struct ContextBuilder {
    first: Context,
    more: Vec<Symbol>,
    /// When `more` has grown to this, repeats are dropped.
    tidy_at: usize,
}

impl ContextBuilder {
    /// Adds a context.
    #[inline]
    pub fn add(&mut self, context: Context) {
        if context.is_empty() || context == self.first {
            return;
        }
        self.extend(context);
    }

    fn extend(&mut self, context: Context) {
        if self.first.is_empty() {
            self.first = context;
            return;
        }
        self.more.extend_from_slice(context.elements());
        if self.more.len() > self.tidy_at {
            self.more.sort_unstable();
            self.more.dedup();
            self.tidy_at = self.more.len() * 2 + 1000;
        }
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }

    /// The union.
    pub fn finish(mut self) -> Context {
        if self.more.is_empty() {
            return self.first;
        }
        self.more.extend_from_slice(self.first.elements());
        Context::of(self.more)
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Context) -> bool {
        match (self.0, other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }
}

impl Eq for Context {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_are_one_object_and_union_is_a_set_union() {
        let (a, b, c) =
            (Symbol::from("/nix/store/a"), Symbol::from("=/nix/store/b.drv"), Symbol::from("!out!/nix/store/c.drv"));
        assert!(Context::of(vec![a, b, a]) == Context::of(vec![b, a]));
        assert!(Context::of(vec![a]).union(Context::of(vec![b, c])) == Context::of(vec![c, b, a]));
        assert!(Context::EMPTY.union(Context::single(a)) == Context::single(a));
        assert!(Context::of(vec![]).is_empty());
    }
}
