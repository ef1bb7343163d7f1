//! Cycles of steps that consume nothing: loops around bodies that may match the empty string.

use super::nfa::{Id, Kind, NONE, Nfa};

/// For each state the number of its cycle, [`NONE`] for states on no cycle. (Tarjan's algorithm, its stack on the heap.)
pub(super) fn cycles(nfa: &Nfa) -> Vec<u32> {
    let size = nfa.states.len();
    let mut search = Search {
        nfa,
        order: vec![NONE; size],
        low: vec![0; size],
        on_path: vec![false; size],
        path: Vec::new(),
        cycle: vec![NONE; size],
        seen: 0,
    };
    for state in 0..size as Id {
        if search.order[state as usize] == NONE {
            search.from(state);
        }
    }
    search.cycle
}

struct Search<'a> {
    nfa: &'a Nfa,
    order: Vec<u32>,
    low: Vec<u32>,
    on_path: Vec<bool>,
    path: Vec<Id>,
    cycle: Vec<u32>,
    seen: u32,
}

impl Search<'_> {
    fn links(&self, state: Id) -> [Id; 2] {
        let state = self.nfa.states[state as usize];
        match state.kind {
            Kind::Set(_) | Kind::Accept | Kind::Joint => [NONE, NONE],
            _ => [state.alt, state.next],
        }
    }

    fn enter(&mut self, state: Id) {
        self.order[state as usize] = self.seen;
        self.low[state as usize] = self.seen;
        self.seen += 1;
        self.on_path[state as usize] = true;
        self.path.push(state);
    }

    fn from(&mut self, root: Id) {
        let mut calls = vec![(root, 0)];
        self.enter(root);
        while let Some((state, link)) = calls.last_mut() {
            let (state, at) = (*state as usize, *link);
            if at == 2 {
                calls.pop();
                if let Some(&(parent, _)) = calls.last() {
                    self.low[parent as usize] = self.low[parent as usize].min(self.low[state]);
                }
                if self.low[state] == self.order[state] {
                    self.leave(state as Id);
                }
                continue;
            }
            *link += 1;
            let next = self.links(state as Id)[at];
            if next == NONE {
                continue;
            }
            if self.order[next as usize] == NONE {
                self.enter(next);
                calls.push((next, 0));
            } else if self.on_path[next as usize] {
                self.low[state] = self.low[state].min(self.order[next as usize]);
            }
        }
    }

    /// Takes one strongly connected component off the path.
    fn leave(&mut self, root: Id) {
        let single = self.path.last() == Some(&root) && !self.links(root).contains(&root);
        while let Some(state) = self.path.pop() {
            self.on_path[state as usize] = false;
            self.cycle[state as usize] = if single { NONE } else { root };
            if state == root {
                break;
            }
        }
    }
}
