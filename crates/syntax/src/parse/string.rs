//! Quoted strings, interpolation and URLs.

use super::{Parsed, Parser};
use crate::ast::{Expr, ExprId, Part, Text};
use crate::lex::unescape;
use crate::token::{Form, Kind, Token};
use firn_source::Symbol;

impl Parser<'_> {
    /// `"…"`, from the opening quote to past the closing one.
    pub(super) fn string(&mut self) -> Parsed<ExprId> {
        self.advance();
        let first = self.token();
        if first.kind == Kind::Quote {
            self.advance();
            return Ok(self.add(Expr::String(Text { start: first.start, len: 0 })));
        }
        if first.kind == Kind::Str && self.kind_after(1) == Kind::Quote {
            self.advance();
            self.advance();
            let text = self.string_text(first);
            return Ok(self.add(Expr::String(text)));
        }
        let from = self.parts.len();
        self.interpolated()?;
        self.expect(Kind::Quote)?;
        let parts = self.take_parts(from);
        let pos = self.pos(first);
        Ok(self.add(Expr::Concat { force_string: true, parts, pos }))
    }

    /// `string_parts_interpolated`: pieces of text and at least one interpolation, onto the stack of parts.
    pub(super) fn interpolated(&mut self) -> Parsed<()> {
        if self.kind() == Kind::Str {
            self.string_part();
        }
        if self.kind() != Kind::DollarCurly {
            return self.unexpected();
        }
        loop {
            match self.kind() {
                Kind::Str => self.string_part(),
                Kind::DollarCurly => {
                    let pos = self.pos(self.token());
                    let expr = self.interpolation()?;
                    self.parts.push(Part { expr, pos });
                }
                _ => return Ok(()),
            }
        }
    }

    fn string_part(&mut self) {
        let token = self.token();
        self.advance();
        let text = self.string_text(token);
        let expr = self.add(Expr::String(text));
        self.parts.push(Part { expr, pos: self.pos(token) });
    }

    /// `${ expr }`.
    pub(super) fn interpolation(&mut self) -> Parsed<ExprId> {
        self.advance();
        let expr = self.expr()?;
        self.expect(Kind::RBrace)?;
        Ok(expr)
    }

    /// The string that a piece of `"…"` stands for.
    fn string_text(&mut self, token: Token) -> Text {
        if token.form == Form::Verbatim {
            return Text { start: token.start, len: token.end - token.start };
        }
        let start = self.ast.owned.len();
        unescape(&self.text[token.start as usize..token.end as usize], &mut self.ast.owned);
        Text { start: start as u32 | Text::OWNED, len: (self.ast.owned.len() - start) as u32 }
    }

    /// The symbol for a string used as a name.
    pub(super) fn string_symbol(&mut self, token: Token) -> Symbol {
        if token.form == Form::Verbatim {
            return self.symbol(token);
        }
        let mut name = Vec::new();
        unescape(&self.text[token.start as usize..token.end as usize], &mut name);
        self.names.intern(&name)
    }

    /// A URL without quotes.
    pub(super) fn url(&mut self) -> Parsed<ExprId> {
        let token = self.token();
        let text = &self.text[token.start as usize..token.end as usize];
        let level = self.features.url_literals;
        self.lint(level, self.pos(token), "lint-url-literals", |fatal| {
            let start = if fatal { "URL literals are disallowed" } else { "URL literals are discouraged" };
            [start.as_bytes(), b". Consider using a string literal \"", text, b"\" instead"].concat()
        })?;
        self.advance();
        Ok(self.add(Expr::String(Text { start: token.start, len: token.end - token.start })))
    }
}
