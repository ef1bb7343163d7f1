//! `firn why`: what an answer rests on, and what changed where an earlier answer is one no more (spec O3).
//!
//! The memory on disk is asked first. What it does not know is evaluated and kept, so that the next run can tell what changed.

mod inside;
mod layout;

use super::eval;
use super::help;
use super::subject::Subject;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::memory::{Memory, Remembered, texts};
use crate::observed::{self, object};
use crate::program::Invocation;
use firn_host::{Observation, Question};
use firn_memo::kept::{Asked, Roles};
use firn_text::json::Tree;
use inside::Inside;
pub(super) use layout::Layout;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The help.
pub const HELP: &str = "\
firn why tells what an answer rests on: files, directories, variables and whatever else evaluation looked at.

Usage: firn why [FLAG…] [FLAKE#PATH]
       firn why (--file FILE | --expr EXPR) [FLAG…] [PATH]

The answer is the one that firn eval gives. If the cache on disk has it, and nothing it rests on has changed, nothing is
evaluated; otherwise it is evaluated and kept. Where answers of earlier runs no longer hold, what has changed since
is told first. --memo is not looked at.

Flags:
  -f, --file FILE        the file; `-` is standard input, `<name>` is looked up in the search path
  -E, --expr EXPR        the expression
  -A, --attr PATH        the attribute path, as an argument would give it
  --apply FUNCTION       ask about FUNCTION applied to the value
  --files                print the files that were read, one per line
  --paths                print every path that was looked at, one per line: also directories that were listed, and what was
                           looked for and is not there
  --changes              print what has changed since earlier answers, and nothing else
  --json                 print JSON
  --all                  show everything: fold no directories, leave out no changes

If the value cannot be evaluated, what was looked at until then is told, then the error.

The trees of a flake are part of the question: any change of theirs asks another one. What it uses of them is not kept, so
a flake is evaluated every time; files of a flake on this machine are named where they lie.

Examples:
  firn why -f ./default.nix hello
  firn why -f '<nixpkgs>' --files hello.drvPath
  firn why -f ./release.nix --changes tests.boot
  firn why -E 'import ./. { }' --json | jq '.observations | length'
";

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    eval: eval::Typed,
    form: Form,
    all: bool,
}

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Tree,
    Files,
    Paths,
    Changes,
    Json,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(word) => typed.eval.named.take(word)?,
            Word::Flag(flag) => match &flag[..] {
                b"--help" => return help::show(invocation, "why"),
                b"--version" => return help::version(invocation),
                b"--files" => typed.form = Form::Files,
                b"--paths" => typed.form = Form::Paths,
                b"--changes" => typed.form = Form::Changes,
                b"--json" => typed.form = Form::Json,
                b"--all" => typed.all = true,
                b"-E" => typed.eval.named.expression = words.values(&flag).map(|[text]| Some(text))?,
                b"-A" | b"--attr" => {
                    let [path] = words.values(&flag)?;
                    typed.eval.named.take(path)?;
                }
                _ => {
                    let known = typed.eval.named.read(&flag, &mut words, &mut flags)? || flags.read(&flag, &mut words)?;
                    if !known {
                        return Err(Failure::usage("unrecognised flag '", &flag, "'"));
                    }
                }
            },
        }
    }
    invocation.log.set_verbosity(flags.verbosity);
    typed.eval.check()?;
    (flags.keeps_answers, flags.keeps_cheap_answers) = (true, true);
    flags.memo = Some(b"disk".to_vec());
    let seen = Arc::default();
    let local = typed.eval.named.local_flake(&*invocation.host);
    let is_flake = typed.eval.named.file.is_none() && typed.eval.named.expression.is_none();
    if is_flake {
        flags.recording = Some(Arc::clone(&seen));
    }
    let subject = typed.eval.named.open(invocation, &mut flags)?;
    let told = typed.tell(invocation, &subject, &Inside { seen: &seen, local });
    let closed = subject.session().store.close().map_err(crate::stores::failed);
    subject.session().remember();
    told.and(closed)
}

