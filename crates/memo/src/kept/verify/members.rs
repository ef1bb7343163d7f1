//! What the places of a group have under a name, now: listings that are no longer as they were may have the same under most names.
//!
//! Groups are many and have nearly all places in common, so there is one index of what places have, and a group is some of these places.

use super::{Opened, Verifier, cheapest_first};
use crate::kept::group::digest_kept;
use crate::kept::observation::Node;
use firn_host::{AbsPath, Digest, FileContent, FileType, Host, Observation, Question, digest_binding, digest_entry_type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The places of a group.
pub(super) type Places = Arc<[Observation]>;

/// What is known of groups, by all who judge beside each other.
#[derive(Default)]
pub(super) struct Groups(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The places of groups, as they were.
    places: FxHashMap<Digest, Places>,
    /// Whether these are all as they were.
    holds: FxHashMap<Digest, bool>,
    /// Of groups that are not, which places of the index are theirs, by number; none if what is in one of them cannot be told.
    now: FxHashMap<Digest, Option<Arc<[bool]>>>,
    index: Index,
}

impl Groups {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trees have other roles now. What is in places stays so.
    pub fn forget(&self) {
        let mut known = self.known();
        *known = Known { index: std::mem::take(&mut known.index), ..Known::default() };
    }
}

/// What places have, now.
// PERF: reading the places of each group for itself, by each thread, took more than evaluating what an added package touches.
#[derive(Default)]
struct Index {
    /// None: what is in it cannot be told.
    numbers: FxHashMap<Question, Option<u32>>,
    /// By number, and the text of those that are files.
    places: Vec<(Question, Option<FileContent>)>,
    /// By name: which places have it, and what they have.
    given: FxHashMap<Box<[u8]>, SmallVec<[(u32, Given); 1]>>,
}

#[derive(Clone, Copy)]
enum Given {
    Entry(Option<FileType>),
    Binding(firn_syntax::Bound),
}

impl Index {
    /// The number of a place. `is_sound` says whether the code in a file is of the language.
    fn number(&mut self, host: &dyn Host, place: &Question, is_sound: impl FnOnce(&AbsPath) -> bool) -> Option<u32> {
        if let Some(known) = self.numbers.get(place) {
            return *known;
        }
        let number = self.read(host, place, is_sound);
        self.numbers.insert(place.clone(), number);
        number
    }

    fn read(&mut self, host: &dyn Host, place: &Question, is_sound: impl FnOnce(&AbsPath) -> bool) -> Option<u32> {
        let number = u32::try_from(self.places.len()).ok()?;
        let mut text = None;
        match place {
            Question::Directory(path) => {
                for (name, file_type) in host.read_dir(path).ok()?.entries() {
                    self.give(name, number, Given::Entry(*file_type));
                }
            }
            Question::Code(path) => {
                let content = host.read_file(path).ok()?;
                if !is_sound(path) {
                    return None;
                }
                // PERF: its state vouches for that, so it need not be parsed.
                for bound in firn_syntax::outline(&content.shared())?.bound {
                    self.give(bound.name(content.bytes()), number, Given::Binding(bound));
                }
                text = Some(content);
            }
            _ => return None,
        }
        self.places.push((place.clone(), text));
        Some(number)
    }

    fn give(&mut self, name: &[u8], number: u32, given: Given) {
        match self.given.get_mut(name) {
            Some(all) => all.push((number, given)),
            None => _ = self.given.insert(name.into(), SmallVec::from_buf([(number, given)])),
        }
    }

    /// What these places have under a name, each with its text if it is a file.
    fn get(&self, places: &[bool], name: &[u8]) -> Vec<(Question, Option<FileContent>, Given)> {
        let all = self.given.get(name).map_or(&[][..], |all| &all[..]);
        let theirs = all.iter().filter(|(number, _)| places.get(*number as usize) == Some(&true));
        theirs
            .map(|(number, given)| {
                let (place, text) = &self.places[*number as usize];
                (place.clone(), text.clone(), *given)
            })
            .collect()
    }
}

fn digest_given(given: Given, text: Option<&FileContent>) -> Digest {
    match given {
        Given::Entry(file_type) => digest_entry_type(file_type),
        Given::Binding(bound) => digest_binding(&bound.code(text.map_or(&[], FileContent::bytes))),
    }
}

impl Verifier<'_> {
    /// The places of a group, as they were; none if they are not known here.
    pub fn places(&self, group: Digest) -> Option<Arc<[Observation]>> {
        let known = self.judged.common.groups.known().places.get(&group).cloned();
        known.or_else(|| {
            // What is not there may be found later, elsewhere.
            let places = self.read_places(group)?;
            self.judged.common.groups.known().places.insert(group, places.clone());
            Some(places)
        })
    }

    fn read_places(&self, group: Digest) -> Option<Places> {
        let bytes = self.witness.node(&group)?;
        let (children, own) = Node::decode(&bytes, self.roles).ok()?;
        let own = own.into_iter().collect::<Option<Vec<Observation>>>()?;
        let are_places = own.iter().all(|seen| matches!(seen.question, Question::Directory(_) | Question::Code(_)));
        (children.is_empty() && are_places).then(|| own.into())
    }

    /// Whether all places of a group are as they were: then so is what they have under any name.
    pub(super) fn group_holds(&self, group: Digest) -> bool {
        let known = self.judged.nodes.borrow().get(&group).copied();
        if let Some(known) = known {
            return known;
        }
        let known = self.judged.common.groups.known().holds.get(&group).copied();
        let holds = match known {
            Some(known) => known,
            None if self.witness.node(&group).is_some_and(|bytes| self.are_places_at_sight(&bytes)) => {
                self.count(|counts| counts.nodes += 1);
                true
            }
            None => {
                let Some(places) = self.places(group) else { return false };
                self.count(|counts| counts.nodes += 1);
                let opened = Opened { own: Some(cheapest_first(places.to_vec())), ..Opened::default() };
                self.all_hold(opened, &mut self.way())
            }
        };
        self.judged.common.groups.known().holds.insert(group, holds);
        self.judged.nodes.borrow_mut().insert(group, holds);
        holds
    }

    /// The digest of what the places of a group have under a name.
    pub(super) fn member(&self, group: Digest, name: &[u8]) -> Option<Digest> {
        let places = self.places(group)?;
        let mut known = self.judged.common.groups.known();
        let Known { now, index, .. } = &mut *known;
        let theirs = now.entry(group).or_insert_with(|| self.among(index, &places)).as_ref()?;
        let given = index.get(theirs, name);
        drop(known);
        let placed = given.iter().map(|(place, text, given)| (place, digest_given(*given, text.as_ref())));
        Some(digest_kept(placed, self.roles))
    }

    /// Which places of the index these are.
    fn among(&self, index: &mut Index, places: &[Observation]) -> Option<Arc<[bool]>> {
        let mut theirs = Vec::new();
        for place in places {
            let number = index.number(self.host, &place.question, |path| self.answer(&Question::Outline(path.clone())).is_some())? as usize;
            if theirs.len() <= number {
                theirs.resize(number + 1, false);
            }
            theirs[number] = true;
        }
        Some(theirs.into())
    }
}
