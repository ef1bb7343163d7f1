//! The state of the memo that all machines of an evaluation share.

use crate::key::Identified;
use crate::{Entry, Instances, Key, Maps, Refusal, Stats, Table};
use firn_value::{Lambda, Slot, Value};
use rustc_hash::FxHashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is remembered (O1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    #[default]
    Off,
    /// Calls within the evaluation.
    Run,
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
    /// Counters.
    pub stats: Stats,
    identified: Identified,
    alone: Mutex<FxHashSet<u64>>,
    /// Answers from memory and what a fresh evaluation gave, to be compared.
    pub shadows: Mutex<Vec<(Value, Value, &'static Lambda)>>,
    deep: AtomicBool,
}

/// The most cells that are looked at for the key of a call that recurs, and of one that does not yet.
const LIMIT: usize = 256;
const FIRST_LIMIT: usize = 32;
/// So many calls in a row that were neither answered nor expensive, and the function's calls are not remembered any more.
const PATIENCE: u8 = 32;
/// Steps that make a call expensive: taking its key is nothing beside it.
const EXPENSIVE: u64 = 512;

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

    /// The key of a call, or why it has none.
    pub fn key(&self, code: &'static Lambda, captures: &[Slot], args: &[Slot]) -> Result<Key, Refusal> {
        let calls = code.marks.count();
        if calls >= PATIENCE {
            code.marks.forget();
        }
        Key::of(code, captures, args, &self.identified, if calls == 0 { FIRST_LIMIT } else { LIMIT })
    }

    /// Remembers a call.
    pub fn enter(&self, entry: Entry) {
        if entry.cost >= EXPENSIVE {
            entry.key.code.marks.renew();
        }
        self.table.insert(entry);
    }

    /// Counts an answer from memory that saved so many steps.
    pub fn answered(&self, code: &'static Lambda, steps: u64) {
        code.marks.renew();
        crate::doubt::answered();
        Stats::bump(&self.stats.hits);
        self.stats.steps_saved.fetch_add(steps, Ordering::Relaxed);
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
