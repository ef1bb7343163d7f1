//! Labels: what producing a value observed follows the value (spec L2.3, decision 0014).
//!
//! The thread's running production has a label, the set of what it has observed so far; a thunk that it evaluated keeps it, and
//! whoever takes the value joins it into its own. Nearly every join is with nothing, with itself, or one made before.
//!
//! A process that answers one question needs to tell nothing apart: it [gathers](gather) what is observed, and values carry nothing.

use super::sets::{ObservationId, SetId, Sets};
use super::trace;
use firn_host::{AbsPath, Observation, Seen};
use firn_value::{Label, Production, Stamp, Type, Value};
use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

/// The sets that labels are numbers of. Values outlive machines, so there is one for the process.
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
    whole.label()
}

/// The running production observes what is in this set.
pub(super) fn note(set: SetId) {
    if gathers() {
        GATHERED.lock().unwrap_or_else(PoisonError::into_inner).sets.push(set);
    } else if !GROUND.get().is_some_and(|ground| ground.contains(set)) {
        take(set.label());
    }
}

/// The running production observes this.
pub(super) fn note_one(id: ObservationId) {
    if gathers() {
        GATHERED.lock().unwrap_or_else(PoisonError::into_inner).own.push(id);
    } else if !GROUND.get().is_some_and(|ground| sets().contains(ground.whole, id)) {
        // PERF: what is observed once is not worth a set of its own.
        Production::set_label(sets().with(SetId::of_label(Production::current().label()), id).label());
    }
}

/// What every answer of the process rests on from some time on: it is in what they have observed, and in no label.
struct Ground {
    whole: SetId,
    /// Of labels up to here, whether they are within it.
    within: Vec<AtomicU8>,
}

static GROUND: OnceLock<Ground> = OnceLock::new();
/// From this label on none is within the ground. Whoever does not know yet takes a label that says too much.
static FRESH: AtomicU32 = AtomicU32::new(0);

impl Ground {
    /// Whether a label from before is within it. What came later holds more, or it would be no label.
    fn has(&self, label: Label) -> bool {
        let Some(known) = self.within.get(label as usize) else { return false };
        match known.load(Ordering::Relaxed) {
            0 => {
                let within = self.contains(SetId::of_label(label));
                known.store(if within { YES } else { NO }, Ordering::Relaxed);
                within
            }
            known => known == YES,
        }
    }

    fn contains(&self, set: SetId) -> bool {
        sets().union(self.whole, set) == self.whole
    }
}

const YES: u8 = 1;
const NO: u8 = 2;

/// From now on every answer of the process rests on what is in this label, whatever else it rests on: for commands that ask
/// about parts of one set, once it is there. The first such label counts.
// PERF: most of what jobs of nixpkgs take is the library's, and was observed for the set: such values need no label, and are
// forced the plain way.
pub fn ground(label: Label) {
    if label != 0 && !gathers() {
        let ground = GROUND.get_or_init(|| {
            let within: Vec<AtomicU8> = (0..=sets().len()).map(|_| AtomicU8::new(0)).collect();
            Ground { whole: SetId::of_label(label), within }
        });
        FRESH.store(ground.within.len() as Label, Ordering::Relaxed);
    }
}

/// Joins that each thread remembers.
// PERF: collecting labels and joining them when a production ends was slower: the same rows of labels come again and again.
const JOINS: usize = 1 << 15;

/// A production's label, one that it took, and what it became.
type Joined = Cell<[Label; 3]>;

thread_local! {
    // PERF: what a thread has from its beginning is cleared for each, whether it takes labels or not: 750 KB with the names of `guards.rs`.
    static JOINED: OnceCell<&'static [Joined]> = const { OnceCell::new() };
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

/// As [`take`]; true if whoever takes the value rests on all of its label anyway, so that it needs none ([`ground`]).
#[inline]
pub fn take_value(label: Label) -> bool {
    if trace::is_on() {
        if label != 0 {
            trace::take(label);
        }
        return false;
    }
    let own = Production::current().label();
    if label != 0 && label != own {
        // PERF: half of the labels that change a production are its first.
        if own == 0 && label >= FRESH.load(Ordering::Relaxed) {
            Production::set_label(label);
            return false;
        }
        let key = (u64::from(own) << 32 | u64::from(label)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let joined = JOINED.with(|joined| *joined.get_or_init(|| table(JOINS)));
        let known = &joined[(key >> 40) as usize & (JOINS - 1)];
        let [a, b, both] = known.get();
        if (a, b) != (own, label) {
            return take_anew(own, label, known);
        }
        if both != own {
            Production::set_label(both);
        }
    }
    false
}

#[inline(never)]
fn take_anew(own: Label, label: Label, known: &Joined) -> bool {
    if GROUND.get().is_some_and(|ground| ground.has(label)) {
        return true;
    }
    let both = match own {
        0 => label,
        _ => sets().union(SetId::of_label(own), SetId::of_label(label)).label(),
    };
    // PERF: what was taken before there was a ground may be in it now; it is no less true.
    known.set([own, label, both]);
    Production::set_label(both);
    false
}

/// What is in either label.
pub fn both(one: Label, other: Label) -> Label {
    match (one, other) {
        (label, 0) | (0, label) => label,
        _ => sets().union(SetId::of_label(one), SetId::of_label(other)).label(),
    }
}

/// What the running production has observed so far.
pub fn so_far() -> Label {
    match (gathers(), GROUND.get()) {
        (true, _) => gathered(true),
        (false, None) => Production::current().label(),
        (false, Some(ground)) => sets().union(ground.whole, SetId::of_label(Production::current().label())).label(),
    }
}

/// What the running production has observed so far, less the [ground]; it begins anew, as if it had observed nothing.
pub fn let_go() -> Label {
    if gathers() {
        return gathered(false);
    }
    let label = Production::current().label();
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
    note(sets().texts_of([path]));
}

/// The running production sees what is in a label, and where things stand in all files whose code is in it.
pub fn see_texts(label: Label) {
    note(sets().with_texts(SetId::of_label(label)));
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

/// What a production that has ended observed; `value` is what it gave, if that is one.
#[inline]
pub fn settled(production: Production, value: Option<Value>) -> Label {
    if trace::is_on() { trace::close(production.label(), value.is_some_and(is_scalar)) } else { production.label() }
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
        let mut names: Vec<String> = sets().members(SetId::of_label(label)).into_iter().filter_map(shown).collect();
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
        assert_eq!(again, label);
        let ((), with_more) = apart(|| {
            take(label);
            observe(&file("many0007"), true);
        });
        assert_eq!(with_more, label);
    }
}
