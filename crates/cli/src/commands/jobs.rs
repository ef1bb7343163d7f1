//! `firn jobs`, which is `nix-eval-jobs`: every derivation in a set as a line of JSON, on several threads in one heap.
//!
//! Workers take paths from the [`queue`], [`job`] makes the line of one, and this thread prints lines as they come (or in
//! order), after the store has written what they name. [`recycle`] keeps to the memory limit.

mod cache_status;
mod constituents;
mod job;
mod line;
mod progress;
mod queue;
mod recycle;
mod remembered;
mod root;
mod typed;

use super::compare::undoubted;
use super::help;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::{Argument, Flags};
use crate::installable::Opening;
use crate::memory::Memory;
use crate::program::{Invocation, STACK};
use crate::question;
use crate::session::{Session, read_stdin};
use crate::settings::{self, host_failure};
use crate::stores::failed;
use crate::statistics;
use firn_eval::{Machine, Manner, Stats};
use firn_host::AbsPath;
use firn_ir::Program;
use firn_memo::kept::{Entry, labels};
use firn_source::SourceFile;
use firn_text::json::Tree;
use firn_value::Value;
use job::Task;
use line::JobLine;
use progress::Progress;
use queue::{Path, Queue, Todo};
use recycle::Rest;
use remembered::{Answer, Remembered, Told};
use root::Root;
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use typed::Typed;

/// Megabytes per worker, where the user does not say.
const MEMORY: u64 = 4096;

/// How long lines are gathered before they are printed.
const GATHER: Duration = Duration::from_millis(2);

/// After how many paths that are remembered memory is looked at.
const FEW: u64 = 64;

/// A line, what is told of the error in it, and whether it was known.
type Done = (Path, JobLine, Option<Told>, bool);

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(expression) if typed.expression.is_none() => typed.expression = Some(expression),
            Word::Argument(other) => return Err(Failure::usage("unexpected argument '", &other, "'")),
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "jobs"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                if !typed.read(&flag, &mut words, &mut flags)? && !flags.read(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    typed.check()?;
    invocation.log.set_verbosity(flags.verbosity);
    flags.read_only |= typed.no_instantiate;
    flags.writes_at_once = true;
    flags.keeps_answers = true;
    let mut rest = Rest::take()?.unwrap_or_else(|| {
        let decided = typed.shard.is_none();
        Rest { todo: vec![(Path::new(), decided)], ..Rest::default() }
    });
    keep_stdin(&mut flags, &mut rest)?;
    let (session, root, entry) = typed.open(invocation, &mut flags)?;
    let done = Run::new(invocation, &typed, &session, rest)?.all(root, entry);
    let closed = session.store.close().map_err(failed);
    session.remember();
    done.and(closed)?;
    statistics::print(&session, &*invocation.host, &invocation.log)?;
    session.memory.iter().for_each(Memory::leave);
    Ok(())
}

/// Standard input can be read once, and a later process of the run needs what was in it too.
fn keep_stdin(flags: &mut Flags, rest: &mut Rest) -> Result<(), Failure> {
    for argument in flags.arguments.values_mut().filter(|argument| matches!(argument, Argument::Stdin)) {
        let text = match &rest.stdin {
            Some(text) => text.clone(),
            None => rest.stdin.insert(read_stdin()?).clone(),
        };
        *argument = Argument::Text(text);
    }
    Ok(())
}

impl Typed {
    /// The session, the set that is looked into, and what memory knows it by.
    fn open(&self, invocation: &Invocation, flags: &mut Flags) -> Result<(Session, Root, Option<Entry>), Failure> {
        let named = self.expression.clone().unwrap_or_default();
        let select = |session: &Session| self.select.as_ref().map(|text| compiled(session, session.expression(text)?)).transpose();
        if self.flake {
            let opening = Opening { flags, locks: &self.locks, allow_missing: false };
            let opened = opening.open(invocation, &named)?;
            let (root, label) = labels::apart(|| opened.value_at_fragment());
            let entry = question::flake(&opened.flake).map(|entry| match entry {
                Entry::Flake(fingerprint) => Entry::Flake([&fingerprint[..], b"#", opened.fragment.as_bytes()].concat()),
                other => other,
            });
            let root = Root::value((root?, label), select(&opened.session)?);
            return Ok((opened.session, root, entry));
        }
        let log = invocation.log.clone();
        let resolved = settings::resolve(&*invocation.host, flags, false, &|text| log.warn(text))?;
        let session = Session::start(&invocation.host, flags, resolved, &invocation.log)?;
        let (source, entry) = if self.is_expression {
            let (file, base) = session.expression(&named)?;
            ((file, base.clone()), Entry::Expression(named, base))
        } else {
            let path = session.file_argument(&named)?;
            (session.file_expression(&path)?, Entry::File(path))
        };
        let root = Root::program(compiled(&session, source)?, session.arguments, select(&session)?);
        Ok((session, root, Some(entry)))
    }
}

