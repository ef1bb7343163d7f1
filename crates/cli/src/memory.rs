//! `Memory`: answers to whole questions, kept between runs (`--memo disk`).
//!
//! 1. A question is what the command line asks: an entry, an attribute path, arguments, settings, a form ([`Asked`]).
//! 2. [`Memory::recall`] looks for records of it, newest first, and verifies everything that was observed for them; the
//!    first that holds is the answer. Store objects that it refers to must be there where a store is written.
//! 3. Otherwise the command evaluates, in a production of its own: what it observes, itself or through values that others
//!    evaluated before, is its label (`memo::kept::labels`), and is kept with the answer ([`Memory::keep`]).
//! 4. What was printed on the way is kept and printed again. In a run with several questions that cannot be told apart by
//!    question, so an answer that printed something is neither kept nor given there.
//!
//! What was observed before the first question (the search path, arguments) belongs to every question.

mod glance;
mod history;
mod keeper;
mod likely;
mod look;
mod parts;
mod recorder;
mod verdicts;
mod witness;

pub use glance::{Glance, Glanced};
pub use history::Remembered;

use crate::log::{Heard, Log};
use crate::settings::Resolved;
use crate::shared::Shared;
use firn_cache::{Batch, Disk, Vouched, Writer};
use firn_eval::Machine;
use firn_host::{
    AbsPath, FileType, Host, Preparation, Question, RecordedStore, Recording, Sink, Store,
};
use firn_memo::kept::{
    Asked, Counts, ENTRY, Entry, HERE, Key, ROOT, Roles, STORE, SetId, Stem, digests, labels, plain, trace,
};
use firn_store::store_dir::StoreDir;
use firn_value::{Context, Label, List, ListBuilder, Production, Value};
use keeper::{Keeper, Kept, vouched};
use recorder::{Listener, Recorder, place};
use verdicts::Verdicts;
use witness::Witnessed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The memory of a run.
pub struct Memory {
    disk: Arc<Disk>,
    /// Sees what evaluation sees, and writes nothing down.
    host: Arc<dyn Host>,
    store: Arc<dyn Store>,
    store_dir: StoreDir,
    log: Arc<Log>,
    roles: Mutex<Arc<Roles>>,
    /// Those that groups are encoded for ahead of need.
    written_for: Mutex<Arc<Roles>>,
    /// What was observed before the first question.
    base: Mutex<SetId>,
    /// What was observed for the question that was last evaluated.
    last: Arc<AtomicU32>,
    recorder: Arc<Recorder>,
    keeper: Arc<Keeper>,
    judged: Verdicts,
    /// When the answer was made that was last found to hold; `i64::MAX` if none was yet.
    held: AtomicI64,
    writer: Mutex<Option<Writer>>,
    waiting: Mutex<Waiting>,
    stamps: Mutex<Vec<Vouched>>,
    /// Several questions are asked in this run.
    several: AtomicBool,
    /// Parts may be learned and taken.
    learns: bool,
    /// What is known is evaluated as well: to compare it, or to measure it.
    evaluates: bool,
    /// What would have been answered, where evaluation is measured.
    glances: Mutex<Vec<Glance>>,
    measured: bool,
    least: Duration,
    counts: Arc<Mutex<Outcome>>,
    shared: Option<Arc<Mutex<Shared>>>,
    /// Files are prepared for evaluations, to be parsed so.
    preparation: Option<Arc<Preparation>>,
    prepared_for: AtomicU32,
    syntax: firn_syntax::Features,
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

/// A question that is being evaluated, on the thread that asked it.
pub struct Pending {
    key: Key,
    began: Instant,
    outer: Production,
    observed: Arc<AtomicU32>,
    /// The answer that memory would have given, where that is checked.
    expected: Option<(Vec<u8>, Vec<u8>)>,
    /// What of earlier evaluations is of use.
    plan: parts::Plan,
    /// Files are prepared for it alone.
    preparation: Option<Arc<Preparation>>,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.preparation.iter().for_each(|preparation| preparation.stop());
        self.observed.store(labels::so_far(), Ordering::Relaxed);
        labels::end(self.outer);
    }
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

/// No more answers wait to be handed over.
// PERF: waking the thread that writes for each of 1,000 jobs took the one that evaluates 1 % of its time.
const MOST_WAITING: usize = 16;

/// Answers that are handed over together.
#[derive(Default)]
struct Waiting {
    answers: Vec<(Kept, Label)>,
    /// How often some were handed over. The first is alone, each time one more may wait: where an edit touched few answers they are kept while
    /// the others are looked at.
    handed_over: usize,
}

impl Waiting {
    /// Adds an answer; those that are to be handed over now.
    fn push(&mut self, answer: (Kept, Label)) -> Option<Vec<(Kept, Label)>> {
        self.answers.push(answer);
        let is_enough = self.answers.len() > self.handed_over || self.answers.len() >= MOST_WAITING;
        is_enough.then(|| self.take())
    }

