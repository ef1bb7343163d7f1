//! Labels: what producing a value observed follows the value (spec L2.3, decision 0014).
//!
//! A thunk that a production evaluated keeps what the production observed and took, and whoever takes the value takes that too: as a row,
//! which nobody looks into before an answer is kept ([`rows`](super::rows)).
//!
//! A process that answers one question needs to tell nothing apart: it [gathers](gather) what is observed, and values carry nothing.

use super::rows::{self, Kind, kind};
use super::sets::{ObservationId, SetId, Sets};
use super::trace;
use firn_host::{AbsPath, Observation, Seen};
use firn_value::{Label, Production, Stamp, Type, Value};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// The sets that labels come to. Values outlive machines, so there is one for the process.
pub fn sets() -> &'static Sets {
    static SETS: LazyLock<Sets> = LazyLock::new(Sets::new);
    &SETS
}

static GATHERS: AtomicBool = AtomicBool::new(false);
static GATHERED: Mutex<Gathered> = Mutex::new(Gathered { own: Vec::new(), sets: Vec::new() });

/// What was observed and is not one set yet.
struct Gathered {
    own: Vec<ObservationId>,
    sets: Vec<SetId>,
}

/// From now on everything that is observed in the process, by whatever thread, counts as observed by whoever asks: for
/// commands that ask one question and end.
// PERF: values without labels are forced the plain way.
pub fn gather() {
    GATHERS.store(true, Ordering::SeqCst);
}

pub(super) fn gathers() -> bool {
    GATHERS.load(Ordering::Relaxed)
}

/// How often what was gathered was let go.
static ROUND: AtomicU32 = AtomicU32::new(0);

pub(super) fn round() -> u32 {
    ROUND.load(Ordering::SeqCst)
}

/// What was gathered, as one set, which stays gathered if it is to.
fn gathered(stays: bool) -> Label {
    let mut all = GATHERED.lock().unwrap_or_else(PoisonError::into_inner);
    all.sets.sort_unstable();
    all.sets.dedup();
    let whole = sets().join(&all.own, &all.sets);
    all.own.clear();
    all.sets.clear();
    if stays {
        all.sets.push(whole);
    } else {
        ROUND.fetch_add(1, Ordering::SeqCst);
    }
    rows::of_set(whole)
}

/// The set that a label comes to.
pub fn set_of(label: Label) -> SetId {
    rows::set_of(label)
}

/// The running production observes what is in this set.
pub(super) fn note(set: SetId) {
    if gathers() {
        GATHERED.lock().unwrap_or_else(PoisonError::into_inner).sets.push(set);
    } else {
        take(rows::of_set(set));
    }
}

/// The running production observes this.
pub(super) fn note_one(id: ObservationId) {
    if gathers() {
        GATHERED.lock().unwrap_or_else(PoisonError::into_inner).own.push(id);
    } else {
        take(rows::of_observation(id));
    }
}

/// What every answer of the process rests on from some time on: it is in what they have observed, and in no label.
struct Ground {
    whole: SetId,
    /// Of observations up to here, whether they are in it.
    has: Vec<bool>,
    /// Of rows up to here, whether they are within it.
    within: Vec<AtomicU8>,
}

static GROUND: OnceLock<Ground> = OnceLock::new();
/// From this label on, up to those of observations, none is within the ground. Whoever does not know yet takes a label that says too much.
static FRESH: AtomicU32 = AtomicU32::new(rows::FIRST);
/// The same of observations.
static FRESH_OBSERVATION: AtomicU32 = AtomicU32::new(rows::END);
/// Somebody lays the ground, or has.
static LAYS: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What the ground is to have, while this thread lays it.
    static LAID: RefCell<Option<Vec<Label>>> = const { RefCell::new(None) };
}

const YES: u8 = 1;
const NO: u8 = 2;

impl Ground {
    /// Whether all that a label stands for is in it.
    fn contains(&self, label: Label) -> bool {
        match kind(label) {
            Kind::Set(set) => sets().union(self.whole, set) == self.whole,
            Kind::Observation(id) => self.has.get(id.number() as usize).is_some_and(|&has| has),
            Kind::Row(at) => self.contains_row(at),
        }
    }

