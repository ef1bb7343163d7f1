//! `firn flake`: what a flake is (`metadata`), has (`show`) and depends on (`lock`, `update`).

use super::{flake_show, help};
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::installable::{Opened, Opening};
use crate::lock_flags::TypedLocks;
use crate::program::Invocation;
use firn_builtins::{Moment, fetch_error};
use firn_flake::{Edge, LockFile, metadata_json, print_input_path};
use firn_host::fetch::{Attr, FetchError};
use std::collections::BTreeSet;
use std::io::IsTerminal;

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    arguments: Vec<Vec<u8>>,
    flake: Option<Vec<u8>>,
    json: bool,
    pretty: Option<bool>,
    show: flake_show::Options,
    locks: TypedLocks,
}

/// Which command it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Command {
    Metadata,
    Show,
    Lock,
    Update,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut command = None;
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(name) if command.is_none() => {
                command = Some(match &name[..] {
                    b"metadata" | b"info" => Command::Metadata,
                    b"show" => Command::Show,
                    b"lock" => Command::Lock,
                    b"update" => Command::Update,
                    _ => return Err(Failure::usage("'", &name, "' is not a recognised command")),
                });
            }
            Word::Argument(argument) => typed.arguments.push(argument),
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "flake"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                let known = typed.read(&flag, &mut words, &mut flags)? || flags.read(&flag, &mut words)?;
                if !known {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    let Some(command) = command else { return Err(Failure::Usage(b"no subcommand specified".to_vec())) };
    invocation.log.set_verbosity(flags.verbosity);
    let flake = typed.flake_named(command)?;
    let opened = Opening { flags: &mut flags, locks: &typed.locks, allow_missing: false }.open(invocation, &flake)?;
    if !opened.fragment.is_empty() {
        let parts = (opened.fragment.as_bytes(), "' in flake reference");
        return Err(Failure::usage("unexpected fragment '", parts.0, parts.1));
    }
    let told = match command {
        Command::Metadata if typed.json => typed.print_json(invocation, &opened),
        Command::Metadata => metadata(invocation, &opened),
        Command::Show => typed.show(invocation, &opened),
        Command::Lock | Command::Update => Ok(()),
    };
    told.and(opened.session.store.close().map_err(crate::stores::failed))
}

fn failed(error: FetchError) -> Failure {
    Failure::Error(fetch_error(&error))
}

impl Typed {
    fn read(&mut self, flag: &[u8], words: &mut Words, flags: &mut Flags) -> Result<bool, Failure> {
        match flag {
            b"--json" => self.json = true,
            b"--pretty" => self.pretty = Some(true),
            b"--no-pretty" => self.pretty = Some(false),
            b"--legacy" => self.show.legacy = true,
            b"--all-systems" => self.show.all_systems = true,
            b"--flake" => self.flake = words.values(flag).map(|[flake]| Some(flake))?,
            b"--offline" | b"--no-net" => flags.offline = true,
            b"--refresh" => flags.refresh = true,
            _ => return self.locks.read(flag, words),
        }
        Ok(true)
    }

    /// The flake that the command line names. `update` takes names of inputs and has a flag for the flake.
    fn flake_named(&mut self, command: Command) -> Result<Vec<u8>, Failure> {
        let here = b".".to_vec();
        if command == Command::Update {
            let inputs = std::mem::take(&mut self.arguments);
            self.locks.update(&inputs);
            return Ok(self.flake.take().unwrap_or(here));
        }
        match &self.arguments[..] {
            [] => Ok(here),
            [flake] => Ok(flake.clone()),
            [_, other, ..] => Err(Failure::usage("unexpected argument '", other, "'")),
        }
    }

    fn json_text(&self, json: &firn_text::json::Tree) -> Result<Vec<u8>, Failure> {
        let pretty = self.pretty.unwrap_or_else(|| std::io::stdout().is_terminal());
        json.print(pretty.then_some(2)).map_err(Failure::error)
    }

