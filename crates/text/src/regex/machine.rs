//! Running a [`Program`], from the right.
//!
//! What libstdc++ does by trying every path is decided here by looking at the rest of the text first. 1. A pass from the
//! end to the beginning knows, at each position and for each entry, whether a match can follow and how its end ranks
//! among the others. Those ranks, with the way each entry would go, are one state of an automaton that is built as it
//! is needed and kept. 2. A walk from a start follows the ways and writes the captures. Both are linear in the text.
//! 3. The pass keeps states by segment: when a segment or the automaton grows too large, only the ranks at the border
//! are kept and the segment is passed again when the walk reaches it, so memory is bounded.

use std::collections::HashMap;
use std::sync::Arc;

use super::closure::{Node, Program};

/// No entry, no state, no position.
const NONE: u32 = u32::MAX;
/// Cells of all states before the automaton is dropped and begun anew.
const CELL_LIMIT: usize = 1 << 20;
/// Positions of a segment.
const SEGMENT_LIMIT: usize = 1 << 20;

/// What matches from one entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Cell {
    /// 0 for no match; otherwise a later end has the higher rank.
    rank: u32,
    way: u32,
}

/// A path between two bytes: slots to set, then the entry after the byte, [`NONE`] where the match ends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Way {
    slots: Box<[u32]>,
    entry: u32,
}

/// Whether a match must reach the end of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Whole,
    Prefix,
}

/// The automaton as far as it has been built. Belongs to one program and one mode.
#[derive(Debug)]
pub(super) struct Cache {
    mode: Mode,
    states: Vec<Arc<[Cell]>>,
    /// Whether a match can begin, past the beginning of the text.
    starts: Vec<bool>,
    /// Whether nothing can match any more.
    dead: Vec<bool>,
    index: HashMap<Arc<[Cell]>, u32>,
    steps: Vec<u32>,
    at_end: u32,
    ways: Vec<Way>,
    way_index: HashMap<Way, u32>,
    /// Scratch: the rank of each node.
    ranks: Vec<u32>,
    /// States of the current segment, from its right to its left.
    trail: Vec<u32>,
}

