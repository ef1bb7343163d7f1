//! `firn instantiate`, which is `nix-instantiate`: print values, syntax trees, or the derivations in an expression.

use super::{help, render};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::program::Invocation;
use crate::session::Session;
use crate::settings;
use crate::statistics;
use crate::stores::failed;
use firn_eval::{Coercion, Walk, place_of, print_ambiguous};
use firn_host::AbsPath;
use firn_source::{Pos, SourceFile};
use firn_value::Value;

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
            Word::Flag(flag) if flag == b"--help" => return help::instantiate(invocation),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                if !flags.read_legacy(&flag, &mut words)? && !typed.read(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    invocation.log.set_verbosity(flags.verbosity);
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
    done.and(closed)?;
    statistics::print(&session.machine, &*command.invocation.host, &command.invocation.log)
}

impl Typed {
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
        if self.typed.from_stdin {
            self.one(self.session.stdin_expression()?)?;
        } else if self.typed.inputs.is_empty() && !self.typed.is_expression {
            self.one(self.session.file_expression(b"./default.nix")?)?;
        }
        for input in &self.typed.inputs {
            let source = if self.typed.is_expression {
                self.session.expression(input)?
            } else {
                self.session.file_expression(input)?
            };
            self.one(source)?;
        }
        Ok(())
    }

    fn one(&mut self, (file, base): (&'static SourceFile, AbsPath)) -> Result<(), Failure> {
        let machine = &self.session.machine;
        if self.typed.action == Action::Parse {
            let ast = machine.parse(file, &base)?;
            // NIX: names are resolved too, so that an undefined variable is an error here.
            machine.check_names(&ast)?;
            self.invocation.output.line_of(|out| firn_syntax::print(&ast, out))?;
            ast.recycle();
            file.forget();
            return Ok(());
        }
        let root = self.session.evaluate((file, base))?;
        if self.typed.attributes.is_empty() {
            return self.selected(b"", root);
        }
        if let Some(ahead) = machine.ahead.as_ref().filter(|_| self.typed.action == Action::Instantiate) {
            for path in self.typed.attributes.iter().skip(1).rev().cloned() {
                let arguments = self.session.arguments;
                ahead.offer_task(move |machine| {
                    if let Ok((cell, _)) = machine.find_along(&path, arguments, root) {
                        machine.go_ahead(cell, Walk::Package);
                    }
                });
            }
        }
        self.typed.attributes.iter().try_for_each(|path| self.selected(path, root))
    }

    fn selected(&mut self, path: &[u8], root: Value) -> Result<(), Failure> {
        let machine = &self.session.machine;
        let arguments = self.session.arguments;
        let (cell, _) = machine.find_along(path, arguments, root)?;
        let value = machine.force(cell, place_of(cell))?;
        if self.typed.action == Action::Instantiate {
            return self.derivations(value);
        }
        let value = if arguments.is_empty() { value } else { machine.auto_call(arguments, value)? };
        self.print(value)
    }

    fn print(&mut self, value: Value) -> Result<(), Failure> {
        let machine = &self.session.machine;
        let mut text = Vec::new();
        match self.typed.form {
            Form::Raw => {
                let context = "while generating the nix-instantiate output";
                let string = machine.coerce_to_string(value, Pos::NONE, context, Coercion::INTERPOLATE)?;
                // No newline: the output is the string.
                return self.invocation.output.write(string.as_str().map_or(&[], |s| s.bytes()));
            }
            Form::Xml => {
                let document = render::xml(self.session, value, self.typed.strict, !self.typed.no_location)?;
                return self.invocation.output.write(&document);
            }
            Form::Json => text = render::json(self.session, value, self.typed.strict, place_of(value), true)?,
            Form::Plain => {
                if self.typed.strict {
                    machine.force_deep(value)?;
                }
                print_ambiguous(value, self.typed.strict, &mut text);
            }
        }
        self.invocation.output.line(&text)
    }

    fn derivations(&mut self, value: Value) -> Result<(), Failure> {
        let machine = &self.session.machine;
        for package in machine.packages(value, self.session.arguments)? {
            let drv_path = package.drv_path(machine)?;
            let output = package.output_name(machine)?;
            if output.is_empty() {
                let shown = firn_eval::colored(String::from_utf8_lossy(&drv_path));
                return Err(Failure::error(format!("derivation '{shown}' lacks an 'outputName' attribute")));
            }
            self.session.store.finish().map_err(failed)?;
            let mut line = match &self.typed.root {
                Some(root) => self.add_root(&drv_path, root)?.unwrap_or(drv_path),
                None => drv_path,
            };
            self.warn_of_roots();
            if output != b"out" {
                line.push(b'!');
                line.extend_from_slice(&output);
            }
            self.invocation.output.line(&line)?;
        }
        Ok(())
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
            self.invocation.log.warn(text.as_bytes());
        }
        self.warned = true;
    }
}
