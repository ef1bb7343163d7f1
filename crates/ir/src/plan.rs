//! Plans: how a set pattern takes sets of one shape apart, found out once.

use crate::{InlineCache, Shape};
use firn_source::Symbol;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a pattern takes a set of one shape apart. There are plans only for sets that fit the pattern.
#[derive(Debug)]
pub struct Plan {
    shape: &'static Shape,
    /// For each formal its index in the shape, or [`InlineCache::ABSENT`].
    pub indices: Box<[u16]>,
    /// Whether any formal is absent.
    pub lacking: bool,
}

/// The plans of a pattern, for the first two shapes that come after its first call: most functions are called once.
// PERF: a check for all formals together; with one inline cache for each formal a match took twice as long.
#[derive(Debug, Default)]
pub struct Plans {
    called: AtomicBool,
    known: OnceLock<Box<[OnceLock<Plan>; 2]>>,
}

impl Plans {
    /// The plan for sets of this shape.
    #[inline]
    pub fn find(&self, shape: &'static Shape) -> Option<&Plan> {
        let [first, second] = &**self.known.get()?;
        let fits = |plan: &&Plan| std::ptr::eq(plan.shape, shape);
        first.get().filter(fits).or_else(|| second.get().filter(fits))
    }

    /// A set of this shape fitted the pattern with these formals.
    #[inline(never)]
    pub fn fitted(&self, shape: &'static Shape, formals: impl Iterator<Item = Symbol>) {
        if !self.called.swap(true, Ordering::Relaxed) || shape.len() >= InlineCache::ABSENT {
            return;
        }
        let known = self.known.get_or_init(Box::default);
        let Some(free) = known.iter().find(|plan| plan.get().is_none()) else { return };
        free.get_or_init(|| {
            let index = |name| shape.index(name).unwrap_or(InlineCache::ABSENT) as u16;
            let indices: Box<[u16]> = formals.map(index).collect();
            let lacking = indices.contains(&(InlineCache::ABSENT as u16));
            Plan { shape, indices, lacking }
        });
    }
}
