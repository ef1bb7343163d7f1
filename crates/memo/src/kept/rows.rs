//! `Rows`: what productions took, as they took it (decision 0023). Nothing is joined while evaluation goes on: whoever wants to know what a value
//! rests on follows the rows.
//!
//! 1. A label is an observation, a set of observations, or a row: what a production took, most of it once. What took one thing rests on
//!    what that rests on, and has its label.
//! 2. The rows of running productions lie on a stack of their thread, each above that of the production around it. The running production's own label is
//!    where its row begins, plus one, and 0 while it has taken nothing. [`close`] takes a row off the stack and makes a label of it.
//! 3. Closed rows lie in memory that every thread may read, and stay as they are: how many labels they have, the set that they come to once
//!    somebody has asked, and the labels. Whoever has the label of a row got it from where its thread put it after the row was
//!    written.

use super::labels::sets;
use super::sets::{ObservationId, SetId};
use firn_value::{Label, Production};
use std::cell::{OnceCell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a label stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Set(SetId),
    Observation(ObservationId),
    /// Where a row lies.
    Row(u32),
}

/// Labels that are no sets have this bit.
const NO_SET: Label = 1 << 30;
/// And those of observations this one.
const OBSERVATION: Label = 1 << 31;

/// The label of the first row; and what is larger than the label of any.
pub(super) const FIRST: Label = NO_SET;
pub(super) const END: Label = OBSERVATION;

pub(super) fn kind(label: Label) -> Kind {
    match (label & NO_SET, label & OBSERVATION) {
        (0, _) => Kind::Set(SetId::of_number(label)),
        (_, 0) => Kind::Row(label & !NO_SET),
        _ => Kind::Observation(ObservationId::of_number(label & !(NO_SET | OBSERVATION))),
    }
}

/// The label of one observation.
pub(super) fn of_observation(id: ObservationId) -> Label {
    id.number() | NO_SET | OBSERVATION
}

/// The label of a set.
pub(super) fn of_set(set: SetId) -> Label {
    set.number()
}

/// Words of the pieces that memory for rows is made of; each belongs to one thread.
pub(super) const PIECE: usize = 1 << 17;
/// Pieces that can be told apart.
const MOST_PIECES: usize = NO_SET as usize / PIECE;
/// Longer rows are rows of rows.
const LONGEST: usize = 1 << 12;
/// What a row has before its labels.
const HEAD: usize = 2;

type Piece = Box<[AtomicU32]>;

static PIECES: [OnceLock<Piece>; MOST_PIECES] = [const { OnceLock::new() }; MOST_PIECES];
static NEXT_PIECE: AtomicU32 = AtomicU32::new(0);

/// How many pieces have been given to threads.
pub(super) fn pieces() -> u32 {
    NEXT_PIECE.load(Ordering::SeqCst)
}

/// The row that lies at a place: how many labels, the set, the labels.
fn row(at: u32) -> (&'static AtomicU32, &'static [AtomicU32]) {
    let (piece, from) = (at as usize / PIECE, at as usize % PIECE);
    let words = PIECES[piece].get().map_or(&[][..], |words| &words[from..]);
    let count = words[0].load(Ordering::Relaxed) as usize;
    (&words[1], &words[HEAD..HEAD + count])
}

/// The labels of the row that lies at a place.
pub(super) fn labels(at: u32) -> impl Iterator<Item = Label> {
    row(at).1.iter().map(|label| label.load(Ordering::Relaxed))
}

/// Places where a label may have been put last.
const LAST: usize = 1 << 8;
/// Closed rows that each thread remembers.
// PERF: so few that they stay at hand: of 1,000 jobs' rows 62 of 100 are found among 2¹⁰ and 68 among 2¹⁴, of which each look is a miss of the cache.
const KNOWN: usize = 1 << 10;

/// The rows of a thread.
struct Rows {
    stack: Vec<Label>,
    /// By a few bits of a label: where on the stack one was put last.
    last: [u32; LAST],
    /// By a few bits of their hash: rows of this thread, with the rest of it.
    // PERF: most rows are new; finding that out must not look at others, which are no longer at hand.
    known: Vec<(u32, Label)>,
    /// Where the next row is written, and where its piece ends.
    next: u32,
    end: u32,
}

thread_local! {
    // PERF: what has nothing to be dropped is found without asking whether it is there still.
    static ROWS: OnceCell<&'static RefCell<Rows>> = const { OnceCell::new() };
}