impl Cache {
    pub fn new(mode: Mode) -> Cache {
        Cache {
            mode,
            states: Vec::new(),
            starts: Vec::new(),
            dead: Vec::new(),
            index: HashMap::new(),
            steps: Vec::new(),
            at_end: NONE,
            ways: Vec::new(),
            way_index: HashMap::new(),
            ranks: Vec::new(),
            trail: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.starts.clear();
        self.dead.clear();
        self.index.clear();
        self.steps.clear();
        self.at_end = NONE;
        self.ways.clear();
        self.way_index.clear();
    }

    /// Makes room before a run; states found in a run stay until its segment is over.
    pub fn prepare(&mut self, program: &Program) {
        if self.full(program) {
            self.clear();
        }
    }

    fn full(&self, program: &Program) -> bool {
        self.states.len() * (program.entries.len() + program.classes) > CELL_LIMIT
    }

    fn intern(&mut self, program: &Program, cells: Arc<[Cell]>) -> u32 {
        if let Some(&state) = self.index.get(&cells) {
            return state;
        }
        let state = self.states.len() as u32;
        self.starts.push(cells[program.starts.inner as usize].rank != 0);
        self.dead.push(cells.iter().all(|cell| cell.rank == 0));
        self.index.insert(cells.clone(), state);
        self.states.push(cells);
        self.steps.resize(self.states.len() * program.classes, NONE);
        state
    }

    /// The state at the end of the text.
    fn end_state(&mut self, program: &Program) -> u32 {
        if self.at_end == NONE {
            self.at_end = self.build(program, None);
        }
        self.at_end
    }

    /// The state one byte to the left of `state`.
    fn step(&mut self, program: &Program, state: u32, byte: u8) -> u32 {
        let class = usize::from(program.class_of[usize::from(byte)]);
        let at = state as usize * program.classes + class;
        let known = self.steps[at];
        if known != NONE {
            return known;
        }
        let cells = self.states[state as usize].clone();
        let next = self.build(program, Some((&cells, class)));
        self.steps[at] = next;
        next
    }

    /// Ranks every node, from what the ranks are after the byte (or, without one, at the end of the text).
    fn build(&mut self, program: &Program, right: Option<(&[Cell], usize)>) -> u32 {
        let mut ranks = std::mem::take(&mut self.ranks);
        ranks.clear();
        // An end here is the nearest there is: rank 1, all others above it.
        let accept = u32::from(self.mode == Mode::Prefix || right.is_none());
        for node in &program.nodes {
            let rank = |node: u32| ranks[node as usize];
            let value = match *node {
                Node::Fail => 0,
                Node::Accept => accept,
                Node::Set { set, entry } => match right {
                    Some((cells, class)) if program.set_has[set as usize][class] => match cells[entry as usize].rank {
                        0 => 0,
                        rank => rank + 1,
                    },
                    _ => 0,
                },
                Node::Longest(left, right) => rank(left).max(rank(right)),
                Node::First(first, second) => match rank(first) {
                    0 => rank(second),
                    rank => rank,
                },
                Node::Slot(_, next) => rank(next),
                Node::AtEnd(next) if right.is_none() => rank(next),
                Node::AtEnd(_) => 0,
            };
            ranks.push(value);
        }
        let mut order: Vec<u32> = program.entries.iter().map(|&node| ranks[node as usize]).collect();
        order.push(0);
        order.sort_unstable();
        order.dedup();
        let cells = program
            .entries
            .iter()
            .map(|&node| {
                let rank = order.partition_point(|&rank| rank < ranks[node as usize]) as u32;
                Cell { rank, way: if rank == 0 { NONE } else { self.way(program, &ranks, node) } }
            })
            .collect();
        self.ranks = ranks;
        self.intern(program, cells)
    }

    /// The way from a node that matches.
    fn way(&mut self, program: &Program, ranks: &[u32], mut node: u32) -> u32 {
        if program.groups == 1 && self.mode == Mode::Whole {
            return NONE;
        }
        let mut slots = Vec::new();
        let entry = loop {
            node = match program.nodes[node as usize] {
                Node::Fail | Node::Accept => break NONE,
                Node::Set { entry, .. } => break entry,
                Node::Longest(left, right) if ranks[left as usize] >= ranks[right as usize] => left,
                Node::Longest(_, right) => right,
                Node::First(first, _) if ranks[first as usize] != 0 => first,
                Node::First(_, second) => second,
                Node::Slot(slot, next) => {
                    // All of a way's slots get the same position, so once is enough.
                    if !slots.contains(&slot) {
                        slots.push(slot);
                    }
                    next
                }
                Node::AtEnd(next) => next,
            };
        };
        let way = Way { slots: slots.into(), entry };
        if let Some(&known) = self.way_index.get(&way) {
            return known;
        }
        let index = self.ways.len() as u32;
        self.ways.push(way.clone());
        self.way_index.insert(way, index);
        index
    }
}

/// A stretch of positions `low..high`, reached from the ranks at `high`.
struct Segment {
    low: usize,
    high: usize,
    /// None for the segment at the end of the text.
    seed: Option<Arc<[Cell]>>,
}

/// One text, passed from the right.
pub(super) struct Run<'a> {
    program: &'a Program,
    cache: &'a mut Cache,
    text: &'a [u8],
    segments: Vec<Segment>,
    /// The segment whose states are in the trail.
    current: usize,
}

