//! Parts of an evaluation, learned for later ones and taken from earlier ones (decision 0022).
//!
//! 1. [`Machine::learn`]: from now on productions are traced, and texts that may be edited are watched leaf by leaf (`import.rs` asks). What
//!    the first text's last selection begins from is where names begin. [`Machine::learned`] gives what came of it. Calls are not answered from
//!    memory meanwhile; where that would save much, nothing more is learned.
//! 2. [`Machine::take_parts`]: once the program has read all the texts that were cut, and they differ in leaves only, cells that have the name of
//!    an earlier cell are followed (`follow.rs`). Not before: what is parsed first has the first symbols, and which of two cells of a set is
//!    evaluated first goes by that. Until that is known the program learns, and if they differ in more, it goes on learning.
//!
//! Neither goes on where calls are too deep (`Machine::deeper`): then an answer could hide that.

use crate::Machine;
use crate::follow::Following;
use firn_host::AbsPath;
use firn_memo::kept::parts::{CutText, Learned, Parts};
use firn_memo::kept::{labels, trace};
use firn_source::{Origin, SourceFile};
use firn_syntax::Ast;
use firn_value::{Label, Result, Value};
use std::cell::{Cell, OnceCell, RefCell};

/// The texts that an evaluation is to learn of, by real path.
#[derive(Debug, Default)]
pub struct Watch {
    /// These.
    pub texts: Vec<AbsPath>,
    /// Those in or below this directory, and this one file, if they say enough to be one of those that people edit.
    pub near: Option<AbsPath>,
}

/// So many texts are cut at most.
const MOST_TEXTS: usize = 64;
/// A text that is near must have so many leaves.
// PERF: a file that says which packages it wants, for which system, has two or three; everything rests on these, so that watching them costs
// most where it is of least use.
const LEAST_LEAVES: usize = 5;
/// Answers to calls that save so many steps, one alone or all together, are worth more than what may be learned.
const WORTH_MORE: u64 = 512;
const TOGETHER: u64 = 16_384;

impl Watch {
    fn has(&self, path: &AbsPath) -> bool {
        self.names(path) || self.near.as_ref().is_some_and(|near| path.is_within(near))
    }

    fn names(&self, path: &AbsPath) -> bool {
        self.texts.contains(path)
    }
}

/// What is learned or taken.
#[derive(Default)]
pub(crate) struct Learning {
    /// Texts to watch, while something is learned.
    watched: OnceCell<Watch>,
    cut: RefCell<Vec<CutText>>,
    /// The next text that is compiled is the one that the question is about.
    is_first: Cell<bool>,
    /// Where names begin, and what that rests on.
    root: Cell<Option<(Value, Label)>>,
    /// Calls were too deep.
    pub(crate) is_deep: Cell<bool>,
    /// Steps that answers to calls would have saved.
    missed: Cell<u64>,
    /// Parts that wait for their texts.
    offered: RefCell<Option<Offered>>,
    /// The texts differ in more than leaves.
    is_refused: Cell<bool>,
    pub(crate) following: OnceCell<Box<Following>>,
}

/// Parts of which not all texts have been read.
struct Offered {
    parts: Parts,
    compares: bool,
    /// Of each text what changed, once that is known.
    changed: Vec<Option<Vec<u32>>>,
}

impl std::fmt::Debug for Learning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Learning")
    }
}

impl Machine {
    /// Learns from now on what may be taken after edits of these texts. Call it before anything is evaluated.
    pub fn learn(&self, watched: Watch) {
        if self.learning.watched.set(watched).is_ok() {
            self.learning.is_first.set(true);
            trace::begin();
        }
    }

    /// What was learned; none if nothing may be taken of it.
    pub fn learned(&self) -> Option<Learned> {
        if self.learning.watched.get().is_none() || !trace::is_on() {
            return None;
        }
        let trace = trace::end();
        let (root, node) = self.learning.root.take()?;
        let texts = self.learning.cut.take();
        let is_of_use = trace.is_whole() && !self.learning.is_deep.get() && !texts.is_empty();
        is_of_use.then_some(Learned { trace, texts, root, node })
    }

    /// Whether an answer to a call that saves so many steps may be given. What it would have taken, in order, nobody knows: whoever learns
    /// calls again, unless the answer is worth more than learning.
    #[inline]
    pub(crate) fn may_answer(&self, steps: u64) -> bool {
        self.learning.watched.get().is_none() || self.prefers_answer(steps)
    }

    #[cold]
    fn prefers_answer(&self, steps: u64) -> bool {
        let missed = self.learning.missed.get() + steps;
        if steps < WORTH_MORE && missed < TOGETHER {
            self.learning.missed.set(missed);
            return false;
        }
        self.learning.missed.set(TOGETHER);
        trace::give_up();
        self.labelled.set(self.shared.labels);
        self.set_fence();
        true
    }

