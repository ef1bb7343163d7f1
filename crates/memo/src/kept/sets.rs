//! `Sets`: interned sets of observations, by number ([`Trees`]). What is first observed together lies together, so sets that
//! overlap share most of their trees, in memory and as nodes of bytes on disk. Shared by all threads.

mod groups;
mod reads;
mod trees;

use super::digests;
use super::group::Given;
use super::observation::Node;
use super::roles::Roles;
use firn_host::{AbsPath, Answer, Digest, Durability, Group, Observation, Question, Seen};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trees::{LEAF, MOST, Trees};

/// A set of observations in a [`Sets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SetId(pub(super) u32);

/// An observation in a [`Sets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObservationId(u32);

impl SetId {
    /// The set of nothing.
    pub const EMPTY: SetId = SetId(0);

    /// The set as values carry it.
    pub fn label(self) -> u32 {
        self.0
    }

    /// The set that a value carries.
    pub fn of_label(label: u32) -> SetId {
        SetId(label)
    }
}

impl ObservationId {
    /// Stands for all observations of a run that made too many.
    const BEYOND: ObservationId = ObservationId(0);
    /// Something was printed: no observation, but what it belongs to must know.
    pub const PRINTED: ObservationId = ObservationId(1);

    pub(super) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn of_number(number: u32) -> ObservationId {
        ObservationId(number)
    }
}

/// Observations that are written as one node.
const TOGETHER: u32 = u64::BITS;

struct Known {
    seen: Seen,
    /// Whether the answer may outlive the run.
    storable: bool,
    /// A file whose content was read, or a directory that was listed.
    read: bool,
    /// Another answer to the same question, which came before.
    before: Option<ObservationId>,
}

impl Known {
    fn new(seen: Seen, read: bool, before: Option<ObservationId>) -> Known {
        let storable = may_outlive(&seen.question, seen.durability, || seen.answer.digest());
        Known { seen, storable, read, before }
    }
}

/// What is known of a node that was written as bytes.
#[derive(Clone, Copy)]
struct Written {
    digest: Digest,
    durability: Durability,
}

struct Tables {
    observations: Vec<Known>,
    /// The last one of each question.
    by_question: FxHashMap<Question, ObservationId>,
    /// Of the code of a file, the bytes that it was read from.
    texts: FxHashMap<ObservationId, ObservationId>,
    /// Of members of groups, which places have the name.
    members: FxHashMap<ObservationId, Given>,
    trees: Trees,
    /// Of nodes by level, place and number; or what in them must not be stored.
    written: FxHashMap<(usize, u32, u32), Result<Written, ObservationId>>,
    /// Of those that are written together, by place and which they are.
    written_together: FxHashMap<(u32, u64), Result<Written, ObservationId>>,
    /// Of groups that were written as bytes; or what in them must not be stored.
    written_groups: FxHashMap<SetId, Result<Digest, ObservationId>>,
    /// Of what groups have under names, as it is kept.
    // PERF: each is in some node of nearly every job that looks it up, and its digest is made from its places.
    kept_members: FxHashMap<ObservationId, Observation>,
    /// Groups that are not written yet, as bytes.
    groups_ahead: FxHashMap<SetId, (Digest, Vec<u8>)>,
    written_for: Roles,
    /// What was told of as read ([`Sets::fresh_reads`]).
    told: SetId,
}

/// The sets of a process.
pub struct Sets(Mutex<Tables>);

/// Nodes as bytes, by digest; those below before those above.
pub type Nodes = Vec<(Digest, Vec<u8>)>;

/// A set as bytes.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The node that stands for all of it.
    pub root: Digest,
    /// How long what is in it may be trusted.
    pub durability: Durability,
    /// Nodes that were not encoded before, those below before those above.
    pub nodes: Nodes,
}

impl Encoded {
    /// The same, and what is under another node that is stored already.
    pub fn and(mut self, other: Digest, durability: Durability, roles: &Roles) -> Encoded {
        let mut children = vec![self.root, other];
        children.sort_unstable();
        children.dedup();
        let bytes = Node { children, ..Node::default() }.encode(roles);
        self.root = Node::digest(&bytes);
        self.nodes.push((self.root, bytes));
        self.durability = self.durability.min(durability);
        self
    }
}

/// Why a result cannot be stored with its observations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotStorable {
    /// The answer to this changed while evaluation ran, or is never kept (time, network).
    Question(Question),
}

impl Default for Sets {
    fn default() -> Sets {
        Sets::new()
    }
}

