//! Functions and their patterns.

use super::{Parsed, Parser};
use crate::ast::{Expr, ExprId, Formal, Formals, Lambda, LambdaId, Range};
use crate::token::{Kind, Token};
use firn_source::Symbol;

/// How many names Nix can keep of a pattern.
const MAX_FORMALS: usize = u16::MAX as usize;

impl Parser<'_> {
    /// Whether the brace at the current place opens a pattern. Nix's parser tells patterns from sets by the same tokens.
    pub(super) fn formals_ahead(&self) -> bool {
        match self.kind_after(1) {
            Kind::Ellipsis => true,
            Kind::RBrace => matches!(self.kind_after(2), Kind::Colon | Kind::At),
            Kind::Id => matches!(self.kind_after(2), Kind::Comma | Kind::Question | Kind::RBrace),
            _ => false,
        }
    }

    /// A function, from its argument on.
    pub(super) fn function(&mut self) -> Parsed<ExprId> {
        let first = self.token();
        let mut arg = None;
        let mut formals = None;
        if first.kind == Kind::Id {
            self.advance();
            arg = Some(self.symbol(first));
            if self.kind() == Kind::At {
                self.advance();
                formals = Some(self.formals()?);
            }
        } else {
            formals = Some(self.formals()?);
            if self.kind() == Kind::At {
                self.advance();
                let name = self.token();
                self.expect(Kind::Id)?;
                arg = Some(self.symbol(name));
            }
        }
        self.expect(Kind::Colon)?;
        let body = self.expr()?;
        self.lexed_so_far()?;
        if let Some(formals) = formals {
            self.check_formals(formals.list, arg, first)?;
        }
        let id = LambdaId(self.ast.lambdas.len() as u32);
        self.ast.lambdas.push(Lambda { pos: self.pos(first), name: None, arg, formals, body });
        Ok(self.add(Expr::Lambda(id)))
    }

    fn formals(&mut self) -> Parsed<Formals> {
        self.expect(Kind::LBrace)?;
        let from = self.formals.len();
        let mut ellipsis = false;
        loop {
            match self.kind() {
                Kind::RBrace => break,
                Kind::Ellipsis => {
                    ellipsis = true;
                    self.advance();
                    if self.kind() != Kind::RBrace {
                        return self.unexpected();
                    }
                    break;
                }
                Kind::Id => {
                    let formal = self.formal()?;
                    self.formals.push(formal);
                }
                _ => return self.unexpected(),
            }
            match self.kind() {
                Kind::Comma => self.advance(),
                Kind::RBrace => break,
                _ => return self.unexpected(),
            }
        }
        self.advance();
        let start = self.ast.formals.len() as u32;
        let range = Range { start, len: (self.formals.len() - from) as u32 };
        self.ast.formals.extend(self.formals.drain(from..));
        Ok(Formals { list: range, ellipsis })
    }

    fn formal(&mut self) -> Parsed<Formal> {
        let token = self.token();
        self.advance();
        let (name, pos) = (self.symbol(token), self.pos(token));
        let mut default = None;
        if self.kind() == Kind::Question {
            self.advance();
            default = Some(self.expr()?);
        }
        Ok(Formal { name, pos, default })
    }

    /// Refuses a name given twice. NIX: checked when the whole function was read; of several, the name whose symbol
    /// is the oldest is reported, at its second place.
    fn check_formals(&mut self, list: Range, arg: Option<Symbol>, first: Token) -> Parsed<()> {
        let formals = list.of(&self.ast.formals);
        let mut duplicate: Option<(Symbol, firn_source::Pos)> = None;
        if formals.len() <= 8 {
            for (i, formal) in formals.iter().enumerate() {
                if formals[..i].iter().any(|f| f.name == formal.name) {
                    let this = (formal.name, formal.pos);
                    duplicate = Some(duplicate.map_or(this, |d| d.min(this)));
                }
            }
        } else {
            let mut sorted: Vec<_> = formals.iter().map(|f| (f.name, f.pos)).collect();
            sorted.sort_unstable();
            duplicate = sorted.windows(2).find(|w| w[0].0 == w[1].0).map(|w| w[1]);
        }
        let among = arg.filter(|arg| formals.iter().any(|f| f.name == *arg));
        let duplicate = duplicate.or(among.map(|arg| (arg, self.pos(first))));
        if let Some((name, pos)) = duplicate {
            if self.names.are_apart() {
                return self.fail(pos, "");
            }
            let mut message = b"duplicate formal function argument '".to_vec();
            crate::print::write_identifier(name.as_bytes(), &mut message);
            message.push(b'\'');
            return self.fail(pos, message);
        }
        if list.len() > MAX_FORMALS {
            let message = format!("too many formal arguments, implementation supports at most {MAX_FORMALS}");
            return self.fail(self.pos(first), message);
        }
        Ok(())
    }
}
