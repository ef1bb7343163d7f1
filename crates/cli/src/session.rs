//! One run: the host as the settings allow it to be seen, the machine with its builtins, the automatic arguments, and the
//! ways in which a command names an expression.

use crate::failure::Failure;
use crate::flags::{Argument, Flags};
use crate::log::Log;
use crate::memory::Memory;
use crate::settings::{Resolved, host_failure};
use crate::stores::{self, Opened};
use firn_eval::{Ahead, Machine, Shared};
use firn_host::fetch::Fetcher;
use firn_host::{
    AbsPath, EntrySource, Found, Host, HostError, Mode, Mounted, Observation, PseudoUrl, RealHost, RealWorld, RecordedStore, Recording,
    Restricted, Sink, Store,
};
use firn_source::{Origin, Pos, SourceFile, Symbol};
use firn_store::store_dir::StoreDir;
use firn_value::{Attrs, AttrsBuilder, Context, Thunk, Value};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A machine and what the command line said about it.
pub struct Session {
    /// The machine.
    pub machine: Machine,
    /// Settings of the run; those of evaluation are the machine's.
    pub resolved: Resolved,
    /// Where derivations and sources go.
    pub store: Arc<dyn Store>,
    /// Arguments for functions that are called automatically.
    pub arguments: Attrs,
    /// The same as they were typed.
    pub asked_arguments: BTreeMap<Vec<u8>, firn_memo::kept::Argument>,
    /// What earlier runs found, if that is remembered.
    pub memory: Option<Memory>,
    /// How much the user wants to hear.
    pub verbosity: i32,
    /// The world as it is, unwatched.
    world: Arc<RealHost>,
    /// What the user wants to know of where the time went.
    pub profile: Option<crate::profile::Request>,
    /// Set once evaluation has seen or said what asking the world's files again does not tell: a fetched tree, an object of
    /// the store, a message. Only sessions that may be gone on with later ([`Flags::reloads`]) note the first two.
    pub beyond: Arc<AtomicBool>,
    /// The store as it was opened, unwatched.
    opened: Arc<dyn Store>,
}

/// What a session takes over from one that has ended.
#[derive(Default)]
pub struct Earlier<'a> {
    /// The store: what values of that session name is in there.
    pub store: Option<Arc<dyn Store>>,
    /// Global variables and code, where that is possible.
    pub code: Option<&'a Shared>,
}

/// A host that refuses; builtins that make store paths find it among the machine's extensions and allow them.
pub type Fence = Restricted<Arc<dyn Host>>;

/// Search path entries: local ones are looked up, each warning is given once.
struct Entries<'a> {
    log: &'a Log,
    said: Mutex<Vec<Vec<u8>>>,
}

impl EntrySource for Entries<'_> {
    fn fetch(&self, _url: PseudoUrl<'_>) -> Result<Option<AbsPath>, HostError> {
        Ok(None)
    }

    fn warn(&self, message: &[u8]) {
        let mut said = self.said.lock().unwrap_or_else(|e| e.into_inner());
        if !said.iter().any(|earlier| earlier == message) {
            self.log.warn(message);
            said.push(message.to_vec());
        }
    }
}

impl Session {
    /// Makes the machine.
    pub fn start(host: &Arc<RealHost>, flags: &Flags, resolved: Resolved, log: &Arc<Log>) -> Result<Session, Failure> {
        Session::start_with(host, flags, resolved, log, Earlier::default())
    }

