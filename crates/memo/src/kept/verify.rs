//! `Verifier`: whether what was once observed is still so (spec L2.4).
//!
//! 1. A record's observations are a graph of nodes; a node holds if all its observations hold and all nodes below do.
//! 2. Each node and each question is judged once per run, whichever records share it.
//! 3. Within a node what costs nothing is asked first (variables, places), then what `lstat` can tell, then the rest.
//! 4. The content of a file, and the listing of a directory, need not be read where the state of the file is one that
//!    an earlier reading vouched for, and that state is old enough to tell two contents apart.
//! 5. What is under a name among places is as it was if the places are; otherwise they are looked into (`members.rs`).
//! 6. Once it is clear that much has to be read, everything is asked on several threads.
//! 7. What can be told while the bytes of a node are read is told then (`sight.rs`).
//! 8. Whatever cannot be asked again does not hold.

mod ahead;
mod changes;
mod members;
mod sight;

pub use changes::{Change, Ground};

use super::document::digest_key;
use super::observation::{Decoded, Node};
use super::roles::Roles;
use super::sets::is_storable;
use firn_host::{AbsPath, Digest, Durability, Group, Host, Observation, Question, Stamp};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What verification needs from outside besides the host.
pub trait Witness {
    /// The bytes of a node of observations: those that have this digest.
    fn node(&self, digest: &Digest) -> Option<Cow<'_, [u8]>>;

    /// The same, if it need not be waited for.
    fn node_now(&self, digest: &Digest) -> Option<Cow<'_, [u8]>> {
        self.node(digest)
    }

    /// The digest that was found when the file or directory at a path was in this state.
    fn vouched(&self, question: &Question, stamp: &Stamp) -> Option<Digest>;

    /// Notes what a state was found to vouch for.
    fn vouch(&self, question: &Question, stamp: &Stamp, digest: Digest);

    /// As [`Witness::vouched`], for another thread; none if nothing is vouched for.
    fn voucher(&self) -> Option<Box<dyn Voucher + '_>> {
        None
    }

    /// The digest of what the store says of an object, by its printed path.
    fn store_object(&self, path: &[u8]) -> Option<Digest>;
}

/// Knows what states vouch for, as [`Witness::vouched`] says.
pub trait Voucher: Send {
    /// The digest that was found when the file or directory at a path was in this state.
    fn vouched(&self, question: &Question, stamp: &Stamp) -> Option<Digest>;
}

/// What verification did.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Questions judged.
    pub questions: u64,
    /// Of those, contents and listings that a state vouched for.
    pub vouched: u64,
    /// Contents and listings that were read.
    pub read: u64,
    /// Nodes judged.
    pub nodes: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            questions: self.questions + other.questions,
            vouched: self.vouched + other.vouched,
            read: self.read + other.read,
            nodes: self.nodes + other.nodes,
        }
    }
}

/// What was judged in a run.
#[derive(Default)]
pub struct Judged {
    answers: RefCell<FxHashMap<Question, Option<Digest>>>,
    nodes: RefCell<FxHashMap<Digest, bool>>,
    common: Arc<Common>,
    counts: Cell<Counts>,
    failed: RefCell<Option<Question>>,
    /// Of files, the digests of bytes and of the code that is in them, as nodes say.
    texts: RefCell<FxHashMap<AbsPath, (Digest, Digest)>>,
    sight: RefCell<sight::Sight>,
}

impl Judged {
    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// For a thread that judges beside this one, through the same host.
    pub fn beside(&self) -> Judged {
        Judged { common: self.common.clone(), ..Judged::default() }
    }

    /// Nodes have to be judged anew: trees have other roles now.
    pub fn forget_nodes(&self) {
        self.nodes.borrow_mut().clear();
        self.common.groups.forget();
        self.common.held.forget();
        self.sight.borrow_mut().forget();
        self.answers.borrow_mut().retain(|question, _| !matches!(question, Question::Member(..)));
    }
}

/// What is known by all who judge beside each other.
#[derive(Default)]
struct Common {
    groups: members::Groups,
    held: Held,
}

/// Nodes that hold.
// PERF: of 10,600 nodes that two threads judged for a thousand jobs 1,800 were judged by both: a tenth of the instructions.
#[derive(Default)]
struct Held([Mutex<FxHashSet<Digest>>; 32]);

impl Held {
    fn part(&self, digest: &Digest) -> MutexGuard<'_, FxHashSet<Digest>> {
        self.0[usize::from(digest.0[31]) % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self) {
        self.0.iter().for_each(|part| part.lock().unwrap_or_else(PoisonError::into_inner).clear());
    }
}

/// The way through the nodes under a root.
struct Way {
    /// Nodes to judge; marked, those of which only what is below them is not judged yet.
    todo: Vec<(Digest, bool)>,
    /// Nodes that were opened before their turn.
    opened: FxHashMap<Digest, Opened>,
    /// Contents and listings that had been read when it began.
    read_before: u64,
}

