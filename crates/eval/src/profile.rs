//! Where evaluation spends its time: which function called which, how often, and for how long.
//!
//! A machine with a profiler takes the careful way into every function and builtin (see `stack.rs`: its stack always counts
//! as low), so that one without pays nothing. The profiler keeps a tree of calls. Exact ones read the clock at every
//! entry and exit; sampled ones look, there, whether a thread with a clock has asked them to note where they are.

use firn_source::Pos;
use firn_value::{Lambda, Primop};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a profiler does at each entry and exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// Counts only (`NIX_COUNT_CALLS`).
    Count,
    /// Reads the clock.
    Exact,
    /// Notes where it is about every so often.
    Sampled(Duration),
}

/// Something that is called.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    /// A function of the program.
    Lambda(&'static Lambda),
    /// A builtin.
    Primop(&'static Primop),
}

impl Callee {
    fn address(self) -> usize {
        match self {
            Callee::Lambda(lambda) => std::ptr::from_ref(lambda).addr(),
            Callee::Primop(primop) => std::ptr::from_ref(primop).addr(),
        }
    }
}

/// What one callee cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Who.
    pub callee: Callee,
    /// How often it was called.
    pub calls: u64,
    /// Nanoseconds (or samples) in itself.
    pub own: u64,
    /// Nanoseconds (or samples) in itself and all that it called; recursion is counted once.
    pub total: u64,
}

/// A place in the tree of calls.
#[derive(Debug)]
pub struct Node {
    /// Index into [`Tree::costs`]; the root has none.
    pub callee: Option<usize>,
    /// The caller's place; the root is its own.
    pub parent: usize,
    /// Nanoseconds (or samples) here, without what is called from here.
    pub own: u64,
}

/// All calls.
#[derive(Debug, Default)]
pub struct Tree {
    /// Places; the first is the root.
    pub nodes: Vec<Node>,
    /// Callees.
    pub costs: Vec<Cost>,
    children: HashMap<(u32, u32), u32>,
    indices: HashMap<usize, usize>,
    /// Places entered and not left, with the callee's index.
    stack: Vec<(u32, u32)>,
    /// How often each callee is on the stack, and since when.
    active: Vec<(u32, u64)>,
    last: u64,
}

/// More places than this are not told apart: what would be a new one counts for its caller.
const MOST_NODES: usize = 1 << 22;

/// A profiler of one machine.
#[derive(Debug)]
pub struct Profiler {
    grain: Grain,
    start: Instant,
    /// Set by the clock of a sampled profiler.
    due: Arc<AtomicBool>,
    tree: RefCell<Tree>,
    /// Entries and exits are printed (`--trace-function-calls`).
    pub(crate) traces: bool,
}

impl Profiler {
    /// A profiler. `traces` prints each entry and exit besides.
    pub fn new(grain: Grain, traces: bool) -> Profiler {
        let due = Arc::new(AtomicBool::new(false));
        if let Grain::Sampled(every) = grain {
            let due = Arc::downgrade(&due);
            // The clock stops when nobody looks at it any more.
            std::thread::spawn(move || {
                while let Some(due) = due.upgrade() {
                    due.store(true, Ordering::Relaxed);
                    drop(due);
                    std::thread::sleep(every);
                }
            });
        }
        let mut tree = Tree::default();
        tree.nodes.push(Node { callee: None, parent: 0, own: 0 });
        Profiler { grain, start: Instant::now(), due, tree: RefCell::new(tree), traces }
    }

    /// What it does.
    pub fn grain(&self) -> Grain {
        self.grain
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn advance(&self, tree: &mut Tree) {
        match self.grain {
            Grain::Count => {}
            Grain::Exact => {
                let now = self.now();
                let spent = now - tree.last;
                tree.spend(spent);
                tree.last = now;
            }
            Grain::Sampled(_) => {
                if self.due.swap(false, Ordering::Relaxed) {
                    tree.spend(1);
                    tree.last += 1;
                }
            }
        }
    }

    pub(crate) fn enter(&self, callee: Callee) {
        let mut tree = self.tree.borrow_mut();
        self.advance(&mut tree);
        tree.enter(callee);
    }

    pub(crate) fn leave(&self) {
        let mut tree = self.tree.borrow_mut();
        self.advance(&mut tree);
        tree.leave();
    }

    /// What was found so far.
    pub fn take(&self) -> Tree {
        let mut tree = self.tree.take();
        self.advance(&mut tree);
        while !tree.stack.is_empty() {
            tree.leave();
        }
        tree
    }
}

impl Tree {
    fn here(&self) -> u32 {
        self.stack.last().map_or(0, |(node, _)| *node)
    }

    fn spend(&mut self, amount: u64) {
        let here = self.here() as usize;
        self.nodes[here].own += amount;
        if let Some(callee) = self.nodes[here].callee {
            self.costs[callee].own += amount;
        }
    }

    fn enter(&mut self, callee: Callee) {
        let known = self.indices.entry(callee.address()).or_insert(self.costs.len());
        let index = *known;
        if index == self.costs.len() {
            self.costs.push(Cost { callee, calls: 0, own: 0, total: 0 });
            self.active.push((0, 0));
        }
        self.costs[index].calls += 1;
        let (depth, since) = &mut self.active[index];
        if *depth == 0 {
            *since = self.last;
        }
        *depth += 1;
        let here = self.here();
        let next = match self.children.get(&(here, index as u32)) {
            Some(&next) => next,
            None if self.nodes.len() >= MOST_NODES => here,
            None => {
                let next = self.nodes.len() as u32;
                self.nodes.push(Node { callee: Some(index), parent: here as usize, own: 0 });
                self.children.insert((here, index as u32), next);
                next
            }
        };
        self.stack.push((next, index as u32));
    }

    fn leave(&mut self) {
        let Some((_, index)) = self.stack.pop() else { return };
        let (depth, since) = &mut self.active[index as usize];
        *depth -= 1;
        if *depth == 0 {
            self.costs[index as usize].total += self.last - *since;
        }
    }
}

/// The name and the place of a callee, as reports show them.
pub fn describe(callee: Callee) -> (String, Option<String>) {
    match callee {
        Callee::Primop(primop) => (format!("builtins.{}", primop.name), None),
        Callee::Lambda(lambda) => {
            let name = lambda.name.map_or_else(|| "anonymous lambda".to_owned(), |name| name.to_str().into_owned());
            let pos: Pos = lambda.pos_at(0);
            (name, pos.resolve().map(|at| crate::show_location(&at)))
        }
    }
}

/// Nanoseconds since 1970, for lines that only people and profilers read.
#[allow(clippy::disallowed_methods, reason = "nothing is evaluated by it")]
pub(crate) fn timestamp() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}