    /// As [`Session::start`], after an earlier session.
    pub fn start_with(
        world: &Arc<RealHost>,
        flags: &Flags,
        mut resolved: Resolved,
        log: &Arc<Log>,
        earlier: Earlier<'_>,
    ) -> Result<Session, Failure> {
        log.set_full_traces(resolved.eval.show_trace);
        let Opened { store, host } = stores::open(world, &mut resolved, flags.verbosity, log, earlier.store)?;
        let (opened, beyond) = (store.clone(), Arc::new(AtomicBool::new(false)));
        // Fetched trees are seen at their store paths, whether or not a store has them.
        let bare = host.clone();
        let host: Arc<dyn Host> = Arc::new(Mounted::new(host));
        let mut fetcher = fetcher(&resolved, host.clone(), log);
        let host = match &flags.recording {
            Some(questions) => recorded(host, Arc::clone(questions), &resolved)?,
            None => host,
        };
        // Threads that evaluate ahead see what the question may not need: that is told apart.
        let once = flags.asks_once && flags.evaluation_cores() == 1 && !resolved.memo.mode.is_shadow();
        let (host, store, memory) = match Memory::watch(&host, bare, &store, &resolved, log, once) {
            Some(watched) => {
                fetcher = fetcher.observed_by(watched.sink);
                (watched.host, watched.store, Some(watched.memory))
            }
            None if flags.reloads => {
                let seen = beyond.clone();
                let sink: Arc<dyn Sink> = Arc::new(move |_: Observation| seen.store(true, Ordering::Relaxed));
                fetcher = fetcher.observed_by(sink.clone());
                let dir = StoreDir::new(resolved.eval.store_dir.as_bytes()).map_err(stores::failed)?;
                let store: Arc<dyn Store> = Arc::new(RecordedStore::new(store, dir, sink));
                (host, store, None)
            }
            None => (host, store, None),
        };
        let fence = fenced(&host, &resolved, log)?;
        let seen: Arc<dyn Host> = match &fence {
            Some(fence) => fence.clone(),
            None => host.clone(),
        };
        let labels = memory.is_some() && !once;
        if labels && resolved.eval.memo == firn_memo::Mode::Run {
            resolved.eval.memo = firn_memo::Mode::Sparing;
        }
        let mut shared = Shared::new(resolved.eval.clone(), seen);
        shared.labels = labels;
        let (sink, said) = (log.clone(), beyond.clone());
        shared.log = Mutex::new(Box::new(move |text| {
            said.store(true, Ordering::Relaxed);
            sink.write(text);
        }));
        if let Some(fence) = fence {
            shared.extensions.set(fence);
        }
        let flakes = shared.settings.features.flakes;
        firn_builtins::install_with(&mut shared, if flakes { firn_flake::TABLE } else { &[] });
        firn_flake::attach(&mut shared);
        firn_builtins::attach(&shared, store.clone());
        firn_builtins::attach_fetcher(&shared, Arc::new(fetcher));
        if flags.reloads && !earlier.code.is_some_and(|code| shared.take_over(code)) {
            shared.keep_code();
        }
        let mut machine = Machine::new(Arc::new(shared));
        let profile = flags.profile.clone().or_else(|| resolved.profile.clone());
        let counts = counts_calls(&**world);
        if crate::statistics::wanted(&**world) {
            firn_host::measure_io();
            firn_eval::measure_times();
        }
        crate::profile::install(&mut machine, profile.as_ref(), counts, resolved.trace_function_calls);
        // PERF: the process ends with the run; taking the tables apart one by one took 1.5 % of a thousand packages' time.
        std::mem::forget(Arc::clone(&machine.shared));
        let (verbosity, world) = (flags.verbosity, world.clone());
        let asked_arguments = BTreeMap::new();
        let arguments = empty();
        let mut session =
            Session { machine, resolved, store, arguments, asked_arguments, memory, verbosity, world, profile, beyond, opened };
        (session.arguments, session.asked_arguments) = session.automatic_arguments(flags)?;
        crate::lock_flags::override_flakes(&session, &flags.override_flakes)?;
        Ok(session)
    }

