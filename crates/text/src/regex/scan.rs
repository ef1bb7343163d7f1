//! Tokens of the POSIX extended grammar, one ahead of the parser as in libstdc++.
//!
//! One token ahead matters: a malformed token is reported before the construct in front of it is built, which decides
//! between the two errors.

use super::Error;

/// A token; those that carry text leave it in [`Scanner::value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Any,
    Byte(u8),
    Open,
    Close,
    Or,
    LineBegin,
    LineEnd,
    Star,
    Plus,
    Question,
    BraceOpen,
    BraceClose,
    Comma,
    Count,
    BracketOpen,
    BracketOpenNegated,
    BracketClose,
    Dash,
    CollatingSymbol,
    EquivalenceClass,
    CharacterClass,
    End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Normal,
    Bracket,
    Brace,
}

/// The scanner; `token` is the one not yet taken.
pub(super) struct Scanner<'a> {
    rest: &'a [u8],
    mode: Mode,
    at_bracket_start: bool,
    pub token: Token,
    pub value: &'a [u8],
}

impl<'a> Scanner<'a> {
    /// Stands at the first token of `pattern`.
    pub fn new(pattern: &'a [u8]) -> Result<Self, Error> {
        let mut scanner =
            Scanner { rest: pattern, mode: Mode::Normal, at_bracket_start: false, token: Token::End, value: b"" };
        scanner.advance()?;
        Ok(scanner)
    }

    /// Takes the current token if it is `token`.
    pub fn take(&mut self, token: Token) -> Result<bool, Error> {
        if self.token != token {
            return Ok(false);
        }
        self.advance()?;
        Ok(true)
    }

    /// Takes the current token if it is an ordinary byte.
    pub fn take_byte(&mut self) -> Result<Option<u8>, Error> {
        let Token::Byte(byte) = self.token else { return Ok(None) };
        self.advance()?;
        Ok(Some(byte))
    }

    /// Takes the current token if it is `token`, and gives its text.
    pub fn take_value(&mut self, token: Token) -> Result<Option<&'a [u8]>, Error> {
        if self.token != token {
            return Ok(None);
        }
        let value = self.value;
        self.advance()?;
        Ok(Some(value))
    }

    fn advance(&mut self) -> Result<(), Error> {
        let Some((&byte, rest)) = self.rest.split_first() else {
            self.token = Token::End;
            return Ok(());
        };
        let at = self.rest;
        self.rest = rest;
        self.token = match self.mode {
            Mode::Normal => self.normal(byte)?,
            Mode::Bracket => self.bracket(byte)?,
            Mode::Brace => self.brace(byte, at)?,
        };
        Ok(())
    }

    fn normal(&mut self, byte: u8) -> Result<Token, Error> {
        Ok(match byte {
            b'\\' => return self.escape(),
            b'(' => Token::Open,
            b')' => Token::Close,
            b'[' => {
                self.mode = Mode::Bracket;
                self.at_bracket_start = true;
                if let Some(rest) = self.rest.strip_prefix(b"^") {
                    self.rest = rest;
                    Token::BracketOpenNegated
                } else {
                    Token::BracketOpen
                }
            }
            b'{' => {
                self.mode = Mode::Brace;
                Token::BraceOpen
            }
            b'^' => Token::LineBegin,
            b'$' => Token::LineEnd,
            b'.' => Token::Any,
            b'*' => Token::Star,
            b'+' => Token::Plus,
            b'?' => Token::Question,
            b'|' => Token::Or,
            0 => return Err(Error::Invalid),
            _ => Token::Byte(byte),
        })
    }

    /// NIX: only the special characters may be escaped; `\d`, `\]`, `\}` and back-references are errors.
    fn escape(&mut self) -> Result<Token, Error> {
        match self.rest.split_first() {
            Some((&byte, rest)) if b".[\\()*+?{|^$".contains(&byte) => {
                self.rest = rest;
                Ok(Token::Byte(byte))
            }
            _ => Err(Error::Invalid),
        }
    }

    fn bracket(&mut self, byte: u8) -> Result<Token, Error> {
        let at_start = std::mem::replace(&mut self.at_bracket_start, false);
        Ok(match byte {
            b'-' => Token::Dash,
            b'[' => match self.rest.first() {
                None => return Err(Error::Invalid),
                Some(b'.') => self.class(b'.', Token::CollatingSymbol)?,
                Some(b':') => self.class(b':', Token::CharacterClass)?,
                Some(b'=') => self.class(b'=', Token::EquivalenceClass)?,
                Some(_) => Token::Byte(b'['),
            },
            b']' if !at_start => {
                self.mode = Mode::Normal;
                Token::BracketClose
            }
            _ => Token::Byte(byte),
        })
    }

    /// The name between `[:` and `:]` and the like.
    fn class(&mut self, mark: u8, token: Token) -> Result<Token, Error> {
        let body = &self.rest[1..];
        let length = body.iter().position(|&byte| byte == mark).ok_or(Error::Invalid)?;
        if body.get(length + 1) != Some(&b']') {
            return Err(Error::Invalid);
        }
        self.value = &body[..length];
        self.rest = &body[length + 2..];
        Ok(token)
    }

    fn brace(&mut self, byte: u8, at: &'a [u8]) -> Result<Token, Error> {
        match byte {
            b'0'..=b'9' => {
                let length = at.iter().take_while(|byte| byte.is_ascii_digit()).count();
                (self.value, self.rest) = at.split_at(length);
                Ok(Token::Count)
            }
            b',' => Ok(Token::Comma),
            b'}' => {
                self.mode = Mode::Normal;
                Ok(Token::BraceClose)
            }
            _ => Err(Error::Invalid),
        }
    }
}
