//! LALR(1) lookahead: which terminals may follow a complete rule in a state (DeRemer and Pennello's relations, solved
//! by iteration because the grammar is small).

use super::grammar::{FIRST_NONTERMINAL, Grammar, Sym};
use super::lr0::State;
use std::collections::BTreeMap;

/// A set of terminals.
pub(super) type Terminals = u64;

/// The lookahead of each complete rule, by state and rule.
pub(super) fn lookaheads(grammar: &Grammar, states: &[State]) -> BTreeMap<(u16, u16), Terminals> {
    let mut number: BTreeMap<(u16, Sym), usize> = BTreeMap::new();
    for (state, s) in states.iter().enumerate() {
        for &symbol in s.next.keys().filter(|&&s| s >= FIRST_NONTERMINAL) {
            let next = number.len();
            number.insert((state as u16, symbol), next);
        }
    }
    let mut follow = vec![0; number.len()];
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let mut lookback: Vec<((u16, u16), usize)> = Vec::new();
    for (&(state, symbol), &transition) in &number {
        let target = &states[states[state as usize].next[&symbol] as usize];
        for (&next, _) in &target.next {
            if next < FIRST_NONTERMINAL {
                follow[transition] |= 1 << next;
            } else if grammar.nullable[next as usize] {
                let target_number = states[state as usize].next[&symbol];
                edges.push((transition, number[&(target_number, next)]));
            }
        }
        for (rule_number, rule) in grammar.rules.iter().enumerate().filter(|(_, r)| r.left == symbol) {
            let mut at = state;
            for (i, &part) in rule.right.iter().enumerate() {
                if part >= FIRST_NONTERMINAL && rule.right[i + 1..].iter().all(|&s| grammar.nullable[s as usize]) {
                    edges.push((number[&(at, part)], transition));
                }
                at = states[at as usize].next[&part];
            }
            lookback.push(((at, rule_number as u16), transition));
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for &(to, from) in &edges {
            let joined = follow[to] | follow[from];
            changed |= joined != follow[to];
            follow[to] = joined;
        }
    }
    let mut result = BTreeMap::new();
    for (key, transition) in lookback {
        *result.entry(key).or_insert(0) |= follow[transition];
    }
    result
}
