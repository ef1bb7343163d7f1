//! Flags as typed: those that every command has, kept as they were written. What they mean is decided in
//! [`settings`](crate::settings).

use crate::arguments::Words;
use crate::failure::Failure;
use crate::settings::table::{self, Kind, SETTINGS};
use firn_host::SearchEntry;
use std::collections::BTreeMap;

/// Where the value of an automatic argument comes from.
#[derive(Clone, Debug)]
pub enum Argument {
    /// `--arg`: an expression.
    Expression(Vec<u8>),
    /// `--argstr`: the string itself.
    Text(Vec<u8>),
    /// `--arg-from-file`: the content of a file.
    File(Vec<u8>),
    /// `--arg-from-stdin`.
    Stdin,
}

/// A setting given on the command line.
#[derive(Clone, Debug)]
pub struct Override {
    /// The setting's name, `extra-` included.
    pub name: String,
    /// Its value.
    pub value: Vec<u8>,
    /// `--option` forgives: a bad value is a warning, an unknown name too.
    pub by_option: bool,
}

/// The flags that every command takes.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// Settings in the order they were given.
    pub overrides: Vec<Override>,
    /// Arguments for functions that are called automatically.
    pub arguments: BTreeMap<Vec<u8>, Argument>,
    /// `-I`.
    pub include: Vec<SearchEntry>,
    /// `--impure`.
    pub impure: bool,
    /// `-v` less `--quiet`.
    pub verbosity: i32,
    /// `--eval-store`.
    pub eval_store: Option<Vec<u8>>,
    /// Nothing is remembered within the run, whatever the user says.
    pub without_memo: bool,
    /// `--no-gc-warning`.
    pub no_gc_warning: bool,
    /// `--readonly-mode`, `--read-only`, `--dry-run`.
    pub read_only: bool,
    /// The command writes derivations as they are made.
    pub writes_at_once: bool,
    /// `--offline`: nothing is asked of the network.
    pub offline: bool,
    /// `--refresh`: earlier downloads are not taken as current.
    pub refresh: bool,
    /// Where everything that evaluation sees of the outside is noted, fetched trees included, for people who want to know.
    pub recording: Option<std::sync::Arc<std::sync::Mutex<Vec<firn_host::Observation>>>>,
    /// The command may load its files again, and wants to know whether it must.
    pub reloads: bool,
    /// What `firn profile` wants to know of the command.
    pub profile: Option<crate::profile::Request>,
    /// `--override-flake`.
    pub override_flakes: Vec<[Vec<u8>; 2]>,
    /// The command asks whole questions, whose answers can be remembered.
    pub keeps_answers: bool,
    /// It asks one and ends.
    pub asks_once: bool,
    /// Answers are kept however little time they took.
    pub keeps_cheap_answers: bool,
    /// `--memo`.
    pub memo: Option<Vec<u8>>,
    /// `--remote`.
    pub remotes: Vec<Vec<u8>>,
    /// Features that flags of settings need.
    pub needs: Vec<&'static str>,
}

/// Above this, `-v` says nothing more.
const LOUDEST: i32 = 7;
/// What Nix calls the level of information, the one to begin with.
const INFORMATION: i32 = 3;

impl Flags {
    /// No flags yet.
    pub fn new() -> Flags {
        Flags { verbosity: INFORMATION, ..Flags::default() }
    }

    /// Reads one flag; whether it is one that every command has.
    pub fn read(&mut self, flag: &[u8], words: &mut Words) -> Result<bool, Failure> {
        match flag {
            b"--verbose" | b"-v" => self.verbosity = (self.verbosity + 1).min(LOUDEST),
            b"--quiet" => self.verbosity = (self.verbosity - 1).max(0),
            b"--debug" => self.verbosity = LOUDEST - 1,
            b"--impure" => self.impure = true,
            b"--option" => {
                let [name, value] = words.values(flag)?;
                self.set(&String::from_utf8_lossy(&name), value, true);
            }
            b"--log-format" => {
                let [format] = words.values(flag)?;
                check_log_format(&format)?;
            }
            b"--max-jobs" | b"-j" => {
                let [jobs] = words.values(flag)?;
                self.set("max-jobs", jobs, false);
            }
            b"--arg" => self.argument(words.values(flag)?, Argument::Expression),
            b"--argstr" => self.argument(words.values(flag)?, Argument::Text),
            b"--arg-from-file" => self.argument(words.values(flag)?, Argument::File),
            b"--arg-from-stdin" => {
                let [name] = words.values(flag)?;
                self.arguments.insert(name, Argument::Stdin);
            }
            b"--include" | b"-I" => {
                let [entry] = words.values(flag)?;
                self.include.push(SearchEntry::parse(&entry));
            }
            b"--eval-store" => {
                let [store] = words.values(flag)?;
                self.eval_store = Some(store);
            }
            b"--memo" => {
                let [mode] = words.values(flag)?;
                self.memo = Some(mode);
            }
            b"--remote" => {
                let [url] = words.values(flag)?;
                self.remotes.push(url);
            }
            b"--override-flake" => self.override_flakes.push(words.values(flag)?),
            _ => return self.read_setting(flag, words),
        }
        Ok(true)
    }

