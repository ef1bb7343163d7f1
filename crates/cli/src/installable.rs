//! `FLAKE#ATTR`: which flake a command line names, and which of its outputs.

use crate::failure::Failure;
use crate::flags::{Flags, Override};
use crate::lock_flags::TypedLocks;
use crate::program::Invocation;
use crate::session::Session;
use crate::settings::{self, Resolved};
use firn_builtins::fetch_error;
use firn_eval::{Error, ErrorKind, colored};
use firn_flake::{FlakeRef, LockedFlake, ParseOptions, call_flake, lock_flake};
use firn_host::fetch::shown;
use firn_source::{Pos, Symbol};
use firn_value::Value;

/// A locked flake and what followed `#`.
pub struct Opened {
    /// The session in which it was locked.
    pub session: Session,
    /// The reference as typed.
    pub reference: FlakeRef,
    /// The flake.
    pub flake: LockedFlake,
    /// What followed `#`.
    pub fragment: String,
}

/// How a command opens flakes.
pub struct Opening<'a> {
    /// Flags of every command.
    pub flags: &'a mut Flags,
    /// Flags about lock files.
    pub locks: &'a TypedLocks,
    /// The flake need not exist.
    pub allow_missing: bool,
}

/// Called as firn, naming a flake is leave enough to use flakes; Nix's tools want the feature.
pub fn enable_flakes(invocation: &Invocation, flags: &mut Flags) {
    if invocation.tool.is_none() {
        let name = "extra-experimental-features".to_owned();
        flags.overrides.insert(0, Override { name, value: b"flakes".to_vec(), by_option: true });
    }
}

impl Opening<'_> {
    /// Starts a session and locks the flake in it. Settings that the flake asks for and the user grants take effect in
    /// a session of their own.
    pub fn open(self, invocation: &Invocation, text: &[u8]) -> Result<Opened, Failure> {
        enable_flakes(invocation, self.flags);
        let opened = self.lock(invocation, text)?;
        let wanted = &opened.flake.flake.config;
        if wanted.is_empty() {
            return Ok(opened);
        }
        let mut granted = Vec::new();
        for setting in wanted {
            let accepted = opened.session.resolved.flake.accept_config;
            if !accepted && !setting.is_harmless() {
                let parts = (shown(&setting.name), shown("--accept-flake-config"));
                let message =
                    format!("ignoring untrusted flake configuration setting '{}'.\nPass '{}' to trust it", parts.0, parts.1);
                invocation.log.warn(message.as_bytes());
                continue;
            }
            let value = setting.value.clone();
            granted.push(Override { name: setting.name.clone(), value, by_option: true });
        }
        if granted.is_empty() {
            return Ok(opened);
        }
        self.flags.overrides.extend(granted);
        self.lock(invocation, text)
    }

    fn lock(&self, invocation: &Invocation, text: &[u8]) -> Result<Opened, Failure> {
        let log = invocation.log.clone();
        let resolved = settings::resolve(&*invocation.host, self.flags, true, &|text| log.warn(text))?;
        if !self.flags.arguments.is_empty() {
            return Err(Failure::Usage(b"'--arg' and '--argstr' are incompatible with flakes".to_vec()));
        }
        if !resolved.eval.features.flakes {
            return Err(Failure::Error(firn_eval::missing_feature("flakes")));
        }
        self.lock_in(Session::start(&invocation.host, self.flags, resolved, &invocation.log)?, text)
    }

    fn lock_in(&self, session: Session, text: &[u8]) -> Result<Opened, Failure> {
        let fetcher = firn_builtins::fetcher(&session.machine)?;
        let here = session.here()?;
        let options = ParseOptions { base: Some(&here), allow_missing: self.allow_missing, ..ParseOptions::default() };
        let text = String::from_utf8_lossy(without_outputs(text)).into_owned();
        let (reference, fragment) =
            FlakeRef::parse_with_fragment(&fetcher, &text, options).map_err(|e| Failure::Error(fetch_error(&e)))?;
        let locks = self.locks.resolve(&session)?;
        let flake = lock_flake(&session.machine, &reference, &locks)?;
        Ok(Opened { session, reference, flake, fragment })
    }
}

