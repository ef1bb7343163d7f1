//! `Recording`: hands every answer on and writes down what was asked. Wrap a host in it where memory is kept; where it
//! is not, do not, and recording costs nothing.
//!
//! A question is recorded each time it is asked: a cached answer is still something its consumer depends on. Put it
//! inside [`Restricted`](crate::Restricted): what may not be seen follows from the settings, not from the disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::below::Below;
use crate::host::hand_on;
use crate::observation::{
    PathKind, digest_entry, digest_exists, digest_file, digest_found, digest_home, digest_link, digest_listing, digest_option, digest_path,
    digest_rest, digest_stat, digest_time, digest_type,
};
use crate::prepared::{Preparation, Prepared};
use crate::promised::{Answer, Promised, Seen};
use crate::search::{EntrySource, Found, PseudoUrl, SearchPath};
use crate::{
    AbsPath, Bindings, Code, Digest, Durability, Entry, FileContent, FileType, Follow, Host, HostError, Listing, Observation, Question,
    Stat,
};
use firn_syntax::Outline;

/// What a text binds.
pub struct Bound {
    /// The text.
    pub text: FileContent,
    /// Where names and what they stand for are in it.
    pub places: Vec<firn_syntax::Bound>,
}

/// Takes observations as they are made, from any thread.
pub trait Sink: Send + Sync {
    /// One question was answered.
    fn observe(&self, observation: Observation);

    /// The same, of a file that was read or a directory that was listed: that it is one follows.
    fn observe_read(&self, seen: Seen) {
        self.observe(seen.observation());
    }

    /// A directory was listed of which names will be looked at one by one ([`Host::read_names`]). None of them counts as observed if
    /// a number is given; whoever looks at them says so with that number.
    fn guard(&self, whole: Seen) -> Option<u32> {
        self.observe_read(whole);
        None
    }

    /// A file was read as code ([`Host::read_code`]): what that is, and the file's bytes, which are not observed yet.
    fn observe_code(&self, _code: Seen, file: Seen) {
        self.observe_read(file);
    }

    /// A file was read as code that is guarded ([`Host::read_bindings`]): what that is but for its bindings, which counts; all of the
    /// code and the bytes, which do not yet; and the bindings. Without a number all of the code counts.
    fn observe_bindings(&self, _outline: Observation, code: Seen, file: Seen, _bound: Bound) -> Option<u32> {
        self.observe_code(code, file);
        None
    }

    /// Where in a file that was read as code something stands was seen ([`Host::seen_text`]).
    fn seen_text(&self, _path: &AbsPath) {}

    /// Where this path lies was seen ([`Host::seen_at`]).
    fn seen_at(&self, _path: &[u8]) {}

    /// How these paths lie to each other was seen ([`Host::related`]).
    fn related(&self, _one: &[u8], _other: &[u8]) {}
}

impl<F: Fn(Observation) + Send + Sync> Sink for F {
    fn observe(&self, observation: Observation) {
        self(observation);
    }
}

/// A host that tells a sink what it was asked.
///
/// ```
/// use std::sync::Mutex;
/// use firn_host::{AbsPath, Host, MemoryHost, MemoryWorld, Observation, Question, Recording};
/// let seen = Mutex::new(Vec::new());
/// let sink = |observation: Observation| seen.lock().unwrap().push(observation);
/// let host = Recording::new(MemoryHost::new(MemoryWorld::new()), &sink, AbsPath::new(b"/nix/store")?);
/// let path = AbsPath::new(b"/missing")?;
/// assert!(!host.path_exists(&path, false)?);
/// assert_eq!(seen.lock().unwrap()[0].question, Question::Exists(path, false));
/// # Ok::<(), firn_host::HostError>(())
/// ```
pub struct Recording<H, S> {
    host: H,
    sink: S,
    store_dir: AbsPath,
    /// Store paths of trees that lie elsewhere: their content is what their name says, whoever looked at how the tree was
    /// found has written that down.
    mounted: RwLock<Below<()>>,
    /// What is seen in such trees is written down as well.
    looks_inside: bool,
    /// Files that may have been prepared.
    preparation: Option<Arc<Preparation>>,
}

impl<H: Host, S: Sink> Recording<H, S> {
    /// What lies inside entries of `store_dir` never changes and is recorded as durable.
    pub fn new(host: H, sink: S, store_dir: AbsPath) -> Recording<H, S> {
        Recording { host, sink, store_dir, mounted: RwLock::default(), looks_inside: false, preparation: None }
    }

