//! Digests of what was read and listed, made by a thread of their own while evaluation goes on.
//!
//! Called by [`Sets`](super::Sets). Nothing rests on it: a digest that is not there yet is made by whoever asks for it, and one that is
//! being made is waited for.

use firn_host::Promised;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// A batch has so many at the most.
// PERF: waking a thread for each takes longer than most digests.
const MOST: usize = 64;
/// A batch is no longer once it is of so many bytes.
const MOST_BYTES: usize = 128 << 10;

/// What waits to be handed over.
struct Waiting {
    batch: Vec<Promised>,
    bytes: usize,
    /// The thread, once there is one; none if none can be had.
    thread: Option<Option<Sender<Vec<Promised>>>>,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting { batch: Vec::new(), bytes: 0, thread: None });

/// Has a digest made before somebody asks for it.
pub(super) fn make_ahead(promised: &Promised) {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.bytes += promised.weight();
    waiting.batch.push(promised.clone());
    if waiting.batch.len() >= MOST || waiting.bytes >= MOST_BYTES {
        waiting.hand_over();
    }
}

impl Waiting {
    fn hand_over(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(MOST));
        self.bytes = 0;
        if let Some(thread) = self.thread.get_or_insert_with(start) {
            // One that has stopped takes nothing more: whoever needs a digest makes it.
            let _ = thread.send(batch);
        }
    }
}

fn start() -> Option<Sender<Vec<Promised>>> {
    let (batches, received) = channel();
    let thread = std::thread::Builder::new().name("firn digests".to_owned());
    thread.spawn(move || make_all(&received)).ok().map(|_| batches)
}

fn make_all(batches: &Receiver<Vec<Promised>>) {
    while let Ok(batch) = batches.recv() {
        batch.iter().for_each(|promised| _ = promised.digest());
    }
}
