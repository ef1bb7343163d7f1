//! `Candidate`: an answer that somebody who is believed has given, and what it rests on as that comes.
//!
//! Everything is fetched together, on a thread of its own, which also unpacks it within bounds and compares it with its
//! name. Whoever asked verifies what has come while the rest is on its way.

use crate::counts::Wrong;
use crate::entry::{Entry, Payload};
use crate::object::{Kind, unpack};
use crate::place::{Place, Trouble};
use crate::remotes::{Reached, Remotes};
use firn_cache::Answer;
use firn_host::Digest;
use firn_memo::kept::observation::Node;
use firn_memo::kept::{Flat, Record, Stored};
use futures::{StreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// The most bytes, unpacked, that are fetched for one question.
const MOST_TOGETHER: usize = 256 << 20;

/// An answer that somebody who is believed has given; whether it holds here is not known yet.
pub struct Candidate<'r> {
    remotes: &'r Remotes,
    reached: &'r Reached,
    question: Digest,
    /// The answer, and the root of what it rests on.
    pub record: Record,
    nodes: BTreeMap<Digest, Vec<u8>>,
    /// The root and the nodes that it names.
    own: Vec<Digest>,
    coming: Coming,
}

/// What is on its way.
struct Coming {
    objects: Receiver<Brought>,
    awaited: BTreeSet<Digest>,
}

/// What the thread that fetches has to say.
enum Brought {
    /// An object: how many bytes came, and what they are or what is wrong with them.
    Object(Kind, Digest, usize, Result<Vec<u8>, Wrong>),
    /// The remote is of no more use.
    Trouble(Trouble),
}

impl<'r> Candidate<'r> {
    /// Begins to fetch what an entry names, but for the nodes that are had already, and waits for the answer itself.
    pub(crate) fn fetch(
        remotes: &'r Remotes,
        reached: &'r Reached,
        (question, text): (Digest, &[u8]),
        entry: &Entry,
        had: BTreeMap<Digest, Vec<u8>>,
        is_known: &dyn Fn(&Digest) -> bool,
    ) -> Option<Candidate<'r>> {
        if reached.is_left_alone() {
            return None;
        }
        let awaited: BTreeSet<Digest> = entry.nodes.iter().filter(|node| !had.contains_key(node) && !is_known(node)).copied().collect();
        let mut wanted = vec![(Kind::Answer, entry.answer)];
        wanted.extend(awaited.iter().map(|node| (Kind::Node, *node)));
        let together = had.values().map(Vec::len).sum();
        let (sender, objects) = channel();
        let (place, limit, runtime) = (reached.place.clone(), remotes.left(reached), remotes.runtime());
        let thread = std::thread::Builder::new().name("firn remote".to_owned());
        if let Err(error) = thread.spawn(move || fetch_all(&runtime, &place, wanted, (limit, together), &sender)) {
            remotes.leave_alone(reached, &Trouble::Failed(error.to_string()));
            return None;
        }
        let (root, bytes) = Flat::root(&entry.nodes);
        let record = Record {
            question: text.to_vec(),
            result: Stored::Inline(Vec::new()),
            log: Vec::new(),
            observations: root,
            needs: Vec::new(),
            cost: entry.cost,
            durability: entry.durability,
            made: entry.made,
            places: Vec::new(),
        };
        let own = [&[root][..], &entry.nodes].concat();
        let mut candidate = Candidate { remotes, reached, question, record, nodes: had, own, coming: Coming { objects, awaited } };
        candidate.nodes.insert(root, bytes);
        let Payload { result, log, needs } = candidate.payload()?;
        candidate.record = Record { result: Stored::Inline(result), log, needs, ..candidate.record };
        Some(candidate)
    }

    /// Waits for the answer itself.
    fn payload(&mut self) -> Option<Payload> {
        loop {
            if let Some(bytes) = self.take(true)? {
                let payload = Payload::decode(&bytes);
                if payload.is_err() {
                    self.remotes.blame(self.reached, Wrong::Malformed);
                }
                return payload.ok();
            }
        }
    }

    /// A node, waited for if it is on its way.
    pub fn node(&mut self, digest: &Digest) -> Option<Vec<u8>> {
        while self.coming.awaited.contains(digest) {
            self.take(true)?;
        }
        self.nodes.get(digest).cloned()
    }

    /// A node, if it has come.
    pub fn node_now(&mut self, digest: &Digest) -> Option<Vec<u8>> {
        while self.coming.awaited.contains(digest) {
            self.take(false)?;
        }
        self.nodes.get(digest).cloned()
    }

    /// Takes what has come next, or waits for it. A node is kept, an answer handed on. None: nothing has come, or nothing will.
    fn take(&mut self, waits: bool) -> Option<Option<Vec<u8>>> {
        let brought = match self.coming.objects.try_recv() {
            Ok(brought) => brought,
            Err(TryRecvError::Empty) if waits => {
                let began = Instant::now();
                let brought = self.coming.objects.recv().ok();
                self.remotes.spend(self.reached, began.elapsed());
                brought?
            }
            Err(_) => return None,
        };
        match brought {
            Brought::Object(kind, digest, bytes, opened) => {
                match opened {
                    Err(Wrong::Incomplete) => self.remotes.count(|counts| counts.absent += 1),
                    _ => self.remotes.count(|counts| {
                        counts.fetched += 1;
                        counts.bytes_in += bytes as u64;
                    }),
                }
                let opened = opened.map_err(|wrong| self.remotes.blame(self.reached, wrong)).ok()?;
                if kind == Kind::Answer {
                    return Some(Some(opened));
                }
                self.coming.awaited.remove(&digest);
                self.nodes.insert(digest, opened);
                Some(None)
            }
            Brought::Trouble(trouble) => {
                self.remotes.leave_alone(self.reached, &trouble);
                None
            }
        }
    }

    /// The answer as the database takes it, once everything has come: nodes that were known already are not among its nodes. And all
    /// nodes that have come, for the next candidate.
    pub(crate) fn finish(mut self) -> (Option<Answer>, BTreeMap<Digest, Vec<u8>>) {
        while !self.coming.awaited.is_empty() {
            if self.take(true).is_none() {
                return (None, self.nodes);
            }
        }
        let own = self.own.iter().filter_map(|node| Some((*node, self.nodes.get(node)?.clone()))).collect();
        (Some(Answer { question: self.question, record: self.record, nodes: own }), self.nodes)
    }

    /// The nodes that have come.
    pub(crate) fn into_nodes(self) -> BTreeMap<Digest, Vec<u8>> {
        self.nodes
    }
}

