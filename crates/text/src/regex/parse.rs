//! From pattern to automaton. No recursion: open groups are kept on a stack, so nesting costs heap, not stack.

use super::Error;
use super::bracket;
use super::nfa::{ByteSet, Kind, NONE, Nfa, Piece};
use super::scan::{Scanner, Token};

/// A group whose closing parenthesis has not come yet.
struct Group {
    /// The piece that ends in the opening state.
    front: Piece,
    number: u32,
    /// The alternatives before the current one, joined.
    before: Option<Piece>,
    /// The current alternative so far.
    current: Option<Piece>,
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    nfa: Nfa,
    open: Vec<Group>,
    groups: u32,
}

/// Builds the automaton, entered at state 0, and says how many groups there are (the whole match is group 0).
pub(super) fn parse(pattern: &[u8]) -> Result<(Nfa, usize), Error> {
    let mut parser = Parser { scanner: Scanner::new(pattern)?, nfa: Nfa::default(), open: Vec::new(), groups: 0 };
    parser.open_group()?;
    loop {
        let (piece, quantifiable) = match parser.scanner.token {
            Token::End if parser.open.len() == 1 => break,
            Token::Or => {
                parser.scanner.take(Token::Or)?;
                parser.end_alternative()?;
                continue;
            }
            Token::Open => {
                parser.scanner.take(Token::Open)?;
                parser.open_group()?;
                continue;
            }
            Token::Close if parser.open.len() > 1 => {
                parser.end_alternative()?;
                parser.scanner.take(Token::Close)?;
                (parser.close_group()?, true)
            }
            Token::LineBegin => {
                parser.scanner.take(Token::LineBegin)?;
                (parser.nfa.piece(Kind::LineBegin)?, false)
            }
            Token::LineEnd => {
                parser.scanner.take(Token::LineEnd)?;
                (parser.nfa.piece(Kind::LineEnd)?, false)
            }
            _ => (parser.single()?, true),
        };
        let piece = if quantifiable { parser.quantifiers(piece)? } else { piece };
        parser.push(piece);
    }
    parser.end_alternative()?;
    let mut whole = parser.close_group()?;
    let accept = parser.nfa.piece(Kind::Accept)?;
    parser.nfa.append(&mut whole, accept);
    parser.nfa.skip_joints();
    Ok((parser.nfa, parser.groups as usize))
}

