//! Keys of calls: the code, what it has captured, the arguments. Taking a key forces nothing (M2).
//!
//! A key is *sealed*: everything reachable from it was seen, and nothing in it is being evaluated. Only then no cell of the
//! call can come back into its own inputs unnoticed (`docs/memo-soundness.md`, "Knots"). Cells of a file that does not run are
//! not looked into: they stand for themselves, and the file is noted. The hash locates, [`crate::Pairs`] verifies.

use crate::Instances;
use firn_source::Pos;
use firn_value::{Expr, Function, Label, Lambda, Slot, Stamp, Thunk, ThunkState, Value, Work};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Mutex;

/// Why a call is not looked up, not remembered, or not answered from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More is reachable from function and arguments than is looked at.
    Large,
    /// Something reachable is being evaluated.
    Running,
    /// Something reachable has failed.
    Failed,
    /// Something reachable stands for a cell of another instance.
    Transported,
}

/// A call: code, captures, arguments.
#[derive(Clone, Debug)]
pub struct Key {
    /// The function's code.
    pub code: &'static Lambda,
    /// Captures, then arguments.
    pub words: SmallVec<[Value; 6]>,
    /// Equal for keys that pair.
    pub hash: u64,
    /// Where attributes of the arguments were written.
    pub positions: Vec<Pos>,
    /// Files of which a cell stands for itself and was not looked into.
    pub files: SmallVec<[Stamp; 4]>,
    /// Cells for which nothing but an import is written, suspended when the key was taken, and the paths of the files.
    pub imports: SmallVec<[(u64, &'static [u8]); 2]>,
}

/// What tells which cells are not looked into.
#[derive(Clone, Copy, Debug)]
pub struct Outside<'a> {
    /// All instances.
    pub instances: &'a Instances,
    /// The files of productions that run: of their cells, arguments are made.
    pub running: &'a RunningFiles<'a>,
}

/// The instances whose productions run, the [`INNERMOST`] of them.
pub type Innermost<'a> = &'a dyn Fn() -> SmallVec<[Stamp; INNERMOST]>;

/// The files of productions that run, found when somebody asks.
pub struct RunningFiles<'a> {
    instances: &'a Instances,
    innermost: Innermost<'a>,
    files: OnceCell<SmallVec<[Stamp; INNERMOST]>>,
}

impl std::fmt::Debug for RunningFiles<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.files.fmt(f)
    }
}

impl<'a> RunningFiles<'a> {
    /// The files of these instances.
    pub fn new(instances: &'a Instances, innermost: Innermost<'a>) -> RunningFiles<'a> {
        RunningFiles { instances, innermost, files: OnceCell::new() }
    }

    fn contains(&self, file: Stamp) -> bool {
        let files = || (self.innermost)().into_iter().filter_map(|stamp| self.instances.file_of(stamp)).collect();
        self.files.get_or_init(files).contains(&file)
    }
}

impl Outside<'_> {
    /// The file that the word belongs to, if it can stand for itself: it is a thunk, set, list or function of a file that, as far as a
    /// short look tells, does not run. Whether that is so is looked at once more before the call is opened.
    fn file_of(self, word: Value) -> Option<Stamp> {
        let file = self.instances.file_of(word.stamp())?;
        (!self.running.contains(file)).then_some(file)
    }
}

impl Outside<'_> {
    /// Whether a glance at a word, at what is in it and at what that has captured finds a set that alone is more than is looked at. A
    /// walk would come to that as well, and refuse.
    // PERF: most files are functions of a package set or a library, and called once: 2,400 instructions a call without this.
    pub(crate) fn is_hopeless(self, word: Value, limit: usize) -> bool {
        let captured = |cell: Value| cell.as_thunk().and_then(Thunk::suspended_body).map(|(_, captures)| captures);
        let is_too_large = |cell: Value| match captured(cell) {
            None => self.is_too_large(cell, limit),
            Some(captures) => captures.iter().any(|held| self.is_too_large(held.get(), limit)),
        };
        match evaluated(word).and_then(Value::as_attrs) {
            Some(set) if set.flat_shape().is_some_and(|shape| shape.len() <= limit) => {
                set.flat().1.iter().any(|cell| is_too_large(cell.get()))
            }
            _ => is_too_large(word),
        }
    }

    /// Whether it is a set of more names than are looked at, which does not stand for itself.
    #[inline]
    fn is_too_large(self, cell: Value, limit: usize) -> bool {
        let Some(value) = evaluated(cell) else { return false };
        value.as_attrs().is_some_and(|set| set.guard().is_none() && set.len() > limit) && self.file_of(value).is_none()
    }
}

/// The value of a cell that has been evaluated, for a glance: what was observed to produce it is lost.
#[inline]
fn evaluated(cell: Value) -> Option<Value> {
    match cell.as_thunk() {
        Some(thunk) => thunk.forced().or_else(|| thunk.labelled().map(|(value, _)| value)),
        None => Some(cell),
    }
}

/// So many running productions are looked at.
pub const INNERMOST: usize = 16;

