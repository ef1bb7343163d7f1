//! The machine's state: what all threads share, and what one thread has.

use crate::{Names, Settings, Stats};
use firn_host::Host;
use firn_ir::Globals;
use firn_source::{Location, Pos, Symbol, SymbolMap};
use firn_store::store_dir::StoreDir;
use firn_memo::Memo;
use firn_value::{Label, Primop, Result, Stamp, Thunk, Value};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex};

/// The code of a builtin: machine, position of the call, exactly `arity` cells.
pub type PrimopFn = fn(&Machine, Pos, &[Value]) -> Result<Value>;

/// A row of the table of builtins.
#[derive(Clone, Copy)]
pub struct Builtin {
    /// Name as in `builtins.name`.
    pub name: &'static str,
    /// Number of arguments.
    pub arity: u8,
    /// Mask of the arguments forced first, see [`Primop::strict`].
    pub strict: u8,
    /// The code.
    pub run: PrimopFn,
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.name, self.arity)
    }
}

/// What all threads of an evaluation share.
pub struct Shared {
    /// Settings in force.
    pub settings: Settings,
    /// The store directory of the settings; the usual one where theirs is no absolute path (the command line checks).
    pub store_dir: StoreDir,
    /// The door outward.
    pub host: Arc<dyn Host>,
    /// Well-known names.
    pub names: Names,
    /// Code of the builtins by index.
    pub(crate) primops: Vec<PrimopFn>,
    /// Functions from a position's number to its line and column: `__curPos` and friends are lazy in them. The third is for the
    /// file, where it is noted who looks at it.
    pub(crate) position_parts: [Value; 3],
    /// Global variables.
    pub(crate) globals: SymbolMap<Value>,
    /// Values of imported files by resolved path.
    pub(crate) files: Mutex<HashMap<Vec<u8>, Imported>>,
    /// Resolved paths of imports by path as asked.
    pub(crate) resolved: Mutex<HashMap<Vec<u8>, (Arc<[u8]>, Label)>>,
    /// Files whose code is copied for others with the same bytes.
    pub(crate) twins: crate::twins::Twins,
    /// Code that a later evaluation may take over, if any may.
    pub(crate) code: Option<Arc<crate::code::KeptCode>>,
    /// Where `trace`, warnings and the like go.
    pub log: Mutex<Box<dyn FnMut(&[u8]) + Send>>,
    /// State that builtins keep, by type.
    pub extensions: Extensions,
    /// What is remembered.
    pub memo: Memo,
    /// Whether values carry what was observed to produce them (`memo::kept::labels`): the host tells what that is.
    pub labels: bool,
}

/// What is kept of an imported file.
#[derive(Clone, Copy)]
pub(crate) struct Imported {
    pub(crate) value: Value,
    /// The instance of its cells.
    pub(crate) stamp: Stamp,
    /// What importing it observed.
    pub(crate) label: Label,
}

/// State that outer crates attach to a machine, one value per type.
#[derive(Default)]
pub struct Extensions {
    all: Mutex<HashMap<std::any::TypeId, Arc<dyn std::any::Any + Send + Sync>>>,
}

impl Extensions {
    /// The attached value of type `T`, made on first use.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        let any = all.entry(std::any::TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        Arc::clone(any).downcast().expect("the entry has the type it is filed under")
    }

    /// Attaches a value, replacing an earlier one of its type.
    pub fn set<T: Send + Sync + 'static>(&self, value: Arc<T>) {
        let mut all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        all.insert(std::any::TypeId::of::<T>(), value);
    }

    /// The attached value of type `T`, if there is one.
    pub fn find<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let all = self.all.lock().unwrap_or_else(|e| e.into_inner());
        all.get(&std::any::TypeId::of::<T>()).and_then(|any| Arc::clone(any).downcast().ok())
    }
}

