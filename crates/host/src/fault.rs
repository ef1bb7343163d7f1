//! `Faulty`: a world that fails on demand, for tests of what evaluation and memory do when the outside misbehaves.
//!
//! Faults are armed per path and operation, for good or for a number of times; edits can be made to happen between two
//! questions, which is how a file that changes during evaluation is played.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::world::{Home, ListFault, ReadFault, World};
use crate::{AbsPath, Entry, Errno, FileContent, Stat};

/// The operations that can be made to fail.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Asking for the type.
    Stat,
    /// Opening a file.
    Open,
    /// Reading an open file.
    Read,
    /// Ending a file early.
    Truncate,
    /// Opening a directory.
    OpenDirectory,
    /// Listing an open directory.
    List,
    /// Reading a link.
    Link,
}

type Hook = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Plan {
    faults: HashMap<(AbsPath, Operation), (Errno, usize)>,
    before: Vec<(AbsPath, Operation, Hook)>,
    asked: Vec<(AbsPath, Operation)>,
}

/// A world with faults in it. It also keeps the list of what it was asked: what reached the disk.
pub struct Faulty<W> {
    world: W,
    plan: Mutex<Plan>,
}

impl<W: World> Faulty<W> {
    /// No fault is armed.
    pub fn new(world: W) -> Faulty<W> {
        Faulty { world, plan: Mutex::default() }
    }

    /// The world behind.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// Makes the next `times` such operations on the path fail.
    pub fn arm(&self, path: &AbsPath, operation: Operation, errno: Errno, times: usize) {
        self.plan().faults.insert((path.clone(), operation), (errno, times));
    }

    /// Runs `hook` once, just before the next such operation on the path.
    pub fn before(&self, path: &AbsPath, operation: Operation, hook: impl FnOnce() + Send + 'static) {
        self.plan().before.push((path.clone(), operation, Box::new(hook)));
    }

    /// What was asked so far, in order.
    pub fn asked(&self) -> Vec<(AbsPath, Operation)> {
        self.plan().asked.clone()
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_hooks(&self, path: &AbsPath, operation: Operation) {
        let mut plan = self.plan();
        let (due, later) = std::mem::take(&mut plan.before).into_iter().partition(|(p, o, _)| p == path && *o == operation);
        plan.before = later;
        drop(plan);
        let due: Vec<(AbsPath, Operation, Hook)> = due;
        due.into_iter().for_each(|(_, _, hook)| hook());
    }

    fn fault(&self, path: &AbsPath, operation: Operation) -> Result<(), Errno> {
        self.run_hooks(path, operation);
        let mut plan = self.plan();
        plan.asked.push((path.clone(), operation));
        match plan.faults.get_mut(&(path.clone(), operation)) {
            Some((errno, times)) if *times > 0 => {
                *times -= 1;
                Err(*errno)
            }
            _ => Ok(()),
        }
    }
}

impl<W: World> World for Faulty<W> {
    fn stat(&self, path: &AbsPath) -> Result<Option<Stat>, Errno> {
        self.fault(path, Operation::Stat)?;
        self.world.stat(path)
    }

    fn read(&self, path: &AbsPath) -> Result<FileContent, ReadFault> {
        self.fault(path, Operation::Open).map_err(ReadFault::Open)?;
        self.fault(path, Operation::Read).map_err(ReadFault::Read)?;
        self.fault(path, Operation::Truncate).map_err(|_| ReadFault::Short)?;
        self.world.read(path)
    }

    fn list(&self, path: &AbsPath) -> Result<Vec<Entry>, ListFault> {
        self.fault(path, Operation::OpenDirectory).map_err(ListFault::Open)?;
        self.fault(path, Operation::List).map_err(ListFault::Read)?;
        self.world.list(path)
    }

    fn link(&self, path: &AbsPath) -> Result<Vec<u8>, Errno> {
        self.fault(path, Operation::Link)?;
        self.world.link(path)
    }

    fn env(&self, name: &[u8]) -> Option<Vec<u8>> {
        self.world.env(name)
    }

    fn now(&self) -> i64 {
        self.world.now()
    }

    fn home(&self) -> Home {
        self.world.home()
    }

    fn current_dir(&self) -> Result<Vec<u8>, Errno> {
        self.world.current_dir()
    }
}