impl Sets {
    /// Only the empty set.
    pub fn new() -> Sets {
        let mut tables = Tables {
            observations: Vec::new(),
            by_question: FxHashMap::default(),
            texts: FxHashMap::default(),
            members: FxHashMap::default(),
            trees: Trees::new(),
            written: FxHashMap::default(),
            written_together: FxHashMap::default(),
            written_groups: FxHashMap::default(),
            groups_ahead: FxHashMap::default(),
            kept_members: FxHashMap::default(),
            written_for: Roles::new(),
            told: SetId::EMPTY,
        };
        // No such setting is ever stored.
        for name in ["more observations than can be told apart", "something that was printed"] {
            let question = Question::Setting(name.as_bytes().into());
            let seen = Observation::new(question.clone(), Observation::digest_bytes(None), Durability::Low);
            tables.by_question.insert(question, ObservationId(tables.observations.len() as u32));
            tables.observations.push(Known::new(seen.into(), false, None));
        }
        Sets(Mutex::new(tables))
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an observation. `read` says that it is the content of a file, or a listing, that there was.
    pub fn observe(&self, observation: &Observation, read: bool) -> ObservationId {
        self.see(&observation.clone().into(), read)
    }

    /// As [`Sets::observe`], of what may have no digest yet: one is made ahead of need.
    pub fn see(&self, seen: &Seen, read: bool) -> ObservationId {
        let mut tables = self.tables();
        let before = tables.by_question.get(&seen.question).copied();
        let known = tables.answers(before).find(|id| tables.observations[id.0 as usize].seen.answer.digest() == seen.answer.digest());
        if let Some(id) = known {
            return id;
        }
        if tables.observations.len() >= MOST as usize {
            return ObservationId::BEYOND;
        }
        let id = ObservationId(tables.observations.len() as u32);
        tables.by_question.insert(seen.question.clone(), id);
        tables.observations.push(Known::new(seen.clone(), read, before));
        if before.is_some() {
            // The answer changed while evaluation ran: nothing that rests on either is kept.
            for id in tables.answers(Some(id)).collect::<Vec<_>>() {
                tables.observations[id.0 as usize].storable = false;
            }
            tables.forget_written();
        }
        drop(tables);
        if let Answer::Promised(promised) = &seen.answer {
            digests::make_ahead(promised);
        }
        id
    }

    /// What a number stands for.
    pub fn observation(&self, id: ObservationId) -> Observation {
        self.tables().observations[id.0 as usize].seen.observation()
    }

    /// Those of these whose question is so.
    pub fn filter(&self, ids: &[ObservationId], mut is_so: impl FnMut(&Question) -> bool) -> Vec<ObservationId> {
        let tables = self.tables();
        ids.iter().copied().filter(|id| is_so(&tables.observations[id.0 as usize].seen.question)).collect()
    }

    /// The set of one observation.
    pub fn only(&self, id: ObservationId) -> SetId {
        self.tables().trees.only(id)
    }

    /// The set of these observations and sets together.
    pub fn join(&self, own: &[ObservationId], sets: &[SetId]) -> SetId {
        let mut tables = self.tables();
        let own = tables.trees.of(own);
        let mut all: Vec<SetId> = [own].into_iter().chain(sets.iter().copied()).collect();
        // PERF: by pairs: joining one after the other would make as many large sets as there are members.
        while all.len() > 1 {
            all = all.chunks(2).map(|pair| pair.iter().fold(SetId::EMPTY, |set, &more| tables.trees.union(set, more))).collect();
        }
        all.pop().unwrap_or_default()
    }

    /// The union of two sets.
    pub fn union(&self, a: SetId, b: SetId) -> SetId {
        self.tables().trees.union(a, b)
    }

    /// The set and one observation more.
    pub fn with(&self, set: SetId, id: ObservationId) -> SetId {
        self.tables().trees.with(set, id)
    }

    /// The set less one observation.
    pub fn without(&self, set: SetId, id: ObservationId) -> SetId {
        let mut ids = self.ids(set);
        let count = ids.len();
        ids.retain(|&other| other != id);
        if ids.len() == count { set } else { self.join(&ids, &[]) }
    }

    /// The numbers of everything in a set, ascending.
    pub fn ids(&self, set: SetId) -> Vec<ObservationId> {
        self.tables().trees.ids(set)
    }

    /// The numbers of what is in a set and not in another, ascending.
    pub fn beyond(&self, set: SetId, other: SetId) -> Vec<ObservationId> {
        self.tables().trees.beyond(set, other)
    }

    /// Everything in a set, each once, in the order of first observation.
    pub fn members(&self, set: SetId) -> Vec<Observation> {
        let tables = self.tables();
        tables.trees.ids(set).iter().map(|id| tables.observations[id.0 as usize].seen.observation()).collect()
    }

    /// As [`Sets::members`], less what follows from the rest, as it would be kept.
    pub fn essentials(&self, set: SetId, roles: &Roles) -> Vec<Observation> {
        let tables = self.tables();
        let known: Vec<&Known> = tables.trees.ids(set).iter().map(|id| &tables.observations[id.0 as usize]).collect();
        let essentials = without_consequences(&known);
        let kept = |(id, seen): (ObservationId, Observation)| match seen.question {
            Question::Member(Group::Made(group), _) => tables.kept_member(id, &seen, tables.encode_group(SetId(group), roles).0, roles),
            _ => seen,
        };
        let ids = tables.trees.ids(set);
        essentials.into_iter().map(|at| kept((ids[at], known[at].seen.observation()))).collect()
    }

    /// The set less what was read of the code of these files; that they are files, and where they lie, stays.
    pub fn without_code<'p>(&self, set: SetId, paths: impl IntoIterator<Item = &'p AbsPath>) -> SetId {
        let codes: FxHashSet<Question> = paths.into_iter().map(|path| Question::Code(path.clone())).collect();
        let mut ids = self.ids(set);
        let tables = self.tables();
        let mut files = Vec::new();
        ids.retain(|id| {
            let seen = &tables.observations[id.0 as usize].seen;
            let is_code = codes.contains(&seen.question);
            files.extend(seen.question.path().filter(|_| is_code).map(|path| (path.clone(), seen.durability)));
            !is_code
        });
        drop(tables);
        for (path, durability) in files {
            ids.extend(Observation::of_file(&path, durability).map(|seen| self.observe(&seen, false)));
        }
        self.join(&ids, &[])
    }

