//! The state of the memo that all machines of an evaluation share.

use crate::key::{Identified, Innermost, RunningFiles};
use crate::{Build, ClosedTerms, Entry, Instances, Key, Maps, Outside, Profits, Refusal, Stats, Table};
use firn_ir::Standing;
use firn_source::Symbol;
use firn_value::{Lambda, Slot, Value};
use rustc_hash::FxHashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is remembered (O1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    #[default]
    Off,
    /// Calls within the evaluation.
    Run,
    /// As `Run`, from the second of equal calls on: what is remembered takes memory, and of a large program that asks many
    /// questions hardly anything recurs.
    Sparing,
    /// As `Run`, but every answer is compared with a fresh evaluation, which is the one that counts.
    Shadow,
}

/// The memo of an evaluation.
#[derive(Debug, Default)]
pub struct Memo {
    /// What is remembered.
    pub mode: Mode,
    /// Instances of calls and files.
    pub instances: Instances,
    /// Maps between instances.
    pub maps: Maps,
    /// Remembered calls.
    pub table: Table,
    /// Closed terms.
    pub closed: ClosedTerms,
    /// Counters.
    pub stats: Stats,
    /// Who profits.
    pub profits: Profits,
    identified: Identified,
    /// Hashes of calls that were made once.
    once: Mutex<FxHashSet<u64>>,
    alone: Mutex<FxHashSet<u64>>,
    /// Answers from memory and what a fresh evaluation gave, to be compared.
    pub shadows: Mutex<Vec<(Value, Value, Option<Symbol>)>>,
    deep: AtomicBool,
    pressed: AtomicBool,
}

/// The most cells that are looked at for the key of a call, if calls of the function have paid, and if they have not yet.
const LIMIT: usize = 256;
const FIRST_LIMIT: usize = 48;
/// So many calls in a row that were neither answered nor expensive, and the function's calls are not remembered any more.
const PATIENCE: u8 = 24;
/// The same for functions that are candidates only because a call was expensive.
const LITTLE_PATIENCE: u8 = 12;
/// A call without a key counts for so many.
const REFUSED: u8 = 13;
/// And one whose key is too large, if no call of the function has paid.
const HOPELESS: u8 = PATIENCE + 1;
/// After so many calls that were cheap, or [not measured](Memo::spares_first), a function is measured no more.
const TRIALS: u8 = 2;
/// Steps that make a call expensive: taking its key is little beside it.
// PERF: `lib.systems.elaborate` of a string takes 202.
static EXPENSIVE: AtomicU64 = AtomicU64::new(128);

/// So many calls are known to have been made once.
const MOST_ONCE: usize = 1 << 17;

/// Per cent of the time waited for memory from which nothing more is remembered, and below which things are again.
const PRESSED: f64 = 10.0;
const RELIEVED: f64 = 1.0;

/// For tests: calls are expensive from so many steps on.
pub fn expensive_from(steps: u64) {
    EXPENSIVE.store(steps, Ordering::Relaxed);
}

fn is_expensive(steps: u64) -> bool {
    steps >= EXPENSIVE.load(Ordering::Relaxed)
}

impl Memo {
    /// A memo of this mode.
    pub fn new(mode: Mode) -> Memo {
        Memo { mode, ..Memo::default() }
    }

    /// Whether anything is remembered.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// Whether the first call of a function is not measured: many are called once, and nothing comes of what is known of them.
    #[inline]
    pub fn spares_first() -> bool {
        // For tests: where every call is expensive all are measured.
        !is_expensive(0)
    }

    /// Whether a glance says that a call has no key, because too much is reachable from it; that counts against the function.
    #[inline(never)]
    pub fn is_hopeless(&self, code: &'static Lambda, (captures, args): (&[Slot], &[Slot]), running: Innermost<'_>) -> bool {
        let files = RunningFiles::new(&self.instances, running);
        let outside = Outside { instances: &self.instances, running: &files };
        let limit = if code.marks.has_paid() { LIMIT } else { FIRST_LIMIT };
        let is_hopeless = captures.iter().chain(args).any(|word| outside.is_hopeless(word.get(), limit));
        if is_hopeless {
            self.stats.miss(Refusal::Large);
            self.count(code, Err(Refusal::Large));
        }
        is_hopeless
    }

    /// The key of a call, or why it has none. `running` gives the instances whose productions run. Counts the call against the function until it is answered.
    /// `build` builds what nothing but a list, a set or a function is written for.
    pub fn key(&self, code: &'static Lambda, words: (&[Slot], &[Slot]), running: Innermost<'_>, build: Build<'_>) -> Result<Key, Refusal> {
        let files = RunningFiles::new(&self.instances, running);
        let outside = Outside { instances: &self.instances, running: &files };
        let limit = if code.marks.has_paid() { LIMIT } else { FIRST_LIMIT };
        let key = Key::of(code, words, &self.identified, outside, limit, build);
        self.count(code, key.as_ref().map(|_| ()).map_err(|&why| why));
        key
    }

