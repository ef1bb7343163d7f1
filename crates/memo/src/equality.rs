//! The lazy three-way equality of values (L1.2), over the same cases as the digest: nothing is forced, no recursion,
//! cycles end.

use crate::digest::canonical;
use crate::{Digests, key::known};
use firn_value::{Function, Slot, Value, Work};
use rustc_hash::FxHashSet;

/// What can be said of two values without evaluating anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sameness {
    /// They are the same.
    Same,
    /// They differ.
    Different,
    /// Something is not evaluated.
    Unknown,
}

/// Whether two cells hold the same value: equal data, functions of the same code over the same captures.
pub fn same(a: Value, b: Value, digests: &Digests) -> Sameness {
    let mut comparison = Comparison { digests, todo: vec![(a, b)], assumed: FxHashSet::default(), unknown: false };
    while let Some((a, b)) = comparison.todo.pop() {
        if !comparison.step(a, b) {
            return Sameness::Different;
        }
    }
    if comparison.unknown { Sameness::Unknown } else { Sameness::Same }
}

struct Comparison<'a> {
    digests: &'a Digests,
    todo: Vec<(Value, Value)>,
    assumed: FxHashSet<(u64, u64)>,
    unknown: bool,
}

impl Comparison<'_> {
    /// False when the two are certainly different.
    fn step(&mut self, a: Value, b: Value) -> bool {
        if a == b || !self.assumed.insert((a.identity(), b.identity())) {
            return true;
        }
        match (known(a), known(b)) {
            (Some(x), Some(y)) => self.values(x, y),
            _ => self.suspended(a, b),
        }
    }

    fn suspended(&mut self, a: Value, b: Value) -> bool {
        let work = |cell: Value| cell.as_thunk().and_then(|thunk| thunk.suspended_work());
        match (work(a), work(b)) {
            (Some(Work::Run(x, captures)), Some(Work::Run(y, others)))
                if captures.len() == others.len() && (std::ptr::eq(x, y) || self.digests.body(x) == self.digests.body(y)) =>
            {
                self.suspended_parts(captures.iter().map(Slot::get).zip(others.iter().map(Slot::get)).collect());
            }
            (Some(Work::Apply(x)), Some(Work::Apply(y))) if x.len() == y.len() => self.suspended_parts(x.parts().zip(y.parts()).collect()),
            _ => self.unknown = true,
        }
        true
    }

    /// The same code over the same captures is the same; over different ones it may still give the same value.
    fn suspended_parts(&mut self, pairs: Vec<(Value, Value)>) {
        let mut inner = Comparison {
            digests: self.digests,
            todo: pairs,
            assumed: std::mem::take(&mut self.assumed),
            unknown: false,
        };
        let mut fine = true;
        while let Some((x, y)) = inner.todo.pop() {
            let known_parts = known(x).is_some() && known(y).is_some();
            // One level of unevaluated parts inside unevaluated parts is enough: deeper ones count as unknown.
            if !(if known_parts || x == y { inner.step(x, y) } else { inner.same_code(x, y) }) {
                fine = false;
                break;
            }
        }
        self.unknown |= !fine || inner.unknown;
        self.assumed = inner.assumed;
    }

    fn same_code(&mut self, a: Value, b: Value) -> bool {
        if !self.assumed.insert((a.identity(), b.identity())) {
            return true;
        }
        let work = |cell: Value| cell.as_thunk().and_then(|thunk| thunk.suspended_work());
        match (work(a), work(b)) {
            (Some(Work::Run(x, captures)), Some(Work::Run(y, others)))
                if captures.len() == others.len() && (std::ptr::eq(x, y) || self.digests.body(x) == self.digests.body(y)) =>
            {
                self.push(captures, others)
            }
            (Some(Work::Apply(x)), Some(Work::Apply(y))) => self.push_parts(x.parts(), y.parts()),
            _ => false,
        }
    }

    fn push(&mut self, a: &[Slot], b: &[Slot]) -> bool {
        self.push_parts(a.iter().map(Slot::get), b.iter().map(Slot::get))
    }

    fn push_parts(&mut self, a: impl ExactSizeIterator<Item = Value>, b: impl ExactSizeIterator<Item = Value>) -> bool {
        if a.len() != b.len() {
            return false;
        }
        self.todo.extend(a.zip(b));
        true
    }

    fn values(&mut self, a: Value, b: Value) -> bool {
        if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
            return x.bytes() == y.bytes() && x.context() == y.context();
        }
        if let (Some(x), Some(y)) = (a.as_list(), b.as_list()) {
            return self.push(x.slots(), y.slots());
        }
        if let (Some(x), Some(y)) = (a.as_attrs(), b.as_attrs()) {
            let ((shape, cells), (other, others)) = (x.flat(), y.flat());
            return shape.names() == other.names() && self.push(cells, others);
        }
        if let (Some(x), Some(y)) = (a.as_function(), b.as_function()) {
            return self.functions(x, y);
        }
        if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            return canonical(x).to_bits() == canonical(y).to_bits();
        }
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            return x == y;
        }
        match (a.as_path(), b.as_path()) {
            (Some(x), Some(y)) => x == y,
            _ => a == b,
        }
    }

    fn functions(&mut self, a: Function, b: Function) -> bool {
        match (a, b) {
            (Function::Closure(x), Function::Closure(y)) => {
                let same = std::ptr::eq(x.lambda(), y.lambda()) || self.digests.lambda(x.lambda()) == self.digests.lambda(y.lambda());
                same && self.push(x.captures(), y.captures())
            }
            (Function::Primop(x), Function::Primop(y)) => x.name == y.name,
            (Function::Partial(x), Function::Partial(y)) => {
                self.todo.push((x.function(), y.function()));
                self.push(x.args(), y.args())
            }
            _ => false,
        }
    }
}
