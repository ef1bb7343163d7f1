//! `Recorder`: hears at the host's door what a run observes, and where it sees a tree to lie (`crates/eval/src/places.rs`).

use super::lock;
use firn_host::{AbsPath, Bound, Digest, Durability, Observation, Question, Seen, Sink};
use firn_memo::kept::{digest_location, guards, labels};
use rustc_hash::FxHashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Labels what runs with what is observed, on whatever thread.
#[derive(Default)]
pub(super) struct Recorder {
    /// The trees that may lie elsewhere on another day or machine, by role.
    pub(super) trees: RwLock<Vec<(String, AbsPath)>>,
    /// Paths outside all trees that were written in full.
    pub(super) in_full: Mutex<FxHashSet<Vec<u8>>>,
    /// Parts of an earlier evaluation are taken (`parts.rs`).
    pub(super) takes: AtomicBool,
    /// Whether a path lies in an object that the store lacks.
    pub(super) lacks: OnceLock<Lacks>,
}

/// Says whether a path lies in an object that the store lacks.
pub(super) type Lacks = Box<dyn Fn(&AbsPath) -> bool + Send + Sync>;

impl Recorder {
    /// What parts name was not made by this run: whoever looks at that sees what nobody can tell.
    fn look_at(&self, question: &Question) {
        if self.takes.load(Ordering::Relaxed)
            && let Some(path) = question.path()
            && self.lacks.get().is_some_and(|lacks| lacks(path))
        {
            firn_memo::doubt::part_missed();
        }
    }
}

impl Sink for Recorder {
    fn observe(&self, observation: Observation) {
        self.look_at(&observation.question);
        labels::observe(&observation, false);
    }

    fn observe_read(&self, seen: Seen) {
        self.look_at(&seen.question);
        labels::observe_read(&seen);
    }

    fn guard(&self, whole: Seen) -> Option<u32> {
        Some(guards::listing(&whole).0)
    }

    fn observe_code(&self, code: Seen, file: Seen) {
        self.look_at(&code.question);
        labels::observe_code(&code, &file);
    }

    fn observe_bindings(&self, outline: Observation, code: Seen, file: Seen, bound: Bound) -> Option<u32> {
        self.look_at(&code.question);
        Some(guards::bindings(&outline, &code, &file, bound).0)
    }

    fn seen_text(&self, path: &AbsPath) {
        labels::see_text(path);
    }

    fn seen_at(&self, path: &[u8]) {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        match Recorder::tree_of(&trees, path) {
            Some(index) => self.observe(place(&trees[index])),
            None => _ = lock(&self.in_full).insert(path.to_vec()),
        }
    }

    fn related(&self, one: &[u8], other: &[u8]) {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        let found = [one, other].map(|path| Recorder::tree_of(&trees, path));
        if found[0] != found[1] {
            found.into_iter().flatten().for_each(|index| self.observe(place(&trees[index])));
        }
    }
}

/// The recorder as one that listens at the door.
pub(super) struct Listener(pub(super) Arc<Recorder>);

impl Sink for Listener {
    fn observe(&self, observation: Observation) {
        self.0.observe(observation);
    }

    fn observe_read(&self, seen: Seen) {
        self.0.observe_read(seen);
    }

    fn guard(&self, whole: Seen) -> Option<u32> {
        self.0.guard(whole)
    }

    fn observe_code(&self, code: Seen, file: Seen) {
        self.0.observe_code(code, file);
    }

    fn observe_bindings(&self, outline: Observation, code: Seen, file: Seen, bound: Bound) -> Option<u32> {
        self.0.observe_bindings(outline, code, file, bound)
    }

    fn seen_text(&self, path: &AbsPath) {
        self.0.seen_text(path);
    }

    fn seen_at(&self, path: &[u8]) {
        self.0.seen_at(path);
    }

    fn related(&self, one: &[u8], other: &[u8]) {
        self.0.related(one, other);
    }
}

/// Where a tree lies.
pub(super) fn place((role, tree): &(String, AbsPath)) -> Observation {
    Observation::new(Question::Location(role.as_bytes().into()), digest_location(tree.as_bytes()), Durability::Medium)
}

impl Recorder {
    /// The innermost tree that a path lies in.
    fn tree_of(trees: &[(String, AbsPath)], path: &[u8]) -> Option<usize> {
        // PERF: every path that a text leads out of its directory with is asked for; most trees are told apart by one byte.
        let within = |tree: &[u8]| matches!(path.get(tree.len()), None | Some(b'/')) && path.starts_with(tree);
        let holding = trees.iter().enumerate().filter(|(_, (_, tree))| within(tree.as_bytes()));
        holding.max_by_key(|(_, (_, tree))| tree.as_bytes().len()).map(|(index, _)| index)
    }

    /// Where the trees lie, by role.
    pub(super) fn places(&self) -> Vec<(String, Digest)> {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        trees.iter().map(|(role, tree)| (role.clone(), digest_location(tree.as_bytes()))).collect()
    }
}
