//! `Preparation`: files of code that are read and parsed by a thread of its own before evaluation asks for them (decision 0021).
//!
//! 1. Who knows which files an evaluation will likely read says so ([`Preparation::begin`]), in about the order in which it will.
//! 2. The thread looks at each as [`Recording`](crate::Recording) would, through a host that writes nothing down: bytes, tokens, outline, tree.
//! 3. Whoever reads such a file then has all of that at once, and it is observed then, from these very bytes. That they were read earlier is
//!    no difference: a host answers as things were when it was first asked.
//! 4. Of a file that the thread has not come to, or of which anything is to be said, there is nothing, and it is read as any.

use crate::promised::Promised;
use crate::{AbsPath, FileContent, FileType, Follow, Host};
use firn_source::Measured;
use firn_syntax::{Apart, Features, Outline, Unplaced};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// No more bytes of trees and texts wait for somebody to ask.
const MOST_WAITING: usize = 16 << 20;
/// Longer texts are not prepared: few are, and one takes as long as a hundred others.
const LONGEST: u64 = 1 << 20;
/// Texts are let go once many bytes were read ([`firn_source::SourceFile::release`]): that is likely when so many were prepared.
const MANY: usize = 1 << 20;
/// How many files are passed over when evaluation asks for the one that is being parsed: from then on the thread is ahead again.
const LEAP: usize = 4;

/// Says which files may be asked for, on the thread that prepares them.
pub type Likely = Box<dyn FnOnce() -> Vec<AbsPath> + Send>;

/// Files that were prepared, and the thread that does it.
pub struct Preparation {
    host: Arc<dyn Host>,
    /// Whether there is a thread, or was one.
    is_begun: AtomicBool,
    state: Mutex<State>,
    /// There is room, or something to do, or nothing any more.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    files: FxHashMap<AbsPath, Slot>,
    /// Those that wait, and perhaps some that do no longer, first prepared first.
    waiting: VecDeque<AbsPath>,
    /// Their bytes.
    bytes: usize,
    is_full: bool,
    todo: Vec<Likely>,
    is_running: bool,
    /// The thread waits for something to do.
    is_idle: bool,
    is_stopped: bool,
}

enum Slot {
    Ready(Box<Prepared>),
    /// Evaluation has read it, or is reading it.
    Asked,
}

/// A file that was prepared.
pub(crate) struct Prepared {
    pub(crate) content: FileContent,
    pub(crate) code: Promised,
    pub(crate) outline: Option<Outline>,
    pub(crate) tree: Unplaced,
    pub(crate) measured: Option<Measured>,
}

impl State {
    /// Takes a file that waits.
    fn take(&mut self, path: &AbsPath) -> Option<Box<Prepared>> {
        let Some(Slot::Ready(prepared)) = self.files.insert(path.clone(), Slot::Asked) else { return None };
        self.bytes -= prepared.tree.weight();
        Some(prepared)
    }

    /// Lets the file go that waits longest.
    fn drop_first(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            if let Some(Slot::Ready(prepared)) = self.files.get(&first) {
                self.bytes -= prepared.tree.weight();
                self.files.remove(&first);
                return;
            }
        }
    }
}

fn has_several_cores() -> bool {
    static SEVERAL: OnceLock<bool> = OnceLock::new();
    *SEVERAL.get_or_init(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1))
}

