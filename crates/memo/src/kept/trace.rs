//! `Trace`: what each production took, in order, so that it can be told later what a value rests on and in which order it was asked for
//! (decision 0022).
//!
//! 1. A label is the number of a node: a leaf of a text that is watched, or a production with the row of nodes that it took. Whatever a
//!    production took was produced before, so a node's row holds smaller numbers only.
//! 2. The rows of running productions lie on one stack, each above that of the production around it; the running production's label is where
//!    its row begins, plus one, and 0 while the row is empty. [`close`] makes a node of a row and takes it off.
//! 3. What a row has already is not put there again, if nobody has put it elsewhere meanwhile: of each node the place is known where it was put
//!    last. What is kept of a trace has each once.
//!
//! Only one thread evaluates while this goes on, and everything else that is observed is [gathered](super::labels::gather).

use firn_host::AbsPath;
use firn_value::{Label, Production};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

static TRACES: AtomicBool = AtomicBool::new(false);

thread_local! {
    static TRACE: RefCell<Trace> = RefCell::default();
}

/// What productions took.
#[derive(Debug, Default)]
pub struct Trace {
    stack: Vec<Label>,
    /// By node: where on the stack it was put last.
    last: Vec<u32>,
    /// By node: where its row ends in `rows`; it begins where that of the node before ends.
    ends: Vec<u32>,
    rows: Vec<Label>,
    /// Texts that are watched, by real path.
    texts: FxHashMap<AbsPath, Text>,
    /// Paths of texts of which somebody saw where things stand.
    seen: Vec<AbsPath>,
    /// There were more nodes than can be told apart, or nobody wants them any more.
    is_full: bool,
}

/// A text that is watched.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// The node of its first leaf.
    pub first: Label,
    /// How many leaves it has.
    pub leaves: u32,
    /// The node of where things stand in it.
    pub places: Label,
}

/// What something printed rests on: nobody takes it.
pub const PRINTED: Label = 1;

/// More nodes, or longer rows, are not kept.
const MOST: usize = 1 << 25;

impl Trace {
    /// How many nodes there are, with the one that stands for nothing.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// What a node took, in order.
    pub fn row(&self, node: Label) -> &[Label] {
        let at = node as usize;
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[from as usize..self.ends[at] as usize]
    }

    /// A text that was watched.
    pub fn text(&self, path: &AbsPath) -> Option<Text> {
        self.texts.get(path).copied()
    }

    /// Whether all of it is there.
    pub fn is_whole(&self) -> bool {
        !self.is_full
    }

    fn add(&mut self, row: impl FnOnce(&mut Vec<Label>)) -> Label {
        self.is_full |= self.ends.len() >= MOST || self.rows.len() >= 8 * MOST;
        if self.is_full {
            return PRINTED;
        }
        row(&mut self.rows);
        self.ends.push(self.rows.len() as u32);
        self.last.push(u32::MAX);
        self.ends.len() as Label - 1
    }

    fn take(&mut self, node: Label) {
        if self.is_full {
            return;
        }
        let (own, top) = (Production::current().label(), self.stack.len() as u32);
        let start = match own.checked_sub(1) {
            Some(start) => start,
            None => {
                Production::set_label(top + 1);
                top
            }
        };
        let Some(last) = self.last.get_mut(node as usize) else { return };
        let at = *last;
        if at >= start && at < top && self.stack[at as usize] == node {
            return;
        }
        *last = top;
        self.stack.push(node);
    }

    fn close(&mut self, start: u32, is_scalar: bool) -> Label {
        let from = start as usize;
        let node = match self.stack[from..] {
            // What does nothing but take another rests on what that rests on; a scalar may be the same after that has changed.
            [only] if !is_scalar => only,
            _ => {
                let row = std::mem::take(&mut self.stack);
                let node = self.add(|rows| rows.extend_from_slice(&row[from..]));
                self.stack = row;
                node
            }
        };
        self.stack.truncate(from);
        node
    }
}

