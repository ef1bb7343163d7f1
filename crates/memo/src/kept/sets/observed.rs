//! `Observed`: what a process has observed, by number, in the order in which it was first seen.

use super::super::group::Given;
use super::{ObservationId, may_outlive};
use firn_host::{AbsPath, Answer, Durability, Observation, Question, Seen};
use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

struct Known {
    seen: Seen,
    /// Whether the answer may outlive the run.
    storable: bool,
    /// A file whose content was read, or a directory that was listed.
    read: bool,
    /// Another answer to the same question, which came before.
    before: Option<ObservationId>,
}

pub(super) struct Observed {
    all: Vec<Known>,
    /// The last one of each question, by the question's hash, which is with it.
    // PERF: the table grows without looking at questions.
    by_question: HashTable<(u64, ObservationId)>,
    /// Of the code of a file, the bytes that it was read from.
    pub texts: FxHashMap<ObservationId, ObservationId>,
    /// Of members of groups, which places have the name.
    pub members: FxHashMap<ObservationId, Given>,
}

impl Observed {
    /// Nothing but what stands for too much, and for something printed.
    pub fn new() -> Observed {
        let mut observed =
            Observed { all: Vec::new(), by_question: HashTable::new(), texts: FxHashMap::default(), members: FxHashMap::default() };
        // No such setting is ever stored.
        for name in ["more observations than can be told apart", "something that was printed"] {
            let question = Question::Setting(name.as_bytes().into());
            observed.add(&Observation::new(question, Observation::digest_bytes(None), Durability::Low).into(), false);
        }
        observed
    }

    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    fn known(&self, id: ObservationId) -> &Known {
        &self.all[id.0 as usize]
    }

    /// The last answer to a question.
    fn last(&self, question: &Question) -> Option<ObservationId> {
        let hash = FxBuildHasher.hash_one(question);
        self.by_question.find(hash, |&(its, id)| its == hash && self.seen(id).question == *question).map(|&(_, id)| id)
    }

    /// What a number stands for.
    pub fn seen(&self, id: ObservationId) -> &Seen {
        &self.known(id).seen
    }

    /// The number of an answer to a question that was seen before.
    pub fn find(&self, question: &Question, is_it: impl Fn(&Answer) -> bool) -> Option<ObservationId> {
        self.answers(self.last(question)).find(|&id| is_it(&self.seen(id).answer))
    }

    /// Whether a question has been answered.
    pub fn has(&self, question: &Question) -> bool {
        self.last(question).is_some()
    }

    /// A new one.
    pub fn add(&mut self, seen: &Seen, read: bool) -> ObservationId {
        let id = ObservationId(self.len());
        let hash = FxBuildHasher.hash_one(&seen.question);
        let is_it = |&(its, id): &(u64, ObservationId)| its == hash && self.all[id.0 as usize].seen.question == seen.question;
        let before = match self.by_question.find_mut(hash, is_it) {
            Some((_, last)) => Some(std::mem::replace(last, id)),
            None => {
                self.by_question.insert_unique(hash, (hash, id), |&(its, _)| its);
                None
            }
        };
        let storable = may_outlive(&seen.question, seen.durability, || seen.answer.digest());
        self.all.push(Known { seen: seen.clone(), storable, read, before });
        id
    }

    /// Nothing that rests on this answer, or on those before it to the same question, is stored.
    pub fn reject(&mut self, last: ObservationId) {
        for id in self.answers(Some(last)).collect::<Vec<_>>() {
            self.all[id.0 as usize].storable = false;
        }
    }

    /// An answer, and those before it to the same question.
    fn answers(&self, last: Option<ObservationId>) -> impl Iterator<Item = ObservationId> {
        std::iter::successors(last, |&id| self.known(id).before)
    }

    /// The answers to a question.
    pub fn answers_to(&self, question: &Question) -> Vec<ObservationId> {
        self.answers(self.last(question)).collect()
    }

    /// The first of these that must not be stored.
    pub fn unstorable(&self, ids: &[ObservationId]) -> Option<ObservationId> {
        ids.iter().copied().find(|&id| !self.known(id).storable)
    }

    /// Those that do not follow from the rest: that a path is itself does, where its content was read.
    // PERF: few of them could follow, so each of those looks for what it follows from.
    pub fn essentials(&self, ids: &[ObservationId]) -> Vec<(ObservationId, Seen)> {
        let read = |is_so: &dyn Fn(&AbsPath, bool) -> bool| {
            ids.iter().map(|&id| self.known(id)).filter(|known| known.read).any(|known| match &known.seen.question {
                Question::File(read) | Question::Code(read) | Question::Outline(read) => is_so(read, true),
                Question::Directory(read) => is_so(read, false),
                _ => false,
            })
        };
        let is_file = |path: &AbsPath| read(&|read, is_file| is_file && read == path);
        let is_directory = |path: &AbsPath| read(&|read, is_file| read.is_within(path) && !(is_file && read == path));
        let essential = ids.iter().filter(|&&id| !self.seen(id).follows_from(is_file, is_directory));
        essential.map(|&id| (id, self.seen(id).clone())).collect()
    }

    /// The bytes that code among these was read from.
    pub fn texts_under(&self, ids: &[ObservationId]) -> Vec<(AbsPath, Answer)> {
        let text = |id: &ObservationId| {
            let (code, text) = (self.seen(*id), self.texts.get(id)?);
            let Question::Code(path) = &code.question else { return None };
            Some((path.clone(), self.seen(*text).answer.clone()))
        };
        ids.iter().filter_map(text).collect()
    }
}
