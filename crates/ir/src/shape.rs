//! Shapes: the names and positions of an attribute set, shared by all sets made at one place.
//!
//! Invariant: `names` is strictly ascending by symbol number and `positions` has the same length. A shape never
//! changes and is never freed, so its address can stand for it in inline caches.

use firn_source::{Pos, Symbol};
use std::sync::OnceLock;

/// Names and positions of an attribute set.
#[derive(Debug)]
#[repr(align(16))]
pub struct Shape {
    names: Box<[Symbol]>,
    positions: Box<[Pos]>,
    by_name: OnceLock<Box<[u32]>>,
    bare: OnceLock<&'static Shape>,
}

impl Shape {
    /// A shape of names that are already in ascending symbol order.
    ///
    /// # Panics
    /// When the lengths differ; order is checked in debug builds.
    pub fn new(names: Box<[Symbol]>, positions: Box<[Pos]>) -> &'static Shape {
        assert_eq!(names.len(), positions.len());
        debug_assert!(names.windows(2).all(|w| w[0] < w[1]));
        Box::leak(Box::new(Shape { names, positions, by_name: OnceLock::new(), bare: OnceLock::new() }))
    }

    /// The shape of the empty set.
    pub fn empty() -> &'static Shape {
        static EMPTY: OnceLock<&'static Shape> = OnceLock::new();
        EMPTY.get_or_init(|| Shape::new(Box::new([]), Box::new([])))
    }

    /// Number of names.
    #[inline]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no name.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Names in symbol order.
    #[inline]
    pub fn names(&self) -> &[Symbol] {
        &self.names
    }

    /// Where each name was defined, in symbol order.
    #[inline]
    pub fn positions(&self) -> &[Pos] {
        &self.positions
    }

    /// The shape of the same names without positions, made once by `make` when this one has any.
    pub fn bare(&'static self, make: impl FnOnce(&'static Shape) -> &'static Shape) -> &'static Shape {
        if self.positions.iter().all(|pos| !pos.is_some()) {
            return self;
        }
        self.bare.get_or_init(|| make(self))
    }

    /// Index of a name.
    #[inline]
    pub fn index(&self, name: Symbol) -> Option<usize> {
        // PERF: most sets are small, and a linear scan over four-byte names beats a binary search there.
        if self.names.len() <= 12 {
            return self.names.iter().position(|&n| n == name);
        }
        self.names.binary_search(&name).ok()
    }

    /// Indices in the order of the names' bytes, which is the order users see.
    pub fn by_name(&self) -> &[u32] {
        self.by_name.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.names.len() as u32).collect();
            order.sort_unstable_by_key(|&i| self.names[i as usize].as_bytes());
            order.into_boxed_slice()
        })
    }
}
