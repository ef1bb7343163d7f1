//! Tokens of a JSON text.
//!
//! Invariant: `read` is how far a byte-wise reader would have come at this moment and `at_end` whether it has seen the
//! end, because positions in error messages count what was read.

use std::borrow::Cow;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    True,
    False,
    Null,
    String(Cow<'a, [u8]>),
    Unsigned(u64),
    Integer(i64),
    Float(f64),
    BeginArray,
    BeginObject,
    EndArray,
    EndObject,
    Colon,
    Comma,
    End,
    /// Not a token, and why.
    Bad(Cow<'static, str>),
}

impl Token<'_> {
    /// How messages call it.
    pub fn name(&self) -> &'static str {
        match self {
            Token::True => "true literal",
            Token::False => "false literal",
            Token::Null => "null literal",
            Token::String(_) => "string literal",
            Token::Unsigned(_) | Token::Integer(_) | Token::Float(_) => "number literal",
            Token::BeginArray => "'['",
            Token::BeginObject => "'{'",
            Token::EndArray => "']'",
            Token::EndObject => "'}'",
            Token::Colon => "':'",
            Token::Comma => "','",
            Token::End => "end of input",
            Token::Bad(_) => "<parse error>",
        }
    }
}

/// The scanner.
pub(super) struct Lexer<'a> {
    text: &'a [u8],
    /// Bytes read.
    read: usize,
    at_end: bool,
    /// NIX: a newline read to end a number is put back, and the column is lost with it.
    column_lost: bool,
    /// Where the last string or number began: what messages quote starts there.
    marked: usize,
}

const ILL_FORMED: Token = Token::Bad(Cow::Borrowed("invalid string: ill-formed UTF-8 byte"));

