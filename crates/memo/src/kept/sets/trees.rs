//! `Trees`: sets of numbers. A set is a number itself, equal sets are one number, and joining two costs what they differ in.
//!
//! A set is a tree, 512 numbers to a leaf and sixteen branches to a node; equal subtrees are one, and joins are remembered. Nearly all
//! sets are two levels of nodes above leaves; one that has larger numbers is a level taller.

use super::{ObservationId, SetId};
use hashbrown::HashTable;
use smallvec::SmallVec;

/// Branches of a node; words of a leaf.
const WIDTH: usize = 16;
/// Numbers in a leaf.
pub(super) const LEAF: u32 = 512;
/// Levels of nodes, the leaves among them.
const LEVELS: usize = 4;
/// The level that most sets are nodes of.
const USUAL: usize = LEVELS - 2;
/// Marks sets that are nodes of the level above.
const TALL: u32 = 1 << 31;
/// Labels that are no sets have this bit (`rows.rs`).
const MOST_SETS: u32 = 1 << 30;
/// A set that is not tall has only smaller numbers.
const LOW: u32 = LEAF * (WIDTH as u32).pow(USUAL as u32);
/// So many numbers can be told apart.
pub(super) const MOST: u32 = LOW * WIDTH as u32;
/// Joins that are remembered at each level below that, at the most and at first.
// PERF: four times as many are not met more often, and displace what evaluation works on.
const JOINS: usize = 1 << 14;
// PERF: places that are looked at before they are written cost two faults a page, of which the second stops the other processors.
const FIRST_JOINS: usize = 1 << 9;

/// The numbers of branches, 0 where there is nothing; or the bits of a leaf.
pub(super) type Node = [u32; WIDTH];

/// The nodes of one level, numbered from 1.
struct Level {
    nodes: Vec<Node>,
    /// By hash, which is kept with them.
    // PERF: a table that grows need not look at the nodes again, nor one that is searched at nodes of other hashes.
    numbers: HashTable<(u32, u32)>,
    /// As many as there are nodes, about.
    joins: Vec<[u32; 3]>,
}

// PERF: `==` on such arrays calls a function.
fn equal(one: &Node, other: &Node) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

fn hash(node: &Node) -> u32 {
    let words = node.chunks_exact(2).map(|pair| u64::from(pair[0]) << 32 | u64::from(pair[1]));
    (words.fold(0, |hash: u64, word| (hash.rotate_left(23) ^ word).wrapping_mul(MIX)) >> 32) as u32
}

/// The table looks at the first bits of a hash and at the last.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(MIX)
}

impl Level {
    fn new() -> Level {
        Level { nodes: vec![[0; WIDTH]], numbers: HashTable::new(), joins: vec![[0; 3]; FIRST_JOINS] }
    }

    fn intern(&mut self, node: Node) -> u32 {
        let Level { nodes, numbers, .. } = self;
        let hash = hash(&node);
        let is_it = |&(other, number): &(u32, u32)| other == hash && equal(&nodes[number as usize], &node);
        if let Some(&(_, number)) = numbers.find(spread(hash), is_it) {
            return number;
        }
        let number = u32::try_from(nodes.len()).ok().filter(|&number| number < MOST_SETS).expect("fewer than 2^30 sets");
        nodes.push(node);
        numbers.insert_unique(spread(hash), (hash, number), |&(hash, _)| spread(hash));
        number
    }

    fn joined(&self, a: u32, b: u32) -> Option<u32> {
        let [known_a, known_b, both] = self.joins[self.slot(a, b)];
        ((known_a, known_b) == (a, b)).then_some(both)
    }

    fn remember(&mut self, a: u32, b: u32, both: u32) {
        if self.nodes.len() > self.joins.len() && self.joins.len() < JOINS {
            let more = vec![[0; 3]; self.joins.len() * 4];
            let joins = std::mem::replace(&mut self.joins, more);
            joins.into_iter().filter(|join| *join != [0; 3]).for_each(|join| self.place(join));
        }
        self.place([a, b, both]);
    }