impl Preparation {
    /// Nothing is prepared yet. `host` answers as it would answer the evaluation, and writes nothing down.
    pub fn new(host: Arc<dyn Host>) -> Preparation {
        Preparation { host, is_begun: AtomicBool::new(false), state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares these files from now on, to be parsed so; not where there is one core only.
    pub fn begin(self: &Arc<Preparation>, features: Features, likely: Likely) {
        if has_several_cores() || is_perturbed() {
            self.begin_anyway(features, likely);
        }
    }

    fn begin_anyway(self: &Arc<Preparation>, features: Features, likely: Likely) {
        let mut state = self.state();
        state.todo.push(likely);
        (state.is_stopped, state.is_idle) = (false, false);
        if !state.is_running {
            let this = Arc::clone(self);
            let thread = std::thread::Builder::new().name("firn prepares".to_owned());
            state.is_running = thread.spawn(move || this.prepare_all(features)).is_ok();
            self.is_begun.store(state.is_running, Ordering::Relaxed);
        }
        self.changed.notify_all();
    }

    /// Nobody will ask any more: the thread lets everything go and ends.
    pub fn stop(&self) {
        if self.is_begun.load(Ordering::Relaxed) {
            self.state().is_stopped = true;
            self.changed.notify_all();
        }
    }

    /// What was prepared of a file that is read now; from now on it is not.
    pub(crate) fn take(&self, path: &AbsPath) -> Option<Prepared> {
        if !self.is_begun.load(Ordering::Relaxed) {
            return None;
        }
        if is_perturbed() && chance(2) {
            self.wait_for(path);
        }
        let mut state = self.state();
        let prepared = state.take(path);
        if state.is_full {
            if prepared.is_none() {
                // Evaluation goes another way: what was prepared first may never be asked for.
                state.drop_first();
            }
            if state.bytes < MOST_WAITING / 2 || prepared.is_none() {
                state.is_full = false;
                self.changed.notify_all();
            }
        }
        drop(state);
        prepared.map(|prepared| *prepared)
    }

    fn prepare_all(&self, features: Features) {
        let (mut apart, mut bytes) = (Apart::default(), 0);
        while let Some(likely) = self.next() {
            let (mut leap, mut likely) = (0_usize, likely());
            perturb(&mut likely);
            for path in likely {
                let state = self.state();
                if state.is_stopped {
                    break;
                }
                if leap > 0 || state.files.contains_key(&path) {
                    leap = leap.saturating_sub(1);
                    continue;
                }
                drop(state);
                let Some(mut prepared) = self.prepare(&path, &mut apart, features) else { continue };
                bytes += prepared.content.bytes().len();
                if bytes > MANY {
                    prepared.measured = Some(Measured::of(prepared.content.bytes()));
                }
                if !self.put(path, prepared) {
                    leap = LEAP;
                }
            }
        }
    }

    /// Waits for something to do; none if there is nothing any more.
    fn next(&self) -> Option<Likely> {
        let mut state = self.state();
        while !state.is_stopped {
            if let Some(likely) = state.todo.pop() {
                return Some(likely);
            }
            state.is_idle = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let _unasked = std::mem::take(&mut *state);
        drop(state);
        None
    }

    fn prepare(&self, path: &AbsPath, apart: &mut Apart, features: Features) -> Option<Prepared> {
        let real = self.host.resolve_symlinks(path, Follow::Full).ok()?;
        let stat = self.host.lstat(path).ok()??;
        if real != *path || stat.file_type != FileType::Regular || stat.stamp.size > LONGEST {
            return None;
        }
        let content = self.host.read_once(path).ok()?;
        let text = content.shared();
        let code = Promised::sound_code(&content)?;
        let outline = firn_syntax::outline(&text);
        let tree = apart.parse(text, features)?;
        Some(Prepared { content, code, outline, tree, measured: None })
    }

    /// Has a file wait for whoever asks, as soon as there is room; false if somebody has asked already.
    fn put(&self, path: AbsPath, prepared: Prepared) -> bool {
        let mut state = self.state();
        while state.bytes > MOST_WAITING && !state.is_stopped {
            state.is_full = true;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.files.contains_key(&path) {
            return false;
        }
        state.bytes += prepared.tree.weight();
        state.waiting.push_back(path.clone());
        state.files.insert(path, Slot::Ready(Box::new(prepared)));
        true
    }

    /// Waits until a file is ready or will not be.
    fn wait_for(&self, path: &AbsPath) {
        loop {
            let state = self.state();
            if state.files.contains_key(path) || !state.is_running || state.is_idle || state.is_full {
                return;
            }
            drop(state);
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// The state of random numbers, for tests; 0: what is prepared is left to the schedule.
static PERTURBED: AtomicU64 = AtomicU64::new(0);

/// For tests: files are prepared in any order, now early, now late.
pub fn perturb_preparation(seed: u64) {
    PERTURBED.store(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, Ordering::Relaxed);
}

fn is_perturbed() -> bool {
    PERTURBED.load(Ordering::Relaxed) != 0
}

/// One time in `of`.
fn chance(of: u64) -> bool {
    let step = |x: u64| {
        let x = x ^ x << 13;
        let x = x ^ x >> 7;
        x ^ x << 17
    };
    let before = PERTURBED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| Some(step(x))).unwrap_or_default();
    (step(before) >> 11) % of == 0
}

/// For tests: some files come first, or not at all.
fn perturb(likely: &mut Vec<AbsPath>) {
    if is_perturbed() {
        likely.retain(|_| !chance(8));
        likely.sort_by_key(|_| chance(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryHost, MemoryWorld, Observation, Question, Recording};

    fn path(raw: &str) -> AbsPath {
        AbsPath::new(raw.as_bytes()).expect("no NUL")
    }

    #[test]
    fn what_is_observed_of_a_prepared_file_is_what_is_observed_of_any() {
        let world = MemoryWorld::new();
        let large: String = (0..200).map(|i| format!("a_name_that_is_not_too_short_{i} = {i};\n")).collect();
        let texts = [("/a", "{ a = 1; } # one"), ("/b", "{ a = 1; a = 2; }"), ("/c", "\""), ("/d", &*format!("p: with p; {{ {large} }}")), ("/e", "x: x")];
        texts.iter().for_each(|(at, text)| world.write(at, *text));
        let host: Arc<dyn Host> = Arc::new(MemoryHost::new(world));
        let preparation = Arc::new(Preparation::new(host.clone()));
        let likely = ["/a", "/b", "/c", "/d", "/missing"].map(path).to_vec();
        preparation.begin_anyway(Features::default(), Box::new(|| likely));
        while !preparation.state().is_idle {
            std::thread::yield_now();
        }
        let read = |preparation: Option<&Arc<Preparation>>| {
            let seen = Mutex::new(Vec::new());
            let sink = |observation: Observation| seen.lock().expect("no panic").push(observation);
            let mut recording = Recording::new(host.clone(), &sink, path("/nix/store"));
            if let Some(preparation) = preparation {
                recording = recording.preparing(preparation.clone());
            }
            let trees = texts.map(|(at, _)| recording.read_bindings(&path(at)).map(|code| (code.content, code.tree.is_some())).expect("it is there"));
            drop(recording);
            (trees, seen.into_inner().expect("no panic"))
        };
        let (plain, prepared) = (read(None), read(Some(&preparation)));
        assert_eq!(plain.1, prepared.1);
        assert!(prepared.1.iter().any(|seen| matches!(seen.question, Question::File(_))));
        assert!(plain.0.iter().zip(&prepared.0).all(|(one, other)| one.0 == other.0));
        assert_eq!(prepared.0.map(|(_, is_parsed)| is_parsed), [true, false, false, true, false]);
        assert!(read(Some(&preparation)).0.iter().all(|(_, is_parsed)| !is_parsed), "each is taken once");
        preparation.begin_anyway(Features::default(), Box::new(|| vec![path("/e"), path("/f")]));
        preparation.stop();
        while preparation.state().is_running {
            std::thread::yield_now();
        }
        assert!(preparation.state().files.is_empty());
    }
}