    /// What a session after this one may take over.
    pub fn ended(&self) -> Earlier<'_> {
        Earlier { store: Some(self.opened.clone()), code: Some(&self.machine.shared) }
    }

    /// Lets other threads evaluate ahead of the machine where `--cores` asks for more than one.
    pub fn evaluate_ahead(&mut self, flags: &Flags) -> Result<(), Failure> {
        let cores = flags.evaluation_cores();
        if cores > 1 {
            let started = Ahead::start(&self.machine.shared, cores - 1, crate::program::STACK);
            let failed = |error| Failure::error(format!("cannot start a thread: {error}"));
            self.machine.ahead = Some(started.map_err(failed)?);
        }
        Ok(())
    }

    fn automatic_arguments(&self, flags: &Flags) -> Result<(Attrs, BTreeMap<Vec<u8>, firn_memo::kept::Argument>), Failure> {
        let mut set = AttrsBuilder::with_capacity(flags.arguments.len());
        let mut asked = BTreeMap::new();
        for (name, argument) in &flags.arguments {
            let text = |bytes: &[u8]| Value::string(bytes, Context::EMPTY);
            let given = match argument {
                Argument::Expression(source) => firn_memo::kept::Argument::Expression(source.clone()),
                Argument::Text(bytes) => firn_memo::kept::Argument::Text(bytes.clone()),
                Argument::File(path) => firn_memo::kept::Argument::Text(self.read_for_user(path)?),
                Argument::Stdin => firn_memo::kept::Argument::Text(read_stdin()?),
            };
            let value = match &given {
                firn_memo::kept::Argument::Expression(source) => {
                    let file = SourceFile::register(Origin::Expression, source.clone());
                    let program = self.machine.compile(file, &self.here()?, &[])?;
                    Thunk::suspend(&program.body).value()
                }
                firn_memo::kept::Argument::Text(bytes) => text(bytes),
            };
            set.push(Symbol::intern(name), Pos::NONE, value);
            asked.insert(name.clone(), given);
        }
        Ok((set.finish().as_attrs().unwrap_or_else(empty), asked))
    }

    /// A file that the user names for its content, not as an expression: links are followed, nothing is refused.
    pub fn read_for_user(&self, path: &[u8]) -> Result<Vec<u8>, Failure> {
        let host = self.machine.host();
        let path = self.here()?.join(path).map_err(host_failure)?;
        let real = host.resolve_symlinks(&path, firn_host::Follow::Full).map_err(host_failure)?;
        Ok(host.read_file(&real).map_err(host_failure)?.bytes().to_vec())
    }

    /// The current directory.
    pub fn here(&self) -> Result<AbsPath, Failure> {
        self.world.current_dir().map_err(host_failure)
    }

    /// Where the search path has a name.
    pub fn find_file(&self, name: &[u8]) -> Result<AbsPath, Failure> {
        match firn_builtins::find_in_search_path(&self.machine, &self.resolved.search, name)? {
            Found::Path(path) => Ok(path),
            Found::Builtin(path) => {
                let shown = [b"'<nix", path.as_bytes(), b">' has no physical path"].concat();
                Err(Failure::error(shown))
            }
        }
    }

    /// The path that a file argument stands for: `<name>` is searched, anything else is a path.
    pub fn file_argument(&self, argument: &[u8]) -> Result<AbsPath, Failure> {
        if let Some(url) = PseudoUrl::parse(argument) {
            return Ok(firn_builtins::fetch_entry(&self.machine, url)?);
        }
        match argument {
            [b'<', name @ .., b'>'] if !name.is_empty() => self.find_file(name),
            path => self.here()?.join(path).map_err(host_failure),
        }
    }

    /// Registers an expression given on the command line; the text and the directory it is seen from.
    pub fn expression(&self, text: &[u8]) -> Result<(&'static SourceFile, AbsPath), Failure> {
        Ok((SourceFile::register(Origin::Expression, text.to_vec()), self.here()?))
    }

    /// The expression on standard input, and the directory it is seen from.
    pub fn stdin(&self) -> Result<(Vec<u8>, AbsPath), Failure> {
        Ok((read_stdin()?, self.here()?))
    }

    /// Registers the expression in a file (a directory stands for its `default.nix`).
    pub fn file_expression(&self, path: &AbsPath) -> Result<(&'static SourceFile, AbsPath), Failure> {
        let path = self.machine.host().resolve_expr_path(path).map_err(|error| self.machine.host_error(error))?;
        Ok(self.machine.source(&path)?)
    }

    /// Ends the run: what is to be remembered is written.
    pub fn remember(&self) {
        if let Some(memory) = &self.memory {
            memory.finish();
        }
    }

    /// The value of the expression in a file (a directory stands for its `default.nix`).
    pub fn evaluate_file(&self, path: &AbsPath) -> Result<Value, Failure> {
        let path = self.machine.host().resolve_expr_path(path).map_err(|error| self.machine.host_error(error))?;
        Ok(self.machine.run_program(self.machine.load(&path, &[])?, &[])?)
    }

    /// The value of a registered expression.
    pub fn evaluate(&self, (file, base): (&'static SourceFile, AbsPath)) -> Result<Value, Failure> {
        let program = self.machine.compile(file, &base, &[])?;
        Ok(self.machine.run_program(program, &[])?)
    }
}