    /// The flags that the older tools (`nix-instantiate`) have besides.
    pub fn read_legacy(&mut self, flag: &[u8], words: &mut Words) -> Result<bool, Failure> {
        match flag {
            b"--no-build-output" | b"-Q" => {}
            b"--keep-failed" | b"-K" => self.set("keep-failed", b"true".to_vec(), false),
            b"--keep-going" | b"-k" => self.set("keep-going", b"true".to_vec(), false),
            b"--fallback" => self.set("fallback", b"true".to_vec(), false),
            b"--readonly-mode" => self.read_only = true,
            b"--no-gc-warning" => self.no_gc_warning = true,
            _ => return self.read(flag, words),
        }
        Ok(true)
    }

    /// How many threads evaluate: what `--cores` says, where 0 stands for all processors; one if it is not given.
    ///
    /// The setting of that name is the builders' and not looked at, but a user who types the flag means the program.
    pub fn evaluation_cores(&self) -> usize {
        self.named_cores().unwrap_or(1)
    }

    /// As many threads as the command line says.
    pub fn named_cores(&self) -> Option<usize> {
        let given = self.overrides.iter().rev().find(|given| given.name == "cores" && !given.by_option)?;
        match std::str::from_utf8(&given.value).ok()?.trim().parse().ok()? {
            0 => Some(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
            cores => Some(cores),
        }
    }

    fn argument(&mut self, [name, value]: [Vec<u8>; 2], make: fn(Vec<u8>) -> Argument) {
        self.arguments.insert(name, make(value));
    }

    fn set(&mut self, name: &str, value: Vec<u8>, by_option: bool) {
        self.overrides.push(Override { name: name.to_owned(), value, by_option });
    }

    /// Every setting is a flag: `--name value`, `--extra-name value`, or `--name` and `--no-name` for Booleans.
    fn read_setting(&mut self, flag: &[u8], words: &mut Words) -> Result<bool, Failure> {
        let Some(name) = flag.strip_prefix(b"--").and_then(|name| std::str::from_utf8(name).ok()) else {
            return Ok(false);
        };
        if let Some(mode) = match name {
            "sandbox" => Some("true"),
            "no-sandbox" => Some("false"),
            "relaxed-sandbox" => Some("relaxed"),
            _ => None,
        } {
            self.set("sandbox", mode.as_bytes().to_vec(), false);
            return Ok(true);
        }
        let (base, negated) = match (table::find(name), name.strip_prefix("no-"), name.strip_prefix("extra-")) {
            (Some(index), _, _) => (index, false),
            (None, Some(rest), _) if is_named(rest, Kind::Bool) => (table::find(rest).unwrap_or_default(), true),
            (None, _, Some(rest)) if is_named(rest, Kind::List) => (table::find(rest).unwrap_or_default(), false),
            _ => return Ok(false),
        };
        let setting = &SETTINGS[base];
        self.needs.extend(setting.needs);
        // NIX: an older name of a setting stands for the last flag made of it, which for Booleans is the negative one and for
        // lists the one that appends.
        let older = setting.aliases.contains(&name);
        match setting.kind {
            Kind::Bool => {
                let value: &[u8] = if negated || older { b"false" } else { b"true" };
                self.set(setting.name, value.to_vec(), false);
            }
            kind => {
                let [value] = words.values(flag)?;
                let appends = kind == Kind::List && (older || table::find(name).is_none());
                let name = if appends { format!("extra-{}", setting.name) } else { setting.name.to_owned() };
                self.set(&name, value, false);
            }
        }
        Ok(true)
    }
}

fn is_named(name: &str, kind: Kind) -> bool {
    SETTINGS.iter().any(|setting| setting.name == name && setting.kind == kind)
}

fn check_log_format(format: &[u8]) -> Result<(), Failure> {
    match format {
        b"raw" | b"raw-with-logs" | b"internal-json" | b"bar" | b"bar-with-logs" => Ok(()),
        _ => {
            let shown = String::from_utf8_lossy(format);
            Err(Failure::error(format!("option 'log-format' has an invalid value '{}'", firn_eval::colored(shown))))
        }
    }
}
