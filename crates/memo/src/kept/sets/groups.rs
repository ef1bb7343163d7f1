//! Groups among the sets: places that names are looked up in one by one, and what they have under a name.

use super::super::group::{self, Given};
use super::super::observation::Node;
use super::super::roles::Roles;
use super::{New, ObservationId, SetId, Sets, Tables};
use firn_host::{Digest, Durability, Group, Observation, Question};
use rustc_hash::FxHashSet;

impl Sets {
    /// The number of what these places of a group have under a name, and the others have not.
    pub(in crate::kept) fn observe_member(&self, group: SetId, name: &[u8], given: Given) -> ObservationId {
        let question = Question::Member(Group::Made(group.0), name.into());
        let id = self.observe(&Observation::new(question, group::digest_here(&given), Durability::Medium), false);
        self.tables().members.entry(id).or_insert(given);
        id
    }

    /// Whether an observation is in a set.
    pub fn contains(&self, set: SetId, id: ObservationId) -> bool {
        self.tables().trees.contains(set, id)
    }

    /// The places that names were looked up in one by one for a set.
    pub fn places(&self, set: SetId) -> Vec<Observation> {
        let tables = self.tables();
        let groups = tables.trees.ids(set).into_iter().filter_map(|id| match tables.observations[id.0 as usize].seen.question {
            Question::Member(Group::Made(group), _) => Some(SetId(group)),
            _ => None,
        });
        let groups: FxHashSet<SetId> = groups.collect();
        let mut ids: Vec<ObservationId> = groups.into_iter().flat_map(|group| tables.trees.ids(group)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.iter().map(|id| tables.observations[id.0 as usize].seen.observation()).collect()
    }
}

impl Tables {
    /// A group as it is kept.
    pub(super) fn group(&self, set: SetId, roles: &Roles) -> (Digest, Vec<u8>) {
        let ids = self.trees.ids(set);
        let own = ids.iter().map(|id| self.observations[id.0 as usize].seen.observation()).collect();
        let bytes = Node { own, texts: self.texts_under(&ids), ..Node::default() }.encode(roles);
        (Node::digest(&bytes), bytes)
    }

    /// What a group has under a name as it is kept: places are named by role.
    pub(super) fn kept_member(&self, id: ObservationId, seen: &Observation, group: Digest, roles: &Roles) -> Observation {
        let given = self.members.get(&id).map_or(&[][..], Vec::as_slice);
        let placed = given.iter().map(|(place, digest)| (&self.observations[place.0 as usize].seen.question, *digest));
        let question = match &seen.question {
            Question::Member(_, name) => Question::Member(Group::Kept(group), name.clone()),
            other => other.clone(),
        };
        Observation::new(question, group::digest_kept(placed, roles), seen.durability)
    }

    /// Writes a group, once.
    pub(super) fn write_group(&mut self, set: SetId, new: &mut New) -> Result<Digest, ObservationId> {
        if let Some(&written) = self.written_groups.get(&set) {
            return written;
        }
        let ids = self.trees.ids(set);
        let written = match ids.iter().find(|id| !self.observations[id.0 as usize].storable) {
            Some(&bad) => Err(bad),
            None => {
                let (digest, bytes) = self.group(set, &self.written_for);
                new.nodes.push((digest, bytes));
                new.observations.extend(ids.iter().map(|id| self.observations[id.0 as usize].seen.observation()));
                Ok(digest)
            }
        };
        self.written_groups.insert(set, written);
        written
    }
}
