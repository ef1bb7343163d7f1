//! Path literals. What they mean is worked out where it is needed, see [`Ast::path_literal`](crate::Ast::path_literal).

use super::{Home, Parsed, Parser};
use crate::ast::{Expr, ExprId, Part, Text};
use crate::token::{Kind, Token};
use firn_source::Pos;

impl Parser<'_> {
    /// A path, with its interpolations.
    pub(super) fn path_literal(&mut self) -> Parsed<ExprId> {
        let token = self.token();
        let pos = self.pos(token);
        let text = match token.kind {
            Kind::HPath => self.home_path(token)?,
            _ => self.plain_path(token)?,
        };
        let path = self.add(Expr::Path(text));
        self.advance();
        if self.kind() == Kind::PathEnd {
            self.advance();
            return Ok(path);
        }
        let from = self.parts.len();
        self.parts.push(Part { expr: path, pos });
        self.interpolated()?;
        self.expect(Kind::PathEnd)?;
        let parts = self.take_parts(from);
        Ok(self.add(Expr::Concat { force_string: false, parts, pos }))
    }

    fn plain_path(&mut self, token: Token) -> Parsed<Text> {
        let literal = &self.text[token.start as usize..token.end as usize];
        let pos = self.pos(token);
        if literal[0] == b'/' {
            self.lint(self.features.absolute_path_literals, pos, "lint-absolute-path-literals", |_| {
                let start = b"absolute path literals are not portable. Consider replacing path literal '";
                [start, literal, b"' by a string, relative path, or parameter"].concat()
            })?;
        } else if literal[0] != b'.' {
            self.lint(self.features.short_path_literals, pos, "lint-short-path-literals", |_| {
                let middle = b"' should be prefixed with '.' for clarity: './";
                [&b"relative path literal '"[..], literal, middle, literal, b"'"].concat()
            })?;
        }
        Ok(Text { start: token.start, len: token.end - token.start })
    }

    /// NIX: neither the home directory nor what follows the tilde is made canonical.
    fn home_path(&mut self, token: Token) -> Parsed<Text> {
        let literal = &self.text[token.start as usize..token.end as usize];
        let Home::Dir(home) = self.home else {
            let message = [&b"the path '"[..], literal, b"' can not be resolved in pure mode"].concat();
            return self.fail(Pos::NONE, message);
        };
        self.lint(self.features.absolute_path_literals, self.pos(token), "lint-absolute-path-literals", |_| {
            let start = b"home path literals are not portable. Consider replacing path literal '";
            [start, literal, b"' by a string, relative path, or parameter"].concat()
        })?;
        let path = [home, &literal[1..]].concat();
        self.ast.names_home = true;
        Ok(self.own(&path))
    }

    /// `<x>`: `__findFile __nixPath "x"`.
    pub(super) fn search_path(&mut self) -> ExprId {
        let token = self.token();
        self.advance();
        let from = self.ids.len();
        let function = self.names.intern(b"__findFile");
        let function = self.add(Expr::Var { name: function, pos: Pos::NONE });
        let entries = self.names.intern(b"__nixPath");
        let entries = self.add(Expr::Var { name: entries, pos: Pos::NONE });
        let text = Text { start: token.start + 1, len: token.end - token.start - 2 };
        let text = self.add(Expr::String(text));
        self.ids.extend([entries, text]);
        let args = self.take_ids(from);
        let pos = self.pos(token);
        self.add(Expr::Call { fun: function, args, pos })
    }
}
