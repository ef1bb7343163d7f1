//! `firn eval`, which is `nix eval`: the value of an expression or of an attribute of it, printed for people or programs.

use super::subject::{Named, Subject};
use super::{help, render};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::memory::{Recalled, as_texts, texts};
use crate::program::Invocation;
use crate::session::Session;
use crate::settings::host_failure;
use crate::statistics;
use firn_eval::{Coercion, Error, ErrorKind, PrintOptions, colored, try_print_value};
use firn_host::AbsPath;
use firn_source::{Pos, Symbol};
use firn_value::Value;
use std::io::IsTerminal;

/// The command line as typed.
#[derive(Debug, Default)]
pub(super) struct Typed {
    pub named: Named,
    write_to: Option<Vec<u8>>,
    raw: bool,
    json: bool,
    pretty: Option<bool>,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(word) => typed.named.take(word)?,
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
    (flags.keeps_answers, flags.asks_once) = (typed.write_to.is_none(), true);
    typed.check()?;
    let subject = typed.named.open(invocation, &mut flags)?;
    typed.finish(invocation, &subject)
}

impl Typed {
    /// Reads a flag; whether it is one of this command.
    pub fn read(&mut self, flag: &[u8], words: &mut Words, flags: &mut Flags) -> Result<bool, Failure> {
        match flag {
            b"--write-to" => self.write_to = words.values::<1>(flag).map(|[path]| Some(path))?,
            b"--raw" => self.raw = true,
            b"--json" => self.json = true,
            b"--pretty" => self.pretty = Some(true),
            b"--no-pretty" => self.pretty = Some(false),
            _ => return self.named.read(flag, words, flags),
        }
        Ok(true)
    }

    /// Refuses what does not go together.
    pub fn check(&self) -> Result<(), Failure> {
        if self.named.file.is_some() && self.named.expression.is_some() {
            return Err(Failure::Usage(b"'--file' and '--expr' are exclusive".to_vec()));
        }
        if self.raw && self.json {
            return Err(Failure::Usage(b"--raw and --json are mutually exclusive".to_vec()));
        }
        Ok(())
    }

    /// Prints the answer, and ends the run.
    fn finish(&self, invocation: &mut Invocation, subject: &Subject) -> Result<(), Failure> {
        let session = subject.session();
        let printed = self.answer(invocation, subject);
        if let (Err(Failure::Error(error)), None) = (&printed, invocation.tool)
            && error.kind() == ErrorKind::InfiniteRecursion
            && session.resolved.eval.show_trace
        {
            show_cycle(invocation, session);
        }
        let closed = session.store.close().map_err(crate::stores::failed);
        let told = invocation.output.flush();
        session.remember();
        printed.and(closed).and(told)?;
        statistics::print(session, &*invocation.host, &invocation.log)
    }

    fn answer(&self, invocation: &mut Invocation, subject: &Subject) -> Result<(), Failure> {
        let session = subject.session();
        let recalled = match &session.memory {
            // What is written to files is no answer to be remembered.
            Some(memory) if self.write_to.is_none() => {
                let asked = self.named.asked(subject, &self.form());
                asked.map_or(Recalled::Unknown(None), |asked| memory.recall(&asked, false))
            }
            _ => Recalled::Unknown(None),
        };
        let mut pending = match recalled {
            Recalled::Known(answer) => {
                return as_texts(answer).iter().try_for_each(|text| invocation.output.write(text));
            }
            Recalled::Unknown(pending) => pending,
        };
        if let Some(memory) = &session.memory {
            memory.prepare(&mut pending, &session.machine);
        }
        let text = self.named.value(subject).and_then(|(value, pos)| self.print(session, value, pos));
        let text = text.inspect_err(|_| session.machine.doubt_parts())?;
        // Nobody waits for the answer to be kept.
        let told = invocation.output.write(&text).and_then(|()| invocation.output.flush());
        if let Some(memory) = &session.memory {
            memory.keep_with(Some(&session.machine), pending, texts(std::slice::from_ref(&text)), Vec::new());
        }
        told
    }

    /// How the answer is printed, in words.
    pub fn form(&self) -> Vec<u8> {
        let stdin = self.named.file.as_deref() == Some(b"-");
        let words = format!("eval raw={} json={} pretty={} stdin={stdin} ", self.raw, self.json, self.is_pretty());
        let apply = self.named.apply.as_ref().map_or_else(Vec::new, |text| [b"apply ", &text[..]].concat());
        [words.into_bytes(), apply].concat()
    }

    fn is_pretty(&self) -> bool {
        self.json && self.pretty.unwrap_or_else(|| std::io::stdout().is_terminal())
    }

    /// What is printed; nothing where it is written to files instead.
    pub fn print(&self, session: &Session, value: Value, pos: Pos) -> Result<Vec<u8>, Failure> {
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
