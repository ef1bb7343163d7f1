//! The steps between two bytes, unrolled: from the automaton to a [`Program`] whose byte-less steps have no cycles.
//!
//! libstdc++ enters the body of a repetition at most twice at one input position, counted per path. Those counts
//! matter only inside a cycle of byte-less steps, so a node here is a state together with the counts of its cycle.
//! Every choice then depends on what follows alone, which is what lets [`super::machine`] decide from the right.

use std::collections::HashMap;

use super::Error;
use super::nfa::{Id, Kind, NONE, Nfa};

/// A node of the unrolled graph. Links always lead to smaller indices.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    /// No match this way.
    Fail,
    /// The pattern ends here.
    Accept,
    /// One byte of a set, then on from an entry.
    Set { set: u32, entry: u32 },
    /// The longer of two, the first on a tie.
    Longest(u32, u32),
    /// The first that matches at all.
    First(u32, u32),
    /// Record the position in a slot.
    Slot(u32, u32),
    /// Only at the end of the text.
    AtEnd(u32),
}

/// Where a match may begin; each is an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starts {
    /// Past the beginning of the text.
    pub inner: u32,
    /// At the beginning, where `^` holds.
    pub bol: u32,
    /// As `inner`, the empty match refused.
    pub inner_not_empty: u32,
    /// As `bol`, the empty match refused.
    pub bol_not_empty: u32,
}

/// The compiled pattern.
#[derive(Debug)]
pub(super) struct Program {
    pub nodes: Vec<Node>,
    /// Points between two bytes at which the machine can stand, as nodes.
    pub entries: Vec<u32>,
    pub starts: Starts,
    /// Groups, the whole match included.
    pub groups: usize,
    /// Bytes no set tells apart share a class.
    pub class_of: [u8; 256],
    pub classes: usize,
    /// For each set, whether it holds each class.
    pub set_has: Vec<Vec<bool>>,
}

/// Enough for any pattern that libstdc++ itself could finish; beyond it the pattern counts as too large.
const NODE_LIMIT: usize = 4_000_000;

/// A state under given circumstances.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    state: Id,
    bol: bool,
    not_empty: bool,
    /// How often each repetition of the state's cycle was tried at this position, by state.
    tried: Vec<(Id, u8)>,
}

struct Builder<'a> {
    nfa: &'a Nfa,
    /// The cycle of byte-less steps a state belongs to, if any.
    cycle: Vec<u32>,
    nodes: Vec<Node>,
    plain: Vec<u32>,
    known: HashMap<Key, u32>,
    /// The entries before this one are the starts.
    first_entry: u32,
    entry_of: Vec<u32>,
    /// States behind the entries that follow a byte, in entry order.
    entry_states: Vec<Id>,
}

/// Unrolls the automaton.
pub(super) fn compile(nfa: &Nfa, groups: usize) -> Result<Program, Error> {
    let size = nfa.states.len();
    let has_bol = nfa.states.iter().any(|state| state.kind == Kind::LineBegin);
    let mut builder = Builder {
        nfa,
        cycle: super::cycle::cycles(nfa),
        nodes: vec![Node::Fail],
        plain: vec![NONE; size],
        known: HashMap::new(),
        first_entry: if has_bol { 4 } else { 2 },
        entry_of: vec![NONE; size],
        entry_states: Vec::new(),
    };
    let starts = if has_bol {
        Starts { inner: 0, inner_not_empty: 1, bol: 2, bol_not_empty: 3 }
    } else {
        Starts { inner: 0, inner_not_empty: 1, bol: 0, bol_not_empty: 1 }
    };
    let mut entries = Vec::new();
    for start in 0..builder.first_entry {
        let (bol, not_empty) = (start & 2 != 0, start & 1 != 0);
        entries.push(builder.node(Key { state: 0, bol, not_empty, tried: Vec::new() })?);
    }
    let mut done = 0;
    while let Some(&state) = builder.entry_states.get(done) {
        entries.push(builder.node(Key { state, bol: false, not_empty: false, tried: Vec::new() })?);
        done += 1;
    }
    let (class_of, classes, set_has) = byte_classes(nfa);
    Ok(Program { nodes: builder.nodes, entries, starts, groups, class_of, classes, set_has })
}

