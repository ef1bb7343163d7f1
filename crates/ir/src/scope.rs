//! Scopes while lowering: which binder a name means, and through which captures the running body reaches it.
//!
//! A *level* is a body under construction (a thunk's or function's code); levels nest. A binder is a slot of one
//! level. A name used at a deeper level is captured by every level in between, once each.

use crate::arena::keep_each;
use crate::expr::{InlineCache, Var, WithScope};
use firn_source::{Pos, Symbol};
use std::cell::RefCell;

/// A binder: a slot of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binder {
    pub level: u32,
    pub slot: u32,
}

#[derive(Debug, Default)]
struct Level {
    captures: Vec<(Binder, Var)>,
    next: u32,
    most: u32,
    depth: u32,
}

/// All scopes open at one point of the program.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    levels: Vec<Level>,
    /// For each symbol, by its number, one more than the index of its innermost binder; 0 if it has none.
    innermost: Vec<u32>,
    /// Binders in the order they were made, each with what `innermost` said before.
    bound: Vec<(Symbol, Binder, u32)>,
    withs: Vec<(Binder, Pos)>,
    /// Binders whose uses are counted, innermost last.
    watched: Vec<(Binder, u32)>,
    spare: Vec<Vec<(Binder, Var)>>,
    /// The captures of the body that was left last.
    last: &'static [Var],
}

