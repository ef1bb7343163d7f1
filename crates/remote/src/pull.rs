//! Asking: candidates for a question, remote by remote, each complete and signed by somebody who is believed.
//!
//! 1. One request fetches the index of the question; entries with no good signature are dropped before anything they name
//!    is looked at.
//! 2. For the newest entry everything that is not here yet is fetched together: nodes of observations and the answer ([`Candidate`]).
//! 3. Whoever asked verifies the candidate as one from disk; if it does not hold, the next entry is tried, then the next remote.

use crate::candidate::Candidate;
use crate::entry::Entry;
use crate::index::Index;
use crate::object::{Kind, unpack};
use crate::place::Trouble;
use crate::remotes::{Reached, Remotes};
use firn_cache::Answer;
use firn_host::Digest;
use std::collections::BTreeMap;
use std::time::Duration;

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
}

impl Remotes {
    /// Asks a question. Nothing is fetched before the first candidate is wanted.
    pub fn ask(&self, question: Digest) -> Lookup<'_> {
        self.count(|counts| counts.asked += 1);
        let (text, entries, nodes) = (Vec::new(), Vec::new(), BTreeMap::new());
        Lookup { remotes: self, question, at: None, text, entries, nodes }
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

impl<'r> Lookup<'r> {
    /// The next candidate. `is_known` says which nodes need not be fetched.
    pub fn next(&mut self, is_known: &dyn Fn(&Digest) -> bool) -> Option<Candidate<'r>> {
        self.next_of(is_known, &|_| true)
    }

    /// As [`Lookup::next`], if the question in full is wanted: nothing is fetched for others.
    pub fn next_of(&mut self, is_known: &dyn Fn(&Digest) -> bool, is_wanted: &dyn Fn(&[u8]) -> bool) -> Option<Candidate<'r>> {
        loop {
            if let Some(entry) = self.entries.pop() {
                let reached = self.remotes.reached.get(self.at?)?;
                let asked = (self.question, &self.text[..]);
                let had = std::mem::take(&mut self.nodes);
                if let Some(candidate) = Candidate::fetch(self.remotes, reached, asked, &entry, had, is_known) {
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

    /// The candidate did not hold: what has come of it need not be fetched for the next.
    pub fn refuse(&mut self, candidate: Candidate<'r>) {
        self.nodes = candidate.into_nodes();
    }

    /// The answer of a candidate that is taken, once everything has come; none if something has not.
    pub fn take(&mut self, candidate: Candidate<'r>) -> Option<Answer> {
        let (answer, nodes) = candidate.finish();
        self.nodes = nodes;
        answer
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
