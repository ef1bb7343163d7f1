//! The grammar, on an explicit stack.

use std::borrow::Cow;

use super::lex::{Lexer, Token};

/// Receives a document, value by value. Nesting is announced, so the builder keeps its own stack.
pub trait Builder {
    /// What can go wrong while building.
    type Error;
    /// `null`
    fn null(&mut self) -> Result<(), Self::Error>;
    /// `true` or `false`
    fn boolean(&mut self, value: bool) -> Result<(), Self::Error>;
    /// A number written without fraction or exponent that fits 64 bits.
    fn integer(&mut self, value: i64) -> Result<(), Self::Error>;
    /// Any other number.
    fn float(&mut self, value: f64) -> Result<(), Self::Error>;
    /// A string; it may hold NUL bytes, which Nix strings may not.
    fn string(&mut self, value: Cow<'_, [u8]>) -> Result<(), Self::Error>;
    /// `[`
    fn start_array(&mut self) -> Result<(), Self::Error>;
    /// `]`
    fn end_array(&mut self) -> Result<(), Self::Error>;
    /// `{`
    fn start_object(&mut self) -> Result<(), Self::Error>;
    /// The name of the value that comes next. Of equal names the last counts.
    fn key(&mut self, name: Cow<'_, [u8]>) -> Result<(), Self::Error>;
    /// `}`
    fn end_object(&mut self) -> Result<(), Self::Error>;
}

/// Why a text was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// Not JSON; the message is nlohmann's (bytes, since it quotes the text).
    Syntax(Vec<u8>),
    /// An integer beyond the signed range.
    OutOfRange(u64),
    /// The builder's own.
    Builder(E),
}

impl<E> Error<E> {
    /// Nix's message, unless the error is the builder's.
    pub fn message(&self) -> Option<Vec<u8>> {
        match self {
            Error::Syntax(message) => Some(message.clone()),
            Error::OutOfRange(number) => {
                Some(format!("unsigned json number {number} outside of Nix integer range").into_bytes())
            }
            Error::Builder(_) => None,
        }
    }
}

/// Reads a whole document.
pub fn parse<B: Builder>(text: &[u8], builder: &mut B) -> Result<(), Error<B::Error>> {
    let mut parser = Parser { lexer: Lexer::new(text), builder };
    parser.document()?;
    match parser.lexer.token() {
        Token::End => Ok(()),
        token => Err(parser.syntax(&token, "value", Some("end of input"))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Array,
    Object,
}

struct Parser<'a, 'b, B> {
    lexer: Lexer<'a>,
    builder: &'b mut B,
}

impl<'a, B: Builder> Parser<'a, '_, B> {
    fn document(&mut self) -> Result<(), Error<B::Error>> {
        let mut levels: Vec<Level> = Vec::new();
        let mut token = self.lexer.token();
        loop {
            // A value begins with `token`.
            match token {
                Token::BeginObject => {
                    self.builder.start_object().map_err(Error::Builder)?;
                    token = self.lexer.token();
                    if token == Token::EndObject {
                        self.builder.end_object().map_err(Error::Builder)?;
                    } else {
                        token = self.member(token)?;
                        levels.push(Level::Object);
                        continue;
                    }
                }
                Token::BeginArray => {
                    self.builder.start_array().map_err(Error::Builder)?;
                    token = self.lexer.token();
                    if token == Token::EndArray {
                        self.builder.end_array().map_err(Error::Builder)?;
                    } else {
                        levels.push(Level::Array);
                        continue;
                    }
                }
                _ => self.scalar(token)?,
            }
            // A value has ended; so may the levels around it.
            token = loop {
                let Some(&level) = levels.last() else { return Ok(()) };
                match (level, self.lexer.token()) {
                    (Level::Array, Token::Comma) => break self.lexer.token(),
                    (Level::Object, Token::Comma) => {
                        let key = self.lexer.token();
                        break self.member(key)?;
                    }
                    (Level::Array, Token::EndArray) => self.builder.end_array().map_err(Error::Builder)?,
                    (Level::Object, Token::EndObject) => self.builder.end_object().map_err(Error::Builder)?,
                    (Level::Array, other) => return Err(self.syntax(&other, "array", Some("']'"))),
                    (Level::Object, other) => return Err(self.syntax(&other, "object", Some("'}'"))),
                }
                levels.pop();
            };
        }
    }

    /// A key and its colon; gives the token after them.
    fn member(&mut self, key: Token<'a>) -> Result<Token<'a>, Error<B::Error>> {
        let Token::String(name) = key else {
            return Err(self.syntax(&key, "object key", Some("string literal")));
        };
        self.builder.key(name).map_err(Error::Builder)?;
        match self.lexer.token() {
            Token::Colon => Ok(self.lexer.token()),
            other => Err(self.syntax(&other, "object separator", Some("':'"))),
        }
    }

    fn scalar(&mut self, token: Token<'a>) -> Result<(), Error<B::Error>> {
        let built = match token {
            Token::Null => self.builder.null(),
            Token::True => self.builder.boolean(true),
            Token::False => self.builder.boolean(false),
            Token::Integer(value) => self.builder.integer(value),
            Token::Unsigned(value) => match i64::try_from(value) {
                Ok(value) => self.builder.integer(value),
                Err(_) => return Err(Error::OutOfRange(value)),
            },
            Token::Float(value) if value.is_finite() => self.builder.float(value),
            Token::Float(_) => {
                let quoted = self.lexer.last_read();
                let text = [b"[json.exception.out_of_range.406] number overflow parsing '", &quoted[..], b"'"];
                return Err(Error::Syntax(text.concat()));
            }
            Token::String(value) => self.builder.string(value),
            Token::Bad(_) => return Err(self.syntax(&token, "value", None)),
            Token::End if self.lexer.is_empty_input() => {
                let what = b"attempting to parse an empty input; check that your input string or stream contains the \
                             expected JSON";
                return Err(self.error(what));
            }
            other => return Err(self.syntax(&other, "value", Some("'[', '{', or a literal"))),
        };
        built.map_err(Error::Builder)
    }

    fn syntax(&self, token: &Token, place: &str, expected: Option<&str>) -> Error<B::Error> {
        let mut message = format!("syntax error while parsing {place} - ").into_bytes();
        match token {
            Token::Bad(reason) => {
                message.extend_from_slice(reason.as_bytes());
                message.extend_from_slice(b"; last read: '");
                message.extend_from_slice(&self.lexer.last_read());
                message.push(b'\'');
            }
            token => message.extend_from_slice(format!("unexpected {}", token.name()).as_bytes()),
        }
        if let Some(expected) = expected {
            message.extend_from_slice(format!("; expected {expected}").as_bytes());
        }
        self.error(&message)
    }

    fn error(&self, what: &[u8]) -> Error<B::Error> {
        let (line, column) = self.lexer.position();
        let place = format!("[json.exception.parse_error.101] parse error at line {line}, column {column}: ");
        Error::Syntax([place.as_bytes(), what].concat())
    }
}
