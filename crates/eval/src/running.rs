//! The instances whose productions run: what a call must know of that is remembered.

use firn_value::Stamp;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// A stack of instances.
// PERF: kept as a vector behind a flag, it took 20 instructions to put an instance there and take it away; now it takes nine.
#[derive(Debug)]
pub(crate) struct Running {
    count: Cell<usize>,
    first: Box<[Cell<Stamp>]>,
    /// Those for which there is no room among the first.
    rest: RefCell<Vec<Stamp>>,
}

/// So many have a place from the beginning. More are rare.
const FIRST: usize = 1024;

impl Default for Running {
    fn default() -> Running {
        Running { count: Cell::new(0), first: vec![Cell::new(Stamp::NONE); FIRST].into(), rest: RefCell::default() }
    }
}

impl Running {
    /// Puts an instance above the others. What is returned takes it away again ([`Running::leave`]).
    #[inline]
    pub(crate) fn enter(&self, instance: Stamp) -> usize {
        let count = self.count.get();
        match self.first.get(count) {
            Some(place) => place.set(instance),
            None => self.enter_rest(count, instance),
        }
        self.count.set(count + 1);
        count
    }

    #[cold]
    #[inline(never)]
    fn enter_rest(&self, count: usize, instance: Stamp) {
        let mut rest = self.rest.borrow_mut();
        rest.truncate(count - FIRST);
        rest.push(instance);
    }

    /// Takes away what was put there with this result, and all above it.
    #[inline]
    pub(crate) fn leave(&self, entered: usize) {
        self.count.set(entered);
    }

    /// The `most` innermost, the innermost last.
    pub(crate) fn innermost(&self, most: usize) -> SmallVec<[Stamp; 16]> {
        let count = self.count.get();
        let from = count.saturating_sub(most);
        let first = self.first.iter().take(count).skip(from).map(Cell::get);
        if count <= FIRST {
            return first.collect();
        }
        let rest = self.rest.borrow();
        first.chain(rest[..count - FIRST].iter().copied().skip(from.saturating_sub(FIRST))).collect()
    }

    /// All of them.
    pub(crate) fn all(&self) -> SmallVec<[Stamp; 16]> {
        self.innermost(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_of_any_height() {
        let running = Running::default();
        let stamp = |n: usize| Stamp::new(n as u16);
        let marks: Vec<usize> = (0..FIRST + 10).map(|n| running.enter(stamp(n))).collect();
        assert_eq!(running.innermost(2)[..], [stamp(FIRST + 8), stamp(FIRST + 9)]);
        running.leave(marks[FIRST + 3]);
        running.enter(stamp(7));
        assert_eq!(running.innermost(3)[..], [stamp(FIRST + 1), stamp(FIRST + 2), stamp(7)]);
        running.leave(marks[FIRST + 1]);
        running.enter(stamp(9));
        assert_eq!(running.innermost(3)[..], [stamp(FIRST - 1), stamp(FIRST), stamp(9)]);
        running.leave(marks[5]);
        running.enter(stamp(8));
        assert_eq!(running.all()[..], [0, 1, 2, 3, 4, 8].map(stamp));
        running.leave(marks[0]);
        assert!(running.all().is_empty());
    }
}
