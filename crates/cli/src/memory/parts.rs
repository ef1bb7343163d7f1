//! Parts of earlier evaluations of a question (decision 0022): when they are learned, kept and taken.
//!
//! 1. An evaluation learns what would stay if files were edited ([`Plan::Learn`]): the file that is asked about, those near it, and those whose
//!    code has changed since the question was asked before. What is learned is kept as a record of its own, which rests on all that was observed
//!    but the code of such files.
//! 2. Going through it takes a thread of its own while the answer is kept. Nothing is learned of what took little time.
//! 3. The next time, if that record holds and such files differ in leaves only, its parts are taken ([`Plan::Take`]), and the answer rests on what
//!    the record rests on besides. If the files differ in more, the evaluation learns anew; once parts save little, what is kept is marked, and
//!    the next evaluation does.

use super::{Memory, Pending};
use firn_cache::{Answer, Batch, Reading};
use firn_eval::{Machine, Watch, context_elements};
use firn_host::{AbsPath, Digest, Durability, FileType, Follow, Question};
use firn_memo::kept::parts::{CutText, Parts};
use firn_memo::kept::{Encoded, Entry, Key, Record, Roles, SetId, Stored, Verifier, labels};
use firn_store::context::Element;
use firn_store::path::StorePath;
use firn_value::Value;
use rustc_hash::FxHashSet;
use std::time::Duration;

/// How a question without an answer is evaluated.
#[derive(Default)]
pub(super) enum Plan {
    /// As any.
    #[default]
    Plain,
    /// What these files are edited to changes; the rest is learned.
    Learn(Watch),
    /// Parts are taken, if these files differ in leaves only.
    Take(Box<Known>, Watch),
}

/// Who goes through what was learned.
pub(super) struct Learning {
    /// Gives the bytes.
    thread: std::thread::JoinHandle<Vec<u8>>,
    /// The texts that were cut.
    texts: Vec<CutText>,
}

/// What was learned.
pub(super) struct Known {
    parts: Parts,
    /// What it rests on.
    pub(super) observations: Digest,
    pub(super) durability: Durability,
    /// What the evaluation took that it was learned from.
    cost: Duration,
}

/// A directory with so many things in and below it is no place where people keep what they edit, and nothing else.
const MOST_NEAR: usize = 512;
/// Questions are worth learning for that take so many times what is worth keeping.
const TIMES: u32 = 10;
/// Parts that save less of a hundred are learned anew.
const LEAST_SAVED: u32 = 30;

impl Memory {
    /// How to evaluate a question; of an answer that does not hold any more, what it took and what changed.
    pub(super) fn plan(&self, key: &Key, entry: &Entry, before: Option<super::look::Before>, roles: &Roles, writes: bool) -> Plan {
        if !self.learns || matches!(entry, Entry::Flake(_)) {
            return Plan::Plain;
        }
        let mut texts: Vec<AbsPath> = Vec::new();
        if let Some(before) = &before {
            let Some(reading) = self.disk.read() else { return Plan::Plain };
            let known = reading.records_of(&key.of_parts());
            // An answer that parts were taken for rests on what these rest on, besides what was read for it.
            self.prepare_files(before.observations, known.first().map(|found| found.record.observations), roles);
            for found in known.into_iter().take(2) {
                // Marked.
                if found.result.is_empty() {
                    break;
                }
                // PERF: either takes some twenty milliseconds.
                let (parts, holds) = std::thread::scope(|scope| {
                    let parts = scope.spawn(|| Parts::decode(&found.result, roles));
                    let holds = self.is_holding(&reading, found.record.observations, roles);
                    (parts.join().ok().and_then(Result::ok), holds)
                });
                let Some(parts) = parts else { break };
                texts.extend(parts.texts.iter().map(|text| text.path.clone()));
                if holds && (!writes || self.has_all(&parts)) {
                    let Record { observations, durability, cost, .. } = found.record;
                    let cost = Duration::from_micros(cost);
                    let watch = Watch { texts, near: self.near(entry) };
                    return Plan::Take(Box::new(Known { parts, observations, durability, cost }), watch);
                }
            }
        }
        if self.evaluates || before.as_ref().is_some_and(|before| !self.is_worth_learning(before.cost)) {
            return Plan::Plain;
        }
        if let Some(Question::Code(path)) = before.and_then(|before| before.changed) {
            texts.extend(self.real(&path));
        }
        Plan::Learn(Watch { texts, near: self.near(entry) })
    }

    fn is_worth_learning(&self, cost: Duration) -> bool {
        cost >= self.least * TIMES
    }

    fn real(&self, path: &AbsPath) -> Option<AbsPath> {
        self.host.resolve_symlinks(path, Follow::Full).ok()
    }

    /// The directory of what is asked about, if there is not much else in it; otherwise the file itself.
    fn near(&self, entry: &Entry) -> Option<AbsPath> {
        let (file, dir) = match entry {
            Entry::File(path) => {
                let file = self.real(&self.host.resolve_expr_path(path).ok()?)?;
                let dir = file.parent()?;
                (Some(file), dir)
            }
            Entry::Expression(_, base) => (None, self.real(base)?),
            Entry::Flake(_) => return None,
        };
        if self.is_small(&dir) { Some(dir) } else { file }
    }