    /// The bytes of these files, as they were when they were read.
    pub fn texts_of<'p>(&self, paths: impl IntoIterator<Item = &'p AbsPath>) -> SetId {
        let tables = self.tables();
        // More than one for a path: it changed while evaluation ran, and nothing that rests on either is kept.
        let of = |path: &AbsPath| tables.answers(tables.by_question.get(&Question::File(path.clone())).copied());
        let ids: Vec<ObservationId> = paths.into_iter().flat_map(of).collect();
        drop(tables);
        self.join(&ids, &[])
    }

    /// Notes which bytes the code of a file was read from.
    pub fn pair(&self, code: ObservationId, text: ObservationId) {
        self.tables().texts.insert(code, text);
    }

    /// A set and with it the bytes of all files whose code is in it.
    pub fn with_texts(&self, set: SetId) -> SetId {
        let tables = self.tables();
        let texts: Vec<ObservationId> = tables.trees.ids(set).iter().filter_map(|id| tables.texts.get(id).copied()).collect();
        drop(tables);
        self.join(&texts, &[set])
    }

    /// How many different sets there are.
    pub fn len(&self) -> usize {
        self.tables().trees.len()
    }

    /// Whether there is only the empty set.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// What is encoded next is to be for these roles.
    pub fn write_for(&self, roles: &Roles) {
        self.tables().write_for(roles);
    }

    /// The set as nodes of bytes. Fails where something in it must not be stored.
    pub fn encode(&self, set: SetId, roles: &Roles) -> Result<Encoded, NotStorable> {
        let mut tables = self.tables();
        tables.write_for(roles);
        let mut new = Nodes::new();
        let written = match set {
            SetId::EMPTY => {
                let bytes = Node::default().encode(roles);
                new.push((Node::digest(&bytes), bytes.clone()));
                Ok(Written { digest: Node::digest(&bytes), durability: Durability::High })
            }
            set => {
                let (level, root) = Trees::root(set);
                tables.write(level, root, 0, &mut new)
            }
        };
        match written {
            Ok(Written { digest, durability }) => Ok(Encoded { root: digest, durability, nodes: new }),
            Err(id) => Err(NotStorable::Question(tables.observations[id.0 as usize].seen.question.clone())),
        }
    }
}

impl Tables {
    /// An answer, and those before it to the same question.
    fn answers(&self, last: Option<ObservationId>) -> impl Iterator<Item = ObservationId> {
        std::iter::successors(last, |id| self.observations[id.0 as usize].before)
    }

    fn write_for(&mut self, roles: &Roles) {
        if self.written_for != *roles {
            self.forget_written();
            self.written_for = roles.clone();
        }
    }

    fn forget_written(&mut self) {
        self.written.clear();
        self.written_together.clear();
        self.written_groups.clear();
        self.groups_ahead.clear();
        self.kept_members.clear();
    }

    /// Writes the node at place `from` of its level.
    fn write(&mut self, level: usize, node: u32, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        // The same node means other observations elsewhere in the tree: its place is part of its name.
        let key = (level, from, node);
        if let Some(&written) = self.written.get(&key) {
            return written;
        }
        let written = self.write_below(level, node, from, new);
        self.written.insert(key, written);
        written
    }

