//! The program: which tool it is called as, the thread it runs on, and how it ends.

use crate::arguments::{Word, Words};
use crate::commands::{
    affected, cache, compare, completions, doctor, eval, flake, graph, help, instantiate, jobs, manual, profile, repl, watch, why,
};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::interrupt;
use crate::log::Log;
use crate::output::Output;
use firn_eval::{Error, ErrorKind};
use firn_host::{Host, RealHost, RealWorld};
use firn_memo::doubt::Reasons;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::sync::Arc;

/// Evaluation recurses deeply; beyond this the stack grows in segments.
pub(crate) const STACK: usize = 64 << 20;

/// What a command is given.
pub struct Invocation {
    /// How the user called the program, for the pointer to the help.
    pub called: Vec<u8>,
    /// The tool whose `--version` is asked for; firn itself if none.
    pub tool: Option<&'static str>,
    /// The world outside.
    pub host: Arc<RealHost>,
    /// Standard error.
    pub log: Arc<Log>,
    /// Standard output.
    pub output: Output,
    /// The program begins again without the memo, because what it showed was in doubt (`memo::doubt`).
    pub without_memo: bool,
}

impl Invocation {
    /// The flags to begin with.
    fn flags(&self) -> Flags {
        Flags { without_memo: self.without_memo, ..Flags::new() }
    }

