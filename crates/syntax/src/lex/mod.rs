//! The lexer: a whole text to tokens in one pass, by the longest-match rules of Nix's flex grammar.
//!
//! Called by the parser once per text. Which rules apply depends only on the text before (a stack of modes), so the
//! tokens can be made ahead of parsing. A lexical error ends the tokens with [`Kind::Failed`]: it is reported when the
//! parser comes to it, as Nix does, because a syntax error may come first.

mod number;
mod path;
mod quoted;

use crate::error::ParseError;
use crate::parse::Features;
use crate::token::{Form, Kind, Token};
use firn_source::SourceFile;
use memchr::{memchr2, memmem};
pub(crate) use number::{parse_float, parse_int};
pub(crate) use quoted::unescape;

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
}

/// The tokens of a text; the last one is [`Kind::Eof`], or [`Kind::Failed`] with the error.
pub(crate) struct Lexed {
    pub tokens: Vec<Token>,
    pub error: Option<ParseError>,
}

struct Lexer {
    file: &'static SourceFile,
    text: &'static [u8],
    at: usize,
    tokens: Vec<Token>,
    /// Modes around the current one; the bottom one (Nix's INITIAL) is not on it.
    outer: Vec<Mode>,
    mode: Mode,
    /// No path or URL starts before this offset: the run of path characters that ends there was looked at.
    plain_until: usize,
    pipes: bool,
    done: bool,
}

pub(crate) fn lex(file: &'static SourceFile, features: &Features, tokens: Vec<Token>) -> Lexed {
    let text = file.text();
    let mut lexer = Lexer {
        file,
        text,
        at: 0,
        tokens,
        outer: Vec::new(),
        mode: Mode::Plain,
        plain_until: 0,
        pipes: features.pipe_operators,
        done: false,
    };
    lexer.tokens.clear();
    lexer.tokens.reserve(text.len() / 4 + 2);
    let mut error = None;
    while !lexer.done && error.is_none() {
        let step = match lexer.mode {
            Mode::Plain => lexer.plain(),
            Mode::String => lexer.string(),
            Mode::Indented => lexer.indented(),
            Mode::Path | Mode::PathSlash => lexer.path_rest(),
        };
        error = step.err().map(|e| *e);
    }
    if error.is_some() {
        lexer.push(Kind::Failed, lexer.at, lexer.at);
    }
    Lexed { tokens: lexer.tokens, error }
}

type Step = Result<(), Box<ParseError>>;

impl Lexer {
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

    fn enter(&mut self, mode: Mode) {
        self.outer.push(self.mode);
        self.mode = mode;
    }

    fn leave(&mut self) {
        self.mode = self.outer.pop().unwrap_or(Mode::Plain);
    }

    fn fail(&self, at: usize, message: impl Into<Vec<u8>>) -> Step {
        Err(Box::new(ParseError::new(self.file.pos(at as u32), message)))
    }

    fn finish(&mut self, at: usize) {
        self.push(Kind::Eof, at, at);
        self.done = true;
    }

    #[inline]
    fn end_of(&self, mut at: usize, class: u8) -> usize {
        while at < self.text.len() && is(self.text[at], class) {
            at += 1;
        }
        at
    }

    /// Expressions: runs until the mode changes.
    fn plain(&mut self) -> Step {
        while self.mode == Mode::Plain && !self.done {
            let Some(&byte) = self.text.get(self.at) else {
                self.finish(self.at);
                break;
            };
            if is(byte, SPACE) {
                self.at = self.end_of(self.at + 1, SPACE);
            } else if is(byte, ID_START) {
                self.word();
            } else if is(byte, DIGIT) {
                self.number()?;
            } else {
                self.punctuation(byte)?;
            }
        }
        Ok(())
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

    fn punctuation(&mut self, byte: u8) -> Step {
        let next = self.peek(1);
        let (kind, len) = match byte {
            b'=' if next == b'=' => (Kind::Eq, 2),
            b'=' => (Kind::Assign, 1),
            b';' => (Kind::Semicolon, 1),
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
                self.leave();
                return Ok(());
            }
            b'(' => (Kind::LParen, 1),
            b')' => (Kind::RParen, 1),
            b'[' => (Kind::LBracket, 1),
            b']' => (Kind::RBracket, 1),
            b':' => (Kind::Colon, 1),
            b',' => (Kind::Comma, 1),
            b'?' => (Kind::Question, 1),
            b'@' => (Kind::At, 1),
            b'*' => (Kind::Star, 1),
            b'!' if next == b'=' => (Kind::NEq, 2),
            b'!' => (Kind::Bang, 1),
            b'>' if next == b'=' => (Kind::GEq, 2),
            b'>' => (Kind::Greater, 1),
            b'&' if next == b'&' => (Kind::And, 2),
            b'|' if next == b'|' => (Kind::Or, 2),
            b'|' if next == b'>' => return self.pipe(Kind::PipeInto),
            b'<' => return self.less(next),
            b'#' => {
                let rest = &self.text[self.at..];
                self.at += memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
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
                self.at += end + 4;
                return;
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
        self.take(kind, 2);
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