/// Thunks that were seen suspended, and what they are in hashes: themselves, or the file that they import. They are that for ever, also
/// when forced (M3).
#[derive(Debug, Default)]
pub struct Identified {
    all: Mutex<FxHashMap<u64, u64>>,
}

/// The value of a cell that is known without evaluating it: it has been evaluated, or is a constant. What was observed to
/// produce it is lost: where that matters, use [`seen`].
pub(crate) fn known(cell: Value) -> Option<Value> {
    seen(cell).map(|(value, _)| value)
}

/// As [`known`], with the label.
pub(crate) fn seen(cell: Value) -> Option<(Value, Label)> {
    let Some(thunk) = cell.as_thunk() else { return Some((cell, 0)) };
    match thunk.state() {
        ThunkState::Forced(value) => Some((value, 0)),
        ThunkState::Noisy(value, label) | ThunkState::Ahead(value, label) | ThunkState::Labelled(value, label) => Some((value, label)),
        ThunkState::Suspended => constant(thunk).map(|value| (value, 0)),
        ThunkState::Claimed(_) | ThunkState::Failed(..) => None,
    }
}

fn constant(thunk: &'static Thunk) -> Option<Value> {
    match *thunk.suspended_body()?.0.code() {
        Expr::Const(value, _) if value.is_whnf() && value.as_function().is_none() => Some(value),
        _ => None,
    }
}

