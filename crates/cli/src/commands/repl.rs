//! `firn repl`, which is `nix repl`: lines are evaluated as they are typed; [`scope`] holds what they define, [`complete`]
//! what may be typed next, [`load`] what is loaded and loaded again, [`programs`] what others do, [`doc`] what `:doc` shows,
//! [`why`] what `:why` does.

mod complete;
mod doc;
mod load;
mod programs;
mod scope;
mod why;

use super::help;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::installable::enable_flakes;
use crate::interrupt;
use crate::program::Invocation;
use crate::session::Session;
use crate::settings;
use complete::Asked;
use load::Loaded;
use firn_eval::{OnError, PrintOptions, colored, show_type, try_print_value};
use firn_host::Host;
use firn_source::Pos;
use firn_value::{Attrs, Value};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use scope::{Line, Scope};
use std::cell::RefCell;
use std::io::{BufRead, IsTerminal};
use std::rc::Rc;

/// Names shown when variables are added.
const MOST_SHOWN: usize = 20;

const COMMANDS: &str = "\
The following commands are available:

  <expr>                       Evaluate and print expression
  <x> = <expr>                 Bind expression to variable
  :a, :add <expr>              Add attributes from resulting set to scope
  :b <expr>                    Build a derivation
  :bl <expr>                   Build a derivation, creating GC roots in the
                               working directory
  :doc <expr>                  Show documentation of a builtin or commented function
  :e, :edit <expr>             Open package or function in $EDITOR
  :i <expr>                    Build derivation, then install result into
                               current profile
  :l, :load <path>             Load Nix expression and add it to scope
  :lf, :load-flake <ref>       Load Nix flake and add it to scope
  :ll, :last-loaded            Show most recently loaded variables added to scope
  :log <expr>                  Show logs for a derivation
  :p, :print <expr>            Evaluate and print expression recursively
                               Strings are printed directly, without escaping.
  :q, :quit                    Exit
  :r, :reload                  Reload all files
  :sh <expr>                   Build dependencies of derivation, then start
                               nix-shell
  :t <expr>                    Describe result of evaluation
  :te, :trace-enable [bool]    Enable, disable or toggle showing traces for
                               errors
  :u <expr>                    Build derivation, then start nix-shell
  :why <expr>                  Show the files and whatever else the expression
                               looks at
  :?, :help                    Brings up this help menu
";

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    file: Option<Vec<u8>>,
    expression: Option<Vec<u8>>,
    named: Vec<Vec<u8>>,
}

/// The state of a conversation.
pub(super) struct Repl<'a> {
    invocation: &'a mut Invocation,
    flags: Flags,
    typed: Typed,
    session: Session,
    scope: Scope,
    loaded: Vec<(Loaded, Option<Value>)>,
    /// When the session began to look at files.
    since: i64,
    /// Something failed in this session, and failures are kept with the way to whoever met them first.
    failed: bool,
    last: Option<Attrs>,
    show_trace: bool,
    /// Loading something says nothing.
    quiet: bool,
}

/// What comes after a line.
enum Next {
    Prompt,
    More,
    Quit,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let since = load::now();
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(named) => typed.named.push(named),
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "repl"),
            Word::Flag(flag) if flag == b"--version" => return help::version(invocation),
            Word::Flag(flag) if flag == b"--file" || flag == b"-f" => {
                typed.file = words.values(&flag).map(|[file]| Some(file))?;
            }
            Word::Flag(flag) if flag == b"--expr" => {
                typed.expression = words.values(&flag).map(|[text]| Some(text))?;
            }
            Word::Flag(flag) => {
                if !flags.read(&flag, &mut words)? {
                    return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                }
            }
        }
    }
    if typed.file.is_some() && typed.expression.is_some() {
        return Err(Failure::Usage(b"'--file' and '--expr' are exclusive".to_vec()));
    }
    invocation.log.set_verbosity(flags.verbosity);
    enable_flakes(invocation, &mut flags);
    let log = invocation.log.clone();
    let resolved = settings::resolve(&*invocation.host, &flags, false, &|text| log.warn(text))?;
    let show_trace = resolved.eval.show_trace;
    flags.reloads = true;
    let session = Session::start(&invocation.host, &flags, resolved, &invocation.log)?;
    let scope = Scope::default();
    let mut repl = Repl {
        invocation, flags, typed, session, scope, loaded: Vec::new(), since, failed: false, last: None, show_trace, quiet: false,
    };
    repl.greet();
    repl.load_named();
    if std::io::stdin().is_terminal() {
        return repl.converse();
    }
    repl.read_all()?;
    repl.end()
}

impl<'a> Repl<'a> {
    fn greet(&self) {
        let version = match self.invocation.tool {
            Some(_) => format!("Nix {}", help::NIX_VERSION),
            None => format!("firn {} (language of Nix {})", env!("CARGO_PKG_VERSION"), help::NIX_VERSION),
        };
        self.invocation.log.line(format!("{version}\nType :? for help.").as_bytes());
    }

