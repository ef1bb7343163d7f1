//! Asking: candidates for a question, remote by remote, each complete and signed by somebody who is believed.
//!
//! 1. One request fetches the index of the question; entries with no good signature are dropped before anything they name
//!    is looked at.
//! 2. For the newest entry everything that is not here yet is fetched together: nodes of observations and the answer.
//! 3. Each object is unpacked within bounds and must be what its digest says.
//! 4. Whoever asked verifies the candidate as one from disk; if it does not hold, the next entry is tried, then the next remote.

use crate::counts::Wrong;
use crate::entry::{Entry, Payload};
use crate::index::Index;
use crate::object::{Kind, unpack};
use crate::place::{Place, Trouble};
use crate::remotes::{Reached, Remotes};
use firn_cache::Answer;
use firn_host::Digest;
use firn_memo::kept::observation::Node;
use firn_memo::kept::{Flat, Record, Stored};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::time::Duration;

/// Requests under way at once.
pub(crate) const AT_ONCE: usize = 32;
/// The most bytes, unpacked, that are fetched for one question.
const MOST_TOGETHER: usize = 256 << 20;

/// A question being asked.
pub struct Lookup<'r> {
    remotes: &'r Remotes,
    question: Digest,
    /// The remote that is being asked.
    at: Option<usize>,
    /// The question in full, as that remote's index has it.
    text: Vec<u8>,
    /// Its entries that are left, oldest first.
    entries: Vec<Entry>,
    /// Nodes fetched for this question.
    nodes: BTreeMap<Digest, Vec<u8>>,
    together: usize,
}

/// An answer that somebody who is believed has given; whether it holds here is not known yet.
#[derive(Debug)]
pub struct Candidate {
    /// The answer as the database takes it: nodes that were known already are not among its nodes.
    pub answer: Answer,
}

impl Remotes {
    /// Asks a question. Nothing is fetched before the first candidate is wanted.
    pub fn ask(&self, question: Digest) -> Lookup<'_> {
        self.count(|counts| counts.asked += 1);
        let (text, entries, nodes) = (Vec::new(), Vec::new(), BTreeMap::new());
        Lookup { remotes: self, question, at: None, text, entries, nodes, together: 0 }
    }

    /// The digests of all questions that remotes have answers to, as far as they tell; and the remotes that do not tell.
    pub fn questions(&self) -> (Vec<Digest>, Vec<String>) {
        let (mut all, mut silent) = (Vec::new(), Vec::new());
        for reached in &self.reached {
            match self.wait(reached, reached.place.questions()) {
                Some(Some(found)) => all.extend(found),
                Some(None) => silent.push(reached.place.shown.clone()),
                None => {}
            }
        }
        all.sort_unstable();
        all.dedup();
        (all, silent)
    }
}