impl std::fmt::Debug for Extensions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Extensions")
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// How a machine fails while others evaluate beside it (E7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// As Nix: a failed thunk remembers its error, and gives it with the frames of whoever met it first.
    #[default]
    Alone,
    /// What an evaluation says must not depend on what others evaluated before it: a failed thunk gives the error with its
    /// own frames only, infinite recursion is found by each anew, and a circle through other threads is postponed.
    Beside,
    /// Evaluating ahead of another thread that will need the result, and that alone tells of failures: a thunk that fails is
    /// given back as it was, and nothing is printed.
    Ahead,
}

/// One thread's machine.
#[derive(Debug)]
pub struct Machine {
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// What it counted.
    pub stats: Stats,
    pub(crate) depth: Cell<u32>,
    pub(crate) stack_limit: Cell<usize>,
    /// The same, and all of it while something is evaluated on behalf of another instance, or where values have labels.
    pub(crate) fence: Cell<usize>,
    /// Segments that are in use.
    pub(crate) stack_segments: Cell<usize>,
    /// From this depth on calls look closer whether it is too deep.
    pub(crate) depth_limit: Cell<u32>,
    /// The same for functions of the program; nothing is left of it when the user interrupts.
    pub(crate) interruptible: &'static crate::interrupt::Limit,
    /// Instances whose productions run, innermost last.
    pub(crate) running: crate::running::Running,
    /// Calls whose cells are being evaluated on behalf of others.
    pub(crate) on_behalf: RefCell<Vec<Stamp>>,
    /// How many those are.
    pub(crate) aheads: Cell<u32>,
    /// How often a production was made noisy: one in which this does not change is quiet.
    pub(crate) noises: Cell<u64>,
    pub(crate) max_depth: u32,
    pub(crate) show_trace: bool,
    /// Values may have labels.
    pub(crate) labelled: Cell<bool>,
    /// What parts are learned or taken from, if any are.
    pub(crate) learning: crate::learn::Learning,
    /// This thread's number, as claims have it.
    pub(crate) thread: u32,
    pub(crate) manner: Manner,
    /// The last infinite recursion.
    pub(crate) cycle: std::cell::RefCell<crate::cycle::Cycle>,
    /// What notes where evaluation spends its time, if anything does.
    pub(crate) profiler: Option<Box<crate::Profiler>>,
    /// Helpers that evaluate ahead of this machine, if there are any.
    pub ahead: Option<Arc<crate::Ahead>>,
}

impl Shared {
    /// A machine's shared state. Globals are added with [`Shared::set_global`] before evaluation begins.
    pub fn new(settings: Settings, host: Arc<dyn Host>) -> Shared {
        let memo = Memo::new(settings.memo);
        firn_ir::measure_calls(memo.is_on());
        let mut shared = Shared {
            store_dir: StoreDir::new(settings.store_dir.as_bytes()).unwrap_or_default(),
            settings,
            host,
            names: Names::new(),
            primops: Vec::new(),
            position_parts: [Value::NULL; 3],
            globals: SymbolMap::default(),
            files: Mutex::default(),
            resolved: Mutex::default(),
            twins: Default::default(),
            code: None,
            log: Mutex::new(Box::new(|text| {
                use std::io::Write;
                // A closed standard error is no reason to fail an evaluation.
                let _ = std::io::stderr().write_all(text);
            })),
            extensions: Extensions::default(),
            memo,
            labels: false,
        };
        shared.position_parts = [
            shared.add_primop(&Builtin { name: "lineOfPos", arity: 1, strict: 1, run: |machine, _, args| part(machine, args[0], |l| l.line) }),
            shared.add_primop(&Builtin { name: "columnOfPos", arity: 1, strict: 1, run: |machine, _, args| part(machine, args[0], |l| l.column) }),
            shared.add_primop(&Builtin { name: "fileOfPos", arity: 1, strict: 1, run: crate::places::file_of_position }),
        ];
        shared
    }

    /// Adds a builtin's code and gives its value.
    pub fn add_primop(&mut self, builtin: &Builtin) -> Value {
        let index = self.primops.len() as u32;
        self.primops.push(builtin.run);
        let primop = Primop {
            name: builtin.name,
            arity: builtin.arity,
            strict: builtin.strict,
            index,
            trace: builtin.name != "addErrorContext",
        };
        Value::primop(Box::leak(Box::new(primop)))
    }