    fn place(&mut self, join: [u32; 3]) {
        let at = self.slot(join[0], join[1]);
        self.joins[at] = join;
    }

    fn slot(&self, a: u32, b: u32) -> usize {
        (u64::from(a) << 32 | u64::from(b)).wrapping_mul(MIX) as usize >> 40 & (self.joins.len() - 1)
    }
}

pub(super) struct Trees {
    levels: [Level; LEVELS],
}

impl Trees {
    pub(super) fn new() -> Trees {
        Trees { levels: std::array::from_fn(|_| Level::new()) }
    }

    /// How many different sets there are.
    pub(super) fn len(&self) -> usize {
        self.levels[USUAL].nodes.len() + self.levels[LEVELS - 1].nodes.len() - 1
    }

    /// The level and the number of the node that a set is.
    pub(super) fn root(set: SetId) -> (usize, u32) {
        if set.0 & TALL == 0 { (USUAL, set.0) } else { (LEVELS - 1, set.0 & !TALL) }
    }

    pub(super) fn node(&self, level: usize, number: u32) -> Node {
        self.levels[level].nodes[number as usize]
    }

    pub(super) fn only(&mut self, id: ObservationId) -> SetId {
        self.with(SetId::EMPTY, id)
    }

    /// The set of these, level by level from the leaves up.
    pub(super) fn of(&mut self, ids: &[ObservationId]) -> SetId {
        let mut bits: Vec<(u32, u32)> = ids.iter().map(|id| (id.0 / u32::BITS, 1 << (id.0 % u32::BITS))).collect();
        bits.sort_unstable_by_key(|(at, _)| *at);
        let words = bits.chunk_by(|(one, _), (other, _)| one == other);
        let mut below: Vec<(u32, u32)> = words.map(|word| (word[0].0, word.iter().fold(0, |all, (_, bit)| all | bit))).collect();
        for (number, level) in self.levels.iter_mut().enumerate() {
            if number > USUAL && below.iter().all(|(at, _)| *at == 0) {
                return SetId(below.first().map_or(0, |&(_, root)| root));
            }
            let nodes = below.chunk_by(|(one, _), (other, _)| one / WIDTH as u32 == other / WIDTH as u32).map(|branches| {
                let mut node = [0; WIDTH];
                branches.iter().for_each(|&(at, branch)| node[at as usize % WIDTH] = branch);
                (branches[0].0 / WIDTH as u32, level.intern(node))
            });
            below = nodes.collect();
        }
        SetId(below.first().map_or(0, |&(_, root)| root | TALL))
    }

    /// The set of these numbers and sets together.
    pub(super) fn join(&mut self, own: &[ObservationId], sets: &[SetId]) -> SetId {
        match (own, sets) {
            ([], [only]) => *only,
            // PERF: most rows have a number or two of their own.
            ([] | [_] | [_, _], [first, rest @ ..]) => {
                let set = own.iter().fold(*first, |set, &id| self.with(set, id));
                self.join_all(&mut [&[set], rest].concat())
            }
            (own, sets) => {
                let own = self.of(own);
                self.join_all(&mut [&[own], sets].concat())
            }
        }
    }

    fn join_all(&mut self, sets: &mut [SetId]) -> SetId {
        if sets.iter().all(|set| set.0 & TALL == 0) {
            let mut roots: Vec<u32> = sets.iter().map(|set| set.0).collect();
            return SetId(self.join_at(USUAL, &mut roots));
        }
        let mut roots: Vec<u32> = sets.iter().map(|&set| self.tall(set)).collect();
        SetId(self.join_at(LEVELS - 1, &mut roots) | TALL)
    }

