//! Which paths are to be evaluated, by whom, and in what order their lines may be printed.
//!
//! A path is to do, then taken by one worker, then done. Paths that met another thread's claim in a circle are postponed
//! until nobody works, and then taken one at a time, which ends every circle. The order of paths (by names, a set before
//! what it holds) is the order of one worker, and with `--sorted` that of the output.
//!
//! Where much is remembered a thread that evaluates nothing goes the other way and looks at what is remembered of each path
//! ([`Queue::next_ahead`]); a worker finds that beside the path when its turn comes.

use super::line::JobLine;
use super::remembered::Told;
use super::typed::Shard;
use firn_memo::kept::Key;
use firn_value::{Label, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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
    Job(JobLine),
    /// A set to look into.
    Set(Vec<(Vec<u8>, Option<Found>)>),
    /// Nothing that can be built.
    Nothing,
    /// Another thread was in the way.
    Postponed,
}

/// What was found by who looked before a path's turn.
#[derive(Debug)]
pub(super) enum Looked {
    /// What it came to, and what is told of a failure.
    Known(Outcome, Option<Told>),
    /// Nothing that holds, for the question with this key.
    Unknown(Key),
}

/// How much is looked at ahead of the workers.
const MOST_LOOKED: usize = 1 << 14;

/// What was looked at before its turn.
#[derive(Debug)]
struct Ahead {
    looked: BTreeMap<Path, Looked>,
    /// Paths that are likely to come, ascending, until what comes is known.
    guesses: Vec<Path>,
    /// The set that is looked into is known.
    is_begun: bool,
    /// Paths that are not below this have been looked at, or are somebody else's.
    end: Bound<Path>,
    /// Something has to be evaluated that no worker knows of yet.
    is_work_near: bool,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead { looked: BTreeMap::new(), guesses: Vec::new(), is_begun: false, end: Bound::Unbounded, is_work_near: false }
    }
}

#[derive(Debug, Default)]
struct State {
    todo: BTreeMap<Path, Todo>,
    active: BTreeSet<Path>,
    postponed: BTreeMap<Path, Todo>,
    ahead: Ahead,
    /// No more is given out: memory is used up, or the output is closed.
    stopped: bool,
}

impl State {
    fn is_over(&self) -> bool {
        self.stopped || self.todo.is_empty() && self.active.is_empty() && self.postponed.is_empty()
    }

    /// Adds the paths of a set's names.
    fn look_into(&mut self, path: &Path, todo: Todo, names: Vec<(Vec<u8>, Option<Found>)>, shard: Option<Shard>) {
        let divided = shard.filter(|shard| !todo.decided && shard.divides(names.len()));
        let decided = todo.decided || divided.is_some() || shard.is_none();
        self.ahead.is_begun = true;
        let mut last = None;
        for (name, cell) in names {
            let mut child = path.clone();
            child.push(name);
            if divided.is_none_or(|shard| shard.owns(&child)) {
                last = last.max(Some(child.clone()));
                self.ahead.is_work_near |= matches!(self.ahead.looked.get(&child), Some(Looked::Unknown(_)));
                self.todo.insert(child, Todo { cell, decided });
            }
        }
        // Who looks ahead and has passed them comes back.
        if let (Some(last), Bound::Excluded(end)) = (last, &self.ahead.end)
            && *end <= last
        {
            self.ahead.end = Bound::Included(last);
        }
    }

    fn next_ahead(&mut self) -> Option<Path> {
        if self.ahead.looked.len() >= MOST_LOOKED {
            return None;
        }
        if !self.ahead.is_begun {
            return self.ahead.guesses.pop();
        }
        let before = self.todo.range::<Path, _>((Bound::Unbounded, self.ahead.end.as_ref()));
        let path = before.rev().map(|(path, _)| path).find(|path| !self.ahead.looked.contains_key(*path))?.clone();
        self.ahead.end = Bound::Excluded(path.clone());
        Some(path)
    }
}

