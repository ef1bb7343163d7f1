//! Goes through what is evaluated, by name. Called when an evaluation that was traced has ended.

use super::super::labels::is_scalar;
use super::{Cell, Content, Step, Walked};
use firn_source::Symbol;
use firn_value::{Attrs, Label, ThunkState, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

struct Walk {
    walked: Walked,
    /// Cells by identity.
    known: FxHashMap<u64, u32>,
    /// Objects by identity.
    objects: FxHashMap<u64, u32>,
    /// Names by symbol.
    names: FxHashMap<Symbol, u32>,
    todo: Vec<(u32, Value)>,
    /// Cells of sets that others are laid over, by identity, in symbol order.
    // PERF: a NixOS has a hundred sets of packages that share most of their cells, nearly all of them unevaluated: with each set gone through
    // by itself 2.4 million cells were looked at to keep 107,000.
    below: FxHashMap<u64, Rc<[Found]>>,
}

/// A cell that is evaluated and of use, under its name.
type Found = (Symbol, Evaluated);

/// A cell, what it came to, and the node of its production.
#[derive(Clone, Copy)]
struct Evaluated {
    cell: Value,
    value: Value,
    node: Label,
}

impl Evaluated {
    fn of(cell: Value) -> Option<Evaluated> {
        let (value, node) = match cell.as_thunk() {
            None if is_scalar(cell) => return None,
            None => (cell, 0),
            Some(thunk) => match thunk.state() {
                ThunkState::Forced(value) => (value, 0),
                ThunkState::Labelled(value, label) => (value, label),
                _ => return None,
            },
        };
        Some(Evaluated { cell, value, node })
    }
}

impl Walked {
    /// Goes through what is evaluated from a value on. Nothing is forced, and nothing counts as looked at.
    pub fn from(root: Value, node: Label) -> Walked {
        let mut walk = Walk { walked: Walked::default(), known: FxHashMap::default(), objects: FxHashMap::default(), names: FxHashMap::default(), todo: Vec::new(), below: FxHashMap::default() };
        if let Some(content) = walk.content(root) {
            walk.walked.cells.push(Cell { node, content });
        }
        while let Some((object, value)) = walk.todo.pop() {
            let mut cells = Vec::new();
            if let Some(set) = value.as_attrs() {
                for (name, cell) in walk.set(set.unguarded()) {
                    cells.extend(walk.cell(cell).map(|cell| (Step::Name(walk.name(name)), cell)));
                }
            } else if let Some(list) = value.as_list() {
                for (place, cell) in list.unguarded().iter().enumerate() {
                    let cell = Evaluated::of(cell).and_then(|cell| walk.cell(cell));
                    cells.extend(cell.map(|cell| (Step::Place(place as u32), cell)));
                }
            }
            walk.walked.objects[object as usize] = cells;
        }
        walk.walked
    }
}

impl Walk {
    /// The cells of a set, in symbol order.
    fn set(&mut self, set: Attrs) -> Vec<Found> {
        let Some((upper, lower)) = set.layered() else {
            return set.iter().filter_map(|(name, _, cell)| Some((name, Evaluated::of(cell)?))).collect();
        };
        let mut found = self.set(upper);
        let known = self.below.get(&lower.value().identity()).cloned();
        let below = known.unwrap_or_else(|| {
            let below: Rc<[Found]> = self.set(lower).into();
            self.below.insert(lower.value().identity(), below.clone());
            below
        });
        found.extend(below.iter().filter(|(name, _)| !upper.has(*name)));
        found.sort_unstable_by_key(|(name, _)| *name);
        found
    }

    fn name(&mut self, name: Symbol) -> u32 {
        *self.names.entry(name).or_insert_with(|| {
            self.walked.names.push(name.as_bytes().to_vec());
            self.walked.names.len() as u32 - 1
        })
    }

    /// The number of a cell that is of use.
    fn cell(&mut self, Evaluated { cell, value, node }: Evaluated) -> Option<u32> {
        if let Some(&known) = self.known.get(&cell.identity()) {
            return Some(known);
        }
        let content = self.content(value)?;
        let number = self.walked.cells.len() as u32;
        self.walked.cells.push(Cell { node, content });
        self.known.insert(cell.identity(), number);
        Some(number)
    }

    fn content(&mut self, value: Value) -> Option<Content<Value>> {
        if is_scalar(value) {
            return Some(Content::Scalar(value));
        }
        if value.as_attrs().is_none_or(|set| set.unguarded().is_empty()) && value.as_list().is_none_or(|list| list.unguarded().is_empty()) {
            return None;
        }
        let number = *self.objects.entry(value.identity()).or_insert_with(|| {
            let number = self.walked.objects.len() as u32;
            self.walked.objects.push(Vec::new());
            self.todo.push((number, value));
            number
        });
        Some(Content::Object(number))
    }
}