thread_local! {
    /// Kept from one program to the next, all zeros.
    static INNERMOST: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

impl Scopes {
    /// No scopes yet.
    pub fn new() -> Scopes {
        Scopes { innermost: INNERMOST.take(), ..Scopes::default() }
    }

    /// Ends what [`Scopes::new`] began, all bodies left.
    pub fn finish(mut self) {
        self.unbind(self.bound.len());
        INNERMOST.set(self.innermost);
    }

    pub fn level(&self) -> u32 {
        self.levels.len() as u32 - 1
    }

    /// Begins a body.
    pub fn enter(&mut self) {
        let captures = self.spare.pop().unwrap_or_default();
        self.levels.push(Level { captures, ..Level::default() });
    }

    /// Begins a body whose captures are given: the first slots of the body around it, in order.
    pub fn enter_with_captures(&mut self, count: u32) {
        let level = self.level();
        self.enter();
        self.top().captures.extend((0..count).map(|slot| (Binder { level, slot }, Var::local(slot))));
    }

    /// Ends a body: its number of slots and where its creator finds the captures.
    // PERF: bodies are many and short: their lists of captures are used again instead of being allocated anew.
    pub fn leave(&mut self) -> (u32, &'static [Var]) {
        let mut level = self.levels.pop().expect("every leave has its enter");
        let vars = level.captures.iter().map(|&(_, var)| var);
        // Neighbours often capture the same.
        if !vars.clone().eq(self.last.iter().copied()) {
            self.last = keep_each(vars);
        }
        let captures = self.last;
        level.captures.clear();
        self.spare.push(level.captures);
        (level.most, captures)
    }

    fn top(&mut self) -> &mut Level {
        self.levels.last_mut().expect("lowering happens inside a body")
    }

    /// Reserves slots in the current body.
    pub fn slots(&mut self, count: u32) -> u32 {
        let level = self.top();
        let first = level.next;
        level.next += count;
        level.most = level.most.max(level.next);
        first
    }

    /// The next free slot; give it to `free_from` when the scope ends.
    pub fn mark(&mut self) -> u32 {
        self.top().next
    }

    /// Frees the slots from `mark` on.
    pub fn free_from(&mut self, mark: u32) {
        self.top().next = mark;
    }

    /// One expression deeper in the current body; true when the machine should look to its stack here.
    pub fn deeper(&mut self) -> bool {
        let level = self.top();
        level.depth += 1;
        level.depth.is_multiple_of(64)
    }

    /// Back from one expression.
    pub fn shallower(&mut self) {
        self.top().depth -= 1;
    }

    pub fn binder(&self, slot: u32) -> Binder {
        Binder { level: self.level(), slot }
    }

    /// Binds a name until `unbind`.
    pub fn bind(&mut self, name: Symbol, slot: u32) {
        let binder = self.binder(slot);
        let index = name.id() as usize;
        if index >= self.innermost.len() {
            self.innermost.resize(index + index / 2 + 1, 0);
        }
        self.bound.push((name, binder, self.innermost[index]));
        self.innermost[index] = self.bound.len() as u32;
    }

    /// Unbinds as many names as were bound last.
    pub fn unbind(&mut self, count: usize) {
        for _ in 0..count {
            let (name, _, before) = self.bound.pop().expect("a bound name is unbound once");
            self.innermost[name.id() as usize] = before;
        }
    }

    /// Opens a `with` scope held in a slot.
    pub fn open_with(&mut self, slot: u32, pos: Pos) {
        let binder = self.binder(slot);
        self.withs.push((binder, pos));
    }

    pub fn close_with(&mut self) {
        self.withs.pop();
    }

    /// How many names are bound and `with` scopes open now, for [`Scopes::close_to`].
    pub fn open(&self) -> (usize, usize) {
        (self.bound.len(), self.withs.len())
    }

    /// Unbinds and closes what came after, whatever way was left to do so.
    pub fn close_to(&mut self, (bound, withs): (usize, usize)) {
        self.unbind(self.bound.len() - bound);
        self.withs.truncate(withs);
    }

    /// Whether any `with` scope is open.
    pub fn has_with(&self) -> bool {
        !self.withs.is_empty()
    }

    /// The binder that a name means lexically.
    pub fn lookup(&self, name: Symbol) -> Option<Binder> {
        let index = self.innermost.get(name.id() as usize)?.checked_sub(1)?;
        self.bound.get(index as usize).map(|&(_, binder, _)| binder)
    }

    /// The enclosing `with` scopes, innermost first.
    pub fn with_scopes(&mut self) -> &'static [WithScope] {
        keep_each((0..self.withs.len()).rev().map(|i| {
            let (binder, pos) = self.withs[i];
            WithScope { var: self.reach(binder), pos, cache: InlineCache::default() }
        }))
    }

    /// Has the `with` scopes captured: the index and position of each, outermost first.
    pub fn captured_withs(&mut self, out: &mut Vec<(u32, Pos)>) {
        for i in 0..self.withs.len() {
            let (binder, pos) = self.withs[i];
            out.push((self.reach(binder).index(), pos));
        }
    }

    /// Counts the uses of a slot of the current body until `unwatch`.
    pub fn watch(&mut self, slot: u32) {
        let binder = self.binder(slot);
        self.watched.push((binder, 0));
    }

    /// Ends the last `watch`: how often the slot was used.
    pub fn unwatch(&mut self) -> u32 {
        self.watched.pop().expect("what is unwatched was watched").1
    }

    /// How the current body reaches a binder.
    pub fn reach(&mut self, binder: Binder) -> Var {
        self.watched.iter_mut().filter(|watched| watched.0 == binder).for_each(|watched| watched.1 += 1);
        let here = self.level();
        if binder.level == here {
            return Var::local(binder.slot);
        }
        let mut var = Var::local(binder.slot);
        for level in binder.level + 1..=here {
            let captures = &mut self.levels[level as usize].captures;
            let index = captures.iter().position(|&(b, _)| b == binder).unwrap_or_else(|| {
                captures.push((binder, var));
                captures.len() - 1
            });
            var = Var::capture(index as u32);
        }
        var
    }

    /// The index of a binder that becomes a capture of the current body just now; `None` if it is one already, or local.
    pub fn reach_new(&mut self, binder: Binder) -> Option<u32> {
        let before = self.top().captures.len();
        let var = self.reach(binder);
        (self.top().captures.len() > before).then_some(var.index())
    }
}
