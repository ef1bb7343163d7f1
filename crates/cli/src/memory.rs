//! `Memory`: answers to whole questions, kept between runs (`--memo disk`).
//!
//! 1. A question is what the command line asks: an entry, an attribute path, arguments, settings, a form ([`Asked`]).
//! 2. [`Memory::recall`] looks for records of it, newest first, and verifies everything that was observed for them; the
//!    first that holds is the answer. Store objects that it refers to must be there where a store is written.
//! 3. Otherwise the command evaluates. Everything the process asks of the outside is written down meanwhile by the
//!    [`Recorder`], so what is kept with the answer ([`Memory::keep`]) is never too little.
//! 4. What was printed on the way is kept and printed again. In a run with several questions that cannot be told apart by
//!    question, so an answer that printed something is neither kept nor given there.

mod history;

pub use history::Remembered;

use crate::log::Log;
use crate::settings::Resolved;
use crate::shared::Shared;
use firn_cache::{Answer, Batch, Disk, Found, Reading, Writer};
use firn_host::{
    AbsPath, Digest, Durability, FileType, Host, Observation, Question, RecordedStore, Recording, Sink, Stamp, Stat,
    Store,
};
use firn_memo::kept::{
    Asked, Counts, ENTRY, Entry, HERE, Key, NotStorable, ObservationId, ROOT, Record, Roles, STORE, SetId, Sets, Stored, Verifier, Witness,
    digest_location, plain,
};
use firn_remote::Candidate;
use firn_store::store_dir::StoreDir;
use firn_value::{Context, List, ListBuilder, Value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Takes down what is observed, from any thread.
#[derive(Default)]
pub struct Recorder {
    sets: Sets,
    /// Observed since the last answer was kept.
    fresh: Mutex<Vec<ObservationId>>,
    /// What is in `fresh` or `earlier` already.
    noted: Mutex<HashSet<ObservationId>>,
    /// Observed before.
    earlier: Mutex<SetId>,
    /// The trees that may lie elsewhere on another day or machine, by role.
    trees: RwLock<Vec<(String, AbsPath)>>,
    /// Paths outside all trees that were written in full.
    in_full: Mutex<HashSet<Vec<u8>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sink for Recorder {
    fn observe(&self, observation: Observation) {
        let (id, _) = self.sets.observe(&observation);
        if lock(&self.noted).insert(id) {
            lock(&self.fresh).push(id);
        }
    }

    fn seen_at(&self, path: &[u8]) {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        match Recorder::tree_of(&trees, path) {
            Some(index) => self.observe(place(&trees[index])),
            None => _ = lock(&self.in_full).insert(path.to_vec()),
        }
    }

    fn related(&self, one: &[u8], other: &[u8]) {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        let found = [one, other].map(|path| Recorder::tree_of(&trees, path));
        if found[0] != found[1] {
            found.into_iter().flatten().for_each(|index| self.observe(place(&trees[index])));
        }
    }
}

/// The recorder as one that listens at the door.
struct Heard(Arc<Recorder>);

impl Sink for Heard {
    fn observe(&self, observation: Observation) {
        self.0.observe(observation);
    }

    fn seen_at(&self, path: &[u8]) {
        self.0.seen_at(path);
    }

    fn related(&self, one: &[u8], other: &[u8]) {
        self.0.related(one, other);
    }
}

/// Where a tree lies.
fn place((role, tree): &(String, AbsPath)) -> Observation {
    Observation::new(Question::Location(role.as_bytes().into()), digest_location(tree.as_bytes()), Durability::Medium)
}

impl Recorder {
    /// The innermost tree that a path lies in.
    fn tree_of(trees: &[(String, AbsPath)], path: &[u8]) -> Option<usize> {
        let within = |tree: &[u8]| path.strip_prefix(tree).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        let holding = trees.iter().enumerate().filter(|(_, (_, tree))| within(tree.as_bytes()));
        holding.max_by_key(|(_, (_, tree))| tree.as_bytes().len()).map(|(index, _)| index)
    }

    /// Where the trees lie, by role.
    fn places(&self) -> Vec<(String, Digest)> {
        let trees = self.trees.read().unwrap_or_else(PoisonError::into_inner);
        trees.iter().map(|(role, tree)| (role.clone(), digest_location(tree.as_bytes()))).collect()
    }

    /// Everything observed so far, less what follows from the rest.
    fn all(&self, host: &dyn Host) -> SetId {
        let mut earlier = lock(&self.earlier);
        let fresh = std::mem::take(&mut *lock(&self.fresh));
        let seen: Vec<(ObservationId, Observation)> = fresh.iter().map(|&id| (id, self.sets.observation(id))).collect();
        let (mut files, mut directories) = (HashSet::new(), HashSet::new());
        for (_, observation) in &seen {
            let path = match &observation.question {
                Question::File(path) if was_read(host, path, observation.digest) => {
                    files.insert(path.clone());
                    path
                }
                Question::Directory(path) if host.read_dir(path).is_ok() => {
                    directories.insert(path.clone());
                    path
                }
                _ => continue,
            };
            let above = std::iter::successors(path.parent(), AbsPath::parent);
            above.take_while(|dir| directories.insert(dir.clone())).for_each(drop);
        }
        let follows = |observation: &Observation| {
            observation.follows_from(|path| files.contains(path), |path| directories.contains(path))
        };
        let kept: Vec<ObservationId> = seen.iter().filter(|(_, seen)| !follows(seen)).map(|(id, _)| *id).collect();
        *earlier = self.sets.join(&kept, &[*earlier]);
        *earlier
    }

    /// Leaves out which trees were found while a flake was locked: the question says that. Asked again, they count.
    fn forget_trees(&self) {
        let is_tree = |id: &ObservationId| matches!(self.sets.observation(*id).question, Question::Tree(_));
        let mut noted = lock(&self.noted);
        lock(&self.fresh).retain(|id| {
            let tree = is_tree(id);
            if tree {
                noted.remove(id);
            }
            !tree
        });
    }
}

/// Whether a file was read, rather than failed to be. What was read and not kept is read again unless it is large.
fn was_read(host: &dyn Host, path: &AbsPath, digest: Digest) -> bool {
    let small = |stat: Stat| stat.file_type == FileType::Regular && stat.stamp.size < 1 << 20;
    host.lstat(path).is_ok_and(|stat| stat.is_some_and(small))
        && host.read_once(path).is_ok_and(|content| content.digest() == digest)
}

/// The memory of a run.
pub struct Memory {
    disk: Arc<Disk>,
    recorder: Arc<Recorder>,
    /// Sees what evaluation sees, and writes nothing down.
    host: Arc<dyn Host>,
    store: Arc<dyn Store>,
    store_dir: StoreDir,
    log: Arc<Log>,
    roles: RefCell<Roles>,
    writer: RefCell<Option<Writer>>,
    stamps: RefCell<Vec<(Question, Stamp, Digest)>>,
    /// Several questions are asked in this run.
    several: Cell<bool>,
    /// Something was printed for an earlier question.
    printed: Cell<bool>,
    shadow: bool,
    least: Duration,
    counts: Cell<Outcome>,
    shared: Option<Shared>,
}

/// What became of the questions of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Answered from memory.
    pub hits: u64,
    /// Not known, or no longer so.
    pub misses: u64,
    /// Answers kept.
    pub kept: u64,
    /// What verification did.
    pub verified: Counts,
    /// Microseconds spent looking and verifying.
    pub spent: u64,
    /// Microseconds that the answers given took when they were found.
    pub saved: u64,
}

/// A question that is being evaluated.
pub struct Pending {
    key: Key,
    began: Instant,
    /// The answer that memory would have given, where that is checked.
    expected: Option<(Vec<u8>, Vec<u8>)>,
}

/// What memory says to a question.
pub enum Recalled {
    /// The answer.
    Known(Value),
    /// It has to be evaluated; what comes of it may be kept.
    Unknown(Option<Pending>),
}

/// Least time that an answer must have taken to be kept, in milliseconds.
const LEAST: u64 = 20;

static DISK: OnceLock<Option<Arc<Disk>>> = OnceLock::new();

/// The database under the user's cache home; opened once, and the user is told once why it cannot be.
pub fn disk(resolved: &Resolved, log: &Log) -> Option<Arc<Disk>> {
    DISK.get_or_init(|| {
        let dir = resolved.memo.dir.clone()?;
        match Disk::open(&dir, resolved.memo.limit) {
            Ok(disk) => {
                if let Some(salvaged) = disk.salvaged() {
                    let (place, count) = (dir.display(), salvaged.entries);
                    let message = format!("the cache '{place}' was damaged ({}); {count} answers were saved", salvaged.what);
                    log.warn(message.as_bytes());
                }
                Some(Arc::new(disk))
            }
            Err(reason) => {
                log.warn(format!("evaluating without the cache on disk: {reason}").as_bytes());
                None
            }
        }
    })
    .clone()
}

/// The memory of a run being set up: the host and the store as they are written down.
pub struct Watched {
    /// The host that evaluation looks through.
    pub host: Arc<dyn Host>,
    /// The store that evaluation uses.
    pub store: Arc<dyn Store>,
    /// Who hears of fetched trees.
    pub sink: Arc<dyn Sink>,
    /// The memory.
    pub memory: Memory,
}

impl Memory {
    /// Opens the memory and has `host` and `store` watched; none if the user wants no memory or there can be none.
    pub fn watch(host: &Arc<dyn Host>, store: &Arc<dyn Store>, resolved: &Resolved, log: &Arc<Log>) -> Option<Watched> {
        if !resolved.memo.keeps_answers {
            return None;
        }
        let store_dir = StoreDir::new(resolved.eval.store_dir.as_bytes()).ok()?;
        let store_path = AbsPath::new(store_dir.as_bytes()).ok()?;
        let disk = disk(resolved, log)?;
        let recorder = Arc::new(Recorder::default());
        let sink: Arc<dyn Sink> = recorder.clone();
        let recording = Recording::new(host.clone(), Heard(recorder.clone()), store_path.clone());
        let recorded = RecordedStore::new(store.clone(), store_dir.clone(), sink.clone());
        let mut roles = Roles::new();
        roles.assign(STORE, store_path);
        let memory = Memory {
            disk,
            recorder,
            host: host.clone(),
            store: store.clone(),
            store_dir,
            log: log.clone(),
            roles: RefCell::new(roles),
            writer: RefCell::default(),
            stamps: RefCell::default(),
            several: Cell::new(false),
            printed: Cell::new(false),
            shadow: resolved.memo.mode.is_shadow(),
            least: Duration::from_millis(resolved.memo.least.unwrap_or(LEAST)),
            counts: Cell::default(),
            shared: Shared::open(resolved, log),
        };
        Some(Watched { host: Arc::new(recording), store: Arc::new(recorded), sink, memory })
    }

    /// Several questions are asked in this run.
    pub fn expect_several(&self) {
        self.several.set(true);
    }

    /// What became of the questions.
    pub fn outcome(&self) -> Outcome {
        self.counts.get()
    }

    /// What became of dealings with remotes, if there are any.
    pub fn shared(&self) -> Option<firn_remote::Counts> {
        self.shared.as_ref().map(Shared::counts)
    }

    /// Gives the trees of a question their roles.
    pub fn name_trees(&self, entry: &Entry, base: Option<&AbsPath>, search: &[(String, AbsPath)]) {
        let mut roles = self.roles.borrow_mut();
        for (role, tree) in search {
            roles.assign(role, tree.clone());
        }
        // What lies in a tree that has a role already is named by that one: two names for one place could not be told apart.
        let mut assign = |role: &str, path: &AbsPath| {
            if roles.place(path).0 == ROOT {
                roles.assign(role, self.tree_of(path));
            }
        };
        match entry {
            Entry::File(path) => assign(ENTRY, path),
            Entry::Expression(_, base) => assign(HERE, base),
            Entry::Flake(_) => {}
        }
        if let Some(base) = base {
            assign(HERE, base);
        }
        let movable = roles.iter().filter(|(role, _)| *role != STORE && *role != ROOT);
        let trees = movable.map(|(role, tree)| (role.to_owned(), tree.clone())).collect();
        *self.recorder.trees.write().unwrap_or_else(PoisonError::into_inner) = trees;
    }

    /// The checkout that a path lies in: the nearest directory above it that has a `.git`, or the directory itself.
    fn tree_of(&self, path: &AbsPath) -> AbsPath {
        let has = |dir: &AbsPath, name: &[u8]| {
            dir.beneath(name).is_ok_and(|path| matches!(self.host.file_type(&path), Ok(Some(_))))
        };
        let above = std::iter::successors(Some(path.clone()), AbsPath::parent).filter(|dir| !dir.is_root());
        let root = above.clone().find(|dir| has(dir, b".git"));
        let is_directory = matches!(self.host.file_type(path), Ok(Some(FileType::Directory)));
        let own = || if is_directory { Some(path.clone()) } else { path.parent() };
        root.or_else(own).unwrap_or_else(AbsPath::root)
    }

    /// Looks for an answer. `writes` says that the store has to be as an evaluation would leave it.
    pub fn recall(&self, asked: &Asked, writes: bool) -> Recalled {
        let began = Instant::now();
        if matches!(asked.entry, Entry::Flake(_)) {
            self.recorder.forget_trees();
        }
        let roles = self.roles.borrow().clone();
        let key = Key::new(asked, &roles);
        let found = self.look(&key, &roles, writes);
        let mut counts = self.counts.get();
        counts.spent += began.elapsed().as_micros() as u64;
        let mut expected = None;
        if let Some((found, value)) = found {
            counts.hits += 1;
            counts.saved += found.record.cost;
            self.counts.set(counts);
            let now = self.host.current_time();
            if found.is_use_due(now) {
                self.write(Batch { used: vec![found.key.clone()], now, ..Batch::default() });
            }
            if !self.shadow {
                self.log.repeat(&found.record.log);
                return Recalled::Known(value);
            }
            expected = Some((found.result, found.record.log));
        } else {
            counts.misses += 1;
            self.counts.set(counts);
        }
        self.log.listen();
        Recalled::Unknown(Some(Pending { key, began: Instant::now(), expected }))
    }

    fn look(&self, key: &Key, roles: &Roles, writes: bool) -> Option<(Found, Value)> {
        let reading = self.disk.read()?;
        let candidates = reading.records(&key.digest);
        if candidates.is_empty() && self.shared.is_none() {
            return None;
        }
        let witness = Witnessed::new(self, &reading);
        let verifier = Verifier::new(&*self.host, &witness, roles);
        let fitting = |found: &Found| {
            let silent = found.record.log.is_empty() || !self.several.get();
            silent && (!writes || self.are_present(&found.record.needs)) && verifier.holds(found.record.observations)
        };
        let found = candidates.into_iter().find(fitting).or_else(|| self.fetch(key, &witness, &fitting));
        let mut counts = self.counts.get();
        counts.verified = verifier.counts();
        self.counts.set(counts);
        let found = found?;
        let value = plain::decode(&found.result, roles).ok()?;
        Some((found, value))
    }

    /// An answer from a remote that holds here. It is kept on disk, with what it rests on.
    fn fetch(&self, key: &Key, witness: &Witnessed<'_>, fitting: &dyn Fn(&Found) -> bool) -> Option<Found> {
        let shared = self.shared.as_ref().filter(|shared| shared.remotes.believes_anybody())?;
        let mut lookup = shared.remotes.ask(key.digest);
        loop {
            let Candidate { mut answer } = lookup.next(&|node| witness.node(node).is_some())?;
            witness.fetched.borrow_mut().extend(answer.nodes.iter().cloned());
            let Stored::Inline(result) = answer.record.result.clone() else { continue };
            let now = self.host.current_time();
            let found = Found { key: Vec::new(), record: answer.record.clone(), result, used: now };
            if fitting(&found) {
                lookup.held(Duration::from_micros(answer.record.cost));
                answer.record.places = self.recorder.places();
                self.write(Batch { answers: vec![answer], now, ..Batch::default() });
                return Some(found);
            }
        }
    }

    fn are_present(&self, needs: &[Vec<u8>]) -> bool {
        needs.iter().all(|path| {
            let object = self.store_dir.parse(path);
            object.is_ok_and(|object| self.store.is_valid(&object).unwrap_or(false))
        })
    }

    /// Keeps an answer with everything observed for it, if it can be and is worth it. In shadow, compares it instead.
    pub fn keep(&self, pending: Option<Pending>, answer: Value, needs: Vec<Vec<u8>>) {
        let Some(Pending { key, began, expected }) = pending else { return };
        let cost = began.elapsed();
        let heard = self.log.heard();
        if firn_memo::doubt::must_begin_again() {
            return;
        }
        let observations = self.recorder.all(&*self.host);
        let roles = self.roles.borrow().clone();
        let Ok(result) = plain::encode(answer, &roles) else { return };
        let log = heard.text;
        if let Some((result_before, log_before)) = expected {
            self.compare(&key, (&result, &log), (&result_before, &log_before));
            return;
        }
        let silent = log.is_empty() && !self.printed.get();
        self.printed.set(self.printed.get() || !log.is_empty());
        if heard.is_passing || self.several.get() && !silent || cost < self.least {
            return;
        }
        let trees = self.recorder.trees.read().unwrap_or_else(PoisonError::into_inner).clone();
        let whole = if self.stays(&trees, observations, &roles, &log) {
            let places: Vec<ObservationId> = trees.iter().map(|tree| self.recorder.sets.observe(&place(tree)).0).collect();
            self.recorder.sets.join(&places, &[observations])
        } else {
            observations
        };
        let members = self.recorder.sets.members(whole);
        let (root, nodes) = match self.recorder.sets.encode(whole, &roles) {
            Ok(encoded) => encoded,
            Err(NotStorable::Question(question)) => {
                let text = format!("not remembered on disk, because of what was observed: {question:?}");
                return self.log.detail(text.as_bytes());
            }
        };
        let durability = members.iter().map(|observation| observation.durability).min().unwrap_or(Durability::High);
        let now = self.host.current_time();
        let record = Record {
            question: key.question,
            result: Stored::Inline(result),
            log,
            observations: root,
            needs,
            cost: cost.as_micros() as u64,
            durability,
            made: now,
            places: self.recorder.places(),
        };
        let stamps = members.iter().filter_map(|observation| self.stamp(observation, now)).collect();
        self.write(Batch { answers: vec![Answer { question: key.digest, record, nodes }], stamps, used: vec![], now });
        if let Some(shared) = &self.shared {
            shared.note(key.digest);
        }
        let mut counts = self.counts.get();
        counts.kept += 1;
        self.counts.set(counts);
    }

    /// Whether an answer belongs to the places of its trees, seen or not: where something printed may name a place, where one tree
    /// lies in another, and where a path outside all trees was looked at that nobody wrote in full.
    fn stays(&self, trees: &[(String, AbsPath)], observed: SetId, roles: &Roles, log: &[u8]) -> bool {
        let nested = |(role, tree): &(String, AbsPath)| trees.iter().any(|(other, outer)| other != role && tree.is_within(outer));
        let in_full = lock(&self.recorder.in_full);
        let strays = |path: &AbsPath| {
            let mut above = std::iter::successors(Some(path.clone()), AbsPath::parent);
            roles.place(path).0 == ROOT && !above.any(|path| in_full.contains(path.as_bytes()))
        };
        let members = self.recorder.sets.members(observed);
        !log.is_empty() || trees.iter().any(nested) || members.iter().any(|seen| seen.question.path().is_some_and(strays))
    }

    /// The state that vouches for what was read or listed. It was seen before the reading: if anything changed in between,
    /// no later state equals it.
    fn stamp(&self, observation: &Observation, now: i64) -> Option<(Question, Stamp, Digest)> {
        let (Question::File(path) | Question::Directory(path)) = &observation.question else { return None };
        let stat = self.host.lstat(path).ok()??;
        stat.stamp.is_settled(now).then(|| (observation.question.clone(), stat.stamp, observation.digest))
    }

    fn compare(&self, key: &Key, now: (&[u8], &[u8]), before: (&[u8], &[u8])) {
        if now == before {
            return;
        }
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let message = format!(
            "the cache on disk would have given another answer (question {}):\n  remembered: {}\n  evaluated:  {}",
            key.digest,
            shown(before.0) + &shown(before.1),
            shown(now.0) + &shown(now.1)
        );
        self.log.warn(message.as_bytes());
    }

    fn write(&self, batch: Batch) {
        self.writer.borrow_mut().get_or_insert_with(|| self.disk.writer()).write(batch);
    }

    /// Waits for what is being written. A cache that cannot be written is told once and changes nothing else.
    pub fn finish(&self) {
        let stamps = std::mem::take(&mut *self.stamps.borrow_mut());
        if !stamps.is_empty() {
            self.write(Batch { stamps, now: self.host.current_time(), ..Batch::default() });
        }
        if let Some(writer) = self.writer.borrow_mut().take()
            && let Err(reason) = writer.finish()
        {
            self.log.warn(format!("the cache on disk was not written: {reason}").as_bytes());
        }
        if let Some(shared) = &self.shared {
            shared.finish(&self.disk);
        }
    }
}

/// What verification asks of the database and the store.
struct Witnessed<'a> {
    memory: &'a Memory,
    reading: &'a Reading<'a>,
    /// Nodes that came from remotes.
    fetched: RefCell<BTreeMap<Digest, Vec<u8>>>,
}