/// The paths of a run.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// There may be more to look at ahead, or nothing ever again.
    ahead_changed: Condvar,
    shard: Option<Shard>,
}

impl Queue {
    /// A queue that begins with these paths.
    pub fn new(paths: impl IntoIterator<Item = (Path, Todo)>, shard: Option<Shard>) -> Queue {
        let mut state = State { todo: paths.into_iter().collect(), ..State::default() };
        // A later process of a run knows what is left.
        state.ahead.is_begun = !state.todo.contains_key(&Path::new());
        Queue { state: Mutex::new(state), changed: Condvar::new(), ahead_changed: Condvar::new(), shard }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next path, once there is one, and what was found by who looked before its turn; none when all is done or the queue was
    /// stopped.
    pub fn take(&self) -> Option<(Path, Todo, Option<Looked>)> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let next = state.todo.pop_first();
            let alone = state.active.is_empty();
            if let Some((path, todo)) = next.or_else(|| if alone { state.postponed.pop_first() } else { None }) {
                state.active.insert(path.clone());
                let looked = state.ahead.looked.remove(&path);
                if looked.is_some() && state.ahead.looked.len() == MOST_LOOKED / 2 {
                    self.ahead_changed.notify_all();
                }
                return Some((path, todo, looked));
            }
            if alone {
                // The others wait for what this one found not to be there.
                self.changed.notify_all();
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The next path to look at before its turn, once there is one; none when all is done or the queue was stopped.
    pub fn next_ahead(&self) -> Option<Path> {
        let mut state = self.lock();
        while !state.is_over() {
            if let Some(path) = state.next_ahead() {
                return Some(path);
            }
            state = self.ahead_changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Paths that are likely to come, ascending: to be looked at while nobody knows yet.
    pub fn guess(&self, mut paths: Vec<Path>) {
        paths.retain(|path| self.shard.is_none_or(|shard| shard.owns(path)));
        self.lock().ahead.guesses = paths;
    }

    /// Adds what was found before a path's turn, unless that has come meanwhile.
    pub fn looked(&self, path: Path, looked: Looked) {
        let mut state = self.lock();
        let is_guess = !state.ahead.is_begun;
        match (looked, state.todo.get(&path).copied()) {
            (_, None) if !is_guess => {}
            // It may turn out to be none of the run's.
            (looked, None) => {
                state.ahead.looked.insert(path, looked);
            }
            (Looked::Known(Outcome::Set(names), _), Some(todo)) => {
                state.todo.remove(&path);
                state.look_into(&path, todo, names, self.shard);
                self.changed.notify_all();
            }
            (looked, Some(_)) => {
                state.ahead.is_work_near |= matches!(looked, Looked::Unknown(_));
                state.ahead.looked.insert(path, looked);
            }
        }
    }

    /// Whether who looked ahead has found something to evaluate; told once.
    pub fn is_work_near(&self) -> bool {
        std::mem::take(&mut self.lock().ahead.is_work_near)
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
                state.look_into(path, todo, names, self.shard);
                self.ahead_changed.notify_all();
            }
        }
    }

    /// Ends a path that was taken.
    pub fn done(&self, path: &Path) {
        let mut state = self.lock();
        state.active.remove(path);
        if state.is_over() {
            self.ahead_changed.notify_all();
        }
        self.changed.notify_all();
    }

    /// Waits until all is done, but no longer than this.
    pub fn wait_over(&self, most: Duration) {
        let state = self.lock();
        let _ = self.ahead_changed.wait_timeout_while(state, most, |state| !state.is_over());
    }

    /// Gives out nothing more.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
        self.ahead_changed.notify_all();
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
        let (root, todo, _) = queue.take().expect("the root");
        let names = ["b", "a"].map(|name| (name.as_bytes().to_vec(), None));
        queue.found(&root, todo, Outcome::Set(names.to_vec()));
        queue.done(&root);
        let (first, todo, _) = queue.take().expect("a");
        assert_eq!(first, path(&["a"]));
        queue.found(&first, todo, Outcome::Postponed);
        queue.done(&first);
        let (second, ..) = queue.take().expect("b");
        assert_eq!((second.clone(), queue.first()), (path(&["b"]), Some(path(&["a"]))));
        queue.done(&second);
        let (again, ..) = queue.take().expect("a again");
        assert_eq!(again, path(&["a"]));
        queue.done(&again);
        assert!(queue.take().is_none() && queue.left() == 0);
    }

    #[test]
    fn who_looks_ahead_goes_the_other_way_and_into_sets() {
        let queue = Queue::new([(path(&[]), ROOT)], None);
        let set = |names: &[&str]| Outcome::Set(names.iter().map(|name| (name.as_bytes().to_vec(), None)).collect());
        let known = |queue: &Queue, at: &[&str]| queue.looked(path(at), Looked::Known(Outcome::Nothing, None));
        let (root, todo, _) = queue.take().expect("the root");
        queue.found(&root, todo, set(&["a", "b", "c", "d"]));
        queue.done(&root);
        assert_eq!(queue.next_ahead(), Some(path(&["d"])));
        known(&queue, &["d"]);
        assert_eq!(queue.next_ahead(), Some(path(&["c"])));
        queue.looked(path(&["c"]), Looked::Known(set(&["y", "x"]), None));
        assert_eq!(queue.next_ahead(), Some(path(&["c", "y"])));
        let (first, todo, looked) = queue.take().expect("a");
        assert!(first == path(&["a"]) && looked.is_none());
        known(&queue, &["a"]);
        queue.found(&first, todo, set(&["k"]));
        queue.done(&first);
        assert_eq!(queue.next_ahead(), Some(path(&["c", "x"])));
        assert_eq!(queue.next_ahead(), Some(path(&["b"])));
        assert_eq!(queue.next_ahead(), Some(path(&["a", "k"])));
        let (_, todo, _) = queue.take().expect("k");
        queue.done(&path(&["a", "k"]));
        // What is found behind is looked at too, what is done is not.
        queue.found(&path(&["b"]), todo, set(&["z"]));
        assert_eq!(queue.next_ahead(), Some(path(&["b", "z"])));
        let key = Key { digest: firn_host::Digest([0; 32]), question: Vec::new() };
        queue.looked(path(&["b", "z"]), Looked::Unknown(key));
        assert!(queue.is_work_near() && !queue.is_work_near());
        let rest = std::iter::from_fn(|| queue.take().map(|(path, _, looked)| {
            queue.done(&path);
            (path, looked.is_some())
        }));
        let rest: Vec<(Path, bool)> = rest.collect();
        let expected = [(&["b"][..], false), (&["b", "z"], true), (&["c", "x"], false), (&["c", "y"], false), (&["d"], true)];
        assert_eq!(rest, expected.map(|(names, looked)| (path(names), looked)));
        assert_eq!(queue.next_ahead(), None);
    }

    #[test]
    fn large_sets_are_divided_and_small_ones_looked_into() {
        let shard = Shard { index: 0, count: 2 };
        let queue = Queue::new([(path(&[]), Todo { cell: None, decided: false })], Some(shard));
        let (root, todo, _) = queue.take().expect("the root");
        queue.found(&root, todo, Outcome::Set(vec![(b"one".to_vec(), None)]));
        queue.done(&root);
        let (one, todo, _) = queue.take().expect("the only name");
        assert!(!todo.decided);
        let names = (0..100).map(|n| (format!("{n}").into_bytes(), None)).collect();
        queue.found(&one, todo, Outcome::Set(names));
        queue.done(&one);
        let rest = queue.rest();
        assert!((20..80).contains(&rest.len()));
        assert!(rest.iter().all(|(path, todo)| todo.decided && shard.owns(path)));
    }
}
