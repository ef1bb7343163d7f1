//! What a command line names: an attribute of a file, an expression or a flake, perhaps with a function applied. Shared by the
//! commands that ask about one value (`eval`, `why`, `watch`).

use super::instantiate::Input;
use crate::arguments::Words;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::installable::{Opened, Opening};
use crate::lock_flags::TypedLocks;
use crate::program::Invocation;
use crate::question;
use crate::session::Session;
use crate::settings;
use firn_host::{AbsPath, Host};
use firn_memo::kept::Asked;
use firn_source::Pos;
use firn_value::Value;

/// The value as typed.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub file: Option<Vec<u8>>,
    pub expression: Option<Vec<u8>>,
    pub installable: Option<Vec<u8>>,
    pub apply: Option<Vec<u8>>,
    locks: TypedLocks,
}

/// The value, ready to be evaluated.
pub(super) enum Subject {
    /// In a flake, which is locked.
    Flake(Box<Opened>),
    /// Anywhere else.
    Plain(Box<Session>, Input),
}

impl Named {
    /// Takes a word that is no flag.
    pub fn take(&mut self, word: Vec<u8>) -> Result<(), Failure> {
        if self.installable.is_some() {
            return Err(Failure::usage("unexpected argument '", &word, "'"));
        }
        self.installable = Some(word);
        Ok(())
    }

    /// Reads a flag; whether it is one that says what is named.
    pub fn read(&mut self, flag: &[u8], words: &mut Words, flags: &mut Flags) -> Result<bool, Failure> {
        let one = |words: &mut Words| words.values::<1>(flag).map(|[value]| Some(value));
        match flag {
            b"--file" | b"-f" => self.file = one(words)?,
            b"--expr" => self.expression = one(words)?,
            b"--apply" => self.apply = one(words)?,
            b"--read-only" => flags.read_only = true,
            b"--offline" | b"--no-net" => flags.offline = true,
            b"--refresh" => flags.refresh = true,
            b"--print-build-logs" | b"-L" | b"--repair" | b"--debugger" => {}
            _ => return self.locks.read(flag, words),
        }
        Ok(true)
    }

    /// Starts a session and finds the entry in it.
    pub fn open(&self, invocation: &Invocation, flags: &mut Flags) -> Result<Subject, Failure> {
        if self.file.is_some() && self.expression.is_some() {
            return Err(Failure::Usage(b"'--file' and '--expr' are exclusive".to_vec()));
        }
        if self.file.is_none() && self.expression.is_none() {
            let named = self.installable.clone().unwrap_or_else(|| b".".to_vec());
            let opening = Opening { flags, locks: &self.locks, allow_missing: false };
            let mut opened = opening.open(invocation, &named)?;
            opened.session.evaluate_ahead(flags)?;
            return Ok(Subject::Flake(Box::new(opened)));
        }
        let log = invocation.log.clone();
        // NIX: an expression on the command line is evaluated purely, a file is not.
        let resolved = settings::resolve(&*invocation.host, flags, self.file.is_none(), &|text| log.warn(text))?;
        if self.file.is_some() && resolved.pure_by_name && resolved.eval.pure_eval {
            return Err(Failure::Usage(b"'--file' is not compatible with '--pure-eval'".to_vec()));
        }
        let mut session = Session::start(&invocation.host, flags, resolved, &invocation.log)?;
        session.evaluate_ahead(flags)?;
        let input = self.input(&session)?;
        Ok(Subject::Plain(Box::new(session), input))
    }

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

    /// The question that is asked about the value, to be answered in a form. None if something in a flake is not pinned.
    pub fn asked(&self, subject: &Subject, form: &[u8]) -> Option<Asked> {
        let (entry, attribute) = match subject {
            Subject::Flake(opened) => (question::flake(&opened.flake)?, opened.fragment.clone().into_bytes()),
            Subject::Plain(_, input) => (input.entry(), self.installable.clone().unwrap_or_default()),
        };
        Some(question::ask(subject.session(), entry, &attribute, form, self.apply.is_some()))
    }

    /// The value, and where it was defined.
    pub fn value(&self, subject: &Subject) -> Result<(Value, Pos), Failure> {
        match subject {
            Subject::Flake(opened) => Ok((self.applied(&opened.session, opened.value()?)?, Pos::NONE)),
            Subject::Plain(session, Input::File(path)) => self.selected(session, session.machine.import(path, Pos::NONE)?),
            Subject::Plain(session, other) => self.selected(session, session.evaluate(other.register(session)?)?),
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

    /// The directory of the flake that is named, if it lies on this machine.
    pub fn local_flake(&self, host: &dyn Host) -> Option<AbsPath> {
        if self.file.is_some() || self.expression.is_some() {
            return None;
        }
        let named = self.installable.as_deref().unwrap_or(b".");
        let reference = named.split(|&byte| byte == b'#' || byte == b'?').next().unwrap_or_default();
        let prefixes: [&[u8]; 4] = [b"git+file://", b"git+file:", b"path://", b"path:"];
        let path = prefixes.iter().find_map(|prefix| reference.strip_prefix(*prefix)).unwrap_or(reference);
        let path = if path.is_empty() { b"." } else { path };
        let tree = host.current_dir().and_then(|here| here.join(path)).ok()?;
        if !host.path_exists(&tree, true).unwrap_or(false) {
            return None;
        }
        // A flake is looked for upwards.
        let has_flake = |dir: &AbsPath| host.path_exists(&dir.child(b"flake.nix"), false).unwrap_or(false);
        Some(std::iter::successors(Some(tree.clone()), AbsPath::parent).find(has_flake).unwrap_or(tree))
    }

    /// What is named, for people.
    pub fn title(&self) -> String {
        let entry = match (&self.file, &self.expression) {
            (Some(file), _) if file == b"-" => "standard input".to_owned(),
            (Some(file), _) => String::from_utf8_lossy(file).into_owned(),
            (None, Some(_)) => "the expression".to_owned(),
            (None, None) => return String::from_utf8_lossy(self.installable.as_deref().unwrap_or(b".")).into_owned(),
        };
        match self.installable.as_deref() {
            None | Some(b"" | b".") => entry,
            Some(path) => format!("{} of {entry}", String::from_utf8_lossy(path)),
        }
    }
}

impl Subject {
    /// The session.
    pub fn session(&self) -> &Session {
        match self {
            Subject::Flake(opened) => &opened.session,
            Subject::Plain(session, _) => session,
        }
    }
}