/// From now on productions of this thread are traced.
pub fn begin() {
    TRACE.with_borrow_mut(|trace| {
        *trace = Trace::default();
        // Nothing, and what is printed.
        trace.add(|_| ());
        trace.add(|_| ());
    });
    TRACES.store(true, Ordering::SeqCst);
}

/// Ends it; what was traced.
pub fn end() -> Trace {
    TRACES.store(false, Ordering::SeqCst);
    TRACE.take()
}

/// What was traced so far will not be asked for, nor what comes.
pub fn give_up() {
    TRACE.with_borrow_mut(|trace| {
        trace.is_full = true;
        trace.rows = Vec::new();
        trace.last = Vec::new();
    });
}

/// Whether productions are traced.
#[inline]
pub fn is_on() -> bool {
    TRACES.load(Ordering::Relaxed)
}

/// A text at a real path is watched, with so many leaves; the number that they are counted from. None if it is watched already.
pub fn watch(path: &AbsPath, leaves: u32) -> Option<Label> {
    TRACE.with_borrow_mut(|trace| {
        if trace.texts.contains_key(path) {
            return None;
        }
        let places = trace.add(|_| ());
        let first = trace.ends.len() as Label;
        (0..leaves).for_each(|_| _ = trace.add(|_| ()));
        trace.texts.insert(path.clone(), Text { first, leaves, places });
        Some(first)
    })
}

/// The running production sees where something stands in a text. False if that is not watched.
pub fn see_places(path: &AbsPath) -> bool {
    let places = TRACE.with_borrow_mut(|trace| {
        let places = trace.texts.get(path)?.places;
        trace.seen.push(path.clone());
        Some(places)
    });
    places.into_iter().for_each(take);
    places.is_some()
}

/// Texts of which somebody saw where things stand.
pub fn seen_texts() -> Vec<AbsPath> {
    TRACE.with_borrow(|trace| trace.seen.clone())
}

/// The running production takes what a node stands for.
pub fn take(node: Label) {
    TRACE.with_borrow_mut(|trace| trace.take(node));
}

/// What the running production rests on so far.
pub fn so_far() -> Label {
    let Some(start) = Production::current().label().checked_sub(1) else { return 0 };
    TRACE.with_borrow_mut(|trace| {
        let row = trace.stack[start as usize..].to_vec();
        trace.add(|rows| rows.extend(row))
    })
}

/// What a production that has ended rests on, by its label; `is_scalar` if it gave something that is seen as a whole.
pub fn close(label: Label, is_scalar: bool) -> Label {
    match label.checked_sub(1) {
        None => 0,
        Some(start) => TRACE.with_borrow_mut(|trace| trace.close(start, is_scalar)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::labels;

    #[test]
    fn productions_have_what_they_took_in_order_and_once() {
        begin();
        let path = AbsPath::new(b"/trace/text").expect("no NUL");
        let first = watch(&path, 3).expect("it is not watched yet");
        assert_eq!(watch(&path, 3), None);
        let [a, b, c] = [first, first + 1, first + 2];
        let ((one, two, alone), whole) = labels::apart(|| {
            let ((), one) = labels::within(|| [b, a, b].into_iter().for_each(labels::take));
            let ((), two) = labels::within(|| [a, one, c, a, one].into_iter().for_each(labels::take));
            // What takes one thing rests on what that rests on.
            let ((), alone) = labels::apart(|| labels::take(two));
            labels::take(c);
            (one, two, alone)
        });
        // A scalar may stay the same when that changes.
        let outer = labels::begin();
        labels::take(two);
        let scalar = labels::settled(Production::end(outer), Some(firn_value::Value::int(1)));
        let ((), nothing) = labels::apart(|| ());
        let trace = end();
        assert_eq!(trace.row(one), [b, a]);
        assert_eq!(trace.row(two), [a, one, c]);
        assert_eq!(alone, two);
        assert_eq!(trace.row(whole), [one, two, c]);
        assert_eq!(trace.row(scalar), [two]);
        assert_eq!(nothing, 0);
        assert!(trace.is_whole() && trace.stack.is_empty());
    }
}
