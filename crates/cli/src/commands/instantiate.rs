//! `firn instantiate`, which is `nix-instantiate`: print values, syntax trees, or the derivations in an expression.

mod batch;

use super::{help, render};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::memory::{Recalled, as_texts, texts};
use crate::program::Invocation;
use crate::question;
use crate::session::Session;
use crate::settings::{self, Writes};
use crate::statistics;
use crate::stores::failed;
use firn_eval::{Coercion, Walk, place_of, print_ambiguous};
use firn_host::AbsPath;
use firn_memo::kept::{Entry, labels};
use firn_source::{Origin, Pos, SourceFile};
use firn_value::{Label, Value};

/// How a value is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Plain,
    Raw,
    Xml,
    Json,
}

/// What is done with each expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Action {
    #[default]
    Instantiate,
    Evaluate,
    Parse,
}

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    action: Action,
    form: Form,
    from_stdin: bool,
    is_expression: bool,
    find_file: bool,
    strict: bool,
    no_location: bool,
    read_write: bool,
    dry_run: bool,
    root: Option<Vec<u8>>,
    attributes: Vec<Vec<u8>>,
    inputs: Vec<Vec<u8>>,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(input) => typed.inputs.push(input),
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "instantiate"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                if !flags.read_legacy(&flag, &mut words)? && !typed.read(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    invocation.log.set_verbosity(flags.verbosity);
    flags.keeps_answers = typed.action != Action::Parse && !typed.find_file;
    flags.asks_once = typed.questions() == 1;
    if typed.action == Action::Parse {
        // Nothing is evaluated.
        firn_memo::doubt::begin_again_for(firn_memo::doubt::Reasons::None);
    }
    let evaluates = typed.action != Action::Instantiate && !typed.read_write;
    flags.read_only |= typed.dry_run || evaluates;
    let log = invocation.log.clone();
    flags.writes_at_once = true;
    let resolved = settings::resolve(&*invocation.host, &flags, false, &|text| log.warn(text))?;
    let mut session = Session::start(&invocation.host, &flags, resolved, &invocation.log)?;
    session.evaluate_ahead(&flags)?;
    let mut command = Command { invocation, session: &session, typed: &typed, flags: &flags, roots: 0, warned: false };
    let done = command.all();
    // NIX: what was instantiated before a failure is in the store.
    let closed = session.store.close().map_err(failed);
    let told = command.invocation.output.flush();
    session.remember();
    done.and(closed).and(told)?;
    statistics::print(&session, &*command.invocation.host, &command.invocation.log)
}

impl Typed {
    /// How many questions are asked.
    fn questions(&self) -> usize {
        (self.inputs.len() + usize::from(self.from_stdin)).max(1) * self.attributes.len().max(1)
    }

    fn read(&mut self, flag: &[u8], words: &mut Words) -> Result<bool, Failure> {
        match flag {
            b"-" => self.from_stdin = true,
            b"--expr" | b"-E" => self.is_expression = true,
            b"--eval" | b"--eval-only" => {
                if self.action == Action::Instantiate {
                    self.action = Action::Evaluate;
                }
            }
            b"--parse" | b"--parse-only" => self.action = Action::Parse,
            b"--read-write-mode" => self.read_write = true,
            b"--find-file" => self.find_file = true,
            b"--attr" | b"-A" => self.attributes.push(words.value(flag)?),
            b"--add-root" => self.root = Some(words.value(flag)?),
            b"--indirect" => {}
            b"--raw" => self.form = Form::Raw,
            b"--xml" => self.form = Form::Xml,
            b"--json" => self.form = Form::Json,
            b"--no-location" => self.no_location = true,
            b"--strict" => self.strict = true,
            b"--dry-run" => self.dry_run = true,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// What is evaluated.
pub(super) enum Input {
    /// A file or directory.
    File(AbsPath),
    /// An expression, and the directory it is seen from.
    Expression(Vec<u8>, AbsPath),
    /// The same, from standard input.
    Stdin(Vec<u8>, AbsPath),
}

impl Input {
    pub fn entry(&self) -> Entry {
        match self {
            Input::File(path) => Entry::File(path.clone()),
            Input::Expression(text, base) | Input::Stdin(text, base) => Entry::Expression(text.clone(), base.clone()),
        }
    }

    pub fn register(&self, session: &Session) -> Result<(&'static SourceFile, AbsPath), Failure> {
        match self {
            Input::File(path) => session.file_expression(path),
            Input::Expression(text, base) => Ok((SourceFile::register(Origin::Expression, text.clone()), base.clone())),
            Input::Stdin(text, base) => Ok((SourceFile::register(Origin::Stdin, text.clone()), base.clone())),
        }
    }
}

struct Command<'a> {
    invocation: &'a mut Invocation,
    session: &'a Session,
    typed: &'a Typed,
    flags: &'a Flags,
    roots: usize,
    warned: bool,
}

impl Command<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        if self.typed.find_file {
            for name in &self.typed.inputs {
                let path = self.session.find_file(name)?;
                self.invocation.output.line(path.as_bytes())?;
            }
            return Ok(());
        }
        if let Some(memory) = self.session.memory.as_ref().filter(|_| self.typed.questions() > 1) {
            memory.expect_several();
        }
        if self.typed.from_stdin {
            let (text, base) = self.session.stdin()?;
            self.one(&Input::Stdin(text, base))?;
        } else if self.typed.inputs.is_empty() && !self.typed.is_expression {
            self.one(&Input::File(self.session.file_argument(b"./default.nix")?))?;
        }
        if self.typed.action == Action::Parse && !self.typed.is_expression && self.typed.inputs.len() > 1 {
            return self.parse_all();
        }
        for input in &self.typed.inputs {
            let input = if self.typed.is_expression {
                Input::Expression(input.clone(), self.session.here()?)
            } else {
                Input::File(self.session.file_argument(input)?)
            };
            self.one(&input)?;
        }
        Ok(())
    }