/// The path of the file whose value a suspended cell will be, if nothing but its import is written there. A file has one value in a
/// process, so every such cell of that path comes to the same word.
fn imported(thunk: &'static Thunk) -> Option<&'static [u8]> {
    let Expr::Call(call) = thunk.suspended_body()?.0.code() else { return None };
    let (Expr::Const(callee, _), [Expr::Const(path, _)]) = (&call.fun, call.args) else { return None };
    let is_import = matches!(callee.as_function(), Some(Function::Primop(primop)) if primop.name == "import");
    // The set of a derivation is made anew by each import.
    path.as_path().filter(|path| is_import && !path.ends_with(b".drv"))
}

/// Builds the value of a thunk for which nothing but a list, a set or a function is written. That evaluates nothing, prints nothing and
/// cannot fail, and the cell goes on counting as unevaluated.
pub type Build<'a> = &'a dyn Fn(&'static Thunk) -> Option<Value>;

/// What a cell is to the key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Data of an argument: what is written for it is built, so that it can be compared.
    Data,
    /// Captured.
    Held,
    /// Reachable, and nothing of it counts for the hash.
    Hidden,
}

struct Walk<'a> {
    hasher: FxHasher,
    /// What is to be looked at.
    todo: SmallVec<[(Value, Part); 32]>,
    seen: SmallVec<[u64; 32]>,
    left: usize,
    positions: Vec<Pos>,
    files: SmallVec<[Stamp; 4]>,
    imports: SmallVec<[(u64, &'static [u8]); 2]>,
    outside: Outside<'a>,
    identified: &'a FxHashMap<u64, u64>,
    newly: SmallVec<[(u64, u64); 16]>,
    build: Build<'a>,
}

impl Key {
    /// The key of a call, or why it has none. At most `limit` cells are looked at.
    pub fn of(
        code: &'static Lambda,
        (captures, args): (&[Slot], &[Slot]),
        known: &Identified,
        outside: Outside<'_>,
        limit: usize,
        build: Build<'_>,
    ) -> Result<Key, Refusal> {
        let all = || captures.iter().chain(args).map(Slot::get);
        let words: SmallVec<[Value; 6]> = all().collect();
        let parts = words.iter().enumerate().map(|(at, &word)| (word, if at < captures.len() { Part::Held } else { Part::Data }));
        let mut identified = known.all.lock().unwrap_or_else(|e| e.into_inner());
        let mut walk = Walk {
            hasher: FxHasher::default(),
            todo: parts.rev().collect(),
            seen: SmallVec::new(),
            left: limit,
            positions: Vec::new(),
            files: SmallVec::new(),
            imports: SmallVec::new(),
            outside,
            identified: &identified,
            newly: SmallVec::new(),
            build,
        };
        std::ptr::from_ref(code).addr().hash(&mut walk.hasher);
        walk.run()?;
        let Walk { hasher, positions, files, imports, newly, .. } = walk;
        identified.extend(newly);
        Ok(Key { code, words, hash: hasher.finish(), positions, files, imports })
    }
}

impl Walk<'_> {
    fn run(&mut self) -> Result<(), Refusal> {
        while let Some((cell, part)) = self.todo.pop() {
            self.left = self.left.checked_sub(1).ok_or(Refusal::Large)?;
            match cell.as_thunk() {
                None => self.value(cell, part)?,
                Some(thunk) => self.thunk(cell, thunk, part)?,
            }
        }
        Ok(())
    }

    fn mix(&mut self, part: Part, content: impl Hash) {
        if part != Part::Hidden {
            content.hash(&mut self.hasher);
        }
    }

    /// Whether it is the first visit. Later ones count for the order of the first.
    fn first(&mut self, word: Value, part: Part) -> bool {
        // PERF: at most a few hundred; most walks end after a few dozen.
        match self.seen.iter().position(|&seen| seen == word.identity()) {
            Some(at) => {
                self.mix(part, at);
                false
            }
            None => {
                self.seen.push(word.identity());
                true
            }
        }
    }

    /// Whether the word stands for itself because it is a file's; it counts as that, and the file is noted.
    fn stands_for_itself(&mut self, word: Value, part: Part) -> bool {
        let Some(file) = self.outside.file_of(word) else { return false };
        self.mix(part, (11u8, word.identity()));
        if !self.files.contains(&file) {
            self.files.push(file);
        }
        true
    }

    fn push(&mut self, slots: &[Slot], part: Part) -> Result<(), Refusal> {
        self.push_parts(slots.iter().map(Slot::get), part)
    }

    fn push_parts(&mut self, parts: impl ExactSizeIterator<Item = Value> + DoubleEndedIterator, part: Part) -> Result<(), Refusal> {
        if self.todo.len() + parts.len() > self.left {
            return Err(Refusal::Large);
        }
        self.mix(part, parts.len());
        self.todo.extend(parts.rev().map(|cell| (cell, part)));
        Ok(())
    }

    /// The value of a cell, if it is known or can be built.
    fn known(&self, cell: Value, thunk: &'static Thunk, part: Part) -> Option<Value> {
        known(cell).or_else(|| if part == Part::Data { (self.build)(thunk) } else { None })
    }

    fn thunk(&mut self, cell: Value, thunk: &'static Thunk, part: Part) -> Result<(), Refusal> {
        let identified = self.identified.get(&cell.identity()).copied();
        if identified.is_none()
            && let Some(value) = self.known(cell, thunk, part)
        {
            self.todo.push((value, part));
            return Ok(());
        }
        if !self.first(cell, part) {
            return Ok(());
        }
        let imported = imported(thunk);
        self.imports.extend(imported.map(|path| (cell.identity(), path)));
        let stands_as = identified.unwrap_or_else(|| {
            let stands_as = imported.map_or(cell.identity(), |path| FxBuildHasher.hash_one((12u8, path)));
            self.newly.push((cell.identity(), stands_as));
            stands_as
        });
        self.mix(part, stands_as);
        if self.stands_for_itself(cell, Part::Hidden) {
            return Ok(());
        }
        match (known(cell), thunk.suspended_work()) {
            (Some(value), _) => self.todo.push((value, Part::Hidden)),
            (None, Some(Work::Run(_, slots))) => self.push(slots, Part::Hidden)?,
            (None, Some(Work::Apply(application))) => self.push_parts(application.parts(), Part::Hidden)?,
            (None, Some(Work::Transport(..))) => return Err(Refusal::Transported),
            (None, None) => {
                let failed = matches!(thunk.state(), ThunkState::Failed(..));
                return Err(if failed { Refusal::Failed } else { Refusal::Running });
            }
        }
        Ok(())
    }

    fn value(&mut self, value: Value, part: Part) -> Result<(), Refusal> {
        if let Some(string) = value.as_str() {
            self.mix(part, (1u8, string.bytes()));
        } else if self.stands_for_itself(value, part) {
        } else if let Some(list) = value.as_list() {
            if self.first(value, part) {
                if list.guard().is_some() {
                    return Err(Refusal::Large);
                }
                self.mix(part, 2u8);
                self.push(list.slots(), part)?;
            }
        } else if let Some(set) = value.as_attrs() {
            if self.first(value, part) {
                // To look into a guarded set would be to observe all that its names rest on.
                // PERF: a large set in layers is not flattened only to be found too large (hello: 3 %).
                if set.guard().is_some() || self.todo.len() + set.len() > self.left {
                    return Err(Refusal::Large);
                }
                let (shape, cells) = set.flat();
                self.push(cells, part)?;
                self.mix(part, (3u8, shape.names()));
                self.positions.extend(shape.positions().iter().filter(|pos| pos.is_some()));
            }
        } else if let Some(function) = value.as_function() {
            if self.first(value, part) {
                self.function(function, part)?;
            }
        } else if let Some(n) = value.as_int() {
            self.mix(part, (4u8, n));
        } else if let Some(x) = value.as_float() {
            self.mix(part, (5u8, x.to_bits()));
        } else if let Some(path) = value.as_path() {
            self.mix(part, (6u8, path));
        } else {
            self.mix(part, (7u8, value.identity()));
        }
        Ok(())
    }

    fn function(&mut self, function: Function, part: Part) -> Result<(), Refusal> {
        let held = if part == Part::Hidden { Part::Hidden } else { Part::Held };
        match function {
            Function::Closure(closure) => {
                self.mix(part, (8u8, std::ptr::from_ref(closure.lambda()).addr()));
                self.push(closure.captures(), held)?;
            }
            Function::Primop(primop) => self.mix(part, (9u8, primop.index)),
            Function::Partial(partial) => {
                self.mix(part, 10u8);
                self.todo.push((partial.function(), held));
                self.push(partial.args(), held)?;
            }
        }
        Ok(())
    }
}
