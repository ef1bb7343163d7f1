//! Parts of an evaluation, learned for later ones and taken from earlier ones (decision 0021).
//!
//! 1. [`Machine::learn`]: from now on productions are traced, and texts that may be edited are watched leaf by leaf (`import.rs` asks). What
//!    the first text's last selection begins from is where names begin. [`Machine::learned`] gives what came of it.
//! 2. [`Machine::take_parts`]: once the program has read all the texts that were cut, and they differ in leaves only, cells that have the name of
//!    an earlier cell are followed (`follow.rs`). Not before: what is parsed first has the first symbols, and which of two cells of a set is
//!    evaluated first goes by that.
//!
//! Neither goes on where calls are too deep (`Machine::deeper`): then an answer could hide that.

use crate::Machine;
use crate::follow::Following;
use firn_host::AbsPath;
use firn_memo::kept::parts::{CutText, Parts, Walked};
use firn_memo::kept::{labels, trace};
use firn_source::{Origin, SourceFile};
use firn_syntax::Ast;
use firn_value::{Label, Result, Value};
use std::cell::{Cell, OnceCell, RefCell};

/// What is learned or taken.
#[derive(Default)]
pub(crate) struct Learning {
    /// Real paths of texts to watch, while something is learned.
    watched: OnceCell<Vec<AbsPath>>,
    cut: RefCell<Vec<CutText>>,
    /// The next text that is compiled is the one that the question is about.
    is_first: Cell<bool>,
    /// Where names begin, and what that rests on.
    root: Cell<Option<(Value, Label)>>,
    /// Calls were too deep.
    pub(crate) is_deep: Cell<bool>,
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
    /// Learns from now on what may be taken after edits of these texts, by real path. Call it before anything is evaluated.
    pub fn learn(&self, watched: Vec<AbsPath>) {
        if self.learning.watched.set(watched).is_ok() {
            self.learning.is_first.set(true);
            // Calls are remembered for one evaluation, or parts for several.
            self.shared.memo.go_deep();
            self.begin_labels();
            trace::begin();
        }
    }

    /// What was learned; none if nothing may be taken of it.
    pub fn learned(&self) -> Option<Parts> {
        self.learning.watched.get()?;
        let trace = trace::end();
        let (root, node) = self.learning.root.take()?;
        if !trace.is_whole() || self.learning.is_deep.get() {
            return None;
        }
        Some(Parts::new(&trace, self.learning.cut.take(), Walked::from(root, node)))
    }

    /// Takes parts as soon as their texts have been read. With `compares` everything is evaluated, and [`Machine::part_differences`] are what
    /// would have been wrong. Call it before anything is evaluated.
    pub fn take_parts(&self, parts: Parts, compares: bool) {
        self.learning.is_first.set(true);
        self.shared.memo.go_deep();
        let changed = vec![None; parts.texts.len()];
        self.learning.offered.replace(Some(Offered { parts, compares, changed }));
    }

    /// Whether parts were not taken because their texts differ in more than leaves.
    pub fn refused_parts(&self) -> bool {
        self.learning.is_refused.get()
    }

    /// A text was read that parts wait for.
    fn read_for_parts(&self, path: &AbsPath, now: Option<CutText>) {
        let mut offered = self.learning.offered.borrow_mut();
        let Some(Offered { parts, changed, .. }) = &mut *offered else { return };
        let mut first = 2;
        for (then, changed) in parts.texts.iter().zip(changed) {
            if then.path == *path {
                *changed = now.as_ref().and_then(|now| now.changed(then, first));
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
            if let Some(Offered { parts, compares, changed }) = known.filter(|_| !is_refused) {
                let changed: Vec<u32> = changed.into_iter().flatten().flatten().collect();
                let _ = self.learning.following.set(Box::new(Following::new(parts, &changed, compares)));
                self.begin_labels();
                if let Some((root, _)) = self.learning.root.get() {
                    self.follow_root(root);
                }
            }
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
        if self.learning.root.get().is_some() {
            return;
        }
        if self.learning.watched.get().is_some() {
            self.learning.root.set(Some((value, trace::so_far())));
        } else if self.learning.following.get().is_some() || self.learning.offered.borrow().is_some() {
            self.learning.root.set(Some((value, 0)));
            self.follow_root(value);
        }
    }

    /// Whether the leaves of a text are to be noted when it is parsed.
    pub(crate) fn is_watched(&self, file: &'static SourceFile) -> bool {
        self.watched_path(file).is_some()
    }

    fn watched_path(&self, file: &'static SourceFile) -> Option<AbsPath> {
        let (watched, offered) = (self.learning.watched.get(), self.learning.offered.borrow());
        if watched.is_none() && offered.is_none() {
            return None;
        }
        let Origin::File(path) = file.origin() else { return None };
        let real = self.real(&AbsPath::new(path).ok()?).ok()?;
        let is_offered = offered.as_ref().is_some_and(|offered| offered.parts.texts.iter().any(|text| text.path == real));
        (is_offered || watched.is_some_and(|watched| watched.contains(&real))).then_some(real)
    }

    /// Has what is wanted of a text watched; its leaves only if it is to be cut.
    pub(crate) fn watch(&self, file: &'static SourceFile, ast: &mut Ast, is_cut: bool) {
        if self.learning.is_first.take() {
            ast.watch_root();
        }
        let Some(path) = self.watched_path(file).filter(|_| is_cut) else { return };
        let (leaves, text) = (ast.cut(), file.text());
        let cut = leaves.as_ref().zip(text).map(|(leaves, text)| CutText::new(path.clone(), &text, leaves));
        if self.learning.watched.get().is_none() {
            return self.read_for_parts(&path, cut);
        }
        if let (Some(leaves), Some(cut)) = (leaves, cut)
            && let Some(first) = trace::watch(&path, leaves.leaves.len() as u32)
        {
            ast.watch_leaves(first);
            self.learning.cut.borrow_mut().push(cut);
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
