//! Applications, written out or one of many: what `map`, `mapAttrs` and `genList` make.
//!
//! Many applications of one function lie behind one another, and before them once what they share. Each is its header, which says
//! how many lie before it, and the slot for its result.
// PERF: an item is two words where an application has three or four, and the parts are read only if it is forced:
// hello's 180,000 are 3 MB instead of 7.

use super::header::ITEMS;
use super::{Slot, Thunk, Value, header, heap, kind, word::tag};
use firn_source::Symbol;

/// What a function is applied to, each by itself.
#[derive(Clone, Copy)]
pub enum Each {
    /// Cells.
    Cells(&'static [Slot]),
    /// Names, and for each a cell.
    Named(&'static [Symbol], &'static [Slot]),
    /// The numbers below this one.
    Numbers(usize),
}

/// A function and what it is applied to.
#[derive(Clone, Copy, Debug)]
pub enum Application {
    /// Written out: the function, then the arguments.
    Slots(&'static [Slot]),
    /// One of many.
    Item(Item),
}

/// One of many applications of a function.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// What they share: the function, the address of the first cell or zero, the address of the first name or zero.
    shared: *const u64,
    index: usize,
}

/// Words that items share.
const SHARED: usize = 3;

impl Each {
    fn len(self) -> usize {
        match self {
            Each::Cells(cells) => cells.len(),
            Each::Named(names, cells) => names.len().min(cells.len()),
            Each::Numbers(count) => count,
        }
    }
}

impl Thunk {
    /// Suspended applications of a function, in order.
    pub fn apply_to_each(function: Value, to: Each) -> impl ExactSizeIterator<Item = Value> {
        // One alone would share with none.
        let alone = match to {
            Each::Cells([cell]) => Some(Thunk::apply(function, &[cell.get()])),
            Each::Named([name], [cell]) => Some(Thunk::apply(function, &[Value::name(*name), cell.get()])),
            Each::Numbers(1) => Some(Thunk::apply(function, &[Value::int(0)])),
            _ => None,
        };
        let count = to.len();
        let first = if alone.is_none() { lay_out(function, to, count) } else { std::ptr::null_mut() };
        (0..count).map(move |index| alone.unwrap_or_else(|| Value::from_ptr(first.wrapping_add(2 * index), tag::THUNK)))
    }
}

/// Lays items out and gives the place of the first.
fn lay_out(function: Value, to: Each, count: usize) -> *mut u64 {
    let (cells, names) = match to {
        Each::Cells(cells) => (cells.as_ptr(), std::ptr::null()),
        Each::Named(names, cells) => (cells.as_ptr(), names.as_ptr()),
        Each::Numbers(_) => (std::ptr::null(), std::ptr::null()),
    };
    let stamp = heap::stamp();
    let object = heap::alloc(SHARED + 2 * count);
    // SAFETY: the allocation holds the shared words and two for each item (invariants 1, 8).
    unsafe {
        object.write(function.0);
        object.add(1).write(cells.expose_provenance() as u64);
        object.add(2).write(names.expose_provenance() as u64);
        for index in 0..count {
            let head = header(kind::ITEM, ITEMS, index as u64) | stamp;
            object.add(SHARED + 2 * index).write(head);
        }
    }
    object.wrapping_add(SHARED)
}

impl Item {
    /// The item that a thunk is whose header has this number.
    #[inline]
    pub(super) fn of(thunk: &'static Thunk, number: u64) -> Item {
        let index = number as usize;
        let shared = std::ptr::from_ref(thunk).addr() - 8 * (SHARED + 2 * index);
        Item { shared: std::ptr::with_exposed_provenance(shared), index }
    }

    #[inline]
    fn word(self, at: usize) -> u64 {
        // SAFETY: items have the shared words before them, which never change (invariant 8).
        unsafe { self.shared.add(at).read() }
    }

    /// The function.
    #[inline]
    pub fn function(self) -> Value {
        Value(self.word(0))
    }

    /// The only argument, or the last of two.
    #[inline]
    pub fn last(self) -> Value {
        let cells: *const Slot = std::ptr::with_exposed_provenance(self.word(1) as usize);
        if cells.is_null() {
            return Value::int(self.index as i64);
        }
        // SAFETY: there are as many cells as items, and they live for ever (invariants 1, 8).
        unsafe { (*cells.add(self.index)).get() }
    }

    /// The first of two arguments.
    #[inline]
    pub fn name(self) -> Option<Value> {
        let names: *const Symbol = std::ptr::with_exposed_provenance(self.word(2) as usize);
        // SAFETY: if there are names, there are as many as items, and they live for ever (invariant 8).
        (!names.is_null()).then(|| Value::name(unsafe { *names.add(self.index) }))
    }
}

impl Application {
    /// How many parts there are: the function and its arguments.
    #[allow(clippy::len_without_is_empty, reason = "an application has a function")]
    pub fn len(self) -> usize {
        match self {
            Application::Slots(slots) => slots.len(),
            Application::Item(item) => 2 + usize::from(item.word(2) != 0),
        }
    }

    /// The function and its arguments.
    pub fn parts(self) -> impl ExactSizeIterator<Item = Value> + DoubleEndedIterator {
        (0..self.len()).map(move |at| match self {
            Application::Slots(slots) => slots[at].get(),
            Application::Item(item) => match (at, item.name()) {
                (0, _) => item.function(),
                (1, Some(name)) => name,
                _ => item.last(),
            },
        })
    }

    /// The function.
    pub fn function(self) -> Option<Value> {
        self.parts().next()
    }
}
