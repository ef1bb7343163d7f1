//! Jobs and memory: each path is a question of its own, so that a run evaluates only what an edit touched (L2.7, O1).
//!
//! Kept are lines, the names in sets, that there is nothing to build, and failures that the program itself raised. Where the
//! names come from memory their cells do not: the first path that has to be evaluated evaluates the root.

use super::job::{self, Task};
use super::line::JobLine;
use super::queue::{Found, Looked, Outcome, Path};
use super::typed::Typed;
use crate::memory::{Memory, Recalled, as_texts, texts};
use crate::question;
use crate::session::Session;
use firn_eval::{Error, ErrorKind, Machine};
use firn_memo::kept::{Entry, Stem};
use std::borrow::Cow;

/// What the user is told of a failure, besides its line.
#[derive(Debug)]
pub(super) enum Told {
    /// The failure.
    Error(Box<Error>),
    /// What was told of it when it was found.
    Text(Vec<u8>),
}

/// What a path came to.
pub(super) struct Answer {
    pub outcome: Outcome,
    pub told: Option<Told>,
    /// It was known.
    pub known: bool,
}

/// The memory of a run.
pub(super) struct Remembered<'a> {
    memory: &'a Memory,
    stem: Stem,
    writes: bool,
}

impl<'a> Remembered<'a> {
    /// None where there is no memory, or lines tell what no memory knows (what caches hold).
    pub fn new(session: &'a Session, typed: &Typed, entry: Option<Entry>) -> Option<Remembered<'a>> {
        let memory = session.memory.as_ref().filter(|_| !typed.check_cache_status)?;
        memory.expect_several();
        let Typed { force_recurse, meta, show_input_drvs, constituents, no_instantiate, select, apply, .. } = typed;
        let flags = format!(
            "jobs force-recurse={force_recurse} meta={meta} input-drvs={show_input_drvs} constituents={constituents} \
             no-instantiate={no_instantiate} "
        );
        let part = |name: &str, text: &Option<Vec<u8>>| match text {
            Some(text) => [format!("{name}={} ", text.len()).as_bytes(), text].concat(),
            None => Vec::new(),
        };
        let form = [flags.as_bytes(), &part("select", select), &part("apply", apply)].concat();
        let applies = select.is_some() || apply.is_some();
        let stem = memory.stem(&question::ask(session, entry?, b"", &form, applies));
        Some(Remembered { memory, stem, writes: !no_instantiate })
    }

    /// Whether the names in the set are remembered.
    pub fn knows_the_root(&self) -> bool {
        matches!(self.memory.recall_at(&self.stem, b"", self.writes), Recalled::Known(_))
    }

    /// Whether a thread that evaluates nothing may look at what is remembered before its turn.
    pub fn looks_ahead(&self) -> bool {
        self.memory.looks_ahead()
    }

    /// The names in the set as they were last.
    pub fn guess(&self) -> Vec<Path> {
        match self.memory.guess(&self.stem, b"").and_then(|value| read(&as_texts(value))) {
            Some((Outcome::Set(names), _)) => names.into_iter().map(|(name, _)| vec![name]).collect(),
            _ => Vec::new(),
        }
    }

    /// Looks at what is remembered of a path before its turn.
    pub fn look_ahead(&self, path: &Path) -> Option<Looked> {
        match self.memory.look_ahead(&self.stem, &written(path), self.writes) {
            Ok(value) => read(&as_texts(value)).map(|(outcome, told)| Looked::Known(outcome, told)),
            Err(key) => Some(Looked::Unknown(key)),
        }
    }

    /// The answer for a path: what is remembered, or what evaluating it comes to.
    pub fn answer(&self, machine: &Machine, task: &Task<'_>, path: &Path, cell: Option<Found>, looked: Option<Looked>) -> Answer {
        let recall = || match self.memory.recall_at(&self.stem, &written(path), self.writes) {
            Recalled::Known(value) => Err(read(&as_texts(value))),
            Recalled::Unknown(pending) => Ok(pending),
        };
        let pending = match looked {
            Some(Looked::Known(outcome, told)) => Err(Some((outcome, told))),
            Some(Looked::Unknown(key)) => Ok(Some(self.memory.begin_at(&self.stem, key))),
            None => recall(),
        };
        let pending = match pending {
            Err(Some((outcome, told))) => match task.keep_alive(&outcome) {
                Ok(()) => return Answer { outcome, told, known: true },
                Err(_) => None,
            },
            Err(None) => None,
            Ok(pending) => pending,
        };
        let (outcome, error) = job::evaluate(machine, task, path, cell);
        if error.is_some() {
            self.memory.see_places();
        }
        if let Some(parts) = write(&outcome, error.as_deref(), task) {
            let drv = match &outcome {
                Outcome::Job(line) => line.drv_path(),
                _ => None,
            };
            self.memory.keep(pending, texts(&parts), drv.into_iter().collect());
        }
        Answer { outcome, told: error.map(Told::Error), known: false }
    }
}

/// The path in a question: as a user writes it where that says which names it has.
fn written(path: &Path) -> Vec<u8> {
    let plain = |name: &Vec<u8>| !name.is_empty() && !name.iter().any(|&byte| matches!(byte, b'.' | b'"' | b'\\' | 0));
    if path.iter().all(plain) {
        return path.join(&b'.');
    }
    path.iter().flat_map(|name| [format!("\0{}:", name.len()).as_bytes(), name].concat()).collect()
}

/// Whether a failure of this kind follows from what was observed: not one of a store or network, nor one that another thread, the
/// stack or the user had a part in.
fn is_lasting(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    match kind {
        Thrown | Assertion | Abort | Type | UndefinedVar | MissingArgument | Parse | Restricted | Host | Eval => true,
        InfiniteRecursion | StackOverflow | Usage | Store | Interrupted | Postponed => false,
    }
}

/// What is kept; nothing for what must be found anew.
fn write(outcome: &Outcome, error: Option<&Error>, task: &Task<'_>) -> Option<Vec<Vec<u8>>> {
    let text = |line: &JobLine| line.text().ok().map(Cow::into_owned);
    Some(match (outcome, error) {
        (Outcome::Job(line), None) => vec![b"job".to_vec(), text(line)?],
        (Outcome::Job(line), Some(error)) if is_lasting(error.kind()) => {
            vec![b"failed".to_vec(), text(line)?, error.diagnostic().render(task.full_traces)]
        }
        (Outcome::Set(names), None) => [b"set".to_vec()].into_iter().chain(names.iter().map(|(name, _)| name.clone())).collect(),
        (Outcome::Nothing, None) => vec![b"nothing".to_vec()],
        _ => return None,
    })
}

fn read(parts: &[Vec<u8>]) -> Option<(Outcome, Option<Told>)> {
    let (kind, rest) = parts.split_first()?;
    Some(match (&kind[..], rest) {
        (b"job", [line]) => (Outcome::Job(JobLine::Printed(line.clone())), None),
        (b"failed", [line, told]) => (Outcome::Job(JobLine::Printed(line.clone())), Some(Told::Text(told.clone()))),
        (b"set", names) => (Outcome::Set(names.iter().map(|name| (name.clone(), None)).collect()), None),
        (b"nothing", []) => (Outcome::Nothing, None),
        _ => return None,
    })
}