fn compiled(session: &Session, (file, base): (&'static SourceFile, AbsPath)) -> Result<&'static Program<Value>, Failure> {
    Ok(session.machine.compile(file, &base, &[])?)
}

/// A run in this process.
struct Run<'a> {
    invocation: &'a mut Invocation,
    typed: &'a Typed,
    session: &'a Session,
    queue: Queue,
    stdin: Option<Vec<u8>>,
    progress: Progress,
    /// Lines that wait for earlier ones.
    held: BTreeMap<Path, (JobLine, Option<Told>, bool)>,
    /// All lines by attribute, for aggregates.
    jobs: BTreeMap<String, Tree>,
}

impl<'a> Run<'a> {
    fn new(invocation: &'a mut Invocation, typed: &'a Typed, session: &'a Session, rest: Rest) -> Result<Self, Failure> {
        let quiet = invocation.tool.is_some();
        let mut progress = Progress::new(&invocation.log, quiet, rest.elapsed);
        (progress.done, progress.failed) = (rest.done, rest.failed);
        let name = |line: &Tree| line.get("attr").and_then(Tree::as_text).unwrap_or_default().to_owned();
        Ok(Run {
            invocation,
            typed,
            session,
            queue: Queue::new(recycle::begin(rest.todo), typed.shard),
            stdin: rest.stdin,
            progress,
            held: rest.held.into_iter().map(|(path, line)| (path, (JobLine::Made(line), None, false))).collect(),
            jobs: rest.jobs.into_iter().map(|line| (name(&line), line)).collect(),
        })
    }

    fn all(mut self, root: Root, entry: Option<Entry>) -> Result<(), Failure> {
        let workers = self.workers();
        let session = self.session;
        let task = self.task(root)?;
        let remembered = Remembered::new(session, self.typed, entry);
        // A job that has begun is finished: the run goes on elsewhere while there is still room for one.
        let limit = self.typed.memory.unwrap_or(MEMORY).saturating_mul(workers as u64) / 10 * 9;
        let (send, receive) = mpsc::channel();
        let shared = Arc::clone(&self.session.machine.shared);
        // The queue is read by the workers while the rest of the run is this thread's.
        let queue = std::mem::replace(&mut self.queue, Queue::new([], None));
        let printed = std::thread::scope(|scope| {
            if let Some(remembered) = remembered.as_ref().filter(|remembered| remembered.looks_ahead() && workers < processors()) {
                let thread = std::thread::Builder::new().name("firn ahead".to_owned()).stack_size(STACK);
                // Without it everything is looked at in its turn.
                let _ = thread.spawn_scoped(scope, || look_ahead(remembered, &queue));
            }
            let begun = self.begin(&task, remembered.as_ref()).inspect_err(|_| queue.stop());
            begun?;
            if workers > 1 {
                firn_value::single_threaded(false);
            }
            let mut threads = Vec::with_capacity(workers);
            for index in 0..workers {
                let (send, shared, queue) = (send.clone(), Arc::clone(&shared), &queue);
                let (task, remembered) = (&task, remembered.as_ref());
                let work = move || work(Machine::in_manner(shared, Manner::Beside), task, remembered, queue, limit, &send);
                let thread = std::thread::Builder::new().name(format!("firn {index}")).stack_size(STACK);
                let started = thread.spawn_scoped(scope, work);
                threads.push(started.map_err(|e| {
                    queue.stop();
                    Failure::error(format!("cannot start a thread: {e}"))
                })?);
            }
            drop(send);
            let printed = self.print_all(&queue, &receive).inspect_err(|_| queue.stop());
            for thread in threads {
                // A panic goes on in this thread when the scope ends.
                if let Ok(stats) = thread.join() {
                    self.session.machine.stats.add(&stats);
                }
            }
            printed
        });
        self.queue = queue;
        printed?;
        self.finish()
    }

    /// Evaluates the set, unless the names in it are remembered.
    fn begin(&self, task: &Task<'_>, remembered: Option<&Remembered<'_>>) -> Result<(), Failure> {
        if !remembered.is_some_and(Remembered::knows_the_root) {
            // Whatever is wrong with the set ends the run.
            labels::apart(|| task.root.get(&self.session.machine)).0?;
        }
        Ok(())
    }

    /// How many threads evaluate. NIX: nix-eval-jobs has one worker unless told otherwise.
    fn workers(&self) -> usize {
        let usual = || if self.invocation.tool.is_some() { 1 } else { processors() };
        self.typed.workers.unwrap_or_else(usual)
    }

    fn task(&self, root: Root) -> Result<Task<'a>, Failure> {
        let session = self.session;
        let apply = match &self.typed.apply {
            Some(text) => Some(session.evaluate(session.expression(text)?)?),
            None => None,
        };
        let gc_roots = match &self.typed.gc_roots {
            Some(dir) => Some(session.here()?.join(dir).map_err(host_failure)?),
            None => None,
        };
        Ok(Task {
            typed: self.typed,
            root,
            arguments: session.arguments,
            apply,
            store: session.store.clone(),
            gc_roots,
            full_traces: session.resolved.eval.show_trace,
            store_dir: session.machine.shared.store_dir.clone(),
        })
    }

    /// Prints lines until the workers have ended.
    fn print_all(&mut self, queue: &Queue, lines: &mpsc::Receiver<Done>) -> Result<(), Failure> {
        loop {
            let mut batch = Vec::new();
            match lines.recv_timeout(self.progress.patience()) {
                Ok(done) => {
                    batch.push(done);
                    // PERF: lines that come by the thousand need not each wake this thread and be written by themselves.
                    queue.wait_over(GATHER);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.release(queue.first()),
            }
            // Asked before the channel is emptied: a path that is done by now has its line in there.
            let first = queue.first();
            batch.extend(lines.try_iter());
            if !batch.is_empty() {
                // Both streams may be one terminal.
                self.progress.pause();
                // What a line names is in the store when it is printed.
                self.session.store.finish().map_err(failed)?;
                for (path, line, told, known) in batch {
                    self.held.insert(path, (line, told, known));
                }
                self.release(first)?;
                self.invocation.output.flush()?;
            }
            self.progress.tell(queue.left());
        }
    }

    /// Prints the lines that wait for nothing any more.
    fn release(&mut self, first: Option<Path>) -> Result<(), Failure> {
        let first = first.filter(|_| self.typed.sorted);
        while let Some(entry) = self.held.first_entry() {
            if first.as_ref().is_some_and(|first| entry.key() > first) {
                break;
            }
            let (line, told, known) = entry.remove();
            self.print(line, told, known)?;
        }
        Ok(())
    }

    fn print(&mut self, line: JobLine, told: Option<Told>, known: bool) -> Result<(), Failure> {
        undoubted()?;
        self.progress.done += 1;
        // A line that is remembered has an error if something is told of it.
        self.progress.failed += usize::from(match &line {
            JobLine::Made(tree) => tree.get("error").is_some(),
            JobLine::Printed(_) => told.is_some(),
        });
        self.progress.known += usize::from(known);
        match told {
            Some(Told::Error(error)) => self.invocation.log.say(&error.diagnostic()),
            Some(Told::Text(text)) => self.invocation.log.line(&text),
            None => {}
        }
        if !self.typed.constituents {
            let text = line.text().map_err(Failure::error)?;
            return self.invocation.output.line(&text);
        }
        let line = line.tree().into_owned();
        if !constituents::is_waiting(&line) {
            self.line(&line)?;
        }
        let name = line.get("attr").and_then(Tree::as_text).unwrap_or_default().to_owned();
        self.jobs.insert(name, line);
        Ok(())
    }

    fn line(&mut self, line: &Tree) -> Result<(), Failure> {
        let text = line.print(None).map_err(Failure::error)?;
        self.invocation.output.line(&text)
    }

    /// Ends the run, or lets another process go on with it.
    fn finish(mut self) -> Result<(), Failure> {
        undoubted()?;
        if firn_eval::is_interrupted() {
            self.progress.pause();
            self.session.store.close().map_err(failed)?;
            return Err(Failure::Error(firn_eval::interrupted()));
        }
        let todo: Vec<_> = self.queue.rest().into_iter().map(|(path, Todo { decided, .. })| (path, decided)).collect();
        if !todo.is_empty() {
            self.progress.pause();
            self.session.store.close().map_err(failed)?;
            self.invocation.output.flush()?;
            // What is to be remembered of this process is written by this process.
            self.session.remember();
            let rest = Rest {
                todo,
                done: self.progress.done,
                failed: self.progress.failed,
                elapsed: self.progress.elapsed(),
                stdin: self.stdin,
                held: self.held.into_iter().map(|(path, (line, ..))| (path, line.tree().into_owned())).collect(),
                jobs: self.jobs.into_values().collect(),
            };
            return Err(rest.go_on());
        }
        if self.typed.constituents {
            self.aggregates()?;
        }
        self.progress.finish();
        Ok(())
    }

    fn aggregates(&mut self) -> Result<(), Failure> {
        let session = self.session;
        let log = self.invocation.log.clone();
        let jobs = std::mem::take(&mut self.jobs);
        let mut tell = |text: String| log.say(&firn_source::diagnostics::Diagnostic::message(
            firn_source::diagnostics::Level::Error,
            text.as_bytes(),
        ));
        let (lines, written) = constituents::finish(&session.machine, &*session.store, jobs, &mut tell)?;
        session.store.finish().map_err(failed)?;
        if let Some(dir) = &self.typed.gc_roots {
            let dir = session.here()?.join(dir).map_err(host_failure)?;
            for path in &written {
                session.store.add_root(path, &dir.child(path.as_bytes())).map_err(failed)?;
            }
        }
        lines.iter().try_for_each(|line| self.line(line))
    }
}

/// One worker: paths nobody has taken yet, until there are none or memory is used up.
fn work(
    machine: Machine,
    task: &Task<'_>,
    remembered: Option<&Remembered<'_>>,
    queue: &Queue,
    limit: u64,
    send: &mpsc::Sender<Done>,
) -> Stats {
    // A worker that panics must not leave the others waiting for it.
    let guard = StopOnPanic(queue);
    let mut done = 0;
    while let Some((path, todo, looked)) = queue.take() {
        if queue.is_work_near() {
            // Whoever comes to it needs the set: while this thread evaluates that the other looks at the rest. What is wrong with it is told there.
            let _ = labels::apart(|| task.root.get(&machine)).0;
        }
        let Answer { outcome, told, known } = match remembered {
            Some(remembered) => remembered.answer(&machine, task, &path, todo.cell, looked),
            None => {
                let (outcome, error) = job::evaluate(&machine, task, &path, todo.cell);
                Answer { outcome, told: error.map(Told::Error), known: false }
            }
        };
        // The line is sent before the path counts as done: what is in order must not pass it.
        let sent = match outcome {
            queue::Outcome::Job(line) => match queue.prints(&path, todo) {
                true => send.send((path.clone(), line, told, known)).is_ok(),
                false => true,
            },
            other => {
                queue.found(&path, todo, other);
                true
            }
        };
        queue.done(&path);
        // PERF: asking takes as long as half of a line that is remembered, and that takes little memory.
        done += 1;
        let is_full = || (!known || done % FEW == 0) && recycle::memory_in_use().is_some_and(|used| used > limit);
        if !sent || firn_eval::is_interrupted() || undoubted().is_err() || is_full() {
            queue.stop();
        }
    }
    drop(guard);
    machine.stats
}

/// Looks at what is remembered, the last paths first: at those that were there last while the set is still looked at itself, or evaluated.
/// Each path is a question of its own, so what is found of it holds whatever becomes of the set.
fn look_ahead(remembered: &Remembered<'_>, queue: &Queue) {
    let guard = StopOnPanic(queue);
    queue.guess(remembered.guess());
    while let Some(path) = queue.next_ahead() {
        if let Some(looked) = remembered.look_ahead(&path) {
            queue.looked(path, looked);
        }
    }
    drop(guard);
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

struct StopOnPanic<'a>(&'a Queue);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