/// What a node says.
#[derive(Default)]
struct Opened {
    children: Vec<Digest>,
    /// It was asked about before its turn.
    is_asked: bool,
    /// None: something in it names a tree that this run does not have, or it cannot be read.
    own: Option<Vec<Observation>>,
}

/// Judges observations; what was judged before in the run stays so.
pub struct Verifier<'a> {
    host: &'a dyn Host,
    witness: &'a dyn Witness,
    roles: &'a Roles,
    now: i64,
    judged: &'a Judged,
}

impl<'a> Verifier<'a> {
    /// `host` answers as it would answer the evaluation, and is not one that writes down what it is asked.
    pub fn new(host: &'a dyn Host, witness: &'a dyn Witness, roles: &'a Roles, judged: &'a Judged) -> Verifier<'a> {
        Verifier { host, witness, roles, now: host.current_time(), judged }
    }

    /// The question whose answer was last found to be another, if one was.
    pub fn changed(&self) -> Option<Question> {
        self.judged.failed.borrow().clone()
    }

    /// Whether everything observed under this node is still so.
    pub fn holds(&self, root: Digest) -> bool {
        self.judged.failed.replace(None);
        let mut way = Way { todo: vec![(root, false)], ..self.way() };
        while let Some((digest, is_below_judged)) = way.todo.pop() {
            // All below have been judged: the first that fails ends the walk, so they hold.
            if is_below_judged {
                self.found_to_hold(digest);
                continue;
            }
            match self.known_of(digest) {
                Some(true) => continue,
                Some(false) => return self.fail(&way),
                None => {}
            }
            let opened = match way.opened.remove(&digest) {
                Some(opened) => opened,
                None => {
                    // What is not there may be found later, elsewhere: nothing is judged.
                    let Some(bytes) = self.witness.node(&digest) else { return false };
                    if let Some(children) = self.at_sight(&bytes) {
                        self.count(|counts| counts.nodes += 1);
                        match &children[..] {
                            [] => self.found_to_hold(digest),
                            below => {
                                way.todo.push((digest, true));
                                way.todo.extend(below.iter().map(|&child| (child, false)));
                            }
                        }
                        continue;
                    }
                    self.open(&bytes)
                }
            };
            self.count(|counts| counts.nodes += 1);
            way.todo.push((digest, true));
            way.todo.extend(opened.children.iter().map(|&child| (child, false)));
            if !self.all_hold(opened, &mut way) {
                self.judged.nodes.borrow_mut().insert(digest, false);
                return self.fail(&way);
            }
        }
        true
    }

    fn found_to_hold(&self, node: Digest) {
        self.judged.nodes.borrow_mut().insert(node, true);
        self.judged.common.held.part(&node).insert(node);
    }

    /// Whether a node holds, if it was judged.
    fn known_of(&self, node: Digest) -> Option<bool> {
        let known = self.judged.nodes.borrow().get(&node).copied();
        if known.is_none() && self.judged.common.held.part(&node).contains(&node) {
            self.judged.nodes.borrow_mut().insert(node, true);
            return Some(true);
        }
        known
    }

    fn way(&self) -> Way {
        Way { todo: Vec::new(), opened: FxHashMap::default(), read_before: self.judged.counts().read }
    }

    /// What contains something that does not hold does not hold either.
    fn fail(&self, way: &Way) -> bool {
        let above = way.todo.iter().filter(|(_, is_below_judged)| *is_below_judged);
        self.judged.nodes.borrow_mut().extend(above.map(|(digest, _)| (*digest, false)));
        false
    }

    fn open(&self, bytes: &[u8]) -> Opened {
        let Ok(Decoded { children, own, texts }) = Node::decode_all(bytes, self.roles) else {
            return Opened::default();
        };
        self.judged.texts.borrow_mut().extend(texts);
        let own = own.into_iter().collect::<Option<Vec<Observation>>>();
        Opened { children, own: own.map(cheapest_first), is_asked: false }
    }

    /// Whether all of this holds, cheapest first. Once much has to be read, everything that is known to lie ahead is asked on
    /// several threads.
    fn all_hold(&self, Opened { own, is_asked, .. }: Opened, way: &mut Way) -> bool {
        let (Some(own), mut is_asked) = (own, is_asked) else { return false };
        for (at, observation) in own.iter().enumerate() {
            if !is_asked && self.judged.counts().read >= way.read_before + ahead::ALONE {
                is_asked = true;
                let others = self.open_all(way);
                let others = others.iter().filter_map(|digest| way.opened.get(digest)?.own.as_ref());
                self.ask_ahead(own[at..].iter().chain(others.flatten()));
            }
            if !self.is_so(observation) {
                return false;
            }
        }
        true
    }

    /// Opens the nodes that are still to be judged, as far as they are there; which these are.
    fn open_all(&self, way: &mut Way) -> Vec<Digest> {
        let ahead = way.todo.iter().filter(|(_, is_below_judged)| !is_below_judged);
        let (mut todo, mut all): (Vec<Digest>, Vec<Digest>) = (ahead.map(|(digest, _)| *digest).collect(), Vec::new());
        while let Some(digest) = todo.pop() {
            if self.judged.nodes.borrow().contains_key(&digest) || way.opened.contains_key(&digest) {
                continue;
            }
            if let Some(opened) = self.witness.node_now(&digest).map(|bytes| self.open(&bytes)) {
                todo.extend(&opened.children);
                way.opened.insert(digest, Opened { is_asked: true, ..opened });
                all.push(digest);
            }
        }
        all
    }

    fn is_so(&self, observation: &Observation) -> bool {
        let so = match (&observation.question, observation.durability) {
            // A locked tree is what its reference says; whoever recorded it has checked that.
            (Question::Tree(_), Durability::High) => is_storable(observation),
            (Question::Member(Group::Kept(group), _), _) if self.group_holds(*group) => true,
            (question, _) => self.answer(question) == Some(observation.digest),
        };
        if !so {
            self.judged.failed.replace(Some(observation.question.clone()));
        }
        so
    }

    fn answer(&self, question: &Question) -> Option<Digest> {
        if let Some(known) = self.judged.answers.borrow().get(question) {
            return *known;
        }
        let answer = self.seen_at_sight(question).or_else(|| {
            self.count(|counts| counts.questions += 1);
            self.ask(question)
        });
        self.judged.answers.borrow_mut().insert(question.clone(), answer);
        answer
    }

    /// Content or a listing was read.
    fn was_read(&self, question: &Question, stamp: Option<&Stamp>, digest: Option<Digest>) {
        self.count(|counts| counts.read += 1);
        if let (Some(stamp), Some(digest)) = (stamp, digest) {
            self.witness.vouch(question, stamp, digest);
        }
    }

    fn ask(&self, question: &Question) -> Option<Digest> {
        match question {
            Question::File(path) | Question::Code(path) | Question::Outline(path) | Question::Directory(path) => {
                let stamp = settled(self.host, path, self.now);
                if let Some(stamp) = &stamp
                    && let Some(digest) = self.witness.vouched(question, stamp)
                {
                    self.count(|counts| counts.vouched += 1);
                    return Some(digest);
                }
                let digest = question.ask_knowing(self.host, self.known(question));
                self.was_read(question, stamp.as_ref(), digest);
                digest
            }
            Question::Key(path, format, names) => {
                let content = self.host.read_file(path).ok()?;
                digest_key(content.bytes(), *format, names)
            }
            Question::StorePath(path) => self.witness.store_object(path),
            Question::Location(role) => {
                let tree = self.roles.tree(std::str::from_utf8(role).ok()?)?;
                Some(digest_location(tree.as_bytes()))
            }
            Question::Member(Group::Kept(group), name) => self.member(*group, name),
            Question::Member(Group::Made(_), _) => None,
            // Never kept, whoever says so.
            Question::Time | Question::Tree(_) | Question::Output(..) | Question::System | Question::Setting(_) => None,
            other => other.ask(self.host),
        }
    }

    /// Of code, the bytes that it was found in elsewhere.
    // PERF: hashing a file costs a third of reading its code.
    fn known(&self, question: &Question) -> Option<(Digest, Digest)> {
        let Question::Code(path) = question else { return None };
        self.judged.texts.borrow().get(path).copied()
    }

    fn count(&self, add: impl FnOnce(&mut Counts)) {
        let mut counts = self.judged.counts.get();
        add(&mut counts);
        self.judged.counts.set(counts);
    }
}

/// The state of what is at the path, if it is old enough to vouch.
fn settled(host: &dyn Host, path: &AbsPath, now: i64) -> Option<Stamp> {
    host.lstat(path).ok()?.map(|stat| stat.stamp).filter(|stamp| stamp.is_settled(now))
}

/// The digest of where a tree lies.
pub fn digest_location(path: &[u8]) -> Digest {
    Digest(blake3::derive_key("firn memo 2026-11 location", path))
}

fn cheapest_first(mut observations: Vec<Observation>) -> Vec<Observation> {
    observations.sort_by_key(|observation| price(&observation.question));
    observations
}

/// What it costs to ask, roughly.
fn price(question: &Question) -> u8 {
    match question {
        Question::Location(_) | Question::Env(_) | Question::Home | Question::CurrentDir | Question::Time => 0,
        Question::File(_) | Question::Code(_) | Question::Type(_) | Question::Stat(_) | Question::Link(_) | Question::Exists(..) => 1,
        Question::Resolve(..) | Question::ExprPath(_) | Question::SearchPath(..) => 2,
        Question::Directory(_) | Question::DirectoryEntry(..) => 3,
        _ => 4,
    }
}