/// What is known of a question.
pub(super) struct Explained {
    /// What the answer rests on.
    pub observations: Vec<Observation>,
    /// Where names were looked up one by one for it.
    pub places: Vec<Observation>,
    /// Answers of earlier runs that are none any more, nearest first.
    pub outdated: Vec<Remembered>,
    /// How the observations are known.
    pub source: Source,
    /// Why there is no answer.
    pub failure: Option<Failure>,
}

/// How it is known what an answer rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// From an earlier run.
    Remembered,
    /// It was evaluated now, and is kept.
    Evaluated,
    /// It was evaluated now, and cannot be kept.
    NotKept,
}

impl Typed {
    fn tell(&self, invocation: &mut Invocation, subject: &Subject, inside: &Inside<'_>) -> Result<(), Failure> {
        let Some(memory) = &subject.session().memory else {
            return Err(Failure::error("what answers rest on is kept in the cache on disk, which cannot be used"));
        };
        let mut explained = explain(&self.eval, subject, memory);
        let mut roles = memory.roles();
        inside.add_to(&mut explained.observations, &mut roles, subject);
        match self.form {
            Form::Tree => self.tree(invocation, &explained, &roles)?,
            Form::Changes => self.changes(invocation, &explained, &roles, true)?,
            Form::Json => invocation.output.line(&self.json(&explained, &roles)?)?,
            Form::Files | Form::Paths => {
                let wanted = |seen: &&Observation| match &seen.question {
                    Question::File(_) | Question::Code(_) | Question::Outline(_) | Question::Key(..) => {
                        self.form == Form::Paths || !observed::is_absence(seen)
                    }
                    question => self.form == Form::Paths && question.path().is_some(),
                };
                let paths: BTreeSet<&[u8]> = explained
                    .observations
                    .iter()
                    .chain(&explained.places)
                    .filter(wanted)
                    .filter_map(|seen| seen.question.path().map(|path| path.as_bytes()))
                    .collect();
                paths.iter().try_for_each(|path| invocation.output.line(path))?;
            }
        }
        explained.failure.map_or(Ok(()), Err)
    }

    /// What changed since earlier answers.
    fn changes(&self, invocation: &mut Invocation, explained: &Explained, roles: &Roles, alone: bool) -> Result<(), Failure> {
        const SHOWN: usize = 12;
        if alone && explained.outdated.is_empty() {
            let text = if explained.source == Source::Remembered { "nothing has changed" } else { "there was no earlier answer" };
            return invocation.output.line(text.as_bytes());
        }
        for (index, earlier) in explained.outdated.iter().enumerate() {
            let again = explained.source != Source::Remembered;
            let heading = match (index, again) {
                (0, true) => "evaluated again, because of what changed since the nearest earlier answer:",
                (0, false) => "an earlier answer holds no more, because of what changed since:",
                _ => "changed since another earlier answer:",
            };
            invocation.output.line(heading.as_bytes())?;
            let shown = if self.all { usize::MAX } else { SHOWN };
            let mut lines: Vec<String> = earlier.changes.iter().map(|change| observed::sentence(change, roles)).collect();
            lines.sort();
            lines.dedup();
            for line in lines.iter().take(shown) {
                invocation.output.line(format!("  {line}").as_bytes())?;
            }
            if lines.len() > shown {
                invocation.output.line(format!("  and {} more (--all shows them)", lines.len() - shown).as_bytes())?;
            }
            if earlier.elsewhere > 0 {
                let text = format!("  {} observations are about trees that are not named here", earlier.elsewhere);
                invocation.output.line(text.as_bytes())?;
            }
        }
        Ok(())
    }

    fn tree(&self, invocation: &mut Invocation, explained: &Explained, roles: &Roles) -> Result<(), Failure> {
        self.changes(invocation, explained, roles, false)?;
        let mut layout = Layout::new(&explained.observations, roles);
        layout.open(self.all);
        let is_place = |seen: &&Observation| matches!(seen.question, Question::Location(_));
        let count = explained.observations.iter().filter(|seen| !is_place(seen)).count();
        let rests = match count {
            0 => "rests on nothing outside itself".to_owned(),
            1 => "rests on 1 observation".to_owned(),
            count => format!("rests on {count} observations"),
        };
        let source = match (explained.source, &explained.failure) {
            (_, Some(_)) => "until it failed",
            (Source::Remembered, _) => "remembered",
            (Source::Evaluated, _) => "evaluated now",
            (Source::NotKept, _) => "evaluated now, not kept",
        };
        let mut title = self.eval.named.title();
        if explained.failure.is_some() {
            title.push_str(" has no answer and");
        }
        invocation.output.line(format!("{title} {rests} ({source})").as_bytes())?;
        invocation.output.write(layout.print().as_bytes())?;
        if layout.is_folded() {
            invocation.output.line(b"(--all shows every file)")?;
        }
        Ok(())
    }

