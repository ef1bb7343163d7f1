//! Goes through what is evaluated, by name. Called when an evaluation that was traced has ended.
//!
//! 1. Objects are gone through in the order in which they were met, so that what has a short name is found under it.
//! 2. Sets are gone through layer by layer. What a layer has that none above it hides is a piece, and sets that have it in common share it.
//! 3. Of a derivation only what [pays](Evaluated::pays_in_derivation) is kept.
//! 4. Objects below which there is no scalar are left out.

use super::super::labels::is_scalar;
use super::{Cell, Content, Lists, Step, Walked};
use firn_ir::Shape;
use firn_source::Symbol;
use firn_value::{Attrs, Label, Slot, Value};
use rustc_hash::FxHashMap;
use std::rc::Rc;

#[derive(Default)]
struct Walk {
    cells: Vec<Cell<Value>>,
    /// Cells by identity.
    known: FxHashMap<u64, u32>,
    /// Objects, in the order in which they were met.
    met: Vec<Value>,
    /// Their numbers, by identity.
    numbers: FxHashMap<u64, u32>,
    /// Of the objects that were gone through, their pieces.
    objects: Lists<u32>,
    /// Cells of a list, or of a layer of a set.
    pieces: Lists<(Place, u32)>,
    /// Layers by identity.
    // PERF: a NixOS has a hundred sets of packages that share most of their cells, nearly all of them unevaluated, and each output of a derivation
    // is laid over what all its outputs have.
    layers: FxHashMap<u64, Known>,
    /// The names `drvPath` and `drvAttrs`, if anybody has named them.
    derivation: [Option<Symbol>; 2],
    /// Room for the layers of a set, and for what is evaluated in one.
    todo: Vec<Attrs>,
    room: Vec<Layer>,
    found: Vec<(usize, Evaluated)>,
}

/// A layer of a set: a set without layers.
struct Layer {
    identity: u64,
    shape: &'static Shape,
    slots: &'static [Slot],
}

/// What is known of a layer.
enum Known {
    /// The piece that all of it is.
    Whole(u32),
    /// What is evaluated in it, some of which was hidden so far.
    Found(Rc<[(Place, Evaluated)]>),
}

/// Where a cell stands in its object.
#[derive(Clone, Copy)]
enum Place {
    Name(Symbol),
    At(u32),
}

/// A cell, what it came to, and the node of its production.
#[derive(Clone, Copy)]
struct Evaluated {
    cell: Value,
    value: Value,
    node: Label,
}

/// As many cells, and objects, as a NixOS has.
const MANY: usize = 50_000;
/// So many ahead is fetched: cells, and objects.
const AHEAD: usize = 12;
/// Sets of fewer names are copied rather than laid over, so that they are met once.
const SHARED_FROM: usize = 24;

impl Evaluated {
    #[inline(always)]
    fn of(cell: Value) -> Option<Evaluated> {
        let (value, node) = match cell.as_thunk() {
            None if is_object(cell) => (cell, 0),
            None => return None,
            Some(thunk) => thunk.evaluated()?,
        };
        Some(Evaluated { cell, value, node })
    }

    /// Whether it pays to know it of a derivation. What a derivation is made of is asked for to make it, and who takes its path does not make it;
    /// its large sets are its outputs and sets of packages.
    // PERF: first edits of a host make 2 of a thousand calls more for it, and going through a NixOS takes 22 ms instead of 39. Without sets of packages
    // it takes 9, but edits make a fifth more calls.
    fn pays_in_derivation(&self) -> bool {
        match self.value.as_attrs() {
            Some(set) => set.unguarded().len() >= SHARED_FROM,
            None => is_scalar(self.value) && (self.node != 0 || self.value.as_str().is_some_and(|string| !string.context().is_empty())),
        }
    }
}

impl Walked {
    /// Goes through what is evaluated from a value on. Nothing is forced, and nothing counts as looked at.
    pub fn from(root: Value, node: Label) -> Walked {
        // PERF: who finds so much only once has no need to make room again and again.
        let mut walk = Walk {
            derivation: [Symbol::find(b"drvPath"), Symbol::find(b"drvAttrs")],
            cells: Vec::with_capacity(MANY),
            known: FxHashMap::with_capacity_and_hasher(MANY, Default::default()),
            met: Vec::with_capacity(MANY),
            numbers: FxHashMap::with_capacity_and_hasher(MANY, Default::default()),
            ..Walk::default()
        };
        if let Some(content) = walk.content(root) {
            walk.cells.push(Cell { node, content });
        }
        while let Some(&value) = walk.met.get(walk.objects.len()) {
            if let Some(ahead) = walk.met.get(walk.objects.len() + AHEAD) {
                ahead.fetch_ahead();
            }
            if let Some(set) = value.as_attrs() {
                walk.set(set.unguarded());
            } else if let Some(list) = value.as_list() {
                let mut found = std::mem::take(&mut walk.found);
                evaluated(list.unguarded().slots(), &mut found);
                let piece = walk.piece(found.iter().map(|&(at, cell)| (Place::At(at as u32), cell)));
                walk.found = found;
                walk.objects.add(piece);
            }
            walk.objects.end();
        }
        walk.finish()
    }
}

