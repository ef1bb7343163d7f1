//! Which arguments a function forces first.
//!
//! When the body's first observable act is to force argument `i`, the caller may evaluate the argument before the
//! call instead of suspending it: nothing can be told apart, provided an error is kept in the cell and raised only
//! when the body forces it. The analysis lists such arguments in the order in which the body forces them.

use crate::expr::{BinaryOp, Expr};
use crate::lower::Literals;

/// Arguments among the first `arity` slots that `body` forces first, in order.
pub(crate) fn forced_first<L: Literals>(body: &Expr<L::Value>, arity: usize, literals: &L) -> Vec<u8> {
    let mut found = Vec::new();
    walk(body, arity.min(8) as u32, literals, &mut found);
    found
}

/// Lists what is forced; true when nothing else than forcing arguments happened and the next operand may be looked at.
fn walk<L: Literals>(expr: &Expr<L::Value>, arity: u32, literals: &L, found: &mut Vec<u8>) -> bool {
    match expr {
        Expr::Const(_) => true,
        Expr::Local(slot, _) if *slot < arity => {
            if !found.contains(&(*slot as u8)) {
                found.push(*slot as u8);
            }
            true
        }
        Expr::Binary(op, operands) => {
            use BinaryOp as B;
            match op {
                B::Sub | B::Mul | B::Div | B::Less | B::GreaterEq | B::Eq | B::NEq => {
                    let _ = walk(&operands.left, arity, literals, found)
                        && walk(&operands.right, arity, literals, found);
                }
                // NIX: `a > b` is `__lessThan b a`, and `//` evaluates its right operand first.
                B::Greater | B::LessEq => {
                    let _ = walk(&operands.right, arity, literals, found)
                        && walk(&operands.left, arity, literals, found);
                }
                B::Update => {
                    walk(&operands.right, arity, literals, found);
                }
                B::And | B::Or | B::Impl | B::Add | B::ConcatLists => {
                    walk(&operands.left, arity, literals, found);
                }
            }
            false
        }
        Expr::If(node) => first(&node.cond, arity, literals, found),
        Expr::Assert(node) => first(&node.cond, arity, literals, found),
        Expr::Not(node) => first(&node.operand, arity, literals, found),
        Expr::SelectName(node) => first(&node.base, arity, literals, found),
        Expr::Select(node) => first(&node.base, arity, literals, found),
        Expr::HasAttr(node) => first(&node.base, arity, literals, found),
        Expr::Concat(node) => node.parts.first().is_some_and(|(part, _)| first(part, arity, literals, found)),
        Expr::Sum(node) => first(&node.first, arity, literals, found),
        Expr::Let(node) => walk(&node.body, arity, literals, found),
        Expr::With(node) => walk(&node.body, arity, literals, found),
        Expr::Call(node) => {
            if let Expr::Const(function) = node.fun {
                let (takes, strict) = literals.strict_args(function);
                for (i, arg) in node.args.iter().enumerate() {
                    if takes != node.args.len() || strict & 1 << i == 0 || !walk_delayed(arg, arity, found) {
                        break;
                    }
                }
                return false;
            }
            first(&node.fun, arity, literals, found)
        }
        Expr::Deep(inner) => walk(inner, arity, literals, found),
        _ => false,
    }
}

fn first<L: Literals>(expr: &Expr<L::Value>, arity: u32, literals: &L, found: &mut Vec<u8>) -> bool {
    walk(expr, arity, literals, found);
    false
}

fn walk_delayed<V: Copy>(arg: &Expr<V>, arity: u32, found: &mut Vec<u8>) -> bool {
    match arg {
        Expr::Const(_) => true,
        Expr::Local(slot, _) if *slot < arity => {
            if !found.contains(&(*slot as u8)) {
                found.push(*slot as u8);
            }
            true
        }
        _ => false,
    }
}
