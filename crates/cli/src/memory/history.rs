//! Looking at what is remembered about a question: every answer with what it rests on, and what of that is no longer so.

use super::witness::Witnessed;
use super::{Memory, Pending, lock};
use firn_cache::Reading;
use firn_host::{AbsPath, Host, Observation};
use firn_memo::kept::{Asked, Change, Entry, Ground, Key, ObservationId, Record, Roles, SetId, Verifier, Witness, Written, labels};
use std::sync::atomic::Ordering;

/// A remembered answer.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// The record.
    pub record: Record,
    /// What it rests on.
    pub observations: Vec<Observation>,
    /// Where names were looked up one by one for it.
    pub places: Vec<Observation>,
    /// What of that is no longer so.
    pub changes: Vec<Change>,
    /// How many observations are about trees that this run does not have.
    pub elsewhere: usize,
    /// Seconds since 1970 when it was last of use.
    pub used: i64,
}

impl Remembered {
    /// Whether it is still the answer.
    pub fn holds(&self) -> bool {
        self.changes.is_empty() && self.elsewhere == 0
    }
}

impl Memory {
    /// The checkout that a path lies in.
    pub fn checkout_of(&self, path: &AbsPath) -> AbsPath {
        self.tree_of(path)
    }

    /// What the trees of the run are called.
    pub fn roles(&self) -> Roles {
        Roles::clone(&lock(&self.roles))
    }

    /// The answers to a question, nearest to how things are now first.
    pub fn history(&self, asked: &Asked) -> Vec<Remembered> {
        let (roles, Some(reading)) = (self.roles(), self.disk.read()) else { return Vec::new() };
        let found = reading.records_of(&Key::new(asked, &roles)).into_iter().map(|found| (found.record, found.used)).collect();
        self.judge(&reading, &roles, found)
    }

    /// The same for questions about the same value that is printed in other ways.
    pub fn history_in_other_forms(&self, asked: &Asked) -> Vec<Remembered> {
        let (roles, Some(reading)) = (self.roles(), self.disk.read()) else { return Vec::new() };
        let key = Key::new(asked, &roles);
        let Ok(this) = Written::decode(&key.question) else { return Vec::new() };
        let alike = |record: &Record| {
            record.question != key.question
                && Written::decode(&record.question).is_ok_and(|other| other.is_about_the_same(&this))
        };
        let all = reading.all_records().into_iter().map(|(_, record)| record).filter(alike);
        let found = all.map(|record| (record.clone(), record.made)).collect();
        self.judge(&reading, &roles, found)
    }

    fn judge(&self, reading: &Reading<'_>, roles: &Roles, found: Vec<(Record, i64)>) -> Vec<Remembered> {
        let witness = Witnessed::new(self, reading);
        self.judged.with(|known| self.judge_by(&Verifier::new(&*self.host, &witness, roles, known), found))
    }

    fn judge_by(&self, verifier: &Verifier<'_>, found: Vec<(Record, i64)>) -> Vec<Remembered> {
        let mut judged: Vec<Remembered> = Vec::new();
        for (record, used) in found {
            let Some(ground) = verifier.ground(record.observations) else { continue };
            let changes = verifier.changes(&ground.observations);
            let Ground { observations, places, elsewhere } = ground;
            judged.push(Remembered { record, observations, places, changes, elsewhere, used });
        }
        judged.sort_by_key(|one| (one.elsewhere, one.changes.len(), std::cmp::Reverse(one.used)));
        judged
    }

    /// Lets someone look through all that is remembered, with what is needed to verify it.
    pub fn look_through<R>(&self, look: impl FnOnce(&Reading<'_>, &dyn Witness, &dyn Host) -> R) -> Option<R> {
        let reading = self.disk.read()?;
        let witness = Witnessed::new(self, &reading);
        Some(look(&reading, &witness, &*self.host))
    }

    /// Begins to evaluate a question without looking for an answer.
    pub fn begin(&self, asked: &Asked) -> Pending {
        self.settle_base(matches!(asked.entry, Entry::Flake(_)));
        let key = Key::new(asked, &lock(&self.roles));
        self.pending(key, None, Default::default())
    }

    /// Everything that was observed for the question that was evaluated last, as far as that got, and by this thread besides.
    pub fn observed(&self) -> Vec<Observation> {
        let sets = labels::sets();
        sets.essentials(sets.without(self.observed_set(), ObservationId::PRINTED), &self.roles())
    }

    /// Where names were looked up one by one for that.
    pub fn places(&self) -> Vec<Observation> {
        labels::sets().places(self.observed_set())
    }

    fn observed_set(&self) -> SetId {
        let last = labels::set_of(self.last.load(Ordering::Relaxed));
        labels::sets().join(&[], &[last, *lock(&self.base), labels::set_of(labels::so_far())])
    }
}