    fn contains_row(&self, at: u32) -> bool {
        let mut waiting = vec![at];
        while let Some(&at) = waiting.last() {
            let Some(known) = self.within.get(at as usize) else { return false };
            if known.load(Ordering::Relaxed) == 0 {
                let unknown = rows::labels(at).find_map(|label| match kind(label) {
                    Kind::Row(below) if self.within.get(below as usize).is_some_and(|known| known.load(Ordering::Relaxed) == 0) => Some(below),
                    _ => None,
                });
                if let Some(below) = unknown {
                    waiting.push(below);
                    continue;
                }
                let within = rows::labels(at).all(|label| match kind(label) {
                    Kind::Row(below) => self.within.get(below as usize).is_some_and(|known| known.load(Ordering::Relaxed) == YES),
                    _ => self.contains(label),
                });
                known.store(if within { YES } else { NO }, Ordering::Relaxed);
            }
            waiting.pop();
        }
        self.within.get(at as usize).is_some_and(|known| known.load(Ordering::Relaxed) == YES)
    }
}

/// Begins to do what every answer of the process rests on, whatever else it rests on: for commands that ask about parts of one set. What is observed
/// is told by [`lay_ground`]; until then this thread's values need no labels. False if there is a ground already, or none is needed.
// PERF: most of what jobs of nixpkgs take is the library's, and was observed for the set: such values need no label, and are
// forced the plain way.
pub fn begin_ground() -> bool {
    if gathers() || LAYS.swap(true, Ordering::SeqCst) {
        return false;
    }
    LAID.set(Some(Vec::new()));
    FRESH.store(rows::END, Ordering::SeqCst);
    FRESH_OBSERVATION.store(Label::MAX, Ordering::SeqCst);
    true
}

/// Ends it: from now on every answer of the process rests on what was observed, which is in no label.
pub fn lay_ground() -> Label {
    let laid = LAID.take().unwrap_or_default();
    let ground = GROUND.get_or_init(|| {
        let whole = rows::set_of_all(laid.into_iter());
        let mut has = vec![false; sets().observed_so_far() as usize];
        sets().ids(whole).into_iter().for_each(|id| has[id.number() as usize] = true);
        rows::begin_piece();
        let within = (0..rows::pieces() as usize * rows::PIECE).map(|_| AtomicU8::new(0)).collect();
        Ground { whole, has, within }
    });
    FRESH.store(rows::FIRST + ground.within.len() as Label, Ordering::SeqCst);
    FRESH_OBSERVATION.store(rows::of_observation(ObservationId::of_number(ground.has.len() as u32)), Ordering::SeqCst);
    rows::of_set(ground.whole)
}

/// A table of so many rows of zeros, for the life of the process.
// PERF: memory that is zero comes from the system when it is first touched.
pub(super) fn table<const N: usize>(rows: usize) -> &'static [Cell<[u32; N]>] {
    Cell::from_mut(Box::leak(vec![[0; N]; rows].into_boxed_slice())).as_slice_of_cells()
}

/// The running production takes a value with this label.
#[inline]
pub fn take(label: Label) {
    take_value(label);
}

/// As [`take`]; true if whoever takes the value rests on all of its label anyway, so that it needs none ([`lay_ground`]).
#[inline]
pub fn take_value(label: Label) -> bool {
    // PERF: nearly every label is a row or an observation that is younger than the ground.
    let fresh = if label < rows::END { &FRESH } else { &FRESH_OBSERVATION };
    if label >= fresh.load(Ordering::Relaxed) {
        rows::take(label);
        return false;
    }
    label != 0 && take_slowly(label)
}

#[inline(never)]
fn take_slowly(label: Label) -> bool {
    if trace::is_on() {
        trace::take(label);
        return false;
    }
    if LAID.with_borrow_mut(|laid| laid.as_mut().map(|laid| laid.push(label)).is_some()) {
        return false;
    }
    if GROUND.get().is_some_and(|ground| ground.contains(label)) {
        return true;
    }
    rows::take(label);
    false
}

/// What is in either label.
pub fn both(one: Label, other: Label) -> Label {
    rows::both(one, other)
}

/// What the running production has observed so far.
pub fn so_far() -> Label {
    if gathers() { gathered(true) } else { rows::so_far(GROUND.get().map_or(0, |ground| rows::of_set(ground.whole))) }
}

/// What the running production has observed so far, less the [ground](lay_ground); it begins anew, as if it had observed nothing.
pub fn let_go() -> Label {
    if gathers() {
        return gathered(false);
    }
    let label = rows::close(Production::current().label());
    Production::set_label(0);
    label
}

/// The running production observes something. `read`: see [`Sets::observe`].
pub fn observe(observation: &Observation, read: bool) {
    let id = sets().observe(observation, read);
    note_one(id);
}

