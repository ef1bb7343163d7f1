//! `firn eval`, which is `nix eval`: the value of an expression or of an attribute of it, printed for people or programs.

use super::instantiate::Input;
use super::{help, render};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::installable::Opening;
use crate::lock_flags::TypedLocks;
use crate::memory::{Recalled, as_texts, texts};
use crate::program::Invocation;
use crate::question;
use crate::session::Session;
use crate::settings::{self, host_failure};
use crate::statistics;
use firn_eval::{Coercion, Error, ErrorKind, PrintOptions, colored, try_print_value};
use firn_host::AbsPath;
use firn_memo::kept::Entry;
use firn_source::{Pos, Symbol};
use firn_value::Value;
use std::io::IsTerminal;

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    file: Option<Vec<u8>>,
    expression: Option<Vec<u8>>,
    installable: Option<Vec<u8>>,
    apply: Option<Vec<u8>>,
    write_to: Option<Vec<u8>>,
    raw: bool,
    json: bool,
    pretty: Option<bool>,
    locks: TypedLocks,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(installable) if typed.installable.is_none() => typed.installable = Some(installable),
            Word::Argument(other) => {
                return Err(Failure::usage("unexpected argument '", &other, "'"));
            }
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "eval"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                let known = typed.read(&flag, &mut words, &mut flags)? || flags.read(&flag, &mut words)?;
                if !known {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    invocation.log.set_verbosity(flags.verbosity);
    flags.keeps_answers = typed.write_to.is_none();
    if typed.file.is_some() && typed.expression.is_some() {
        return Err(Failure::Usage(b"'--file' and '--expr' are exclusive".to_vec()));
    }
    if typed.raw && typed.json {
        return Err(Failure::Usage(b"--raw and --json are mutually exclusive".to_vec()));
    }
    if typed.file.is_none() && typed.expression.is_none() {
        let named = typed.installable.clone().unwrap_or_else(|| b".".to_vec());
        let opening = Opening { flags: &mut flags, locks: &typed.locks, allow_missing: false };
        let mut opened = opening.open(invocation, &named)?;
        opened.session.evaluate_ahead(&flags)?;
        let entry = question::flake(&opened.flake).map(|entry| (entry, opened.fragment.clone().into_bytes()));
        let value = || Ok((typed.applied(&opened.session, opened.value()?)?, Pos::NONE));
        return typed.finish(invocation, &opened.session, entry, value);
    }
    let log = invocation.log.clone();
    // NIX: an expression on the command line is evaluated purely, a file is not.
    let resolved = settings::resolve(&*invocation.host, &flags, typed.file.is_none(), &|text| log.warn(text))?;
    if typed.file.is_some() && resolved.pure_by_name && resolved.eval.pure_eval {
        return Err(Failure::Usage(b"'--file' is not compatible with '--pure-eval'".to_vec()));
    }
    let mut session = Session::start(&invocation.host, &flags, resolved, &invocation.log)?;
    session.evaluate_ahead(&flags)?;
    let input = typed.input(&session)?;
    let entry = (input.entry(), typed.installable.clone().unwrap_or_default());
    typed.finish(invocation, &session, Some(entry), || typed.value(&session, &input))
}

impl Typed {
    fn read(&mut self, flag: &[u8], words: &mut Words, flags: &mut Flags) -> Result<bool, Failure> {
        let one = |words: &mut Words| words.values::<1>(flag).map(|[value]| Some(value));
        match flag {
            b"--file" | b"-f" => self.file = one(words)?,
            b"--expr" => self.expression = one(words)?,
            b"--apply" => self.apply = one(words)?,
            b"--write-to" => self.write_to = one(words)?,
            b"--raw" => self.raw = true,
            b"--json" => self.json = true,
            b"--pretty" => self.pretty = Some(true),
            b"--no-pretty" => self.pretty = Some(false),
            b"--read-only" => flags.read_only = true,
            b"--offline" | b"--no-net" => flags.offline = true,
            b"--refresh" => flags.refresh = true,
            b"--print-build-logs" | b"-L" | b"--repair" | b"--debugger" => {}
            _ => return self.locks.read(flag, words),
        }
        Ok(true)
    }