    fn print_json(&self, invocation: &mut Invocation, opened: &Opened) -> Result<(), Failure> {
        let (machine, allow) = (&opened.session.machine, opened.session.resolved.fetch.allow_dirty_locks);
        let json = metadata_json(&opened.flake, machine.store_dir(), allow).map_err(failed)?;
        let text = self.json_text(&json)?;
        invocation.output.line(&text)
    }

    fn show(&self, invocation: &mut Invocation, opened: &Opened) -> Result<(), Failure> {
        match flake_show::run(invocation, opened, &self.show, self.json)? {
            Some(json) => {
                let text = self.json_text(&json)?;
                invocation.output.line(&text)
            }
            None => Ok(()),
        }
    }
}

/// `2026-01-31 23:59:59`
fn date_and_time(seconds: u64) -> String {
    let Moment { date: (year, month, day), time: (hour, minute, second) } = Moment::of(seconds);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Metadata for people.
fn metadata(invocation: &mut Invocation, opened: &Opened) -> Result<(), Failure> {
    let flake = &opened.flake.flake;
    let input = &flake.locked.input;
    let dir = opened.session.machine.store_dir();
    let mut say = |name: &str, value: &str| {
        let text = format!("\x1b[1m{name}:\x1b[0m{}{value}", " ".repeat(14usize.saturating_sub(name.len())));
        invocation.tell(text.as_bytes())
    };
    say("Resolved URL", &flake.resolved.to_url().map_err(failed)?)?;
    if input.is_locked() {
        say("Locked URL", &flake.locked.to_url().map_err(failed)?)?;
    }
    if let Some(description) = &flake.description {
        say("Description", &String::from_utf8_lossy(description))?;
    }
    let (object, _) = dir.split(flake.path.as_bytes()).map_err(crate::stores::failed)?;
    say("Path", &String::from_utf8_lossy(&dir.print(&object)))?;
    for rev in [input.rev_text().map_err(failed)?, input.text("dirtyRev").map(str::to_owned)].into_iter().flatten() {
        say("Revision", &rev)?;
    }
    if let Some(count) = input.attrs.get("revCount").map(Attr::number).transpose().map_err(failed)?.flatten() {
        say("Revisions", &count.to_string())?;
    }
    if let Some(time) = input.last_modified().map_err(failed)? {
        say("Last modified", &date_and_time(time))?;
    }
    let allow = opened.session.resolved.fetch.allow_dirty_locks;
    if let Some(fingerprint) = firn_flake::fingerprint(&opened.flake, allow).map_err(failed)? {
        say("Fingerprint", &fingerprint.to_string(firn_store::hash::Format::Base16, false))?;
    }
    let locks = &opened.flake.lock_file;
    if !locks.nodes[0].inputs.is_empty() {
        invocation.tell(b"\x1b[1mInputs:\x1b[0m")?;
    }
    tree(invocation, locks, 0, "", &mut BTreeSet::from([0]))
}

/// The inputs of a node, each with its own below it the first time it is met.
fn tree(
    invocation: &mut Invocation,
    locks: &LockFile,
    node: usize,
    prefix: &str,
    visited: &mut BTreeSet<usize>,
) -> Result<(), Failure> {
    let inputs = &locks.nodes[node].inputs;
    for (index, (id, edge)) in inputs.iter().enumerate() {
        let last = index + 1 == inputs.len();
        let head = format!("{prefix}{}\x1b[1m{id}\x1b[0m", if last { "└───" } else { "├───" });
        match edge {
            Edge::Follows(path) => {
                let text = format!("{head} follows input '{}'", print_input_path(path));
                invocation.tell(text.as_bytes())?;
            }
            Edge::Node(next) => {
                let Some(locked) = &locks.nodes[*next].locked else { continue };
                let time = locked.locked.input.last_modified().map_err(failed)?;
                let time = time.map_or_else(String::new, |time| format!(" ({})", date_and_time(time)));
                let text = format!("{head}: {}{time}", locked.locked.show());
                invocation.tell(text.as_bytes())?;
                if visited.insert(*next) {
                    let prefix = format!("{prefix}{}", if last { "    " } else { "│   " });
                    tree(invocation, locks, *next, &prefix, visited)?;
                }
            }
        }
    }
    Ok(())
}