/// The host, telling what it is asked.
fn recorded(host: Arc<dyn Host>, into: Arc<Mutex<Vec<Observation>>>, resolved: &Resolved) -> Result<Arc<dyn Host>, Failure> {
    let dir = AbsPath::new(resolved.eval.store_dir.as_bytes()).map_err(host_failure)?;
    let sink = move |observation: Observation| {
        into.lock().unwrap_or_else(|e| e.into_inner()).push(observation);
    };
    Ok(Arc::new(Recording::new(host, sink, dir).looking_inside()))
}

/// Whether `NIX_COUNT_CALLS` asks for how often each function is called.
pub(crate) fn counts_calls(host: &dyn Host) -> bool {
    host.env(b"NIX_COUNT_CALLS").is_some_and(|value| &*value != b"0")
}

fn empty() -> Attrs {
    Attrs::empty().as_attrs().expect("the empty set is a set")
}

/// The fetcher of a run.
fn fetcher(resolved: &Resolved, seen: Arc<dyn Host>, log: &Arc<Log>) -> Fetcher {
    let log = log.clone();
    let renew = || -> Arc<dyn Host> { Arc::new(RealHost::new(RealWorld)) };
    Fetcher::new(resolved.fetch.clone(), seen, renew, move |message| log.warn(message.as_bytes()))
}

/// The fence that pure or restricted evaluation looks through.
fn fenced(host: &Arc<dyn Host>, resolved: &Resolved, log: &Log) -> Result<Option<Arc<Fence>>, Failure> {
    let mode = match (resolved.eval.pure_eval, resolved.eval.restrict_eval) {
        (true, _) => Mode::Pure,
        (false, true) => Mode::Restricted,
        (false, false) => return Ok(None),
    };
    let uris = resolved.eval.allowed_uris.iter().map(|uri| uri.clone().into_bytes()).collect();
    let fence = Restricted::new(host.clone(), mode, uris);
    fence.allow_search_path(&resolved.search, &Entries { log, said: Mutex::default() }).map_err(host_failure)?;
    Ok(Some(Arc::new(fence)))
}

/// What is on standard input.
pub(crate) fn read_stdin() -> Result<Vec<u8>, Failure> {
    // A program that begins again reads the same.
    static READ: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    if let Some(bytes) = READ.get() {
        return Ok(bytes.clone());
    }
    let mut bytes = Vec::new();
    match std::io::stdin().lock().read_to_end(&mut bytes) {
        Ok(_) => Ok(READ.get_or_init(|| bytes).clone()),
        Err(error) => Err(Failure::error(format!("reading from standard input: {}", firn_host::Errno::from(error)))),
    }
}
