//! The thunk protocol under a model checker (E7): every interleaving and every allowed reordering of two or three threads.
//!
//! The state machine and the table of waits are not imitated: `claim.rs` and `waits.rs` of the layout are compiled here
//! once more, over loom's atomics, mutex and condition variable. What is imitated is small: [`Cell`] stands for a
//! `Thunk` (header and first slot), [`House::force`] for `Machine::force` with its loop over the states.

#[path = "../src/layout/claim.rs"]
mod claim;
#[path = "../src/layout/header.rs"]
mod header;
#[path = "../src/layout/waits.rs"]
mod waits;

/// What the protocol synchronises with, here loom's.
mod sync {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
}

use claim::Head;
use header::{header, header_kind, kind};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use sync::{AtomicU64, Condvar, Mutex, Ordering};
use waits::Waits;

/// How an evaluation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A value.
    Value(u64),
    /// A lasting error.
    Failed,
    /// An error that is no answer: the thunk is given back.
    Interrupted,
}

/// A thunk: header, first slot, and a word of the object that the result refers to.
struct Cell {
    head: Arc<Head>,
    slot: AtomicU64,
    object: AtomicU64,
    runs: AtomicUsize,
}

impl Cell {
    fn suspended() -> Cell {
        Cell {
            head: Arc::new(Head::new(header(kind::SUSPENDED, 0, 0x1000))),
            slot: AtomicU64::new(0),
            object: AtomicU64::new(0),
            runs: AtomicUsize::new(0),
        }
    }

    fn runs(&self) -> usize {
        self.runs.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// Two cells and the table of waits.
struct House {
    cells: [Cell; 3],
    waits: Waits<Arc<Head>>,
}

impl House {
    fn new() -> Arc<House> {
        let cells = [Cell::suspended(), Cell::suspended(), Cell::suspended()];
        Arc::new(House { cells, waits: Waits::new(Mutex::new(Vec::new()), Condvar::new()) })
    }

    /// Forces a cell as thread `me`; `run` is its code.
    fn force(&self, index: usize, me: u32, run: &dyn Fn() -> End) -> End {
        let cell = &self.cells[index];
        loop {
            let head = cell.head.load();
            match header_kind(head) {
                kind::FORCED => {
                    let value = cell.slot.load(Ordering::Relaxed);
                    assert_eq!(cell.object.load(Ordering::Relaxed), value, "the object was laid out before the value was seen");
                    return End::Value(value);
                }
                kind::FAILED => return End::Failed,
                kind::CLAIMED => {
                    let owner = Head::owner(head).expect("a claimed header names its owner");
                    if owner == me || !self.waits.wait(Arc::clone(&cell.head), owner, me, gives_way(me)) {
                        // Infinite recursion: a lasting error, except for one who evaluates ahead of others.
                        return if gives_way(me) { End::Interrupted } else { End::Failed };
                    }
                }
                _ if cell.head.claim(head, me, true) => return self.finish(cell, head, run()),
                _ => {}
            }
        }
    }

    fn finish(&self, cell: &Cell, suspended: u64, end: End) -> End {
        cell.runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let waited = match end {
            End::Value(value) => {
                cell.object.store(value, Ordering::Relaxed);
                cell.head.finish(header(kind::FORCED, 0, 0), true, || cell.slot.store(value, Ordering::Relaxed))
            }
            End::Failed => cell.head.finish(header(kind::FAILED, 0, 0), true, || cell.slot.store(7, Ordering::Relaxed)),
            End::Interrupted => cell.head.finish(suspended, true, || ()),
        };
        if waited {
            self.waits.wake();
        }
        end
    }
}

/// Threads that evaluate ahead of others.
fn gives_way(thread: u32) -> bool {
    thread >= 10
}

/// Explores the interleavings; `preemptions` bounds how often a thread is interrupted where it need not be.
fn explore(preemptions: Option<usize>, scenario: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(scenario);
}

/// Runs `work` as thread 2 beside `main` as thread 1.
fn beside<T: Send + 'static>(house: &Arc<House>, me: u32, work: fn(&House, u32) -> T) -> loom::thread::JoinHandle<T> {
    let house = Arc::clone(house);
    loom::thread::spawn(move || work(&house, me))
}

#[test]
fn a_result_is_computed_once_and_seen_by_all() {
    explore(None, || {
        let house = House::new();
        let other = beside(&house, 2, |house, me| house.force(0, me, &|| End::Value(42)));
        assert_eq!(house.force(0, 1, &|| End::Value(42)), End::Value(42));
        assert_eq!(other.join().unwrap(), End::Value(42));
        assert_eq!(house.cells[0].runs(), 1);
    });
}

#[test]
fn three_threads_one_thunk() {
    explore(Some(2), || {
        let house = House::new();
        let others = [2, 3].map(|me| beside(&house, me, |house, me| house.force(0, me, &|| End::Value(42))));
        assert_eq!(house.force(0, 1, &|| End::Value(42)), End::Value(42));
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), End::Value(42)));
        assert_eq!(house.cells[0].runs(), 1);
    });
}

