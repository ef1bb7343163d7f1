//! Indented strings: `''…''` with the common indentation of their lines taken off.

use super::{Parsed, Parser};
use crate::ast::{Expr, ExprId, Part, Text};
use crate::lex::unescape;
use crate::token::{Form, Kind, Token};
use firn_source::Pos;
use memchr::memchr;

/// A piece of an indented string.
#[derive(Clone, Copy)]
enum Piece {
    Text(Token),
    Expr(ExprId, Pos),
}

impl Parser<'_> {
    /// From the opening quotes to past the closing ones.
    pub(super) fn indented_string(&mut self) -> Parsed<ExprId> {
        let open = self.token();
        self.advance();
        let first = self.token();
        if first.kind == Kind::IndStr && self.kind_after(1) == Kind::IndClose {
            self.advance();
            self.advance();
            return Ok(self.strip(open, &[Piece::Text(first)]));
        }
        let mut pieces = Vec::new();
        loop {
            let token = self.token();
            match token.kind {
                Kind::IndStr => {
                    self.advance();
                    pieces.push(Piece::Text(token));
                }
                Kind::DollarCurly => {
                    let expr = self.interpolation()?;
                    pieces.push(Piece::Expr(expr, self.pos(token)));
                }
                Kind::IndClose => break,
                _ => return self.unexpected(),
            }
        }
        self.advance();
        Ok(self.strip(open, &pieces))
    }

    fn strip(&mut self, open: Token, pieces: &[Piece]) -> ExprId {
        let indent = common_indent(self.text, pieces);
        let from = self.parts.len();
        let mut state = Strip { indent, line_start: true, dropped: 0 };
        for (i, &piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Expr(expr, pos) => {
                    state = Strip { indent, line_start: false, dropped: 0 };
                    self.parts.push(Part { expr, pos });
                }
                Piece::Text(token) => {
                    let text = self.strip_piece(token, &mut state, i + 1 == pieces.len());
                    if text.len > 0 {
                        let expr = self.add(Expr::String(text));
                        self.parts.push(Part { expr, pos: self.pos(token) });
                    }
                }
            }
        }
        match self.parts[from..] {
            [] => self.add(Expr::String(Text { start: open.start, len: 0 })),
            // NIX: a lone literal is itself the result, even when it came from an interpolation.
            [Part { expr, .. }] if matches!(self.ast.nodes[expr.index()], Expr::String(_)) => {
                self.parts.truncate(from);
                expr
            }
            _ => {
                let parts = self.take_parts(from);
                let pos = self.pos(open);
                self.add(Expr::Concat { force_string: true, parts, pos })
            }
        }
    }

    fn strip_piece(&mut self, token: Token, state: &mut Strip, last: bool) -> Text {
        let source = &self.text[token.start as usize..token.end as usize];
        let out = &mut self.ast.owned;
        let start = out.len();
        match token.form {
            Form::Verbatim => state.strip(source, out),
            Form::Escaped => {
                let mut value = Vec::new();
                unescape(&source[2..], &mut value);
                state.strip(&value, out);
            }
            Form::Dollar => state.strip(b"$", out),
            Form::TwoQuotes => state.strip(b"''", out),
            Form::OneQuote => state.strip(b"'", out),
        }
        if last
            && let Some(newline) = memchr::memrchr(b'\n', &out[start..])
            && out[start + newline + 1..].iter().all(|&b| b == b' ')
        {
            out.truncate(start + newline + 1);
        }
        Text { start: start as u32 | Text::OWNED, len: (out.len() - start) as u32 }
    }
}

/// Progress through the lines of an indented string.
struct Strip {
    indent: usize,
    /// Only spaces since the last line feed.
    line_start: bool,
    /// How many of them were looked at.
    dropped: usize,
}

impl Strip {
    fn strip(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        while let Some(&byte) = rest.first() {
            if !self.line_start {
                let end = memchr(b'\n', rest).map_or(rest.len(), |n| n + 1);
                self.line_start = rest[end - 1] == b'\n';
                out.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            match byte {
                b' ' => {
                    if self.dropped >= self.indent {
                        out.push(b' ');
                    }
                    self.dropped += 1;
                }
                b'\n' => {
                    self.dropped = 0;
                    out.push(b'\n');
                }
                _ => {
                    self.line_start = false;
                    self.dropped = 0;
                    continue;
                }
            }
            rest = &rest[1..];
        }
    }
}

/// The smallest indentation of a line that holds more than spaces. Interpolations and escapes count as such content.
fn common_indent(text: &[u8], pieces: &[Piece]) -> usize {
    let mut line_start = true;
    let mut smallest = 1_000_000;
    let mut current = 0;
    for piece in pieces {
        let token = match piece {
            Piece::Text(token) if token.form == Form::Verbatim => token,
            _ => {
                if line_start {
                    line_start = false;
                    smallest = smallest.min(current);
                }
                continue;
            }
        };
        let mut rest = &text[token.start as usize..token.end as usize];
        while let Some(&byte) = rest.first() {
            if !line_start {
                let Some(newline) = memchr(b'\n', rest) else { break };
                line_start = true;
                current = 0;
                rest = &rest[newline + 1..];
                continue;
            }
            match byte {
                b' ' => current += 1,
                b'\n' => current = 0,
                _ => {
                    line_start = false;
                    smallest = smallest.min(current);
                }
            }
            rest = &rest[1..];
        }
    }
    smallest
}
