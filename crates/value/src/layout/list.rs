//! Lists: a header with the length and then the cells, or a view into another list's cells.

use super::{Slot, Value, header, header_count, header_kind, header_low, heap, kind, word::tag};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Lists shorter than this are simply copied when appended to.
const GROW_FROM: usize = 8;

/// A list value.
#[derive(Clone, Copy)]
pub struct List {
    pub(super) object: *const u64,
}

// SAFETY: a list's cells are slots (invariant 4), its header never changes (invariant 3).
unsafe impl Send for List {}
// SAFETY: as above.
unsafe impl Sync for List {}

impl List {
    #[inline]
    pub(super) fn of(value: Value) -> List {
        List { object: value.ptr() }
    }

    #[inline]
    pub(super) fn head(self) -> u64 {
        // SAFETY: a list object begins with its header (invariant 2).
        unsafe { self.object.read() }
    }

    /// Number of elements.
    #[inline]
    pub fn len(self) -> usize {
        let head = self.head();
        if header_kind(head) == kind::GUARDED_LIST {
            return self.see_all().len();
        }
        header_low(head) as usize
    }

    /// Whether it has no element.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The cells.
    #[inline]
    pub fn slots(self) -> &'static [Slot] {
        let head = self.head();
        if header_kind(head) == kind::GUARDED_LIST {
            return self.see_all().slots();
        }
        // SAFETY: a LIST is followed by its cells, a SLICE by the address of its first cell; both have the header's
        // length (invariants 2, 3).
        unsafe {
            let first = if header_kind(head) == kind::LIST {
                self.object.add(1)
            } else {
                std::ptr::with_exposed_provenance(self.object.add(1).read() as usize)
            };
            std::slice::from_raw_parts(first.cast(), header_low(head) as usize)
        }
    }

    /// The cell at an index that is in range.
    #[inline]
    pub fn get(self, index: usize) -> Value {
        self.slots()[index].get()
    }

    /// The cells in order.
    #[inline]
    pub fn iter(self) -> impl ExactSizeIterator<Item = Value> + DoubleEndedIterator + Clone {
        self.slots().iter().map(Slot::get)
    }

    /// The elements `from..`, sharing the cells.
    pub fn suffix(self, from: usize) -> Value {
        let slots = &self.slots()[from..];
        if slots.is_empty() {
            return ListBuilder::new(0).finish();
        }
        let object = heap::alloc(2);
        // SAFETY: two words were allocated; the cells live for ever (invariant 1).
        unsafe {
            object.write(header(kind::SLICE, 0, slots.len() as u64) | heap::stamp());
            object.add(1).write(slots.as_ptr().expose_provenance() as u64);
        }
        Value::from_ptr(object, tag::LIST)
    }

    /// The elements of both lists.
    ///
    /// PERF: a list that is itself the result of appending gets room to grow, and appending to the newest list in such
    /// a room writes only the new elements: `acc ++ [ x ]` in a loop is linear in time and memory.
    pub fn append(self, other: List) -> Value {
        if self.guard().is_some() {
            return self.see_all().append(other);
        }
        if let Some(grown) = self.append_in_place(other) {
            return grown;
        }
        let total = self.len() + other.len();
        if header_count(self.head()) != 0 && self.len() >= GROW_FROM && other.len() <= self.len() {
            return self.append_with_room(other, total);
        }
        let mut all = ListBuilder::marked(total, 1);
        self.iter().chain(other.iter()).for_each(|item| all.push(item));
        all.finish()
    }

    /// Appends behind the last element if nothing was appended there before and there is room.
    fn append_in_place(self, other: List) -> Option<Value> {
        let head = self.head();
        if header_kind(head) != kind::SLICE || header_count(head) == 0 {
            return None;
        }
        // SAFETY: a SLICE with a count is followed by the address of its first cell and that of its room, which begins
        // with two atomic words, how many cells are taken and how many there are, and then the cells (see
        // `append_with_room`).
        let (first, taken, room) = unsafe {
            let room: *const u64 = std::ptr::with_exposed_provenance(self.object.add(2).read() as usize);
            (self.object.add(1).read(), &*room.cast::<AtomicU64>(), room)
        };
        // SAFETY: as above.
        let (capacity, cells) = unsafe { (room.add(1).read(), room.add(2)) };
        let end = (first - cells.expose_provenance() as u64) / 8 + self.len() as u64;
        let new_end = end + other.len() as u64;
        if new_end > capacity || taken.compare_exchange(end, new_end, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return None;
        }
        for (i, item) in other.iter().enumerate() {
            // SAFETY: the cells from `end` to `new_end` are in the room and now this call's alone.
            unsafe { (*cells.add(end as usize + i).cast::<Slot>()).set(item) };
        }
        Some(grown(self.len() + other.len(), first, room))
    }

    fn append_with_room(self, other: List, total: usize) -> Value {
        let capacity = total * 2;
        let room = heap::alloc(2 + capacity);
        // SAFETY: the allocation holds the two words and `capacity` zeroed cells (invariant 1).
        let cells = unsafe {
            room.write(total as u64);
            room.add(1).write(capacity as u64);
            room.add(2)
        };
        for (i, item) in self.iter().chain(other.iter()).enumerate() {
            // SAFETY: `total` cells are within the room.
            unsafe { (*cells.add(i).cast::<Slot>()).set(item) };
        }
        grown(total, cells.expose_provenance() as u64, room)
    }

    /// The list as a value.
    #[inline]
    pub fn value(self) -> Value {
        Value::from_ptr(self.object, tag::LIST)
    }
}

