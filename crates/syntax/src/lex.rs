//! The lexer: a whole text to tokens in one pass, by the longest-match rules of Nix's flex grammar.
//!
//! Called by the parser once per text. Which rules apply depends only on the text before (a stack of modes), so the
//! tokens can be made ahead of parsing. A lexical error ends the tokens with [`Kind::Failed`]: it is reported when the
//! parser comes to it, as Nix does, because a syntax error may come first.
//! Length: one pass with one cursor; the modes are states of the same scanner.

use crate::error::ParseError;
use crate::token::{Form, Kind, Token};
use firn_source::{Pos, SourceFile};
use memchr::{memchr, memchr2, memmem};

const ID_START: u8 = 1;
const ID: u8 = 2;
const PATH: u8 = 4;
const URI: u8 = 8;
const SCHEME: u8 = 16;
const DIGIT: u8 = 32;
const SPACE: u8 = 64;
/// Bytes of a quoted string that stand for themselves.
const LITERAL: u8 = 128;

/// Character classes of the lexical grammar.
static CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        table[b] = if matches!(c, b'"' | b'\\' | b'$' | b'\r' | 0) { 0 } else { LITERAL };
        if c.is_ascii_alphabetic() {
            table[b] |= ID_START | ID | PATH | URI | SCHEME;
        } else if c.is_ascii_digit() {
            table[b] |= ID | PATH | URI | SCHEME | DIGIT;
        }
        b += 1;
    }
    let (paths, uris) = (b"._-+", b"%/?:@&=+$,-_.!~*'");
    let mut i = 0;
    while i < paths.len() {
        table[paths[i] as usize] |= PATH;
        i += 1;
    }
    let mut i = 0;
    while i < uris.len() {
        table[uris[i] as usize] |= URI;
        i += 1;
    }
    table[b'_' as usize] |= ID_START | ID;
    table[b'\'' as usize] |= ID;
    table[b'-' as usize] |= ID | SCHEME;
    table[b'+' as usize] |= SCHEME;
    table[b'.' as usize] |= SCHEME;
    table[b' ' as usize] |= SPACE;
    table[b'\t' as usize] |= SPACE;
    table[b'\r' as usize] |= SPACE;
    table[b'\n' as usize] |= SPACE;
    table
};

/// Bytes that are a token whatever follows them; [`Kind::Failed`] for the others.
static SINGLE: [Kind; 256] = {
    let mut table = [Kind::Failed; 256];
    table[b';' as usize] = Kind::Semicolon;
    table[b'(' as usize] = Kind::LParen;
    table[b')' as usize] = Kind::RParen;
    table[b'[' as usize] = Kind::LBracket;
    table[b']' as usize] = Kind::RBracket;
    table[b':' as usize] = Kind::Colon;
    table[b',' as usize] = Kind::Comma;
    table[b'?' as usize] = Kind::Question;
    table[b'@' as usize] = Kind::At;
    table[b'*' as usize] = Kind::Star;
    table
};

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// What a text is made of at the current place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Expressions.
    Plain,
    /// Inside `"…"`.
    String,
    /// Inside `''…''`.
    Indented,
    /// After a piece of a path that does not end in a slash.
    Path,
    /// After a piece of a path that ends in a slash: something must follow.
    PathSlash,
    /// After the end.
    Done,
}

/// The tokens of a text; the last one is [`Kind::Eof`], or [`Kind::Failed`] with the error.
pub(crate) struct Lexed {
    pub tokens: Vec<Token>,
    pub error: Option<ParseError>,
}

/// What is known of a text once its tokens are.
pub(crate) struct Noted {
    pub lexed: Lexed,
    /// What stands between tokens, but for single blanks: white space and comments, piece by piece.
    pub gaps: Vec<(u32, u32)>,
    /// Whether there is a pipe operator.
    pub is_piped: bool,
    /// The token that opened what the last closing brace closes.
    pub opened: Option<u32>,
}

/// `NOTES`: whether gaps are noted.
struct Lexer<'a, const NOTES: bool> {
    /// Where errors are said to be; none where nobody asks.
    file: Option<&'static SourceFile>,
    text: &'a [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Modes around the current one; the bottom one (Nix's INITIAL) is not on it.
    outer: Vec<Mode>,
    mode: Mode,
    /// No path or URL starts before this offset: the run of path characters that ends there was looked at.
    plain_until: usize,
    pipes: bool,
    is_piped: bool,
    gaps: Vec<(u32, u32)>,
    /// Tokens that opened what is not closed yet, and the one of what was closed last.
    opens: Vec<u32>,
    opened: Option<u32>,
}

