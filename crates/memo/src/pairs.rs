//! Whether two keys are the same call, and which cell of the one corresponds to which of the other.
//!
//! Words that are equal correspond to themselves. Others correspond when they are known, of equal shape and content, and
//! functions when they have the same code over corresponding captures and nobody but the call can reach the first
//! (`docs/memo-soundness.md`, "Arguments"). A suspended value corresponds to nothing but itself; a suspended import corresponds to
//! one of the same file that has come to its value.

use crate::Instances;
use crate::key::{Key, known, seen};
use firn_source::Pos;
use firn_value::{Function, Label, Slot, Stamp, Value, Work};
use rustc_hash::{FxHashMap, FxHashSet};

/// The correspondence of two equal keys.
#[derive(Debug, Default)]
pub struct Pairs {
    /// Words of the first key and what they are in the second, where these differ.
    pub images: FxHashMap<u64, Value>,
    /// Where attributes of the first key were written, and where those of the second were.
    pub positions: FxHashMap<Pos, Pos>,
    /// Whether a cell of the arguments differs, so that forcing the one is not forcing the other.
    pub cells_differ: bool,
    /// What was observed to produce the second key, as far as it was compared.
    pub labels: FxHashSet<Label>,
    functions: FxHashSet<u64>,
    itself: Vec<Value>,
}

impl Pairs {
    /// The correspondence, if the keys are equal. Cells that differ must reach the inside of the first call, the instance `call`, only by
    /// its inputs.
    pub fn of(first: &Key, second: &Key, instances: &Instances, call: Stamp) -> Option<Pairs> {
        let near = |stamp| instances.is_near(stamp, call);
        if !std::ptr::eq(first.code, second.code) || first.words.len() != second.words.len() {
            return None;
        }
        let mut pairs = Pairs::default();
        let mut todo: Vec<(Value, Value)> = first.words.iter().copied().zip(second.words.iter().copied()).collect();
        while let Some((a, b)) = todo.pop() {
            if !pairs.imports(a, b, (first, second), &near) {
                pairs.pair(a, b, &near, &mut todo)?;
            }
        }
        (pairs.functions.is_empty() || pairs.is_consistent(&first.files, instances)).then_some(pairs)
    }

    fn pair(&mut self, a: Value, b: Value, near: &impl Fn(Stamp) -> bool, todo: &mut Vec<(Value, Value)>) -> Option<()> {
        if a == b {
            self.itself.push(a);
            return Some(());
        }
        if let Some(&image) = self.images.get(&a.identity()) {
            return (image == b).then_some(());
        }
        let (is_cell, was_cell) = (b.as_thunk().is_some(), a.as_thunk().is_some());
        if is_cell || was_cell {
            let (x, (y, label)) = (known(a)?, seen(b)?);
            self.labels.insert(label);
            if is_cell != was_cell && (x.is_told_apart_by_cell() || y.is_told_apart_by_cell()) {
                return None;
            }
            if was_cell && !near(a.stamp()) {
                return None;
            }
            self.cells_differ = true;
            if was_cell {
                self.images.insert(a.identity(), b);
            }
            todo.push((x, y));
            return Some(());
        }
        self.values(a, b, near, todo)
    }

    /// Whether both cells are imports of one file, of which the second is suspended and the first has come to the file's value. The second
    /// will come to that very word, and rests on what the first observed.
    fn imports(&mut self, a: Value, b: Value, (first, second): (&Key, &Key), near: &impl Fn(Stamp) -> bool) -> bool {
        let path = |key: &Key, cell: Value| key.imports.iter().find(|&&(identity, _)| identity == cell.identity()).map(|&(_, path)| path);
        if a == b || self.images.contains_key(&a.identity()) || !near(a.stamp()) {
            return false;
        }
        let is_same = path(first, a).is_some_and(|file| path(second, b) == Some(file)) && known(b).is_none();
        let Some((value, label)) = seen(a).filter(|_| is_same) else { return false };
        self.labels.insert(label);
        self.cells_differ = true;
        self.images.insert(a.identity(), b);
        self.itself.push(value);
        true
    }

