//! Actions per state and terminal, as bison fills its tables.

use super::grammar::{Assoc, FIRST_NONTERMINAL, Grammar, Sym, precedence};
use super::lookahead::{Terminals, lookaheads};
use super::lr0::{State, states};
use crate::token::{Kind, TERMINALS};
use std::collections::BTreeMap;

/// What to do on a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Shift(u16),
    Reduce(u16),
    Error,
}

struct Row {
    /// Actions that differ from the default.
    explicit: BTreeMap<Sym, Action>,
    default: Action,
}

pub(super) struct Tables {
    rows: Vec<Row>,
    gotos: Vec<BTreeMap<Sym, u16>>,
    rules: Vec<(Sym, usize)>,
}

impl Tables {
    pub(super) fn build() -> Tables {
        let grammar = Grammar::read();
        let states = states(&grammar);
        debug_assert!(grammar.symbols <= Sym::MAX as usize);
        let lookaheads = lookaheads(&grammar, &states);
        let rows = states.iter().enumerate().map(|(i, state)| row(&grammar, state, i as u16, &lookaheads)).collect();
        let gotos = states.into_iter().map(|s| s.next).collect();
        let rules = grammar.rules.iter().map(|r| (r.left, r.right.len())).collect();
        Tables { rows, gotos, rules }
    }

    pub(super) fn action(&self, state: u16, kind: Kind) -> Action {
        let row = &self.rows[state as usize];
        row.explicit.get(&(kind as Sym)).copied().unwrap_or(row.default)
    }

    pub(super) fn goto(&self, state: u16, nonterminal: Sym) -> u16 {
        self.gotos[state as usize].get(&nonterminal).copied().unwrap_or(0)
    }

    pub(super) fn rule(&self, number: u16) -> (Sym, usize) {
        self.rules[number as usize]
    }

    /// The terminals that bison would name as expected: those with an action of their own.
    pub(super) fn expected(&self, state: u16) -> Vec<Kind> {
        let explicit = &self.rows[state as usize].explicit;
        let named = explicit.iter().filter(|&(&t, &a)| a != Action::Error && (t as usize) < TERMINALS);
        named.map(|(&t, _)| Kind::ALL[t as usize]).collect()
    }
}

fn members(set: Terminals) -> impl Iterator<Item = Sym> {
    (0..FIRST_NONTERMINAL).filter(move |&t| set >> t & 1 != 0)
}

fn row(grammar: &Grammar, state: &State, number: u16, lookaheads: &BTreeMap<(u16, u16), Terminals>) -> Row {
    let mut shifts: BTreeMap<Sym, u16> =
        state.next.iter().filter(|&(&s, _)| s < FIRST_NONTERMINAL).map(|(&s, &n)| (s, n)).collect();
    let mut explicit = BTreeMap::new();
    if state.complete.is_empty() || (state.complete.len() == 1 && shifts.is_empty()) {
        explicit.extend(shifts.into_iter().map(|(s, n)| (s, Action::Shift(n))));
        let default = state.complete.first().map_or(Action::Error, |&rule| Action::Reduce(rule));
        return Row { explicit, default };
    }
    let mut reductions: Vec<(u16, Terminals)> = Vec::new();
    let mut errors = Vec::new();
    for &rule in &state.complete {
        let mut tokens = lookaheads.get(&(number, rule)).copied().unwrap_or(0);
        let rank = grammar.rules[rule as usize].precedence;
        for terminal in members(tokens) {
            let (other, assoc) = precedence(terminal);
            if !shifts.contains_key(&terminal) || rank == 0 || other == 0 {
                continue;
            }
            let reduce = rank > other || (rank == other && assoc == Assoc::Left);
            let shift = rank < other || (rank == other && assoc == Assoc::Right);
            if !shift {
                shifts.remove(&terminal);
            }
            if !reduce {
                tokens &= !(1 << terminal);
            }
            if !shift && !reduce {
                errors.push(terminal);
            }
        }
        reductions.push((rule, tokens));
    }
    // The earlier rule wins a terminal that two could reduce on, and a shift wins over both.
    for &(rule, tokens) in reductions.iter().rev() {
        for terminal in members(tokens) {
            explicit.insert(terminal, Action::Reduce(rule));
        }
    }
    explicit.extend(shifts.into_iter().map(|(s, n)| (s, Action::Shift(n))));
    explicit.extend(errors.into_iter().map(|t| (t, Action::Error)));
    let mut default = Action::Error;
    let mut most = 0;
    for &(rule, _) in &reductions {
        let count = explicit.values().filter(|&&a| a == Action::Reduce(rule)).count();
        if count > most {
            most = count;
            default = Action::Reduce(rule);
        }
    }
    explicit.retain(|_, action| *action != default);
    Row { explicit, default }
}