    /// Writes down what is seen inside trees that lie elsewhere, too: for people, who want to know.
    #[must_use]
    pub fn looking_inside(mut self) -> Recording<H, S> {
        self.looks_inside = true;
        self
    }

    /// Files that were prepared are not read again. Who prepares them asks the host behind, or one that answers as it does.
    #[must_use]
    pub fn preparing(mut self, preparation: Arc<Preparation>) -> Recording<H, S> {
        self.preparation = Some(preparation);
        self
    }

    /// The host behind.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// High for something present inside a store path. The store directory itself gains and loses entries, and what is
    /// absent today may be built tomorrow.
    // PERF: whether it is present is asked only there: following links took a hundredth of a small evaluation.
    fn durability(&self, path: &AbsPath, is_present: impl FnOnce() -> bool) -> Durability {
        let inside = path.is_within(&self.store_dir) && *path != self.store_dir;
        if inside && is_present() { Durability::High } else { Durability::Medium }
    }

    /// Whether the path is there and no link lies on it. Links may lead out of the store, and back.
    fn is_plain(&self, path: &AbsPath) -> bool {
        self.is_there(path) && self.host.resolve_symlinks(path, Follow::Full).is_ok_and(|real| real == *path)
    }

    fn is_there(&self, path: &AbsPath) -> bool {
        matches!(self.host.file_type(path), Ok(Some(_)))
    }

    /// A link may lead from one tree into another.
    fn follow(&self, path: &AbsPath, answer: &Result<AbsPath, HostError>) {
        if let Ok(real) = answer
            && real != path
        {
            self.sink.related(path.as_bytes(), real.as_bytes());
        }
    }

    fn is_mounted(&self, path: &AbsPath) -> bool {
        self.mounted.read().unwrap_or_else(PoisonError::into_inner).find(path).is_some()
    }

    fn note(&self, question: Question, digest: Digest, durability: Durability) {
        if question.path().is_none_or(|path| self.is_noted(path)) {
            self.sink.observe(Observation { question, digest, durability });
        }
    }

    fn is_noted(&self, path: &AbsPath) -> bool {
        self.looks_inside || !self.is_mounted(path)
    }

    /// The code and the bytes of a file that was read; none if there is nothing more to note.
    fn seen_code(&self, path: &AbsPath, answer: &Result<FileContent, HostError>) -> Option<(Seen, Seen)> {
        let Ok(content) = answer else {
            self.note_content(path, answer);
            return None;
        };
        self.is_noted(path).then(|| self.seen_as(path, content, Promised::code(content)))
    }

    /// The code and the bytes of a file.
    fn seen_as(&self, path: &AbsPath, content: &FileContent, code: Promised) -> (Seen, Seen) {
        let durability = self.durability(path, || true);
        let seen = |question, promised| Seen { question, answer: Answer::Promised(promised), durability };
        (seen(Question::Code(path.clone()), code), seen(Question::File(path.clone()), Promised::text(content)))
    }

    /// Tells of a file that was read as code, and of its outline if it has one.
    fn bound(&self, content: &FileContent, (code, file): (Seen, Seen), outline: impl FnOnce() -> Option<Outline>) -> Option<Bindings> {
        // What never changes need not be told apart.
        let cut = if code.durability == Durability::High { None } else { outline() };
        let (Some(Outline { start, rest, bound }), Some(path)) = (cut, code.question.path()) else {
            self.sink.observe_code(code, file);
            return None;
        };
        let outline = Observation { question: Question::Outline(path.clone()), digest: digest_rest(&rest), durability: code.durability };
        let guard = self.sink.observe_bindings(outline, code, file, Bound { text: content.clone(), places: bound });
        guard.map(|guard| Bindings { start, guard })
    }

    /// Notes the bytes of a file, or why they could not be read.
    fn note_content(&self, path: &AbsPath, answer: &Result<FileContent, HostError>) {
        let question = Question::File(path.clone());
        match answer {
            Ok(content) => self.note_read(question, Promised::text(content), path),
            Err(_) => self.note(question, digest_file(path, answer), self.durability(path, || false)),
        }
    }

