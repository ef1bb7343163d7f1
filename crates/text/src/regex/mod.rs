//! POSIX extended regular expressions as `builtins.match` and `builtins.split` have them, which is as libstdc++'s
//! `std::regex` in its extended grammar has them.
//!
//! The rule it follows: alternatives are compared and the longer match wins (the left one on a tie); a repetition goes
//! on as long as that leads to any match at all; groups keep what they last captured. `.` matches every byte but NUL.
//! A search gives the leftmost start. Compiling is `scan` → `parse` → `nfa` → `closure`; `machine` runs the result in
//! time linear in the text and without recursion.

mod bracket;
mod closure;
mod cycle;
mod machine;
mod nfa;
mod parse;
mod scan;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use machine::{Cache, Mode, Run};

/// Why a pattern was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not a pattern of the extended grammar.
    Invalid,
    /// The automaton would have too many states.
    TooLarge,
}

impl Error {
    /// Nix's message for it.
    pub fn message(self, pattern: &[u8]) -> Vec<u8> {
        let text: &[u8] = match self {
            Error::Invalid => b"invalid regular expression '",
            Error::TooLarge => b"memory limit exceeded by regular expression '",
        };
        [text, pattern, b"'"].concat()
    }
}

/// A compiled pattern. Compile once and share: it remembers what it learns about its texts.
#[derive(Debug)]
pub struct Regex {
    program: closure::Program,
    whole: Pool,
    prefix: Pool,
}

/// Where a match and its groups lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captures {
    slots: Vec<usize>,
}

impl Captures {
    /// Groups of the pattern, the whole match (group 0) included.
    pub fn len(&self) -> usize {
        self.slots.len() / 2
    }

    /// Whether nothing has been captured yet.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Where a group matched, if it took part in the match.
    pub fn group(&self, index: usize) -> Option<Range<usize>> {
        let end = *self.slots.get(2 * index + 1)?;
        (end != usize::MAX).then(|| self.slots[2 * index]..end)
    }

    /// Where the whole pattern matched.
    pub fn span(&self) -> Range<usize> {
        self.group(0).unwrap_or(0..0)
    }

    fn reset(&mut self, groups: usize) {
        self.slots.clear();
        self.slots.resize(2 * groups, usize::MAX);
    }
}

impl Regex {
    /// Compiles a pattern.
    pub fn new(pattern: &[u8]) -> Result<Regex, Error> {
        let (nfa, groups) = parse::parse(pattern)?;
        let program = closure::compile(&nfa, groups)?;
        Ok(Regex { program, whole: Pool::default(), prefix: Pool::default() })
    }

    /// Groups of the pattern, the whole match not counted.
    pub fn groups(&self) -> usize {
        self.program.groups - 1
    }

    /// Whether the whole text matches.
    pub fn is_full_match(&self, text: &[u8]) -> bool {
        self.whole.with(Mode::Whole, |cache| machine::is_whole(&self.program, cache, text))
    }

    /// The match of the whole text, for `builtins.match`.
    pub fn full_match(&self, text: &[u8]) -> Option<Captures> {
        let mut captures = Captures::default();
        self.full_match_into(text, &mut captures).then_some(captures)
    }

    /// As [`Regex::full_match`], into captures used before. They mean nothing after `false`.
    pub fn full_match_into(&self, text: &[u8], captures: &mut Captures) -> bool {
        captures.reset(self.program.groups);
        if self.groups() == 0 {
            captures.slots[0] = 0;
            captures.slots[1] = text.len();
            return self.is_full_match(text);
        }
        self.whole.with(Mode::Whole, |cache| {
            Run::new(&self.program, cache, text).is_some_and(|mut run| run.whole(&mut captures.slots))
        })
    }

    /// The leftmost match that begins at `start` or later; `^` holds at `start` only if `bol`. For one search: to
    /// find them all, [`Regex::for_each_match`] looks at the text once.
    pub fn find_at(&self, text: &[u8], start: usize, bol: bool) -> Option<Captures> {
        let mut captures = Captures::default();
        captures.reset(self.program.groups);
        let found = self.prefix.with(Mode::Prefix, |cache| {
            Run::new(&self.program, cache, text)
                .is_some_and(|mut run| run.search(start, bol, false, &mut captures.slots))
        });
        found.then_some(captures)
    }

    /// Every match from left to right as `std::regex_iterator` gives them, for `builtins.split`.
    pub fn for_each_match(&self, text: &[u8], mut visit: impl FnMut(&Captures)) {
        let mut captures = Captures::default();
        captures.reset(self.program.groups);
        self.prefix.with(Mode::Prefix, |cache| {
            let Some(mut run) = Run::new(&self.program, cache, text) else { return };
            let mut bol = true;
            let mut found = run.search(0, bol, false, &mut captures.slots);
            while found {
                visit(&captures);
                let Range { start, end } = captures.span();
                let mut from = end;
                if start == end {
                    if end == text.len() {
                        return;
                    }
                    // After an empty match a longer one is looked for at the same place, then the place is left.
                    if run.search(end, bol, true, &mut captures.slots) {
                        continue;
                    }
                    from += 1;
                }
                bol = false;
                found = run.search(from, bol, false, &mut captures.slots);
            }
        });
    }
}

/// Caches not in use: one per thread that runs the pattern at the same time.
#[derive(Debug, Default)]
struct Pool(Mutex<Vec<Cache>>);

impl Pool {
    fn with<T>(&self, mode: Mode, work: impl FnOnce(&mut Cache) -> T) -> T {
        // A cache is out of the pool while it is used, so a panic loses it and leaves the others whole.
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut cache = free.unwrap_or_else(|| Cache::new(mode));
        let result = work(&mut cache);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(cache);
        result
    }
}