/// The running production reads a file, or lists a directory.
pub fn observe_read(seen: &Seen) {
    note_one(sets().see(seen, true));
}

/// The running production reads a file as code; the bytes of the file wait for [`see_text`].
pub fn observe_code(code: &Seen, file: &Seen) {
    let id = sets().see(code, true);
    sets().pair(id, sets().see(file, true));
    note_one(id);
}

/// The running production sees where something stands in a file that was read as code.
pub fn see_text(path: &AbsPath) {
    if trace::is_on() && trace::see_places(path) {
        return;
    }
    sets().texts_of([path]).into_iter().for_each(note_one);
}

/// The running production sees what is in a set, and where things stand in all files whose code is in it.
pub fn see_texts(set: SetId) {
    note(sets().with_texts(set));
}

/// The running production prints something.
pub fn print() {
    note_one(ObservationId::PRINTED);
    if trace::is_on() {
        trace::take(trace::PRINTED);
    }
}

/// Does something in a production of its own and says what it observed. The running production takes none of it.
pub fn apart<T>(work: impl FnOnce() -> T) -> (T, Label) {
    let outer = begin();
    let result = work();
    (result, end(outer))
}

/// As [`apart`]; the running production takes what was observed.
pub fn within<T>(work: impl FnOnce() -> T) -> (T, Label) {
    let (result, label) = apart(work);
    take(label);
    (result, label)
}

/// Begins a production, of the running instance, and gives the one around it.
pub fn begin() -> Production {
    Production::begin(Production::current().stamp())
}

/// Begins a production outside all instances and gives the one around it.
pub fn begin_outside() -> Production {
    Production::begin(Stamp::NONE)
}

/// Ends the running production and says what it observed.
pub fn end(outer: Production) -> Label {
    settled(Production::end(outer), None)
}

/// As [`settled`]; the running production takes it.
#[inline]
pub fn handed_on(production: Production, value: Option<Value>) -> Label {
    if trace::is_on() {
        let label = settled(production, value);
        take(label);
        return label;
    }
    rows::hand_on(production.label())
}

/// What a production that has ended observed; `value` is what it gave, if that is one.
#[inline]
pub fn settled(production: Production, value: Option<Value>) -> Label {
    if trace::is_on() { trace::close(production.label(), value.is_some_and(is_scalar)) } else { rows::close(production.label()) }
}

/// Whether all there is to see of a value is seen at once.
pub fn is_scalar(value: Value) -> bool {
    matches!(value.get_type(), Some(Type::Null | Type::Bool | Type::Int | Type::String))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_host::{Durability, Question};

    fn file(name: &str) -> Observation {
        let path = AbsPath::new(format!("/labels/{name}").as_bytes()).expect("no NUL");
        Observation::new(Question::File(path), Observation::digest_bytes(None), Durability::Medium)
    }

    fn names(label: Label) -> Vec<String> {
        let shown = |seen: Observation| seen.question.path().map(|path| String::from_utf8_lossy(path.base_name().unwrap()).into_owned());
        let mut names: Vec<String> = sets().members(set_of(label)).into_iter().filter_map(shown).collect();
        names.sort();
        names
    }

    #[test]
    fn a_production_has_what_it_observed_and_what_it_took_and_no_more() {
        let ((inner, two), outer) = apart(|| {
            observe(&file("a"), true);
            let ((), inner) = apart(|| {
                ["b", "c", "b", "d"].iter().for_each(|name| observe(&file(name), true));
            });
            // Not taken: whoever forgets what an inner production observed knows too little; here it is not used.
            let ((), two) = within(|| ["e", "f"].iter().for_each(|name| observe(&file(name), true)));
            (inner, two)
        });
        assert_eq!(names(inner), ["b", "c", "d"]);
        assert_eq!(names(two), ["e", "f"]);
        assert_eq!(names(outer), ["a", "e", "f"]);
        assert_eq!(so_far(), 0);
    }

    #[test]
    fn very_many_labels_are_one_in_the_end() {
        let all: Vec<String> = (0..1000).map(|i| format!("many{i:04}")).collect();
        let ((), label) = apart(|| all.iter().chain(&all).for_each(|name| observe(&file(name), true)));
        assert_eq!(names(label), all);
        let ((), again) = apart(|| all.iter().rev().for_each(|name| observe(&file(name), true)));
        assert_eq!(set_of(again), set_of(label));
        let ((), with_more) = apart(|| {
            take(label);
            observe(&file("many0007"), true);
        });
        assert_eq!(set_of(with_more), set_of(label));
    }
}