/// Whether a value is a set or a list.
fn is_object(value: Value) -> bool {
    value.as_attrs().is_some() || value.as_list().is_some()
}

/// Those that are evaluated, and where.
// PERF: of a million places of a NixOS nine in ten hold nothing of use; a loop that does nothing else takes 16 instructions for one, iterators 80.
fn evaluated(slots: &'static [Slot], found: &mut Vec<(usize, Evaluated)>) {
    found.clear();
    slots.iter().take(AHEAD).for_each(|slot| slot.get().fetch_ahead());
    let last = slots.len().saturating_sub(1);
    for (at, slot) in slots.iter().enumerate() {
        slots[(at + AHEAD).min(last)].get().fetch_ahead();
        if let Some(cell) = Evaluated::of(slot.get()) {
            found.push((at, cell));
        }
    }
}

impl Walk {
    fn set(&mut self, set: Attrs) {
        // PERF: who goes through a set looks for room only once.
        let (mut todo, mut layers) = (std::mem::take(&mut self.todo), std::mem::take(&mut self.room));
        todo.push(set);
        while let Some(set) = todo.pop() {
            match set.layered() {
                Some((upper, lower)) => todo.extend([lower, upper]),
                None => {
                    let (shape, slots) = set.flat();
                    layers.push(Layer { identity: set.value().identity(), shape, slots });
                }
            }
        }
        let [drv_path, _] = self.derivation;
        let is_derivation = drv_path.is_some_and(|name| layers.iter().any(|layer| layer.shape.index(name).is_some()));
        for (at, layer) in layers.iter().enumerate() {
            let piece = self.layer(layer, &layers[..at], is_derivation);
            self.objects.add(piece);
        }
        layers.clear();
        (self.todo, self.room) = (todo, layers);
    }

    /// The piece of a layer: what those above it do not hide.
    fn layer(&mut self, layer: &Layer, above: &[Layer], is_derivation: bool) -> u32 {
        let is_hidden = |place: Place| matches!(place, Place::Name(name) if above.iter().any(|layer| layer.shape.index(name).is_some()));
        let is_large = layer.slots.len() >= SHARED_FROM;
        let known: Option<Rc<[_]>> = match is_large.then(|| self.layers.get(&layer.identity)).flatten() {
            Some(Known::Whole(whole)) => return self.left_of(*whole, is_hidden),
            Some(Known::Found(found)) => Some(found.clone()),
            None => None,
        };
        let mut found = std::mem::take(&mut self.found);
        let piece = match &known {
            Some(known) => self.piece(known.iter().copied().filter(|&(place, _)| !is_hidden(place))),
            None => {
                evaluated(layer.slots, &mut found);
                let (names, [_, made_of]) = (layer.shape.names(), self.derivation);
                found.retain(|&(at, cell)| !is_derivation || Some(names[at]) != made_of && cell.pays_in_derivation());
                self.piece(found.iter().map(|&(at, cell)| (Place::Name(names[at]), cell)).filter(|&(place, _)| !is_hidden(place)))
            }
        };
        if is_large {
            let places = |found: &[(usize, Evaluated)]| found.iter().map(|&(at, cell)| (Place::Name(layer.shape.names()[at]), cell)).collect();
            let found = known.unwrap_or_else(|| places(&found));
            let is_whole = !found.iter().any(|&(place, _)| is_hidden(place));
            self.layers.insert(layer.identity, if is_whole { Known::Whole(piece) } else { Known::Found(found) });
        }
        self.found = found;
        piece
    }

    /// What of a piece is not hidden.
    fn left_of(&mut self, whole: u32, is_hidden: impl Fn(Place) -> bool) -> u32 {
        let members = self.pieces.row(whole);
        if !members.iter().any(|&(place, _)| is_hidden(place)) {
            return whole;
        }
        let left: Vec<_> = members.iter().copied().filter(|&(place, _)| !is_hidden(place)).collect();
        self.pieces.push(left);
        self.pieces.len() as u32 - 1
    }

