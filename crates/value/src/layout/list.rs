//! Lists: a header with the length and then the cells, or a view into another list's cells.

use super::{Slot, Value, header, header_kind, header_low, heap, kind, word::tag};

/// A list value.
#[derive(Clone, Copy)]
pub struct List {
    object: *const u64,
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
    fn head(self) -> u64 {
        // SAFETY: a list object begins with its header (invariant 2).
        unsafe { self.object.read() }
    }

    /// Number of elements.
    #[inline]
    pub fn len(self) -> usize {
        header_low(self.head()) as usize
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
            object.write(header(kind::SLICE, 0, slots.len() as u64));
            object.add(1).write(slots.as_ptr().expose_provenance() as u64);
        }
        Value::from_ptr(object, tag::LIST)
    }

    /// The list as a value.
    #[inline]
    pub fn value(self) -> Value {
        Value::from_ptr(self.object, tag::LIST)
    }
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
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
        let object = heap::alloc(1 + len);
        // SAFETY: the allocation holds the header and `len` zeroed cells (invariant 1).
        unsafe { object.write(header(kind::LIST, 0, len as u64)) };
        ListBuilder { list: List { object }, filled: 0 }
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