/// What stands before `^`, which names outputs of a derivation.
fn without_outputs(text: &[u8]) -> &[u8] {
    let is_output = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._?=,*".contains(byte);
    match text.iter().rposition(|&byte| byte == b'^') {
        Some(at) if at + 1 < text.len() && text[at + 1..].iter().all(is_output) => &text[..at],
        _ => text,
    }
}

/// The attribute paths that a fragment may mean, the first that exists counts.
fn candidates(fragment: &str, resolved: &Resolved) -> Vec<String> {
    let system = &resolved.eval.system;
    if fragment.is_empty() {
        return vec![format!("packages.{system}.default"), format!("defaultPackage.{system}")];
    }
    if let Some(path) = fragment.strip_prefix('.') {
        return vec![path.to_owned()];
    }
    vec![format!("packages.{system}.{fragment}"), format!("legacyPackages.{system}.{fragment}"), fragment.to_owned()]
}

impl Opened {
    /// The outputs of the flake.
    pub fn outputs(&self) -> Result<Value, Failure> {
        let machine = &self.session.machine;
        let value = call_flake(machine, &self.flake)?;
        let set = machine.force_attrs(value, Pos::NONE, "while parsing cached flake data")?;
        Ok(set.get(Symbol::from("outputs")).unwrap_or(Value::NULL))
    }

    /// The value at the fragment itself, or the whole flake where there is none, as `nix-eval-jobs` takes it.
    pub fn value_at_fragment(&self) -> Result<Value, Failure> {
        let machine = &self.session.machine;
        let path = self.fragment.strip_prefix('.').unwrap_or(&self.fragment);
        if path.is_empty() {
            return Ok(call_flake(machine, &self.flake)?);
        }
        let mut suggestions = Vec::new();
        match self.find(self.outputs()?, path, &mut suggestions)? {
            Some(found) => Ok(machine.force(found, Pos::NONE)?),
            None => Err(self.lacks(&[path.to_owned()], suggestions)),
        }
    }

    /// The value that the fragment means.
    pub fn value(&self) -> Result<Value, Failure> {
        let machine = &self.session.machine;
        let outputs = self.outputs()?;
        let (mut suggestions, paths) = (Vec::new(), candidates(&self.fragment, &self.session.resolved));
        for path in &paths {
            if let Some(found) = self.find(outputs, path, &mut suggestions)? {
                return Ok(machine.force(found, Pos::NONE)?);
            }
        }
        Err(self.lacks(&paths, suggestions))
    }

    fn lacks(&self, paths: &[String], suggestions: Vec<Vec<u8>>) -> Failure {
        let quoted: Vec<String> = paths.iter().map(|path| format!("'{path}'")).collect();
        let list = match quoted.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        };
        let message = format!("flake '{}' does not provide attribute {}", colored(self.reference.show()), colored(list));
        Error::new(ErrorKind::Host, message).suggest(suggestions).into()
    }

    /// Follows an attribute path; none if it leads nowhere, with the names that come close.
    fn find(&self, root: Value, path: &str, suggestions: &mut Vec<Vec<u8>>) -> Result<Option<Value>, Failure> {
        let machine = &self.session.machine;
        let mut cell = root;
        for name in firn_eval::parse_attr_path(path.as_bytes())? {
            let value = machine.force(cell, Pos::NONE)?;
            let Some(set) = value.as_attrs() else { return Ok(None) };
            match set.get(Symbol::intern(&name)) {
                Some(next) => cell = next,
                None => {
                    let names: Vec<&[u8]> = set.iter_by_name().map(|(name, _, _)| name.as_bytes()).collect();
                    let near = firn_text::suggest::nearest(names.iter().copied(), &name);
                    suggestions.extend(near.into_iter().map(<[u8]>::to_vec));
                    return Ok(None);
                }
            }
        }
        Ok(Some(cell))
    }
}