    /// A line for people on standard output: colours only where there is a terminal for them.
    pub fn tell(&mut self, line: &[u8]) -> Result<(), Failure> {
        let plain = self.log.is_plain() || !std::io::IsTerminal::is_terminal(&std::io::stdout());
        let text = firn_source::terminal::filter_escapes(line, plain);
        self.output.line(&text)
    }
}

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let words: Vec<Vec<u8>> = std::env::args_os().map(OsStringExt::into_vec).collect();
    let thread = std::thread::Builder::new().name("firn".to_owned()).stack_size(STACK);
    let (waiting, listening) = interrupt::begin();
    let started = thread.spawn(move || {
        let _listening = listening;
        run(words)
    });
    if started.is_ok() {
        waiting.wait();
    }
    match started.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => ExitCode::from(status),
        // The panic has been told; this status is not one that evaluation gives.
        Ok(Err(_)) => ExitCode::from(101),
        Err(error) => {
            eprintln!("error: cannot start a thread: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: Vec<Vec<u8>>) -> u8 {
    let host = Arc::new(RealHost::new(RealWorld));
    let log = Arc::new(Log::new(&*host));
    // For tests: races that are rare on an idle machine happen often.
    let number = |name: &[u8]| host.env(name).and_then(|text| std::str::from_utf8(&text).ok()?.parse::<u64>().ok());
    if let Some(seed) = number(b"FIRN_PERTURB") {
        firn_value::perturb_schedule(seed);
        firn_host::perturb_preparation(seed);
    }
    // For tests: calls of small programs are as expensive as those of large ones.
    if let Some(steps) = number(b"FIRN_MEMO_STEPS") {
        firn_memo::expensive_from(steps);
    }
    let mut words = words.into_iter();
    let called = words.next().unwrap_or_else(|| b"firn".to_vec());
    let mut invocation = Invocation { called: called.clone(), tool: None, host, log, output: Output::default(), without_memo: false };
    let mut result = dispatch(&mut invocation, Words::new(words.clone()));
    if let Err(Failure::Error(error)) = &result
        && firn_memo::doubt::is_answered()
    {
        // What it shows may be in doubt.
        invocation.log.rehearse(&error.diagnostic());
    }
    if firn_memo::doubt::must_begin_again() {
        if firn_memo::doubt::begin_again() {
            // Then nothing that is shown can be in doubt.
            firn_eval::let_functions_wait();
        }
        invocation.output.begin_again();
        invocation.log.begin_again();
        invocation = Invocation { called, tool: None, without_memo: true, ..invocation };
        result = dispatch(&mut invocation, Words::new(words));
    }
    // Whatever became of it: the user did not wait for the end.
    if firn_eval::is_interrupted() {
        result = Err(Failure::Error(firn_eval::interrupted()));
    }
    // What was printed before a failure stays printed.
    let result = result.and(invocation.output.flush()).or_else(|failure| invocation.output.flush().and(Err(failure)));
    let status = result.map_or_else(|failure| tell(&invocation, failure), |()| 0);
    // Values live as long as the process; taking tables apart one by one would only cost time.
    std::process::exit(status.into())
}

/// Tells of a failure; the exit status.
fn tell(invocation: &Invocation, failure: Failure) -> u8 {
    match failure {
        Failure::Exit(status) => status,
        Failure::Error(error) => {
            if error.kind() != ErrorKind::Interrupted || interrupt::is_first_to_tell() {
                invocation.log.say(&error.diagnostic());
            }
            // What Nix does not tell is told only where nobody expects Nix.
            if invocation.tool.is_none() {
                let notes = crate::definitions::notes(error.message(), &*invocation.host);
                notes.iter().for_each(|line| invocation.log.line(line));
            }
            if error.kind() == ErrorKind::Usage {
                point_to_help(invocation);
            }
            error.status()
        }
        Failure::Usage(message) => {
            invocation.log.say(&Error::new(ErrorKind::Usage, message).diagnostic());
            point_to_help(invocation);
            1
        }
    }
}

fn point_to_help(invocation: &Invocation) {
    let text = [b"Try '", &invocation.called[..], b" --help' for more information."].concat();
    invocation.log.line(&text);
}

fn dispatch(invocation: &mut Invocation, words: Words) -> Result<(), Failure> {
    let name = invocation.called.rsplit(|&b| b == b'/').next().unwrap_or_default();
    match name {
        b"nix-instantiate" => {
            invocation.tool = Some("nix-instantiate");
            interrupt::listen();
            firn_memo::doubt::begin_again_for(Reasons::All);
            let flags = invocation.flags();
            instantiate::run(invocation, words, flags)
        }
        b"nix-eval-jobs" => {
            invocation.tool = Some("nix-eval-jobs");
            interrupt::listen();
            firn_memo::doubt::begin_again_for(Reasons::Answers);
            let flags = invocation.flags();
            jobs::run(invocation, words, flags)
        }
        b"nix" => {
            invocation.tool = Some("nix");
            command(invocation, words)
        }
        _ => command(invocation, words),
    }
}

/// A command, given what follows its name and the flags before it.
type Run = fn(&mut Invocation, Words, Flags) -> Result<(), Failure>;

/// Reads flags up to the command's name.
fn command(invocation: &mut Invocation, mut words: Words) -> Result<(), Failure> {
    let mut flags = invocation.flags();
    while let Some(word) = words.next_word() {
        let name = match word {
            Word::Argument(name) => name,
            Word::Flag(flag) if flag == b"--help" => return help::overview(invocation),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) => {
                if !flags.read(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
                continue;
            }
        };
        let run: Run = match (&name[..], invocation.tool) {
            (b"instantiate", None) => instantiate::run,
            (b"compare", None) => compare::run,
            (b"jobs", None) => jobs::run,
            (b"cache", None) => cache::run,
            (b"profile", None) => profile::run,
            (b"graph", None) => graph::run,
            (b"why", None) => why::run,
            (b"watch", None) => watch::run,
            (b"affected", None) => affected::run,
            (b"doctor", None) => doctor::run,
            (b"completions", None) => |invocation, words, _| completions::run(invocation, words),
            (b"man", None) => |invocation, words, _| manual::run(invocation, words),
            (b"repl", _) => repl::run,
            (b"flake", _) => flake::run,
            (b"eval", _) => {
                interrupt::listen();
                firn_memo::doubt::begin_again_for(Reasons::All);
                return eval::run(invocation, words, flags);
            }
            (b"help", _) => return help::topic(invocation, words),
            _ => return Err(Failure::usage("'", &name, "' is not a recognised command")),
        };
        if name != b"repl" {
            interrupt::listen();
        }
        let reasons = match &name[..] {
            b"instantiate" | b"profile" => Reasons::All,
            b"jobs" | b"compare" => Reasons::Answers,
            _ => Reasons::None,
        };
        firn_memo::doubt::begin_again_for(reasons);
        // Answers from memory are only for those who can begin again.
        flags.without_memo |= reasons == Reasons::None;
        invocation.called.push(b' ');
        invocation.called.extend_from_slice(&name);
        return run(invocation, words, flags);
    }
    if invocation.tool.is_none() {
        return help::overview(invocation);
    }
    Err(Failure::Usage(b"no subcommand specified".to_vec()))
}
