//! Guards of sets whose names come from outside: a guard is the set of the whole listings, and files of bindings, that a set was made of.
//! Whoever looks up a name observes what they have under it, whoever goes through all names observes the whole of them (spec L2.5).

use super::labels::{self, gathers, note, note_one, round, sets};
use super::members::Members;
use super::sets::{GroupId, ObservationId};
use firn_host::{Bound, FileType, Observation, Seen};
use firn_source::Symbol;
use firn_value::{Guard, Guards, hear_of_guards};
use std::cell::{Cell, OnceCell};
use std::sync::{LazyLock, Mutex, PoisonError};

static MEMBERS: LazyLock<Mutex<Members>> = LazyLock::new(Mutex::default);

fn with<T>(work: impl FnOnce(&mut Members) -> T) -> T {
    work(&mut MEMBERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The guard of a listing; nothing of it counts as seen.
pub fn listing(whole: &Seen) -> Guard {
    hear_of_guards(&Heard);
    let place = sets().see(whole, true);
    let group = sets().group_of(place);
    with(|members| members.add_listing(group, place));
    Guard(group.0)
}

/// The guard of the large set of a file, of which the rest is observed; its bindings do not count as seen.
pub fn bindings(outline: &Observation, code: &Seen, file: &Seen, bound: Bound) -> Guard {
    hear_of_guards(&Heard);
    let rest = sets().observe(outline, true);
    let [whole, text] = [code, file].map(|seen| sets().see(seen, true));
    sets().pair(rest, text);
    sets().pair(whole, text);
    note_one(rest);
    with(|members| members.add_bindings(whole, bound));
    Guard(sets().group_of(whole).0)
}

/// The running production observes all that a guard stands for.
pub fn see_all(guard: Guard) {
    note(with(|members| members.whole(GroupId(guard.0), sets())));
}

/// The names that the listing of a guard has.
pub fn entries(guard: Guard, names: impl Iterator<Item = (Symbol, Option<FileType>)>) {
    with(|members| members.add_entries(GroupId(guard.0), names));
}

/// Looked-up names that each thread remembers.
const LOOKED_UP: usize = 1 << 12;

/// A name that was looked up behind a guard in a round, and the number of its observation; 0 if none was.
type LookedUp = [u32; 4];

thread_local! {
    static SEEN: OnceCell<&'static [Cell<LookedUp>]> = const { OnceCell::new() };
}

struct Heard;

/// What is observed by looking a name up, and whether it was observed in this round already.
fn look_up(guard: Guard, name: Symbol) -> (ObservationId, bool) {
    let seen = SEEN.with(|seen| *seen.get_or_init(|| labels::table(LOOKED_UP)));
    let key = (u64::from(guard.0) << 32 | u64::from(name.id())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = &seen[(key >> 40) as usize & (LOOKED_UP - 1)];
    let round = round();
    let [for_guard, for_name, in_round, id] = place.get();
    let (id, again) = match id {
        1.. if (for_guard, for_name) == (guard.0, name.id()) => (ObservationId::of_number(id), in_round == round),
        _ => (with(|members| members.observe(GroupId(guard.0), name, sets())), false),
    };
    if !again {
        place.set([guard.0, name.id(), round, id.number()]);
    }
    (id, again)
}

impl Guards for Heard {
    fn see(&self, guard: Guard, name: Symbol) {
        let (id, again) = look_up(guard, name);
        if !(again && gathers()) {
            note_one(id);
        }
    }

    fn see_each(&self, guard: Guard, names: &[Symbol]) {
        names.iter().for_each(|&name| self.see(guard, name));
    }

    fn see_all(&self, guard: Guard) {
        see_all(guard);
    }

    fn both(&self, one: Guard, other: Guard) -> Guard {
        Guard(sets().both_groups(GroupId(one.0), GroupId(other.0)).0)
    }
}