    /// Defines a global variable.
    pub fn set_global(&mut self, name: &str, value: Value) {
        self.globals.insert(Symbol::from(name), value);
    }

    /// The names of all global variables, in no particular order.
    pub fn global_names(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.globals.keys().copied()
    }

    /// The value of a global variable.
    pub fn get_global(&self, name: &str) -> Option<Value> {
        self.globals.get(&Symbol::from(name)).copied()
    }
}

fn part(machine: &Machine, number: Value, part: fn(Location) -> u32) -> Result<Value> {
    let pos = number.as_int().and_then(|n| u32::try_from(n).ok()).map(Pos::from_number);
    pos.into_iter().for_each(|pos| machine.see_position(pos));
    Ok(pos.and_then(Pos::resolve).map_or(Value::NULL, |location| Value::int(i64::from(part(location)))))
}

impl Globals<Value> for Shared {
    fn global(&self, name: Symbol) -> Option<Value> {
        self.globals.get(&name).copied()
    }
}

impl Machine {
    /// A machine for this thread.
    pub fn new(shared: Arc<Shared>) -> Machine {
        Machine::in_manner(shared, Manner::Alone)
    }

    /// A machine for this thread, which fails in that manner.
    pub fn in_manner(shared: Arc<Shared>, manner: Manner) -> Machine {
        let (max_depth, show_trace) = (shared.settings.max_call_depth, shared.settings.show_trace);
        // With the memo on, the first half of the depth is free: see `Machine::deeper`.
        let limit = if shared.memo.is_on() { max_depth / 2 } else { max_depth };
        let labelled = shared.labels;
        Machine {
            shared,
            stats: Stats::default(),
            depth: Cell::new(0),
            stack_limit: Cell::new(usize::MAX),
            fence: Cell::new(usize::MAX),
            stack_segments: Cell::new(0),
            depth_limit: Cell::new(limit.saturating_add(1)),
            interruptible: crate::interrupt::Limit::new(limit.saturating_add(1)),
            running: Default::default(),
            on_behalf: RefCell::default(),
            aheads: Cell::new(0),
            noises: Cell::new(0),
            max_depth,
            show_trace,
            labelled: Cell::new(labelled),
            learning: Default::default(),
            thread: Thunk::this_thread(),
            manner,
            ahead: None,
            cycle: Default::default(),
            profiler: None,
        }
    }

    /// Where the definitions are that need each other, after infinite recursion was found.
    pub fn cycle(&self) -> Vec<Pos> {
        self.cycle.borrow().places()
    }

    /// Lets a profiler note what this machine does from now on.
    pub fn profile(&mut self, profiler: crate::Profiler) {
        // The careful way into functions is the one that looks at the profiler.
        self.limit_stack(usize::MAX);
        self.profiler = Some(Box::new(profiler));
    }

    /// The profiler, if there is one.
    pub fn profiler(&self) -> Option<&crate::Profiler> {
        self.profiler.as_deref()
    }

    /// Settings in force.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The door outward.
    #[inline]
    pub fn host(&self) -> &dyn Host {
        &*self.shared.host
    }

    /// Well-known names.
    #[inline]
    pub fn names(&self) -> &Names {
        &self.shared.names
    }

    /// Notes that what runs has printed something, or would have if that had not been printed before.
    pub fn heard(&self) {
        if self.shared.labels || firn_memo::kept::trace::is_on() {
            firn_memo::kept::labels::print();
        }
    }

    /// Writes to the log (standard error unless replaced). Fails when it is not this machine's turn to print.
    pub fn log(&self, text: &[u8]) -> Result<()> {
        if self.manner == Manner::Ahead {
            return Err(crate::force::postponed());
        }
        self.noise()?;
        if firn_memo::doubt::must_begin_again() {
            return Err(crate::force::postponed());
        }
        self.heard();
        let mut log = self.shared.log.lock().unwrap_or_else(|e| e.into_inner());
        log(text);
        Ok(())
    }
}
