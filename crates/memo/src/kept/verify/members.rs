//! What the places of a group have under a name, now: listings that are no longer as they were may have the same under most names.

use super::{Opened, Verifier, cheapest_first};
use crate::kept::group::digest_kept;
use crate::kept::observation::Node;
use firn_host::{Digest, FileContent, FileType, Observation, Question, digest_binding, digest_entry_type};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The places of a group.
pub(super) type Places = Arc<[Observation]>;

/// By name: which places have it, and what they have.
pub(super) struct Names {
    places: Vec<Question>,
    given: FxHashMap<Vec<u8>, Vec<(u32, Given)>>,
}

enum Given {
    Entry(Option<FileType>),
    Binding(FileContent, firn_syntax::Bound),
}

impl Given {
    fn digest(&self) -> Digest {
        match self {
            Given::Entry(file_type) => digest_entry_type(*file_type),
            Given::Binding(text, bound) => digest_binding(&bound.code(text.bytes())),
        }
    }
}

impl Verifier<'_> {
    /// The places of a group, as they were; none if they are not known here.
    pub fn places(&self, group: Digest) -> Option<Arc<[Observation]>> {
        let known = self.judged.places.borrow().get(&group).cloned();
        known.unwrap_or_else(|| {
            let places = self.read_places(group);
            // What is not there may be found later, elsewhere.
            if places.is_some() {
                self.judged.places.borrow_mut().insert(group, places.clone());
            }
            places
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
        let Some(places) = self.places(group) else { return false };
        self.count(|counts| counts.nodes += 1);
        let opened = Opened { own: Some(cheapest_first(places.to_vec())), ..Opened::default() };
        let holds = self.all_hold(opened, &mut self.way());
        self.judged.nodes.borrow_mut().insert(group, holds);
        holds
    }

    /// The digest of what the places of a group have under a name.
    pub(super) fn member(&self, group: Digest, name: &[u8]) -> Option<Digest> {
        let known = self.judged.groups.borrow().get(&group).cloned();
        let names = match known {
            Some(known) => known,
            None => {
                let names = self.names(group).map(Arc::new);
                self.judged.groups.borrow_mut().insert(group, names.clone());
                names
            }
        }?;
        let given = names.given.get(name).map_or(&[][..], Vec::as_slice);
        let placed = given.iter().map(|(place, given)| (&names.places[*place as usize], given.digest()));
        Some(digest_kept(placed, self.roles))
    }

    fn names(&self, group: Digest) -> Option<Names> {
        let places: Vec<Question> = self.places(group)?.iter().map(|seen| seen.question.clone()).collect();
        let mut given: FxHashMap<Vec<u8>, Vec<(u32, Given)>> = FxHashMap::default();
        for (number, place) in (0..).zip(&places) {
            match place {
                Question::Directory(path) => {
                    for (name, file_type) in self.host.read_dir(path).ok()?.entries() {
                        given.entry(name.to_vec()).or_default().push((number, Given::Entry(*file_type)));
                    }
                }
                Question::Code(path) => {
                    let content = self.host.read_file(path).ok()?;
                    for bound in firn_syntax::outline_of_sound(&content.shared())?.bound {
                        let name = bound.name(content.bytes()).to_vec();
                        given.entry(name).or_default().push((number, Given::Binding(content.clone(), bound)));
                    }
                }
                _ => return None,
            }
        }
        Some(Names { places, given })
    }
}
