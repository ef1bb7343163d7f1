//! Attribute sets: a header with the shape and then the cells, or a small set layered over a large one.
//!
//! `//` of a large set with a small one makes a layer: looking up tries the upper set, then the lower. Whoever needs
//! all attributes flattens the layer once; the flat form is remembered in the layer.

use super::header::STAMP;
use super::shapes::{FEW, bare, extended_shape, intern_shape, merged_shape, stretches};
use super::{ListBuilder, Slot, Value, header, header_address, header_count, header_kind, header_low, header_of, heap, kind, word::tag};
use firn_ir::{InlineCache, Shape};
use firn_source::{Pos, Symbol};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering};

/// An attribute set value.
#[derive(Clone, Copy)]
pub struct Attrs {
    pub(super) object: *const u64,
}

// SAFETY: cells are slots (invariant 4), headers never change (invariant 3), the flat form is released/acquired.
unsafe impl Send for Attrs {}
// SAFETY: as above.
unsafe impl Sync for Attrs {}

/// Sets smaller than this are copied by `//`; larger ones get layers.
const LAYER_FROM: usize = 24;
const MOST_LAYERS: u8 = 8;

impl Attrs {
    #[inline]
    pub(super) fn of(value: Value) -> Attrs {
        Attrs { object: value.ptr() }
    }

    #[inline]
    pub(super) fn head(self) -> u64 {
        // SAFETY: a set object begins with its header (invariant 2).
        unsafe { self.object.read() }
    }

    /// The empty set.
    pub fn empty() -> Value {
        AttrsBuilder::of_shape(Shape::empty(), std::iter::empty())
    }