    /// Notes the entries of a directory, or why they could not be listed.
    fn note_listing(&self, path: &AbsPath, answer: &Result<Listing, HostError>) {
        let question = Question::Directory(path.clone());
        match answer {
            Ok(listing) => self.note_read(question, Promised::listing(listing), path),
            Err(_) => self.note(question, digest_listing(path, answer), self.durability(path, || false)),
        }
    }

    /// Notes what was read or listed.
    fn note_read(&self, question: Question, promised: Promised, path: &AbsPath) {
        if self.is_noted(path) {
            self.sink.observe_read(Seen { question, answer: Answer::Promised(promised), durability: self.durability(path, || true) });
        }
    }
}

impl<H: Host, S: Sink> Host for Recording<H, S> {
    hand_on!(self => self.host; allow check_access);

    fn lstat(&self, path: &AbsPath) -> Result<Option<Stat>, HostError> {
        let answer = self.host.lstat(path);
        let durability = self.durability(path, || matches!(answer, Ok(Some(_))));
        self.note(Question::Stat(path.clone()), digest_stat(path, &answer), durability);
        answer
    }

    fn read_file(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        let answer = self.host.read_file(path);
        self.note_content(path, &answer);
        answer
    }

    fn read_once(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        let answer = self.host.read_once(path);
        self.note_content(path, &answer);
        answer
    }

    fn read_code(&self, path: &AbsPath) -> Result<FileContent, HostError> {
        let answer = self.host.read_once(path);
        if let Some((code, file)) = self.seen_code(path, &answer) {
            self.sink.observe_code(code, file);
        }
        answer
    }

    fn read_bindings(&self, path: &AbsPath) -> Result<Code, HostError> {
        let prepared = self.preparation.as_ref().filter(|_| self.is_noted(path)).and_then(|preparation| preparation.take(path));
        if let Some(Prepared { content, code, outline, tree, measured }) = prepared {
            let seen = self.seen_as(path, &content, code);
            let bindings = self.bound(&content, seen, || outline);
            return Ok(Code { content, bindings, tree: Some(tree), measured });
        }
        let answer = self.host.read_once(path);
        let seen = self.seen_code(path, &answer);
        let content = answer?;
        let bindings = seen.and_then(|seen| self.bound(&content, seen, || firn_syntax::outline(&content.shared())));
        Ok(Code { bindings, ..content.into() })
    }

    fn seen_text(&self, path: &AbsPath) {
        if self.is_noted(path) {
            self.sink.seen_text(path);
        }
    }

    fn mount(&self, seen_at: AbsPath, mount: crate::Mount) -> bool {
        let done = self.host.mount(seen_at.clone(), mount);
        if done {
            self.mounted.write().unwrap_or_else(PoisonError::into_inner).insert(seen_at, ());
        }
        done
    }

    fn seen_at(&self, path: &[u8]) {
        self.sink.seen_at(path);
    }

    fn related(&self, one: &[u8], other: &[u8]) {
        self.sink.related(one, other);
    }

    fn notes_places(&self) -> bool {
        true
    }

    fn read_dir(&self, path: &AbsPath) -> Result<Listing, HostError> {
        let answer = self.host.read_dir(path);
        self.note_listing(path, &answer);
        answer
    }

    fn read_names(&self, path: &AbsPath) -> Result<(Listing, Option<u32>), HostError> {
        // What never changes need not be told apart.
        if !self.is_noted(path) || self.durability(path, || true) == Durability::High {
            return self.read_dir(path).map(|listing| (listing, None));
        }
        let answer = self.host.read_dir(path);
        let Ok(listing) = &answer else {
            self.note_listing(path, &answer);
            return answer.map(|listing| (listing, None));
        };
        let (question, answered) = (Question::Directory(path.clone()), Answer::Promised(Promised::listing(listing)));
        let guard = self.sink.guard(Seen { question, answer: answered, durability: Durability::Medium });
        answer.map(|listing| (listing, guard))
    }

    fn read_link(&self, path: &AbsPath) -> Result<Arc<[u8]>, HostError> {
        let answer = self.host.read_link(path);
        let durability = self.durability(path, || answer.is_ok());
        self.note(Question::Link(path.clone()), digest_link(path, &answer), durability);
        answer
    }

    fn env(&self, name: &[u8]) -> Option<Arc<[u8]>> {
        let answer = self.host.env(name);
        self.note(Question::Env(name.into()), digest_option("env", answer.as_deref()), Durability::Low);
        answer
    }

    fn current_time(&self) -> i64 {
        let answer = self.host.current_time();
        self.note(Question::Time, digest_time(answer), Durability::Low);
        answer
    }

