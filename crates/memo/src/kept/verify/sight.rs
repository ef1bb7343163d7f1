//! What can be told at sight: a node is judged while its bytes are read, without making a question of each of its observations. Nearly all of
//! them are looked-up names in listings that are as they were, and states of files that somebody has asked about before or that are vouched for.
//!
//! Invariant: this says that a node holds, or nothing. Whatever is not so, cannot be told without reading files, or cannot be read, is judged
//! observation by observation (`Verifier::all_hold`), by the same rules.
// PERF: of 76,000 observations that a thousand jobs rest on half are names in groups that hold, and a quarter were asked before by the same thread.

use super::{Verifier, settled};
use crate::kept::cbor::{Malformed, Reader};
use crate::kept::observation::{Head, PathTable};
use firn_host::{AbsPath, Digest, Follow, Question, Stamp};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What was found at paths.
#[derive(Default)]
pub(super) struct Sight {
    /// By role: the numbers of places by the way from there.
    roles: Vec<(Box<str>, FxHashMap<Box<[u8]>, u32>)>,
    places: Vec<Place>,
    /// Room for a path.
    room: Vec<u8>,
}

struct Place {
    path: AbsPath,
    /// Once looked up, the state of what is there, if that can vouch.
    stamp: Option<Option<Stamp>>,
    /// By kind of question.
    answers: SmallVec<[(u8, Digest); 2]>,
}

/// Nodes below a node.
pub(super) type Children = SmallVec<[Digest; 8]>;

/// Numbers of places.
type Numbers = SmallVec<[u32; 32]>;

impl Sight {
    /// Trees have other roles now.
    pub fn forget(&mut self) {
        *self = Sight::default();
    }

    /// The number of a role.
    fn role(&mut self, name: &str) -> usize {
        self.roles.iter().position(|(known, _)| **known == *name).unwrap_or_else(|| {
            self.roles.push((name.into(), FxHashMap::default()));
            self.roles.len() - 1
        })
    }

    fn answer(&self, place: u32, kind: u8) -> Option<Digest> {
        let answers = &self.places.get(place as usize)?.answers;
        answers.iter().find(|(of, _)| *of == kind).map(|(_, digest)| *digest)
    }
}

/// The question of a kind about a path, and what the kind is called here; none if more than the path belongs to it.
fn question_of(kind: u64, flag: bool, path: AbsPath) -> Option<Question> {
    Some(match kind {
        0 => Question::File(path),
        1 => Question::Directory(path),
        3 => Question::Type(path),
        4 => Question::Stat(path),
        5 => Question::Link(path),
        6 => Question::Resolve(path, if flag { Follow::Full } else { Follow::Ancestors }),
        7 => Question::ExprPath(path),
        8 => Question::Exists(path, flag),
        20 => Question::Outline(path),
        22 => Question::Code(path),
        _ => return None,
    })
}

