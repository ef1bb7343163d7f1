//! `Keeper`: puts together what an answer rests on, as it is kept. For a run of many questions that is done by the thread that writes.

use super::recorder::{Recorder, place};
use super::{Outcome, lock};
use crate::log::Log;
use crate::shared::Shared;
use firn_cache::{Answer, Batch, Vouched};
use firn_host::{AbsPath, Group, Host, Question, Seen};
use firn_memo::kept::{Encoded, GroupId, Key, NotStorable, ObservationId, ROOT, Record, Roles, SetId, Stored, digests, labels};
use firn_value::Label;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Makes records.
pub(super) struct Keeper {
    pub host: Arc<dyn Host>,
    pub log: Arc<Log>,
    pub recorder: Arc<Recorder>,
    /// Observations that are known to name nothing outside all trees, and what is known of each.
    pub inside: Mutex<Inside>,
    pub counts: Arc<Mutex<Outcome>>,
    pub shared: Option<Arc<Mutex<Shared>>>,
}

/// An answer that is to be kept.
pub(super) struct Kept {
    pub key: Key,
    /// As bytes.
    pub result: Vec<u8>,
    /// What was printed.
    pub log: Vec<u8>,
    pub needs: Vec<Vec<u8>>,
    pub cost: Duration,
    /// What was observed before the first question.
    pub base: SetId,
    /// The trees that may lie elsewhere on another day or machine, by role.
    pub trees: Vec<(String, AbsPath)>,
    pub roles: Arc<Roles>,
    /// When it was found.
    pub now: i64,
    /// It is the only answer of its run.
    pub is_alone: bool,
}

/// Which observations name something outside all trees.
#[derive(Default)]
pub(super) struct Inside {
    /// Those that do not, as far as is known.
    known: SetId,
    /// Of groups that names were looked up in, by number.
    groups: FxHashMap<u32, bool>,
}

impl Keeper {
    /// Answers, each with what was observed for it, and all that was read for them, as they are written.
    pub fn keep(&self, answers: Vec<(Kept, Label)>) -> Batch {
        digests::make_rest();
        let sets = labels::sets();
        let mut batch = Batch::default();
        for (kept, observed) in answers {
            let whole = self.whole(labels::set_of(observed), &kept, &kept.log);
            batch.stamps.extend(sets.fresh_reads(whole).iter().filter_map(|seen| vouched(&*self.host, seen, kept.now)));
            batch.answers.extend(self.record(sets.encode(whole, &kept.roles), &kept));
            batch.now = kept.now;
        }
        batch
    }

    /// An answer with what it rests on; none if it must not be stored, of which the log is told.
    pub fn record(&self, encoded: Result<Encoded, NotStorable>, kept: &Kept) -> Option<Answer> {
        let Encoded { root, durability, nodes } = match encoded {
            Ok(encoded) => encoded,
            Err(NotStorable::Question(question)) => {
                let text = format!("not remembered on disk, because of what was observed: {question:?}");
                self.log.detail(text.as_bytes());
                return None;
            }
        };
        let record = Record {
            question: kept.key.question.clone(),
            result: Stored::Inline(kept.result.clone()),
            log: kept.log.clone(),
            observations: root,
            needs: kept.needs.clone(),
            cost: kept.cost.as_micros() as u64,
            durability,
            made: kept.now,
            places: self.recorder.places(),
        };
        if let Some(shared) = &self.shared {
            lock(shared).note(kept.key.digest, root);
        }
        lock(&self.counts).kept += 1;
        Some(Answer { question: kept.key.digest, record, nodes })
    }

    /// Everything that an answer rests on.
    pub fn whole(&self, observed: SetId, kept: &Kept, log: &[u8]) -> SetId {
        let sets = labels::sets();
        let mut whole = sets.union(observed, kept.base);
        if self.stays(kept, whole, log) {
            let places: Vec<ObservationId> = kept.trees.iter().map(|tree| sets.observe(&place(tree), false)).collect();
            whole = sets.join(&places, &[whole]);
        }
        if !log.is_empty() {
            // What was printed may say where in a file something stands.
            whole = sets.with_texts(whole);
        }
        if kept.is_alone {
            // What was printed is kept with the answer.
            whole = sets.without(whole, ObservationId::PRINTED);
        }
        whole
    }

    /// Whether an answer belongs to the places of its trees, seen or not: where something printed may name a place, where one tree
    /// lies in another, and where a path outside all trees was looked at that nobody wrote in full.
    fn stays(&self, Kept { trees, roles, .. }: &Kept, observed: SetId, log: &[u8]) -> bool {
        let nested = |(role, tree): &(String, AbsPath)| trees.iter().any(|(other, outer)| other != role && tree.is_within(outer));
        !log.is_empty() || trees.iter().any(nested) || self.strays(observed, roles)
    }

    /// Whether a path outside all trees is among what was observed that nobody wrote in full.
    fn strays(&self, observed: SetId, roles: &Roles) -> bool {
        let sets = labels::sets();
        let mut inside = lock(&self.inside);
        let Inside { known, groups } = &mut *inside;
        // PERF: nearly all of what a question rests on others rested on before it.
        let ids = sets.beyond(observed, *known);
        if ids.is_empty() {
            return false;
        }
        let in_full = lock(&self.recorder.in_full);
        let strays = |path: &AbsPath| roles.place(path).0 == ROOT && !path.upwards().any(|above| in_full.contains(above));
        let mut unknown = Vec::new();
        sets.filter(&ids, |question| {
            unknown.extend(group_of(question).filter(|group| !groups.contains_key(group)));
            false
        });
        for group in unknown {
            groups.entry(group).or_insert_with(|| {
                let places = sets.group(GroupId(group));
                places.iter().any(|place| place.question.path().is_some_and(strays))
            });
        }
        let inside = sets.filter(&ids, |question| match group_of(question) {
            Some(group) => groups.get(&group) == Some(&false),
            None => !question.path().is_some_and(strays),
        });
        *known = sets.join(&inside, &[*known]);
        inside.len() < ids.len()
    }
}

/// The state that vouches for what was read or listed. It was seen before the reading: if anything changed in between, no
/// later state equals it.
pub(super) fn vouched(host: &dyn Host, seen: &Seen, now: i64) -> Option<Vouched> {
    let stat = host.lstat(seen.question.path()?).ok()??;
    stat.stamp.is_settled(now).then(|| (seen.question.clone(), stat.stamp, seen.answer.digest()))
}

/// The number of the group that names are looked up in.
fn group_of(question: &Question) -> Option<u32> {
    match question {
        Question::Member(Group::Made(group), _) => Some(*group),
        _ => None,
    }
}