    /// Takes parts as soon as their texts have been read, and they differ in leaves only; learns until then, and if they do not. With `compares`
    /// everything is evaluated, and [`Machine::part_differences`] are what would have been wrong. Call it before anything is evaluated.
    pub fn take_parts(&self, parts: Parts, watched: Watch, compares: bool) {
        if compares {
            // Who compares has labels of what was observed, and learns nothing.
            self.learning.is_first.set(self.learning.watched.set(watched).is_ok());
        } else {
            self.learn(watched);
        }
        // Calls are remembered for one evaluation, or parts for several.
        self.shared.memo.go_deep();
        let changed = vec![None; parts.texts.len()];
        self.learning.offered.replace(Some(Offered { parts, compares, changed }));
    }

    /// Whether parts were not taken because their texts differ in more than leaves.
    pub fn refused_parts(&self) -> bool {
        self.learning.is_refused.get()
    }

    /// A text was read that parts may wait for.
    fn read_for_parts(&self, path: &AbsPath, now: Option<&CutText>) {
        let mut offered = self.learning.offered.borrow_mut();
        let Some(Offered { parts, changed, .. }) = &mut *offered else { return };
        let mut first = 2;
        for (then, changed) in parts.texts.iter().zip(changed) {
            if then.path == *path {
                *changed = now.and_then(|now| now.changed(then, first));
                if changed.is_none() {
                    self.learning.is_refused.set(true);
                }
            }
            first += 1 + then.leaves.len() as u32;
        }
        let is_refused = self.learning.is_refused.get();
        if is_refused || offered.as_ref().is_some_and(|offered| offered.changed.iter().all(Option::is_some)) {
            let known = offered.take();
            drop(offered);
            if let Some(known) = known.filter(|_| !is_refused) {
                self.follow_from_now_on(known);
            }
        }
    }

    fn follow_from_now_on(&self, Offered { parts, compares, changed }: Offered) {
        let changed: Vec<u32> = changed.into_iter().flatten().flatten().collect();
        let _ = self.learning.following.set(Box::new(Following::new(parts, &changed, compares)));
        trace::give_up();
        self.begin_labels();
        if let Some((root, _)) = self.learning.root.get() {
            self.follow_root(root);
        }
    }

    /// How many parts were taken.
    pub fn parts_taken(&self) -> u64 {
        self.learning.following.get().map_or(0, |following| following.taken.get())
    }

    /// The evaluation failed: if parts were taken, what it says may be less than it would have been.
    pub fn doubt_parts(&self) {
        if self.parts_taken() > 0 {
            firn_memo::doubt::part_missed();
        }
    }

    /// Parts that would have been taken, and what evaluation gave instead.
    pub fn part_differences(&self) -> Vec<(Value, Value)> {
        self.learning.following.get().map_or_else(Vec::new, |following| following.differences.take())
    }

    /// Names begin at this value, unless they have begun.
    pub fn begin_names(&self, value: Value) {
        if self.learning.watched.get().is_some() && self.learning.root.get().is_none() {
            self.learning.root.set(Some((value, if trace::is_on() { trace::so_far() } else { 0 })));
            self.follow_root(value);
        }
    }

    /// Whether the leaves of a text are to be noted when it is parsed.
    pub(crate) fn is_watched(&self, file: &'static SourceFile) -> bool {
        self.watched_path(file).is_some()
    }

    fn watched_path(&self, file: &'static SourceFile) -> Option<AbsPath> {
        let watched = self.learning.watched.get().filter(|_| self.learning.following.get().is_none())?;
        let Origin::File(path) = file.origin() else { return None };
        let real = self.real(&AbsPath::new(path).ok()?).ok()?;
        watched.has(&real).then_some(real)
    }

    /// Has what is wanted of a text watched; its leaves only if it is to be cut.
    pub(crate) fn watch(&self, file: &'static SourceFile, ast: &mut Ast, is_cut: bool) {
        if self.learning.is_first.take() {
            ast.watch_root();
        }
        let Some(path) = self.watched_path(file).filter(|_| is_cut) else { return };
        let (leaves, text) = (ast.cut(), file.text());
        let cut = leaves.as_ref().zip(text).map(|(leaves, text)| CutText::new(path.clone(), &text, leaves));
        self.read_for_parts(&path, cut.as_ref());
        if self.learning.following.get().is_some() || !trace::is_on() {
            return;
        }
        let mut texts = self.learning.cut.borrow_mut();
        if let (Some(leaves), Some(cut)) = (leaves, cut)
            && texts.len() < MOST_TEXTS
            && (leaves.leaves.len() >= LEAST_LEAVES || self.learning.watched.get().is_some_and(|watched| watched.names(&path)))
            && let Some(first) = trace::watch(&path, leaves.leaves.len() as u32)
        {
            ast.watch_leaves(first);
            texts.push(cut);
            // PERF: until there is something to rest on, values are forced the plain way.
            self.begin_labels();
        }
    }

    /// Evaluates code that is watched.
    #[cold]
    #[inline(never)]
    pub(crate) fn eval_watched(&self, node: &'static firn_ir::Watched<Value>, frame: crate::frame::Frame<'_>) -> Result<Value> {
        if node.number != firn_ir::Watched::<Value>::ROOT {
            labels::take(node.number);
            return self.eval(&node.inner, frame);
        }
        let value = self.eval(&node.inner, frame)?;
        self.begin_names(value);
        Ok(value)
    }
}
