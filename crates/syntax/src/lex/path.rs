//! Paths and URLs.

use super::{ID_START, Lexer, Mode, PATH, SCHEME, Step, URI, is};
use crate::token::Kind;

impl Lexer {
    /// Tries a path or URL at the current place: both start with a run of path characters, and what follows the run
    /// decides.
    pub(super) fn run(&mut self) -> bool {
        let start = self.at;
        let end = self.end_of(start, PATH);
        let after = self.text.get(end).copied().unwrap_or(0);
        let next = self.text.get(end + 1).copied().unwrap_or(0);
        if after == b'/' && is(next, PATH) {
            self.at = self.path_end(end);
            self.begin_path(Kind::Path, start);
            return true;
        }
        if after == b'/' && next == b'$' && self.text.get(end + 2) == Some(&b'{') {
            self.at = end + 1;
            self.begin_path(Kind::Path, start);
            return true;
        }
        if after == b':' && is(next, URI) {
            let scheme = is(self.text[start], ID_START) && self.end_of(start, SCHEME) == end;
            if scheme && self.text[start] != b'_' {
                self.at = self.end_of(end + 1, URI);
                self.push(Kind::Uri, start, self.at);
                return true;
            }
            return false; // a later start in this run may still be a scheme
        }
        self.plain_until = end;
        false
    }

    /// From a slash that a path character follows, the end of the longest path.
    fn path_end(&self, mut slash: usize) -> usize {
        loop {
            let end = self.end_of(slash + 1, PATH);
            if self.text.get(end) != Some(&b'/') {
                return end;
            }
            if !self.text.get(end + 1).is_some_and(|&b| is(b, PATH)) {
                return end + 1;
            }
            slash = end;
        }
    }

    fn begin_path(&mut self, kind: Kind, start: usize) {
        self.push(kind, start, self.at);
        self.enter(if self.text[self.at - 1] == b'/' { Mode::PathSlash } else { Mode::Path });
    }

    pub(super) fn home_path(&mut self, next: u8) {
        let start = self.at;
        let after = self.peek(2);
        if next == b'/' && is(after, PATH) {
            self.at = self.path_end(start + 1);
            self.begin_path(Kind::HPath, start);
        } else if next == b'/' && after == b'$' && self.peek(3) == b'{' {
            self.at = start + 2;
            self.begin_path(Kind::HPath, start);
        } else {
            self.take(Kind::Invalid, 1);
        }
    }

    /// What follows a piece of a path: another piece, an interpolation, or the end.
    pub(super) fn path_rest(&mut self) -> Step {
        let start = self.at;
        if self.peek(0) == b'$' && self.peek(1) == b'{' {
            self.take(Kind::DollarCurly, 2);
            self.mode = Mode::Path;
            self.enter(Mode::Plain);
            return Ok(());
        }
        let mut end = self.end_of(start, PATH);
        if self.text.get(end) == Some(&b'/') {
            let piece = self.text.get(end + 1).is_some_and(|&b| is(b, PATH));
            end = if piece { self.path_end(end) } else { end + 1 };
        }
        if end > start {
            self.take(Kind::Str, end - start);
            self.mode = if self.text[end - 1] == b'/' { Mode::PathSlash } else { Mode::Path };
            return Ok(());
        }
        // NIX: having looked at what is not part of the path, Nix's place goes back by one token; at the end of the
        // text, where there was nothing to look at, it goes back one too far.
        let mut places = self.tokens.iter().rev().map(|t| t.start as usize);
        let last = places.next().unwrap_or(0);
        let at_end = start == self.text.len();
        if self.mode == Mode::PathSlash {
            return self.fail(if at_end { last } else { start }, "path has a trailing slash");
        }
        let place = if at_end { places.next().unwrap_or(0) } else { last };
        self.push(Kind::PathEnd, place, place);
        self.leave();
        if at_end {
            self.finish(last);
        }
        Ok(())
    }
}
