//! The lazy digest of a value (L1.1): 256 bits, nothing forced, no recursion, cycles end.
//!
//! Data is digested by content, sets in the order of their names, functions and suspended values by the digest of their code
//! and of what they capture. A reference back into what is being digested counts by how far up it leads, so a cycle
//! has one digest wherever its cells lie; sharing does not count. What was digested before all of it
//! was evaluated keeps that digest (M3). Digests of what has no portable name (a running or failed thunk, a path, more than the limit) are good in
//! this process only, and say so.

use firn_ir::CodeDigests;
use firn_value::{Expr, Function, Slot, Thunk, ThunkState, Value, Work};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// A digest of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest {
    /// The bits.
    pub bytes: [u8; 32],
    /// Whether it is the same in every process and on every machine (M5).
    pub portable: bool,
}

/// Digests values and remembers what must not change.
#[derive(Debug, Default)]
pub struct Digests {
    code: CodeDigests,
    /// What was digested before all of it was evaluated.
    suspended: Mutex<FxHashMap<u64, Digest>>,
}

/// The most cells that one digest looks into; what lies beyond counts by its address.
const LIMIT: usize = 1 << 16;

#[derive(Clone, Copy)]
struct Part {
    digest: Digest,
    /// The highest cell above, counted from the root, that is referred back to.
    lowest: usize,
    /// Whether something in it is not evaluated.
    pending: bool,
}

const CLOSED: usize = usize::MAX;

enum Task {
    Enter(Value),
    /// All parts of a cell are digested: so many, to be put behind these bytes.
    Leave { cell: Value, parts: usize, head: Vec<u8>, pending: bool },
}

struct Run<'a> {
    digests: &'a Digests,
    tasks: Vec<Task>,
    parts: Vec<Part>,
    path: FxHashMap<u64, usize>,
    done: FxHashMap<u64, Digest>,
    left: usize,
}

impl Digests {
    /// The digest of a value or cell.
    pub fn of(&self, value: Value) -> Digest {
        let mut run = Run {
            digests: self,
            tasks: vec![Task::Enter(value)],
            parts: Vec::new(),
            path: FxHashMap::default(),
            done: FxHashMap::default(),
            left: LIMIT,
        };
        while let Some(task) = run.tasks.pop() {
            match task {
                Task::Enter(cell) => run.enter(cell),
                Task::Leave { cell, parts, head, pending } => run.leave(cell, parts, &head, pending),
            }
        }
        run.parts.pop().expect("a digest is left").digest
    }

    /// The digest of a function's code.
    pub fn lambda(&self, lambda: &'static firn_value::Lambda) -> [u8; 32] {
        self.code.lambda(lambda, &|value, hasher| self.constant(value, hasher))
    }

    /// The digest of a suspended value's code.
    pub fn body(&self, body: &'static firn_value::Body) -> [u8; 32] {
        self.code.body(body, &|value, hasher| self.constant(value, hasher))
    }

    fn constant(&self, value: Value, hasher: &mut blake3::Hasher) {
        hasher.update(&self.of(value).bytes);
    }

    fn remembered(&self, cell: Value) -> Option<Digest> {
        let has_parts = cell.as_thunk().is_some() || cell.as_attrs().is_some() || cell.as_list().is_some() || cell.as_function().is_some();
        if !has_parts {
            return None;
        }
        self.suspended.lock().unwrap_or_else(|e| e.into_inner()).get(&cell.identity()).copied()
    }
}

fn hashed(head: &[u8]) -> [u8; 32] {
    *blake3::hash(head).as_bytes()
}

fn tagged(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(bytes.len() + 1);
    head.push(tag);
    head.extend_from_slice(bytes);
    head
}

