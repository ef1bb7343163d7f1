//! `firn watch`: evaluates, prints, and does so again whenever something that evaluation looked at has changed.
//!
//! Decision: what was observed is asked again every now and then, as the memory on disk does before it gives an answer, instead
//! of having the system tell of changes: a listing, an absence and a way over links are watched as surely as a file, on every
//! file system and beyond the number of watches that a system allows. A look costs little more than `lstat` of each path,
//! and looks are as rare as it takes for them to use a twentieth of a processor.
//!
//! Values live as long as their process: for each new answer the process begins anew ([`state`]), in its own place.

mod diff;
mod look;
mod state;

use super::eval;
use super::help;
use super::subject::Subject;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::memory::{Memory, Recalled, Remembered, as_texts, texts};
use crate::program::Invocation;
use firn_host::Observation;
use firn_memo::kept::Roles;
use look::{Trees, Watcher};
use state::State;

/// The help.
pub const HELP: &str = "\
firn watch prints a value as firn eval does, and again whenever something it rests on has changed.

Usage: firn watch [FLAG…] [FLAKE#PATH]
       firn watch (--expr EXPR | --file FILE) [FLAG…] [PATH]

It takes the arguments and flags of firn eval, but for --write-to. What has changed is told on standard error, then the new
value follows: as a whole if it is one line, as the lines that differ if it is longer. An error is told and waited out.
Ctrl-C ends it. The cache on disk is used whatever --memo says.

Flags:
  --expr EXPR            the expression
  -f, --file FILE        the file; `<name>` is looked up in the search path
  --apply FUNCTION       print FUNCTION applied to the value
  --json                 print JSON (--pretty lays it out, as on a terminal; --no-pretty does not)
  --raw                  print a string without quotes and newline
  --whole                print the whole value every time

Of a flake on this machine all files are watched, not only those that are used.

Examples:
  firn watch -f ./default.nix hello.drvPath
  firn watch --json -f ./config.nix
  firn watch .#nixosConfigurations.here.config.system.build.toplevel.drvPath
";

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let (mut typed, mut whole) = (eval::Typed::default(), false);
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(word) => typed.named.take(word)?,
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "watch"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) if flag == b"--whole" => whole = true,
            Word::Flag(flag) if flag == b"--write-to" => {
                return Err(Failure::Usage(b"'--write-to' is not for 'firn watch'".to_vec()));
            }
            Word::Flag(flag) => {
                let known = typed.read(&flag, &mut words, &mut flags)? || flags.read(&flag, &mut words)?;
                if !known {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    typed.check()?;
    let reads_input = flags.arguments.values().any(|argument| matches!(argument, crate::flags::Argument::Stdin));
    if typed.named.file.as_deref() == Some(b"-") || reads_input {
        return Err(Failure::Usage(b"standard input cannot be watched: it can be read only once".to_vec()));
    }
    invocation.log.set_verbosity(flags.verbosity);
    (flags.keeps_answers, flags.keeps_cheap_answers) = (true, true);
    flags.memo = Some(b"disk".to_vec());
    let before = State::take()?;
    let (answer, watcher) = once(invocation, &typed, &mut flags)?;
    let state = tell(invocation, answer, &before, whole)?;
    wait(invocation, &watcher)?;
    Err(state.go_on())
}

/// Evaluates, and says what is to be watched. Mistakes in the command line end the program; nothing else does.
fn once(invocation: &mut Invocation, typed: &eval::Typed, flags: &mut Flags) -> Result<(Result<Vec<u8>, Failure>, Watcher), Failure> {
    let trees = Trees::look(typed.named.local_flake(&*invocation.host).into_iter().collect());
    let subject = match typed.named.open(invocation, flags) {
        Ok(subject) => subject,
        Err(Failure::Error(error)) if error.kind() != firn_eval::ErrorKind::Usage => {
            let watcher = Watcher::new(Vec::new(), trees, Roles::new());
            return Ok((Err(Failure::Error(error)), watcher));
        }
        Err(failure) => return Err(failure),
    };
    let session = subject.session();
    let Some(memory) = &session.memory else {
        return Err(Failure::error("what answers rest on is kept in the cache on disk, which cannot be used"));
    };
    let (answer, observations) = answer(typed, &subject, memory);
    let closed = session.store.close().map_err(crate::stores::failed);
    session.remember();
    Ok((answer.and_then(|text| closed.map(|()| text)), Watcher::new(observations, trees, memory.roles())))
}

/// The answer from memory or by evaluating, and what it rests on.
fn answer(typed: &eval::Typed, subject: &Subject, memory: &Memory) -> (Result<Vec<u8>, Failure>, Vec<Observation>) {
    let asked = typed.named.asked(subject, &typed.form());
    let recalled = asked.as_ref().map_or(Recalled::Unknown(None), |asked| memory.recall(asked, false));
    let text = match recalled {
        Recalled::Known(answer) => Ok(as_texts(answer).concat()),
        Recalled::Unknown(pending) => typed.named.value(subject).and_then(|(value, pos)| {
            let text = typed.print(subject.session(), value, pos)?;
            memory.keep(pending, texts(std::slice::from_ref(&text)), Vec::new());
            Ok(text)
        }),
    };
    memory.finish();
    let history = asked.as_ref().filter(|_| text.is_ok()).map_or_else(Vec::new, |asked| memory.history(asked));
    let kept = history.into_iter().find(Remembered::holds);
    // Where names were looked up is watched as a whole: memory knows what that means for the answer.
    let (observations, places) = kept.map_or_else(|| (memory.observed(), memory.places()), |kept| (kept.observations, kept.places));
    (text, observations.into_iter().chain(places).collect())
}

/// Prints what is new; what the next process must know.
fn tell(invocation: &mut Invocation, answer: Result<Vec<u8>, Failure>, before: &State, whole: bool) -> Result<State, Failure> {
    let text = match answer {
        Ok(text) => text,
        Err(Failure::Error(error)) if error.kind() != firn_eval::ErrorKind::Interrupted => {
            invocation.log.say(&error.diagnostic());
            return Ok(State { failed: true, ..before.clone() });
        }
        Err(other) => return Err(other),
    };
    match &before.text {
        Some(old) if *old == text && !before.failed => invocation.log.line(b"the answer is the same"),
        Some(old) if !whole && diff::lines(old).max(diff::lines(&text)) > 1 => {
            invocation.output.write(&diff::diff(old, &text))?;
        }
        _ => invocation.output.write(&text)?,
    }
    invocation.output.flush()?;
    Ok(State { text: Some(text), failed: false })
}

/// Waits until something has changed, and tells what.
fn wait(invocation: &mut Invocation, watcher: &Watcher) -> Result<(), Failure> {
    const SHOWN: usize = 10;
    let log = invocation.log.clone();
    log.line(format!("watching {}; Ctrl-C ends it", watcher.title()).as_bytes());
    let changes = watcher.wait()?;
    for change in changes.iter().take(SHOWN) {
        log.line(change.as_bytes());
    }
    if changes.len() > SHOWN {
        log.line(format!("and {} more", changes.len() - SHOWN).as_bytes());
    }
    Ok(())
}