    /// The shape if the set is flat.
    #[inline]
    pub fn flat_shape(self) -> Option<&'static Shape> {
        let head = self.head();
        // SAFETY: a flat set's header holds the address of its shape, which lives for ever.
        (header_kind(head) == kind::ATTRS)
            .then(|| unsafe { &*std::ptr::with_exposed_provenance(header_address(head) as usize) })
    }

    /// The cells of a set known to be flat with this shape.
    #[inline]
    fn cells(self, shape: &'static Shape) -> &'static [Slot] {
        // SAFETY: a flat set is followed by as many cells as its shape has names (invariants 1, 3).
        unsafe { std::slice::from_raw_parts(self.object.add(1).cast(), shape.len()) }
    }

    /// The cell at an index of the flat set's shape.
    #[inline]
    pub fn cell(self, shape: &'static Shape, index: usize) -> Value {
        assert!(self.flat_shape().is_some_and(|s| std::ptr::eq(s, shape)));
        self.cells(shape)[index].get()
    }

    /// The cell of an attribute through an inline cache.
    #[inline(always)]
    pub fn lookup(self, name: Symbol, cache: &InlineCache) -> Option<Value> {
        let (shape, index) = cache.get();
        if self.head() & !STAMP == header_of(kind::ATTRS, shape) {
            // SAFETY: the header says that the set is flat and of the remembered shape, which has that index.
            return (index != InlineCache::ABSENT).then(|| unsafe { &*self.object.add(1 + index).cast::<Slot>() }.get());
        }
        self.lookup_anew(name, cache)
    }

    /// The same if the cache knows that the set has it.
    #[inline(always)]
    pub fn lookup_at_hand(self, cache: &InlineCache) -> Option<Value> {
        let (shape, index) = cache.get();
        let known = self.head() & !STAMP == header_of(kind::ATTRS, shape) && index != InlineCache::ABSENT;
        // SAFETY: as in `lookup`.
        known.then(|| unsafe { &*self.object.add(1 + index).cast::<Slot>() }.get())
    }

    #[inline(never)]
    fn lookup_anew(self, name: Symbol, cache: &InlineCache) -> Option<Value> {
        match self.flat_shape() {
            Some(shape) => cache.set(shape, name).map(|i| self.cells(shape)[i].get()),
            None => match self.see(name) {
                Some(behind) => behind.lookup(name, cache),
                None => match self.flat_if_worth_it() {
                    Some(flat) => flat.lookup(name, cache),
                    None => self.get_in_layers(name),
                },
            },
        }
    }

    /// The flat form of a layered set, once so much was looked up in it that flattening is paid for.
    // PERF: a package set fixpoint spent an eighth of its time going through layers.
    fn flat_if_worth_it(self) -> Option<Attrs> {
        // SAFETY: called on LAYERED objects only; their last two words are atomic words.
        let (flat, lookups) = unsafe { (&*self.object.add(3).cast::<AtomicU64>(), &*self.object.add(4).cast::<AtomicU64>()) };
        let known = flat.load(Ordering::Acquire);
        if known != 0 {
            return Some(Attrs::of(Value(known)));
        }
        let count = lookups.load(Ordering::Relaxed) + u64::from(header_count(self.head()));
        lookups.store(count, Ordering::Relaxed);
        (count > 2 * self.len() as u64).then(|| Attrs::of(self.flatten(flat)))
    }

    /// Upper and lower set of a layered one.
    fn layers(self) -> (Attrs, Attrs) {
        // SAFETY: called on LAYERED objects only, laid out by `layer`.
        unsafe { (Attrs::of(Value(self.object.add(2).read())), Attrs::of(Value(self.object.add(1).read()))) }
    }

    /// The upper and the lower set of one that is laid over another. Behind a guard there is nothing to see.
    pub fn layered(self) -> Option<(Attrs, Attrs)> {
        (header_kind(self.head()) == kind::LAYERED).then(|| self.layers())
    }

    /// Number of attributes.
    #[inline]
    pub fn len(self) -> usize {
        match self.flat_shape() {
            Some(shape) => shape.len(),
            None => self.see_all().map_or_else(|| header_low(self.head()) as usize, Attrs::len),
        }
    }

    /// Whether there is no attribute.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The cell of an attribute.
    #[inline]
    pub fn get(self, name: Symbol) -> Option<Value> {
        match self.flat_shape() {
            Some(shape) => shape.index(name).map(|i| self.cells(shape)[i].get()),
            None => match self.see(name).or_else(|| self.flat_if_worth_it()) {
                Some(set) => set.get(name),
                None => self.get_in_layers(name),
            },
        }
    }

    #[inline(never)]
    fn get_in_layers(self, name: Symbol) -> Option<Value> {
        let mut set = self;
        loop {
            if let Some(shape) = set.flat_shape() {
                return shape.index(name).map(|i| set.cells(shape)[i].get());
            }
            let (upper, lower) = set.layers();
            let (shape, cells) = upper.flat();
            if let Some(i) = shape.index(name) {
                return Some(cells[i].get());
            }
            set = lower;
        }
    }

    /// The cell of an attribute and where it was defined.
    pub fn get_with_pos(self, name: Symbol) -> Option<(Value, Pos)> {
        let mut set = self.see(name).unwrap_or(self);
        loop {
            if let Some(shape) = set.flat_shape() {
                return shape.index(name).map(|i| (set.cells(shape)[i].get(), shape.positions()[i]));
            }
            let (upper, lower) = set.layers();
            if let Some(found) = upper.get_with_pos(name) {
                return Some(found);
            }
            set = lower;
        }
    }

    /// Whether the attribute exists.
    #[inline]
    pub fn has(self, name: Symbol) -> bool {
        self.get(name).is_some()
    }

    /// The flat form: shape and cells.
    pub fn flat(self) -> (&'static Shape, &'static [Slot]) {
        if let Some(shape) = self.flat_shape() {
            return (shape, self.cells(shape));
        }
        if let Some(behind) = self.see_all() {
            return behind.flat();
        }
        // SAFETY: the fourth word of a LAYERED object is an atomic word holding the flat set or zero.
        let memory = unsafe { &*self.object.add(3).cast::<AtomicU64>() };
        let known = memory.load(Ordering::Acquire);
        let flat = if known != 0 { Value(known) } else { self.flatten(memory) };
        Attrs::of(flat).flat()
    }

    fn flatten(self, memory: &AtomicU64) -> Value {
        let (upper, lower) = self.layers();
        let flat = merge(lower, upper);
        memory.store(flat.0, Ordering::Release);
        flat
    }

    /// Attributes in symbol order: name, position, cell. Not an order for people.
    pub fn iter(self) -> impl ExactSizeIterator<Item = (Symbol, Pos, Value)> + Clone {
        let (shape, cells) = self.flat();
        (0..shape.len()).map(move |i| (shape.names()[i], shape.positions()[i], cells[i].get()))
    }

    /// Attributes in the order of their names' bytes.
    pub fn iter_by_name(self) -> impl ExactSizeIterator<Item = (Symbol, Pos, Value)> + DoubleEndedIterator + Clone {
        let (shape, cells) = self.flat();
        shape.by_name().iter().map(move |&i| {
            let i = i as usize;
            (shape.names()[i], shape.positions()[i], cells[i].get())
        })
    }

    /// The names as a list of strings in their order, one list for all sets of a shape.
    pub fn name_list(self) -> Value {
        let (shape, _) = self.flat();
        let word = shape.name_list().load(Ordering::Acquire);
        if word != 0 {
            return Value(word);
        }
        // It belongs to the shape, whichever instance asks first.
        let outer = heap::set_production(0);
        let mut names = ListBuilder::new(shape.len());
        shape.by_name().iter().for_each(|&i| names.push(Value::name(shape.names()[i as usize])));
        let list = names.finish();
        heap::set_production(outer);
        shape.name_list().store(list.0, Ordering::Release);
        list
    }

    /// The set as a value.
    #[inline]
    pub fn value(self) -> Value {
        Value::from_ptr(self.object, tag::ATTRS)
    }

    /// `self // over`.
    pub fn update(self, over: Attrs) -> Value {
        if self.guard().is_some() || over.guard().is_some() {
            return self.update_guarded(over);
        }
        if self.is_empty() {
            return over.value();
        }
        if over.is_empty() {
            return self.value();
        }
        let deep = if self.flat_shape().is_some() { 0 } else { header_count(self.head()) };
        if self.len() < LAYER_FROM || over.len() * 4 > self.len() {
            return merge(self, over);
        }
        if deep < MOST_LAYERS {
            return layer(self, over, deep + 1);
        }
        self.compact(over)
    }
}

