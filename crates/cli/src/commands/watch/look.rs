//! Looking whether what was observed is still so.

use crate::failure::Failure;
use crate::observed;
use firn_host::{AbsPath, Digest, Durability, FileType, Host, Observation, Question, RealHost, RealWorld, Stamp};
use firn_memo::kept::{Judged, Roles, Verifier, Witness};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// The least time between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// A look may take this part of the time.
const SHARE: u32 = 20;
/// As long as changes go on within this time, they belong together.
const SETTLE: Duration = Duration::from_millis(60);

/// What is watched.
pub(super) struct Watcher {
    observations: Vec<Observation>,
    roles: Roles,
    /// Directories that are watched with all that is in them.
    trees: Vec<AbsPath>,
    states: BTreeMap<AbsPath, Stamp>,
    vouched: Vouched,
}

/// Directories that are watched with all that is in them, as they were before evaluation looked.
pub(super) struct Trees {
    trees: Vec<AbsPath>,
    states: BTreeMap<AbsPath, Stamp>,
}

impl Trees {
    pub fn look(trees: Vec<AbsPath>) -> Trees {
        let states = states(&trees);
        Trees { trees, states }
    }
}

/// What states of files were found to vouch for.
#[derive(Default)]
struct Vouched(RefCell<HashMap<Question, (Stamp, Digest)>>);

impl Witness for Vouched {
    fn node(&self, _: &Digest) -> Option<Cow<'_, [u8]>> {
        None
    }

    fn vouched(&self, question: &Question, stamp: &Stamp) -> Option<Digest> {
        self.0.borrow().get(question).filter(|(known, _)| known == stamp).map(|(_, digest)| *digest)
    }

    fn vouch(&self, question: &Question, stamp: &Stamp, digest: Digest) {
        self.0.borrow_mut().insert(question.clone(), (*stamp, digest));
    }

    fn store_object(&self, _: &[u8]) -> Option<Digest> {
        None
    }
}

impl Watcher {
    /// Of what was observed, that is watched which can change while the process lives: what lies in files outside the
    /// store.
    pub fn new(observations: Vec<Observation>, Trees { trees, states }: Trees, roles: Roles) -> Watcher {
        let is_watched = |seen: &Observation| {
            let asked = seen.question.path().is_some() || matches!(seen.question, Question::SearchPath(..));
            asked && seen.durability != Durability::High
        };
        let observations = observations.into_iter().filter(is_watched).collect();
        Watcher { observations, roles, trees, states, vouched: Vouched::default() }
    }

    /// What is watched, for people.
    pub fn title(&self) -> String {
        match (self.observations.len(), self.states.len()) {
            (0, 0) => "nothing that could change".to_owned(),
            (1, 0) => "1 observation".to_owned(),
            (seen, 0) => format!("{seen} observations"),
            (_, files) => format!("{files} files"),
        }
    }

    /// What has changed, in sentences.
    fn look(&self) -> Vec<String> {
        // A host answers each question once: a new one sees how things are now.
        let host = RealHost::new(RealWorld);
        let judged = Judged::default();
        let verifier = Verifier::new(&host, &self.vouched, &self.roles, &judged);
        let changes = verifier.changes(&self.observations);
        let mut told: Vec<String> = changes.iter().map(|change| observed::sentence(change, &self.roles)).collect();
        told.extend(self.moved());
        told.sort();
        told.dedup();
        told
    }

    /// What has changed in the trees.
    fn moved(&self) -> Vec<String> {
        if self.trees.is_empty() {
            return Vec::new();
        }
        let (now, mut told) = (states(&self.trees), Vec::new());
        let shown = |path: &AbsPath| {
            let tree = self.trees.iter().find(|tree| path.is_within(tree));
            let rest = tree.and_then(|tree| path.as_bytes().strip_prefix(tree.as_bytes())).unwrap_or(path.as_bytes());
            String::from_utf8_lossy(rest.strip_prefix(b"/").unwrap_or(rest)).into_owned()
        };
        for (path, stamp) in &self.states {
            match now.get(path) {
                None => told.push(format!("file {} disappeared", shown(path))),
                Some(other) if other != stamp => told.push(format!("file {} changed", shown(path))),
                Some(_) => {}
            }
        }
        told.extend(now.keys().filter(|path| !self.states.contains_key::<AbsPath>(path)).map(|path| format!("file {} appeared", shown(path))));
        told
    }

    /// Waits until something has changed, and for the end of changes that belong together.
    pub fn wait(&self) -> Result<Vec<String>, Failure> {
        loop {
            let began = Instant::now();
            let mut changes = self.look();
            if changes.is_empty() {
                sleep(PAUSE.max(began.elapsed() * SHARE))?;
                continue;
            }
            for _ in 0..16 {
                sleep(SETTLE)?;
                let now = self.look();
                if now == changes {
                    break;
                }
                changes = now;
            }
            if !changes.is_empty() {
                return Ok(changes);
            }
        }
    }
}

/// Sleeps unless the user has had enough.
fn sleep(time: Duration) -> Result<(), Failure> {
    let end = Instant::now() + time;
    loop {
        if firn_eval::is_interrupted() {
            // That is how this command ends: there is nothing to be told.
            let _ = crate::interrupt::is_first_to_tell();
            return Err(Failure::Exit(crate::interrupt::STATUS));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// The states of all files in the trees. Of a repository, what Git keeps for itself is left out but for what it has checked out.
fn states(trees: &[AbsPath]) -> BTreeMap<AbsPath, Stamp> {
    let host = RealHost::new(RealWorld);
    let (mut states, mut todo) = (BTreeMap::new(), trees.to_vec());
    let mut note = |path: AbsPath| {
        if let Ok(Some(stat)) = host.lstat(&path) {
            states.insert(path, stat.stamp);
        }
    };
    while let Some(dir) = todo.pop() {
        let Ok(listing) = host.read_dir(&dir) else { continue };
        for (name, file_type) in listing.entries() {
            let path = dir.child(name);
            match (&name[..], file_type.or_else(|| host.file_type(&path).ok().flatten())) {
                (b".git", Some(FileType::Directory)) => {
                    [&b"HEAD"[..], b"index"].iter().for_each(|name| note(path.child(name)));
                }
                (_, Some(FileType::Directory)) => todo.push(path),
                _ => note(path),
            }
        }
    }
    states
}
