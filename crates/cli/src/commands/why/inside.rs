//! What a flake uses of its own trees. Memory does not keep that: the trees are part of the question. People want to know, and
//! know the files of a flake on this machine by where they lie, not by the store path that evaluation sees.

use crate::commands::subject::Subject;
use firn_host::{AbsPath, Observation, Question};
use firn_memo::kept::{ENTRY, Roles};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// What was seen, and where the flake lies.
pub(super) struct Inside<'a> {
    pub seen: &'a Mutex<Vec<Observation>>,
    pub local: Option<AbsPath>,
}

impl Inside<'_> {
    /// Adds what was seen in the trees of a flake.
    pub fn add_to(&self, observations: &mut Vec<Observation>, roles: &mut Roles, subject: &Subject) {
        let Subject::Flake(opened) = subject else { return };
        let Some((_, dir)) = opened.flake.places.first() else { return };
        let moved = self.local.as_ref().and_then(|local| roots(dir, local, roles));
        if let Some((_, to)) = &moved {
            roles.assign(ENTRY, to.clone());
        }
        let mut known: HashSet<Question> = observations.iter().map(|seen| seen.question.clone()).collect();
        let seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        for Observation { question, digest, durability } in seen {
            let question = match &moved {
                Some((from, to)) => moved_to(question, from, to),
                None => question,
            };
            // What follows from reading a file says nothing to people.
            let tells = matches!(question, Question::File(_) | Question::Code(_) | Question::Directory(_) | Question::Exists(..) | Question::ExprPath(_));
            let tells = tells || !in_trees(&question, roles);
            if tells && known.insert(question.clone()) {
                observations.push(Observation { question, digest, durability });
            }
        }
        let files: HashSet<AbsPath> = observations
            .iter()
            .filter(|seen| matches!(seen.question, Question::File(_) | Question::Code(_)))
            .filter_map(|seen| seen.question.path().cloned())
            .collect();
        let is_file = |path: &AbsPath| files.contains(path) || files.contains(&path.child(b"default.nix"));
        observations.retain(|seen| match &seen.question {
            Question::Exists(path, _) | Question::ExprPath(path) if in_trees(&seen.question, roles) => !is_file(path),
            _ => true,
        });
    }
}

fn in_trees(question: &Question, roles: &Roles) -> bool {
    question.path().is_some_and(|path| matches!(roles.place(path).0, ENTRY | firn_memo::kept::STORE))
}

/// The root of the flake's tree as evaluation sees it, and where that lies.
fn roots(dir: &AbsPath, local: &AbsPath, roles: &Roles) -> Option<(AbsPath, AbsPath)> {
    let store = roles.tree(firn_memo::kept::STORE)?;
    let above = || std::iter::successors(Some(dir.clone()), AbsPath::parent);
    let from = above().find(|path| path.parent().as_ref() == Some(store))?;
    let rest = dir.as_bytes().strip_prefix(from.as_bytes())?;
    let to = local.as_bytes().strip_suffix(rest)?;
    Some((from, AbsPath::new(to).ok()?))
}

/// The question about the same thing where it lies.
fn moved_to(question: Question, from: &AbsPath, to: &AbsPath) -> Question {
    let lies = |path: AbsPath| match path.as_bytes().strip_prefix(from.as_bytes()) {
        Some(rest) if path.is_within(from) => to.beneath(rest).unwrap_or(path),
        _ => path,
    };
    match question {
        Question::File(path) => Question::File(lies(path)),
        Question::Code(path) => Question::Code(lies(path)),
        Question::Directory(path) => Question::Directory(lies(path)),
        Question::DirectoryEntry(path, name) => Question::DirectoryEntry(lies(path), name),
        Question::Type(path) => Question::Type(lies(path)),
        Question::Stat(path) => Question::Stat(lies(path)),
        Question::Link(path) => Question::Link(lies(path)),
        Question::Resolve(path, follow) => Question::Resolve(lies(path), follow),
        Question::ExprPath(path) => Question::ExprPath(lies(path)),
        Question::Exists(path, dir) => Question::Exists(lies(path), dir),
        Question::Outline(path) => Question::Outline(lies(path)),
        Question::Key(path, format, names) => Question::Key(lies(path), format, names),
        other => other,
    }
}