    fn home(&self) -> Result<Arc<[u8]>, HostError> {
        let answer = self.host.home();
        self.note(Question::Home, digest_home(&answer), Durability::Low);
        answer
    }

    fn current_dir(&self) -> Result<AbsPath, HostError> {
        let answer = self.host.current_dir();
        self.note(Question::CurrentDir, digest_path(PathKind::CurrentDir, &AbsPath::root(), &answer), Durability::Low);
        answer
    }

    fn file_type(&self, path: &AbsPath) -> Result<Option<FileType>, HostError> {
        let answer = self.host.file_type(path);
        let durability = self.durability(path, || matches!(answer, Ok(Some(_))));
        self.note(Question::Type(path.clone()), digest_type(path, &answer), durability);
        answer
    }

    fn dir_entry(&self, dir: &AbsPath, name: &[u8]) -> Result<Option<Entry>, HostError> {
        let answer = self.host.dir_entry(dir, name);
        let durability = self.durability(dir, || answer.is_ok());
        self.note(Question::DirectoryEntry(dir.clone(), name.into()), digest_entry(dir, &answer), durability);
        answer
    }

    fn resolve_symlinks(&self, path: &AbsPath, follow: Follow) -> Result<AbsPath, HostError> {
        let answer = self.host.resolve_symlinks(path, follow);
        self.follow(path, &answer);
        let digest = digest_path(PathKind::Resolve, path, &answer);
        let is_plain = || answer.as_ref().is_ok_and(|real| real == path && self.is_there(path));
        self.note(Question::Resolve(path.clone(), follow), digest, self.durability(path, is_plain));
        answer
    }

    fn resolve_expr_path(&self, path: &AbsPath) -> Result<AbsPath, HostError> {
        let answer = self.host.resolve_expr_path(path);
        self.follow(path, &answer);
        let digest = digest_path(PathKind::Import, path, &answer);
        let is_plain = || answer.as_ref().is_ok_and(|file| file.is_within(path) && self.is_plain(file));
        self.note(Question::ExprPath(path.clone()), digest, self.durability(path, is_plain));
        answer
    }

    /// Of a file that lies where its path says, which it is and that it lies there follow from its content (`Seen::follows_from`).
    // PERF: a quarter of what 1,000 jobs of nixpkgs observed.
    fn find_code(&self, path: &AbsPath) -> Result<(AbsPath, AbsPath), HostError> {
        if let Ok((file, real)) = self.host.find_code(path)
            && file == real
            && (file == *path || file == path.child(b"default.nix"))
            && self.is_noted(&file)
        {
            if file != *path {
                self.sink.related(path.as_bytes(), file.as_bytes());
            }
            return Ok((file, real));
        }
        let file = self.resolve_expr_path(path)?;
        let real = self.resolve_symlinks(&file, Follow::Full)?;
        Ok((file, real))
    }

    fn path_exists(&self, path: &AbsPath, must_be_dir: bool) -> Result<bool, HostError> {
        let answer = self.host.path_exists(path, must_be_dir);
        let digest = digest_exists(path, &answer);
        let is_plain = || answer == Ok(true) && self.is_plain(path);
        self.note(Question::Exists(path.clone(), must_be_dir), digest, self.durability(path, is_plain));
        answer
    }

    fn find_file(&self, search: &SearchPath, name: &[u8], entries: &dyn EntrySource) -> Result<Found, HostError> {
        let entries = NotedFetch { entries, fetched: AtomicBool::new(false) };
        let answer = self.host.find_file(search, name, &entries);
        let fetched = entries.fetched.load(Ordering::Relaxed);
        let durability = if fetched { Durability::Low } else { Durability::Medium };
        self.note(Question::SearchPath(search.clone(), name.into()), digest_found(search, &answer), durability);
        answer
    }
}

/// Remembers whether anything was fetched: such a lookup depends on the network.
struct NotedFetch<'a> {
    entries: &'a dyn EntrySource,
    fetched: AtomicBool,
}

impl EntrySource for NotedFetch<'_> {
    fn fetch(&self, url: PseudoUrl<'_>) -> Result<Option<AbsPath>, HostError> {
        self.fetched.store(true, Ordering::Relaxed);
        self.entries.fetch(url)
    }
    fn warn(&self, message: &[u8]) {
        self.entries.warn(message);
    }
}
