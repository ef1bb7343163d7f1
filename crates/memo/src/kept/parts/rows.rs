//! `Rows`: what of a trace the cells of a document rest on.

use super::super::trace::Trace;
use super::{Cell, Content};
use firn_value::{Label, Value};

/// Rows of nodes: what is needed of a [`Trace`].
#[derive(Debug, Default)]
pub struct Rows {
    /// By node: where its row ends.
    pub ends: Vec<u32>,
    /// The rows.
    pub rows: Vec<u32>,
    /// By node of a wall: its cell, plus one.
    pub walls: Vec<u32>,
}

impl Rows {
    /// What a node took.
    pub fn row(&self, node: u32) -> &[u32] {
        let at = node as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[from as usize..self.ends[at] as usize]
    }

    /// Finds the walls: nodes of scalar cells.
    pub(super) fn find_walls(&mut self, cells: &[Cell<Value>], fixed: u32) {
        self.walls = vec![0; self.ends.len()];
        for (at, cell) in cells.iter().enumerate() {
            let wall = &mut self.walls[cell.node as usize];
            if matches!(cell.content, Content::Scalar(_)) && cell.node >= fixed && *wall == 0 {
                *wall = at as u32 + 1;
            }
        }
    }

    /// Those rows that cells rest on; cells have the new numbers afterwards. `fixed` are the numbers of what has none.
    pub(super) fn needed(trace: &Trace, cells: &mut [Cell<Value>], fixed: &[Label]) -> Rows {
        let len = trace.len();
        let mut number = vec![0u32; len];
        let mut is_fixed = vec![false; len];
        for (to, &from) in fixed.iter().enumerate() {
            number[from as usize] = to as u32;
            is_fixed[from as usize] = true;
        }
        let (mut wall, mut needed) = (vec![false; len], vec![false; len]);
        for cell in cells.iter() {
            needed[cell.node as usize] = true;
            wall[cell.node as usize] |= matches!(cell.content, Content::Scalar(_));
        }
        for node in (0..len).rev().filter(|&node| !is_fixed[node]) {
            if needed[node] {
                trace.row(node as Label).iter().for_each(|&below| needed[below as usize] = true);
            }
        }
        let mut rows = Rows { ends: vec![0; fixed.len()], ..Rows::default() };
        let mut put = vec![0u32; len];
        for node in (0..len).filter(|&node| needed[node] && !is_fixed[node]) {
            let from = rows.rows.len();
            for &below in trace.row(node as Label) {
                let below = number[below as usize];
                if put[below as usize] != node as u32 {
                    put[below as usize] = node as u32;
                    rows.rows.push(below);
                }
            }
            if let ([only], false) = (&rows.rows[from..], wall[node]) {
                number[node] = *only;
                rows.rows.truncate(from);
                continue;
            }
            number[node] = rows.ends.len() as u32;
            rows.ends.push(rows.rows.len() as u32);
        }
        cells.iter_mut().for_each(|cell| cell.node = number[cell.node as usize]);
        rows.find_walls(cells, fixed.len() as u32);
        rows
    }
}