pub(crate) fn lex(file: Option<&'static SourceFile>, text: &[u8], pipes: bool, tokens: Vec<Token>) -> Lexed {
    lex_all::<false>(file, text, pipes, tokens, Vec::new()).lexed
}

/// As [`lex`], with pipe operators, of a text whose errors nobody asks for; `tokens` and `gaps` are room for those.
pub(crate) fn lex_noting(text: &[u8], tokens: Vec<Token>, gaps: Vec<(u32, u32)>) -> Noted {
    lex_all::<true>(None, text, true, tokens, gaps)
}

fn lex_all<const NOTES: bool>(
    file: Option<&'static SourceFile>,
    text: &[u8],
    pipes: bool,
    tokens: Vec<Token>,
    gaps: Vec<(u32, u32)>,
) -> Noted {
    let mut lexer = Lexer::<NOTES> {
        file,
        text,
        at: 0,
        tokens,
        outer: Vec::new(),
        mode: Mode::Plain,
        plain_until: 0,
        pipes,
        is_piped: false,
        gaps,
        opens: Vec::new(),
        opened: None,
    };
    lexer.tokens.clear();
    lexer.gaps.clear();
    lexer.tokens.reserve(text.len() / 4 + 2);
    let error = loop {
        let step = match lexer.mode {
            Mode::Plain => lexer.plain(),
            Mode::String => lexer.string(),
            Mode::Indented => lexer.indented(),
            Mode::Path | Mode::PathSlash => lexer.path_rest(),
            Mode::Done => break None,
        };
        if let Err(error) = step {
            lexer.push(Kind::Failed, lexer.at, lexer.at);
            break Some(*error);
        }
    };
    let Lexer { tokens, gaps, is_piped, opened, .. } = lexer;
    Noted { lexed: Lexed { tokens, error }, gaps, is_piped, opened }
}

type Step = Result<(), Box<ParseError>>;

