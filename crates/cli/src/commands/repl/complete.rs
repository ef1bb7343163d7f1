//! Completion of what stands before the cursor: paths, variables, and attributes of what evaluates to a set.

use super::Repl;
use firn_source::Pos;
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::cell::RefCell;
use std::rc::Rc;

/// What the line editor asks.
pub(super) struct Asked<'a>(pub Rc<RefCell<Repl<'a>>>);

impl Helper for Asked<'_> {}
impl Highlighter for Asked<'_> {}
impl Validator for Asked<'_> {}

impl Hinter for Asked<'_> {
    type Hint = String;
}

impl Completer for Asked<'_> {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..pos];
        let start = before.rfind([' ', '\n', '\r', '\t', '(', ')', '{', '}', '[', ']']).map_or(0, |at| at + 1);
        let found = self.0.borrow().completions(&before[start..]);
        Ok((start, found.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()))
    }
}

impl Repl<'_> {
    /// What `word` may become. Evaluating for it tells nothing and fails quietly.
    pub fn completions(&self, word: &str) -> Vec<String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).ok();
        if let Some(slash) = word.rfind('/') {
            return self.files(&word[..slash], &word[slash + 1..]);
        }
        let Some(dot) = word.rfind('.') else {
            let names = self.scope.completions(&self.session, word.as_bytes());
            return names.into_iter().filter_map(text).collect();
        };
        let (set, start) = (&word[..dot], &word[dot + 1..]);
        let Ok(Some(value)) = self.scope.evaluate(&self.session, set.as_bytes()) else { return Vec::new() };
        let Ok(attrs) = self.session.machine.force_attrs(value, Pos::NONE, "") else { return Vec::new() };
        let names = attrs.iter_by_name().map(|(name, _, _)| name.as_bytes());
        let matching = names.filter(|name| name.starts_with(start.as_bytes()));
        let mut shown = Vec::new();
        for name in matching {
            let mut word = format!("{set}.").into_bytes();
            firn_text::literal::write_name(&mut word, name);
            shown.extend(text(word));
        }
        shown
    }

    fn files(&self, dir: &str, start: &str) -> Vec<String> {
        // The editor looks at the disk as it is now; nothing is evaluated by it.
        #[allow(clippy::disallowed_methods)]
        let Ok(entries) = std::fs::read_dir(if dir.is_empty() { "/" } else { dir }) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut found: Vec<String> = names
            .filter(|name| !name.starts_with('.') && name.starts_with(start))
            .map(|name| format!("{dir}/{name}"))
            .collect();
        found.sort();
        found
    }
}