fn with<T>(work: impl FnOnce(&mut Rows) -> T) -> T {
    ROWS.with(|rows| work(&mut rows.get_or_init(new).borrow_mut()))
}

#[cold]
fn new() -> &'static RefCell<Rows> {
    Box::leak(Box::new(RefCell::new(Rows { stack: Vec::new(), last: [u32::MAX; LAST], known: vec![(0, 0); KNOWN], next: 0, end: 0 })))
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rows {
    fn take(&mut self, label: Label) {
        let top = self.stack.len() as u32;
        let start = match Production::current().label().checked_sub(1) {
            Some(start) => start,
            None => {
                Production::set_label(top + 1);
                top
            }
        };
        let last = &mut self.last[(label.wrapping_mul(MIX as u32) >> (u32::BITS - LAST.ilog2())) as usize];
        // PERF: what is taken again and again is put into the row once, if nothing has come between.
        if *last >= start && *last < top && self.stack[*last as usize] == label {
            return;
        }
        *last = top;
        self.stack.push(label);
    }

    #[inline]
    fn close(&mut self, start: u32) -> Label {
        let label = self.label_from(start as usize);
        self.stack.truncate(start as usize);
        label
    }

    /// The label of what lies on the stack from a place on.
    fn label_from(&mut self, start: usize) -> Label {
        match self.stack[start..] {
            [] => 0,
            [only] => only,
            _ if self.stack.len() - start <= LONGEST => self.intern(start),
            _ => {
                let stack = std::mem::take(&mut self.stack);
                let parts: Vec<Label> = stack[start..].chunks(LONGEST).map(|part| self.label_of(part)).collect();
                let label = self.label_of(&parts);
                self.stack = stack;
                label
            }
        }
    }

    /// The label of what takes these.
    fn label_of(&mut self, labels: &[Label]) -> Label {
        let start = self.stack.len();
        self.stack.extend_from_slice(labels);
        let label = self.label_from(start);
        self.stack.truncate(start);
        label
    }

    fn intern(&mut self, start: usize) -> Label {
        let labels = &self.stack[start..];
        let hash = labels.iter().fold(0, |hash: u64, &label| (hash.rotate_left(5) ^ u64::from(label)).wrapping_mul(MIX));
        let (rest, known) = &mut self.known[(hash >> (u64::BITS - KNOWN.ilog2())) as usize];
        if *rest == hash as u32
            && let Kind::Row(at) = kind(*known)
        {
            let (_, row) = row(at);
            if row.len() == labels.len() && row.iter().zip(labels).all(|(one, other)| one.load(Ordering::Relaxed) == *other) {
                return *known;
            }
        }
        let size = (HEAD + labels.len()) as u32;
        if self.end - self.next < size {
            let Some(piece) = new_piece() else { return of_observation(ObservationId::BEYOND) };
            (self.next, self.end) = (piece, piece + PIECE as u32);
        }
        let (piece, from) = (self.next as usize / PIECE, self.next as usize % PIECE);
        let Some(words) = PIECES[piece].get().map(|words| &words[from..from + size as usize]) else { return of_observation(ObservationId::BEYOND) };
        words[0].store(labels.len() as u32, Ordering::Relaxed);
        words[HEAD..].iter().zip(labels).for_each(|(word, &label)| word.store(label, Ordering::Relaxed));
        (*rest, *known) = (hash as u32, self.next | NO_SET);
        self.next += size;
        *known
    }
}

/// Where a piece of memory that nobody has begins; none if there have been too many.
#[cold]
fn new_piece() -> Option<u32> {
    let number = NEXT_PIECE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |next| (next < MOST_PIECES as u32).then_some(next + 1)).ok()?;
    PIECES[number as usize].get_or_init(|| (0..PIECE).map(|_| AtomicU32::new(0)).collect());
    Some(number * PIECE as u32)
}

/// The running production takes what a label stands for, which is not nothing.
pub(super) fn take(label: Label) {
    with(|rows| rows.take(label));
}

/// What a production that has ended took, by its own label.
pub(super) fn close(own: Label) -> Label {
    let Some(start) = own.checked_sub(1) else { return 0 };
    with(|rows| rows.close(start))
}

/// As [`close`]; the running production takes it.
pub(super) fn hand_on(own: Label) -> Label {
    let Some(start) = own.checked_sub(1) else { return 0 };
    with(|rows| {
        let label = rows.close(start);
        rows.take(label);
        label
    })
}

