//! `Sets`: interned sets of observations, by number ([`Trees`]). What is first observed together lies together, so sets that
//! overlap share most of their trees, in memory and as nodes of bytes on disk. Shared by all threads.
//!
//! What evaluation waits for is apart from what keeping answers takes long to do: observations, and the groups that names are looked up
//! in, have locks of their own. Invariant: whoever has several takes `tables` first, then `groups`, then `observed`.

mod groups;
mod observed;
mod reads;
mod trees;

use super::digests;
use super::observation::Node;
use super::roles::Roles;
use firn_host::{AbsPath, Answer, Digest, Durability, Group, Observation, Question, Seen};
use observed::Observed;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
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

    pub(super) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn of_number(number: u32) -> SetId {
        SetId(number)
    }
}

/// A group of places that names are looked up in, in a [`Sets`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupId(pub u32);

impl ObservationId {
    /// Stands for all observations of a run that made too many.
    pub(super) const BEYOND: ObservationId = ObservationId(0);
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

/// What is known of a node that was written as bytes.
#[derive(Clone, Copy)]
struct Written {
    digest: Digest,
    durability: Durability,
}

struct Tables {
    trees: Trees,
    /// Of nodes by level, place and number; or what in them must not be stored.
    written: FxHashMap<(usize, u32, u32), Result<Written, ObservationId>>,
    /// Of those that are written together, by place and which they are.
    written_together: FxHashMap<(u32, u64), Result<Written, ObservationId>>,
    /// Of groups that were written as bytes; or what in them must not be stored.
    written_groups: FxHashMap<GroupId, Result<Digest, ObservationId>>,
    /// Of what groups have under names, as it is kept.
    // PERF: each is in some node of nearly every job that looks it up, and its digest is made from its places.
    kept_members: FxHashMap<ObservationId, Observation>,
    /// Groups that are not written yet, as bytes.
    groups_ahead: FxHashMap<GroupId, (Digest, Vec<u8>)>,
    written_for: Roles,
    /// What was told of as read ([`Sets::fresh_reads`]).
    told: SetId,
    /// Groups whose places were told of.
    told_groups: FxHashSet<GroupId>,
}

/// The sets of a process.
pub struct Sets {
    observed: RwLock<Observed>,
    groups: Mutex<Trees>,
    tables: Mutex<Tables>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
        let tables = Tables {
            trees: Trees::new(),
            written: FxHashMap::default(),
            written_together: FxHashMap::default(),
            written_groups: FxHashMap::default(),
            groups_ahead: FxHashMap::default(),
            kept_members: FxHashMap::default(),
            written_for: Roles::new(),
            told: SetId::EMPTY,
            told_groups: FxHashSet::default(),
        };
        Sets { observed: RwLock::new(Observed::new()), groups: Mutex::new(Trees::new()), tables: Mutex::new(tables) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        lock(&self.tables)
    }

    fn observed(&self) -> RwLockReadGuard<'_, Observed> {
        self.observed.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn observed_mut(&self) -> RwLockWriteGuard<'_, Observed> {
        self.observed.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an observation. `read` says that it is the content of a file, or a listing, that there was.
    pub fn observe(&self, observation: &Observation, read: bool) -> ObservationId {
        // PERF: most were observed before, and need no copy of the question.
        let known = self.observed().find(&observation.question, |answer| answer.digest() == observation.digest);
        known.unwrap_or_else(|| self.see_anew(&observation.clone().into(), read))
    }

    /// As [`Sets::observe`], of what may have no digest yet: one is made ahead of need.
    pub fn see(&self, seen: &Seen, read: bool) -> ObservationId {
        let known = self.observed().find(&seen.question, |answer| answer.is_same(&seen.answer));
        known.unwrap_or_else(|| self.see_anew(seen, read))
    }