    /// Counts a call against a function until it is answered.
    fn count(&self, code: &'static Lambda, key: Result<(), Refusal>) {
        code.marks.count(match key {
            Ok(()) => 1,
            // What is too large once is so again, and found to be at the same cost.
            Err(Refusal::Large) if !code.marks.has_paid() => HOPELESS,
            Err(_) => REFUSED,
        });
        let is_enough = match code.marks.standing() {
            Standing::Chosen(calls) => calls > PATIENCE,
            Standing::Expensive(calls) => calls > LITTLE_PATIENCE,
            Standing::Plain | Standing::Measured(_) => false,
        };
        if is_enough {
            code.marks.forget();
        }
    }

    /// Notes what a call of a function cost that is being measured: calls of an expensive one are remembered from now on.
    #[inline]
    pub fn measured(&self, code: &'static Lambda, calls: u8, steps: u64) {
        if is_expensive(steps) && self.instances.has_plenty() {
            Stats::bump(&self.stats.admitted);
            code.marks.admit();
        } else if calls + 1 >= TRIALS {
            code.marks.forget();
        } else {
            code.marks.measure_on(calls);
        }
    }

    /// Whether the call is the first of its kind, and none is remembered the first time.
    pub fn waits(&self, key: &Key) -> bool {
        // For tests: where every call is expensive none waits.
        if self.mode != Mode::Sparing || is_expensive(0) {
            return false;
        }
        let mut once = self.once.lock().unwrap_or_else(|e| e.into_inner());
        if once.len() >= MOST_ONCE {
            once.clear();
        }
        once.insert(key.hash)
    }

    /// Remembers a call.
    pub fn enter(&self, entry: Entry) {
        let marks = &entry.key.code.marks;
        if is_expensive(entry.cost) && matches!(marks.standing(), Standing::Chosen(_)) {
            marks.renew();
        }
        self.table.insert(entry);
    }

    /// Counts an answer from memory that saved so many steps.
    pub fn answered(&self, code: &'static Lambda, steps: u64) {
        code.marks.renew();
        crate::doubt::answered();
        self.profits.add(code, steps);
        Stats::bump(&self.stats.hits);
        self.stats.steps_saved.fetch_add(steps, Ordering::Relaxed);
    }

    /// Whether calls may be remembered as far as memory goes. `pressure` tells from time to time how hard it is to get (per cent of the
    /// time waited for it); when it is, calls that never were an answer are dropped, and no more are remembered until that is over.
    pub fn has_room(&self, pressure: impl FnOnce() -> Option<f64>) -> bool {
        let pressed = self.pressed.load(Ordering::Relaxed);
        let count = if pressed { self.stats.misses_pressed.fetch_add(1, Ordering::Relaxed) } else { self.stats.misses_new.load(Ordering::Relaxed) };
        let interval = if pressed { 1024 } else { 64 };
        if count % interval != interval - 1 {
            return !pressed;
        }
        let pressure = pressure().unwrap_or_default();
        let now = if pressed { pressure >= RELIEVED } else { pressure >= PRESSED };
        if now && !pressed {
            self.stats.shed.fetch_add(self.table.shed() as u64, Ordering::Relaxed);
        }
        self.pressed.store(now, Ordering::Relaxed);
        !now
    }

    /// Notes that forcing the cell for others came to nothing, so that nobody tries again.
    pub fn leave_alone(&self, cell: Value) {
        self.alone.lock().unwrap_or_else(|e| e.into_inner()).insert(cell.identity());
    }

    /// Whether forcing the cell for others came to nothing.
    pub fn is_left_alone(&self, cell: Value) -> bool {
        self.alone.lock().unwrap_or_else(|e| e.into_inner()).contains(&cell.identity())
    }

    /// Notes that the program recurses so deeply that an answer could hide that the call would have gone too deep.
    pub fn go_deep(&self) {
        self.deep.store(true, Ordering::Relaxed);
    }

    /// Whether the program recurses too deeply for answers from memory.
    #[inline]
    pub fn is_deep(&self) -> bool {
        self.deep.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_remembered_while_memory_is_short() {
        let memo = Memo::new(Mode::Run);
        let asked = |times: u64, pressure: f64| {
            let mut last = true;
            for _ in 0..times {
                last = memo.has_room(|| Some(pressure));
                Stats::bump(&memo.stats.misses_new);
            }
            last
        };
        assert!(asked(200, 5.0));
        assert!(!asked(64, 20.0));
        assert!(!asked(2000, 5.0), "it is not over while there is some");
        assert!(asked(1024, 0.0));
    }
}
