//! The automaton as the pattern compiler builds it: a growing list of states linked by `next` and `alt`.
//!
//! Invariant: states are counted exactly as libstdc++ counts them, placeholder states and unused originals of cloned
//! pieces included, because its limit on them is visible as an error.

use super::Error;

/// Index of a state; [`NONE`] where a link is not made yet.
pub(super) type Id = u32;
/// The missing link.
pub(super) const NONE: Id = Id::MAX;
/// NIX: `_GLIBCXX_REGEX_STATE_LIMIT`; one more state is "memory limit exceeded".
const STATE_LIMIT: usize = 100_000;

/// What a state does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Once more (`alt`) if that leads anywhere, else onward (`next`).
    Repeat,
    /// Both ways; the longer match wins, the left (`alt`) on a tie.
    Alternative,
    /// A group opens.
    Open(u32),
    /// A group closes.
    Close(u32),
    /// `^`
    LineBegin,
    /// `$`
    LineEnd,
    /// Consumes one byte of the set with this index.
    Set(u32),
    /// The whole pattern has matched.
    Accept,
    /// A joint without effect, skipped once the automaton is complete.
    Joint,
}

/// One state.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub kind: Kind,
    pub next: Id,
    pub alt: Id,
}

/// A set of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct ByteSet(pub [u64; 4]);

impl ByteSet {
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }
    pub fn complement(&self) -> ByteSet {
        ByteSet(self.0.map(|word| !word))
    }
}

/// A piece of automaton under construction: where it is entered, and the state whose `next` is still open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub start: Id,
    pub end: Id,
}

/// The automaton.
#[derive(Debug, Default)]
pub(super) struct Nfa {
    pub states: Vec<State>,
    pub sets: Vec<ByteSet>,
}

impl Nfa {
    /// Adds a state.
    pub fn add(&mut self, kind: Kind, next: Id, alt: Id) -> Result<Id, Error> {
        if self.states.len() >= STATE_LIMIT {
            return Err(Error::TooLarge);
        }
        self.states.push(State { kind, next, alt });
        Ok((self.states.len() - 1) as Id)
    }

    /// Adds a state that is a piece by itself.
    pub fn piece(&mut self, kind: Kind) -> Result<Piece, Error> {
        let id = self.add(kind, NONE, NONE)?;
        Ok(Piece { start: id, end: id })
    }

    /// Adds a state that consumes one byte of `set`.
    pub fn set(&mut self, set: ByteSet) -> Result<Piece, Error> {
        let index = match self.sets.iter().rposition(|known| *known == set) {
            Some(index) => index,
            None => {
                self.sets.push(set);
                self.sets.len() - 1
            }
        };
        self.piece(Kind::Set(index as u32))
    }

    /// Links `piece` after `front`, which grows to hold both.
    pub fn append(&mut self, front: &mut Piece, piece: Piece) {
        self.states[front.end as usize].next = piece.start;
        front.end = piece.end;
    }

    /// Copies a piece, state by state.
    pub fn clone_piece(&mut self, piece: Piece) -> Result<Piece, Error> {
        let mut copies: std::collections::BTreeMap<Id, Id> = Default::default();
        let mut stack = vec![piece.start];
        while let Some(id) = stack.pop() {
            let state = self.states[id as usize];
            // NIX: a state reached twice before its first copy is made is copied twice and counted twice; the last
            // copy is the one that is linked.
            let copy = self.add(state.kind, state.next, state.alt)?;
            copies.insert(id, copy);
            if state.alt != NONE && !copies.contains_key(&state.alt) {
                stack.push(state.alt);
            }
            if id != piece.end && state.next != NONE && !copies.contains_key(&state.next) {
                stack.push(state.next);
            }
        }
        for &copy in copies.values() {
            let State { next, alt, .. } = self.states[copy as usize];
            let state = &mut self.states[copy as usize];
            if next != NONE {
                state.next = copies[&next];
            }
            if alt != NONE {
                state.alt = copies[&alt];
            }
        }
        Ok(Piece { start: copies[&piece.start], end: copies[&piece.end] })
    }

    /// Makes every link jump over joints.
    pub fn skip_joints(&mut self) {
        for index in 0..self.states.len() {
            let State { next, alt, .. } = self.states[index];
            let (next, alt) = (self.beyond_joints(next), self.beyond_joints(alt));
            self.states[index].next = next;
            self.states[index].alt = alt;
        }
    }

    fn beyond_joints(&self, mut id: Id) -> Id {
        while id != NONE && self.states[id as usize].kind == Kind::Joint {
            id = self.states[id as usize].next;
        }
        id
    }
}
