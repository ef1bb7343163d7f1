//! What is loaded, and loaded again (`:l`, `:r`).
//!
//! 1. Where nothing that the session looked at has changed, it goes on: what was loaded is in scope again as it was.
//! 2. Otherwise a new session begins, which sees files anew. Values that exist stay, none is taken over; the code of files
//!    whose text is the same is, so that they are neither parsed nor lowered again.
//!
//! A session goes on only if nobody can tell: it has printed nothing while it evaluated (which would be printed again), nothing
//! has failed in it, and it has seen nothing but files and its environment (no fetched tree, no object of the store).

use super::Repl;
use crate::failure::Failure;
use crate::session::Session;
use crate::settings;
use firn_builtins::fetch_error;
use firn_flake::{FlakeRef, LockFlags, ParseOptions, call_flake, lock_flake};
use firn_host::{Host, RealHost, RealWorld};
use firn_value::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Something whose attributes are in scope, to be loaded again by `:r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    File(String),
    Flake(String),
    /// `--file` or `--expr`, and an attribute path.
    Named(Vec<u8>),
}

/// The time, as the world has it.
pub(super) fn now() -> i64 {
    RealHost::new(RealWorld).current_time()
}

impl Repl<'_> {
    /// Loads what the command line names.
    pub(super) fn load_named(&mut self) {
        let flakes = self.typed.file.is_none() && self.typed.expression.is_none();
        let mut named = self.typed.named.clone();
        if named.is_empty() && !flakes {
            named.push(Vec::new());
        }
        for name in named {
            let loaded = match flakes {
                true => Loaded::Flake(String::from_utf8_lossy(&name).into_owned()),
                false => Loaded::Named(name),
            };
            self.load_again(loaded, false);
        }
    }

    /// Loads something, tells what goes wrong, and remembers it in any case.
    fn load_again(&mut self, loaded: Loaded, kept: bool) {
        let shown = match &loaded {
            Loaded::File(path) => path.clone(),
            Loaded::Flake(reference) => format!("flake '{reference}'"),
            Loaded::Named(path) => format!("installable '{}'", String::from_utf8_lossy(path)),
        };
        self.invocation.log.line(format!("Loading {shown}...").as_bytes());
        if let Err(failure) = self.load(&loaded, kept) {
            self.tell_failure(&failure);
            self.remember(loaded, None);
        }
    }

    /// Loads something. If it has been loaded in this session (`kept`), its value is the same.
    pub(super) fn load(&mut self, loaded: &Loaded, kept: bool) -> Result<(), Failure> {
        let known = self.loaded.iter().find(|(earlier, _)| earlier == loaded).and_then(|(_, value)| *value);
        let value = match known.filter(|_| kept) {
            Some(value) => value,
            None => self.evaluate(loaded)?,
        };
        self.add(value)?;
        self.remember(loaded.clone(), Some(value));
        Ok(())
    }

    fn evaluate(&self, loaded: &Loaded) -> Result<Value, Failure> {
        let session = &self.session;
        let machine = &session.machine;
        Ok(match loaded {
            Loaded::File(path) => {
                let value = session.evaluate_file(&session.file_argument(path.as_bytes())?)?;
                machine.auto_call(session.arguments, value)?
            }
            Loaded::Flake(reference) => self.flake(reference)?,
            Loaded::Named(path) => {
                let root = match (&self.typed.file, &self.typed.expression) {
                    (Some(file), _) => session.evaluate_file(&session.file_argument(file)?)?,
                    (None, text) => session.evaluate(session.expression(text.as_deref().unwrap_or(b"{ }"))?)?,
                };
                let path: &[u8] = if path == b"." { b"" } else { path };
                let (cell, _) = machine.find_along(path, session.arguments, root)?;
                machine.auto_call(session.arguments, cell)?
            }
        })
    }

    fn remember(&mut self, loaded: Loaded, value: Option<Value>) {
        self.loaded.retain(|(earlier, _)| *earlier != loaded);
        self.loaded.push((loaded, value));
    }

    /// The outputs of a flake. NIX: its lock file is used and not written.
    fn flake(&self, text: &str) -> Result<Value, Failure> {
        if text.is_empty() {
            let message = "cannot use ':load-flake' without a path specified. (Use '.' for the current working directory.)";
            return Err(Failure::error(message));
        }
        let machine = &self.session.machine;
        let fetcher = firn_builtins::fetcher(machine)?;
        let here = self.session.here()?;
        let options = ParseOptions { base: Some(&here), allow_missing: true, ..ParseOptions::default() };
        let (reference, fragment) =
            FlakeRef::parse_with_fragment(&fetcher, text, options).map_err(|e| Failure::Error(fetch_error(&e)))?;
        let pure = machine.settings().pure_eval;
        let flags = LockFlags { update: false, write: false, use_registries: !pure, ..LockFlags::default() };
        let value = call_flake(machine, &lock_flake(machine, &reference, &flags)?)?;
        let (cell, pos) = machine.find_along(fragment.as_bytes(), self.session.arguments, value)?;
        Ok(machine.force(cell, pos)?)
    }

    /// Whether another session would see and say the same as this one did.
    fn goes_on(&self) -> bool {
        let only_files = !self.session.beyond.load(Ordering::Relaxed)
            && !self.loaded.iter().any(|(loaded, _)| matches!(loaded, Loaded::Flake(_)));
        only_files && !self.failed && self.invocation.host.still_holds(self.since)
    }

    /// Sees files anew: what was read is forgotten, values that exist stay. Whether nothing has changed, and the session went on.
    pub(super) fn refresh(&mut self) -> Result<bool, Failure> {
        if self.goes_on() {
            return Ok(true);
        }
        self.since = now();
        let host = Arc::new(RealHost::new(RealWorld));
        let log = self.invocation.log.clone();
        let mut resolved = settings::resolve(&*host, &self.flags, false, &|_| ())?;
        resolved.eval.show_trace = self.show_trace;
        self.session = Session::start_with(&host, &self.flags, resolved, &log, self.session.ended())?;
        self.invocation.host = host;
        self.failed = false;
        Ok(false)
    }

    pub(super) fn reload(&mut self) -> Result<(), Failure> {
        let kept = self.refresh()?;
        self.scope = super::Scope::default();
        for (loaded, _) in self.loaded.clone() {
            self.load_again(loaded, kept);
        }
        Ok(())
    }
}