    /// What the command line names.
    fn input(&self, session: &Session) -> Result<Input, Failure> {
        Ok(match (&self.file, &self.expression) {
            (Some(file), _) if file == b"-" => {
                let (text, base) = session.stdin()?;
                Input::Stdin(text, base)
            }
            (Some(file), _) => Input::File(session.file_argument(file)?),
            (None, Some(text)) => Input::Expression(text.clone(), session.here()?),
            (None, None) => Input::Expression(b"{ }".to_vec(), session.here()?),
        })
    }

    /// The value that the command line names, and where it was defined.
    fn value(&self, session: &Session, input: &Input) -> Result<(Value, Pos), Failure> {
        match input {
            Input::File(path) => self.selected(session, session.machine.import(path, Pos::NONE)?),
            other => self.selected(session, session.evaluate(other.register(session)?)?),
        }
    }

    fn selected(&self, session: &Session, root: Value) -> Result<(Value, Pos), Failure> {
        let machine = &session.machine;
        // What follows `^` names outputs, which do not change the value.
        let path = self.installable.as_deref().unwrap_or_default().split(|&b| b == b'^').next().unwrap_or_default();
        let path = if path == b"." { b"" } else { path };
        let (cell, pos) = machine.find_along(path, session.arguments, root)?;
        let value = machine.force(cell, pos)?;
        Ok((self.applied(session, value)?, pos))
    }

    /// The value, or what `--apply` makes of it.
    fn applied(&self, session: &Session, value: Value) -> Result<Value, Failure> {
        let Some(text) = &self.apply else { return Ok(value) };
        let function = session.evaluate(session.expression(text)?)?;
        Ok(session.machine.call(function, &[value], Pos::NONE)?)
    }

    /// Prints the answer, which `value` finds unless it is remembered, and ends the run.
    fn finish(
        &self,
        invocation: &mut Invocation,
        session: &Session,
        entry: Option<(Entry, Vec<u8>)>,
        value: impl FnOnce() -> Result<(Value, Pos), Failure>,
    ) -> Result<(), Failure> {
        let printed = self.answer(invocation, session, entry, value);
        if let (Err(Failure::Error(error)), None) = (&printed, invocation.tool)
            && error.kind() == ErrorKind::InfiniteRecursion
            && session.resolved.eval.show_trace
        {
            show_cycle(invocation, session);
        }
        let closed = session.store.close().map_err(crate::stores::failed);
        session.remember();
        printed.and(closed)?;
        statistics::print(session, &*invocation.host, &invocation.log)
    }

    fn answer(
        &self,
        invocation: &mut Invocation,
        session: &Session,
        entry: Option<(Entry, Vec<u8>)>,
        value: impl FnOnce() -> Result<(Value, Pos), Failure>,
    ) -> Result<(), Failure> {
        let recalled = match (&session.memory, entry) {
            // What is written to files is no answer to be remembered.
            (Some(memory), Some((entry, attribute))) if self.write_to.is_none() => {
                memory.recall(&question::ask(session, entry, &attribute, &self.form(), self.apply.is_some()), false)
            }
            _ => Recalled::Unknown(None),
        };
        let pending = match recalled {
            Recalled::Known(answer) => {
                return as_texts(answer).iter().try_for_each(|text| invocation.output.write(text));
            }
            Recalled::Unknown(pending) => pending,
        };
        let (value, pos) = value()?;
        let text = self.print(session, value, pos)?;
        if let Some(memory) = &session.memory {
            memory.keep(pending, texts(std::slice::from_ref(&text)), Vec::new());
        }
        invocation.output.write(&text)
    }

