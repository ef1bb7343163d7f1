//! Code made when it first runs: the values of large sets.
//!
//! A list of packages is read as a whole and used in small part. When such a file is lowered, only the free names of
//! each value are looked up ([`touch`]), which gives its captures, and the error if a name has no meaning. The code
//! itself is made from the tree, which is kept for that, by whoever first runs the value.

mod touch;

use super::closed::closed;
use super::{Literals, Lowered, Lowering};
use crate::arena::{keep, keep_each};
use crate::expr::{Body, Expr, Suspend};
use crate::lower::Globals;
use crate::relocate::{self, Place};
use crate::scope::Scopes;
use crate::tie::Ties;
use firn_source::{Pos, Symbol};
use firn_syntax::ast::{self, Ast, ExprId};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A body that is lowered when it first runs.
pub struct Lazy<V: 'static> {
    code: OnceLock<&'static Made<V>>,
    make: fn(&Lazy<V>) -> Made<V>,
    from: Source<V>,
}

/// What a body is made from.
enum Source<V: 'static> {
    Tree { ast: Arc<Ast>, needs: &'static Needs<V>, id: ExprId },
    /// The same body of a file with the same text.
    Twin { lazy: &'static Lazy<V>, place: &'static Place },
}

/// A body that is made.
struct Made<V: 'static> {
    body: Body<V>,
    ties: Ties<V>,
}

/// What the code of a lazy body refers to.
pub(super) struct Needs<V: 'static> {
    /// Captured variables with the index of each.
    names: &'static [(Symbol, u32)],
    /// Captured `with` scopes, outermost first, with the index of each.
    withs: &'static [(u32, Pos)],
    globals: &'static [(Symbol, V)],
    captures: u32,
}

impl<V> Lazy<V> {
    /// Whether the code is made.
    pub fn is_lowered(&self) -> bool {
        self.code.get().is_some()
    }

    /// The code, for a frame with the same captures.
    pub fn body(&self) -> &'static Body<V> {
        &self.made().body
    }

    fn made(&self) -> &'static Made<V> {
        self.code.get_or_init(|| keep(stacker::maybe_grow(128 << 10, 4 << 20, || (self.make)(self))))
    }

    /// The same for another file with the same text.
    pub(crate) fn at(&'static self, place: &'static Place) -> Lazy<V> {
        Lazy { code: OnceLock::new(), make: self.make, from: Source::Twin { lazy: self, place } }
    }
}

impl<V: fmt::Debug> fmt::Debug for Lazy<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").field("body", &self.code.get().map(|made| &made.body)).finish_non_exhaustive()
    }
}

impl<V: Copy> Globals<V> for Needs<V> {
    fn global(&self, name: Symbol) -> Option<V> {
        self.globals.iter().find(|(global, _)| *global == name).map(|(_, value)| *value)
    }
}

/// The names that [`touch`] meets.
pub(super) struct Found<V: 'static> {
    names: Vec<(Symbol, u32)>,
    globals: Vec<(Symbol, V)>,
    withs: Vec<(u32, Pos)>,
    /// Something is looked up in them.
    dynamic: bool,
    last: Option<&'static Needs<V>>,
}

impl<V> Default for Found<V> {
    fn default() -> Found<V> {
        Found { names: Vec::new(), globals: Vec::new(), withs: Vec::new(), dynamic: false, last: None }
    }
}

impl<V: Copy> Found<V> {
    /// What was found, for good. Neighbours in a list of packages often need the same.
    fn keep(&mut self, captures: u32) -> &'static Needs<V> {
        let same = |known: &&'static Needs<V>| {
            let globals = self.globals.iter().map(|(name, _)| name);
            known.captures == captures
                && known.names == self.names
                && known.withs == self.withs
                && known.globals.iter().map(|(name, _)| name).eq(globals)
        };
        if let Some(known) = self.last.filter(same) {
            return known;
        }
        let needs: &'static Needs<V> = keep(Needs {
            names: keep_each(self.names.drain(..)),
            withs: keep_each(self.withs.drain(..)),
            globals: keep_each(self.globals.drain(..)),
            captures,
        });
        self.last = Some(needs);
        needs
    }
}

impl<L: Literals> Lowering<'_, L> {
    /// Whether a value among many is worth putting off: anything larger than a variable or literal.
    pub(super) fn is_worth_delaying(&self, id: ExprId) -> bool {
        use ast::Expr::{Assert, Attrs, Call, Concat, If, Let, With};
        matches!(
            self.ast.expr(id),
            Assert { .. } | Attrs(_) | Call { .. } | Concat { .. } | If { .. } | Let { .. } | With { .. }
        )
    }

    /// A body of its own for later, not yet lowered.
    pub(super) fn lazy(&mut self, id: ExprId) -> Lowered<L::Value> {
        let pos = self.ast.pos_of(id);
        let mark = self.scopes.open();
        self.found.names.clear();
        self.found.globals.clear();
        self.found.withs.clear();
        self.found.dynamic = false;
        self.scopes.enter();
        let touched = stacker::maybe_grow(128 << 10, 4 << 20, || self.touch(id));
        self.scopes.close_to(mark);
        if self.found.dynamic {
            self.scopes.captured_withs(&mut self.found.withs);
        }
        let (_, captures) = self.scopes.leave();
        if touched.is_err() {
            // The error is that of lowering, which may come to another undefined name first.
            return self.suspend(pos, |this| this.strict_node(id));
        }
        let needs = self.found.keep(captures.len() as u32);
        let from = Source::Tree { ast: self.ast.clone(), needs, id };
        let lazy = Lazy { code: OnceLock::new(), make: make_now::<L>, from };
        let body = Body { expr: Expr::Lazy(keep(lazy)), locals: 0, captures, pos, now: None };
        Ok(Expr::Suspend(keep(Suspend { body })))
    }
}

fn make_now<L: Literals>(lazy: &Lazy<L::Value>) -> Made<L::Value> {
    match lazy.from {
        Source::Tree { ref ast, needs, id } => lower_now::<L>(ast, needs, id),
        Source::Twin { lazy, place } => {
            let Made { body, ties } = lazy.made();
            Made { body: relocate::copy::<L>(body, *ties, place), ties: Ties::default() }
        }
    }
}

/// Lowers the body as it would have been in its place: with the same captures.
fn lower_now<L: Literals>(ast: &Arc<Ast>, needs: &Needs<L::Value>, id: ExprId) -> Made<L::Value> {
    let mut scopes = Scopes::new();
    // The creator, as far as it is seen from inside: a slot for each capture.
    scopes.enter();
    needs.names.iter().for_each(|&(name, index)| scopes.bind(name, index));
    needs.withs.iter().for_each(|&(index, pos)| scopes.open_with(index, pos));
    scopes.enter_with_captures(needs.captures);
    let mut literals = L::default();
    let mut lowering = Lowering::new(ast, needs, &mut literals, scopes);
    let expr = lowering.strict_node(id).expect("every name was found when the file was loaded");
    let (locals, captures) = lowering.scopes.leave();
    // The machine relies on it.
    assert_eq!(captures.len(), needs.captures as usize, "lowering captures what touching found");
    lowering.scopes.leave();
    lowering.scopes.finish();
    let ties = lowering.ties;
    let pos = ast.pos_of(id);
    let body = match expr {
        Expr::Const(..) => Body { expr, locals, captures, pos, now: None },
        _ => closed(expr, locals, captures, pos),
    };
    Made { body, ties }
}