impl<'a> Run<'a> {
    /// Passes the text and keeps what a walk needs. None when, in whole mode, the text cannot match.
    pub fn new(program: &'a Program, cache: &'a mut Cache, text: &'a [u8]) -> Option<Run<'a>> {
        cache.prepare(program);
        let mut run = Run { program, cache, text, segments: Vec::new(), current: 0 };
        let mut high = text.len() + 1;
        let mut seed = None;
        loop {
            let low = run.pass(high, seed.as_ref(), 0)?;
            let last = run.cache.trail.last().map(|&state| run.cache.states[state as usize].clone());
            run.segments.push(Segment { low, high, seed });
            if low == 0 {
                break;
            }
            seed = last;
            high = low;
            if run.cache.full(program) {
                run.cache.clear();
            }
        }
        run.current = run.segments.len() - 1;
        Some(run)
    }

    /// Fills the trail leftwards from `high` until `floor` or a limit, and says how far it got.
    fn pass(&mut self, high: usize, seed: Option<&Arc<[Cell]>>, floor: usize) -> Option<usize> {
        self.cache.trail.clear();
        let mut position = high;
        let mut state = match seed {
            Some(cells) => self.cache.intern(self.program, cells.clone()),
            None => {
                let state = self.cache.end_state(self.program);
                self.cache.trail.push(state);
                position -= 1;
                state
            }
        };
        while position > floor {
            if self.cache.mode == Mode::Whole && self.cache.dead[state as usize] {
                return None;
            }
            if self.cache.trail.len() >= SEGMENT_LIMIT
                || (self.cache.full(self.program) && !self.cache.trail.is_empty())
            {
                break;
            }
            position -= 1;
            state = self.cache.step(self.program, state, self.text[position]);
            self.cache.trail.push(state);
        }
        Some(position)
    }

    /// The state at a position.
    fn at(&mut self, position: usize) -> u32 {
        let Segment { low, high, .. } = self.segments[self.current];
        if position < low || position >= high {
            self.load(position);
        }
        self.cache.trail[self.segments[self.current].high - 1 - position]
    }

    /// Passes the segment of a position again.
    fn load(&mut self, position: usize) {
        // Segments run from the right: the first whose low end is not beyond the position holds it.
        let index = self.segments.partition_point(|segment| segment.low > position);
        let Segment { low, high, seed: ref cells } = self.segments[index];
        let seed = cells.clone();
        // The segment was made from an automaton no larger than the limit, so from an empty one it fits again.
        self.cache.clear();
        self.current = index;
        self.pass(high, seed.as_ref(), low);
    }

    fn matches(&mut self, position: usize, entry: u32) -> bool {
        let state = self.at(position);
        self.cache.states[state as usize][entry as usize].rank != 0
    }

    /// Follows the match from an entry known to match; gives its end.
    fn walk(&mut self, mut position: usize, mut entry: u32, slots: &mut [usize]) -> usize {
        slots.fill(usize::MAX);
        loop {
            let state = self.at(position);
            let way = &self.cache.ways[self.cache.states[state as usize][entry as usize].way as usize];
            for &slot in &way.slots {
                slots[slot as usize] = position;
            }
            if way.entry == NONE {
                return position;
            }
            entry = way.entry;
            position += 1;
        }
    }

    /// The match of the whole text, whole mode only.
    pub fn whole(&mut self, slots: &mut [usize]) -> bool {
        if !self.matches(0, self.program.starts.bol) {
            return false;
        }
        if self.program.groups > 1 {
            self.walk(0, self.program.starts.bol, slots);
        }
        slots[0] = 0;
        slots[1] = self.text.len();
        true
    }

    /// The first match that begins at `begin` or, unless `only_here`, after it. `^` holds at `begin` if `bol`.
    pub fn search(&mut self, begin: usize, bol: bool, only_here: bool, slots: &mut [usize]) -> bool {
        let starts = self.program.starts;
        let here = match (bol, only_here) {
            (true, false) => starts.bol,
            (false, false) => starts.inner,
            (true, true) => starts.bol_not_empty,
            (false, true) => starts.inner_not_empty,
        };
        let (start, entry) = if self.matches(begin, here) {
            (begin, here)
        } else if only_here {
            return false;
        } else {
            let Some(start) = self.next_start(begin + 1) else { return false };
            (start, starts.inner)
        };
        let end = self.walk(start, entry, slots);
        slots[0] = start;
        slots[1] = end;
        true
    }

    fn next_start(&mut self, from: usize) -> Option<usize> {
        let mut position = from;
        while position <= self.text.len() {
            self.at(position);
            let Segment { low: _, high, .. } = self.segments[self.current];
            let (trail, starts) = (&self.cache.trail, &self.cache.starts);
            let found = (position..high).find(|position| starts[trail[high - 1 - position] as usize]);
            match found {
                Some(position) => return Some(position),
                None => position = high,
            }
        }
        None
    }
}

/// Whether the whole text matches, nothing kept.
pub(super) fn is_whole(program: &Program, cache: &mut Cache, text: &[u8]) -> bool {
    cache.prepare(program);
    let mut state = cache.end_state(program);
    for &byte in text.iter().rev() {
        if cache.dead[state as usize] {
            return false;
        }
        state = cache.step(program, state, byte);
        if cache.full(program) {
            let cells = cache.states[state as usize].clone();
            cache.clear();
            state = cache.intern(program, cells);
        }
    }
    cache.states[state as usize][program.starts.bol as usize].rank != 0
}
