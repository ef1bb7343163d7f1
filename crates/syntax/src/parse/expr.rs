//! Expressions without operators: functions and other prefix forms, calls, selections, operands.

use super::{Parsed, Parser};
use crate::ast::{Arith, AttrName, DefaultId, Expr, ExprId, Range, Warning};
use crate::lex::{parse_float, parse_int};
use crate::token::{Kind, Token};
use firn_source::Pos;

impl Parser<'_> {
    /// `expr`: anything, to the end of what can belong to it.
    // PERF: half of all expressions are a name or a string and nothing else, and need not go down every rule.
    pub(super) fn expr(&mut self) -> Parsed<ExprId> {
        let first = self.token();
        let alone = match first.kind {
            Kind::Id => self.kind_after(1).ends_expr(),
            Kind::Quote => {
                self.kind_after(1) == Kind::Str && self.kind_after(2) == Kind::Quote && self.kind_after(3).ends_expr()
            }
            _ => false,
        };
        if alone {
            self.cursed = None;
            return self.operand(first);
        }
        self.deeper(Self::expr_function)
    }

    fn expr_function(&mut self) -> Parsed<ExprId> {
        let first = self.token();
        match first.kind {
            Kind::Id if matches!(self.kind_after(1), Kind::Colon | Kind::At) => self.function(),
            Kind::LBrace if self.formals_ahead() => self.function(),
            Kind::Assert | Kind::With => {
                self.advance();
                let subject = self.expr()?;
                self.expect(Kind::Semicolon)?;
                let body = self.expr()?;
                let pos = self.pos(first);
                Ok(self.add(match first.kind {
                    Kind::Assert => Expr::Assert { cond: subject, body, pos },
                    _ => Expr::With { attrs: subject, body, pos },
                }))
            }
            Kind::Let if self.kind_after(1) != Kind::LBrace => {
                self.advance();
                let attrs = self.new_attrs(Pos::NONE);
                self.binds(attrs)?;
                self.expect(Kind::In)?;
                let body = self.expr()?;
                self.lexed_so_far()?;
                if self.sets.has_dynamic(attrs) {
                    return self.fail(self.pos(first), "dynamic attributes not allowed in let");
                }
                Ok(self.add(Expr::Let { attrs, body }))
            }
            Kind::If => {
                self.advance();
                let cond = self.expr()?;
                self.expect(Kind::Then)?;
                let then = self.expr()?;
                self.expect(Kind::Else)?;
                let other = self.expr()?;
                let pos = self.pos(first);
                Ok(self.add(Expr::If { cond, then, other, pos }))
            }
            _ => self.pipeline(),
        }
    }

    /// `expr_app`: an operand applied to those that follow it.
    pub(super) fn application(&mut self) -> Parsed<ExprId> {
        let first = self.token();
        let fun = self.selection()?;
        if !self.kind().starts_operand() {
            return Ok(fun);
        }
        let from = self.ids.len();
        while self.kind().starts_operand() {
            let arg = self.selection()?;
            self.warn_cursed_or();
            self.ids.push(arg);
        }
        Ok(self.call(self.pos(first), fun, from))
    }

    /// Applies `fun` to the ids collected above `from`. NIX: a function that is itself a call (in parentheses, or an
    /// operator that stands for a call) takes the arguments into that call, which keeps its position.
    pub(super) fn call(&mut self, pos: Pos, fun: ExprId, from: usize) -> ExprId {
        match self.ast.nodes[fun.index()] {
            Expr::Call { fun: inner, args, pos } => {
                let args = self.grow_args(fun, args, from);
                self.ast.nodes[fun.index()] = Expr::Call { fun: inner, args, pos };
                fun
            }
            Expr::Arith { op, lhs, rhs, pos } if !matches!(op, Arith::LessEq | Arith::GreaterEq) => {
                let name = self.names.intern(op.function());
                let inner = self.add(Expr::Var { name, pos: Pos::NONE });
                let (a, b) = if op == Arith::Greater { (rhs, lhs) } else { (lhs, rhs) };
                self.ids.splice(from..from, [a, b]);
                let args = self.take_ids(from);
                self.ast.nodes[fun.index()] = Expr::Call { fun: inner, args, pos };
                fun
            }
            _ => {
                let args = self.take_ids(from);
                self.add(Expr::Call { fun, args, pos })
            }
        }
    }

    /// Appends the ids above `from` to a call's arguments, moving them to a place with room to double when they are
    /// not the last ones (otherwise nested parentheses would cost the square of their depth).
    fn grow_args(&mut self, call: ExprId, args: Range, from: usize) -> Range {
        let new = (self.ids.len() - from) as u32;
        let len = args.len + new;
        let old_end = (args.start + args.len) as usize;
        let room = self.grown.get(&call.0).copied().unwrap_or(args.len);
        if old_end == self.ast.ids.len() {
            self.take_ids(from);
            return Range { start: args.start, len };
        }
        if len <= room {
            self.ast.ids[old_end..old_end + new as usize].copy_from_slice(&self.ids[from..]);
            self.ids.truncate(from);
            return Range { start: args.start, len };
        }
        let start = self.ast.ids.len() as u32;
        self.ast.ids.extend_from_within(args.start as usize..old_end);
        self.take_ids(from);
        self.ast.ids.resize(start as usize + 2 * len as usize, ExprId(0));
        self.grown.insert(call.0, 2 * len);
        Range { start, len }
    }

    /// `expr_select`: an operand with the attribute path selected from it.
    pub(super) fn selection(&mut self) -> Parsed<ExprId> {
        let first = self.token();
        let base = self.operand(first)?;
        self.cursed = None;
        match self.kind() {
            Kind::Dot => {
                self.advance();
                let path = self.attr_path()?;
                let default = match self.kind() {
                    Kind::OrKw => {
                        self.advance();
                        let default = self.deeper(Self::selection)?;
                        self.warn_cursed_or();
                        self.cursed = None;
                        DefaultId::new(default)
                    }
                    _ => None,
                };
                let pos = self.pos(first);
                Ok(self.add(Expr::Select { base, path, default, pos }))
            }
            // NIX: `f or` applies f to a variable called `or`, which Nixpkgs once had.
            Kind::OrKw => {
                let (or, pos) = (self.token(), self.pos(first));
                self.advance();
                let name = self.symbol(or);
                let from = self.ids.len();
                let or_var = self.add(Expr::Var { name, pos });
                self.ids.push(or_var);
                let args = self.take_ids(from);
                self.cursed = Some((first.start, or.end));
                Ok(self.add(Expr::Call { fun: base, args, pos }))
            }
            _ => Ok(base),
        }
    }

    /// Warns when the operand just parsed is `f or` in a place where a later Nix will read it differently.
    pub(super) fn warn_cursed_or(&mut self) {
        let Some((start, end)) = self.cursed else { return };
        let pos = self.file.pos(start);
        let mut message = b"at ".to_vec();
        crate::error::write_place(pos, &mut message);
        message.extend_from_slice(
            b": This expression uses `or` as an identifier in a way that will change in a future Nix release.\n\
              Wrap this entire expression in parentheses to preserve its current meaning:\n    (",
        );
        message.extend_from_slice(&self.text[start as usize..end as usize]);
        message.extend_from_slice(b")\nGive feedback at https://github.com/NixOS/nix/pull/11121");
        self.ast.warnings.push(Warning { pos: Pos::NONE, message });
    }

    /// `attrpath` of a selection or a `?`.
    pub(super) fn attr_path(&mut self) -> Parsed<Range> {
        let from = self.path.len();
        self.attr_names()?;
        Ok(self.take_path(from))
    }

    /// The names of an attribute path, left on the path stack.
    pub(super) fn attr_names(&mut self) -> Parsed<()> {
        loop {
            let name = self.attr_name()?;
            self.path.push(name);
            if self.kind() != Kind::Dot {
                return Ok(());
            }
            self.advance();
        }
    }

    /// One name: an identifier, a string, `${…}`. NIX: `${"a"}` is as static as `a`, `"${"a"}"` is not.
    pub(super) fn attr_name(&mut self) -> Parsed<AttrName> {
        let token = self.token();
        match token.kind {
            Kind::Id | Kind::OrKw => {
                self.advance();
                Ok(AttrName::Static(self.symbol(token)))
            }
            Kind::Quote if self.kind_after(1) == Kind::Str && self.kind_after(2) == Kind::Quote => {
                self.advance();
                let text = self.token();
                self.advance();
                self.advance();
                Ok(AttrName::Static(self.string_symbol(text)))
            }
            Kind::Quote | Kind::DollarCurly => {
                let expr = match token.kind {
                    Kind::Quote => self.string()?,
                    _ => self.interpolation()?,
                };
                Ok(match self.ast.nodes[expr.index()] {
                    Expr::String(text) => {
                        let name = self.names.intern(self.ast.text(text));
                        AttrName::Static(name)
                    }
                    _ => AttrName::Dynamic(expr),
                })
            }
            _ => self.unexpected(),
        }
    }

    /// `expr_simple`.
    fn operand(&mut self, token: Token) -> Parsed<ExprId> {
        match token.kind {
            Kind::Id => {
                self.advance();
                let (name, pos) = (self.symbol(token), self.pos(token));
                let bytes = &self.text[token.start as usize..token.end as usize];
                Ok(self.add(if bytes == b"__curPos" { Expr::CurPos(pos) } else { Expr::Var { name, pos } }))
            }
            Kind::Int | Kind::Float => {
                self.advance();
                let digits = &self.text[token.start as usize..token.end as usize];
                Ok(self.add(match token.kind {
                    Kind::Int => Expr::Int(parse_int(digits).unwrap_or(i64::MAX)),
                    _ => Expr::Float(parse_float(digits)),
                }))
            }
            Kind::Quote => self.string(),
            Kind::IndOpen => self.indented_string(),
            Kind::Path | Kind::HPath => self.path_literal(),
            Kind::SPath => Ok(self.search_path()),
            Kind::Uri => self.url(),
            Kind::LParen => {
                self.advance();
                let inner = self.expr()?;
                self.expect(Kind::RParen)?;
                Ok(inner)
            }
            Kind::Let | Kind::Rec => {
                self.advance();
                if self.kind() != Kind::LBrace {
                    return self.unexpected();
                }
                self.set(token)
            }
            Kind::LBrace => self.set(token),
            Kind::LBracket => self.deeper(Self::list),
            _ => self.unexpected(),
        }
    }

    /// A set from its brace on; `first` is the token before it for `rec` and `let`.
    fn set(&mut self, first: Token) -> Parsed<ExprId> {
        let pos = self.pos(first);
        self.advance();
        let set = self.new_attrs(pos);
        let node = self.add(Expr::Attrs(set));
        self.ast.attrs[set.index()].recursive = first.kind != Kind::LBrace;
        self.binds(set)?;
        self.expect(Kind::RBrace)?;
        if first.kind != Kind::Let {
            return Ok(node);
        }
        let from = self.path.len();
        let body = self.names.intern(b"body");
        self.path.push(AttrName::Static(body));
        let path = self.take_path(from);
        Ok(self.add(Expr::Select { base: node, path, default: None, pos: Pos::NONE }))
    }

    fn list(&mut self) -> Parsed<ExprId> {
        self.advance();
        let from = self.ids.len();
        while self.kind().starts_operand() {
            let element = self.selection()?;
            self.warn_cursed_or();
            self.ids.push(element);
        }
        self.expect(Kind::RBracket)?;
        let elements = self.take_ids(from);
        Ok(self.add(Expr::List(elements)))
    }
}

impl Arith {
    /// The builtin that the operator stands for.
    pub fn function(self) -> &'static [u8] {
        match self {
            Arith::Sub => b"__sub",
            Arith::Mul => b"__mul",
            Arith::Div => b"__div",
            Arith::Less | Arith::Greater | Arith::LessEq | Arith::GreaterEq => b"__lessThan",
        }
    }
}
