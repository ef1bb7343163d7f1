//! `Parts`: what of one evaluation a later one may take, after an edit (decision 0022).
//!
//! A graph of *cells*, reached by name from where the file's last selection begins. A cell has what it came to: a scalar, or an object (a set
//! or a list) with cells of its own; and the *node* of its production, whose row says what that took, in order: leaves of texts, and other
//! productions. Production nodes of scalar cells are *walls*: who took one saw its value and nothing else. Rows hold smaller numbers only.

mod document;
mod rows;
mod walk;

pub use document::{CutText, DerivationHash, Parts};
pub use rows::Rows;

use super::trace::Trace;
use firn_value::{Label, Value};

/// What a cell came to.
#[derive(Clone, Copy, Debug)]
pub enum Content<S> {
    /// A scalar.
    Scalar(S),
    /// A set or a list, by number.
    Object(u32),
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub struct Cell<S> {
    /// The node of its production; 0 if it took nothing.
    pub node: u32,
    /// What it came to.
    pub content: Content<S>,
}

/// A name in a set, or a place in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A name, by number.
    Name(u32),
    /// A place.
    Place(u32),
}

/// Lists, one behind the other.
#[derive(Debug)]
pub struct Lists<T> {
    ends: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Lists<T> {
        Lists { ends: Vec::new(), items: Vec::new() }
    }
}

impl<T> Lists<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// One of them.
    pub fn row(&self, number: u32) -> &[T] {
        let at = number as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[from as usize..self.ends[at] as usize]
    }

    /// One more.
    fn push(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
        self.end();
    }

    /// An item of the list that is being made.
    fn add(&mut self, item: T) {
        self.items.push(item);
    }

    /// That list is complete.
    fn end(&mut self) {
        self.ends.push(self.items.len() as u32);
    }
}

/// What was evaluated, as far as it is reached by name.
#[derive(Debug, Default)]
pub struct Walked {
    /// The cells; the first is where it begins.
    pub cells: Vec<Cell<Value>>,
    /// The objects, each with its pieces.
    pub objects: Lists<u32>,
    /// Pieces of objects: cells under their names or at their places. Several objects may share one.
    pub pieces: Lists<(Step, u32)>,
    /// The names in them.
    pub names: Vec<Vec<u8>>,
}

/// What an evaluation learned, before anybody went through it. Any thread may.
pub struct Learned {
    /// What productions took.
    pub trace: Trace,
    /// The texts that were watched.
    pub texts: Vec<CutText>,
    /// Where names begin.
    pub root: Value,
    /// What that rests on.
    pub node: Label,
}

impl Learned {
    /// What a later evaluation may take of it.
    pub fn parts(self) -> Parts {
        Parts::new(&self.trace, self.texts, Walked::from(self.root, self.node))
    }
}