    /// How the answer is printed, in words.
    fn form(&self) -> Vec<u8> {
        let stdin = self.file.as_deref() == Some(b"-");
        let words = format!("eval raw={} json={} pretty={} stdin={stdin} ", self.raw, self.json, self.is_pretty());
        let apply = self.apply.as_ref().map_or_else(Vec::new, |text| [b"apply ", &text[..]].concat());
        [words.into_bytes(), apply].concat()
    }

    fn is_pretty(&self) -> bool {
        self.json && self.pretty.unwrap_or_else(|| std::io::stdout().is_terminal())
    }

    /// What is printed; nothing where it is written to files instead.
    fn print(&self, session: &Session, value: Value, pos: Pos) -> Result<Vec<u8>, Failure> {
        let machine = &session.machine;
        if let Some(path) = &self.write_to {
            let path = session.here()?.join(path).map_err(host_failure)?;
            if machine.host().path_exists(&path, false).unwrap_or(false) {
                return Err(Failure::error(format!("path '{}' already exists", colored(&path))));
            }
            return write(session, value, pos, &path).map(|()| Vec::new());
        }
        if self.raw {
            let context = "while generating the eval command output";
            let string = machine.coerce_to_string(value, Pos::NONE, context, Coercion::INTERPOLATE)?;
            return Ok(string.as_str().map_or(&[][..], |s| s.bytes()).to_vec());
        }
        let mut text = Vec::new();
        if self.json {
            text = render::json(session, value, true, pos, false)?;
            if self.is_pretty() {
                text = render::indented(&text);
            }
        } else {
            let options = PrintOptions { force: true, derivation_paths: true, ..Default::default() };
            try_print_value(machine, value, &options, &mut text)?;
        }
        text.push(b'\n');
        Ok(text)
    }
}

/// Tells which definitions need each other, before the error that Nix has for it.
fn show_cycle(invocation: &Invocation, session: &Session) {
    let places = session.machine.cycle();
    if places.is_empty() {
        return;
    }
    invocation.log.line(b"these definitions need each other:");
    for pos in places {
        let Some(at) = pos.resolve() else { continue };
        let line = at.file.line(at.line).unwrap_or_default();
        let shown = [b"  ", &at.show()[..], b": ", String::from_utf8_lossy(&line).trim().as_bytes()].concat();
        invocation.log.line(&shown);
    }
}

/// Writes a string as a file and a set as a directory of such.
fn write(session: &Session, cell: Value, pos: Pos, path: &AbsPath) -> Result<(), Failure> {
    let machine = &session.machine;
    let value = machine.force(cell, pos)?;
    let told =
        |error: std::io::Error| Failure::error(format!("writing '{}': {}", colored(path), firn_host::Errno::from(error)));
    if let Some(string) = value.as_str() {
        return std::fs::write(path.as_path(), string.bytes()).map_err(told);
    }
    let Some(set) = value.as_attrs() else {
        let place =
            pos.resolve().map_or_else(|| "«none»:0".to_owned(), |at| String::from_utf8_lossy(&at.show()).into_owned());
        let message = format!("value at '{}' is not a string or an attribute set", colored(place));
        return Err(Error::new(ErrorKind::Type, message).into());
    };
    std::fs::create_dir(path.as_path()).map_err(told)?;
    for (name, pos, cell) in set.iter_by_name() {
        write_entry(session, name, pos, cell, path).map_err(|failure| match failure {
            Failure::Error(e) => e.trace(pos, format!("while evaluating the attribute '{}'", colored(name))).into(),
            other => other,
        })?;
    }
    Ok(())
}

fn write_entry(session: &Session, name: Symbol, pos: Pos, cell: Value, dir: &AbsPath) -> Result<(), Failure> {
    let bytes = name.as_bytes();
    // Nix refuses the first two; the others would leave the directory just the same.
    if matches!(bytes, b"." | b"..") || bytes.is_empty() || bytes.contains(&b'/') {
        return Err(Failure::error(format!("invalid file name '{}'", colored(name))));
    }
    write(session, cell, pos, &dir.join(bytes).map_err(host_failure)?)
}
