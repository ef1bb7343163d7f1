//! Groups among the sets: places that names are looked up in one by one, and what they have under a name.

use super::super::group::{self, Given};
use super::super::observation::Node;
use super::super::roles::Roles;
use super::{Nodes, ObservationId, SetId, Sets, Tables};
use firn_host::{AbsPath, Answer, Digest, Durability, Group, Observation, Question, Seen};
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

/// What a group is made of: its places, and the bytes that code among them was read from.
struct Places {
    places: Vec<Seen>,
    texts: Vec<(AbsPath, Answer)>,
}

impl Places {
    /// The group as it is kept.
    fn encode(&self, roles: &Roles) -> (Digest, Vec<u8>) {
        let own = self.places.iter().map(Seen::observation).collect();
        let texts = self.texts.iter().map(|(path, text)| (path.clone(), text.digest())).collect();
        let bytes = Node { own, texts, ..Node::default() }.encode(roles);
        (Node::digest(&bytes), bytes)
    }
}

impl Sets {
    /// Makes a group as it would be kept, ahead of need, for the roles that were named last ([`Sets::write_for`]).
    // PERF: a third of the time that keeping an answer took after its evaluation.
    pub(in crate::kept) fn encode_group_ahead(&self, group: SetId) {
        let tables = self.tables();
        let (places, roles) = (tables.group(group), tables.written_for.clone());
        // Nobody waits for digests.
        drop(tables);
        let encoded = places.encode(&roles);
        let mut tables = self.tables();
        if tables.written_for == roles {
            tables.groups_ahead.insert(group, encoded);
        }
    }
}

impl Tables {
    /// A group as it is kept.
    pub(super) fn encode_group(&self, set: SetId, roles: &Roles) -> (Digest, Vec<u8>) {
        self.group(set).encode(roles)
    }

    fn group(&self, set: SetId) -> Places {
        let ids = self.trees.ids(set);
        let places = ids.iter().map(|id| self.observations[id.0 as usize].seen.clone()).collect();
        Places { places, texts: self.texts_under(&ids).collect() }
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

    /// What a group has under a name as it is kept, once the group is written.
    pub(super) fn write_member(&mut self, id: ObservationId, group: SetId, new: &mut Nodes) -> Result<Observation, ObservationId> {
        if let Some(kept) = self.kept_members.get(&id) {
            return Ok(kept.clone());
        }
        let group = self.write_group(group, new)?;
        let seen = self.observations[id.0 as usize].seen.observation();
        let kept = self.kept_member(id, &seen, group, &self.written_for);
        self.kept_members.insert(id, kept.clone());
        Ok(kept)
    }

    /// Writes a group, once.
    pub(super) fn write_group(&mut self, set: SetId, new: &mut Nodes) -> Result<Digest, ObservationId> {
        if let Some(&written) = self.written_groups.get(&set) {
            return written;
        }
        let ids = self.trees.ids(set);
        let written = match ids.iter().find(|id| !self.observations[id.0 as usize].storable) {
            Some(&bad) => Err(bad),
            None => {
                let ahead = self.groups_ahead.remove(&set);
                let (digest, bytes) = ahead.unwrap_or_else(|| self.encode_group(set, &self.written_for));
                new.push((digest, bytes));
                Ok(digest)
            }
        };
        self.written_groups.insert(set, written);
        written
    }
}
