//! Instances: the calls whose cells are told apart, and the files whose cells belong to no call.
//!
//! A cell is inside a call if the call or one opened inside it made the cell. A call is *knotted* when what it can reach
//! may have come to hold its own cells by another way than from inside: then its results are no longer handed on. Such a way
//! leads through a file that was being evaluated (or holds what was being evaluated) when the call was opened, and is
//! imported again: `docs/memo-soundness.md`, "Knots". A call that looks at where its arguments were written is treated alike.

use crate::Key;
use firn_source::Pos;
use firn_value::Stamp;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Why a call gets no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// All numbers are used.
    Full,
    /// A file that its key names is being evaluated, or holds what is.
    Knotted,
}

/// Numbers from here on are files.
const FIRST_FILE: u16 = Stamp::MAX / 2 + 1;

/// All instances of an evaluation.
#[derive(Debug)]
pub struct Instances {
    parents: Box<[AtomicU16]>,
    knotted: Box<[AtomicBool]>,
    calls: AtomicU32,
    files: AtomicU32,
    /// A bit for every position among `Ties::positions`, and for others that fall on the same.
    noted: [AtomicU64; NOTED],
    ties: Mutex<Ties>,
}

const NOTED: usize = 64;

/// The word and the bit in it where it is noted that a call has the position.
fn place_of(pos: Pos) -> (usize, u64) {
    let number = pos.number().wrapping_mul(0x9E37_79B9) >> 20;
    ((number >> 6) as usize % NOTED, 1 << (number & 63))
}

#[derive(Debug, Default)]
struct Ties {
    /// Who imported a file.
    importers: FxHashMap<u16, FxHashSet<u16>>,
    /// The answers that came from a call: they hold what it holds.
    copies: FxHashMap<u16, Vec<u16>>,
    /// The calls that a new import of a file knots.
    watchers: FxHashMap<u16, Vec<u16>>,
    /// What was being evaluated when a call was opened, and who holds that.
    near: FxHashMap<u16, FxHashSet<u16>>,
    /// Where attributes of a call's arguments were written.
    positions: FxHashMap<u16, Vec<Pos>>,
}

impl Default for Instances {
    fn default() -> Instances {
        let all = usize::from(Stamp::MAX) + 1;
        Instances {
            parents: (0..all).map(|_| AtomicU16::new(0)).collect(),
            knotted: (0..all).map(|_| AtomicBool::new(false)).collect(),
            calls: AtomicU32::new(1),
            files: AtomicU32::new(u32::from(FIRST_FILE)),
            noted: [const { AtomicU64::new(0) }; NOTED],
            ties: Mutex::default(),
        }
    }
}

fn take(next: &AtomicU32, end: u32) -> Option<u16> {
    let more = |n: u32| (n < end).then_some(n + 1);
    next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().and_then(|n| u16::try_from(n).ok())
}

/// Whether the number is that of a call.
#[inline]
fn is_call(number: u16) -> bool {
    number != 0 && number < FIRST_FILE
}

impl Instances {
    /// Whether a stamp is that of a call: cells of files and of the program itself are never handed on.
    #[inline]
    pub fn is_call(stamp: Stamp) -> bool {
        is_call(stamp.number())
    }

    /// Opens a call inside `parent` while productions of these instances run.
    pub fn open(&self, parent: Stamp, running: impl Iterator<Item = Stamp>, key: &Key) -> Result<Stamp, Closed> {
        let mut ties = self.ties();
        let mut near = FxHashSet::default();
        let mut todo: Vec<u16> = running.map(Stamp::number).chain([parent.number()]).collect();
        while let Some(at) = todo.pop() {
            if at == 0 || !near.insert(at) {
                continue;
            }
            if is_call(at) {
                todo.push(self.parents[usize::from(at)].load(Ordering::Relaxed));
                todo.extend(ties.copies.get(&at).into_iter().flatten());
            } else {
                todo.extend(ties.importers.get(&at).into_iter().flatten());
            }
        }
        // What was not looked into must not come to hold what the call makes.
        if key.files.iter().any(|file| near.contains(&file.number())) {
            return Err(Closed::Knotted);
        }
        let number = take(&self.calls, u32::from(FIRST_FILE)).ok_or(Closed::Full)?;
        self.parents[usize::from(number)].store(parent.number(), Ordering::Relaxed);
        for &file in near.iter().filter(|&&at| !is_call(at)) {
            ties.watchers.entry(file).or_default().push(number);
        }
        ties.near.insert(number, near);
        for &pos in &key.positions {
            let (word, bit) = place_of(pos);
            self.noted[word].fetch_or(bit, Ordering::Relaxed);
        }
        ties.positions.insert(number, key.positions.clone());
        Ok(Stamp::new(number))
    }

