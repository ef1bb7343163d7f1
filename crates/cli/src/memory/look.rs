//! Looking for an answer: on disk, then in remotes, the first that holds.

use super::{Memory, Pending, lock};
use super::witness::Witnessed;
use crate::shared::Shared;
use firn_cache::{Batch, Found, Reading};
use firn_host::{Digest, Host, Passing, Question};
use firn_memo::kept::{Entry, Judged, Key, Roles, Stem, Stored, Verifier, plain};
use firn_value::Value;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The last answer to a question.
pub(super) struct Before {
    /// What it took.
    pub(super) cost: Duration,
    /// What it rests on.
    pub(super) observations: Digest,
    /// What of that changed.
    pub(super) changed: Option<Question>,
}

impl Memory {
    /// Whether answers may be looked for before their turn: where those that are found are given, and nobody else is asked.
    pub fn looks_ahead(&self) -> bool {
        self.is_several() && !self.evaluates && self.shared.is_none()
    }

    /// Looks for the answer to a question about an attribute before its turn. Where there is none its key is for [`Memory::begin_at`].
    pub fn look_ahead(&self, stem: &Stem, attribute: &[u8], writes: bool) -> Result<Value, Key> {
        let (key, roles) = (stem.key(attribute), lock(&self.roles).clone());
        match self.find(&key, &roles, writes, Instant::now()) {
            (Some((_, value)), _) => Ok(value),
            (None, before) => {
                before.iter().for_each(|before| self.prepare_for_one(before.observations, &roles));
                Err(key)
            }
        }
    }

    /// The last answer to a question about an attribute, whether it holds or not: for whoever wants to know what to look for.
    pub fn guess(&self, stem: &Stem, attribute: &[u8]) -> Option<Value> {
        let (roles, reading) = (lock(&self.roles).clone(), self.disk.read()?);
        let last = reading.records_of(&stem.key(attribute)).into_iter().next()?;
        plain::decode(&last.result, &roles).ok()
    }

    /// What this thread does from now on is done for a question that was looked for.
    pub fn begin_at(&self, stem: &Stem, key: Key) -> Pending {
        self.settle_base(matches!(stem.asked.entry, Entry::Flake(_)));
        self.pending(key, None, super::parts::Plan::Plain)
    }

    /// As [`Memory::look`]; counts what came of it, and notes that an answer was of use.
    pub(super) fn find(&self, key: &Key, roles: &Roles, writes: bool, began: Instant) -> (Option<(Found, Value)>, Option<Before>) {
        let (found, before) = self.look(key, roles, writes);
        let mut counts = lock(&self.counts);
        counts.spent += began.elapsed().as_micros() as u64;
        match &found {
            Some((found, _)) => {
                counts.hits += 1;
                counts.saved += found.record.cost;
                drop(counts);
                self.held.store(found.record.made, Ordering::Relaxed);
                let now = self.host.current_time();
                if found.is_use_due(now) {
                    self.write(Batch { used: vec![found.key.clone()], now, ..Batch::default() });
                }
            }
            None => counts.misses += 1,
        }
        (found, before)
    }

    /// The answer, if there is one that holds; otherwise what is known of the last one.
    fn look(&self, key: &Key, roles: &Roles, writes: bool) -> (Option<(Found, Value)>, Option<Before>) {
        let Some(reading) = self.disk.read() else { return (None, None) };
        let mut candidates = reading.records_of(key);
        if candidates.is_empty() && self.shared.is_none() {
            return (None, None);
        }
        let newest = candidates.first().map(|found| (Duration::from_micros(found.record.cost), found.record.observations));
        let made = self.held.load(Ordering::Relaxed);
        if self.is_several() && made != i64::MAX {
            // PERF: answers that were found together rest on the same state of things: where one holds the others are likely to.
            candidates.sort_by_key(|found| found.record.made.abs_diff(made));
        }
        let (found, changed) = self.holding(key, candidates, &reading, roles, writes);
        // What follows is this thread's alone.
        let known = found.and_then(|found| plain::decode(&found.result, roles).ok().map(|value| (found, value)));
        (known, newest.map(|(cost, observations)| Before { cost, observations, changed }))
    }

    /// The first of the answers that holds, from here or from a remote.
    fn holding(&self, key: &Key, candidates: Vec<Found>, reading: &Reading<'_>, roles: &Roles, writes: bool) -> (Option<Found>, Option<Question>) {
        self.judged.with(|judged| self.holding_as(judged, key, candidates, reading, roles, writes))
    }

    fn holding_as(
        &self,
        judged: &Judged,
        key: &Key,
        candidates: Vec<Found>,
        reading: &Reading<'_>,
        roles: &Roles,
        writes: bool,
    ) -> (Option<Found>, Option<Question>) {
        let shared = self.shared.as_deref().map(lock);
        let witness = Witnessed::new(self, reading);
        // One run sees one state of a file: where several questions are asked, some evaluate what others verify.
        let passing = Passing(&*self.host);
        let host: &dyn Host = if self.is_several() { &*self.host } else { &passing };
        let verifier = Verifier::new(host, &witness, roles, judged);
        let fitting = |found: &Found| {
            let silent = found.record.log.is_empty() || !self.is_several();
            silent && (!writes || self.are_present(&found.record.needs)) && verifier.holds(found.record.observations)
        };
        let known = !candidates.is_empty();
        let found = candidates.into_iter().find(fitting).or_else(|| self.fetch(key, shared.as_deref()?, &witness, &fitting));
        if found.is_none() && known {
            let text = || format!("evaluated again, because this is no longer so: {:?}", verifier.changed());
            self.log.detail_of(text);
        }
        (found, verifier.changed())
    }

    /// An answer from a remote that holds here. It is kept on disk, with what it rests on.
    fn fetch<'s>(&self, key: &Key, shared: &'s Shared, witness: &Witnessed<'_, 's>, fitting: &dyn Fn(&Found) -> bool) -> Option<Found> {
        if !shared.remotes.believes_anybody() {
            return None;
        }
        let mut lookup = shared.remotes.ask(key.digest);
        loop {
            let candidate = lookup.next(&|node| witness.reading.node(node).is_some())?;
            let (record, now) = (candidate.record.clone(), self.host.current_time());
            witness.coming.replace(Some(candidate));
            let Stored::Inline(result) = record.result.clone() else { continue };
            let found = Found { key: Vec::new(), record, result, used: now };
            let fits = fitting(&found);
            let candidate = witness.coming.take()?;
            if !fits {
                lookup.refuse(candidate);
                continue;
            }
            lookup.held(Duration::from_micros(found.record.cost));
            if let Some(mut answer) = lookup.take(candidate) {
                answer.record.places = self.recorder.places();
                self.write(Batch { answers: vec![answer], now, ..Batch::default() });
            }
            return Some(found);
        }
    }

    fn are_present(&self, needs: &[Vec<u8>]) -> bool {
        needs.iter().all(|path| {
            let object = self.store_dir.parse(path);
            object.is_ok_and(|object| self.store.is_valid(&object).unwrap_or(false))
        })
    }
}
