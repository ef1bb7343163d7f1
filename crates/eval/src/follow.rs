//! Following: cells that have the name of a cell of an earlier evaluation, and take its value where that is sure (decision 0022).
//!
//! 1. A cell is followed if it has the same name in an object that is the same as before: one whose production took nothing that changed.
//! 2. A followed cell that was a scalar is given that scalar when it is forced, if all that its production took is as it was. That is asked
//!    in the order in which it was taken: each question is one that the production is bound to ask, since the answers so far are the same (M2).
//! 3. What was taken of a wall is its value. If it rests on something that changed, the wall itself is forced, if its cell is followed: the
//!    same value ends the matter, whatever it rests on.
//! 4. What cannot be told is evaluated.

use crate::Machine;
use firn_memo::kept::labels::is_scalar;
use firn_memo::kept::parts::{Content, Parts, Step};
use firn_source::{Pos, Symbol};
use firn_value::{List, Result, Thunk, Value};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing that it took has changed.
    Same,
    /// Something below it changed; nobody has asked yet whether that matters.
    Open,
    /// That is being asked.
    Asked,
    /// It is not the same.
    Other,
}

/// Whether a node is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Other,
    /// It cannot be told now.
    Unknown,
}

/// What is followed.
pub(crate) struct Following {
    parts: Parts,
    states: RefCell<Vec<State>>,
    /// Cells of now by those of then.
    now: RefCell<Vec<Option<&'static Thunk>>>,
    /// Cells of then by the identity of those of now.
    then: RefCell<FxHashMap<u64, u32>>,
    /// A bit for each followed cell that is not evaluated, by identity.
    sieve: Vec<Cell<u64>>,
    /// Names as symbols, as far as they are known.
    symbols: Vec<Cell<Option<Symbol>>>,
    /// Objects that were gone through.
    followed: RefCell<Vec<bool>>,
    pub(crate) taken: Cell<u64>,
    /// Nothing is taken: what would be is evaluated and compared.
    compares: bool,
    /// What would have been taken, and what it is.
    pub(crate) differences: RefCell<Vec<(Value, Value)>>,
}

/// Bits of the sieve.
const SIEVE: usize = 1 << 19;