    fn take(&mut self) -> Vec<(Kept, Label)> {
        self.handed_over += 1;
        std::mem::take(&mut self.answers)
    }
}

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
    /// `bare` is the host without what this run shows in the store: so it was seen when things were observed. `once` says that
    /// one question is asked.
    pub fn watch(
        host: &Arc<dyn Host>,
        bare: Arc<dyn Host>,
        store: &Arc<dyn Store>,
        resolved: &Resolved,
        log: &Arc<Log>,
        once: bool,
    ) -> Option<Watched> {
        if !resolved.memo.keeps_answers {
            return None;
        }
        let store_dir = StoreDir::new(resolved.eval.store_dir.as_bytes()).ok()?;
        let store_path = AbsPath::new(store_dir.as_bytes()).ok()?;
        let disk = disk(resolved, log)?;
        let recorder = Arc::new(Recorder::default());
        let sink: Arc<dyn Sink> = recorder.clone();
        let mut recording = Recording::new(host.clone(), Listener(recorder.clone()), store_path.clone());
        // Not where somebody wants to know all that is read.
        let preparation = (!host.notes_places()).then(|| Arc::new(Preparation::new(bare.clone())));
        if let Some(preparation) = &preparation {
            recording = recording.preparing(preparation.clone());
        }
        let recorded = RecordedStore::new(store.clone(), store_dir.clone(), sink.clone());
        let (objects, dir) = (store.clone(), store_dir.clone());
        let lacks = move |path: &AbsPath| dir.split(path.as_bytes()).is_ok_and(|(object, _)| !objects.is_valid(&object).unwrap_or(false));
        let _ = recorder.lacks.set(Box::new(lacks));
        trace::end();
        let mut roles = Roles::new();
        roles.assign(STORE, store_path);
        let roles = Arc::new(roles);
        let counts: Arc<Mutex<Outcome>> = Arc::default();
        let shared = Shared::open(resolved, log).map(|shared| Arc::new(Mutex::new(shared)));
        let keeper = Keeper {
            host: bare.clone(),
            log: log.clone(),
            recorder: recorder.clone(),
            inside: Mutex::default(),
            counts: counts.clone(),
            shared: shared.clone(),
        };
        let memory = Memory {
            disk,
            host: bare,
            store: store.clone(),
            store_dir,
            log: log.clone(),
            written_for: Mutex::new(roles.clone()),
            roles: Mutex::new(roles),
            base: Mutex::default(),
            last: Arc::default(),
            recorder,
            keeper: Arc::new(keeper),
            judged: Verdicts::default(),
            held: AtomicI64::new(i64::MAX),
            writer: Mutex::default(),
            waiting: Mutex::default(),
            stamps: Mutex::default(),
            several: AtomicBool::new(false),
            // Not where the program begins again, or what it does is told.
            learns: resolved.eval.memo != firn_memo::Mode::Off && !resolved.memo.measured && (once || resolved.memo.mode.is_shadow()),
            evaluates: resolved.memo.mode.is_shadow() || resolved.memo.measured,
            glances: Mutex::default(),
            measured: resolved.memo.measured,
            least: Duration::from_millis(resolved.memo.least.unwrap_or(LEAST)),
            counts,
            shared,
            preparation,
            prepared_for: AtomicU32::new(0),
            syntax: resolved.eval.syntax,
        };
        if once {
            labels::gather();
        }
        Some(Watched { host: Arc::new(recording), store: Arc::new(recorded), sink, memory })
    }

    /// Several questions are asked in this run: what each took says little, so all are kept.
    pub fn expect_several(&self) {
        self.several.store(true, Ordering::Relaxed);
    }

    /// What became of the questions.
    pub fn outcome(&self) -> Outcome {
        Outcome { verified: self.judged.counts(), ..*lock(&self.counts) }
    }

    /// The process is about to end: what was found in it is left as it is.
    // PERF: taking that apart was half of the time between the last line of an unchanged `firn jobs` and its end.
    pub fn leave(&self) {
        self.judged.leave();
    }

    /// What became of dealings with remotes, if there are any.
    pub fn shared(&self) -> Option<firn_remote::Counts> {
        self.shared.as_ref().map(|shared| lock(shared).counts())
    }