impl Verifier<'_> {
    /// The nodes below a node of which everything else is so; none if that cannot be told at sight.
    pub(super) fn at_sight(&self, bytes: &[u8]) -> Option<Children> {
        self.skim(bytes, false).ok().flatten()
    }

    /// Whether these are places, all as they were; if not, that need not mean anything.
    pub(super) fn are_places_at_sight(&self, bytes: &[u8]) -> bool {
        self.skim(bytes, true).ok().flatten().is_some_and(|children| children.is_empty())
    }

    fn skim(&self, bytes: &[u8], only_places: bool) -> Result<Option<Children>, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(5)?;
        let names = (0..reader.array()?).map(|_| reader.text()).collect::<Result<SmallVec<[&str; 4]>, _>>()?;
        let Some(places) = self.read_numbers(&mut reader, &names)? else { return Ok(None) };
        let children = (0..reader.array()?).map(|_| reader.fixed().map(Digest)).collect::<Result<Children, _>>()?;
        let groups = (0..reader.array()?).map(|_| reader.fixed().map(Digest)).collect::<Result<SmallVec<[Digest; 8]>, _>>()?;
        let mut held: SmallVec<[bool; 8]> = SmallVec::from_elem(false, groups.len());
        for _ in 0..reader.array()? {
            let head = Head::read(&mut reader)?;
            if only_places && !matches!(head.kind, 1 | 22 | 24) {
                return Ok(None);
            }
            let holds = if head.kind == 23 {
                self.skim_member(head, &mut reader, &groups, &mut held)?
            } else {
                let place = if head.has_path() { Some(*places.get(reader.index()?).ok_or(Malformed::Unexpected)?) } else { None };
                self.skim_observation(head, &mut reader, place)?
            };
            if !holds {
                return Ok(None);
            }
        }
        reader.end()?;
        Ok(Some(children))
    }

    /// The numbers of the paths in a node's table; none if this run does not have all of them.
    fn read_numbers(&self, reader: &mut Reader<'_>, names: &[&str]) -> Result<Option<Numbers>, Malformed> {
        let mut sight = self.judged.sight.borrow_mut();
        let roles: SmallVec<[usize; 4]> = names.iter().map(|name| sight.role(name)).collect();
        let mut table = PathTable::read(reader, names.len(), std::mem::take(&mut sight.room))?;
        let (mut numbers, mut all) = (Numbers::new(), true);
        while let Some((role, rest)) = table.next()? {
            let Sight { roles: known, places, .. } = &mut *sight;
            let known = &mut known[roles[role]].1;
            if let Some(&number) = known.get(rest) {
                numbers.push(number);
            } else if let Some(path) = self.roles.resolve(names[role], rest) {
                let number = u32::try_from(places.len()).map_err(|_| Malformed::TooLarge)?;
                places.push(Place { path, stamp: None, answers: SmallVec::new() });
                known.insert(rest.into(), number);
                numbers.push(number);
            } else {
                all = false;
            }
        }
        sight.room = table.room();
        Ok(all.then_some(numbers))
    }

    /// Whether what has a name in a group is as it was.
    fn skim_member(&self, head: Head, reader: &mut Reader<'_>, groups: &[Digest], held: &mut [bool]) -> Result<bool, Malformed> {
        let mut after = reader.clone();
        let at = after.index()?;
        let group = *groups.get(at).ok_or(Malformed::Unexpected)?;
        if held[at] || self.group_holds(group) {
            held[at] = true;
            after.bytes()?;
            *reader = after;
            head.end()?;
            return Ok(true);
        }
        let seen = head.observation(reader, None, groups, self.roles)?;
        Ok(seen.is_some_and(|seen| self.is_so(&seen)))
    }

    fn skim_observation(&self, head: Head, reader: &mut Reader<'_>, place: Option<u32>) -> Result<bool, Malformed> {
        let (place, kind) = match (place, head.kind) {
            (Some(place), 24) => {
                // Whoever need not read code need not know what text it came from.
                reader.fixed::<32>()?;
                (place, 22)
            }
            (Some(place), kind @ (0 | 1 | 3..=8 | 20 | 22)) => (place, kind),
            (place, _) => {
                let path = place.and_then(|place| Some(self.judged.sight.borrow().places.get(place as usize)?.path.clone()));
                let seen = head.observation(reader, path, &[], self.roles)?;
                return Ok(seen.is_some_and(|seen| self.is_so(&seen)));
            }
        };
        let flag = matches!(kind, 6 | 8) && reader.bool()?;
        head.end()?;
        let called = kind as u8 * 2 + u8::from(flag);
        if let Some(known) = self.judged.sight.borrow().answer(place, called) {
            return Ok(known == head.digest);
        }
        let Some(answer) = self.ask_at_sight(kind, flag, place) else { return Ok(false) };
        self.count(|counts| counts.questions += 1);
        if let Some(place) = self.judged.sight.borrow_mut().places.get_mut(place as usize) {
            place.answers.push((called, answer));
        }
        Ok(answer == head.digest)
    }

    /// The answer, if nothing has to be read for it.
    fn ask_at_sight(&self, kind: u64, flag: bool, number: u32) -> Option<Digest> {
        let (path, stamp) = {
            let sight = self.judged.sight.borrow();
            let place = sight.places.get(number as usize)?;
            (place.path.clone(), place.stamp)
        };
        if !matches!(kind, 0 | 1 | 20 | 22) {
            return question_of(kind, flag, path)?.ask(self.host);
        }
        let stamp = match stamp {
            Some(known) => known,
            None => {
                let stamp = settled(self.host, &path, self.now);
                self.judged.sight.borrow_mut().places.get_mut(number as usize)?.stamp = Some(stamp);
                stamp
            }
        };
        let digest = self.witness.vouched(&question_of(kind, flag, path)?, &stamp?)?;
        self.count(|counts| counts.vouched += 1);
        Some(digest)
    }

    /// The answer to a question, if it was asked at sight.
    pub(super) fn seen_at_sight(&self, question: &Question) -> Option<Digest> {
        let path = question.path()?;
        let called = match question {
            Question::File(_) => 0,
            Question::Directory(_) => 2,
            Question::Type(_) => 6,
            Question::Stat(_) => 8,
            Question::Link(_) => 10,
            Question::Resolve(_, follow) => 12 + u8::from(*follow == Follow::Full),
            Question::ExprPath(_) => 14,
            Question::Exists(_, must_be_dir) => 16 + u8::from(*must_be_dir),
            Question::Outline(_) => 40,
            Question::Code(_) => 44,
            _ => return None,
        };
        let sight = self.judged.sight.borrow();
        let (role, rest) = self.roles.place(path);
        let known = &sight.roles.iter().find(|(name, _)| **name == *role)?.1;
        sight.answer(*known.get(rest)?, called)
    }
}