    /// The file that cells of this stamp belong to, if they are a file's or of a call that one made: they reach cells of that file,
    /// of files it imports and of calls it makes, and nothing else, now and later.
    #[inline]
    pub fn file_of(&self, stamp: Stamp) -> Option<Stamp> {
        let mut at = stamp.number();
        while is_call(at) {
            at = self.parents[usize::from(at)].load(Ordering::Relaxed);
        }
        (at != 0).then(|| Stamp::new(at))
    }

    /// Whether fewer than half of the numbers for calls are used.
    pub fn has_plenty(&self) -> bool {
        self.calls.load(Ordering::Relaxed) < u32::from(FIRST_FILE) / 2
    }

    /// The instance of an answer that comes from a call: like a call's, opened inside `parent`.
    pub fn copy(&self, from: Stamp, parent: Stamp) -> Option<Stamp> {
        let number = take(&self.calls, u32::from(FIRST_FILE))?;
        self.parents[usize::from(number)].store(parent.number(), Ordering::Relaxed);
        self.ties().copies.entry(from.number()).or_default().push(number);
        Some(Stamp::new(number))
    }

    /// The instance of a file's cells; outside all if the numbers are used up, which then knots nothing more, so no call is
    /// opened any longer either.
    pub fn file(&self) -> Stamp {
        match take(&self.files, u32::from(Stamp::MAX) + 1) {
            Some(number) => Stamp::new(number),
            None => {
                self.calls.store(u32::from(FIRST_FILE), Ordering::Relaxed);
                Stamp::NONE
            }
        }
    }

    /// Gives a file's number back if it is the last one taken: the file's value has no cells.
    pub fn give_back(&self, file: Stamp) {
        let n = u32::from(file.number());
        if !is_call(file.number()) && n != 0 {
            let _ = self.files.compare_exchange(n + 1, n, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Notes that code of the instance `by` imports a file.
    pub fn import(&self, file: Stamp, by: Stamp) {
        let mut ties = self.ties();
        ties.importers.entry(file.number()).or_default().insert(by.number());
        for call in ties.watchers.remove(&file.number()).unwrap_or_default() {
            self.knotted[usize::from(call)].store(true, Ordering::Relaxed);
        }
    }

    /// Whether the results of a call are no longer handed on.
    pub fn is_knotted(&self, call: Stamp) -> bool {
        self.knotted[usize::from(call.number())].load(Ordering::Relaxed)
    }

    /// Whether `stamp` was being evaluated when `call` was opened, or holds what was, or is outside all instances: then
    /// cells of it reach the inside of the call by its inputs only, as long as it is not knotted.
    pub fn is_near(&self, stamp: Stamp, call: Stamp) -> bool {
        stamp == Stamp::NONE || self.ties().near.get(&call.number()).is_some_and(|near| near.contains(&stamp.number()))
    }

    /// Notes that code of the instance looks at a position. Calls around it that have the position from their arguments hand on nothing
    /// more: an equal call may have another. (Where an answer has it from its arguments, so has a call around it, or the code.)
    pub fn look_at(&self, stamp: Stamp, pos: Pos) {
        // PERF: nearly all of them are nobody's: 110 instructions each without this.
        let (word, bit) = place_of(pos);
        if self.noted[word].load(Ordering::Relaxed) & bit == 0 {
            return;
        }
        let ties = self.ties();
        let mut at = stamp.number();
        while is_call(at) {
            if ties.positions.get(&at).is_some_and(|known| known.contains(&pos)) {
                self.knotted[usize::from(at)].store(true, Ordering::Relaxed);
            }
            at = self.parents[usize::from(at)].load(Ordering::Relaxed);
        }
    }

    /// Whether a cell of this stamp is inside `call`.
    #[inline]
    pub fn is_inside(&self, stamp: Stamp, call: Stamp) -> bool {
        let mut at = stamp.number();
        loop {
            if at == call.number() {
                return true;
            }
            // A call is opened after the one around it, so it has the larger number.
            if at < call.number() || !is_call(at) {
                return false;
            }
            at = self.parents[usize::from(at)].load(Ordering::Relaxed);
        }
    }

    /// How many calls have an instance.
    pub fn count(&self) -> u64 {
        u64::from(self.calls.load(Ordering::Relaxed)) - 1
    }

    fn ties(&self) -> MutexGuard<'_, Ties> {
        self.ties.lock().unwrap_or_else(|e| e.into_inner())
    }
}