    fn json(&self, explained: &Explained, roles: &Roles) -> Result<Vec<u8>, Failure> {
        let mut seen = explained.observations.clone();
        seen.sort_by_cached_key(|seen| format!("{:?}", seen.question));
        let trees = roles.iter().map(|(role, tree)| (role.as_bytes().to_vec(), observed::text(tree.as_bytes()))).collect();
        let outdated = explained.outdated.iter().map(|earlier| {
            let changes = earlier.changes.iter().map(|change| observed::change_json(change, roles)).collect();
            let entries = [
                ("made", Tree::Int(earlier.record.made)),
                ("unknown", Tree::Int(earlier.elsewhere as i64)),
                ("changes", Tree::List(changes)),
            ];
            object(entries)
        });
        let source = match explained.source {
            Source::Remembered => "remembered",
            Source::Evaluated => "evaluated",
            Source::NotKept => "notKept",
        };
        let error = match &explained.failure {
            Some(Failure::Error(error)) => observed::text(error.message()),
            Some(_) => Tree::text("failed"),
            None => Tree::Null,
        };
        let document = object([
            ("version", Tree::Int(1)),
            ("source", Tree::text(source)),
            ("trees", Tree::Object(trees)),
            ("observations", Tree::List(seen.iter().map(|seen| observed::json(seen, roles)).collect())),
            ("outdated", Tree::List(outdated.collect())),
            ("error", error),
        ]);
        document.print(None).map_err(Failure::error)
    }
}

/// Finds out what an answer rests on: from memory, or by evaluating.
pub(super) fn explain(eval: &eval::Typed, subject: &Subject, memory: &Memory) -> Explained {
    let asked = eval.named.asked(subject, &eval.form());
    let mut history = asked.as_ref().map_or_else(Vec::new, |asked| memory.history(asked));
    if let Some(asked) = asked.as_ref().filter(|_| !history.iter().any(Remembered::holds)) {
        history.extend(memory.history_in_other_forms(asked).into_iter().filter(Remembered::holds));
    }
    // What a flake uses of its own trees is not kept: it has to be seen.
    let looks = matches!(subject, Subject::Flake(_));
    let (mut holding, outdated): (Vec<Remembered>, Vec<Remembered>) = history.into_iter().partition(Remembered::holds);
    if !holding.is_empty() && !looks {
        let Remembered { observations, places, .. } = holding.swap_remove(0);
        return Explained { observations, places, outdated, source: Source::Remembered, failure: None };
    }
    let failure = evaluate(eval, subject, memory, asked.as_ref()).err();
    // What was kept says more exactly what the answer rests on than all that was observed in this run.
    memory.finish();
    let kept = asked.as_ref().filter(|_| failure.is_none()).map_or_else(Vec::new, |asked| memory.history(asked));
    match kept.into_iter().find(Remembered::holds) {
        Some(Remembered { observations, places, .. }) => {
            Explained { observations, places, outdated, source: Source::Evaluated, failure }
        }
        None => {
            let (observations, places) = (memory.observed(), memory.places());
            Explained { observations, places, outdated, source: Source::NotKept, failure }
        }
    }
}

fn evaluate(eval: &eval::Typed, subject: &Subject, memory: &Memory, asked: Option<&Asked>) -> Result<(), Failure> {
    let pending = asked.map(|asked| memory.begin(asked));
    let (value, pos) = eval.named.value(subject)?;
    let text = eval.print(subject.session(), value, pos)?;
    memory.keep(pending, texts(std::slice::from_ref(&text)), Vec::new());
    Ok(())
}
