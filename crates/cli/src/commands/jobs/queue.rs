//! Which paths are to be evaluated, by whom, and in what order their lines may be printed.
//!
//! A path is to do, then taken by one worker, then done. Paths that met another thread's claim in a circle are postponed
//! until nobody works, and then taken one at a time, which ends every circle. The order of paths (by names, a set before
//! what it holds) is the order of one worker, and with `--sorted` that of the output.

use super::typed::Shard;
use firn_text::json::Tree;
use firn_value::{Label, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The names that lead to a job.
pub(super) type Path = Vec<Vec<u8>>;

/// A cell, and what was observed on the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub cell: Value,
    pub label: Label,
}

/// A path and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Todo {
    /// The cell, where its set has been evaluated in this process.
    pub cell: Option<Found>,
    /// Whether the part of the jobs that this run does is settled for the path.
    pub decided: bool,
}

/// What became of a path.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A derivation, or an error: a line.
    Job(Tree),
    /// A set to look into.
    Set(Vec<(Vec<u8>, Option<Found>)>),
    /// Nothing that can be built.
    Nothing,
    /// Another thread was in the way.
    Postponed,
}

#[derive(Debug, Default)]
struct State {
    todo: BTreeMap<Path, Todo>,
    active: BTreeSet<Path>,
    postponed: BTreeMap<Path, Todo>,
    /// No more is given out: memory is used up, or the output is closed.
    stopped: bool,
}

/// The paths of a run.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    shard: Option<Shard>,
}

impl Queue {
    /// A queue that begins with these paths.
    pub fn new(paths: impl IntoIterator<Item = (Path, Todo)>, shard: Option<Shard>) -> Queue {
        let state = State { todo: paths.into_iter().collect(), ..State::default() };
        Queue { state: Mutex::new(state), changed: Condvar::new(), shard }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next path, once there is one; none when all is done or the queue was stopped.
    pub fn take(&self) -> Option<(Path, Todo)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let next = state.todo.pop_first();
            let alone = state.active.is_empty();
            if let Some((path, todo)) = next.or_else(|| if alone { state.postponed.pop_first() } else { None }) {
                state.active.insert(path.clone());
                return Some((path, todo));
            }
            if alone {
                // The others wait for what this one found not to be there.
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the line of a path is this run's to print.
    pub fn prints(&self, path: &Path, todo: Todo) -> bool {
        todo.decided || self.shard.is_none_or(|shard| shard.owns(path))
    }

    /// Adds what was found at a path that is no line. The path stays taken until [`Queue::done`].
    pub fn found(&self, path: &Path, todo: Todo, outcome: Outcome) {
        let mut state = self.lock();
        match outcome {
            Outcome::Nothing | Outcome::Job(_) => {}
            Outcome::Postponed => {
                state.postponed.insert(path.clone(), todo);
            }
            Outcome::Set(names) => {
                let divided = self.shard.filter(|shard| !todo.decided && shard.divides(names.len()));
                let decided = todo.decided || divided.is_some() || self.shard.is_none();
                for (name, cell) in names {
                    let mut child = path.clone();
                    child.push(name);
                    if divided.is_none_or(|shard| shard.owns(&child)) {
                        state.todo.insert(child, Todo { cell, decided });
                    }
                }
            }
        }
    }

    /// Ends a path that was taken.
    pub fn done(&self, path: &Path) {
        self.lock().active.remove(path);
        self.changed.notify_all();
    }

    /// Gives out nothing more.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// How many paths are known and not done.
    pub fn left(&self) -> usize {
        let state = self.lock();
        state.todo.len() + state.active.len() + state.postponed.len()
    }

    /// The first path that is not done: lines before it can be printed in order.
    pub fn first(&self) -> Option<Path> {
        let state = self.lock();
        [state.todo.keys().next(), state.active.iter().next(), state.postponed.keys().next()]
            .into_iter()
            .flatten()
            .min()
            .cloned()
    }

    /// What is left, after all workers have ended.
    pub fn rest(&self) -> Vec<(Path, Todo)> {
        let mut state = self.lock();
        let mut rest = std::mem::take(&mut state.todo);
        rest.append(&mut state.postponed);
        rest.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &[&str]) -> Path {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    const ROOT: Todo = Todo { cell: None, decided: true };

    #[test]
    fn sets_come_before_what_they_hold_and_postponed_paths_last() {
        let queue = Queue::new([(path(&[]), ROOT)], None);
        let (root, todo) = queue.take().expect("the root");
        let names = ["b", "a"].map(|name| (name.as_bytes().to_vec(), None));
        queue.found(&root, todo, Outcome::Set(names.to_vec()));
        queue.done(&root);
        let (first, todo) = queue.take().expect("a");
        assert_eq!(first, path(&["a"]));
        queue.found(&first, todo, Outcome::Postponed);
        queue.done(&first);
        let (second, _) = queue.take().expect("b");
        assert_eq!((second.clone(), queue.first()), (path(&["b"]), Some(path(&["a"]))));
        queue.done(&second);
        let (again, _) = queue.take().expect("a again");
        assert_eq!(again, path(&["a"]));
        queue.done(&again);
        assert!(queue.take().is_none() && queue.left() == 0);
    }

    #[test]
    fn large_sets_are_divided_and_small_ones_looked_into() {
        let shard = Shard { index: 0, count: 2 };
        let queue = Queue::new([(path(&[]), Todo { cell: None, decided: false })], Some(shard));
        let (root, todo) = queue.take().expect("the root");
        queue.found(&root, todo, Outcome::Set(vec![(b"one".to_vec(), None)]));
        queue.done(&root);
        let (one, todo) = queue.take().expect("the only name");
        assert!(!todo.decided);
        let names = (0..100).map(|n| (format!("{n}").into_bytes(), None)).collect();
        queue.found(&one, todo, Outcome::Set(names));
        queue.done(&one);
        let rest = queue.rest();
        assert!((20..80).contains(&rest.len()));
        assert!(rest.iter().all(|(path, todo)| todo.decided && shard.owns(path)));
    }
}