impl<const NOTES: bool> Lexer<'_, NOTES> {
    #[inline]
    fn peek(&self, offset: usize) -> u8 {
        // NIX: the buffer Nix scans ends in two NULs, and no rule below starts with one.
        self.text.get(self.at + offset).copied().unwrap_or(0)
    }

    #[inline]
    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.tokens.push(Token { start: start as u32, end: end as u32, kind, form: Form::Verbatim });
    }

    /// Takes `len` bytes as a token.
    #[inline]
    fn take(&mut self, kind: Kind, len: usize) {
        self.push(kind, self.at, self.at + len);
        self.at += len;
    }

    fn take_form(&mut self, kind: Kind, form: Form, len: usize) {
        let start = self.at as u32;
        self.tokens.push(Token { start, end: start + len as u32, kind, form });
        self.at += len;
    }

    /// What began at `start` and ends here is no token.
    #[inline]
    fn pass(&mut self, start: usize) {
        if NOTES {
            self.gaps.push((start as u32, self.at as u32));
        }
    }

    fn enter(&mut self, mode: Mode) {
        if NOTES && mode == Mode::Plain {
            self.opens.push(self.tokens.len() as u32 - 1);
        }
        self.outer.push(self.mode);
        self.mode = mode;
    }

    fn leave(&mut self) {
        self.mode = self.outer.pop().unwrap_or(Mode::Plain);
    }

    fn fail(&self, at: usize, message: impl Into<Vec<u8>>) -> Step {
        let pos = self.file.map_or(Pos::NONE, |file| file.pos(at as u32));
        Err(Box::new(ParseError::new(pos, message)))
    }

    fn finish(&mut self, at: usize) {
        self.push(Kind::Eof, at, at);
        self.mode = Mode::Done;
    }

    // PERF: four bytes at a time take half the instructions of one by one.
    #[inline]
    fn end_of(&self, at: usize, class: u8) -> usize {
        let Some(mut rest) = self.text.get(at..) else { return at };
        while let Some((four, after)) = rest.split_first_chunk::<4>() {
            let [a, b, c, d] = *four;
            let all = CLASS[a as usize] & CLASS[b as usize] & CLASS[c as usize] & CLASS[d as usize];
            if all & class == 0 {
                break;
            }
            rest = after;
        }
        let inside = rest.iter().take_while(|&&byte| is(byte, class)).count();
        self.text.len() - rest.len() + inside
    }

    /// Expressions: runs until the mode changes.
    fn plain(&mut self) -> Step {
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                self.finish(self.at);
                return Ok(());
            };
            let class = CLASS[byte as usize];
            if class & SPACE != 0 {
                // Most white space is one byte, or the indentation of a line.
                let start = self.at;
                self.at += 1;
                if self.text.get(self.at).is_some_and(|&next| is(next, SPACE)) {
                    self.at = self.end_of(self.at + 1, SPACE);
                    self.pass(start);
                } else if byte != b' ' {
                    self.pass(start);
                }
                continue;
            }
            if class & ID_START != 0 {
                self.word();
            } else if let kind = SINGLE[byte as usize]
                && kind != Kind::Failed
            {
                self.take(kind, 1);
                continue;
            } else if class & DIGIT != 0 {
                self.number()?;
            } else {
                self.punctuation(byte)?;
            }
            if self.mode != Mode::Plain {
                return Ok(());
            }
        }
    }

    /// An identifier, a keyword, or a path or URL that starts with a letter.
    #[inline]
    fn word(&mut self) {
        let start = self.at;
        let end = self.end_of(start + 1, ID);
        if end < self.text.len()
            && matches!(self.text[end], b'.' | b'/' | b':' | b'+')
            && start >= self.plain_until
            && self.run()
        {
            return;
        }
        let kind = if end - start <= 7 { keyword(&self.text[start..end]) } else { Kind::Id };
        self.push(kind, start, end);
        self.at = end;
    }

    /// Tries a path or URL at the current place: both start with a run of path characters, and what follows the run
    /// decides.
    fn run(&mut self) -> bool {
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

    fn number(&mut self) -> Step {
        let start = self.at;
        let digits = self.end_of(start, DIGIT);
        let after = self.text.get(digits).copied().unwrap_or(0);
        if (is(after, PATH) || after == b'/') && start >= self.plain_until && self.run() {
            return Ok(());
        }
        if after == b'.' {
            // NIX: a float starts with 1-9 and may end in its point, or is `0.` and at least one digit.
            let fraction = self.end_of(digits + 1, DIGIT);
            let zero = digits == start + 1 && self.text[start] == b'0' && fraction > digits + 1;
            if self.text[start] != b'0' || zero {
                return self.float(start, fraction);
            }
        }
        let text = &self.text[start..digits];
        if text.len() > 18 && parse_int(text).is_none() {
            return self.fail(start, quoted("invalid integer '", text));
        }
        self.take(Kind::Int, digits - start);
        Ok(())
    }

    /// A float whose digits end at `end`, an exponent not yet looked at.
    fn float(&mut self, start: usize, end: usize) -> Step {
        let mut end = end;
        if self.text.get(end).is_some_and(|b| b | 0x20 == b'e') {
            let sign = usize::from(matches!(self.text.get(end + 1), Some(b'+' | b'-')));
            let exponent = self.end_of(end + 1 + sign, DIGIT);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let text = &self.text[start..end];
        let value = parse_float(text);
        let mantissa = text.iter().take_while(|b| **b | 0x20 != b'e');
        // NIX: strtod's range errors: overflow, and a result that lost digits to being subnormal.
        let tiny = value < f64::MIN_POSITIVE && mantissa.into_iter().any(|b| (b'1'..=b'9').contains(b));
        if value.is_infinite() || tiny {
            return self.fail(start, quoted("invalid float '", text));
        }
        self.take(Kind::Float, end - start);
        Ok(())
    }

    fn punctuation(&mut self, byte: u8) -> Step {
        let next = self.peek(1);
        let (kind, len) = match byte {
            b'=' if next == b'=' => (Kind::Eq, 2),
            b'=' => (Kind::Assign, 1),
            b'.' => return self.dot(next),
            b'"' => {
                self.take(Kind::Quote, 1);
                self.enter(Mode::String);
                return Ok(());
            }
            b'\'' if next == b'\'' => {
                self.open_indented();
                return Ok(());
            }
            b'{' => {
                self.take(Kind::LBrace, 1);
                self.enter(Mode::Plain);
                return Ok(());
            }
            b'$' if next == b'{' => {
                self.take(Kind::DollarCurly, 2);
                self.enter(Mode::Plain);
                return Ok(());
            }
            b'}' => {
                self.take(Kind::RBrace, 1);
                if NOTES {
                    self.opened = self.opens.pop();
                }
                self.leave();
                return Ok(());
            }
            b'!' if next == b'=' => (Kind::NEq, 2),
            b'!' => (Kind::Bang, 1),
            b'>' if next == b'=' => (Kind::GEq, 2),
            b'>' => (Kind::Greater, 1),
            b'&' if next == b'&' => (Kind::And, 2),
            b'|' if next == b'|' => (Kind::Or, 2),
            b'|' if next == b'>' => return self.pipe(Kind::PipeInto),
            b'<' => return self.less(next),
            b'#' => {
                let (start, rest) = (self.at, &self.text[self.at..]);
                self.at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                self.pass(start);
                return Ok(());
            }
            b'/' | b'+' | b'-' | b'~' => {
                self.operator_or_path(byte, next);
                return Ok(());
            }
            // NIX: a NUL is the end of the text to the parser, reported after itself.
            0 => {
                self.finish(self.at + 1);
                return Ok(());
            }
            _ => (Kind::Invalid, 1),
        };
        self.take(kind, len);
        Ok(())
    }

    /// Slash, plus, minus, tilde: operators, comments, or the start of a path.
    fn operator_or_path(&mut self, byte: u8, next: u8) {
        if byte == b'/' && next == b'*' {
            if let Some(end) = memmem::find(&self.text[self.at + 2..], b"*/") {
                let start = self.at;
                self.at += end + 4;
                return self.pass(start);
            }
            return self.take(Kind::Slash, 1);
        }
        if byte == b'~' {
            return self.home_path(next);
        }
        if self.at >= self.plain_until && self.run() {
            return;
        }
        match (byte, next) {
            (b'/', b'/') => self.take(Kind::Update, 2),
            (b'/', _) => self.take(Kind::Slash, 1),
            (b'+', b'+') => self.take(Kind::Concat, 2),
            (b'+', _) => self.take(Kind::Plus, 1),
            (_, b'>') => self.take(Kind::Impl, 2),
            _ => self.take(Kind::Minus, 1),
        }
    }

    fn home_path(&mut self, next: u8) {
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

    fn dot(&mut self, next: u8) -> Step {
        if self.at >= self.plain_until && (is(next, PATH) || next == b'/') && self.run() {
            return Ok(());
        }
        if next == b'.' && self.peek(2) == b'.' {
            self.take(Kind::Ellipsis, 3);
        } else if is(next, DIGIT) {
            let end = self.end_of(self.at + 1, DIGIT);
            return self.float(self.at, end);
        } else {
            self.take(Kind::Dot, 1);
        }
        Ok(())
    }

    fn less(&mut self, next: u8) -> Step {
        let mut end = self.at;
        while end == self.at || self.text.get(end) == Some(&b'/') {
            let segment = self.end_of(end + 1, PATH);
            if segment == end + 1 {
                break;
            }
            end = segment;
        }
        if end > self.at && self.text.get(end) == Some(&b'>') {
            self.take(Kind::SPath, end + 1 - self.at);
            return Ok(());
        }
        match next {
            b'=' => self.take(Kind::LEq, 2),
            b'|' => return self.pipe(Kind::PipeFrom),
            _ => self.take(Kind::Less, 1),
        }
        Ok(())
    }

    fn pipe(&mut self, kind: Kind) -> Step {
        if !self.pipes {
            let message = "experimental Nix feature 'pipe-operators' is disabled; \
                           add '--extra-experimental-features pipe-operators' to enable it";
            return self.fail(self.at, message);
        }
        self.is_piped = true;
        self.take(kind, 2);
        Ok(())
    }

    /// One piece of `"…"`.
    fn string(&mut self) -> Step {
        let (start, text) = (self.at, self.text);
        let mut at = start;
        let mut form = Form::Verbatim;
        let mut nul = false;
        loop {
            at = self.end_of(at, LITERAL);
            if at == text.len() {
                break;
            }
            match text[at] {
                b'"' => break,
                b'\\' if at + 1 < text.len() => {
                    form = Form::Escaped;
                    at += 2;
                }
                b'\\' => break,
                b'$' => match text.get(at + 1) {
                    Some(b'"') => at += 1,
                    Some(b'\\') if at + 2 < text.len() => {
                        form = Form::Escaped;
                        at += 3;
                    }
                    Some(b'{' | b'\\') | None => break,
                    Some(&second) => {
                        nul |= second == 0;
                        form = if second == b'\r' { Form::Escaped } else { form };
                        at += 2;
                    }
                },
                b'\r' => {
                    form = Form::Escaped;
                    at += 1;
                }
                _ => {
                    nul = true;
                    at += 1;
                }
            }
        }
        if at > start {
            if nul {
                let mut value = Vec::new();
                unescape(&text[start..at], &mut value);
                return self.fail(start, nul_message(&value));
            }
            self.take_form(Kind::Str, form, at - start);
            return Ok(());
        }
        match (self.peek(0), self.peek(1)) {
            (b'"', _) => {
                self.take(Kind::Quote, 1);
                self.leave();
            }
            (b'$', b'{') => {
                self.take(Kind::DollarCurly, 2);
                self.enter(Mode::Plain);
            }
            // NIX: what cannot be completed before the end of the text is the end, and is reported after itself.
            _ => self.finish(text.len()),
        }
        Ok(())
    }

    fn open_indented(&mut self) {
        let blank = self.text[self.at + 2..].iter().take_while(|&&b| b == b' ').count();
        let line = usize::from(self.peek(2 + blank) == b'\n') * (blank + 1);
        self.take(Kind::IndOpen, 2 + line);
        self.enter(Mode::Indented);
    }

    /// One piece of `''…''`.
    fn indented(&mut self) -> Step {
        let (start, text) = (self.at, self.text);
        let mut at = start;
        while let Some(found) = memchr2(b'$', b'\'', &text[at..]) {
            at += found;
            let stop = match (text[at], text.get(at + 1)) {
                (_, None) => true,
                (b'$', Some(b'{' | b'\'')) => true,
                (b'\'', Some(b'\'' | b'$')) => true,
                _ => false,
            };
            if stop {
                break;
            }
            at += 2;
        }
        if memchr2(b'$', b'\'', &text[at..]).is_none() {
            at = text.len();
        }
        if at > start {
            if memchr(0, &text[start..at]).is_some() {
                return self.fail(start, nul_message(&text[start..at]));
            }
            self.take(Kind::IndStr, at - start);
            return Ok(());
        }
        match (self.text.get(at), self.peek(1), self.peek(2)) {
            (None, ..) => self.finish(at),
            (Some(b'$'), b'{', _) => {
                self.take(Kind::DollarCurly, 2);
                self.enter(Mode::Plain);
            }
            (Some(b'$'), ..) => self.take_form(Kind::IndStr, Form::Dollar, 1),
            (_, b'\'', b'$') => self.take_form(Kind::IndStr, Form::Dollar, 3),
            (_, b'\'', b'\'') => self.take_form(Kind::IndStr, Form::TwoQuotes, 3),
            (_, b'\'', b'\\') if at + 3 < text.len() => self.take_form(Kind::IndStr, Form::Escaped, 4),
            (_, b'\'', _) => {
                self.take(Kind::IndClose, 2);
                self.leave();
            }
            _ => self.take_form(Kind::IndStr, Form::OneQuote, 1),
        }
        Ok(())
    }

    /// What follows a piece of a path: another piece, an interpolation, or the end.
    fn path_rest(&mut self) -> Step {
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

#[inline]
fn keyword(word: &[u8]) -> Kind {
    match word {
        b"if" => Kind::If,
        b"then" => Kind::Then,
        b"else" => Kind::Else,
        b"assert" => Kind::Assert,
        b"with" => Kind::With,
        b"let" => Kind::Let,
        b"in" => Kind::In,
        b"rec" => Kind::Rec,
        b"inherit" => Kind::Inherit,
        b"or" => Kind::OrKw,
        _ => Kind::Id,
    }
}

fn quoted(start: &str, text: &[u8]) -> Vec<u8> {
    [start.as_bytes(), text, b"'"].concat()
}

fn nul_message(value: &[u8]) -> Vec<u8> {
    let mut message = b"input string '".to_vec();
    for &byte in value {
        match byte {
            0 => message.extend_from_slice("␀".as_bytes()),
            _ => message.push(byte),
        }
    }
    message.extend_from_slice(b"' cannot be represented as Nix string because it contains null bytes");
    message
}

/// The value of an integer literal; `None` when it does not fit.
pub(crate) fn parse_int(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |n, b| n.checked_mul(10)?.checked_add(i64::from(b - b'0')))
}

/// The value of a float literal, infinite when it does not fit.
pub(crate) fn parse_float(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).unwrap_or(f64::INFINITY)
}

/// Undoes the escapes of `"…"` and turns carriage returns into line feeds.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut i = 0;
    while i < text.len() {
        let byte = text[i];
        i += 1;
        match byte {
            b'\\' if i < text.len() => {
                out.push(match text[i] {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                });
                i += 1;
            }
            b'\r' => {
                out.push(b'\n');
                i += usize::from(text.get(i) == Some(&b'\n'));
            }
            _ => out.push(byte),
        }
    }
}
