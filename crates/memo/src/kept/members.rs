//! `Members`: what guarded sets have under a name (`firn_value::Guards`): of each listing and each file of bindings that names are looked
//! up in one by one, which names it has and a digest of what they stand for.
//!
//! Looking a name up observes what *all* places have under it that the set was made of, one observation for all of them
//! (`Question::Member`): seven hundred listings that lack a name are seven hundred reasons why an answer is what it is.

use super::digests;
use super::sets::{GroupId, ObservationId, SetId, Sets};
use firn_host::{Bound, Digest, FileContent, FileType, digest_binding, digest_entry_type};
use firn_source::Symbol;
use rustc_hash::{FxHashMap, FxHashSet};

/// What a place has under a name.
#[derive(Clone, Copy, Debug)]
enum Given {
    /// An entry of a directory.
    Entry(Option<FileType>),
    /// A binding in a file, by number.
    Binding(u32),
}

struct Member {
    place: ObservationId,
    given: Given,
    /// The number of the one before of the same name, or 0.
    before: u32,
}

/// Names and the places that have them.
#[derive(Default)]
pub struct Members {
    /// By name: the number of the last one.
    last: Vec<u32>,
    members: Vec<Member>,
    /// What files bind whose names are not among these yet; nothing for those whose are. Names become symbols in the order in which files are
    /// parsed, which shows in the order of sets: who looks a name up has a set of that file, so all its names are symbols by then.
    files: FxHashMap<ObservationId, Option<Bound>>,
    /// Bindings, each with the number of its text.
    bindings: Vec<(u32, firn_syntax::Bound)>,
    /// The texts of bindings.
    texts: Vec<FileContent>,
    /// By guard of one listing: which it is.
    listings: FxHashMap<GroupId, ObservationId>,
    /// Groups that names were looked up in.
    groups: FxHashSet<GroupId>,
    /// By group and name: what is observed by looking it up.
    // PERF: telling what places have under a name takes hashing it.
    observed: FxHashMap<(GroupId, Symbol), ObservationId>,
    /// Groups as sets of their places.
    wholes: FxHashMap<GroupId, SetId>,
}

impl Members {
    /// This set is of the one listing.
    pub fn add_listing(&mut self, set: GroupId, place: ObservationId) {
        self.listings.insert(set, place);
    }

    /// The one listing of a set has these names.
    pub fn add_entries(&mut self, set: GroupId, names: impl Iterator<Item = (Symbol, Option<FileType>)>) {
        if let Some(place) = self.listings.remove(&set) {
            names.for_each(|(name, file_type)| self.add(place, name, Given::Entry(file_type)));
        }
    }

    /// The code of a file, which is not parsed yet, binds these names.
    pub fn add_bindings(&mut self, place: ObservationId, bound: Bound) {
        self.files.entry(place).or_insert(Some(bound));
    }

    /// Names are looked up in sets of this file.
    fn open(&mut self, place: ObservationId) {
        let Some(Bound { text, places }) = self.files.get_mut(&place).and_then(Option::take) else { return };
        let number = self.texts.len() as u32;
        self.members.reserve(places.len());
        for bound in places {
            self.bindings.push((number, bound));
            self.add(place, Symbol::intern(bound.name(text.bytes())), Given::Binding(self.bindings.len() as u32 - 1));
        }
        self.texts.push(text);
    }

    fn add(&mut self, place: ObservationId, name: Symbol, given: Given) {
        let at = name.id() as usize;
        if self.last.len() <= at {
            self.last.resize((at + 1).next_power_of_two(), 0);
        }
        self.members.push(Member { place, given, before: self.last[at] });
        self.last[at] = self.members.len() as u32;
    }

    /// The places of a group.
    pub fn whole(&mut self, group: GroupId, sets: &Sets) -> SetId {
        *self.wholes.entry(group).or_insert_with(|| sets.join(&sets.places_of(group), &[]))
    }

    /// What is observed by looking a name up among all of a group.
    pub fn observe(&mut self, group: GroupId, name: Symbol, sets: &Sets) -> ObservationId {
        if let Some(&known) = self.observed.get(&(group, name)) {
            return known;
        }
        if self.groups.insert(group) {
            digests::encode_ahead(group);
            sets.places_of(group).iter().for_each(|&place| self.open(place));
        }
        let id = self.observe_anew(group, name, sets);
        self.observed.insert((group, name), id);
        id
    }

    fn observe_anew(&self, group: GroupId, name: Symbol, sets: &Sets) -> ObservationId {
        let mut given = Vec::new();
        let mut number = self.last.get(name.id() as usize).copied().unwrap_or_default();
        while let Some(index) = number.checked_sub(1) {
            let member = &self.members[index as usize];
            if sets.is_place(group, member.place) {
                given.push((member.place, self.digest(member.given)));
            }
            number = member.before;
        }
        given.sort_unstable();
        given.dedup();
        sets.observe_member(group, name.as_bytes(), given)
    }

    fn digest(&self, given: Given) -> Digest {
        match given {
            Given::Entry(file_type) => digest_entry_type(file_type),
            Given::Binding(number) => {
                let (text, bound) = self.bindings[number as usize];
                digest_binding(&bound.code(self.texts[text as usize].bytes()))
            }
        }
    }
}