    /// The union of any nodes.
    // PERF: branch by branch: joining two at a time makes as many sets as there are members, which nobody asks for.
    fn join_at(&mut self, level: usize, nodes: &mut [u32]) -> u32 {
        nodes.sort_unstable();
        let mut different: SmallVec<[u32; WIDTH]> = nodes.iter().copied().filter(|&node| node != 0).collect();
        different.dedup();
        match different[..] {
            [] => return 0,
            [only] => return only,
            [one, other] => return self.union_at(level, one, other),
            _ => {}
        }
        let mut all = [0; WIDTH];
        match level.checked_sub(1) {
            None => different.iter().for_each(|&node| all.iter_mut().zip(self.node(level, node)).for_each(|(all, word)| *all |= word)),
            Some(below) => {
                let branches: SmallVec<[Node; WIDTH]> = different.iter().map(|&node| self.node(level, node)).collect();
                for (at, branch) in all.iter_mut().enumerate() {
                    let mut nodes: SmallVec<[u32; WIDTH]> = branches.iter().map(|node| node[at]).collect();
                    *branch = self.join_at(below, &mut nodes);
                }
            }
        }
        self.levels[level].intern(all)
    }

    pub(super) fn union(&mut self, a: SetId, b: SetId) -> SetId {
        match (a, b) {
            _ if a == b => a,
            (SetId::EMPTY, set) | (set, SetId::EMPTY) => set,
            _ if (a.0 | b.0) & TALL == 0 => SetId(self.union_at(USUAL, a.0, b.0)),
            _ => {
                let [a, b] = [a, b].map(|set| self.tall(set));
                SetId(self.union_at(LEVELS - 1, a, b) | TALL)
            }
        }
    }

    /// The set and one number more.
    pub(super) fn with(&mut self, set: SetId, id: ObservationId) -> SetId {
        if self.contains(set, id) {
            return set;
        }
        match Trees::root(set) {
            (USUAL, node) if id.0 < LOW => SetId(self.with_at(USUAL, node, id.0)),
            _ => {
                let node = self.tall(set);
                SetId(self.with_at(LEVELS - 1, node, id.0) | TALL)
            }
        }
    }

    fn with_at(&mut self, level: usize, node: u32, id: u32) -> u32 {
        let mut branches = self.node(level, node);
        let at = (id / u32::BITS) as usize / WIDTH.pow(level as u32) % WIDTH;
        branches[at] = match level.checked_sub(1) {
            Some(below) => self.with_at(below, branches[at], id),
            None => branches[at] | 1 << (id % u32::BITS),
        };
        self.levels[level].intern(branches)
    }

    /// The number that a set has, or would have, at the level of tall ones.
    fn tall(&mut self, set: SetId) -> u32 {
        match Trees::root(set) {
            (USUAL, number) => {
                let mut node = [0; WIDTH];
                node[0] = number;
                self.levels[LEVELS - 1].intern(node)
            }
            (_, number) => number,
        }
    }

    /// The union of two different nodes, neither of them empty.
    fn union_at(&mut self, level: usize, a: u32, b: u32) -> u32 {
        let (a, b) = (a.min(b), a.max(b));
        if let Some(both) = self.levels[level].joined(a, b) {
            return both;
        }
        let (left, right) = (self.node(level, a), self.node(level, b));
        let both = match level.checked_sub(1) {
            None => std::array::from_fn(|i| left[i] | right[i]),
            // PERF: most branches are the same, or one is empty: no call for those.
            Some(below) => std::array::from_fn(|i| match (left[i], right[i]) {
                (one, other) if one == other => one,
                (one, 0) | (0, one) => one,
                (one, other) => self.union_at(below, one, other),
            }),
        };
        // PERF: nearly always one contains the other.
        let both = match both {
            both if equal(&both, &left) => a,
            both if equal(&both, &right) => b,
            both => self.levels[level].intern(both),
        };
        self.levels[level].remember(a, b, both);
        both
    }

    pub(super) fn contains(&self, set: SetId, id: ObservationId) -> bool {
        let (top, mut node) = Trees::root(set);
        if top == USUAL && id.0 >= LOW {
            return false;
        }
        for level in (1..=top).rev() {
            node = self.node(level, node)[(id.0 / LEAF) as usize / WIDTH.pow(level as u32 - 1) % WIDTH];
        }
        let word = self.node(0, node)[(id.0 / u32::BITS) as usize % WIDTH];
        word >> (id.0 % u32::BITS) & 1 != 0
    }