impl Lookup<'_> {
    /// The next candidate. `is_known` says which nodes need not be fetched.
    pub fn next(&mut self, is_known: &dyn Fn(&Digest) -> bool) -> Option<Candidate> {
        self.next_of(is_known, &|_| true)
    }

    /// As [`Lookup::next`], if the question in full is wanted: nothing is fetched for others.
    pub fn next_of(&mut self, is_known: &dyn Fn(&Digest) -> bool, is_wanted: &dyn Fn(&[u8]) -> bool) -> Option<Candidate> {
        loop {
            if let Some(entry) = self.entries.pop() {
                if let Some(candidate) = self.fetch(entry, is_known) {
                    self.remotes.count(|counts| counts.candidates += 1);
                    return Some(candidate);
                }
                continue;
            }
            let next = self.at.map_or(0, |at| at + 1);
            if next >= self.remotes.reached.len() {
                return None;
            }
            self.at = Some(next);
            self.begin(next, is_wanted);
        }
    }

    /// The candidate held, and this is what evaluating it would have taken.
    pub fn held(&self, saved: Duration) {
        if let Some(reached) = self.at.and_then(|at| self.remotes.reached.get(at)) {
            self.remotes.credit(reached, saved);
        }
    }

    /// Fetches the index of a remote and keeps the entries that are believed.
    fn begin(&mut self, at: usize, is_wanted: &dyn Fn(&[u8]) -> bool) {
        let (remotes, reached) = (self.remotes, &self.remotes.reached[at]);
        let Some(fetched) = remotes.wait(reached, reached.place.get(Kind::Index, &self.question)) else { return };
        let Some(packed) = fetched else { return remotes.count(|counts| counts.absent += 1) };
        remotes.count(|counts| {
            counts.fetched += 1;
            counts.bytes_in += packed.len() as u64;
        });
        let index = unpack(Kind::Index, &packed).and_then(|bytes| Index::of_question(&self.question, &bytes));
        let index = match index {
            Ok(index) => index,
            Err(wrong) => return remotes.blame(reached, wrong),
        };
        if !is_wanted(&index.question) {
            return;
        }
        for entry in index.entries.into_iter().rev() {
            match entry.check(&self.question, &remotes.keys) {
                Ok(()) => self.entries.push(entry),
                Err(wrong) => remotes.blame(reached, wrong),
            }
        }
        self.text = index.question;
    }

    fn fetch(&mut self, entry: Entry, is_known: &dyn Fn(&Digest) -> bool) -> Option<Candidate> {
        let reached = self.remotes.reached.get(self.at?)?;
        if reached.is_left_alone() {
            return None;
        }
        let missing = entry.nodes.iter().filter(|node| !self.nodes.contains_key(node) && !is_known(node));
        let mut wanted: Vec<(Kind, Digest)> = missing.map(|node| (Kind::Node, *node)).collect();
        wanted.push((Kind::Answer, entry.answer));
        let fetched = self.remotes.wait(reached, fetch_all(&reached.place, wanted))?;
        let mut payload = None;
        for ((kind, digest), packed) in fetched {
            match self.open(kind, &digest, packed) {
                Ok(bytes) if kind == Kind::Answer => payload = Payload::decode(&bytes).ok(),
                Ok(bytes) => _ = self.nodes.insert(digest, bytes),
                Err(wrong) => {
                    self.remotes.blame(reached, wrong);
                    return None;
                }
            }
        }
        let Some(payload) = payload else {
            self.remotes.blame(reached, Wrong::Malformed);
            return None;
        };
        Some(Candidate { answer: self.answer(entry, payload) })
    }

    /// Unpacks an object; it must be what its name says.
    fn open(&mut self, kind: Kind, digest: &Digest, packed: Option<Vec<u8>>) -> Result<Vec<u8>, Wrong> {
        let Some(packed) = packed else {
            self.remotes.count(|counts| counts.absent += 1);
            return Err(Wrong::Incomplete);
        };
        self.remotes.count(|counts| {
            counts.fetched += 1;
            counts.bytes_in += packed.len() as u64;
        });
        let bytes = unpack(kind, &packed)?;
        self.together += bytes.len();
        if self.together > MOST_TOGETHER {
            return Err(Wrong::TooLarge);
        }
        let named = if kind == Kind::Node { Node::digest(&bytes) } else { Payload::digest(&bytes) };
        if named == *digest { Ok(bytes) } else { Err(Wrong::NotItsName) }
    }

    fn answer(&self, entry: Entry, payload: Payload) -> Answer {
        let fetched = |node: &Digest| Some((*node, self.nodes.get(node)?.clone()));
        let mut nodes: Vec<(Digest, Vec<u8>)> = entry.nodes.iter().filter_map(fetched).collect();
        let root = Flat::root(&entry.nodes);
        let observations = root.0;
        nodes.push(root);
        let record = Record {
            question: self.text.clone(),
            result: Stored::Inline(payload.result),
            log: payload.log,
            observations,
            needs: payload.needs,
            cost: entry.cost,
            durability: entry.durability,
            made: entry.made,
            places: Vec::new(),
        };
        Answer { question: self.question, record, nodes }
    }
}

type Fetched = Vec<((Kind, Digest), Option<Vec<u8>>)>;

/// Fetches objects together.
async fn fetch_all(place: &Place, wanted: Vec<(Kind, Digest)>) -> Result<Fetched, Trouble> {
    let one = |(kind, digest): (Kind, Digest)| async move { Ok(((kind, digest), place.get(kind, &digest).await?)) };
    stream::iter(wanted).map(one).buffer_unordered(AT_ONCE).try_collect().await
}

/// Whether a remote can be read at all: for those who are asked, not for evaluations.
impl Reached {
    /// The index of a question, as it lies there, if it is one.
    pub(crate) async fn index(&self, question: &Digest) -> Result<(Option<Index>, Option<String>, bool), Trouble> {
        let Some((packed, mark)) = self.place.get_marked(Kind::Index, question).await? else { return Ok((None, None, false)) };
        let index = unpack(Kind::Index, &packed).and_then(|bytes| Index::of_question(question, &bytes)).ok();
        Ok((index, mark, true))
    }
}