    /// Adds the attributes of a set to the scope.
    fn add(&mut self, value: Value) -> Result<(), Failure> {
        let context = "while evaluating an attribute set to be merged in the global scope";
        let set = self.session.machine.force_attrs(value, Pos::NONE, context)?;
        for (name, _, cell) in set.iter() {
            self.scope.define(name, cell);
        }
        if self.quiet {
            return Ok(());
        }
        let mut shown = Vec::new();
        for (at, (name, _, _)) in set.iter_by_name().take(MOST_SHOWN).enumerate() {
            if at > 0 {
                shown.extend_from_slice(b", ");
            }
            firn_text::literal::write_name(&mut shown, name.as_bytes());
        }
        let log = &self.invocation.log;
        log.line(format!("Added {} variables.", set.len()).as_bytes());
        log.line(&shown);
        if set.len() > MOST_SHOWN {
            log.line(format!("... and {} more; view with :ll", set.len() - MOST_SHOWN).as_bytes());
        }
        self.last = Some(set);
        Ok(())
    }

    /// The value of an expression that is complete.
    fn value(&self, text: &str) -> Result<Value, Failure> {
        let value = self.scope.evaluate(&self.session, text.as_bytes())?;
        value.ok_or_else(|| Failure::error("the expression is not complete"))
    }

    fn tell(&mut self, text: &str) -> Result<(), Failure> {
        self.invocation.tell(text.as_bytes())?;
        self.invocation.output.flush()
    }

    fn tell_failure(&mut self, failure: &Failure) {
        match failure {
            Failure::Error(error) => {
                self.failed = true;
                self.invocation.log.say(&error.diagnostic());
            }
            Failure::Usage(message) => {
                self.invocation.log.line(&[b"error: ", &message[..]].concat());
            }
            Failure::Exit(_) => {}
        }
    }

    fn print(&mut self, value: Value, depth: usize) -> Result<(), Failure> {
        let options = PrintOptions {
            colors: true,
            force: true,
            derivation_paths: true,
            max_depth: depth,
            indent: 2,
            errors: OnError::ThrowTopLevel,
            ..PrintOptions::default()
        };
        let mut out = Vec::new();
        try_print_value(&self.session.machine, value, &options, &mut out)?;
        self.invocation.tell(&out)?;
        self.invocation.output.flush()
    }