    pub(super) fn ids(&self, set: SetId) -> Vec<ObservationId> {
        self.beyond(set, SetId::EMPTY)
    }

    /// What is in a set and not in another.
    pub(super) fn beyond(&self, set: SetId, other: SetId) -> Vec<ObservationId> {
        let mut ids = Vec::new();
        match (Trees::root(set), Trees::root(other)) {
            ((top, node), (other_top, other)) if top == other_top => self.collect(top, node, other, 0, &mut ids),
            // What is tall begins with what may be in one that is not.
            ((USUAL, node), (tall, other)) => self.collect(USUAL, node, self.node(tall, other)[0], 0, &mut ids),
            ((tall, node), (_, other)) => {
                for (at, branch) in (0..).zip(self.node(tall, node)) {
                    self.collect(USUAL, branch, if at == 0 { other } else { 0 }, at, &mut ids);
                }
            }
        }
        ids
    }

    fn collect(&self, level: usize, node: u32, other: u32, from: u32, ids: &mut Vec<ObservationId>) {
        if node == other {
            return;
        }
        let branches = self.node(level, node).into_iter().zip(self.node(level, other));
        for (at, (branch, other)) in (from * WIDTH as u32..).zip(branches) {
            match level.checked_sub(1) {
                _ if branch == 0 || branch == other => {}
                Some(below) => self.collect(below, branch, other, at, ids),
                None => {
                    let mut bits = branch & !other;
                    while bits != 0 {
                        ids.push(ObservationId(at * u32::BITS + bits.trailing_zeros()));
                        bits &= bits - 1;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Numbers near each other, far apart, and on both sides of where sets become tall.
    fn numbers() -> impl Strategy<Value = BTreeSet<u32>> {
        let number = prop_oneof![0..LEAF * 3, 0..LOW, LOW - 600..LOW + 600, 0..MOST];
        proptest::collection::btree_set(number, 0..60)
    }

    fn ids(numbers: &BTreeSet<u32>) -> Vec<ObservationId> {
        numbers.iter().copied().map(ObservationId).collect()
    }

    proptest! {
        #[test]
        fn sets_are_the_sets_of_their_numbers(one in numbers(), other in numbers()) {
            let mut trees = Trees::new();
            let (a, b) = (trees.of(&ids(&one)), trees.of(&ids(&other)));
            let all: BTreeSet<u32> = one.union(&other).copied().collect();
            let both = trees.union(a, b);
            prop_assert_eq!(trees.ids(both), ids(&all));
            prop_assert_eq!(trees.beyond(a, b), ids(&one.difference(&other).copied().collect()));
            prop_assert_eq!(trees.beyond(both, b), ids(&one.difference(&other).copied().collect()));
            // Equal sets are one, however they were made.
            prop_assert_eq!(trees.of(&ids(&all)), both);
            prop_assert_eq!(trees.union(b, a), both);
            prop_assert_eq!(trees.union(both, a), both);
            let parts: Vec<SetId> = ids(&all).chunks(7).map(|part| trees.of(part)).chain([SetId::EMPTY, a]).collect();
            prop_assert_eq!(trees.join(&[], &parts), both);
            prop_assert_eq!(trees.join(&ids(&one)[..one.len().min(2)], &[b, a]), both);
            prop_assert_eq!(trees.join(&ids(&one), &[b, SetId::EMPTY, b]), both);
            let grown = one.iter().fold(b, |set, &number| trees.with(set, ObservationId(number)));
            prop_assert_eq!(grown, both);
            for number in one.iter().chain(&other).copied().chain([0, LOW - 1, LOW, MOST - 1]) {
                prop_assert_eq!(trees.contains(a, ObservationId(number)), one.contains(&number), "{}", number);
            }
        }
    }
}
