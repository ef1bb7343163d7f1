//! `Sets`: interned sets of observations, a graph in which a set is what was observed here and the sets it contains.
//!
//! Equal sets are one number, adding nothing to a set gives that set, and a set that is one other *is* that other: the
//! label of a value is four bytes and equal labels compare in one step. Shared by all threads of a run.

use super::observation::Node;
use super::roles::Roles;
use firn_host::{Digest, Durability, Observation, Question};
use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A set of observations in a [`Sets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SetId(u32);

/// An observation in a [`Sets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObservationId(u32);

impl SetId {
    /// The set of nothing.
    pub const EMPTY: SetId = SetId(0);
}

#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct Interned {
    own: Box<[ObservationId]>,
    children: Box<[SetId]>,
}

#[derive(Default)]
struct Tables {
    observations: Vec<Observation>,
    by_question: FxHashMap<Question, Vec<ObservationId>>,
    sets: Vec<Interned>,
    by_content: FxHashMap<Interned, SetId>,
    encoded: FxHashMap<SetId, Digest>,
}

/// The sets of a run, which encodes them all by the same roles.
#[derive(Default)]
pub struct Sets(Mutex<Tables>);

/// Nodes as bytes, by digest; those below before those above.
pub type Encoded = Vec<(Digest, Vec<u8>)>;

/// Why a result cannot be stored with its observations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotStorable {
    /// The answer to this changed while evaluation ran, or is never kept (time, network).
    Question(Question),
}

impl Sets {
    /// Only the empty set.
    pub fn new() -> Sets {
        Sets::default()
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.sets.is_empty() {
            tables.sets.push(Interned::default());
        }
        tables
    }

    /// The number of an observation, and whether it is new.
    pub fn observe(&self, observation: &Observation) -> (ObservationId, bool) {
        let mut tables = self.tables();
        let tables = &mut *tables;
        let known = tables.by_question.get(&observation.question).map_or(&[][..], Vec::as_slice);
        if let Some(&id) = known.iter().find(|id| tables.observations[id.0 as usize].digest == observation.digest) {
            return (id, false);
        }
        let id = ObservationId(u32::try_from(tables.observations.len()).expect("fewer than 2^32 observations"));
        tables.observations.push(observation.clone());
        tables.by_question.entry(observation.question.clone()).or_default().push(id);
        (id, true)
    }

    /// What a number stands for.
    pub fn observation(&self, id: ObservationId) -> Observation {
        self.tables().observations[id.0 as usize].clone()
    }

    /// The set of these observations and sets together.
    pub fn join(&self, own: &[ObservationId], children: &[SetId]) -> SetId {
        let mut own = own.to_vec();
        own.sort_unstable();
        own.dedup();
        let mut children: Vec<SetId> = children.iter().copied().filter(|&child| child != SetId::EMPTY).collect();
        children.sort_unstable();
        children.dedup();
        match (&own[..], &children[..]) {
            ([], []) => return SetId::EMPTY,
            ([], [only]) => return *only,
            _ => {}
        }
        let content = Interned { own: own.into(), children: children.into() };
        let mut tables = self.tables();
        if let Some(&id) = tables.by_content.get(&content) {
            return id;
        }
        let id = SetId(u32::try_from(tables.sets.len()).expect("fewer than 2^32 sets"));
        tables.sets.push(content.clone());
        tables.by_content.insert(content, id);
        id
    }

    /// Everything in a set, each once, in the order of first observation.
    pub fn members(&self, set: SetId) -> Vec<Observation> {
        let tables = self.tables();
        let mut ids: Vec<ObservationId> =
            tables.below(set).iter().flat_map(|set| tables.sets[set.0 as usize].own.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().map(|id| tables.observations[id.0 as usize].clone()).collect()
    }

    /// The set as nodes of bytes, those below first, the last one its own; nodes that were encoded before are left out
    /// of the list. Fails where something in it must not be stored.
    pub fn encode(&self, set: SetId, roles: &Roles) -> Result<(Digest, Encoded), NotStorable> {
        let mut tables = self.tables();
        let below = tables.below(set);
        let mut first: FxHashMap<&Question, Digest> = FxHashMap::default();
        for id in below.iter().flat_map(|set| tables.sets[set.0 as usize].own.iter()) {
            let observation = &tables.observations[id.0 as usize];
            let before = *first.entry(&observation.question).or_insert(observation.digest);
            if before != observation.digest || !is_storable(observation) {
                return Err(NotStorable::Question(observation.question.clone()));
            }
        }
        let mut nodes = Vec::new();
        for id in below {
            if tables.encoded.contains_key(&id) {
                continue;
            }
            let content = tables.sets[id.0 as usize].clone();
            let children = content.children.iter().map(|child| tables.encoded[child]).collect();
            let own = content.own.iter().map(|id| tables.observations[id.0 as usize].clone()).collect();
            let bytes = Node { children, own }.encode(roles);
            let digest = Node::digest(&bytes);
            tables.encoded.insert(id, digest);
            nodes.push((digest, bytes));
        }
        Ok((tables.encoded[&set], nodes))
    }
}

impl Tables {
    /// The set and all below it, each once, those below first. A loop: chains are as long as a run is.
    fn below(&self, set: SetId) -> Vec<SetId> {
        let mut order = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        let mut todo = vec![(set, false)];
        while let Some((set, children_done)) = todo.pop() {
            if children_done {
                order.push(set);
            } else if seen.insert(set) {
                todo.push((set, true));
                todo.extend(self.sets[set.0 as usize].children.iter().map(|&child| (child, false)));
            }
        }
        order
    }
}

/// Whether an answer may outlive the run: time and network never do (spec L2.6), and what nobody could ask again is
/// never believed.
pub fn is_storable(observation: &Observation) -> bool {
    match &observation.question {
        Question::Time | Question::Output(..) | Question::System | Question::Setting(_) => false,
        // A locked tree is what its reference says; a fetch that failed may succeed tomorrow, and a directory that no
        // longer has the hash it was locked with is an error.
        Question::Tree(reference) => {
            !reference.starts_with(b"path:")
                && observation.durability == Durability::High && observation.digest != Observation::digest_bytes(None)
        }
        Question::SearchPath(..) => observation.durability != Durability::Low,
        _ => true,
    }
}