#[cfg(test)]
mod tests {
    use crate::kept::observation::Node;
    use crate::kept::{Judged, Roles, Verifier, Witness};
    use firn_host::{AbsPath, Digest, Durability, Follow, Host, MemoryHost, MemoryWorld, Observation, Question, Stamp};
    use std::borrow::Cow;

    /// A database that has nothing but what each state vouches for: what is there.
    struct Vouching<'h>(&'h MemoryHost);

    impl Witness for Vouching<'_> {
        fn node(&self, _: &Digest) -> Option<Cow<'_, [u8]>> {
            None
        }

        fn vouched(&self, question: &Question, _: &Stamp) -> Option<Digest> {
            question.ask(self.0)
        }

        fn vouch(&self, _: &Question, _: &Stamp, _: Digest) {}

        fn store_object(&self, _: &[u8]) -> Option<Digest> {
            None
        }
    }

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text.as_bytes()).unwrap()
    }

    fn observed(host: &MemoryHost) -> Vec<Observation> {
        let at = |text: &str| path(&format!("/s{text}"));
        let questions = [
            Question::File(at("/x")),
            Question::Code(at("/x")),
            Question::Type(at("/x")),
            Question::Stat(at("/x")),
            Question::Stat(at("/none")),
            Question::Resolve(at("/d/y"), Follow::Full),
            Question::Resolve(at("/d/y"), Follow::Ancestors),
            Question::ExprPath(at("/d")),
            Question::Exists(at("/d"), true),
            Question::Exists(at("/d"), false),
            Question::Directory(at("/d")),
            Question::DirectoryEntry(at("/d"), b"y"[..].into()),
            Question::Env(b"NAME"[..].into()),
        ];
        let observed = |question: Question| {
            let digest = question.ask(host).unwrap();
            Observation::new(question, digest, Durability::Medium)
        };
        questions.map(observed).into()
    }

    fn host() -> MemoryHost {
        let world = MemoryWorld::new();
        world.write("/s/x", "[ 1 ]");
        world.write("/s/d/y", "y");
        world.set_time(1 << 40);
        let host = MemoryHost::new(world);
        // Their states are old enough to vouch.
        assert!(host.lstat(&path("/s/x")).unwrap().unwrap().stamp.is_settled(host.current_time()));
        host
    }

    #[test]
    fn what_is_seen_at_sight_holds() {
        let host = host();
        let (witness, mut roles) = (Vouching(&host), Roles::new());
        roles.assign("entry", path("/s"));
        let is_seen = |own: &[Observation]| {
            let bytes = Node { own: own.to_vec(), ..Node::default() }.encode(&roles);
            let judged = Judged::default();
            let verifier = Verifier::new(&host, &witness, &roles, &judged);
            // What was seen once is seen again, and nobody need ask then.
            let seen = verifier.at_sight(&bytes).is_some();
            let asked = judged.counts().questions;
            assert_eq!(verifier.at_sight(&bytes).is_some(), seen);
            assert!(!seen || asked == judged.counts().questions && asked == own.len() as u64);
            seen
        };
        let own = observed(&host);
        assert!(is_seen(&own));
        for at in 0..own.len() {
            let mut other = own.clone();
            other[at].digest.0[at] ^= 1;
            assert!(!is_seen(&other), "{:?}", other[at]);
        }
    }

    #[test]
    fn damaged_nodes_are_not_seen() {
        let host = host();
        let (witness, mut roles) = (Vouching(&host), Roles::new());
        roles.assign("entry", path("/s"));
        let bytes = Node { own: observed(&host), children: vec![Digest([7; 32])], ..Node::default() }.encode(&roles);
        let mut seen = 0;
        let mut look = |bytes: &[u8]| {
            let judged = Judged::default();
            let verifier = Verifier::new(&host, &witness, &roles, &judged);
            if let Some(children) = verifier.at_sight(bytes) {
                let (whole, own) = Node::decode(bytes, &roles).expect("what is seen can be read");
                assert_eq!(&children[..], &whole[..]);
                let (own, other) = (own.into_iter().map(|seen| seen.expect("it is about trees of this run")), Judged::default());
                let verifier = Verifier::new(&host, &witness, &roles, &other);
                assert!(own.into_iter().all(|seen| verifier.is_so(&seen)));
                seen += 1;
            }
        };
        for len in 0..bytes.len() {
            look(&bytes[..len]);
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            look(&flipped);
        }
        // Only what need not hold may be another: a child, how long an answer lasts.
        assert!((256..1024).contains(&seen), "{seen}");
    }
}