    /// One line, or several that belong together.
    fn line(&mut self, text: &str) -> Result<Next, Failure> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Next::Prompt);
        }
        if text.starts_with(':') {
            let (command, argument) = text.split_once([' ', '\n', '\r', '\t']).unwrap_or((text, ""));
            return self.command(command, argument.trim());
        }
        match self.scope.read(&self.session, text.as_bytes())? {
            Line::Incomplete => return Ok(Next::More),
            Line::Bindings(set) => set.iter().for_each(|(name, _, cell)| self.scope.define(name, cell)),
            Line::Value(value) => self.print(value, 1)?,
        }
        Ok(Next::Prompt)
    }

    fn command(&mut self, command: &str, argument: &str) -> Result<Next, Failure> {
        match command {
            ":q" | ":quit" => return Ok(Next::Quit),
            ":?" | ":help" => self.tell(COMMANDS.trim_end())?,
            ":a" | ":add" => self.add(self.value(argument)?)?,
            ":l" | ":load" => {
                let kept = self.refresh()?;
                self.load(&Loaded::File(argument.to_owned()), kept)?;
            }
            ":lf" | ":load-flake" => self.load(&Loaded::Flake(argument.to_owned()), false)?,
            ":ll" | ":last-loaded" => self.show_last()?,
            ":r" | ":reload" => self.reload()?,
            ":e" | ":edit" => {
                self.edit(argument)?;
                self.reload()?;
            }
            ":t" => {
                let shown = show_type(self.value(argument)?);
                self.tell(&shown)?;
            }
            ":p" | ":print" => {
                let value = self.value(argument)?;
                match value.as_str() {
                    Some(string) => {
                        self.invocation.output.line(string.bytes())?;
                        self.invocation.output.flush()?;
                    }
                    None => self.print(value, usize::MAX)?,
                }
            }
            ":b" => self.build(argument, false)?,
            ":bl" => self.build(argument, true)?,
            ":i" => self.run_nix("nix-env", &["-i"], self.value(argument)?)?,
            ":sh" => self.run_nix("nix-shell", &[], self.value(argument)?)?,
            ":log" => self.run_nix("nix-store", &["--read-log"], self.value(argument)?)?,
            ":u" => {
                let shell = "drv: (import <nixpkgs> {}).runCommand \"shell\" { buildInputs = [ drv ]; } \"\"";
                let (function, value) = (self.value(shell)?, self.value(argument)?);
                let made = self.session.machine.call(function, &[value], Pos::NONE)?;
                self.run_nix("nix-shell", &[], made)?;
            }
            ":doc" => {
                let shown = self.documentation(argument)?;
                self.tell(&shown)?;
            }
            ":why" => self.why(argument)?,
            ":te" | ":trace-enable" => self.toggle_traces(argument)?,
            _ => return Err(Failure::error(format!("unknown command '{}'", colored(command)))),
        }
        Ok(Next::Prompt)
    }

    fn toggle_traces(&mut self, argument: &str) -> Result<(), Failure> {
        self.show_trace = match argument {
            "true" => true,
            "false" => false,
            "" => !self.show_trace,
            _ => {
                let message = format!("unexpected argument '{}' to {}", colored(argument), colored(":te"));
                return Err(Failure::error(message));
            }
        };
        self.invocation.log.set_full_traces(self.show_trace);
        self.tell(if self.show_trace { "showing error traces" } else { "not showing error traces" })
    }

    fn show_last(&mut self) -> Result<(), Failure> {
        let Some(set) = self.last else { return Err(Failure::error("nothing has been loaded yet")) };
        for (name, _, _) in set.iter_by_name() {
            self.invocation.output.line(name.as_bytes())?;
        }
        self.invocation.output.flush()
    }

    /// Does what a text says; whether the conversation goes on, and whether the text must be longer first.
    fn answer(&mut self, text: &str) -> Result<Next, Failure> {
        if interrupt::stays() {
            // At the prompt Ctrl-C is a key: what is left of an interruption is for a line that has ended.
            firn_eval::resume();
        }
        match self.line(text) {
            // Nobody reads what is printed.
            Err(Failure::Exit(status)) => Err(Failure::Exit(status)),
            Err(failure) if firn_eval::is_interrupted() && !interrupt::stays() => Err(failure),
            Err(failure) => {
                firn_eval::resume();
                self.tell_failure(&failure);
                Ok(Next::Prompt)
            }
            Ok(next) => Ok(next),
        }
    }

    /// Reads lines from what is no terminal.
    fn read_all(&mut self) -> Result<(), Failure> {
        interrupt::listen();
        let mut text = String::new();
        for line in std::io::stdin().lock().lines() {
            let line = line.map_err(|e| Failure::error(format!("reading from standard input: {}", firn_host::Errno::from(e))))?;
            text.push_str(&line);
            text.push('\n');
            match self.answer(&text)? {
                Next::Quit => return Ok(()),
                Next::More => {}
                Next::Prompt => text.clear(),
            }
        }
        if text.trim().is_empty() {
            return Ok(());
        }
        // What was left unfinished is told as any text that ends too early.
        self.scope.read_to_end(&self.session, text.trim().as_bytes()).map(drop)
    }

    /// Reads lines from a terminal, with editing, history and completion.
    fn converse(self) -> Result<(), Failure> {
        let prompt = if self.invocation.tool.is_some() { "nix-repl> " } else { "firn> " };
        let history = self.history();
        let failed = |error: ReadlineError| Failure::error(format!("reading from the terminal: {error}"));
        let config = Config::builder().max_history_size(10_000).map_err(failed)?;
        let config = config.completion_type(rustyline::CompletionType::List).auto_add_history(false).build();
        let repl = Rc::new(RefCell::new(self));
        let mut editor: Editor<Asked<'a>, FileHistory> = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Asked(Rc::clone(&repl))));
        interrupt::stay();
        interrupt::listen();
        if let Some(file) = &history {
            // The first conversation has no history yet.
            let _ = editor.load_history(file);
        }
        let mut text = String::new();
        loop {
            let shown = if text.is_empty() { prompt.to_owned() } else { " ".repeat(prompt.len()) };
            match editor.readline(&shown) {
                Ok(line) => text.push_str(&line),
                Err(ReadlineError::Interrupted) => {
                    text.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(failed(error)),
            }
            if text.trim().is_empty() {
                text.clear();
                continue;
            }
            let next = repl.borrow_mut().answer(&text)?;
            if !matches!(next, Next::More) {
                let _ = editor.add_history_entry(text.trim());
                text.clear();
            } else {
                text.push('\n');
            }
            match next {
                Next::Quit => break,
                Next::More => {}
                Next::Prompt => repl.borrow_mut().tell("")?,
            }
        }
        if let Some(file) = &history {
            let _ = editor.save_history(file);
        }
        repl.borrow().end()
    }

    /// The end: statistics, of what was evaluated since files were last seen anew.
    fn end(&self) -> Result<(), Failure> {
        crate::statistics::print(&self.session, &*self.invocation.host, &self.invocation.log)
    }

    /// Where earlier lines are kept; none where there is no home for them.
    fn history(&self) -> Option<std::path::PathBuf> {
        use std::os::unix::ffi::OsStrExt;
        let host = &self.invocation.host;
        let variable = |name: &[u8]| host.env(name).filter(|value| !value.is_empty()).map(|value| value.to_vec());
        let home = || variable(b"HOME").map(|home| [&home[..], b"/.local/share"].concat());
        let data = variable(b"XDG_DATA_HOME").or_else(home)?;
        let own: &[u8] = if self.invocation.tool.is_some() { b"/nix" } else { b"/firn" };
        let dir = std::path::PathBuf::from(std::ffi::OsStr::from_bytes(&[&data[..], own].concat()));
        std::fs::create_dir_all(&dir).ok()?;
        Some(dir.join("repl-history"))
    }
}