fn bad(message: &'static str) -> Token<'static> {
    Token::Bad(Cow::Borrowed(message))
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Lexer { text, read: 0, at_end: false, column_lost: false, marked: 0 }
    }

    /// Whether nothing but the end has been read.
    pub fn is_empty_input(&self) -> bool {
        self.read + usize::from(self.at_end) == 1
    }

    /// Line and column of the last byte read.
    pub fn position(&self) -> (usize, usize) {
        let before = &self.text[..self.read];
        let lines = before.iter().filter(|&&byte| byte == b'\n').count();
        if self.column_lost {
            return (lines + 1, 0);
        }
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |index| index + 1);
        (lines + 1, self.read - start + usize::from(self.at_end))
    }

    /// What was read since the mark, control characters made visible.
    pub fn last_read(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for &byte in &self.text[self.marked..self.read] {
            match byte {
                0..=0x1f => out.extend_from_slice(format!("<U+{byte:04X}>").as_bytes()),
                _ => out.push(byte),
            }
        }
        out
    }

    fn get(&mut self) -> Option<u8> {
        match self.text.get(self.read) {
            Some(&byte) => {
                self.read += 1;
                Some(byte)
            }
            None => {
                self.at_end = true;
                None
            }
        }
    }

    /// The next token.
    pub fn token(&mut self) -> Token<'a> {
        self.at_end = false;
        self.column_lost = false;
        if self.read == 0 && self.text.first() == Some(&0xef) {
            self.read = 1;
            if self.get() != Some(0xbb) || self.get() != Some(0xbf) {
                return bad("invalid BOM; must be 0xEF 0xBB 0xBF if given");
            }
        }
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.read) {
            self.read += 1;
        }
        match self.get() {
            None | Some(0) => Token::End,
            Some(b'[') => Token::BeginArray,
            Some(b']') => Token::EndArray,
            Some(b'{') => Token::BeginObject,
            Some(b'}') => Token::EndObject,
            Some(b':') => Token::Colon,
            Some(b',') => Token::Comma,
            Some(b't') => self.word(b"rue", Token::True),
            Some(b'f') => self.word(b"alse", Token::False),
            Some(b'n') => self.word(b"ull", Token::Null),
            Some(b'"') => self.string(),
            Some(byte @ (b'-' | b'0'..=b'9')) => self.number(byte),
            Some(_) => bad("invalid literal"),
        }
    }

    fn word(&mut self, rest: &[u8], token: Token<'a>) -> Token<'a> {
        for &expected in rest {
            if self.get() != Some(expected) {
                return bad("invalid literal");
            }
        }
        token
    }

    fn string(&mut self) -> Token<'a> {
        self.marked = self.read - 1;
        let start = self.read;
        let mut owned: Option<Vec<u8>> = None;
        // Where the bytes not yet copied begin, once copying has begun.
        let mut from = start;
        loop {
            while let Some(b' ' | b'!' | b'#'..=b'[' | b']'..=0x7f) = self.text.get(self.read) {
                self.read += 1;
            }
            match self.get() {
                None => return bad("invalid string: missing closing quote"),
                Some(b'"') => {
                    let tail = &self.text[from..self.read - 1];
                    return Token::String(match owned {
                        None => Cow::Borrowed(tail),
                        Some(mut bytes) => {
                            bytes.extend_from_slice(tail);
                            Cow::Owned(bytes)
                        }
                    });
                }
                Some(b'\\') => {
                    let bytes = owned.get_or_insert_default();
                    bytes.extend_from_slice(&self.text[from..self.read - 1]);
                    match self.escape() {
                        Ok(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                        Err(message) => return bad(message),
                    }
                    from = self.read;
                }
                Some(byte @ 0..=0x1f) => return Token::Bad(control_message(byte).into()),
                Some(lead) => {
                    if !self.continuation(lead) {
                        return ILL_FORMED;
                    }
                }
            }
        }
    }

    /// The bytes after the first of a character beyond ASCII.
    fn continuation(&mut self, lead: u8) -> bool {
        let (second, more) = match lead {
            0xc2..=0xdf => (0x80..=0xbf, 0),
            0xe0 => (0xa0..=0xbf, 1),
            0xe1..=0xec | 0xee..=0xef => (0x80..=0xbf, 1),
            0xed => (0x80..=0x9f, 1),
            0xf0 => (0x90..=0xbf, 2),
            0xf1..=0xf3 => (0x80..=0xbf, 2),
            0xf4 => (0x80..=0x8f, 2),
            _ => return false,
        };
        self.get().is_some_and(|byte| second.contains(&byte))
            && (0..more).all(|_| self.get().is_some_and(|byte| (0x80..=0xbf).contains(&byte)))
    }

    fn escape(&mut self) -> Result<char, &'static str> {
        Ok(match self.get() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err("invalid string: forbidden character after backslash"),
        })
    }

    fn unicode(&mut self) -> Result<char, &'static str> {
        const LOW_MISSING: &str = "invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF";
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff => {
                if self.get() != Some(b'\\') || self.get() != Some(b'u') {
                    return Err(LOW_MISSING);
                }
                match self.hex()? {
                    second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(LOW_MISSING),
                }
            }
            0xdc00..=0xdfff => return Err("invalid string: surrogate U+DC00..U+DFFF must follow U+D800..U+DBFF"),
            _ => first,
        };
        char::from_u32(code).ok_or(LOW_MISSING)
    }

    fn hex(&mut self) -> Result<u32, &'static str> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.get().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or("invalid string: '\\u' must be followed by 4 hex digits")?;
        }
        Ok(code)
    }

    fn digits(&mut self) -> bool {
        let from = self.read;
        while let Some(b'0'..=b'9') = self.text.get(self.read) {
            self.read += 1;
        }
        self.read > from
    }

    /// Digits that must come; the byte in their place counts as read.
    fn required_digits(&mut self) -> bool {
        let found = self.digits();
        if !found {
            self.get();
        }
        found
    }

    fn number(&mut self, first: u8) -> Token<'a> {
        let start = self.read - 1;
        self.marked = start;
        let mut first = Some(first);
        let negative = first == Some(b'-');
        if negative {
            first = self.get();
            if !matches!(first, Some(b'0'..=b'9')) {
                return bad("invalid number; expected digit after '-'");
            }
        }
        if first != Some(b'0') {
            self.digits();
        }
        let mut whole = true;
        if self.text.get(self.read) == Some(&b'.') {
            whole = false;
            self.read += 1;
            if !self.required_digits() {
                return bad("invalid number; expected digit after '.'");
            }
        }
        if let Some(b'e' | b'E') = self.text.get(self.read) {
            whole = false;
            self.read += 1;
            if let Some(b'+' | b'-') = self.text.get(self.read) {
                self.read += 1;
                if !self.required_digits() {
                    return bad("invalid number; expected digit after exponent sign");
                }
            } else if !self.required_digits() {
                return bad("invalid number; expected '+', '-', or digit after exponent");
            }
        }
        self.column_lost = self.text.get(self.read) == Some(&b'\n');
        let text = std::str::from_utf8(&self.text[start..self.read]).unwrap_or("");
        if whole && negative
            && let Ok(value) = text.parse()
        {
            return Token::Integer(value);
        }
        if whole && !negative
            && let Ok(value) = text.parse()
        {
            return Token::Unsigned(value);
        }
        Token::Float(text.parse().unwrap_or(f64::INFINITY))
    }
}

/// NIX: the message spells out the control character.
fn control_message(byte: u8) -> String {
    #[rustfmt::skip]
    const NAMES: [&str; 32] = [
        "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "HT", "LF", "VT", "FF", "CR", "SO", "SI",
        "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC", "FS", "GS", "RS", "US",
    ];
    let short = match byte {
        8 => " or \\b",
        9 => " or \\t",
        10 => " or \\n",
        12 => " or \\f",
        13 => " or \\r",
        _ => "",
    };
    let name = NAMES[usize::from(byte)];
    format!("invalid string: control character U+{byte:04X} ({name}) must be escaped to \\u{byte:04X}{short}")
}