    fn see_anew(&self, seen: &Seen, read: bool) -> ObservationId {
        let mut observed = self.observed_mut();
        // Somebody else may have seen it meanwhile.
        if let Some(id) = observed.find(&seen.question, |answer| answer.is_same(&seen.answer)) {
            return id;
        }
        if observed.len() >= MOST {
            return ObservationId::BEYOND;
        }
        let is_another = observed.has(&seen.question);
        let id = observed.add(seen, read);
        drop(observed);
        if is_another {
            // The answer changed while evaluation ran: nothing that rests on either is kept.
            let mut tables = self.tables();
            self.observed_mut().reject(id);
            tables.forget_written();
        }
        if let Answer::Promised(promised) = &seen.answer {
            digests::make_ahead(promised);
        }
        id
    }

    /// How many observations there are, with those that stand for none.
    pub(super) fn observed_so_far(&self) -> u32 {
        self.observed().len()
    }

    /// What a number stands for.
    pub fn observation(&self, id: ObservationId) -> Observation {
        let seen = self.observed().seen(id).clone();
        seen.observation()
    }

    /// Those of these whose question is so.
    pub fn filter(&self, ids: &[ObservationId], mut is_so: impl FnMut(&Question) -> bool) -> Vec<ObservationId> {
        let observed = self.observed();
        ids.iter().copied().filter(|&id| is_so(&observed.seen(id).question)).collect()
    }

    /// The set of one observation.
    pub fn only(&self, id: ObservationId) -> SetId {
        self.tables().trees.only(id)
    }

    /// The set of these observations and sets together.
    pub fn join(&self, own: &[ObservationId], sets: &[SetId]) -> SetId {
        self.tables().trees.join(own, sets)
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
        self.all_of(&self.ids(set))
    }

    fn all_of(&self, ids: &[ObservationId]) -> Vec<Observation> {
        let observed = self.observed();
        let seen: Vec<Seen> = ids.iter().map(|&id| observed.seen(id).clone()).collect();
        drop(observed);
        seen.iter().map(Seen::observation).collect()
    }

    /// As [`Sets::members`], less what follows from the rest, as it would be kept.
    pub fn essentials(&self, set: SetId, roles: &Roles) -> Vec<Observation> {
        let ids = self.ids(set);
        let essentials = self.observed().essentials(&ids);
        let kept = |(id, seen): (ObservationId, Seen)| match seen.question {
            Question::Member(Group::Made(group), _) => self.kept_member(id, self.encode_group(GroupId(group), roles).0, roles),
            _ => seen.observation(),
        };
        essentials.into_iter().map(kept).collect()
    }

    /// The set less what was read of the code of these files; that they are files, and where they lie, stays.
    pub fn without_code<'p>(&self, set: SetId, paths: impl IntoIterator<Item = &'p AbsPath>) -> SetId {
        let codes: FxHashSet<Question> = paths.into_iter().map(|path| Question::Code(path.clone())).collect();
        let mut ids = self.ids(set);
        let observed = self.observed();
        let mut files = Vec::new();
        ids.retain(|&id| {
            let seen = observed.seen(id);
            let is_code = codes.contains(&seen.question);
            files.extend(seen.question.path().filter(|_| is_code).map(|path| (path.clone(), seen.durability)));
            !is_code
        });
        drop(observed);
        for (path, durability) in files {
            ids.extend(Observation::of_file(&path, durability).map(|seen| self.observe(&seen, false)));
        }
        self.join(&ids, &[])
    }