    fn write_below(&mut self, level: usize, node: u32, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        let branches = self.trees.node(level, node);
        let mut below = Vec::new();
        match level.checked_sub(1) {
            Some(next) => {
                for (at, &branch) in (from * branches.len() as u32..).zip(&branches).filter(|(_, branch)| **branch != 0) {
                    below.push(self.write(next, branch, at, new)?);
                }
            }
            None => {
                let words = branches.chunks_exact(2).map(|pair| u64::from(pair[1]) << u32::BITS | u64::from(pair[0]));
                for (at, word) in (from * (LEAF / TOGETHER)..).zip(words).filter(|(_, word)| *word != 0) {
                    below.push(self.write_together(word, at, new)?);
                }
            }
        }
        let durability = below.iter().map(|written| written.durability).min().unwrap_or(Durability::High);
        let children: Vec<Digest> = below.iter().map(|written| written.digest).collect();
        if let [only] = children[..] {
            return Ok(Written { digest: only, durability });
        }
        let bytes = Node { children, ..Node::default() }.encode(&self.written_for);
        let digest = Node::digest(&bytes);
        new.push((digest, bytes));
        Ok(Written { digest, durability })
    }

    /// Writes the observations of a word of bits as one node.
    fn write_together(&mut self, word: u64, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        if let Some(&written) = self.written_together.get(&(from, word)) {
            return written;
        }
        let written = self.write_own(word, from, new);
        self.written_together.insert((from, word), written);
        written
    }

    fn write_own(&mut self, word: u64, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        let ids: Vec<u32> = (0..TOGETHER).filter(|i| word >> i & 1 != 0).map(|i| from * TOGETHER + i).collect();
        let known: Vec<&Known> = ids.iter().map(|&id| &self.observations[id as usize]).collect();
        if let Some(bad) = known.iter().position(|known| !known.storable) {
            return Err(ObservationId(ids[bad]));
        }
        let durability = known.iter().map(|known| known.seen.durability).min().unwrap_or(Durability::High);
        let essentials: Vec<ObservationId> = without_consequences(&known).into_iter().map(|at| ObservationId(ids[at])).collect();
        let mut own = Vec::with_capacity(essentials.len());
        for id in essentials {
            let seen = &self.observations[id.0 as usize].seen;
            own.push(match seen.question {
                Question::Member(Group::Made(group), _) => self.write_member(id, SetId(group), new)?,
                _ => seen.observation(),
            });
        }
        let ids: Vec<ObservationId> = ids.into_iter().map(ObservationId).collect();
        let texts = self.texts_under(&ids).map(|(path, text)| (path, text.digest())).collect();
        let bytes = Node { own, texts, ..Node::default() }.encode(&self.written_for);
        let digest = Node::digest(&bytes);
        new.push((digest, bytes));
        Ok(Written { digest, durability })
    }

    /// The bytes that code among these was read from.
    fn texts_under(&self, ids: &[ObservationId]) -> impl Iterator<Item = (AbsPath, Answer)> {
        ids.iter().filter_map(|id| {
            let (code, text) = (&self.observations[id.0 as usize].seen, self.texts.get(id)?);
            let Question::Code(path) = &code.question else { return None };
            Some((path.clone(), self.observations[text.0 as usize].seen.answer.clone()))
        })
    }
}

/// Which of these do not follow from the rest: that a path is itself does, where its content was read.
// PERF: few of them could follow, so each of those looks for what it follows from.
fn without_consequences(known: &[&Known]) -> Vec<usize> {
    let read = |is_so: &dyn Fn(&AbsPath, bool) -> bool| {
        known.iter().filter(|known| known.read).any(|known| match &known.seen.question {
            Question::File(read) | Question::Code(read) | Question::Outline(read) => is_so(read, true),
            Question::Directory(read) => is_so(read, false),
            _ => false,
        })
    };
    let is_file = |path: &AbsPath| read(&|read, is_file| is_file && read == path);
    let is_directory = |path: &AbsPath| read(&|read, is_file| read.is_within(path) && !(is_file && read == path));
    (0..known.len()).filter(|&at| !known[at].seen.follows_from(is_file, is_directory)).collect()
}

/// Whether an answer may outlive the run: time and network never do (spec L2.6), and what nobody could ask again is
/// never believed.
pub fn is_storable(observation: &Observation) -> bool {
    may_outlive(&observation.question, observation.durability, || observation.digest)
}

fn may_outlive(question: &Question, durability: Durability, digest: impl FnOnce() -> Digest) -> bool {
    match question {
        Question::Time | Question::Output(..) | Question::System | Question::Setting(_) => false,
        // A locked tree is what its reference says; a fetch that failed may succeed tomorrow, and a directory that no
        // longer has the hash it was locked with is an error.
        Question::Tree(reference) => {
            !reference.starts_with(b"path:") && durability == Durability::High && digest() != Observation::digest_bytes(None)
        }
        Question::SearchPath(..) => durability != Durability::Low,
        _ => true,
    }
}
