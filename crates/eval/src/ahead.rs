//! Evaluating ahead (`--cores`): while one thread evaluates as Nix would, others force what it will need soon.
//!
//! The leading thread offers cells that it is about to force one after another: the parts of a value that is printed, the
//! inputs of a derivation. Helpers take them from the far end and force them in [`Manner::Ahead`], in which only success
//! leaves a trace: a failed thunk is given back, nothing is printed, and in a circle of waits the helper gives way. So
//! values, errors and output are those of the leading thread alone; helpers only make it faster.

use crate::{Machine, Manner, Shared};
use firn_source::Pos;
use firn_value::{Result, Value};
use hashbrown::HashSet;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How far a cell will be looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Walk {
    /// All of it.
    Strict,
    /// As JSON: the output path of what has one, otherwise all.
    Json,
    /// As printed: the path of a derivation, otherwise all.
    Print,
    /// As part of a derivation's environment.
    Input,
    /// As something to instantiate.
    Package,
}

/// Work that a leading thread will come to.
enum Hint {
    Cell(Value, Walk),
    Task(Box<dyn FnOnce(&Machine) + Send>),
}

/// What has been offered and not taken.
#[derive(Default)]
pub struct Ahead {
    hints: Mutex<VecDeque<Hint>>,
    offered: Condvar,
    /// How many there are, to be asked without a lock.
    count: AtomicUsize,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ahead({})", self.count.load(Ordering::Relaxed))
    }
}

/// More than this many hints are not kept: those offered first are the largest.
const MOST: usize = 1 << 16;
/// Fewer cells are not worth a hint each.
const FEWEST: usize = 2;

impl Ahead {
    /// Starts `helpers` threads. The machine that leads gets what is returned as its [`Machine::ahead`].
    pub fn start(shared: &Arc<Shared>, helpers: usize, stack: usize) -> std::io::Result<Arc<Ahead>> {
        firn_value::single_threaded(false);
        let ahead = Arc::new(Ahead::default());
        for index in 0..helpers {
            let (own, shared) = (Arc::clone(&ahead), Arc::clone(shared));
            let thread = std::thread::Builder::new().name(format!("firn ahead {index}")).stack_size(stack);
            // Nobody waits for a helper: when the leading thread is done, so is the program.
            drop(thread.spawn(move || own.help(shared))?);
        }
        Ok(ahead)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Hint>> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers cells that will be forced in this order. The last is taken first: it is the farthest from the leading thread.
    pub fn offer(&self, cells: impl Iterator<Item = Value>, walk: Walk) {
        let holds = |value: Value| value.as_attrs().is_some() || value.as_list().is_some();
        let wanted = |cell: &Value| match cell.as_thunk() {
            Some(thunk) => thunk.forced().is_none_or(holds),
            None => holds(*cell),
        };
        let cells: Vec<Value> = cells.filter(wanted).collect();
        if cells.len() < FEWEST || self.count.load(Ordering::Relaxed) + cells.len() > MOST {
            return;
        }
        let mut hints = self.lock();
        hints.extend(cells.into_iter().rev().map(|cell| Hint::Cell(cell, walk)));
        self.count.store(hints.len(), Ordering::Relaxed);
        self.offered.notify_all();
    }

    /// Offers work that is more than forcing cells. What it returns or prints is nobody's concern.
    pub fn offer_task(&self, task: impl FnOnce(&Machine) + Send + 'static) {
        let mut hints = self.lock();
        hints.push_back(Hint::Task(Box::new(task)));
        self.count.store(hints.len(), Ordering::Relaxed);
        self.offered.notify_one();
    }

    /// Whether helpers have nothing to do.
    fn is_idle(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    fn help(self: Arc<Self>, shared: Arc<Shared>) {
        let mut machine = Machine::in_manner(shared, Manner::Ahead);
        machine.ahead = Some(Arc::clone(&self));
        let mut seen = HashSet::new();
        loop {
            let mut hints = self.lock();
            let hint = loop {
                match hints.pop_front() {
                    Some(hint) => break hint,
                    None => hints = self.offered.wait(hints).unwrap_or_else(PoisonError::into_inner),
                }
            };
            self.count.store(hints.len(), Ordering::Relaxed);
            drop(hints);
            match hint {
                // The leading thread will come to the same failure.
                Hint::Cell(cell, walk) => drop(machine.walk_ahead(cell, walk, &mut seen)),
                Hint::Task(task) => task(&machine),
            }
        }
    }
}

impl Machine {
    /// Offers cells that will be forced in this order to helpers, if there are any.
    #[inline]
    pub fn offer(&self, cells: impl Iterator<Item = Value>, walk: Walk) {
        if let Some(ahead) = &self.ahead {
            ahead.offer(cells, walk);
        }
    }

    /// Forces what the leading thread will force of a cell. Failures are left for it to find.
    pub fn go_ahead(&self, cell: Value, walk: Walk) {
        drop(self.walk_ahead(cell, walk, &mut HashSet::new()));
    }

    fn walk_ahead(&self, cell: Value, walk: Walk, seen: &mut HashSet<(u64, Walk)>) -> Result<()> {
        self.nested(Pos::NONE, || {
            let is_atom = cell.is_whnf() && cell.as_attrs().is_none() && cell.as_list().is_none();
            if is_atom || !seen.insert((cell.identity(), walk)) {
                return Ok(());
            }
            let value = self.force(cell, Pos::NONE)?;
            let names = self.names();
            if let Some(list) = value.as_list() {
                if walk != Walk::Package {
                    self.walk_parts(list.iter().collect(), walk, seen)?;
                }
                return Ok(());
            }
            let Some(set) = value.as_attrs() else { return Ok(()) };
            let next = match walk {
                Walk::Strict => None,
                Walk::Json | Walk::Input if set.has(names.to_string) => return Ok(()),
                Walk::Json | Walk::Input if set.has(names.out_path) => set.get(names.out_path),
                Walk::Input => return Ok(()),
                Walk::Print | Walk::Package if self.is_derivation(set)? => set.get(names.drv_path),
                Walk::Package => return Ok(()),
                Walk::Json | Walk::Print => None,
            };
            match next {
                Some(path) => self.force(path, Pos::NONE).map(drop),
                None => self.walk_parts(set.iter_by_name().map(|(_, _, cell)| cell).collect(), walk, seen),
            }
        })
    }

    fn walk_parts(&self, parts: Vec<Value>, walk: Walk, seen: &mut HashSet<(u64, Walk)>) -> Result<()> {
        if self.ahead.as_ref().is_some_and(|ahead| ahead.is_idle()) {
            self.offer(parts.iter().copied(), walk);
        }
        parts.into_iter().try_for_each(|part| self.walk_ahead(part, walk, seen))
    }
}
