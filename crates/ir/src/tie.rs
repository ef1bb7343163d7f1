//! Ties: what of a file's code depends on where the file lies, apart from positions: constants made of path literals and of sets
//! (whose shape says where they are written), and texts of code with paths in it. Lowering notes them, [`relocate`](crate::relocate) undoes them.

use crate::arena::{keep, keep_bytes, keep_each};
use crate::lower::Literals;
use crate::relocate::Place;
use crate::Shape;
use std::ops::Range;

/// What ties a constant to its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tie(u32);

impl Tie {
    /// Nothing: it is the same in every file.
    pub const NONE: Tie = Tie(0);
    /// The positions in its shape, and nothing else: a set of constants that are the same in every file.
    const SHAPE: Tie = Tie(u32::MAX);
    /// That it is this one: a list of constants that are the same in every file. Who prints values sees which lists are one.
    const LIST: Tie = Tie(u32::MAX - 1);
}

/// A constant and its tie.
pub(crate) type Tied<V> = (V, Tie);

/// How a tied constant is made.
#[derive(Debug)]
enum Made<V: 'static> {
    /// From a literal that starts from the file's directory.
    Path(&'static [u8]),
    List(&'static [Tied<V>]),
    Set(&'static Shape, &'static [Tied<V>]),
}

/// A text that shows paths: where they stand in it, and their literals.
#[derive(Debug)]
struct Showing {
    text: &'static [u8],
    paths: &'static [(Range<usize>, &'static [u8])],
}

/// One of many, and those noted before it.
#[derive(Debug)]
struct Link<T: 'static> {
    this: T,
    number: u32,
    before: Option<&'static Link<T>>,
}

/// The ties of code that was lowered at once.
// PERF: most code has none or one, so they are links, not a vector.
#[derive(Debug)]
pub(crate) struct Ties<V: 'static> {
    made: Option<&'static Link<Made<V>>>,
    texts: Option<&'static Link<Showing>>,
}

impl<V> Clone for Ties<V> {
    fn clone(&self) -> Ties<V> {
        *self
    }
}

impl<V> Copy for Ties<V> {}

impl<V> Default for Ties<V> {
    fn default() -> Ties<V> {
        Ties { made: None, texts: None }
    }
}

impl<T> Link<T> {
    /// One more; its number, from 1.
    fn add(last: &mut Option<&'static Link<T>>, this: T) -> u32 {
        let number = last.map_or(0, |last| last.number) + 1;
        *last = Some(keep(Link { this, number, before: *last }));
        number
    }

    /// All of them, the last one first.
    fn all(last: Option<&'static Link<T>>) -> impl Iterator<Item = &'static T> {
        std::iter::successors(last, |link| link.before).map(|link| &link.this)
    }
}

impl<V: Copy> Ties<V> {
    fn tie(&mut self, made: Made<V>) -> Tie {
        Tie(Link::add(&mut self.made, made))
    }

    /// A constant made from this literal.
    pub fn path(&mut self, literal: &[u8]) -> Tie {
        self.tie(Made::Path(keep_bytes(literal)))
    }

    /// A list of these constants; no ties are none of them tied.
    pub fn list(&mut self, values: &[V], ties: &[Tie]) -> Tie {
        match ties {
            [] if values.is_empty() => Tie::NONE,
            [] => Tie::LIST,
            _ => self.tie(Made::List(tied(values, ties))),
        }
    }

    /// A set of these constants; no ties are none of them tied.
    pub fn set(&mut self, shape: &'static Shape, values: &[V], ties: &[Tie]) -> Tie {
        match ties {
            [] if shape.is_empty() => Tie::NONE,
            [] => Tie::SHAPE,
            _ => self.tie(Made::Set(shape, tied(values, ties))),
        }
    }

    /// A text in which these paths stand.
    pub fn text(&mut self, text: &'static [u8], paths: Vec<(Range<usize>, &'static [u8])>) {
        if !paths.is_empty() {
            Link::add(&mut self.texts, Showing { text, paths: keep_each(paths.into_iter()) });
        }
    }
}

fn tied<V: Copy>(values: &[V], ties: &[Tie]) -> &'static [Tied<V>] {
    keep_each(values.iter().copied().zip(ties.iter().copied()))
}

/// Makes what is tied for another place.
pub(crate) struct Untied<'a, L: Literals> {
    /// The last one first.
    made: Vec<&'static Made<L::Value>>,
    texts: Option<&'static Link<Showing>>,
    place: &'static Place,
    literals: &'a mut L,
}

impl<'a, L: Literals> Untied<'a, L> {
    pub fn new(ties: Ties<L::Value>, place: &'static Place, literals: &'a mut L) -> Untied<'a, L> {
        Untied { made: Link::all(ties.made).collect(), texts: ties.texts, place, literals }
    }

    /// A constant.
    #[inline]
    pub fn constant(&mut self, value: L::Value, tie: Tie) -> L::Value {
        if tie == Tie::NONE { value } else { self.made_again(value, tie) }
    }

    fn made_again(&mut self, value: L::Value, tie: Tie) -> L::Value {
        if tie == Tie::SHAPE {
            return self.literals.reshaped(value, |shape| self.place.shape(shape));
        }
        if tie == Tie::LIST {
            return self.literals.list_again(value);
        }
        match self.made[self.made.len() - tie.0 as usize] {
            Made::Path(literal) => self.literals.path(&self.place.path(literal)),
            Made::List(items) => {
                let items = self.constants(items);
                self.literals.list(&items)
            }
            Made::Set(shape, values) => {
                let values = self.constants(values);
                self.literals.attrs(self.place.shape(shape), &values)
            }
        }
    }

    fn constants(&mut self, tied: &[Tied<L::Value>]) -> Vec<L::Value> {
        tied.iter().map(|&(value, tie)| self.constant(value, tie)).collect()
    }

    /// A text of code.
    pub fn text(&self, text: &'static [u8]) -> &'static [u8] {
        let Some(showing) = Link::all(self.texts).find(|known| std::ptr::eq(known.text, text)) else { return text };
        let mut moved = Vec::with_capacity(text.len());
        let mut done = 0;
        for (range, literal) in showing.paths {
            moved.extend_from_slice(&text[done..range.start]);
            moved.extend_from_slice(&self.place.path(literal));
            done = range.end;
        }
        moved.extend_from_slice(&text[done..]);
        keep_bytes(&moved)
    }
}
