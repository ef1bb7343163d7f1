//! Shapes of sets that are made while the program runs, shared with recent ones of the same names and positions.

use firn_ir::Shape;
use firn_source::{Pos, Symbol};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// How the sorted names of two sets lie in what they become together: stretches of the one (true) or the other, which
/// alone counts where both have a name.
// PERF: what comes from one side is found and copied at once (hello: 22 million instructions less).
#[inline(always)]
pub(super) fn stretches(a: &[Symbol], b: &[Symbol], mut each: impl FnMut(bool, Range<usize>)) {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let end = i + a[i..].iter().take_while(|&&name| name < b[j]).count();
        each(true, i..end);
        i = end;
        let Some(&next) = a.get(i) else { break };
        let end = j + b[j..].iter().take_while(|&&name| name <= next).count();
        each(false, j..end);
        i += usize::from(b[end - 1] == next);
        j = end;
    }
    each(true, i..a.len());
    each(false, j..b.len());
}

type Remembered = (usize, usize, &'static Shape);

thread_local! {
    /// Shapes of recent updates by the addresses of both shapes, direct mapped.
    static UPDATES: RefCell<Vec<Option<Remembered>>> = const { RefCell::new(Vec::new()) };
    /// The same for large shapes: all of them.
    // PERF: two of 20,000 names are seldom put together, and in between others take their place: hello's four unions of its packages
    // were seven or eight at times, of 2 million instructions and 300 kB each.
    static LARGE_UPDATES: RefCell<LargeUpdates> = RefCell::default();
    /// Recently made shapes by content, direct mapped.
    static RECENT: RefCell<Vec<Option<&'static Shape>>> = const { RefCell::new(Vec::new()) };
}

const REMEMBERED: usize = 1024;

/// Names of two shapes from which on what they become together is kept.
const LARGE: usize = 128;

/// Larger shapes are not looked for among recent ones.
const MOST_INTERNED: usize = 4096;

/// What large shapes have become together with others.
#[derive(Default)]
struct LargeUpdates {
    shapes: FxHashMap<(usize, usize), &'static Shape>,
    /// The small ones among the others, by content.
    small: FxHashMap<u64, &'static Shape>,
}

impl LargeUpdates {
    fn merged(&mut self, a: &'static Shape, b: &'static Shape) -> &'static Shape {
        let pair = addresses(a, b);
        if let Some(known) = self.shapes.get(&pair) {
            return known;
        }
        // PERF: a small shape may have been made anew since it was here, depending on which addresses fall on one place above.
        let (a, b) = (self.first_equal(a), self.first_equal(b));
        let merged = *self.shapes.entry(addresses(a, b)).or_insert_with(|| merge_names(a, b));
        self.shapes.insert(pair, merged);
        merged
    }

    /// The first of the small shapes that are equal to this one; a large one is itself.
    fn first_equal(&mut self, shape: &'static Shape) -> &'static Shape {
        if shape.len() >= LARGE {
            return shape;
        }
        let first = *self.small.entry(digest(shape.names(), shape.positions())).or_insert(shape);
        if first.names() == shape.names() && first.positions() == shape.positions() { first } else { shape }
    }
}

fn addresses(a: &'static Shape, b: &'static Shape) -> (usize, usize) {
    (std::ptr::from_ref(a).addr(), std::ptr::from_ref(b).addr())
}

fn digest(names: &[Symbol], positions: &[Pos]) -> u64 {
    let mut hasher = FxHasher::default();
    names.iter().zip(positions).for_each(|pair| pair.hash(&mut hasher));
    hasher.finish()
}

/// Where a table of so many has what is found by this.
fn place_of(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - REMEMBERED.ilog2())) as usize
}

pub(super) fn merged_shape(a: &'static Shape, b: &'static Shape) -> &'static Shape {
    let (pa, pb) = addresses(a, b);
    if a.len() + b.len() >= LARGE {
        return LARGE_UPDATES.with_borrow_mut(|table| table.merged(a, b));
    }
    let place = place_of((pa as u64).rotate_left(32) ^ pb as u64);
    UPDATES.with_borrow_mut(|table| {
        if table.is_empty() {
            table.resize(REMEMBERED, None);
        }
        if let Some((x, y, shape)) = table[place]
            && x == pa
            && y == pb
        {
            return shape;
        }
        let shape = merge_names(a, b);
        table[place] = Some((pa, pb, shape));
        shape
    })
}

fn merge_names(a: &'static Shape, b: &'static Shape) -> &'static Shape {
    let mut names = SmallVec::<[Symbol; FEW]>::with_capacity(a.len() + b.len());
    let mut positions = SmallVec::<[Pos; FEW]>::with_capacity(a.len() + b.len());
    stretches(a.names(), b.names(), |is_lower, stretch| {
        let from = if is_lower { a } else { b };
        names.extend_from_slice(&from.names()[stretch.clone()]);
        positions.extend_from_slice(&from.positions()[stretch]);
    });
    intern_shape(&names, &positions)
}

/// So many attributes are put together without allocating.
pub(super) const FEW: usize = 16;

/// A shape of these sorted names, shared with a recent equal one if there is any.
pub(super) fn intern_shape(names: &[Symbol], positions: &[Pos]) -> &'static Shape {
    if names.is_empty() {
        return Shape::empty();
    }
    if names.len() > MOST_INTERNED {
        return Shape::new(names, positions);
    }
    let place = (digest(names, positions) >> 20) as usize % REMEMBERED;
    RECENT.with_borrow_mut(|table| {
        if table.is_empty() {
            table.resize(REMEMBERED, None);
        }
        if let Some(shape) = table[place]
            && shape.names() == names
            && shape.positions() == positions
        {
            return shape;
        }
        let shape = Shape::new(names, positions);
        table[place] = Some(shape);
        shape
    })
}

type Extension = ((usize, Symbol, Pos), (&'static Shape, usize));

thread_local! {
    /// Shapes that others became by one more name, direct mapped.
    static EXTENSIONS: RefCell<Vec<Option<Extension>>> = const { RefCell::new(Vec::new()) };
}

/// The shape of `base` with one more name, and where that stands in it. `base` does not have the name.
pub(super) fn extended_shape(base: &'static Shape, name: Symbol, pos: Pos) -> (&'static Shape, usize) {
    let key = (std::ptr::from_ref(base).addr(), name, pos);
    let place = place_of((key.0 as u64).rotate_left(32) ^ u64::from(name.id()));
    EXTENSIONS.with_borrow_mut(|table| {
        if table.is_empty() {
            table.resize(REMEMBERED, None);
        }
        if let Some((known, extended)) = table[place]
            && known == key
        {
            return extended;
        }
        let index = base.names().partition_point(|&n| n < name);
        let mut names = SmallVec::<[Symbol; FEW]>::from_slice(base.names());
        let mut positions = SmallVec::<[Pos; FEW]>::from_slice(base.positions());
        names.insert(index, name);
        positions.insert(index, pos);
        let extended = (intern_shape(&names, &positions), index);
        table[place] = Some((key, extended));
        extended
    })
}

/// The shape of the same names without positions.
pub(super) fn bare(shape: &'static Shape) -> &'static Shape {
    shape.bare(|shape| intern_shape(shape.names(), &vec![Pos::NONE; shape.len()]))
}