    /// Gives the trees of a question their roles.
    pub fn name_trees(&self, entry: &Entry, base: Option<&AbsPath>, search: &[(String, AbsPath)]) {
        let mut known = lock(&self.roles);
        let mut roles = Roles::clone(&known);
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
        if roles != **known {
            // What a node says depends on the roles.
            self.judged.forget_nodes();
        }
        let movable = roles.iter().filter(|(role, _)| *role != STORE && *role != ROOT);
        let trees = movable.map(|(role, tree)| (role.to_owned(), tree.clone())).collect();
        *self.recorder.trees.write().unwrap_or_else(PoisonError::into_inner) = trees;
        *known = Arc::new(roles);
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

    /// What the questions of a run have in common that differ from this one in their attribute path.
    pub fn stem(&self, asked: &Asked) -> Stem {
        Stem::new(asked, &lock(&self.roles))
    }

    /// Looks for an answer. `writes` says that the store has to be as an evaluation would leave it. Where there is none, what
    /// this thread does until [`Memory::keep`] counts as done for the question.
    pub fn recall(&self, asked: &Asked, writes: bool) -> Recalled {
        self.recall_at(&self.stem(asked), &asked.attribute, writes)
    }

    /// As [`Memory::recall`], for a question about an attribute.
    pub fn recall_at(&self, stem: &Stem, attribute: &[u8], writes: bool) -> Recalled {
        let began = Instant::now();
        let entry = &stem.asked.entry;
        self.settle_base(matches!(entry, Entry::Flake(_)));
        let (key, roles) = (stem.key(attribute), lock(&self.roles).clone());
        let (found, before) = self.find(&key, &roles, writes, began);
        if self.measured {
            self.note_glance(&stem.asked(attribute), began.elapsed(), found.as_ref().map(|(found, _)| found.record.cost));
        }
        let mut expected = None;
        if let Some((found, value)) = found {
            if !self.evaluates {
                self.log.repeat(&found.record.log);
                return Recalled::Known(value);
            }
            expected = Some((found.result, found.record.log));
        }
        let plan = match before {
            _ if expected.is_some() => parts::Plan::Plain,
            before if !self.is_several() => self.plan(&key, entry, before, &roles, writes),
            before => {
                before.iter().for_each(|before| self.prepare_for_one(before.observations, &roles));
                parts::Plan::Plain
            }
        };
        Recalled::Unknown(Some(self.pending(key, expected, plan)))
    }

    /// What this thread does from now on is done for the question.
    fn pending(&self, key: Key, expected: Option<(Vec<u8>, Vec<u8>)>, plan: parts::Plan) -> Pending {
        if !self.is_several() {
            self.log.listen();
        }
        let roles = lock(&self.roles).clone();
        // PERF: whoever keeps the answers of other questions may be at it.
        if !Arc::ptr_eq(&std::mem::replace(&mut *lock(&self.written_for), roles.clone()), &roles) {
            labels::sets().write_for(&roles);
        }
        let preparation = self.preparation.clone().filter(|_| !self.is_several());
        Pending { key, began: Instant::now(), outer: labels::begin_outside(), observed: self.last.clone(), expected, plan, preparation }
    }

    /// What this thread observed until now belongs to every question. For a flake, which trees were found while it was locked
    /// is left out: the question says that. Asked again, they count.
    fn settle_base(&self, flake: bool) {
        let label = labels::let_go();
        if label == 0 {
            return;
        }
        let sets = labels::sets();
        let mut ids = sets.ids(labels::set_of(label));
        ids.retain(|&id| !flake || !matches!(sets.observation(id).question, Question::Tree(_)));
        let mut base = lock(&self.base);
        *base = sets.join(&ids, &[*base]);
    }

    fn is_several(&self) -> bool {
        self.several.load(Ordering::Relaxed)
    }

    /// Keeps an answer with everything observed for it, if it can be and is worth it. In shadow, compares it instead.
    pub fn keep(&self, pending: Option<Pending>, answer: Value, needs: Vec<Vec<u8>>) {
        self.keep_with(None, pending, answer, needs);
    }

    /// As [`Memory::keep`], after [`Memory::prepare`] with this machine.
    pub fn keep_with(&self, machine: Option<&Machine>, pending: Option<Pending>, answer: Value, needs: Vec<Vec<u8>>) {
        let Some(mut pending) = pending else { return };
        let plan = std::mem::take(&mut pending.plan);
        machine.into_iter().for_each(|machine| self.tell_differences(machine));
        let cost = pending.began.elapsed();
        let gathered = labels::so_far();
        let expected = pending.expected.take();
        let key = pending.key.clone();
        drop(pending);
        let heard = if self.is_several() { Heard::default() } else { self.log.heard() };
        if firn_memo::doubt::must_begin_again() {
            return;
        }
        let roles = lock(&self.roles).clone();
        let Ok(result) = plain::encode(answer, &roles) else { return };
        let log = heard.text;
        if let Some((result_before, log_before)) = expected {
            self.compare(&key, (&result, &log), (&result_before, &log_before));
            return;
        }
        if heard.is_passing || !self.is_several() && cost < self.least {
            return;
        }
        let trees = self.recorder.trees.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (base, now) = (*lock(&self.base), self.host.current_time());
        let kept = Kept { key, result, log, needs, cost, base, trees, roles, now, is_alone: !self.is_several() };
        match machine {
            None => {
                // PERF: what an answer rests on is put together, and encoded, while others are evaluated.
                let ready = lock(&self.waiting).push((kept, gathered));
                if let Some(answers) = ready {
                    self.hand_over(answers);
                }
            }
            Some(machine) => self.keep_one(machine, plan, kept, labels::set_of(gathered)),
        }
    }

    fn hand_over(&self, waiting: Vec<(Kept, Label)>) {
        let keeper = self.keeper.clone();
        self.write_later(move || keeper.keep(waiting));
    }

    /// Keeps the answer to the one question of a run, and what was learned from it.
    fn keep_one(&self, machine: &Machine, plan: parts::Plan, kept: Kept, gathered: SetId) {
        let sets = labels::sets();
        // Where things stand in texts that are watched is noted in the trace, which is gone once somebody goes through it.
        let observed = sets.join(&sets.texts_of(&trace::seen_texts()), &[gathered]);
        let learning = self.go_through(&plan, machine, kept.cost, &kept.roles);
        digests::make_rest();
        let whole = self.keeper.whole(observed, &kept, &kept.log);
        let (reads, host, now) = (sets.fresh_reads(whole), self.host.clone(), kept.now);
        if !reads.is_empty() {
            // PERF: found and sealed while the rest is encoded.
            self.write_later(move || Batch { stamps: reads.iter().filter_map(|seen| vouched(&*host, seen, now)).collect(), now, ..Batch::default() });
        }
        let encoded = sets.encode(whole, &kept.roles).map(|encoded| match &plan {
            parts::Plan::Take(known, _) if machine.parts_taken() > 0 => encoded.and(known.observations, known.durability, &kept.roles),
            _ => encoded,
        });
        let Some(answer) = self.keeper.record(encoded, &kept) else { return };
        self.write(Batch { answers: vec![answer], now, ..Batch::default() });
        if learning.is_some() {
            // PERF: what was learned comes when the answer is written.
            lock(&self.writer).iter().for_each(Writer::go);
        }
        // What was printed is no part, so nobody needs to know where it stands.
        let quiet = || self.keeper.whole(gathered, &kept, &[]);
        self.keep_parts(plan, learning, machine, &kept.key, quiet, kept.cost, &kept.roles);
    }

    /// What this thread evaluates has seen where every tree lies, and where in files things stand: an error names both.
    pub fn see_places(&self) {
        let trees = self.recorder.trees.read().unwrap_or_else(PoisonError::into_inner);
        trees.iter().for_each(|tree| self.recorder.observe(place(tree)));
        labels::see_texts(labels::sets().union(labels::set_of(labels::so_far()), *lock(&self.base)));
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
        lock(&self.writer).get_or_insert_with(|| self.disk.writer()).write(batch);
    }

    fn write_later(&self, make: impl FnOnce() -> Batch + Send + 'static) {
        lock(&self.writer).get_or_insert_with(|| self.disk.writer()).write_later(make);
    }

    /// Waits for what is being written. A cache that cannot be written is told once and changes nothing else.
    pub fn finish(&self) {
        let waiting = lock(&self.waiting).take();
        if !waiting.is_empty() {
            self.hand_over(waiting);
        }
        let stamps = std::mem::take(&mut *lock(&self.stamps));
        if !stamps.is_empty() {
            self.write(Batch { stamps, now: self.host.current_time(), ..Batch::default() });
        }
        let writer = lock(&self.writer).take();
        if let Some(writer) = writer
            && let Err(reason) = writer.finish()
        {
            self.log.warn(format!("the cache on disk was not written: {reason}").as_bytes());
        }
        if let Some(shared) = &self.shared {
            lock(shared).finish(&self.disk);
        }
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