/// What the running production has taken so far, and something more.
pub(super) fn so_far(more: Label) -> Label {
    let own = Production::current().label().checked_sub(1);
    with(|rows| {
        let own = own.map_or(0, |start| rows.label_from(start as usize));
        rows.both(own, more)
    })
}

/// What either label stands for.
pub(super) fn both(one: Label, other: Label) -> Label {
    with(|rows| rows.both(one, other))
}

impl Rows {
    fn both(&mut self, one: Label, other: Label) -> Label {
        match (one, other) {
            (label, 0) | (0, label) => label,
            (one, other) if one == other => one,
            _ => self.label_of(&[one, other]),
        }
    }
}

/// The next row of this thread lies in a piece of its own.
pub(super) fn begin_piece() {
    with(|rows| (rows.next, rows.end) = (0, 0));
}

/// Rows that a walk has passed have its number, with this bit, for a set. Sets do not have it.
const PASSED: u32 = NO_SET;

/// The set that a label comes to.
pub(super) fn set_of(label: Label) -> SetId {
    match kind(label) {
        Kind::Set(set) => set,
        Kind::Observation(id) => sets().only(id),
        Kind::Row(at) => known_set(at).unwrap_or_else(|| resolve(Walk::of_row(at))),
    }
}

/// The set that these labels come to together.
pub(super) fn set_of_all(labels: impl Iterator<Item = Label>) -> SetId {
    let mut walk = Walk::new(0);
    labels.for_each(|label| walk.take(label));
    resolve(walk)
}

/// The set of a row, if it is known.
fn known_set(at: u32) -> Option<SetId> {
    let set = row(at).0.load(Ordering::Relaxed);
    (set != 0 && set & PASSED == 0).then(|| SetId::of_number(set))
}

/// What a row, or several labels, rest on, as far as it has been found.
// PERF: most rows are below one answer only, and nobody asks for their sets. A row that a second walk comes by is below more, and gets a set.
struct Walk {
    /// The row, unless it is none.
    at: Option<u32>,
    /// What rows have that it passes, and what those had that an earlier walk passed only to get to this row.
    mark: u32,
    earlier: u32,
    todo: Vec<u32>,
    own: Vec<ObservationId>,
    below: Vec<SetId>,
}

impl Walk {
    fn new(earlier: u32) -> Walk {
        static WALKS: AtomicU32 = AtomicU32::new(0);
        let mark = WALKS.fetch_add(1, Ordering::Relaxed) & (PASSED - 1) | PASSED;
        Walk { at: None, mark, earlier, todo: Vec::new(), own: Vec::new(), below: Vec::new() }
    }

    fn of_row(at: u32) -> Walk {
        let mut walk = Walk::new(row(at).0.load(Ordering::Relaxed));
        walk.at = Some(at);
        walk.pass(at);
        walk
    }

    fn take(&mut self, label: Label) {
        match kind(label) {
            Kind::Set(set) => self.below.push(set),
            Kind::Observation(id) => self.own.push(id),
            Kind::Row(at) => self.todo.push(at),
        }
    }

    fn pass(&mut self, at: u32) {
        row(at).0.store(self.mark, Ordering::Relaxed);
        labels(at).for_each(|label| self.take(label));
    }

    /// Goes on until everything is found, or a row is met that needs a set of its own.
    fn go_on(&mut self) -> Option<u32> {
        while let Some(at) = self.todo.pop() {
            match row(at).0.load(Ordering::Relaxed) {
                mark if mark == self.mark => {}
                mark if mark == 0 || mark == self.earlier => self.pass(at),
                mark if mark & PASSED != 0 => return Some(at),
                set => self.below.push(SetId::of_number(set)),
            }
        }
        None
    }

    fn end(mut self) -> SetId {
        self.below.sort_unstable();
        self.below.dedup();
        let set = sets().join(&self.own, &self.below);
        if let Some(at) = self.at {
            row(at).0.store(set.number(), Ordering::Relaxed);
        }
        set
    }
}

/// Ends a walk, and those of rows that it meets first.
fn resolve(walk: Walk) -> SetId {
    let mut walks = vec![walk];
    let mut last = SetId::EMPTY;
    while let Some(mut walk) = walks.pop() {
        match walk.go_on() {
            Some(at) => {
                walk.todo.push(at);
                walks.push(walk);
                walks.push(Walk::of_row(at));
            }
            None => last = walk.end(),
        }
    }
    last
}