/// A list of `len` cells from the address `first` on, in a room that may have space behind them.
fn grown(len: usize, first: u64, room: *const u64) -> Value {
    let object = heap::alloc(3);
    // SAFETY: three words were allocated; cells and room live for ever (invariant 1).
    unsafe {
        object.write(header(kind::SLICE, 1, len as u64) | heap::stamp());
        object.add(1).write(first);
        object.add(2).write(room.expose_provenance() as u64);
    }
    Value::from_ptr(object, tag::LIST)
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The list of no elements that belongs to no instance.
static EMPTY: OnceLock<List> = OnceLock::new();

/// A list of cells that are all `null`.
fn lay_out(len: usize, mark: u8) -> *const u64 {
    let object = heap::alloc(1 + len);
    // SAFETY: the allocation holds the header and `len` zeroed cells (invariant 1).
    unsafe { object.write(header(kind::LIST, mark, len as u64) | heap::stamp()) };
    object
}

/// Builds a list of known length.
#[derive(Debug)]
pub struct ListBuilder {
    list: List,
    filled: usize,
}

impl ListBuilder {
    /// A list of `len` elements, all `null` until pushed.
    pub fn new(len: usize) -> ListBuilder {
        ListBuilder::marked(len, 0)
    }

    /// A list whose header's count says how it was made: 1 for the result of appending.
    fn marked(len: usize, mark: u8) -> ListBuilder {
        if len == 0 && heap::stamp() == 0 {
            return ListBuilder { list: *EMPTY.get_or_init(|| List { object: lay_out(0, 0) }), filled: 0 };
        }
        ListBuilder { list: List { object: lay_out(len, mark) }, filled: 0 }
    }

    /// Appends an element.
    ///
    /// # Panics
    /// When the list is already full.
    #[inline]
    pub fn push(&mut self, value: Value) {
        self.list.slots()[self.filled].set(value);
        self.filled += 1;
    }

    /// The list.
    pub fn finish(self) -> Value {
        debug_assert_eq!(self.filled, self.list.len());
        self.list.value()
    }

    /// A list of these elements.
    pub fn of(items: &[Value]) -> Value {
        let mut list = ListBuilder::new(items.len());
        for &item in items {
            list.push(item);
        }
        list.finish()
    }
}
