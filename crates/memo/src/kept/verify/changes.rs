//! What a record rests on in full, and everything in it that is no longer so: for whoever wants to know why something was
//! evaluated again (spec O3). [`Verifier::holds`] stops at the first change, this looks at all.

use super::Verifier;
use crate::kept::observation::Node;
use crate::kept::sets::is_storable;
use firn_host::{Digest, Durability, Group, Observation, Question};
use rustc_hash::FxHashSet;

/// What a record rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// What was observed, each once.
    pub observations: Vec<Observation>,
    /// The places that names were looked up in one by one, as they were.
    pub places: Vec<Observation>,
    /// How many observations are about trees that this run does not have.
    pub elsewhere: usize,
}

/// Something that was observed and is no longer so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What was observed.
    pub before: Observation,
    /// The digest of the answer now; none if nobody can ask again.
    pub now: Option<Digest>,
}

impl Verifier<'_> {
    /// Everything observed under this node; none if part of it is not there or damaged.
    pub fn ground(&self, root: Digest) -> Option<Ground> {
        let (mut ground, mut seen) = (Ground::default(), FxHashSet::default());
        let (mut nodes, mut todo) = (FxHashSet::default(), vec![root]);
        while let Some(digest) = todo.pop() {
            if !nodes.insert(digest) {
                continue;
            }
            let bytes = self.witness.node(&digest)?;
            let (children, own) = Node::decode(&bytes, self.roles).ok()?;
            todo.extend(children);
            for observation in own {
                match observation {
                    None => ground.elsewhere += 1,
                    Some(Observation { question: Question::Member(Group::Kept(group), name), digest, durability }) => {
                        if nodes.insert(group) {
                            ground.places.extend(self.places(group)?.iter().cloned());
                        }
                        let question = Question::Member(Group::Kept(group), name);
                        if seen.insert(question.clone()) {
                            ground.observations.push(Observation { question, digest, durability });
                        }
                    }
                    Some(observation) if seen.insert(observation.question.clone()) => ground.observations.push(observation),
                    Some(_) => {}
                }
            }
        }
        Some(ground)
    }

    /// Of these observations, those that are no longer so.
    pub fn changes(&self, observations: &[Observation]) -> Vec<Change> {
        let changed = |observation: &Observation| {
            let now = match (&observation.question, observation.durability) {
                (Question::Tree(_), Durability::High) if is_storable(observation) => return None,
                (Question::Member(Group::Kept(group), _), _) if self.group_holds(*group) => return None,
                (question, _) => self.answer(question),
            };
            (now != Some(observation.digest)).then(|| Change { before: observation.clone(), now })
        };
        observations.iter().filter_map(changed).collect()
    }
}
