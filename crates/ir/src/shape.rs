//! Shapes: the names and positions of an attribute set, shared by all sets made at one place.
//!
//! Invariant: `names` is strictly ascending by symbol number and `positions` has the same length. A shape never
//! changes and is never freed, so its address can stand for it in inline caches.

use firn_source::{Pos, Symbol};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Names and positions of an attribute set.
#[derive(Debug)]
#[repr(align(16))]
pub struct Shape {
    names: Box<[Symbol]>,
    positions: Box<[Pos]>,
    by_name: OnceLock<Box<[u32]>>,
    bare: OnceLock<&'static Shape>,
    places: OnceLock<Box<[u32]>>,
    name_list: AtomicU64,
}

/// Larger shapes are looked up by a table of places.
const TABLE_FROM: usize = 32;

impl Shape {
    /// A shape of names that are already in ascending symbol order.
    ///
    /// # Panics
    /// When the lengths differ; order is checked in debug builds.
    pub fn new(names: Box<[Symbol]>, positions: Box<[Pos]>) -> &'static Shape {
        assert_eq!(names.len(), positions.len());
        debug_assert!(names.windows(2).all(|w| w[0] < w[1]));
        Box::leak(Box::new(Shape { names, positions, by_name: OnceLock::new(), bare: OnceLock::new(), places: OnceLock::new(), name_list: AtomicU64::new(0) }))
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

    /// The word of the list of names, made on first use; zero before. For the values' room alone, which knows words.
    #[inline]
    pub fn name_list(&self) -> &AtomicU64 {
        &self.name_list
    }

    /// Index of a name.
    #[inline]
    pub fn index(&self, name: Symbol) -> Option<usize> {
        // PERF: most sets are small, and a linear scan over four-byte names beats a binary search there.
        if self.names.len() <= 12 {
            return self.names.iter().position(|&n| n == name);
        }
        if self.names.len() < TABLE_FROM {
            return self.names.binary_search(&name).ok();
        }
        self.index_by_table(name)
    }

    // PERF: against a binary search: with-scopes 12 %, and few cache lines touched in sets of twenty thousand names.
    fn index_by_table(&self, name: Symbol) -> Option<usize> {
        let places = self.places.get_or_init(|| self.make_places());
        let mut at = place(name, places.len());
        loop {
            match places[at] {
                0 => return None,
                n if self.names[n as usize - 1] == name => return Some(n as usize - 1),
                _ => at = (at + 1) & (places.len() - 1),
            }
        }
    }

    /// An open-addressed table, at most half full: index + 1, or 0 where nothing is.
    #[cold]
    fn make_places(&self) -> Box<[u32]> {
        let mut places = vec![0; (self.names.len() * 2).next_power_of_two()].into_boxed_slice();
        for (i, &name) in self.names.iter().enumerate() {
            let mut at = place(name, places.len());
            while places[at] != 0 {
                at = (at + 1) & (places.len() - 1);
            }
            places[at] = i as u32 + 1;
        }
        places
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

/// Where the search for a name begins in a table of so many places, a power of two.
#[inline]
fn place(name: Symbol, len: usize) -> usize {
    (u64::from(name.id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (len - 1)
}