    fn piece(&mut self, cells: impl Iterator<Item = (Place, Evaluated)>) -> u32 {
        for (place, cell) in cells {
            if let Some(number) = self.number(cell) {
                self.pieces.add((place, number));
            }
        }
        self.pieces.end();
        self.pieces.len() as u32 - 1
    }

    /// The number of a cell, if it is of use.
    fn number(&mut self, Evaluated { cell, value, node }: Evaluated) -> Option<u32> {
        if let Some(&known) = self.known.get(&cell.identity()) {
            return Some(known);
        }
        let content = self.content(value)?;
        let number = self.cells.len() as u32;
        self.cells.push(Cell { node, content });
        self.known.insert(cell.identity(), number);
        Some(number)
    }

    fn content(&mut self, value: Value) -> Option<Content<Value>> {
        if is_scalar(value) {
            return Some(Content::Scalar(value));
        }
        // PERF: what it is says the word itself; what is in it is asked when it has been fetched.
        if !is_object(value) {
            return None;
        }
        let number = *self.numbers.entry(value.identity()).or_insert_with(|| {
            self.met.push(value);
            self.met.len() as u32 - 1
        });
        Some(Content::Object(number))
    }

    /// What is of use, numbered anew.
    fn finish(self) -> Walked {
        let has_use = |is_of_use: &[bool], object: u32| {
            let mut members = self.objects.row(object).iter().flat_map(|&piece| self.pieces.row(piece));
            members.any(|&(_, cell)| match self.cells[cell as usize].content {
                Content::Scalar(_) => true,
                // What was met before is of use as far as anybody knows.
                Content::Object(below) => below <= object || is_of_use[below as usize],
            })
        };
        let mut is_of_use = vec![false; self.objects.len()];
        for object in (0..self.objects.len()).rev() {
            is_of_use[object] = has_use(&is_of_use, object as u32);
        }
        let objects = Renumbered::new(&is_of_use);
        let content = |content| match content {
            Content::Object(object) => objects.get(object).map(Content::Object),
            scalar => Some(scalar),
        };
        let mut walked = Walked::default();
        let of_use: Vec<bool> = self.cells.iter().map(|cell| content(cell.content).is_some()).collect();
        walked.cells.extend(self.cells.iter().filter_map(|cell| Some(Cell { node: cell.node, content: content(cell.content)? })));
        let cells = Renumbered::new(&of_use);
        let mut is_needed = vec![false; self.pieces.len()];
        let has_members = |piece: u32| self.pieces.row(piece).iter().any(|&(_, cell)| cells.get(cell).is_some());
        for object in (0..self.objects.len() as u32).filter(|&object| objects.get(object).is_some()) {
            self.objects.row(object).iter().for_each(|&piece| is_needed[piece as usize] |= has_members(piece));
        }
        let pieces = Renumbered::new(&is_needed);
        for object in (0..self.objects.len() as u32).filter(|&object| objects.get(object).is_some()) {
            walked.objects.push(self.objects.row(object).iter().filter_map(|&piece| pieces.get(piece)));
        }
        let mut names: FxHashMap<Symbol, u32> = FxHashMap::default();
        for piece in (0..self.pieces.len() as u32).filter(|&piece| pieces.get(piece).is_some()) {
            let members = self.pieces.row(piece).iter().filter_map(|&(place, cell)| Some((place, cells.get(cell)?)));
            walked.pieces.push(members.map(|(place, cell)| match place {
                Place::At(place) => (Step::Place(place), cell),
                Place::Name(name) => {
                    let number = *names.entry(name).or_insert_with(|| {
                        walked.names.push(name.as_bytes().to_vec());
                        walked.names.len() as u32 - 1
                    });
                    (Step::Name(number), cell)
                }
            }));
        }
        walked
    }
}

/// New numbers for those that stay.
struct Renumbered(Vec<u32>);

impl Renumbered {
    fn new(stays: &[bool]) -> Renumbered {
        let mut next = 0;
        let number = |&stays: &bool| {
            if !stays {
                return u32::MAX;
            }
            next += 1;
            next - 1
        };
        Renumbered(stays.iter().map(number).collect())
    }

    fn get(&self, number: u32) -> Option<u32> {
        Some(self.0[number as usize]).filter(|&number| number != u32::MAX)
    }
}
