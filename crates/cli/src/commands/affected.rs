//! `firn affected`: which questions that were asked before may have another answer after a change (spec O3), for test
//! selection.
//!
//! 1. The change is a list of files: from Git, or named by the user ([`Edits`]).
//! 2. A question is not affected if one of its remembered answers holds now and rests on nothing that the change touched: then
//!    it was the answer before the change, too.
//! 3. Every other question of this tree is listed, with the reasons found in its nearest answer.

mod judge;

use super::help;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::memory::Memory;
use crate::observed::{object, text};
use crate::program::Invocation;
use crate::session::Session;
use crate::settings::{self, host_failure};
use firn_builtins::fetch_error;
use firn_host::fetch::{Changed, changed_since};
use firn_host::{AbsPath, Host};
use firn_memo::kept::{Edits, WrittenEntry};
use firn_text::json::Tree;
use judge::{Affected, Survey};

/// The help.
pub const HELP: &str = "\
firn affected lists the questions whose answers a change of files may have changed.

Usage: firn affected --since REV [FLAG…]
       firn affected --files [FLAG…] FILE…

Questions are those that were asked of this checkout with --memo disk (by eval, instantiate, why and watch) and are still in
the cache. A question is left out only if an answer of it is known that holds now and that looked at nothing the change
touched; so whatever could have changed is listed. Each line has three columns, separated by tabs: the attribute
path (`.` for the whole), the file or expression, and how it was asked.

Flags:
  --since REV            what changed since a Git revision, with what is not committed and not tracked
  --files                the arguments are the files that changed, appeared or disappeared; `-` reads their names from
                           standard input, one per line
  -f, --file FILE        list only questions about this file
  --json                 print JSON, with the reasons
  --why                  print the reasons below each line

The search path (-I, NIX_PATH) must be the one that the questions were asked with. Answers about flakes are not listed: a
flake is named by its whole tree, so that any change of it asks other questions.

Examples:
  firn affected --since origin/main
  firn affected --since HEAD~1 -f ./release.nix | cut -f 1
  git diff --name-only HEAD~1 | firn affected --files -
  firn affected --since v1.0 --json | jq -r '.[].because[]'
";

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    since: Option<Vec<u8>>,
    files: Option<Vec<Vec<u8>>>,
    arguments: Vec<Vec<u8>>,
    file: Option<Vec<u8>>,
    json: bool,
    why: bool,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(file) => typed.arguments.push(file),
            Word::Flag(flag) => match &flag[..] {
                b"-" => typed.arguments.push(flag),
                b"--help" => return help::show(invocation, "affected"),
                b"--version" => return help::version(invocation),
                b"--since" => typed.since = words.values(&flag).map(|[rev]| Some(rev))?,
                b"--files" => typed.files = Some(Vec::new()),
                b"-f" | b"--file" => typed.file = words.values(&flag).map(|[file]| Some(file))?,
                b"--json" => typed.json = true,
                b"--why" => typed.why = true,
                _ if flags.read(&flag, &mut words)? => {}
                _ => return Err(Failure::usage("unrecognised flag '", &flag, "'")),
            },
        }
    }
    match (&typed.since, &mut typed.files) {
        (Some(_), None) => {
            if let Some(argument) = typed.arguments.first() {
                return Err(Failure::usage("unexpected argument '", argument, "'"));
            }
        }
        (None, Some(files)) => *files = std::mem::take(&mut typed.arguments),
        _ => return Err(Failure::Usage(b"what changed? Give either '--since' or '--files'".to_vec())),
    }
    invocation.log.set_verbosity(flags.verbosity);
    flags.keeps_answers = true;
    flags.memo = Some(b"disk".to_vec());
    let log = invocation.log.clone();
    let resolved = settings::resolve(&*invocation.host, &flags, false, &|text| log.warn(text))?;
    let session = Session::start(&invocation.host, &flags, resolved, &invocation.log)?;
    let listed = typed.list(invocation, &session);
    session.remember();
    listed
}

/// What changed.
struct Change {
    /// The checkout in question.
    root: AbsPath,
    edits: Edits,
    /// What Git knows of it.
    git: Option<Changed>,
}