impl Run<'_> {
    fn put(&mut self, head: &[u8], portable: bool) {
        self.parts.push(Part { digest: Digest { bytes: hashed(head), portable }, lowest: CLOSED, pending: false });
    }

    fn enter(&mut self, cell: Value) {
        if let Some(&digest) = self.done.get(&cell.identity()) {
            return self.parts.push(Part { digest, lowest: CLOSED, pending: false });
        }
        if let Some(digest) = self.digests.remembered(cell) {
            return self.parts.push(Part { digest, lowest: CLOSED, pending: true });
        }
        if let Some(&depth) = self.path.get(&cell.identity()) {
            let up = (self.path.len() - depth) as u64;
            self.put(&tagged(0, &up.to_le_bytes()), true);
            self.parts.last_mut().expect("just put").lowest = depth;
            return;
        }
        match cell.as_thunk() {
            Some(thunk) => self.thunk(cell, thunk),
            None => self.value(cell),
        }
    }

    /// Puts off a cell until its parts are digested.
    fn node(&mut self, cell: Value, head: Vec<u8>, parts: impl DoubleEndedIterator<Item = Value> + ExactSizeIterator, pending: bool) {
        if self.left == 0 {
            return self.put(&tagged(1, &cell.identity().to_le_bytes()), false);
        }
        self.left -= 1;
        self.path.insert(cell.identity(), self.path.len());
        self.tasks.push(Task::Leave { cell, parts: parts.len(), head, pending });
        self.tasks.extend(parts.rev().map(Task::Enter));
    }

    fn leave(&mut self, cell: Value, count: usize, head: &[u8], mut pending: bool) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(head);
        hasher.update(&(count as u64).to_le_bytes());
        let (mut portable, mut lowest) = (true, CLOSED);
        for part in self.parts.drain(self.parts.len() - count..) {
            hasher.update(&part.digest.bytes);
            portable &= part.digest.portable;
            lowest = lowest.min(part.lowest);
            pending |= part.pending;
        }
        let digest = Digest { bytes: *hasher.finalize().as_bytes(), portable };
        self.path.remove(&cell.identity());
        if lowest >= self.path.len() {
            lowest = CLOSED;
            self.done.insert(cell.identity(), digest);
        }
        // A digest that refers to what is around it is no digest of the cell alone; what is around it is remembered then.
        if pending && lowest == CLOSED {
            self.digests.suspended.lock().unwrap_or_else(|e| e.into_inner()).insert(cell.identity(), digest);
        }
        self.parts.push(Part { digest, lowest, pending });
    }

    fn thunk(&mut self, cell: Value, thunk: &'static Thunk) {
        match thunk.state() {
            ThunkState::Forced(value) | ThunkState::Noisy(value, _) | ThunkState::Ahead(value, _) | ThunkState::Labelled(value, _) => {
                // A cell adds nothing to its value, but a cycle may close through it.
                self.tasks.push(Task::Enter(value));
            }
            ThunkState::Suspended => self.suspended(cell, thunk),
            ThunkState::Claimed(_) | ThunkState::Failed(..) => self.by_identity(cell),
        }
    }

    fn by_identity(&mut self, cell: Value) {
        let digest = Digest { bytes: hashed(&tagged(1, &cell.identity().to_le_bytes())), portable: false };
        self.digests.suspended.lock().unwrap_or_else(|e| e.into_inner()).insert(cell.identity(), digest);
        self.parts.push(Part { digest, lowest: CLOSED, pending: true });
    }

    fn suspended(&mut self, cell: Value, thunk: &'static Thunk) {
        match thunk.suspended_work() {
            Some(Work::Run(body, captures)) => match *body.code() {
                Expr::Const(value, _) => self.tasks.push(Task::Enter(value)),
                _ => {
                    let code = self.digests.body(body);
                    self.node(cell, tagged(2, &code), captures.iter().map(Slot::get), true);
                }
            },
            Some(Work::Apply(application)) => self.node(cell, vec![3], application.parts(), true),
            Some(Work::Transport(..)) | None => self.by_identity(cell),
        }
    }

    fn value(&mut self, value: Value) {
        if let Some(string) = value.as_str() {
            let mut head = tagged(4, &(string.bytes().len() as u64).to_le_bytes());
            head.extend_from_slice(string.bytes());
            let mut context: Vec<&[u8]> = string.context().elements().iter().map(|symbol| symbol.as_bytes()).collect();
            context.sort_unstable();
            for element in context {
                head.extend_from_slice(&(element.len() as u64).to_le_bytes());
                head.extend_from_slice(element);
            }
            self.put(&head, true);
        } else if let Some(list) = value.as_list() {
            self.node(value, vec![5], list.slots().iter().map(Slot::get), false);
        } else if let Some(set) = value.as_attrs() {
            let mut head = vec![6];
            for (name, _, _) in set.iter_by_name() {
                head.extend_from_slice(&(name.as_bytes().len() as u64).to_le_bytes());
                head.extend_from_slice(name.as_bytes());
            }
            self.node(value, head, set.iter_by_name().map(|(_, _, cell)| cell), false);
        } else if let Some(function) = value.as_function() {
            self.function(value, function);
        } else if let Some(n) = value.as_int() {
            self.put(&tagged(7, &n.to_le_bytes()), true);
        } else if let Some(x) = value.as_float() {
            self.put(&tagged(8, &canonical(x).to_bits().to_le_bytes()), true);
        } else if let Some(path) = value.as_path() {
            // A path is portable by the tree it belongs to, which only the host knows.
            self.put(&tagged(9, path), false);
        } else {
            self.put(&tagged(10, &[value.as_bool().map_or(2, u8::from)]), true);
        }
    }

    fn function(&mut self, value: Value, function: Function) {
        match function {
            Function::Closure(closure) => {
                let code = self.digests.lambda(closure.lambda());
                self.node(value, tagged(11, &code), closure.captures().iter().map(Slot::get), false);
            }
            Function::Primop(primop) => self.put(&tagged(12, primop.name.as_bytes()), true),
            Function::Partial(partial) => {
                let parts: Vec<Value> = std::iter::once(partial.function()).chain(partial.args().iter().map(Slot::get)).collect();
                self.node(value, vec![13], parts.into_iter(), false);
            }
        }
    }
}

/// One NaN, no negative zero.
pub(crate) fn canonical(x: f64) -> f64 {
    if x.is_nan() { f64::NAN } else { x + 0.0 }
}