    fn parse_all(&mut self) -> Result<(), Failure> {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.flags.named_cores().unwrap_or_else(processors);
        for inputs in self.typed.inputs.chunks(batch::FILES) {
            let named: Result<Vec<AbsPath>, Failure> = inputs.iter().map(|input| self.session.file_argument(input)).collect();
            // Otherwise one has no name: those before it come first.
            let files = named.unwrap_or_default();
            let trees = batch::trees(&self.session.machine.shared, &files, threads);
            for (at, input) in inputs.iter().enumerate() {
                match trees.get(at) {
                    Some(Some(tree)) => self.invocation.output.write(tree)?,
                    _ => self.one(&Input::File(self.session.file_argument(input)?))?,
                }
            }
        }
        Ok(())
    }

    fn one(&mut self, input: &Input) -> Result<(), Failure> {
        if self.typed.action == Action::Parse {
            let machine = &self.session.machine;
            let (file, base) = input.register(self.session)?;
            let ast = machine.parse(file, &base)?;
            // NIX: names are resolved too, so that an undefined variable is an error here.
            machine.check_names(&ast)?;
            self.invocation.output.line_of(|out| firn_syntax::print(&ast, out))?;
            ast.recycle();
            file.forget();
            return Ok(());
        }
        let mut root = None;
        if self.typed.attributes.is_empty() {
            return self.answer(input, b"", &mut root);
        }
        self.typed.attributes.iter().try_for_each(|path| self.answer(input, path, &mut root))
    }

    /// Answers for one attribute path: from memory, or by evaluating, the first time the whole file.
    fn answer(&mut self, input: &Input, path: &[u8], root: &mut Option<(Value, Label)>) -> Result<(), Failure> {
        let session = self.session;
        let recalled = match &session.memory {
            Some(memory) if self.is_remembered() => {
                let asked = question::ask(session, input.entry(), path, &self.form(input), false);
                memory.recall(&asked, self.writes())
            }
            _ => Recalled::Unknown(None),
        };
        let mut pending = match recalled {
            Recalled::Known(answer) => return self.tell(&as_texts(answer)),
            Recalled::Unknown(pending) => pending,
        };
        if let Some(memory) = &session.memory {
            memory.prepare(&mut pending, &session.machine);
        }
        let parts = self.evaluated(input, path, root).inspect_err(|_| session.machine.doubt_parts())?;
        let Some(memory) = &session.memory else { return Ok(()) };
        // Nobody waits for the answer to be kept.
        let told = if self.flags.asks_once { self.invocation.output.flush() } else { Ok(()) };
        let needs = if self.typed.action == Action::Instantiate { parts.iter().step_by(2).cloned().collect() } else { vec![] };
        memory.keep_with(Some(&session.machine), pending, texts(&parts), needs);
        told
    }

    /// Evaluates for one attribute path, the first time the whole file, and says the answer.
    fn evaluated(&mut self, input: &Input, path: &[u8], root: &mut Option<(Value, Label)>) -> Result<Vec<Vec<u8>>, Failure> {
        let session = self.session;
        let (value, label) = match *root {
            Some(known) => known,
            None => {
                let (value, label) = labels::apart(|| session.evaluate(input.register(session)?));
                let value = value?;
                self.offer_ahead(value);
                *root.insert((value, label))
            }
        };
        labels::take(label);
        self.selected(path, value)
    }

    /// Lets other threads find the derivations of the attributes after the first.
    fn offer_ahead(&self, root: Value) {
        let ahead = self.session.machine.ahead.as_ref().filter(|_| self.typed.action == Action::Instantiate);
        let Some(ahead) = ahead else { return };
        for path in self.typed.attributes.iter().skip(1).rev().cloned() {
            let arguments = self.session.arguments;
            ahead.offer_task(move |machine| {
                if let Ok((cell, _)) = machine.find_along(&path, arguments, root) {
                    machine.go_ahead(cell, Walk::Package);
                }
            });
        }
    }

