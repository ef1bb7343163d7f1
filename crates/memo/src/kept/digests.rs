//! Digests of what was read and listed, and the groups of it that names are looked up in, are made by a thread of their own while
//! evaluation goes on.
//!
//! Called by [`Sets`](super::Sets) and by guards. Nothing rests on it: a digest that is not there yet is made by whoever asks for it, and
//! one that is being made is waited for.

use super::labels::sets;
use super::sets::GroupId;
use firn_host::Promised;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::sync::{Mutex, PoisonError};

/// A batch has so many at the most.
// PERF: waking a thread for each takes longer than most digests.
const MOST: usize = 256;
/// A batch is no longer once it is of so many bytes.
const MOST_BYTES: usize = 256 << 10;
/// Fewer bytes are not worth waking it for.
const LEAST_BYTES: usize = 16 << 10;
/// No more bytes wait for the thread: who reads faster than it makes digests makes them.
const MOST_WAITING: usize = 16 << 20;

/// Bytes that wait for the thread.
static HANDED_OVER: AtomicUsize = AtomicUsize::new(0);

/// What is to be made.
#[derive(Default)]
struct Batch {
    digests: Vec<Promised>,
    bytes: usize,
    /// Made after the digests: they rest on these.
    groups: Vec<GroupId>,
}

/// What waits to be handed over, and the thread that takes it, once there is one; none if none can be had.
struct Waiting {
    batch: Batch,
    thread: Option<Option<Sender<Batch>>>,
}

static WAITING: Mutex<Waiting> =
    Mutex::new(Waiting { batch: Batch { digests: Vec::new(), bytes: 0, groups: Vec::new() }, thread: None });

fn waiting<T>(work: impl FnOnce(&mut Waiting) -> T) -> T {
    work(&mut WAITING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Has a digest made before somebody asks for it.
pub(super) fn make_ahead(promised: &Promised) {
    let left = waiting(|waiting| {
        let batch = &mut waiting.batch;
        batch.bytes += promised.weight();
        batch.digests.push(promised.clone());
        if batch.digests.len() >= MOST || batch.bytes >= MOST_BYTES { waiting.hand_over() } else { None }
    });
    left.iter().for_each(Batch::make);
}

/// Has a group encoded before somebody asks for it. Only of the [sets of the process](sets).
pub(super) fn encode_ahead(group: GroupId) {
    waiting(|waiting| waiting.batch.groups.push(group));
}

/// Has those made that still wait for others: somebody is about to ask for all of them.
pub fn make_rest() {
    let left = waiting(|waiting| if waiting.batch.bytes < LEAST_BYTES { None } else { waiting.hand_over() });
    left.iter().for_each(Batch::make);
}

impl Batch {
    fn make(&self) {
        self.digests.iter().for_each(|promised| _ = promised.digest());
    }
}

impl Waiting {
    /// Hands over what waits; gives it back if nobody takes it.
    fn hand_over(&mut self) -> Option<Batch> {
        let batch = std::mem::take(&mut self.batch);
        let has_room = HANDED_OVER.load(Ordering::Relaxed) + batch.bytes <= MOST_WAITING;
        match self.thread.get_or_insert_with(start).as_ref().filter(|_| has_room) {
            Some(thread) => {
                HANDED_OVER.fetch_add(batch.bytes, Ordering::Relaxed);
                thread.send(batch).err().map(|SendError(batch)| batch)
            }
            None => Some(batch),
        }
    }
}

fn start() -> Option<Sender<Batch>> {
    let (batches, received) = channel();
    let thread = std::thread::Builder::new().name("firn digests".to_owned());
    thread.spawn(move || make_all(&received)).ok().map(|_| batches)
}

fn make_all(batches: &Receiver<Batch>) {
    while let Ok(batch) = batches.recv() {
        batch.make();
        HANDED_OVER.fetch_sub(batch.bytes, Ordering::Relaxed);
        batch.groups.into_iter().for_each(|group| sets().encode_group_ahead(group));
    }
}
