//! Shapes: the names and positions of an attribute set, shared by all sets made at one place.
//!
//! Invariant: `names` is strictly ascending by symbol number and `positions` has the same length. A shape never
//! changes and is never freed, so its address can stand for it in inline caches.

use crate::arena::{keep, keep_each};
use crate::name_list::NameList;
use firn_source::{Pos, Symbol};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Names and positions of an attribute set. What follows from the names alone is shared by all shapes with the same.
// PERF: five of six shapes of a NixOS system have names that another one has.
#[derive(Debug)]
#[repr(align(16))]
pub struct Shape {
    positions: &'static [Pos],
    list: &'static NameList,
}

const _: () = assert!(size_of::<Shape>() == 32);

/// The positions of small sets that are not written anywhere.
static NOWHERE: [Pos; 64] = [Pos::NONE; 64];

/// Larger shapes are looked up by a table of places, which are numbers of sixteen bits.
const TABLE_FROM: usize = 32;
const TABLE_TO: usize = u16::MAX as usize;

impl Shape {
    /// A shape of names that are already in ascending symbol order.
    ///
    /// # Panics
    /// When the lengths differ; order is checked in debug builds.
    pub fn new(names: &[Symbol], positions: &[Pos]) -> &'static Shape {
        assert_eq!(names.len(), positions.len());
        debug_assert!(names.windows(2).all(|w| w[0] < w[1]));
        let list = NameList::of(names);
        let positions = match NOWHERE.get(..positions.len()) {
            Some(nowhere) if nowhere == positions => nowhere,
            _ => keep_each(positions.iter().copied()),
        };
        keep(Shape { positions, list })
    }

    /// The same names, each written elsewhere.
    pub(crate) fn moved(&'static self, to: impl Fn(Pos) -> Pos) -> &'static Shape {
        if self.positions.iter().all(|pos| !pos.is_some()) {
            return self;
        }
        keep(Shape { positions: keep_each(self.positions.iter().map(|&pos| to(pos))), list: self.list })
    }

    /// The shape of the empty set.
    pub fn empty() -> &'static Shape {
        static EMPTY: OnceLock<&'static Shape> = OnceLock::new();
        EMPTY.get_or_init(|| Shape::new(&[], &[]))
    }

    /// Number of names.
    #[inline]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there is no name.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Names in symbol order.
    #[inline]
    pub fn names(&self) -> &'static [Symbol] {
        self.list.names
    }

    /// Where each name was defined, in symbol order.
    #[inline]
    pub fn positions(&self) -> &'static [Pos] {
        self.positions
    }

    /// The shape of the same names without positions, made once by `make` when this one has any.
    pub fn bare(&'static self, make: impl FnOnce(&'static Shape) -> &'static Shape) -> &'static Shape {
        if self.positions.iter().all(|pos| !pos.is_some()) {
            return self;
        }
        self.list.bare.get_or_init(|| make(self))
    }

    /// The word of the list of names, made on first use; zero before. For the values' room alone, which knows words.
    #[inline]
    pub fn name_list(&self) -> &AtomicU64 {
        &self.list.word
    }

    /// Index of a name.
    #[inline]
    pub fn index(&self, name: Symbol) -> Option<usize> {
        // PERF: most sets are small, and a linear scan over four-byte names beats a binary search there.
        let names = self.list.names;
        if names.len() <= 12 {
            return names.iter().position(|&n| n == name);
        }
        if names.len() < TABLE_FROM || names.len() >= TABLE_TO {
            return names.binary_search(&name).ok();
        }
        self.list.index_by_table(name)
    }

    /// Indices in the order of the names' bytes, which is the order users see.
    pub fn by_name(&self) -> &'static [u32] {
        self.list.by_name()
    }
}
