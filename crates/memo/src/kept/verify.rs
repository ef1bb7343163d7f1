//! `Verifier`: whether what was once observed is still so (spec L2.4).
//!
//! 1. A record's observations are a graph of nodes; a node holds if all its observations hold and all nodes below do.
//! 2. Each node and each question is judged once per run, whichever records share it.
//! 3. Within a node what costs nothing is asked first (variables, places), then what `lstat` can tell, then the rest.
//! 4. The content of a file, and the listing of a directory, need not be read where the state of the file is one that
//!    an earlier reading vouched for, and that state is old enough to tell two contents apart.
//! 5. What is under a name among places is as it was if the places are; otherwise they are looked into (`members.rs`).
//! 6. What has to be read is read on several threads, once it is clear that much has to be.
//! 7. Whatever cannot be asked again does not hold.

mod ahead;
mod changes;
mod members;

pub use changes::{Change, Ground};

use super::document::digest_key;
use super::observation::{Decoded, Node};
use super::roles::Roles;
use super::sets::is_storable;
use firn_host::{AbsPath, Digest, Durability, Group, Host, Observation, Question, Stamp};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What verification needs from outside besides the host.
pub trait Witness {
    /// The bytes of a node of observations.
    fn node(&self, digest: &Digest) -> Option<Vec<u8>>;

    /// The digest that was found when the file or directory at a path was in this state.
    fn vouched(&self, question: &Question, stamp: &Stamp) -> Option<Digest>;

    /// Notes what a state was found to vouch for.
    fn vouch(&self, question: &Question, stamp: &Stamp, digest: Digest);

    /// The digest of what the store says of an object, by its printed path.
    fn store_object(&self, path: &[u8]) -> Option<Digest>;

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

/// What was judged in a run.
#[derive(Default)]
pub struct Judged {
    answers: RefCell<FxHashMap<Question, Option<Digest>>>,
    nodes: RefCell<FxHashMap<Digest, bool>>,
    /// The places of groups, as they were; none if they are not known here.
    places: RefCell<FxHashMap<Digest, Option<members::Places>>>,
    /// Of groups that are not as they were, what is in them now; none if that cannot be told.
    groups: RefCell<FxHashMap<Digest, Option<Arc<members::Names>>>>,
    counts: Cell<Counts>,
    failed: RefCell<Option<Question>>,
    /// Of files, the digests of bytes and of the code that is in them, as nodes say.
    texts: RefCell<FxHashMap<AbsPath, (Digest, Digest)>>,
}

impl Judged {
    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Nodes have to be judged anew: trees have other roles now.
    pub fn forget_nodes(&self) {
        self.nodes.borrow_mut().clear();
        self.groups.borrow_mut().clear();
        self.places.borrow_mut().clear();
        self.answers.borrow_mut().retain(|question, _| !matches!(question, Question::Member(..)));
    }
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
        let mut todo = vec![(root, None::<Vec<Digest>>)];
        while let Some((digest, below)) = todo.pop() {
            match below {
                // All below have been judged: the first that fails ends the walk, so they hold.
                Some(_) => _ = self.judged.nodes.borrow_mut().insert(digest, true),
                None => {
                    let known = self.judged.nodes.borrow().get(&digest).copied();
                    match known {
                        Some(true) => continue,
                        Some(false) => return self.fail(&todo),
                        None => {}
                    }
                    let Some(bytes) = self.witness.node(&digest).filter(|bytes| Node::digest(bytes) == digest) else {
                        // It may be found later, elsewhere: nothing is judged.
                        return false;
                    };
                    let Some(children) = self.own_hold(&bytes) else {
                        self.judged.nodes.borrow_mut().insert(digest, false);
                        return self.fail(&todo);
                    };
                    let more: Vec<_> = children.iter().map(|&child| (child, None)).collect();
                    todo.push((digest, Some(children)));
                    todo.extend(more);
                }
            }
        }
        true
    }

    /// What contains something that does not hold does not hold either.
    fn fail(&self, todo: &[(Digest, Option<Vec<Digest>>)]) -> bool {
        let mut nodes = self.judged.nodes.borrow_mut();
        for (digest, below) in todo {
            if below.is_some() {
                nodes.insert(*digest, false);
            }
        }
        false
    }

    /// The nodes below, if what was observed in the node itself is still so.
    fn own_hold(&self, bytes: &[u8]) -> Option<Vec<Digest>> {
        self.count(|counts| counts.nodes += 1);
        let Decoded { children, own, texts } = Node::decode_all(bytes, self.roles).ok()?;
        self.judged.texts.borrow_mut().extend(texts);
        let own = own.into_iter().collect::<Option<Vec<Observation>>>()?;
        self.all_hold(own).then_some(children)
    }

    fn all_hold(&self, mut own: Vec<Observation>) -> bool {
        own.sort_by_key(|observation| price(&observation.question));
        let (already, mut ahead) = (self.judged.counts().read, false);
        for (at, observation) in own.iter().enumerate() {
            if !ahead && self.judged.counts().read >= already + ahead::ALONE {
                ahead = true;
                self.read_ahead(&own[at..]);
            }
            if !self.is_so(observation) {
                return false;
            }
        }
        true
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
        let answer = self.ask(question);
        self.count(|counts| counts.questions += 1);
        self.judged.answers.borrow_mut().insert(question.clone(), answer);
        answer
    }

    /// The state of what is at the path, if it is old enough to vouch.
    fn settled(&self, path: &AbsPath) -> Option<Stamp> {
        self.host.lstat(path).ok()?.map(|stat| stat.stamp).filter(|stamp| stamp.is_settled(self.now))
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
            Question::File(path) | Question::Code(path) | Question::Directory(path) => {
                let stamp = self.settled(path);
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

/// The digest of where a tree lies.
pub fn digest_location(path: &[u8]) -> Digest {
    Digest(blake3::derive_key("firn memo 2026-11 location", path))
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