    /// A value that is printed while the store is written may refer to what memory does not know of.
    fn is_remembered(&self) -> bool {
        self.typed.action == Action::Instantiate || !self.writes()
    }

    fn writes(&self) -> bool {
        self.session.resolved.writes == Writes::AtOnce
    }

    /// What is done with the value, in words.
    fn form(&self, input: &Input) -> Vec<u8> {
        let Typed { action, form, strict, no_location, .. } = self.typed;
        let stdin = matches!(input, Input::Stdin(..));
        format!("instantiate {action:?} {form:?} strict={strict} no-location={no_location} stdin={stdin}").into_bytes()
    }

    /// Says a remembered answer: the parts that [`Command::selected`] gave.
    fn tell(&mut self, parts: &[Vec<u8>]) -> Result<(), Failure> {
        if self.typed.action != Action::Instantiate {
            return parts.iter().try_for_each(|text| self.invocation.output.write(text));
        }
        for pair in parts.chunks_exact(2) {
            self.derivation(&pair[0], &pair[1])?;
        }
        Ok(())
    }

    /// Evaluates and says the answer, and gives its parts: the text, or derivations and their outputs by turns.
    fn selected(&mut self, path: &[u8], root: Value) -> Result<Vec<Vec<u8>>, Failure> {
        let machine = &self.session.machine;
        let arguments = self.session.arguments;
        let (cell, _) = machine.find_along(path, arguments, root)?;
        let value = machine.force(cell, place_of(cell))?;
        if self.typed.action == Action::Instantiate {
            return self.derivations(value);
        }
        let value = if arguments.is_empty() { value } else { machine.auto_call(arguments, value)? };
        let text = self.print(value)?;
        self.invocation.output.write(&text)?;
        Ok(vec![text])
    }

    fn print(&self, value: Value) -> Result<Vec<u8>, Failure> {
        let machine = &self.session.machine;
        let mut text = Vec::new();
        match self.typed.form {
            Form::Raw => {
                let context = "while generating the nix-instantiate output";
                let string = machine.coerce_to_string(value, Pos::NONE, context, Coercion::INTERPOLATE)?;
                // No newline: the output is the string.
                return Ok(string.as_str().map_or(&[][..], |s| s.bytes()).to_vec());
            }
            Form::Xml => {
                return render::xml(self.session, value, self.typed.strict, !self.typed.no_location);
            }
            Form::Json => text = render::json(self.session, value, self.typed.strict, place_of(value), true)?,
            Form::Plain => {
                if self.typed.strict {
                    machine.force_deep(value)?;
                }
                print_ambiguous(&self.session.machine, value, self.typed.strict, &mut text);
            }
        }
        text.push(b'\n');
        Ok(text)
    }

    fn derivations(&mut self, value: Value) -> Result<Vec<Vec<u8>>, Failure> {
        let machine = &self.session.machine;
        let mut parts = Vec::new();
        for package in machine.packages(value, self.session.arguments)? {
            let drv_path = package.drv_path(machine)?;
            let output = package.output_name(machine)?;
            if output.is_empty() {
                let shown = firn_eval::colored(String::from_utf8_lossy(&drv_path));
                return Err(Failure::error(format!("derivation '{shown}' lacks an 'outputName' attribute")));
            }
            self.session.store.finish().map_err(failed)?;
            self.derivation(&drv_path, &output)?;
            parts.extend([drv_path, output]);
        }
        Ok(parts)
    }

    /// Says one derivation, with its root if the user wants one.
    fn derivation(&mut self, drv_path: &[u8], output: &[u8]) -> Result<(), Failure> {
        let mut line = match &self.typed.root {
            Some(root) => self.add_root(drv_path, root)?.unwrap_or_else(|| drv_path.to_vec()),
            None => drv_path.to_vec(),
        };
        self.warn_of_roots();
        if output != b"out" {
            line.push(b'!');
            line.extend_from_slice(output);
        }
        self.invocation.output.line(&line)
    }

    /// Makes the next root; its path, which is what is printed then. None where the store has no roots.
    fn add_root(&mut self, drv_path: &[u8], root: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.roots += 1;
        let number = if self.roots > 1 { format!("-{}", self.roots) } else { String::new() };
        let name = [root, number.as_bytes()].concat();
        let root = self.session.here()?.join(&name).map_err(settings::host_failure)?;
        let drv = self.session.machine.store_dir().parse(drv_path).map_err(failed)?;
        let made = self.session.store.add_root(&drv, &root).map_err(failed)?;
        Ok(made.then(|| root.as_bytes().to_vec()))
    }

    /// Says once that nothing keeps the result.
    fn warn_of_roots(&mut self) {
        if !self.warned && self.typed.root.is_none() && !self.flags.no_gc_warning {
            let text = "you did not specify '--add-root'; the result might be removed by the garbage collector";
            self.invocation.log.aside(|log| log.warn(text.as_bytes()));
        }
        self.warned = true;
    }
}