impl Attrs {
    /// `self // over` for a set with as many layers as there may be: the small upper ones become one.
    // PERF: a large set that is updated over and over is copied when what lies on it has grown to a quarter of it, not
    // every few updates.
    fn compact(self, over: Attrs) -> Value {
        let mut uppers = vec![over];
        let mut base = self;
        while base.flat_shape().is_none() {
            let (upper, lower) = base.layers();
            uppers.push(upper);
            base = lower;
        }
        let lowest = uppers.pop().expect("a layered set has a layer");
        let merged = uppers.into_iter().rev().fold(lowest, |below, above| Attrs::of(merge(below, above)));
        if merged.len() * 4 > base.len() { merge(base, merged) } else { layer(base, merged, 1) }
    }
}

fn layer(lower: Attrs, upper: Attrs, depth: u8) -> Value {
    let (shape, _) = upper.flat();
    let added = shape.names().iter().filter(|&&name| !lower.has(name)).count();
    let object = heap::alloc(5);
    // SAFETY: five words were allocated; the fourth stays zero until flattened, the fifth counts.
    unsafe {
        object.write(header(kind::LAYERED, depth, (lower.len() + added) as u64) | heap::stamp());
        object.add(1).write(lower.value().0);
        object.add(2).write(upper.value().0);
    }
    Value::from_ptr(object, tag::ATTRS)
}

fn merge(lower: Attrs, upper: Attrs) -> Value {
    let (a, a_cells) = lower.flat();
    let (b, b_cells) = upper.flat();
    let shape = merged_shape(a, b);
    let set = blank(shape);
    let mut cells = set.cells(shape);
    stretches(a.names(), b.names(), |is_lower, stretch| {
        let from = &(if is_lower { a_cells } else { b_cells })[stretch];
        let (to, rest) = cells.split_at(from.len());
        from.iter().zip(to).for_each(|(from, to)| to.set(from.get()));
        cells = rest;
    });
    set.value()
}

