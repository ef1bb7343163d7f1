//! `Behind`: takes additions at once and writes them from a thread of its own, in batches, off evaluation's way.
//!
//! 1. An addition is pending until its batch is written; texts stay readable meanwhile. Additions come after what they
//!    refer to, and batches keep their order.
//! 2. An eager store writes as it goes. A lazy one (plain evaluation) writes only when a build needs what is pending.
//! 3. The first failure is everyone's: later additions, waits and [`Store::finish`] all report it.
#![allow(clippy::disallowed_methods)]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use firn_store::content_address::Method;
use firn_store::context::Built;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::{Error, ErrorKind, Result};

use super::local::refused;
use super::{Missing, Source, SourceError, Store, Text};
use crate::{AbsPath, Host};

/// The most additions written together: as many locks are held at once.
const BATCH: usize = 128;
/// How long a batch waits for company.
const LINGER: Duration = Duration::from_millis(10);
/// Evaluation waits for the writer beyond this many pending bytes.
const MOST_PENDING: usize = 256 << 20;

/// What an object is made of.
#[derive(Clone)]
pub(super) enum Content {
    /// A plain file.
    Text(Arc<[u8]>, Method),
    /// A tree that the host reads.
    Tree(Source, Arc<dyn Host>),
    /// A tree that the host reads at a place, with what another store knew of it.
    Object(Arc<PathInfo>, AbsPath, Arc<dyn Host>),
}

/// The bytes, for the thread that writes.
fn shared(text: Text) -> Arc<[u8]> {
    match text {
        Text::Lasting(bytes) => bytes.into(),
        Text::Own(bytes) => bytes.into(),
    }
}

/// An object to be written.
#[derive(Clone)]
pub(super) struct Item {
    pub path: StorePath,
    pub references: Arc<[StorePath]>,
    pub content: Content,
}

impl Item {
    fn len(&self) -> usize {
        match &self.content {
            Content::Text(text, _) => text.len(),
            Content::Tree(..) | Content::Object(..) => 0,
        }
    }
}

/// A place that objects are written to. Asked from evaluation's threads and from the writer's.
pub(super) trait Backend: Send + Sync {
    fn is_valid(&self, path: &StorePath) -> Result<bool>;
    /// What the object refers to; none if it does not exist.
    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>>;
    /// All that is known of the object; none if it does not exist.
    fn info(&self, path: &StorePath) -> Result<Option<PathInfo>>;
    /// Writes what does not exist yet. Never called twice at a time.
    fn write(&self, batch: &[Item]) -> Result<()>;
    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>>;
    fn add_root(&self, path: &StorePath, root: &AbsPath) -> Result<()>;
    /// See [`Store::missing`].
    fn missing(&self, objects: &[StorePath], outputs: &[Built]) -> Result<Option<Missing>>;
    fn close(&self) {}
}

/// A store that writes behind evaluation's back.
pub(super) struct Behind(Arc<Shared>);

struct Shared {
    backend: Box<dyn Backend>,
    real: AbsPath,
    eager: bool,
    state: Mutex<State>,
    /// The writer waits here for work.
    work: Condvar,
    /// Everyone else waits here for the writer.
    progress: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Item>,
    /// What is queued or being written, and the text of it.
    pending: HashMap<StorePath, Option<Arc<[u8]>>>,
    pending_bytes: usize,
    /// What this run added, and what that refers to.
    added: HashMap<StorePath, Arc<[StorePath]>>,
    /// What is known of what came from other stores.
    infos: HashMap<StorePath, Arc<PathInfo>>,
    /// What this run built, and what it found to exist.
    built: HashMap<StorePath, ()>,
    valid: HashMap<StorePath, ()>,
    /// How many wait for the queue to become empty.
    hurry: usize,
    writing: bool,
    started: bool,
    failure: Option<Error>,
}

impl Behind {
    /// `real` is the directory that holds the objects.
    pub fn new(backend: Box<dyn Backend>, real: AbsPath, eager: bool) -> Behind {
        let shared = Shared { backend, real, eager, state: Mutex::default(), work: Condvar::new(), progress: Condvar::new() };
        Behind(Arc::new(shared))
    }

    fn add(&self, item: Item) -> Result<()> {
        let shared = &self.0;
        let mut state = shared.lock();
        state.check()?;
        if state.added.contains_key(&item.path) {
            return Ok(());
        }
        if shared.eager {
            while state.pending_bytes > MOST_PENDING {
                state = shared.wait(&shared.progress, state);
                state.check()?;
            }
        }
        let text = match &item.content {
            Content::Text(text, _) => Some(text.clone()),
            Content::Tree(..) | Content::Object(..) => None,
        };
        if let Content::Object(info, ..) = &item.content {
            state.infos.insert(item.path.clone(), info.clone());
        }
        state.pending_bytes += item.len();
        state.added.insert(item.path.clone(), item.references.clone());
        state.pending.insert(item.path.clone(), text);
        state.queue.push_back(item);
        if shared.eager {
            start(shared, &mut state)?;
            if state.queue.len() == 1 || state.queue.len() == BATCH {
                shared.work.notify_one();
            }
        }
        Ok(())
    }