/// Fetches objects together and hands each over, until nobody waits for them any more.
fn fetch_all(runtime: &Runtime, place: &Place, wanted: Vec<(Kind, Digest)>, bounds: (Duration, usize), to: &Sender<Brought>) {
    let (limit, mut together) = bounds;
    let one = |(kind, digest): (Kind, Digest)| async move { (kind, digest, place.get(kind, &digest).await) };
    let work = async {
        let mut objects = stream::iter(wanted).map(one).buffer_unordered(place.at_once());
        while let Some((kind, digest, packed)) = objects.next().await {
            let packed = packed?;
            let bytes = packed.as_ref().map_or(0, Vec::len);
            let opened = packed.ok_or(Wrong::Incomplete).and_then(|packed| open(kind, &digest, &packed, &mut together));
            if to.send(Brought::Object(kind, digest, bytes, opened)).is_err() {
                break;
            }
        }
        Ok(())
    };
    let done = runtime.block_on(async { tokio::time::timeout(limit, work).await.unwrap_or(Err(Trouble::Slow)) });
    if let Err(trouble) = done {
        // Who no longer waits need not know.
        let _ = to.send(Brought::Trouble(trouble));
    }
}

/// Unpacks an object; it must be what its name says.
fn open(kind: Kind, digest: &Digest, packed: &[u8], together: &mut usize) -> Result<Vec<u8>, Wrong> {
    let bytes = unpack(kind, packed)?;
    *together += bytes.len();
    if *together > MOST_TOGETHER {
        return Err(Wrong::TooLarge);
    }
    let named = if kind == Kind::Node { Node::digest(&bytes) } else { Payload::digest(&bytes) };
    if named == *digest { Ok(bytes) } else { Err(Wrong::NotItsName) }
}
