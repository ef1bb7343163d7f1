//! Parts of earlier evaluations of a question (decision 0022): when they are learned, kept and taken.
//!
//! 1. Nothing is learned the first time: most questions are asked again as they were, or never.
//! 2. When a question has no answer any more because the code of a file changed, the file is one that people edit: the evaluation learns what
//!    would stay if it is edited again ([`Plan::Learn`]). What is learned is kept as a record of its own, which rests on all that was observed
//!    but the code of such files.
//! 3. The next time, if that record holds and such files differ in leaves only, its parts are taken ([`Plan::Take`]), and the answer rests on what
//!    the record rests on besides. Once that saves little, or nothing because the files differ in more, what is kept is marked, and the next
//!    evaluation learns anew.

use super::{Memory, Pending, lock};
use firn_cache::{Answer, Batch, Reading};
use firn_eval::{Machine, context_elements};
use firn_host::{AbsPath, Digest, Durability, Question};
use firn_memo::kept::parts::Parts;
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
    Learn(Vec<AbsPath>),
    /// Parts are taken.
    Take(Box<Known>),
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

/// So many files are cut at most.
const MOST_TEXTS: usize = 64;
/// Questions are worth learning for that take so many times what is worth keeping.
const TIMES: u32 = 10;
/// Parts that save less of a hundred are learned anew.
const LEAST_SAVED: u32 = 30;

impl Memory {
    /// How to evaluate a question, of which the newest answer does not hold any more.
    pub(super) fn plan(&self, key: &Key, entry: &Entry, before: super::look::Before, roles: &Roles, writes: bool) -> Plan {
        let super::look::Before { cost, observations, changed } = before;
        let Some(reading) = self.disk.read().filter(|_| self.learns) else { return Plan::Plain };
        let mut texts: Vec<AbsPath> = Vec::new();
        let known = reading.records(&key.of_parts().digest);
        // An answer that parts were taken for rests on what these rest on, besides what was read for it.
        self.prepare_files(observations, known.first().map(|found| found.record.observations), roles);
        for found in known.into_iter().take(2) {
            // Marked.
            let Ok(parts) = Parts::decode(&found.result, roles) else { break };
            texts.extend(parts.texts.iter().map(|text| text.path.clone()));
            if self.is_holding(&reading, found.record.observations, roles) && (!writes || self.has_all(&parts)) {
                let Record { observations, durability, cost, .. } = found.record;
                let cost = Duration::from_micros(cost);
                return Plan::Take(Box::new(Known { parts, observations, durability, cost }));
            }
        }
        if self.evaluates || cost < self.least * TIMES {
            return Plan::Plain;
        }
        if let Entry::File(path) = entry
            && let Ok(path) = self.host.resolve_expr_path(path)
        {
            texts.push(path);
        }
        match changed {
            Some(Question::Code(path)) => texts.push(path),
            _ => return Plan::Plain,
        }
        let real = |path: AbsPath| self.host.resolve_symlinks(&path, firn_host::Follow::Full).ok();
        let mut texts: Vec<AbsPath> = texts.into_iter().rev().filter_map(real).collect();
        let mut seen = FxHashSet::default();
        texts.retain(|path| seen.insert(path.clone()));
        texts.truncate(MOST_TEXTS);
        Plan::Learn(texts)
    }

    fn is_holding(&self, reading: &Reading<'_>, observations: Digest, roles: &Roles) -> bool {
        let judged = lock(&self.judged);
        let witness = super::Witnessed::new(self, reading);
        let passing = firn_host::Passing(&*self.host);
        let verifier = Verifier::new(&passing, &witness, roles, &judged);
        let holds = verifier.holds(observations);
        if !holds {
            self.log.detail_of(|| format!("nothing is taken of an earlier evaluation, because this is no longer so: {:?}", verifier.changed()));
        }
        holds
    }

    /// Whether the store has everything that parts name.
    fn has_all(&self, parts: &Parts) -> bool {
        let contexts = parts.scalars().filter_map(|value| Some(value.as_str()?.context()));
        let path = |element| match element {
            Element::Opaque(path) | Element::DrvDeep(path) => path,
            Element::Built(built) => built.drv,
        };
        let paths: FxHashSet<StorePath> = contexts.flat_map(context_elements).map(path).collect();
        paths.iter().all(|path| self.store.is_valid(path).unwrap_or(false))
    }

    /// Has the machine evaluate the question as planned. Call it before anything is evaluated.
    pub fn prepare(&self, pending: &mut Option<Pending>, machine: &Machine) {
        let Some(pending) = pending else { return };
        match &mut pending.plan {
            Plan::Plain => {}
            Plan::Learn(texts) => machine.learn(std::mem::take(texts)),
            Plan::Take(known) => {
                let parts = std::mem::take(&mut known.parts);
                firn_builtins::know_hashes(machine, &parts.hashes);
                machine.take_parts(parts, self.evaluates);
                self.recorder.takes.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    /// Keeps what was learned, or notes that parts saved little. `whole` is what the answer rests on.
    pub(super) fn keep_parts(&self, plan: Plan, machine: &Machine, key: &Key, whole: impl FnOnce() -> SetId, cost: Duration, roles: &Roles) {
        match plan {
            Plan::Plain => {}
            Plan::Learn(_) => self.keep_learned(machine, key, whole(), cost, roles),
            Plan::Take(known) => {
                let detail = || format!("{} parts of an earlier evaluation were taken", machine.parts_taken());
                self.log.detail_of(detail);
                // Who keeps what took no time wants parts that save none.
                let saves_little = !self.least.is_zero() && cost * 100 > known.cost * (100 - LEAST_SAVED);
                if saves_little || machine.refused_parts() {
                    self.write_parts(key, Vec::new(), known.observations, known.durability, Vec::new(), known.cost);
                }
            }
        }
    }

    fn keep_learned(&self, machine: &Machine, key: &Key, whole: SetId, cost: Duration, roles: &Roles) {
        let Some(mut parts) = machine.learned() else { return };
        if parts.texts.is_empty() {
            return;
        }
        parts.hashes = firn_builtins::hashes_in(machine, parts.scalars().filter_map(|value| Some(value.as_str()?.context())));
        let sets = labels::sets();
        let observed = sets.without_code(whole, parts.texts.iter().map(|text| &text.path));
        let Some(bytes) = parts.encode(roles) else { return };
        if let Ok(Encoded { root, durability, nodes }) = sets.encode(observed, roles) {
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