impl Parser<'_> {
    fn open_group(&mut self) -> Result<(), Error> {
        let number = self.groups;
        self.groups += 1;
        let front = self.nfa.piece(Kind::Open(number))?;
        self.open.push(Group { front, number, before: None, current: None });
        Ok(())
    }

    /// Puts a term at the end of the current alternative.
    fn push(&mut self, piece: Piece) {
        let Some(group) = self.open.last_mut() else { return };
        match &mut group.current {
            Some(current) => self.nfa.append(current, piece),
            None => group.current = Some(piece),
        }
    }

    /// Joins the current alternative to those before it.
    fn end_alternative(&mut self) -> Result<(), Error> {
        let joint = self.nfa.piece(Kind::Joint)?;
        let Some(group) = self.open.last_mut() else { return Ok(()) };
        let mut right = match group.current.take() {
            Some(mut current) => {
                self.nfa.append(&mut current, joint);
                current
            }
            None => joint,
        };
        group.before = Some(match group.before {
            None => right,
            Some(mut left) => {
                let end = self.nfa.piece(Kind::Joint)?;
                self.nfa.append(&mut left, end);
                self.nfa.append(&mut right, end);
                let start = self.nfa.add(Kind::Alternative, right.start, left.start)?;
                Piece { start, end: end.end }
            }
        });
        Ok(())
    }

    /// Ends the innermost group, whose last alternative has been joined.
    fn close_group(&mut self) -> Result<Piece, Error> {
        let Some(Group { mut front, number, before: Some(body), .. }) = self.open.pop() else {
            return Err(Error::Invalid);
        };
        self.nfa.append(&mut front, body);
        let close = self.nfa.piece(Kind::Close(number))?;
        self.nfa.append(&mut front, close);
        Ok(front)
    }

    /// A single-byte atom; anything else here is misplaced.
    fn single(&mut self) -> Result<Piece, Error> {
        let set = if self.scanner.take(Token::Any)? {
            // NIX: in POSIX mode the dot stands for every byte but NUL, newline included.
            let mut nul = ByteSet::default();
            nul.insert(0);
            nul.complement()
        } else if let Some(byte) = self.scanner.take_byte()? {
            let mut set = ByteSet::default();
            set.insert(byte);
            set
        } else if self.scanner.take(Token::BracketOpen)? {
            bracket::parse(&mut self.scanner, false)?
        } else if self.scanner.take(Token::BracketOpenNegated)? {
            bracket::parse(&mut self.scanner, true)?
        } else {
            return Err(Error::Invalid);
        };
        self.nfa.set(set)
    }

    /// Applies every quantifier that follows an atom.
    fn quantifiers(&mut self, mut piece: Piece) -> Result<Piece, Error> {
        loop {
            piece = if self.scanner.take(Token::Star)? {
                let repeat = self.repeat(piece)?;
                self.nfa.append(&mut piece, repeat);
                repeat
            } else if self.scanner.take(Token::Plus)? {
                let repeat = self.repeat(piece)?;
                self.nfa.append(&mut piece, repeat);
                piece
            } else if self.scanner.take(Token::Question)? {
                let end = self.nfa.piece(Kind::Joint)?;
                let mut repeat = self.repeat(piece)?;
                self.nfa.append(&mut piece, end);
                self.nfa.append(&mut repeat, end);
                repeat
            } else if self.scanner.take(Token::BraceOpen)? {
                self.interval(piece)?
            } else {
                return Ok(piece);
            };
        }
    }

    fn repeat(&mut self, body: Piece) -> Result<Piece, Error> {
        let id = self.nfa.add(Kind::Repeat, NONE, body.start)?;
        Ok(Piece { start: id, end: id })
    }

    /// `{n}`, `{n,}`, `{n,m}` after the brace: copies of the body, the body itself stays unused.
    fn interval(&mut self, body: Piece) -> Result<Piece, Error> {
        let least = self.scanner.take_value(Token::Count)?.map(count).ok_or(Error::Invalid)?;
        let mut whole = self.nfa.piece(Kind::Joint)?;
        let mut most = Some(least);
        if self.scanner.take(Token::Comma)? {
            most = self.scanner.take_value(Token::Count)?.map(count);
        }
        if !self.scanner.take(Token::BraceClose)? {
            return Err(Error::Invalid);
        }
        for _ in 0..least {
            let copy = self.nfa.clone_piece(body)?;
            self.nfa.append(&mut whole, copy);
        }
        let Some(most) = most else {
            let mut copy = self.nfa.clone_piece(body)?;
            let repeat = self.repeat(copy)?;
            self.nfa.append(&mut copy, repeat);
            self.nfa.append(&mut whole, repeat);
            return Ok(whole);
        };
        if most < least {
            return Err(Error::Invalid);
        }
        let end = self.nfa.piece(Kind::Joint)?;
        for _ in least..most {
            let copy = self.nfa.clone_piece(body)?;
            let repeat = self.nfa.add(Kind::Repeat, end.start, copy.start)?;
            self.nfa.append(&mut whole, Piece { start: repeat, end: copy.end });
        }
        self.nfa.append(&mut whole, end);
        Ok(whole)
    }
}

/// NIX: counts are accumulated in a `long` and cut to an `int`.
fn count(digits: &[u8]) -> i64 {
    let value =
        digits.iter().fold(0i64, |value, digit| value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
    i64::from(value as i32)
}