impl Builder<'_> {
    /// The node of a state, and before it everything it leads to.
    fn node(&mut self, key: Key) -> Result<u32, Error> {
        let mut stack = vec![key.clone()];
        while let Some(top) = stack.last() {
            if self.lookup(top).is_some() {
                stack.pop();
                continue;
            }
            let (first, second) = self.successors(top);
            let pending: Vec<Key> =
                [second, first].into_iter().flatten().filter(|next| self.lookup(next).is_none()).collect();
            if pending.is_empty()
                && let Some(top) = stack.pop()
            {
                self.finish(top)?;
            }
            stack.extend(pending);
        }
        self.lookup(&key).ok_or(Error::Invalid)
    }

    fn lookup(&self, key: &Key) -> Option<u32> {
        if !key.bol && !key.not_empty && key.tried.is_empty() {
            let node = self.plain[key.state as usize];
            return (node != NONE).then_some(node);
        }
        self.known.get(key).copied()
    }

    /// The byte-less steps out of a state: through `alt`, and through `next`.
    fn successors(&self, key: &Key) -> (Option<Key>, Option<Key>) {
        let state = self.nfa.states[key.state as usize];
        let next = || Some(self.step(key, state.next, &key.tried));
        match state.kind {
            Kind::Accept | Kind::Set(_) | Kind::Joint => (None, None),
            Kind::LineBegin if !key.bol => (None, None),
            Kind::Open(_) | Kind::Close(_) | Kind::LineBegin | Kind::LineEnd => (None, next()),
            Kind::Alternative => (Some(self.step(key, state.alt, &key.tried)), next()),
            Kind::Repeat => {
                let mut tried = key.tried.clone();
                match tried.binary_search_by_key(&key.state, |entry| entry.0) {
                    // NIX: twice, so that a group may still capture the empty string.
                    Ok(index) if tried[index].1 >= 2 => return (None, next()),
                    Ok(index) => tried[index].1 += 1,
                    Err(index) => tried.insert(index, (key.state, 1)),
                }
                // The way out carries the counts as they were: trying the body is undone when it is given up.
                (Some(self.step(key, state.alt, &tried)), next())
            }
        }
    }

    fn step(&self, from: &Key, state: Id, tried: &[(Id, u8)]) -> Key {
        let cycle = self.cycle[state as usize];
        let tried = if cycle == NONE {
            Vec::new()
        } else {
            tried.iter().copied().filter(|entry| self.cycle[entry.0 as usize] == cycle).collect()
        };
        Key { state, bol: from.bol, not_empty: from.not_empty, tried }
    }

    /// Makes the node of a state whose successors are made.
    fn finish(&mut self, key: Key) -> Result<(), Error> {
        let (first, second) = self.successors(&key);
        let node_of = |key: Option<Key>| key.and_then(|key| self.lookup(&key)).unwrap_or(0);
        let (first, second) = (first.map(|key| node_of(Some(key))), node_of(second));
        let state = self.nfa.states[key.state as usize];
        let node = match state.kind {
            Kind::Accept if key.not_empty => Node::Fail,
            Kind::Accept => Node::Accept,
            Kind::Set(set) => Node::Set { set, entry: self.entry(state.next) },
            Kind::Alternative => Node::Longest(first.unwrap_or(0), second),
            Kind::Repeat => match first {
                Some(first) => Node::First(first, second),
                None => Node::First(second, 0),
            },
            // The whole match is bounded by where the walk starts and ends.
            Kind::Open(0) | Kind::Close(0) => self.nodes[second as usize],
            Kind::Open(group) => Node::Slot(2 * group, second),
            Kind::Close(group) => Node::Slot(2 * group + 1, second),
            Kind::LineBegin if key.bol => self.nodes[second as usize],
            Kind::LineEnd => Node::AtEnd(second),
            Kind::LineBegin | Kind::Joint => Node::Fail,
        };
        if self.nodes.len() >= NODE_LIMIT {
            return Err(Error::TooLarge);
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(node);
        if !key.bol && !key.not_empty && key.tried.is_empty() {
            self.plain[key.state as usize] = index;
        } else {
            self.known.insert(key, index);
        }
        Ok(())
    }

    /// The entry of the state that follows a byte.
    fn entry(&mut self, state: Id) -> u32 {
        let entry = &mut self.entry_of[state as usize];
        if *entry == NONE {
            *entry = self.first_entry + self.entry_states.len() as u32;
            self.entry_states.push(state);
        }
        *entry
    }
}

/// Bytes that every set treats alike share a class.
fn byte_classes(nfa: &Nfa) -> ([u8; 256], usize, Vec<Vec<bool>>) {
    let mut class_of = [0u8; 256];
    let mut representatives: Vec<u8> = Vec::new();
    let mut seen: HashMap<Vec<u64>, u8> = HashMap::new();
    for byte in 0..=255u8 {
        let mut signature = vec![0u64; nfa.sets.len().div_ceil(64)];
        for (index, set) in nfa.sets.iter().enumerate() {
            signature[index / 64] |= u64::from(set.contains(byte)) << (index % 64);
        }
        let class = *seen.entry(signature).or_insert_with(|| {
            representatives.push(byte);
            (representatives.len() - 1) as u8
        });
        class_of[usize::from(byte)] = class;
    }
    let set_has = nfa
        .sets
        .iter()
        .map(|set| representatives.iter().map(|&byte| set.contains(byte)).collect())
        .collect();
    (class_of, representatives.len(), set_has)
}
