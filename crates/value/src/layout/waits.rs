//! Which thread waits for which claimed thunk: threads that would wait in a circle get an answer instead (E7).
//! `crates/value/tests/thunk_protocol.rs` compiles this very file over loom's mutex and condition variable.
//!
//! Invariants: a waiter holds the lock from marking the header until it sleeps, and who ends a marked claim takes the
//! lock before it notifies, so no wake-up is lost. An edge whose claim has ended may still be in the table, because its
//! waiter has not run yet: it leads nowhere. A waiter that gives way is told to when another finds itself in a circle with
//! it; that other goes on waiting, for the claims that the one who gave way then gives back.

use super::claim::Head;
use super::sync::{Condvar, Mutex, MutexGuard};
use std::ops::Deref;

/// `waiter` sleeps until `owner` ends its claim on a thunk.
pub struct Edge<H> {
    waiter: u32,
    owner: u32,
    on: H,
    gives_way: bool,
    /// Another thread is in a circle with this waiter, and asks it to give way.
    asked: bool,
}

/// All waits of the process. `H` refers to the headers waited on.
pub struct Waits<H> {
    edges: Mutex<Vec<Edge<H>>>,
    ended: Condvar,
}

impl<H: Deref<Target = Head> + Clone> Waits<H> {
    /// An empty table. The parts are handed in, because loom's are not constants.
    pub const fn new(edges: Mutex<Vec<Edge<H>>>, ended: Condvar) -> Waits<H> {
        Waits { edges, ended }
    }

    /// Sleeps until `owner` has ended its claim on `head`. False when that thread waits (through any number of others) for
    /// this one, `me`: then the thunks need each other. A thread that `gives_way` takes itself out of such a circle; one
    /// that does not gets false only where nobody else in the circle gives way.
    pub fn wait(&self, head: H, owner: u32, me: u32, gives_way: bool) -> bool {
        let mut edges = self.lock();
        edges.push(Edge { waiter: me, owner, on: head.clone(), gives_way, asked: false });
        let free = loop {
            if !head.mark_waited(owner) {
                break true;
            }
            if edges.iter().any(|edge| edge.waiter == me && edge.asked) {
                break false;
            }
            if let Some(circle) = circle(&edges, owner, me) {
                if gives_way || !circle.iter().any(|&at| edges[at].gives_way) {
                    break false;
                }
                circle.into_iter().for_each(|at| edges[at].asked |= edges[at].gives_way);
                self.ended.notify_all();
            }
            edges = self.ended.wait(edges).unwrap_or_else(|poisoned| poisoned.into_inner());
        };
        edges.retain(|edge| edge.waiter != me);
        free
    }

    /// Wakes the threads that wait. Called when `Head::finish` says that there are some.
    pub fn wake(&self) {
        drop(self.lock());
        self.ended.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Edge<H>>> {
        self.edges.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The waits that lead from thread `from` to thread `to`, if they do.
fn circle<H: Deref<Target = Head>>(edges: &[Edge<H>], from: u32, to: u32) -> Option<Vec<usize>> {
    let (mut at, mut path) = (from, Vec::new());
    // Each step takes another edge, so a circle that does not contain `to` ends too.
    for _ in 0..=edges.len() {
        if at == to {
            return Some(path);
        }
        let live = |edge: &Edge<H>| edge.waiter == at && Head::owner(edge.on.load()) == Some(edge.owner);
        let next = edges.iter().position(live)?;
        path.push(next);
        at = edges[next].owner;
    }
    None
}