impl Typed {
    fn list(&self, invocation: &mut Invocation, session: &Session) -> Result<(), Failure> {
        let Some(memory) = &session.memory else {
            return Err(Failure::error("what was asked is kept in the cache on disk, which cannot be used"));
        };
        let change = self.change(invocation, session, memory)?;
        let file = match &self.file {
            Some(file) => Some(session.file_argument(file)?),
            None => None,
        };
        let base = memory.roles();
        let survey = Survey { change: &change, base, search: search_trees(session), here: session.here()?, only: file };
        let affected = memory.look_through(|reading, witness, host| survey.run(reading, witness, host)).unwrap_or_default();
        if self.json {
            let list = affected.iter().map(|one| self.json(one)).collect();
            return invocation.output.line(&Tree::List(list).print(None).map_err(Failure::error)?);
        }
        for one in &affected {
            let line = [attribute(one), entry(one), judge::command(&one.form)].join("\t");
            invocation.output.line(line.as_bytes())?;
            for reason in one.because.iter().filter(|_| self.why) {
                invocation.output.line(format!("  {reason}").as_bytes())?;
            }
        }
        Ok(())
    }

    fn json(&self, one: &Affected) -> Tree {
        object([
            ("attribute", text(&one.attribute)),
            ("entry", Tree::text(&entry(one))),
            ("asked", Tree::text(&judge::command(&one.form))),
            ("because", Tree::List(one.because.iter().map(|reason| Tree::text(reason)).collect())),
        ])
    }

    fn change(&self, invocation: &Invocation, session: &Session, memory: &Memory) -> Result<Change, Failure> {
        let here = session.here()?;
        let mut edits = Edits::new();
        if let Some(rev) = &self.since {
            let changed = changed_since(&here, &String::from_utf8_lossy(rev)).map_err(|e| Failure::Error(fetch_error(&e)))?;
            changed.edited.iter().for_each(|path| edits.edit(path.clone()));
            changed.moved.iter().for_each(|path| edits.replace(path.clone()));
            changed.relisted.iter().for_each(|path| edits.relist(path.clone()));
            return Ok(Change { root: changed.root.clone(), edits, git: Some(changed) });
        }
        let mut paths = Vec::new();
        for file in self.files.iter().flatten() {
            if file != b"-" {
                paths.push(here.join(file).map_err(host_failure)?);
                continue;
            }
            let names = crate::session::read_stdin()?;
            let lines = names.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
            for line in lines {
                paths.push(here.join(line).map_err(host_failure)?);
            }
        }
        add_files(&mut edits, paths, &*invocation.host);
        Ok(Change { root: memory.checkout_of(&here), edits, git: None })
    }
}

/// Files that changed in whatever way, and the directories that may have come or gone with them: those that are not there,
/// or in which there is nothing else.
fn add_files(edits: &mut Edits, paths: Vec<AbsPath>, host: &dyn Host) {
    let mut named: std::collections::BTreeSet<AbsPath> = std::collections::BTreeSet::new();
    let mut todo = paths;
    while !todo.is_empty() {
        named.extend(todo.iter().cloned());
        let mut above: Vec<AbsPath> = todo.iter().filter_map(AbsPath::parent).filter(|dir| !dir.is_root()).collect();
        above.sort();
        above.dedup();
        let may_be_new = |dir: &AbsPath| match host.read_dir(dir) {
            Ok(listing) => listing.entries().iter().all(|(name, _)| named.contains(&dir.child(name))),
            Err(_) => true,
        };
        todo = above.into_iter().filter(|dir| !named.contains(dir) && may_be_new(dir)).collect();
    }
    named.into_iter().for_each(|path| edits.replace(path));
}

/// The trees of the search path.
fn search_trees(session: &Session) -> Vec<AbsPath> {
    let entries = session.resolved.search.entries.iter();
    entries.filter(|entry| entry.path.starts_with(b"/")).filter_map(|entry| AbsPath::new(&entry.path).ok()).collect()
}

fn attribute(one: &Affected) -> String {
    if one.attribute.is_empty() { ".".to_owned() } else { String::from_utf8_lossy(&one.attribute).into_owned() }
}

/// The entry as it would be named at the root of the checkout. Expressions are put on one line.
fn entry(one: &Affected) -> String {
    let place = |rest: &[u8]| match rest.strip_prefix(b"/") {
        Some(rest) => String::from_utf8_lossy(rest).into_owned(),
        None => ".".to_owned(),
    };
    match &one.entry {
        WrittenEntry::File(at) => place(&at.rest),
        WrittenEntry::Expression(text, _) => {
            let shown = String::from_utf8_lossy(text);
            format!("({})", shown.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        WrittenEntry::Flake(_) => "a flake".to_owned(),
    }
}
