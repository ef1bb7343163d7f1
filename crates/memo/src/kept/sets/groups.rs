//! Groups among the sets: places that names are looked up in one by one, and what they have under a name.

use super::super::group::{self, Given};
use super::super::observation::Node;
use super::super::roles::Roles;
use super::{GroupId, Nodes, ObservationId, SetId, Sets, Tables, lock};
use firn_host::{AbsPath, Answer, Digest, Durability, Group, Observation, Question, Seen};
use rustc_hash::FxHashSet;

impl Sets {
    /// The group of one place.
    pub(in crate::kept) fn group_of(&self, place: ObservationId) -> GroupId {
        GroupId(lock(&self.groups).only(place).0)
    }

    /// The group of the places of both.
    pub(in crate::kept) fn both_groups(&self, one: GroupId, other: GroupId) -> GroupId {
        GroupId(lock(&self.groups).union(SetId(one.0), SetId(other.0)).0)
    }

    /// Whether a place is in a group.
    pub(in crate::kept) fn is_place(&self, group: GroupId, place: ObservationId) -> bool {
        lock(&self.groups).contains(SetId(group.0), place)
    }

    /// The places of a group.
    pub(in crate::kept) fn places_of(&self, group: GroupId) -> Vec<ObservationId> {
        lock(&self.groups).ids(SetId(group.0))
    }

    /// What the places of a group are.
    pub fn group(&self, group: GroupId) -> Vec<Observation> {
        self.all_of(&self.places_of(group))
    }

    /// The number of what these places of a group have under a name, and the others have not.
    pub(in crate::kept) fn observe_member(&self, group: GroupId, name: &[u8], given: Given) -> ObservationId {
        let question = Question::Member(Group::Made(group.0), name.into());
        let id = self.observe(&Observation::new(question, group::digest_here(&given), Durability::Medium), false);
        self.observed_mut().members.entry(id).or_insert(given);
        id
    }

    /// The groups that names were looked up in among these.
    pub(super) fn groups_among(&self, ids: &[ObservationId]) -> Vec<GroupId> {
        let observed = self.observed();
        let groups = ids.iter().filter_map(|&id| match observed.seen(id).question {
            Question::Member(Group::Made(group), _) => Some(GroupId(group)),
            _ => None,
        });
        let groups: FxHashSet<GroupId> = groups.collect();
        drop(observed);
        let mut groups: Vec<GroupId> = groups.into_iter().collect();
        groups.sort_unstable();
        groups
    }

    /// The places that names were looked up in one by one for a set.
    pub fn places(&self, set: SetId) -> Vec<Observation> {
        let groups = self.groups_among(&self.ids(set));
        let mut ids: Vec<ObservationId> = groups.into_iter().flat_map(|group| self.places_of(group)).collect();
        ids.sort_unstable();
        ids.dedup();
        self.all_of(&ids)
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
    pub(in crate::kept) fn encode_group_ahead(&self, group: GroupId) {
        let roles = self.tables().written_for.clone();
        // Nobody waits for digests.
        let encoded = self.encode_group(group, &roles);
        let mut tables = self.tables();
        if tables.written_for == roles {
            tables.groups_ahead.insert(group, encoded);
        }
    }

    /// A group as it is kept.
    pub(super) fn encode_group(&self, group: GroupId, roles: &Roles) -> (Digest, Vec<u8>) {
        let ids = self.places_of(group);
        let observed = self.observed();
        let places = Places { places: ids.iter().map(|&id| observed.seen(id).clone()).collect(), texts: observed.texts_under(&ids) };
        drop(observed);
        places.encode(roles)
    }

    /// What a group has under a name as it is kept: places are named by role.
    pub(super) fn kept_member(&self, id: ObservationId, group: Digest, roles: &Roles) -> Observation {
        let observed = self.observed();
        let given = observed.members.get(&id).map_or(&[][..], Vec::as_slice);
        let placed: Vec<(Question, Digest)> = given.iter().map(|&(place, digest)| (observed.seen(place).question.clone(), digest)).collect();
        let seen = observed.seen(id).clone();
        drop(observed);
        let question = match &seen.question {
            Question::Member(_, name) => Question::Member(Group::Kept(group), name.clone()),
            other => other.clone(),
        };
        Observation::new(question, group::digest_kept(placed.iter().map(|(place, digest)| (place, *digest)), roles), seen.durability)
    }

    /// What a group has under a name as it is kept, once the group is written.
    pub(super) fn write_member(&self, tables: &mut Tables, id: ObservationId, group: GroupId, new: &mut Nodes) -> Result<Observation, ObservationId> {
        if let Some(kept) = tables.kept_members.get(&id) {
            return Ok(kept.clone());
        }
        let group = self.write_group(tables, group, new)?;
        let kept = self.kept_member(id, group, &tables.written_for);
        tables.kept_members.insert(id, kept.clone());
        Ok(kept)
    }

    /// Writes a group, once.
    fn write_group(&self, tables: &mut Tables, group: GroupId, new: &mut Nodes) -> Result<Digest, ObservationId> {
        if let Some(&written) = tables.written_groups.get(&group) {
            return written;
        }
        let unstorable = self.observed().unstorable(&self.places_of(group));
        let written = match unstorable {
            Some(bad) => Err(bad),
            None => {
                let ahead = tables.groups_ahead.remove(&group);
                let (digest, bytes) = ahead.unwrap_or_else(|| self.encode_group(group, &tables.written_for));
                new.push((digest, bytes));
                Ok(digest)
            }
        };
        tables.written_groups.insert(group, written);
        written
    }
}