    fn values(&mut self, a: Value, b: Value, near: &impl Fn(Stamp) -> bool, todo: &mut Vec<(Value, Value)>) -> Option<()> {
        if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
            return (x.bytes() == y.bytes() && x.context() == y.context()).then_some(());
        }
        if !near(a.stamp()) {
            return None;
        }
        if let (Some(x), Some(y)) = (a.as_list(), b.as_list()) {
            self.images.insert(a.identity(), b);
            return push(todo, x.slots(), y.slots());
        }
        if let (Some(x), Some(y)) = (a.as_attrs(), b.as_attrs()) {
            let ((shape, cells), (other, others)) = (x.flat(), y.flat());
            if shape.names() != other.names() {
                return None;
            }
            for (&p, &q) in shape.positions().iter().zip(other.positions()) {
                if p != q && p.is_some() && q.is_some() {
                    self.positions.insert(p, q);
                } else if p != q {
                    return None;
                }
            }
            self.images.insert(a.identity(), b);
            return push(todo, cells, others);
        }
        if let (Some(x), Some(y)) = (a.as_function(), b.as_function()) {
            self.images.insert(a.identity(), b);
            self.functions.insert(a.identity());
            return functions(x, y, todo);
        }
        if let (Some(x), Some(y)) = (a.as_int(), b.as_int()) {
            return (x == y).then_some(());
        }
        if let (Some(x), Some(y)) = (a.as_float(), b.as_float()) {
            return (x.to_bits() == y.to_bits() && !x.is_nan()).then_some(());
        }
        (a.as_path().is_some() && a.as_path() == b.as_path()).then_some(())
    }

    /// What corresponds to itself must not reach a function that corresponds to another, or cells that do. Cells of the files that the
    /// key names do not: those reach nothing that is near the call, and what corresponds to another is.
    fn is_consistent(&self, files: &[Stamp], instances: &Instances) -> bool {
        let mut seen = FxHashSet::default();
        let mut todo = self.itself.clone();
        while let Some(word) = todo.pop() {
            if self.images.contains_key(&word.identity()) {
                return false;
            }
            let is_files = || instances.file_of(word.stamp()).is_some_and(|file| files.contains(&file));
            if seen.insert(word.identity()) && !is_files() {
                children(word, &mut todo);
            }
        }
        true
    }
}

fn push(todo: &mut Vec<(Value, Value)>, a: &[Slot], b: &[Slot]) -> Option<()> {
    if a.len() != b.len() {
        return None;
    }
    todo.extend(a.iter().map(Slot::get).zip(b.iter().map(Slot::get)));
    Some(())
}

fn functions(a: Function, b: Function, todo: &mut Vec<(Value, Value)>) -> Option<()> {
    match (a, b) {
        (Function::Closure(x), Function::Closure(y)) => {
            let same = std::ptr::eq(x.lambda(), y.lambda()) && x.is_delayed() == y.is_delayed();
            if same { push(todo, x.captures(), y.captures()) } else { None }
        }
        (Function::Partial(x), Function::Partial(y)) => {
            todo.push((x.function(), y.function()));
            push(todo, x.args(), y.args())
        }
        _ => None,
    }
}

/// What a word directly reaches.
fn children(word: Value, out: &mut Vec<Value>) {
    let slots = |slots: &[Slot], out: &mut Vec<Value>| out.extend(slots.iter().map(Slot::get));
    if let Some(thunk) = word.as_thunk() {
        if let Some(value) = known(word) {
            out.push(value);
        } else {
            match thunk.suspended_work() {
                Some(Work::Run(_, captures)) => slots(captures, out),
                Some(Work::Apply(application)) => out.extend(application.parts()),
                Some(Work::Transport(..)) | None => {}
            }
        }
    } else if let Some(list) = word.as_list() {
        slots(list.slots(), out);
    } else if let Some(set) = word.as_attrs() {
        slots(set.flat().1, out);
    } else {
        match word.as_function() {
            Some(Function::Closure(closure)) => slots(closure.captures(), out),
            Some(Function::Partial(partial)) => {
                out.push(partial.function());
                slots(partial.args(), out);
            }
            Some(Function::Primop(_)) | None => {}
        }
    }
}
