//! The states of the automaton, without lookahead.

use super::grammar::{FIRST_NONTERMINAL, Grammar, Sym};
use std::collections::{BTreeMap, BTreeSet};

/// A rule and how much of it was read.
pub(super) type Item = (u16, u8);

pub(super) struct State {
    /// Where each symbol leads.
    pub next: BTreeMap<Sym, u16>,
    /// Rules that are complete here, in grammar order.
    pub complete: Vec<u16>,
}

pub(super) fn states(grammar: &Grammar) -> Vec<State> {
    let mut kernels: Vec<BTreeSet<Item>> = vec![BTreeSet::from([(0, 0)])];
    let mut numbers: BTreeMap<BTreeSet<Item>, u16> = BTreeMap::from([(kernels[0].clone(), 0)]);
    let mut states = Vec::new();
    while states.len() < kernels.len() {
        let items = closure(grammar, &kernels[states.len()]);
        let mut moves: BTreeMap<Sym, BTreeSet<Item>> = BTreeMap::new();
        let mut complete = Vec::new();
        for (rule, dot) in items {
            match grammar.rules[rule as usize].right.get(dot as usize) {
                Some(&symbol) => {
                    moves.entry(symbol).or_default().insert((rule, dot + 1));
                }
                None => complete.push(rule),
            }
        }
        let mut next = BTreeMap::new();
        for (symbol, kernel) in moves {
            let number = *numbers.entry(kernel.clone()).or_insert_with(|| {
                kernels.push(kernel);
                kernels.len() as u16 - 1
            });
            next.insert(symbol, number);
        }
        states.push(State { next, complete });
    }
    states
}

/// The items of a state: its kernel and the beginnings of every rule that may start there.
fn closure(grammar: &Grammar, kernel: &BTreeSet<Item>) -> BTreeSet<Item> {
    let mut items = kernel.clone();
    let mut work: Vec<Item> = kernel.iter().copied().collect();
    while let Some((rule, dot)) = work.pop() {
        let Some(&symbol) = grammar.rules[rule as usize].right.get(dot as usize) else { continue };
        if symbol < FIRST_NONTERMINAL {
            continue;
        }
        for (number, candidate) in grammar.rules.iter().enumerate() {
            if candidate.left == symbol && items.insert((number as u16, 0)) {
                work.push((number as u16, 0));
            }
        }
    }
    items
}
