//! Flags about lock files, as typed; what they mean once a session can read references.

use crate::arguments::Words;
use crate::failure::Failure;
use crate::session::Session;
use firn_builtins::fetch_error;
use firn_flake::{FlakeRef, LockFlags, ParseOptions, parse_input_path};
use firn_host::fetch::{FetchError, RegistryEntry};

/// Flags about lock files.
#[derive(Clone, Debug, Default)]
pub struct TypedLocks {
    recreate: bool,
    no_update: bool,
    no_write: bool,
    no_registries: bool,
    commit: bool,
    reference_file: Option<Vec<u8>>,
    output_file: Option<Vec<u8>>,
    overrides: Vec<[Vec<u8>; 2]>,
    updates: Vec<Vec<u8>>,
    /// Warnings about flags that are going away.
    warnings: Vec<&'static str>,
}

impl TypedLocks {
    /// Reads one flag; whether it is one about lock files.
    pub fn read(&mut self, flag: &[u8], words: &mut Words) -> Result<bool, Failure> {
        match flag {
            b"--recreate-lock-file" => {
                self.recreate = true;
                self.warnings.push(
                    "'--recreate-lock-file' is deprecated and will be removed in a future version; use 'nix flake update' \
                     instead.",
                );
            }
            b"--no-update-lock-file" => self.no_update = true,
            b"--no-write-lock-file" => self.no_write = true,
            b"--no-registries" => {
                self.no_registries = true;
                self.warnings.push("'--no-registries' is deprecated; use '--no-use-registries'");
            }
            b"--commit-lock-file" => self.commit = true,
            b"--update-input" => {
                let [path] = words.values(flag)?;
                self.updates.push(path);
                self.warnings.push(
                    "'--update-input' is a deprecated alias for 'flake update' and will be removed in a future version.",
                );
            }
            b"--override-input" => {
                self.overrides.push(words.values(flag)?);
                self.no_write = true;
            }
            b"--reference-lock-file" => self.reference_file = words.values(flag).map(|[path]| Some(path))?,
            b"--output-lock-file" => self.output_file = words.values(flag).map(|[path]| Some(path))?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `flake update`: every input, or those named, is locked anew.
    pub fn update(&mut self, inputs: &[Vec<u8>]) {
        self.recreate = inputs.is_empty();
        self.updates.extend_from_slice(inputs);
    }

    /// What the flags mean.
    pub fn resolve(&self, session: &Session) -> Result<LockFlags, Failure> {
        let failed = |error: FetchError| Failure::Error(fetch_error(&error));
        let fetcher = firn_builtins::fetcher(&session.machine)?;
        for warning in &self.warnings {
            fetcher.warn(warning);
        }
        let here = session.here()?;
        let file = |path: &Option<Vec<u8>>| {
            path.as_ref().map(|path| here.join(path)).transpose().map_err(crate::settings::host_failure)
        };
        let input_path = |text: &[u8], flag: &str| -> Result<Vec<String>, Failure> {
            let path = parse_input_path(&String::from_utf8_lossy(text)).map_err(failed)?;
            if path.is_empty() {
                let message =
                    format!("{flag} was passed a zero-length input path, which would refer to the flake itself, not an input");
                return Err(Failure::Usage(message.into_bytes()));
            }
            Ok(path)
        };
        let mut flags = LockFlags {
            recreate: self.recreate,
            update: !self.no_update,
            write: !self.no_write,
            use_registries: session.resolved.flake.use_registries && !self.no_registries,
            commit: self.commit,
            commit_summary: session.resolved.flake.commit_summary.clone(),
            reference_file: file(&self.reference_file)?,
            output_file: file(&self.output_file)?,
            ..LockFlags::default()
        };
        for [path, reference] in &self.overrides {
            let options = ParseOptions { base: Some(&here), allow_missing: true, ..ParseOptions::default() };
            let reference = FlakeRef::parse(&fetcher, &String::from_utf8_lossy(reference), options).map_err(failed)?;
            flags.overrides.insert(input_path(path, "--override-input")?, reference);
        }
        for path in &self.updates {
            flags.updates.insert(input_path(path, "--update-input")?);
        }
        Ok(flags)
    }
}

/// `--override-flake`: one name stands for another reference.
pub(crate) fn override_flakes(session: &Session, pairs: &[[Vec<u8>; 2]]) -> Result<(), Failure> {
    let failed = |error: FetchError| Failure::Error(fetch_error(&error));
    let fetcher = firn_builtins::fetcher(&session.machine)?;
    let here = session.here()?;
    for [from, to] in pairs {
        let options = ParseOptions { base: Some(&here), ..ParseOptions::default() };
        let parse = |text: &[u8]| FlakeRef::parse(&fetcher, &String::from_utf8_lossy(text), options).map_err(failed);
        let (from, to) = (parse(from)?, parse(to)?);
        let dir = (!to.dir.is_empty()).then(|| to.dir.clone());
        fetcher.registries.add(RegistryEntry { from: from.input, to: to.input, dir, exact: false });
    }
    Ok(())
}
