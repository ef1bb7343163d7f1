//! Which thread waits for which claimed thunk: threads that would wait in a circle get an answer instead (E7).
//! `crates/value/tests/thunk_protocol.rs` compiles this very file over loom's mutex and condition variable.
//!
//! Invariants: a waiter holds the lock from marking the header until it sleeps, and who ends a marked claim takes the
//! lock before it notifies, so no wake-up is lost. An edge whose claim has ended may still be in the table, because its
//! waiter has not run yet: it leads nowhere.

use super::claim::Head;
use super::sync::{Condvar, Mutex, MutexGuard};
use std::ops::Deref;

/// `waiter` sleeps until `owner` ends its claim on a thunk.
pub struct Edge<H> {
    waiter: u32,
    owner: u32,
    on: H,
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

    /// Sleeps until `owner` has ended its claim on `head`. False, without sleeping, when that thread waits (through any
    /// number of others) for this one, `me`: then the thunks need each other.
    pub fn wait(&self, head: H, owner: u32, me: u32) -> bool {
        let mut edges = self.lock();
        edges.push(Edge { waiter: me, owner, on: head.clone() });
        let free = loop {
            if !head.mark_waited(owner) {
                break true;
            }
            if reaches(&edges, owner, me) {
                break false;
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

/// Whether following the waits from thread `from` leads to thread `to`.
fn reaches<H: Deref<Target = Head>>(edges: &[Edge<H>], from: u32, to: u32) -> bool {
    let mut at = from;
    // Each step takes another edge, so a circle that does not contain `to` ends too.
    for _ in 0..=edges.len() {
        if at == to {
            return true;
        }
        let live = |edge: &&Edge<H>| edge.waiter == at && Head::owner(edge.on.load()) == Some(edge.owner);
        match edges.iter().find(live) {
            Some(edge) => at = edge.owner,
            None => return false,
        }
    }
    false
}