    /// Writes everything that is queued.
    fn flush(&self) -> Result<()> {
        let shared = &self.0;
        let mut state = shared.lock();
        state.check()?;
        if state.pending.is_empty() {
            return Ok(());
        }
        start(shared, &mut state)?;
        state.hurry += 1;
        shared.work.notify_one();
        while !state.pending.is_empty() && state.failure.is_none() {
            state = shared.wait(&shared.progress, state);
        }
        state.hurry -= 1;
        state.check()
    }
}

/// Starts the writer, once. It lives as long as the process: what it holds is finished by [`Store::finish`].
fn start(shared: &Arc<Shared>, state: &mut State) -> Result<()> {
    if state.started {
        return Ok(());
    }
    let own = shared.clone();
    let thread = std::thread::Builder::new().name("store writer".to_owned());
    thread.spawn(move || write_all(&own))?;
    state.started = true;
    Ok(())
}

fn write_all(shared: &Shared) {
    let mut state = shared.lock();
    while state.failure.is_none() {
        if state.queue.is_empty() || !(shared.eager || state.hurry > 0) {
            state = shared.wait(&shared.work, state);
            continue;
        }
        if state.queue.len() < BATCH && state.hurry == 0 {
            let lingered = shared.work.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = lingered.0;
        }
        let count = state.queue.len().min(BATCH);
        let batch: Vec<Item> = state.queue.drain(..count).collect();
        state.writing = true;
        drop(state);
        let written = shared.backend.write(&batch);
        state = shared.lock();
        state.writing = false;
        match written {
            Ok(()) => {
                for item in &batch {
                    state.pending.remove(&item.path);
                    state.pending_bytes -= item.len();
                }
            }
            Err(error) => state.failure = Some(error),
        }
        shared.progress.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, event: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        event.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self) -> Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.again()))
    }
}

impl Store for Behind {
    fn is_valid(&self, path: &StorePath) -> Result<bool> {
        {
            let state = self.0.lock();
            if state.added.contains_key(path) || state.valid.contains_key(path) {
                return Ok(true);
            }
        }
        let valid = self.0.backend.is_valid(path)?;
        if valid {
            self.0.lock().valid.insert(path.clone(), ());
        }
        Ok(valid)
    }

    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>> {
        if let Some(known) = self.0.lock().added.get(path) {
            return Ok(Some(known.clone()));
        }
        self.0.backend.references(path)
    }

    fn text(&self, path: &StorePath) -> Option<Arc<[u8]>> {
        self.0.lock().pending.get(path)?.clone()
    }

    fn read(&self, path: &StorePath) -> Result<Option<Arc<[u8]>>> {
        if let Some(text) = self.text(path) {
            return Ok(Some(text));
        }
        let place = self.0.real.child(path.as_bytes());
        match std::fs::read(place.as_path()) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused("opening file", place.as_path(), error)),
        }
    }

    fn add_text(
        &self,
        path: &StorePath,
        contents: Text,
        references: Arc<[StorePath]>,
        method: Method,
    ) -> Result<()> {
        self.add(Item { path: path.clone(), references, content: Content::Text(shared(contents), method) })
    }

    fn add_source(&self, path: &StorePath, source: &Source, host: &Arc<dyn Host>) -> Result<(), SourceError> {
        let content = Content::Tree(source.clone(), host.clone());
        Ok(self.add(Item { path: path.clone(), references: source.references.clone(), content })?)
    }

    fn add_object(&self, info: &Arc<PathInfo>, root: &AbsPath, host: &Arc<dyn Host>) -> Result<()> {
        let content = Content::Object(info.clone(), root.clone(), host.clone());
        self.add(Item { path: info.path.clone(), references: info.references.clone().into(), content })
    }

    fn info(&self, path: &StorePath) -> Result<Option<Arc<PathInfo>>> {
        if let Some(known) = self.0.lock().infos.get(path) {
            return Ok(Some(known.clone()));
        }
        Ok(self.0.backend.info(path)?.map(Arc::new))
    }

    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        self.flush()?;
        let paths = self.0.backend.build(wanted)?;
        if paths.len() != wanted.len() {
            return Err(Error::new(ErrorKind::Other, &[b"the store gave fewer outputs than it was asked to build"]));
        }
        let mut state = self.0.lock();
        state.built.extend(paths.iter().map(|path| (path.clone(), ())));
        Ok(paths)
    }

    fn missing(&self, objects: &[StorePath], outputs: &[Built]) -> Result<Option<Missing>> {
        self.flush()?;
        self.0.backend.missing(objects, outputs)
    }

    fn is_made(&self, path: &StorePath) -> bool {
        let state = self.0.lock();
        state.added.contains_key(path) || state.built.contains_key(path)
    }

    fn settle(&self, path: &StorePath) -> Result<()> {
        let pending = self.0.lock().pending.contains_key(path);
        if pending { self.flush() } else { Ok(()) }
    }

    fn finish(&self) -> Result<()> {
        if self.0.eager { self.flush() } else { self.0.lock().check() }
    }

    fn close(&self) -> Result<()> {
        let finished = self.finish();
        let mut state = self.0.lock();
        while state.writing {
            state = self.0.wait(&self.0.progress, state);
        }
        drop(state);
        self.0.backend.close();
        finished
    }

    fn add_root(&self, path: &StorePath, root: &AbsPath) -> Result<bool> {
        self.flush()?;
        self.0.backend.add_root(path, root)?;
        Ok(true)
    }
}