#[test]
fn a_failure_is_found_once_and_seen_by_all() {
    explore(None, || {
        let house = House::new();
        let other = beside(&house, 2, |house, me| house.force(0, me, &|| End::Failed));
        assert_eq!(house.force(0, 1, &|| End::Failed), End::Failed);
        assert_eq!(other.join().unwrap(), End::Failed);
        assert_eq!(house.cells[0].runs(), 1);
    });
}

#[test]
fn an_interrupted_thunk_is_taken_up_by_who_waits() {
    explore(None, || {
        let house = House::new();
        let other = beside(&house, 2, |house, me| house.force(0, me, &|| End::Value(42)));
        let mine = house.force(0, 1, &|| End::Interrupted);
        assert_eq!(other.join().unwrap(), End::Value(42));
        let (runs, expected) = if mine == End::Interrupted { (2, mine) } else { (1, End::Value(42)) };
        assert_eq!((house.cells[0].runs(), mine), (runs, expected));
    });
}

/// Cell `index` needs cell `next`, which needs the first one again.
fn chain(house: &House, me: u32, cells: &[usize]) -> End {
    let (&first, rest) = cells.split_first().expect("a chain has a first cell");
    house.force(first, me, &|| if rest.is_empty() { End::Value(1) } else { chain(house, me, rest) })
}

#[test]
fn two_threads_in_a_circle_fail_and_do_not_sleep() {
    explore(None, || {
        let house = House::new();
        let other = beside(&house, 2, |house, me| chain(house, me, &[1, 0, 1]));
        assert_eq!(chain(&house, 1, &[0, 1, 0]), End::Failed);
        assert_eq!(other.join().unwrap(), End::Failed);
    });
}

#[test]
fn three_threads_in_a_circle_fail_and_do_not_sleep() {
    explore(Some(2), || {
        let house = House::new();
        let second = beside(&house, 2, |house, me| chain(house, me, &[1, 2, 0, 1]));
        let third = beside(&house, 3, |house, me| chain(house, me, &[2, 0, 1, 2]));
        assert_eq!(chain(&house, 1, &[0, 1, 2, 0]), End::Failed);
        assert_eq!((second.join().unwrap(), third.join().unwrap()), (End::Failed, End::Failed));
    });
}

#[test]
fn a_wait_that_is_over_is_no_part_of_a_circle() {
    // Thread 2 may still be in the table as waiting for cell 0 when thread 1, done with it, asks for cell 1.
    explore(None, || {
        let house = House::new();
        let other = beside(&house, 2, |house, me| chain(house, me, &[1, 0]));
        assert_eq!(chain(&house, 1, &[0]), End::Value(1));
        assert_eq!(chain(&house, 1, &[1, 0]), End::Value(1));
        assert_eq!(other.join().unwrap(), End::Value(1));
        assert_eq!((house.cells[0].runs(), house.cells[1].runs()), (1, 1));
    });
}

#[test]
fn who_gives_way_leaves_the_answer_to_the_other() {
    explore(None, || {
        let house = House::new();
        let helper = beside(&house, 12, |house, me| chain(house, me, &[1, 0, 1]));
        assert_eq!(chain(&house, 1, &[0, 1, 0]), End::Failed);
        // A helper that begins late finds the failure.
        assert!(matches!(helper.join().unwrap(), End::Interrupted | End::Failed));
        assert_eq!(house.force(1, 1, &|| End::Value(1)), End::Failed);
    });
}

#[test]
fn two_who_give_way_leave_the_answer_to_the_third() {
    explore(Some(2), || {
        let house = House::new();
        let helpers = [
            beside(&house, 12, |house, me| chain(house, me, &[1, 2, 0, 1])),
            beside(&house, 13, |house, me| chain(house, me, &[2, 0, 1, 2])),
        ];
        assert_eq!(chain(&house, 1, &[0, 1, 2, 0]), End::Failed);
        let _ = helpers.map(|helper| assert!(matches!(helper.join().unwrap(), End::Interrupted | End::Failed)));
    });
}