fn bit(identity: u64) -> (usize, u64) {
    let at = (identity.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (SIEVE - 1);
    (at / 64, 1 << (at % 64))
}

impl Following {
    pub(crate) fn new(parts: Parts, changed: &[u32], compares: bool) -> Following {
        let mut states = vec![State::Same; parts.rows.ends.len()];
        // What printed prints again.
        for &node in changed.iter().chain(&[1]) {
            states[node as usize] = State::Other;
        }
        // Rows hold smaller numbers only.
        for node in 0..states.len() {
            if parts.rows.row(node as u32).iter().any(|&below| states[below as usize] != State::Same) {
                states[node] = State::Open;
            }
        }
        let (cells, objects, names) = (parts.cells.len(), parts.objects.len(), parts.names.len());
        Following {
            parts,
            symbols: vec![Cell::new(None); names],
            states: RefCell::new(states),
            now: RefCell::new(vec![None; cells]),
            then: RefCell::default(),
            sieve: vec![Cell::new(0); SIEVE / 64],
            followed: RefCell::new(vec![false; objects]),
            taken: Cell::new(0),
            compares,
            differences: RefCell::default(),
        }
    }

    /// Whether a thunk may be followed.
    #[inline]
    pub(crate) fn may_have(&self, thunk: &'static Thunk) -> bool {
        let (word, bit) = bit(thunk.value().identity());
        self.sieve[word].get() & bit != 0
    }

    fn follow(&self, thunk: &'static Thunk, cell: u32) {
        let identity = thunk.value().identity();
        self.now.borrow_mut()[cell as usize] = Some(thunk);
        self.then.borrow_mut().insert(identity, cell);
        let (word, bit) = bit(identity);
        self.sieve[word].set(self.sieve[word].get() | bit);
    }

    /// Goes through an object that is the same as one of then.
    fn go_through(&self, machine: &Machine, object: u32, value: Value) {
        let mut todo = vec![(object, value)];
        while let Some((object, value)) = todo.pop() {
            if std::mem::replace(&mut self.followed.borrow_mut()[object as usize], true) {
                continue;
            }
            let pieces = self.parts.objects.row(object).iter();
            for &(step, number) in pieces.flat_map(|&piece| self.parts.pieces.row(piece)) {
                let found = match step {
                    Step::Name(name) => value.as_attrs().and_then(|set| set.unguarded().get(self.symbol(name)?)),
                    Step::Place(place) => value.as_list().map(List::unguarded).filter(|list| (place as usize) < list.len()).map(|list| list.get(place as usize)),
                };
                let Some(found) = found else { continue };
                let content = self.parts.cells[number as usize].content;
                match (found.as_thunk(), content) {
                    (None, Content::Object(below)) => todo.push((below, found)),
                    (None, Content::Scalar(_)) => {}
                    (Some(thunk), content) => {
                        self.follow(thunk, number);
                        if let (Some(value), Content::Object(below)) = (value_of(thunk), content)
                            && self.is_same(machine, self.parts.cells[number as usize].node, false)
                        {
                            todo.push((below, value));
                        }
                    }
                }
            }
        }
    }

    /// A name as a symbol. One that nobody has named yet is in no set, and must not become a symbol before it is: sets are gone through in the
    /// order of their symbols, and it shows where one of two cells fails or prints.
    fn symbol(&self, name: u32) -> Option<Symbol> {
        let known = &self.symbols[name as usize];
        known.get().or_else(|| {
            known.set(Symbol::find(&self.parts.names[name as usize]));
            known.get()
        })
    }

    fn is_same(&self, machine: &Machine, node: u32, may_ask: bool) -> bool {
        self.judge(machine, node, may_ask) == Verdict::Same
    }

    /// Whether all that a node took is as it was. Invariant: what is asked of the program is what the node's production is bound to ask.
    fn judge(&self, machine: &Machine, node: u32, may_ask: bool) -> Verdict {
        // Nodes that are being judged, and how much of their rows holds.
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let mut verdict = self.enter(node, &mut stack).unwrap_or(Verdict::Same);
        while let Some((node, done)) = stack.pop() {
            if verdict == Verdict::Same
                && let Some(&below) = self.parts.rows.row(node).get(done)
            {
                stack.push((node, done + 1));
                if let Some(known) = self.enter(below, &mut stack) {
                    verdict = known;
                }
                continue;
            }
            // All of the row holds, or something in it does not.
            if verdict == Verdict::Other && may_ask {
                verdict = self.ask(machine, node);
            }
            self.states.borrow_mut()[node as usize] = match verdict {
                Verdict::Same => State::Same,
                Verdict::Other => State::Other,
                Verdict::Unknown => State::Open,
            };
        }
        verdict
    }

    /// Begins to judge a node, unless it is known what it is.
    fn enter(&self, node: u32, stack: &mut Vec<(u32, usize)>) -> Option<Verdict> {
        let mut states = self.states.borrow_mut();
        match states[node as usize] {
            State::Same => Some(Verdict::Same),
            State::Other => Some(Verdict::Other),
            // It needs what needs it.
            State::Asked => Some(Verdict::Unknown),
            State::Open => {
                if let Some(same) = self.is_seen_same(node) {
                    states[node as usize] = if same { State::Same } else { State::Other };
                    return Some(if same { Verdict::Same } else { Verdict::Other });
                }
                states[node as usize] = State::Asked;
                stack.push((node, 0));
                None
            }
        }
    }

    /// For a wall whose cell is evaluated, whether its value is the same.
    fn is_seen_same(&self, node: u32) -> Option<bool> {
        let cell = self.parts.rows.walls[node as usize].checked_sub(1)?;
        let value = value_of(self.now.borrow()[cell as usize]?)?;
        let Content::Scalar(then) = self.parts.cells[cell as usize].content else { return None };
        Some(is_equal(value, then))
    }

    /// Asks a wall for its value.
    fn ask(&self, machine: &Machine, node: u32) -> Verdict {
        let Some(cell) = self.parts.rows.walls[node as usize].checked_sub(1) else { return Verdict::Other };
        let Some(thunk) = self.now.borrow()[cell as usize] else { return Verdict::Unknown };
        // What fails here fails again where it is needed.
        if machine.force_anew(thunk, Pos::NONE).is_err() {
            return Verdict::Other;
        }
        match self.is_seen_same(node) {
            Some(true) => Verdict::Same,
            Some(false) => Verdict::Other,
            None => Verdict::Unknown,
        }
    }
}

/// What a cell has come to. Whose labels it has is not asked: nothing is taken of it.
fn value_of(thunk: &'static Thunk) -> Option<Value> {
    thunk.forced().or_else(|| thunk.labelled().map(|(value, _)| value))
}

/// Whether two scalars cannot be told apart.
fn is_equal(one: Value, other: Value) -> bool {
    match (one.as_str(), other.as_str()) {
        (Some(one), Some(other)) => one.bytes() == other.bytes() && one.context() == other.context(),
        (None, None) => is_scalar(one) && (one == other || one.as_int().is_some() && one.as_int() == other.as_int()),
        _ => false,
    }
}

impl Machine {
    /// Follows what names begin at.
    pub(crate) fn follow_root(&self, value: Value) {
        let Some(following) = self.learning.following.get() else { return };
        if let Some(root) = following.parts.cells.first()
            && let Content::Object(object) = root.content
            && following.is_same(self, root.node, false)
        {
            following.go_through(self, object, value);
        }
    }

    /// Forces a thunk that may be followed.
    #[inline(never)]
    pub(crate) fn force_followed(&self, following: &Following, thunk: &'static Thunk, pos: Pos) -> Result<Value> {
        let known = following.then.borrow().get(&thunk.value().identity()).copied();
        let Some(cell) = known else { return self.force_anew(thunk, pos) };
        let part = following.parts.cells[cell as usize];
        match part.content {
            Content::Scalar(value) => {
                if self.learning.is_deep.get() || !following.is_same(self, part.node, true) {
                    return self.force_anew(thunk, pos);
                }
                if following.compares {
                    let fresh = self.force_anew(thunk, pos)?;
                    if !is_equal(fresh, value) {
                        following.differences.borrow_mut().push((value, fresh));
                    }
                    return Ok(fresh);
                }
                let Some(claim) = thunk.claim() else { return self.force_anew(thunk, pos) };
                claim.publish(value);
                following.taken.set(following.taken.get() + 1);
                firn_memo::doubt::part_taken();
                Ok(value)
            }
            Content::Object(object) => {
                let value = self.force_anew(thunk, pos)?;
                if following.is_same(self, part.node, false) {
                    following.go_through(self, object, value);
                }
                Ok(value)
            }
        }
    }
}