fn blank(shape: &'static Shape) -> Attrs {
    let object = heap::alloc(1 + shape.len());
    // SAFETY: the allocation holds the header and one zeroed cell per name (invariant 1).
    unsafe { object.write(header_of(kind::ATTRS, std::ptr::from_ref(shape).expose_provenance() as u64) | heap::stamp()) };
    Attrs { object }
}

impl std::fmt::Debug for Attrs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter_by_name().map(|(name, _, value)| (name, value))).finish()
    }
}

/// Builds an attribute set from attributes in any order.
#[derive(Debug, Default)]
pub struct AttrsBuilder {
    entries: SmallVec<[(Symbol, Pos, Value); FEW]>,
}

impl From<SmallVec<[(Symbol, Pos, Value); FEW]>> for AttrsBuilder {
    fn from(entries: SmallVec<[(Symbol, Pos, Value); FEW]>) -> AttrsBuilder {
        AttrsBuilder { entries }
    }
}

impl AttrsBuilder {
    /// An empty builder with room for `capacity` attributes.
    pub fn with_capacity(capacity: usize) -> AttrsBuilder {
        AttrsBuilder { entries: SmallVec::with_capacity(capacity) }
    }

    /// Adds an attribute.
    #[inline]
    pub fn push(&mut self, name: Symbol, pos: Pos, value: Value) {
        self.entries.push((name, pos, value));
    }

    /// Adds an attribute without position.
    pub fn insert(&mut self, name: &str, value: Value) {
        self.push(Symbol::from(name), Pos::NONE, value);
    }

    /// The set; of attributes with equal names the last pushed stays.
    pub fn finish(mut self) -> Value {
        self.entries.reverse();
        self.finish_first()
    }

    /// The set; of attributes with equal names the first pushed stays.
    pub fn finish_first(mut self) -> Value {
        if !self.entries.is_sorted_by(|a, b| a.0 < b.0) {
            self.entries.sort_by_key(|e| e.0);
            self.entries.dedup_by_key(|e| e.0);
        }
        let names: SmallVec<[Symbol; FEW]> = self.entries.iter().map(|e| e.0).collect();
        let positions: SmallVec<[Pos; FEW]> = self.entries.iter().map(|e| e.1).collect();
        let shape = intern_shape(&names, &positions);
        AttrsBuilder::of_shape(shape, self.entries.iter().map(|e| e.2))
    }

    /// The set of a known shape with values in shape order, and one attribute more whose name the shape does not have.
    pub fn extended(
        base: &'static Shape,
        values: impl Iterator<Item = Value>,
        (name, pos, value): (Symbol, Pos, Value),
    ) -> Value {
        let (shape, index) = extended_shape(base, name, pos);
        let set = blank(shape);
        let cells = set.cells(shape);
        let (before, after) = cells.split_at(index);
        after[0].set(value);
        for (slot, value) in before.iter().chain(&after[1..]).zip(values) {
            slot.set(value);
        }
        set.value()
    }

    /// The set of a known shape's names without their positions, values in shape order.
    pub fn of_names(shape: &'static Shape, values: impl Iterator<Item = Value>) -> Value {
        AttrsBuilder::of_shape(bare(shape), values)
    }

    /// The set of a known shape of one name.
    ///
    /// # Panics
    /// When the shape has more names or none.
    #[inline(always)]
    pub fn of_one(shape: &'static Shape, value: Value) -> Value {
        assert!(shape.len() == 1, "a shape of one name");
        let object = heap::alloc(2);
        // SAFETY: the allocation holds the header and the cell (invariant 1).
        unsafe {
            object.write(header_of(kind::ATTRS, std::ptr::from_ref(shape).expose_provenance() as u64) | heap::stamp());
            object.add(1).write(value.0);
        }
        Value::from_ptr(object, tag::ATTRS)
    }

    /// The set of a known shape with values in shape order; missing ones are `null`.
    #[inline]
    pub fn of_shape(shape: &'static Shape, values: impl Iterator<Item = Value>) -> Value {
        let set = blank(shape);
        for (slot, value) in set.cells(shape).iter().zip(values) {
            slot.set(value);
        }
        set.value()
    }
}