impl<'a> Witnessed<'a> {
    fn new(memory: &'a Memory, reading: &'a Reading<'a>) -> Witnessed<'a> {
        Witnessed { memory, reading, fetched: RefCell::default() }
    }
}

impl Witness for Witnessed<'_> {
    fn node(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.fetched.borrow().get(digest).cloned().or_else(|| self.reading.node(digest))
    }

    fn vouched(&self, question: &Question, stamp: &Stamp) -> Option<Digest> {
        self.reading.vouched(question, stamp)
    }

    fn vouch(&self, question: &Question, stamp: &Stamp, digest: Digest) {
        self.memory.stamps.borrow_mut().push((question.clone(), *stamp, digest));
    }

    fn store_object(&self, path: &[u8]) -> Option<Digest> {
        let object = self.memory.store_dir.parse(path).ok()?;
        RecordedStore::digest_object(&*self.memory.store, &object)
    }
}

/// Texts as a value, and back.
pub fn texts(items: &[Vec<u8>]) -> Value {
    let mut list = ListBuilder::new(items.len());
    items.iter().for_each(|item| list.push(Value::string(item, Context::EMPTY)));
    list.finish()
}

/// The texts of such a value.
pub fn as_texts(value: Value) -> Vec<Vec<u8>> {
    let items = value.as_list().into_iter().flat_map(List::iter);
    items.filter_map(|item| item.as_str().map(|text| text.bytes().to_vec())).collect()
}
