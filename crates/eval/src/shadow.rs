//! Shadow mode (O1): answers from memory beside what a fresh evaluation gave. They are compared as far as the fresh ones
//! were evaluated: values, contexts, positions, and which cells are the same (M7).

use crate::Machine;
use firn_source::Pos;
use firn_value::{Function, Slot, ThunkState, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// What the comparison has seen.
#[derive(Default)]
struct Comparison {
    todo: Vec<(Value, Value, String)>,
    seen: FxHashSet<(u64, u64)>,
    /// Cells that are told apart, and what they are on the other side.
    fresh_of: FxHashMap<u64, u64>,
    answer_of: FxHashMap<u64, u64>,
}

/// The longest way to a difference that is told.
const LONGEST: usize = 200;

impl Machine {
    /// Compares the answers from memory with the fresh values beside them; the differences. Nothing is printed meanwhile.
    pub fn compare_shadows(&self) -> Vec<String> {
        let pairs = std::mem::take(&mut *self.shared.memo.shadows.lock().unwrap_or_else(|e| e.into_inner()));
        let silent: Box<dyn FnMut(&[u8]) + Send> = Box::new(|_| {});
        let log = std::mem::replace(&mut *self.shared.log.lock().unwrap_or_else(|e| e.into_inner()), silent);
        let mut differences = Vec::new();
        for (answer, fresh, name) in pairs {
            // One at a time: a fresh value may be beside the answers to several calls, one inside the other.
            let mut comparison = Comparison::default();
            firn_memo::Stats::bump(&self.shared.memo.stats.compared);
            let called = name.map_or_else(|| "a function".to_owned(), |name| name.to_string());
            comparison.todo.push((answer, fresh, called));
            if let Err(difference) = self.compare_all(&mut comparison) {
                firn_memo::Stats::bump(&self.shared.memo.stats.differences);
                differences.push(difference);
            }
        }
        *self.shared.log.lock().unwrap_or_else(|e| e.into_inner()) = log;
        differences
    }

    fn compare_all(&self, comparison: &mut Comparison) -> std::result::Result<(), String> {
        while let Some((answer, fresh, way)) = comparison.todo.pop() {
            if answer == fresh || !comparison.seen.insert((answer.identity(), fresh.identity())) {
                continue;
            }
            let known = match fresh.as_thunk().map(|thunk| thunk.state()) {
                None => fresh,
                Some(ThunkState::Forced(value) | ThunkState::Noisy(value, _) | ThunkState::Labelled(value, _)) => value,
                Some(_) => continue,
            };
            let value = match self.force(answer, Pos::NONE) {
                Ok(value) => value,
                // With this answer the program would have begun again.
                Err(_) if firn_memo::doubt::forget_missed_code() => continue,
                Err(error) => return Err(format!("{way}: the memo's fails ({error}), a fresh evaluation gives {}", self.shown(known))),
            };
            comparison.compare(answer, fresh, value, known, &way).map_err(|why| {
                format!("{way}: {why}: the memo's is {}, a fresh evaluation's {}", self.shown(value), self.shown(known))
            })?;
        }
        Ok(())
    }

    fn shown(&self, value: Value) -> String {
        String::from_utf8_lossy(&self.show(value)).into_owned()
    }
}

impl Comparison {
    fn compare(&mut self, answer: Value, fresh: Value, a: Value, b: Value, way: &str) -> std::result::Result<(), &'static str> {
        if b.is_told_apart_by_cell() {
            let mapped = *self.fresh_of.entry(answer.identity()).or_insert(fresh.identity()) == fresh.identity();
            let back = *self.answer_of.entry(fresh.identity()).or_insert(answer.identity()) == answer.identity();
            if !mapped || !back {
                return Err("cells are shared differently");
            }
        }
        if a.get_type() != b.get_type() {
            return Err("types differ");
        }
        let same = if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
            x.bytes() == y.bytes() && x.context() == y.context()
        } else if let (Some(x), Some(y)) = (a.as_list(), b.as_list()) {
            self.push(x.slots(), y.slots(), |i| format!("{way}[{i}]"), way)
        } else if let (Some(x), Some(y)) = (a.as_attrs(), b.as_attrs()) {
            let ((shape, cells), (other, others)) = (x.flat(), y.flat());
            shape.names() == other.names()
                && shape.positions().iter().zip(other.positions()).all(|(p, q)| p == q || p.is_uncertain() || q.is_uncertain())
                && self.push(cells, others, |i| format!("{way}.{}", shape.names()[i]), way)
        } else if let (Some(x), Some(y)) = (a.as_function(), b.as_function()) {
            self.functions(x, y, way)
        } else if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            x.to_bits() == y.to_bits()
        } else if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            x == y
        } else {
            a == b || a.as_path().is_some() && a.as_path() == b.as_path()
        };
        if same { Ok(()) } else { Err("values differ") }
    }

    fn push(&mut self, a: &[Slot], b: &[Slot], way: impl Fn(usize) -> String, so_far: &str) -> bool {
        let way = |i| if so_far.len() < LONGEST { way(i) } else { so_far.to_owned() };
        self.todo.extend(a.iter().zip(b).enumerate().map(|(i, (a, b))| (a.get(), b.get(), way(i))));
        a.len() == b.len()
    }

    fn functions(&mut self, a: Function, b: Function, way: &str) -> bool {
        let inner = |i| format!("{way}<{i}>");
        match (a, b) {
            (Function::Closure(x), Function::Closure(y)) => {
                std::ptr::eq(x.lambda(), y.lambda()) && self.push(x.captures(), y.captures(), inner, way)
            }
            (Function::Partial(x), Function::Partial(y)) => {
                self.todo.push((x.function(), y.function(), format!("{way}<function>")));
                self.push(x.args(), y.args(), inner, way)
            }
            (Function::Primop(x), Function::Primop(y)) => x.index == y.index,
            _ => false,
        }
    }
}
