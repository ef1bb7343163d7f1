//! `firn compare`: evaluates the attributes of a list in one process, on all threads, and shows where derivations differ
//! from those that the list names (another evaluator's, another version's, yesterday's). `--print` makes such lists.

pub mod answer;
pub mod explain;
pub mod list;

use super::help;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::program::{Invocation, STACK};
use crate::session::Session;
use crate::settings::{self, host_failure};
use crate::statistics;
use answer::{Answered, answer, attributes};
use explain::Explainer;
use firn_eval::{Machine, Manner, Result as EvalResult, Stats};
use firn_source::{Pos, Symbol};
use firn_source::terminal::filter_escapes;
use firn_value::{Attrs, Value};
use list::{Answer, Row};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    list: Option<Vec<u8>>,
    other: Option<Vec<u8>>,
    file: Option<Vec<u8>>,
    expression: Option<Vec<u8>>,
    print: bool,
    threads: Option<usize>,
}

/// A question: an attribute and where its value is.
struct Question {
    attribute: Vec<u8>,
    /// The cell, where it is at hand; otherwise the attribute is looked up.
    cell: Option<Value>,
    expected: Option<Row>,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(file) if typed.file.is_none() => typed.file = Some(file),
            Word::Argument(other) => return Err(Failure::usage("unexpected argument '", &other, "'")),
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "compare"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                if !typed.read(&flag, &mut words)? && !flags.read_legacy(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    typed.check()?;
    invocation.log.set_verbosity(flags.verbosity);
    flags.read_only = true;
    let log = invocation.log.clone();
    let resolved = settings::resolve(&*invocation.host, &flags, false, &|text| log.warn(text))?;
    let session = Session::start(&invocation.host, &flags, resolved, &invocation.log)?;
    let source = match (&typed.file, &typed.expression) {
        (Some(file), _) => session.file_expression(&session.file_argument(file)?)?,
        (None, expression) => session.expression(expression.as_deref().unwrap_or_default())?,
    };
    let root = session.machine.auto_call(session.arguments, session.evaluate(source)?)?;
    let questions = typed.questions(&session, root)?;
    let result = typed.answers(invocation, &session, root, &questions);
    statistics::print(&session, &*invocation.host, &invocation.log)?;
    result
}

impl Typed {
    fn read(&mut self, flag: &[u8], words: &mut Words) -> Result<bool, Failure> {
        match flag {
            b"--list" => self.list = Some(words.value(flag)?),
            b"--other" => self.other = Some(words.value(flag)?),
            b"--expr" | b"-E" => self.expression = Some(words.value(flag)?),
            b"--file" | b"-f" => self.file = Some(words.value(flag)?),
            b"--print" => self.print = true,
            b"--threads" => {
                let text = words.value(flag)?;
                let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).filter(|n| *n > 0);
                self.threads = Some(
                    number.ok_or_else(|| Failure::usage("'--threads' takes a number above zero, not '", &text, "'"))?,
                );
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn check(&self) -> Result<(), Failure> {
        let wrong = match self {
            Typed { file: None, expression: None, .. } => "a file or '--expr' is needed",
            Typed { file: Some(_), expression: Some(_), .. } => "a file and '--expr' are exclusive",
            Typed { list: None, print: false, .. } => "'--list' is needed, or '--print' to make a list",
            _ => return Ok(()),
        };
        Err(Failure::Usage(wrong.as_bytes().to_vec()))
    }

    /// The rows of the list, or all attributes.
    fn questions(&self, session: &Session, root: Value) -> Result<Vec<Question>, Failure> {
        let Some(path) = &self.list else {
            let context = "while evaluating the set whose attributes are listed";
            let set = session.machine.force_attrs(root, Pos::NONE, context)?;
            let all = attributes(set).into_iter();
            return Ok(all.map(|(attribute, cell)| Question { attribute, cell: Some(cell), expected: None }).collect());
        };
        let rows = Row::parse_all(&session.read_for_user(path)?).map_err(|line| {
            let shown = String::from_utf8_lossy(path).into_owned();
            Failure::error(format!(
                "{}:{line}: not a line of 2 or 3 columns separated by tabs",
                firn_eval::colored(shown)
            ))
        })?;
        let question = |row: Row| Question { attribute: row.attribute.clone(), cell: None, expected: Some(row) };
        Ok(rows.into_iter().map(question).collect())
    }

    /// Asks all questions on as many threads as there are, and reports in the list's order as answers come in.
    fn answers(
        &self,
        invocation: &mut Invocation,
        session: &Session,
        root: Value,
        questions: &[Question],
    ) -> Result<(), Failure> {
        let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.threads.unwrap_or_else(available).min(questions.len()).max(1);
        if threads > 1 {
            firn_value::single_threaded(false);
        }
        let next = AtomicUsize::new(0);
        let (send, receive) = mpsc::channel();
        let mut report = Report::new(self, session)?;
        let mut told = 0;
        std::thread::scope(|scope| {
            let mut workers = Vec::with_capacity(threads);
            for index in 0..threads {
                let (send, next, shared) = (send.clone(), &next, Arc::clone(&session.machine.shared));
                let arguments = session.arguments;
                let work = move || ask_all(Machine::in_manner(shared, Manner::Beside), root, arguments, questions, next, &send);
                let thread = std::thread::Builder::new().name(format!("firn {index}")).stack_size(STACK);
                let started = thread.spawn_scoped(scope, work);
                workers.push(started.map_err(|e| Failure::error(format!("cannot start a thread: {e}")))?);
            }
            drop(send);
            let mut waiting: Vec<Option<Answered>> = questions.iter().map(|_| None).collect();
            for (index, answered) in receive {
                waiting[index] = Some(answered);
                while let Some(answered) = waiting.get_mut(told).and_then(Option::take) {
                    report.tell(invocation, &questions[told], &answered)?;
                    told += 1;
                }
            }
            for worker in workers {
                // A panic has been told; its question stays without an answer, and is counted as missing below.
                if let Ok(stats) = worker.join() {
                    session.machine.stats.add(&stats);
                }
            }
            Ok::<(), Failure>(())
        })?;
        if told < questions.len() {
            let shown = String::from_utf8_lossy(&questions[told].attribute).into_owned();
            return Err(Failure::error(format!(
                "the thread that evaluated '{}' gave no answer",
                firn_eval::colored(shown)
            )));
        }
        report.finish(invocation, questions.len())
    }
}

type Sender = mpsc::Sender<(usize, Answered)>;

/// One thread's work: questions nobody has taken yet.
fn ask_all(
    machine: Machine,
    root: Value,
    arguments: Attrs,
    questions: &[Question],
    next: &AtomicUsize,
    send: &Sender,
) -> Stats {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(question) = questions.get(index) else { return machine.stats };
        // Other tools write names as they are: one with a dot is looked for before it is taken as a path.
        let named = || root.as_attrs()?.get(Symbol::intern(&question.attribute));
        let found: EvalResult<Value> = match question.cell.or_else(named) {
            Some(cell) => Ok(cell),
            None => machine.find_along(&question.attribute, arguments, root).map(|(cell, _)| cell),
        };
        let plain = question.expected.as_ref().is_some_and(|row| row.out.is_none());
        let answered = answer(&machine, &question.attribute, found, plain);
        // Nobody listens any more after a failure to print.
        if firn_eval::is_interrupted() || send.send((index, answered)).is_err() {
            return machine.stats;
        }
    }
}

/// What has been told so far.
struct Report<'a> {
    session: &'a Session,
    print: bool,
    explainer: Option<Explainer>,
    different: usize,
}

impl<'a> Report<'a> {
    fn new(typed: &Typed, session: &'a Session) -> Result<Report<'a>, Failure> {
        let other = typed.other.as_ref().map(|path| session.here()?.join(path).map_err(host_failure)).transpose()?;
        Ok(Report { session, print: typed.print, explainer: other.map(Explainer::new), different: 0 })
    }

    fn tell(&mut self, invocation: &mut Invocation, question: &Question, answered: &Answered) -> Result<(), Failure> {
        undoubted()?;
        if self.print {
            return invocation.output.line(&answered.row.line());
        }
        let Some(expected) = question.expected.as_ref().filter(|row| **row != answered.row) else {
            return Ok(());
        };
        self.different += 1;
        let mut text = format!("{}\n", String::from_utf8_lossy(&question.attribute));
        let columns = [
            ("drvPath", Some(&expected.drv), Some(&answered.row.drv)),
            ("outPath", expected.out.as_ref(), answered.row.out.as_ref()),
        ];
        for (name, wanted, found) in columns {
            if let (Some(wanted), Some(found)) = (wanted, found)
                && wanted != found
            {
                text += &format!("  {name}\n    - {wanted}\n    + {found}\n");
            }
        }
        if let Some(error) = &answered.error {
            text += &indented(&error.diagnostic().render(self.session.resolved.eval.show_trace));
        }
        if let (Some(explainer), Answer::Text(ours), Answer::Text(theirs)) =
            (&mut self.explainer, &answered.row.drv, &expected.drv)
            && ours != theirs
        {
            for line in explainer.explain(&self.session.machine, ours, theirs) {
                text += &format!("  {line}\n");
            }
        }
        undoubted()?;
        invocation.output.line(text.as_bytes())?;
        invocation.output.flush()
    }

    fn finish(&self, invocation: &mut Invocation, asked: usize) -> Result<(), Failure> {
        if self.print {
            return Ok(());
        }
        let summary =
            format!("{asked} attributes, {} as expected, {} different", asked - self.different, self.different);
        invocation.output.line(summary.as_bytes())?;
        if self.different == 0 { Ok(()) } else { Err(Failure::Exit(1)) }
    }
}

/// Fails where what was found may show that it came from memory: the program then begins again.
pub(super) fn undoubted() -> Result<(), Failure> {
    if firn_memo::doubt::must_begin_again() { Err(Failure::Exit(1)) } else { Ok(()) }
}

fn indented(text: &[u8]) -> String {
    let plain = filter_escapes(text, true);
    String::from_utf8_lossy(&plain).lines().map(|line| format!("  {line}\n")).collect()
}