    /// The bytes of these files, as they were when they were read.
    pub fn texts_of<'p>(&self, paths: impl IntoIterator<Item = &'p AbsPath>) -> Vec<ObservationId> {
        let observed = self.observed();
        // More than one for a path: it changed while evaluation ran, and nothing that rests on either is kept.
        paths.into_iter().flat_map(|path| observed.answers_to(&Question::File(path.clone()))).collect()
    }

    /// Notes which bytes the code of a file was read from.
    pub fn pair(&self, code: ObservationId, text: ObservationId) {
        self.observed_mut().texts.insert(code, text);
    }

    /// A set and with it the bytes of all files whose code is in it.
    pub fn with_texts(&self, set: SetId) -> SetId {
        let ids = self.ids(set);
        let observed = self.observed();
        let texts: Vec<ObservationId> = ids.iter().filter_map(|id| observed.texts.get(id).copied()).collect();
        drop(observed);
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
                self.write(&mut tables, level, root, 0, &mut new)
            }
        };
        match written {
            Ok(Written { digest, durability }) => Ok(Encoded { root: digest, durability, nodes: new }),
            Err(id) => Err(NotStorable::Question(self.observed().seen(id).question.clone())),
        }
    }
}

impl Tables {
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
}

impl Sets {
    /// Writes the node at place `from` of its level.
    fn write(&self, tables: &mut Tables, level: usize, node: u32, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        // The same node means other observations elsewhere in the tree: its place is part of its name.
        let key = (level, from, node);
        if let Some(&written) = tables.written.get(&key) {
            return written;
        }
        let written = self.write_below(tables, level, node, from, new);
        tables.written.insert(key, written);
        written
    }

    fn write_below(&self, tables: &mut Tables, level: usize, node: u32, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        let branches = tables.trees.node(level, node);
        let mut below = Vec::new();
        match level.checked_sub(1) {
            Some(next) => {
                for (at, &branch) in (from * branches.len() as u32..).zip(&branches).filter(|(_, branch)| **branch != 0) {
                    below.push(self.write(tables, next, branch, at, new)?);
                }
            }
            None => {
                let words = branches.chunks_exact(2).map(|pair| u64::from(pair[1]) << u32::BITS | u64::from(pair[0]));
                for (at, word) in (from * (LEAF / TOGETHER)..).zip(words).filter(|(_, word)| *word != 0) {
                    below.push(self.write_together(tables, word, at, new)?);
                }
            }
        }
        let durability = below.iter().map(|written| written.durability).min().unwrap_or(Durability::High);
        let children: Vec<Digest> = below.iter().map(|written| written.digest).collect();
        if let [only] = children[..] {
            return Ok(Written { digest: only, durability });
        }
        let bytes = Node { children, ..Node::default() }.encode(&tables.written_for);
        let digest = Node::digest(&bytes);
        new.push((digest, bytes));
        Ok(Written { digest, durability })
    }

    /// Writes the observations of a word of bits as one node.
    fn write_together(&self, tables: &mut Tables, word: u64, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        if let Some(&written) = tables.written_together.get(&(from, word)) {
            return written;
        }
        let written = self.write_own(tables, word, from, new);
        tables.written_together.insert((from, word), written);
        written
    }

    fn write_own(&self, tables: &mut Tables, word: u64, from: u32, new: &mut Nodes) -> Result<Written, ObservationId> {
        let ids: Vec<ObservationId> = (0..TOGETHER).filter(|i| word >> i & 1 != 0).map(|i| ObservationId(from * TOGETHER + i)).collect();
        let observed = self.observed();
        if let Some(bad) = observed.unstorable(&ids) {
            return Err(bad);
        }
        let durability = ids.iter().map(|&id| observed.seen(id).durability).min().unwrap_or(Durability::High);
        let (essentials, texts) = (observed.essentials(&ids), observed.texts_under(&ids));
        // Nobody who observes something waits for digests.
        drop(observed);
        let mut own = Vec::with_capacity(essentials.len());
        for (id, seen) in essentials {
            own.push(match seen.question {
                Question::Member(Group::Made(group), _) => self.write_member(tables, id, GroupId(group), new)?,
                _ => seen.observation(),
            });
        }
        let texts = texts.into_iter().map(|(path, text)| (path, text.digest())).collect();
        let bytes = Node { own, texts, ..Node::default() }.encode(&tables.written_for);
        let digest = Node::digest(&bytes);
        new.push((digest, bytes));
        Ok(Written { digest, durability })
    }
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
