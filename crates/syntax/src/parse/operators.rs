//! Operators, by precedence climbing, and the pipe operators below them.

use super::{Parsed, Parser};
use crate::ast::{Arith, BinOp, Expr, ExprId, Part};
use crate::token::{Kind, Token};
use firn_source::Pos;

const NEGATE: u8 = 12;
const NOT: u8 = 7;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Assoc {
    Left,
    Right,
    None,
}

/// Precedence and associativity of a binary operator; 0 for any other token.
#[inline]
fn binary(kind: Kind) -> (u8, Assoc) {
    match kind {
        Kind::Impl => (1, Assoc::Right),
        Kind::Or => (2, Assoc::Left),
        Kind::And => (3, Assoc::Left),
        Kind::Eq | Kind::NEq => (4, Assoc::None),
        Kind::Less | Kind::Greater | Kind::LEq | Kind::GEq => (5, Assoc::None),
        Kind::Update => (6, Assoc::Right),
        Kind::Plus | Kind::Minus => (8, Assoc::Left),
        Kind::Star | Kind::Slash => (9, Assoc::Left),
        Kind::Concat => (10, Assoc::Right),
        Kind::Question => (11, Assoc::Left),
        _ => (0, Assoc::Left),
    }
}

impl Parser<'_> {
    /// `expr_pipe_from`, `expr_pipe_into` or an expression of operators; the two pipes do not mix.
    pub(super) fn pipeline(&mut self) -> Parsed<ExprId> {
        let mut left = self.operators(1)?;
        match self.kind() {
            Kind::PipeInto => {
                while self.kind() == Kind::PipeInto {
                    let pos = self.pos(self.token());
                    self.advance();
                    let function = self.operators(1)?;
                    let from = self.ids.len();
                    self.ids.push(left);
                    left = self.call(pos, function, from);
                }
                Ok(left)
            }
            Kind::PipeFrom => self.pipe_from(left),
            _ => Ok(left),
        }
    }

    fn pipe_from(&mut self, first: ExprId) -> Parsed<ExprId> {
        let mut stages = vec![(first, Pos::NONE)];
        while self.kind() == Kind::PipeFrom {
            let pos = self.pos(self.token());
            self.advance();
            stages.push((self.operators(1)?, pos));
        }
        let (mut argument, mut pos) = stages.pop().unwrap_or((first, Pos::NONE));
        while let Some((function, before)) = stages.pop() {
            let from = self.ids.len();
            self.ids.push(argument);
            argument = self.call(pos, function, from);
            pos = before;
        }
        Ok(argument)
    }

    /// `expr_op` of operators that bind at least as strongly as `min`.
    fn operators(&mut self, min: u8) -> Parsed<ExprId> {
        let first = self.token();
        let mut left = match first.kind {
            Kind::Bang => {
                self.advance();
                let operand = self.deeper(|p| p.operators(NOT + 1))?;
                self.add(Expr::Not(operand))
            }
            Kind::Minus => {
                self.advance();
                let rhs = self.deeper(|p| p.operators(NEGATE + 1))?;
                let lhs = self.add(Expr::Int(0));
                let pos = self.pos(first);
                self.add(Expr::Arith { op: Arith::Sub, lhs, rhs, pos })
            }
            _ => self.application()?,
        };
        loop {
            let operator = self.token();
            let (precedence, assoc) = binary(operator.kind);
            if precedence == 0 || precedence < min {
                return Ok(left);
            }
            self.advance();
            if operator.kind == Kind::Question {
                let path = self.attr_path()?;
                left = self.add(Expr::HasAttr { base: left, path });
                continue;
            }
            let right_start = self.token();
            let right = match assoc {
                Assoc::Right => self.deeper(|p| p.operators(precedence))?,
                Assoc::Left | Assoc::None => self.operators(precedence + 1)?,
            };
            left = self.operation(operator, (left, first), (right, right_start));
            if assoc == Assoc::None && binary(self.kind()).0 == precedence {
                return self.unexpected();
            }
        }
    }

    fn operation(&mut self, operator: Token, left: (ExprId, Token), right: (ExprId, Token)) -> ExprId {
        let pos = self.pos(operator);
        let (lhs, rhs) = (left.0, right.0);
        let arith = |op| Expr::Arith { op, lhs, rhs, pos };
        let binary = |op| Expr::Binary { op, lhs, rhs, pos };
        let node = match operator.kind {
            Kind::Eq => Expr::Binary { op: BinOp::Eq, lhs, rhs, pos: Pos::NONE },
            Kind::NEq => Expr::Binary { op: BinOp::NEq, lhs, rhs, pos: Pos::NONE },
            Kind::And => binary(BinOp::And),
            Kind::Or => binary(BinOp::Or),
            Kind::Impl => binary(BinOp::Impl),
            Kind::Update => binary(BinOp::Update),
            Kind::Concat => binary(BinOp::ConcatLists),
            Kind::Minus => arith(Arith::Sub),
            Kind::Star => arith(Arith::Mul),
            Kind::Slash => arith(Arith::Div),
            Kind::Less => arith(Arith::Less),
            Kind::Greater => arith(Arith::Greater),
            Kind::LEq => arith(Arith::LessEq),
            Kind::GEq => arith(Arith::GreaterEq),
            _ => {
                let from = self.parts.len();
                self.parts.push(Part { expr: lhs, pos: self.pos(left.1) });
                self.parts.push(Part { expr: rhs, pos: self.pos(right.1) });
                let parts = self.take_parts(from);
                Expr::Concat { force_string: false, parts, pos }
            }
        };
        self.add(node)
    }
}
