//! The state of the memo that all machines of an evaluation share.

use crate::key::Identified;
use crate::{Instances, Key, Map, Maps, Refusal, Stats, Table};
use firn_value::{Lambda, Slot, Value};
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex};

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
    /// Values of transported cells that were taken from their originals: map, original, in the order they were taken.
    pub taken: Mutex<Vec<(Arc<Map>, Value)>>,
}

/// The most cells that are looked at for a key.
const LIMIT: usize = 256;

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
        Key::of(code, captures, args, &self.identified, LIMIT)
    }

    /// Notes that forcing the cell for others came to nothing, so that nobody tries again.
    pub fn leave_alone(&self, cell: Value) {
        self.alone.lock().unwrap_or_else(|e| e.into_inner()).insert(cell.identity());
    }

    /// Whether forcing the cell for others came to nothing.
    pub fn is_left_alone(&self, cell: Value) -> bool {
        self.alone.lock().unwrap_or_else(|e| e.into_inner()).contains(&cell.identity())
    }
}