    fn is_small(&self, dir: &AbsPath) -> bool {
        let (mut todo, mut count) = (vec![dir.clone()], 0);
        while let Some(dir) = todo.pop() {
            let Ok(listing) = self.host.read_dir(&dir) else { return false };
            count += listing.entries().len();
            if count > MOST_NEAR {
                return false;
            }
            let dirs = listing.entries().iter().filter(|(name, file_type)| *file_type == Some(FileType::Directory) && !name.starts_with(b"."));
            todo.extend(dirs.filter_map(|(name, _)| dir.beneath(name).ok()));
        }
        true
    }

    fn is_holding(&self, reading: &Reading<'_>, observations: Digest, roles: &Roles) -> bool {
        let witness = super::Witnessed::new(self, reading);
        let passing = firn_host::Passing(&*self.host);
        self.judged.with(|judged| {
            let verifier = Verifier::new(&passing, &witness, roles, judged);
            let holds = verifier.holds(observations);
            if !holds {
                self.log.detail_of(|| format!("nothing is taken of an earlier evaluation, because this is no longer so: {:?}", verifier.changed()));
            }
            holds
        })
    }

    /// Whether the store has everything that parts name.
    fn has_all(&self, parts: &Parts) -> bool {
        let path = |element| match element {
            Element::Opaque(path) | Element::DrvDeep(path) => path,
            Element::Built(built) => built.drv,
        };
        let paths: FxHashSet<StorePath> = parts.contexts().into_iter().flat_map(context_elements).map(path).collect();
        paths.iter().all(|path| self.store.is_valid(path).unwrap_or(false))
    }

    /// Has the machine evaluate the question as planned. Call it before anything is evaluated.
    pub fn prepare(&self, pending: &mut Option<Pending>, machine: &Machine) {
        let Some(pending) = pending else { return };
        match &mut pending.plan {
            Plan::Plain => {}
            Plan::Learn(watch) => machine.learn(std::mem::take(watch)),
            Plan::Take(known, watch) => {
                let parts = std::mem::take(&mut known.parts);
                firn_builtins::know_hashes(machine, &parts.hashes);
                machine.take_parts(parts, std::mem::take(watch), self.evaluates);
                self.recorder.takes.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// Has somebody go through what was learned, if it is worth it, while the answer is kept.
    pub(super) fn go_through(&self, plan: &Plan, machine: &Machine, cost: Duration, roles: &Roles) -> Option<Learning> {
        if matches!(plan, Plan::Plain) || self.evaluates {
            return None;
        }
        let learned = machine.learned().filter(|_| self.is_worth_learning(cost))?;
        let (shared, roles, texts) = (machine.shared.clone(), roles.clone(), learned.texts.clone());
        let work = move || {
            let mut parts = learned.parts();
            parts.hashes = firn_builtins::hashes_in(&shared, parts.contexts().into_iter());
            parts.encode(&roles)
        };
        let thread = std::thread::Builder::new().name("firn parts".to_owned()).spawn(work).ok()?;
        Some(Learning { thread, texts })
    }

    /// Keeps what was learned, or notes that parts saved little. `whole` is what the answer rests on.
    pub(super) fn keep_parts(&self, plan: Plan, learning: Option<Learning>, machine: &Machine, key: &Key, whole: impl FnOnce() -> SetId, cost: Duration, roles: &Roles) {
        if let Some(learning) = learning {
            self.keep_learned(key, learning, whole(), cost, roles);
        } else if let Plan::Take(known, _) = plan {
            let detail = || format!("{} parts of an earlier evaluation were taken", machine.parts_taken());
            self.log.detail_of(detail);
            // Who keeps what took no time wants parts that save none.
            let saves_little = !self.least.is_zero() && cost * 100 > known.cost * (100 - LEAST_SAVED);
            if saves_little || machine.refused_parts() {
                self.write_parts(key, Vec::new(), known.observations, known.durability, Vec::new(), known.cost);
            }
        }
    }

    fn keep_learned(&self, key: &Key, learning: Learning, whole: SetId, cost: Duration, roles: &Roles) {
        let sets = labels::sets();
        let observed = sets.without_code(whole, learning.texts.iter().map(|text| &text.path));
        // PERF: that is done while others go through what was learned.
        let encoded = sets.encode(observed, roles);
        if let (Ok(Encoded { root, durability, nodes }), Ok(bytes)) = (encoded, learning.thread.join()) {
            self.write_parts(key, bytes, root, durability, nodes, cost);
        }
    }

    fn write_parts(&self, key: &Key, bytes: Vec<u8>, observations: Digest, durability: Durability, nodes: firn_memo::kept::Nodes, cost: Duration) {
        let (Key { digest, question }, now) = (key.of_parts(), self.host.current_time());
        let record = Record {
            question,
            result: Stored::Inline(bytes),
            log: Vec::new(),
            observations,
            needs: Vec::new(),
            cost: cost.as_micros() as u64,
            durability,
            made: now,
            places: self.recorder.places(),
        };
        self.write(Batch { answers: vec![Answer { question: digest, record, nodes }], now, ..Batch::default() });
    }

    /// Tells of parts that would have been wrong.
    pub(super) fn tell_differences(&self, machine: &Machine) {
        for (then, now) in machine.part_differences() {
            let shown = |value: Value| value.as_str().map_or_else(|| format!("{value:?}"), |text| String::from_utf8_lossy(text.bytes()).into_owned());
            let message =
                format!("a part of an earlier evaluation would have been taken that is another now:\n  remembered: {}\n  evaluated:  {}", shown(then), shown(now));
            self.log.warn(message.as_bytes());
        }
    }
}
