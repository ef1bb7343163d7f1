//! Which arguments a function forces first, and which binding a `let` does.
//!
//! When the body's first observable act is to force argument `i`, the caller may evaluate the argument before the
//! call instead of suspending it: nothing can be told apart, provided an error is kept in the cell and raised only
//! when the body forces it. The analysis lists such arguments in the order in which the body forces them.

use crate::expr::{BinaryOp, Binding, Expr, Var};
use crate::lower::Literals;
use std::ops::Range;

/// Which arguments a function's body forces first, before anything else can be observed.
#[derive(Clone, Debug)]
pub struct Strict {
    /// Bit per argument (of the first 64).
    pub mask: u64,
    order: [u8; Strict::MOST],
    count: u8,
    /// The body forces them in ascending order.
    pub in_order: bool,
    /// Bit per argument (of the first eight) of which nobody sees the cell: wherever the function names one, it forces it.
    pub unseen: u8,
}

impl Strict {
    /// So many are known at most.
    pub(crate) const MOST: usize = 8;

    pub(crate) fn new(forced: &[u8], unseen: u8) -> Strict {
        let mut order = [0; Strict::MOST];
        order[..forced.len()].copy_from_slice(forced);
        let mask = forced.iter().fold(0, |mask, &i| mask | 1 << i);
        Strict { mask, order, count: forced.len() as u8, in_order: forced.is_sorted(), unseen }
    }

    /// The order in which the body forces them.
    pub fn order(&self) -> &[u8] {
        &self.order[..usize::from(self.count)]
    }
}

/// Arguments among the first `arity` slots that `body` forces first, in order.
pub(crate) fn forced_first<L: Literals>(body: &Expr<L::Value>, arity: usize, literals: &L) -> Vec<u8> {
    let mut found = Vec::new();
    walk(body, &(0..arity.min(Strict::MOST) as u32), literals, &mut found);
    found.into_iter().map(|slot| slot as u8).collect()
}

/// The place among the bindings of the one that the body of their `let` forces first, if it is suspended and neither
/// another nor itself sees it.
pub(crate) fn forced_binding<L: Literals>(body: &Expr<L::Value>, bindings: &[Binding<L::Value>], literals: &L) -> Option<usize> {
    let slots = bindings.iter().map(|b| b.slot).min()?..bindings.iter().map(|b| b.slot).max()? + 1;
    let mut found = Vec::new();
    walk(body, &slots, literals, &mut found);
    let slot = *found.first()?;
    let index = bindings.iter().position(|binding| binding.slot == slot)?;
    let fits = matches!(bindings[index].value, Expr::Suspend(_)) && !bindings.iter().any(|binding| sees(binding, slot));
    fits.then_some(index)
}

/// Whether a binding's value names the variable in a slot.
fn sees<V>(binding: &Binding<V>, slot: u32) -> bool {
    match &binding.value {
        Expr::Suspend(node) => node.body.captures.contains(&Var::local(slot)),
        Expr::Lambda(lambda) => lambda.body.captures.contains(&Var::local(slot)),
        Expr::Local(from, _) => *from == slot,
        _ => false,
    }
}

/// The place among the bindings of the last one that is a list or a set of delayed values and that neither another nor itself
/// sees. Making it evaluates nothing: when it is made cannot be told, if the body uses it once and [forces](forces) it there.
// PERF: no thunk for it (with-scopes: a tenth of the memory).
pub(crate) fn made_binding<V>(bindings: &[Binding<V>]) -> Option<usize> {
    let index = bindings.iter().rposition(|binding| match &binding.value {
        Expr::Suspend(node) => node.is_made(),
        _ => false,
    })?;
    let slot = bindings[index].slot;
    (!bindings.iter().any(|binding| sees(binding, slot))).then_some(index)
}

/// Whether code that is evaluated forces the variable in a slot, sooner or later, unless it fails.
pub(crate) fn forces<L: Literals>(expr: &Expr<L::Value>, slot: u32, literals: &L) -> bool {
    let forces = |expr| forces(expr, slot, literals);
    match expr {
        Expr::Local(local, _) => *local == slot,
        Expr::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Impl, operands) => forces(&operands.left),
        Expr::Binary(_, operands) => forces(&operands.left) || forces(&operands.right),
        Expr::If(node) => forces(&node.cond),
        Expr::Not(node) => forces(&node.operand),
        Expr::SelectName(node) => forces(&node.base),
        Expr::Select(node) => forces(&node.base),
        Expr::HasAttr(node) => forces(&node.base),
        Expr::Concat(node) => node.parts.iter().any(|(part, _)| forces(part)),
        Expr::Sum(node) => forces(&node.first) || node.rest.iter().any(|addend| forces(&addend.right)),
        Expr::Let(node) => forces(&node.body),
        Expr::With(node) => forces(&node.body),
        Expr::Call(node) => {
            let Expr::Const(function, _) = node.fun else { return forces(&node.fun) };
            let (takes, strict) = literals.strict_args(function);
            let is_forced = |(i, arg): (usize, &Expr<L::Value>)| strict >> i & 1 != 0 && matches!(arg, Expr::Local(local, _) if *local == slot);
            takes == node.args.len() && node.args.iter().enumerate().any(is_forced)
        }
        Expr::Deep(inner) => forces(inner),
        Expr::Watched(node) => forces(&node.inner),
        _ => false,
    }
}

/// Arguments among the first `arity` slots of which nobody sees the cell, as bits: wherever the body names one, it forces it. Such an
/// argument may be made before the call where making it evaluates nothing.
// PERF: no thunk for it (thunk-chain: 8 % of the instructions, 11 % of the time).
pub(crate) fn unseen<V>(body: &Expr<V>, arity: usize) -> u8 {
    let is_unseen = |slot: &u32| only_forced(body, Var::local(*slot), MOST_NESTED);
    (0..arity.min(Strict::MOST) as u32).filter(is_unseen).fold(0, |bits, slot| bits | 1 << slot)
}

/// Code that is nested deeper is not looked into.
const MOST_NESTED: u32 = 24;

/// Whether code that is evaluated does nothing to a variable but force it, as far as it is looked into.
fn only_forced<V>(expr: &Expr<V>, var: Var, left: u32) -> bool {
    let Some(left) = left.checked_sub(1) else { return false };
    let forced = |expr| only_forced(expr, var, left);
    let delayed = |expr: &Expr<V>| only_delayed(expr, var, left);
    match expr {
        Expr::Const(..) | Expr::Local(..) | Expr::Capture(..) | Expr::CurPos(_) => true,
        Expr::SelectName(node) => forced(&node.base),
        Expr::If(node) => forced(&node.cond) && forced(&node.then) && forced(&node.otherwise),
        Expr::Not(node) => forced(&node.operand),
        Expr::Binary(_, operands) => forced(&operands.left) && forced(&operands.right),
        Expr::Concat(node) => node.parts.iter().all(|(part, _)| forced(part)),
        Expr::Sum(node) => forced(&node.first) && node.rest.iter().all(|addend| forced(&addend.right)),
        Expr::Call(node) => forced(&node.fun) && node.args.iter().all(delayed),
        Expr::Attrs(node) => node.plain && node.values.iter().all(delayed),
        Expr::List(items) => items.iter().all(delayed),
        Expr::Lambda(lambda) => !lambda.body.captures.contains(&var),
        Expr::Let(node) => {
            let bindings = node.bindings.iter().chain(node.early.as_slice());
            bindings.into_iter().all(|binding| delayed(&binding.value)) && forced(&node.body)
        }
        _ => false,
    }
}

/// The same for code that is not evaluated yet: its cell must not be the variable's.
fn only_delayed<V>(expr: &Expr<V>, var: Var, left: u32) -> bool {
    match expr {
        Expr::Const(..) => true,
        Expr::Local(slot, _) => Var::local(*slot) != var,
        Expr::Capture(index, _) => Var::capture(*index) != var,
        Expr::Lambda(lambda) => !lambda.body.captures.contains(&var),
        Expr::Suspend(node) => match node.body.captures.iter().position(|&captured| captured == var) {
            None => true,
            Some(index) => only_forced(&node.body.expr, Var::capture(index as u32), left),
        },
        _ => false,
    }
}

/// Lists what is forced; true when nothing else than forcing arguments happened and the next operand may be looked at.
fn walk<L: Literals>(expr: &Expr<L::Value>, slots: &Range<u32>, literals: &L, found: &mut Vec<u32>) -> bool {
    match expr {
        Expr::Const(..) => true,
        Expr::Local(slot, _) if slots.contains(slot) => {
            if !found.contains(slot) {
                found.push(*slot);
            }
            true
        }
        Expr::Binary(op, operands) => {
            use BinaryOp as B;
            match op {
                B::Sub | B::Mul | B::Div | B::Less | B::GreaterEq | B::Eq | B::NEq => {
                    let _ = walk(&operands.left, slots, literals, found)
                        && walk(&operands.right, slots, literals, found);
                }
                // NIX: `a > b` is `__lessThan b a`, and `//` evaluates its right operand first.
                B::Greater | B::LessEq => {
                    let _ = walk(&operands.right, slots, literals, found)
                        && walk(&operands.left, slots, literals, found);
                }
                B::Update => {
                    walk(&operands.right, slots, literals, found);
                }
                B::And | B::Or | B::Impl | B::Add | B::ConcatLists => {
                    walk(&operands.left, slots, literals, found);
                }
            }
            false
        }
        Expr::If(node) => first(&node.cond, slots, literals, found),
        Expr::Assert(node) => first(&node.cond, slots, literals, found),
        Expr::Not(node) => first(&node.operand, slots, literals, found),
        Expr::SelectName(node) => first(&node.base, slots, literals, found),
        Expr::Select(node) => first(&node.base, slots, literals, found),
        Expr::HasAttr(node) => first(&node.base, slots, literals, found),
        Expr::Concat(node) => node.parts.first().is_some_and(|(part, _)| first(part, slots, literals, found)),
        Expr::Sum(node) => first(&node.first, slots, literals, found),
        Expr::Let(node) => walk(&node.body, slots, literals, found),
        Expr::With(node) => walk(&node.body, slots, literals, found),
        Expr::Call(node) => {
            if let Expr::Const(function, _) = node.fun {
                let (takes, strict) = literals.strict_args(function);
                for (i, arg) in node.args.iter().enumerate() {
                    if takes != node.args.len() || strict & 1 << i == 0 || !walk_delayed(arg, slots, found) {
                        break;
                    }
                }
                return false;
            }
            first(&node.fun, slots, literals, found)
        }
        Expr::Deep(inner) => walk(inner, slots, literals, found),
        _ => false,
    }
}

fn first<L: Literals>(expr: &Expr<L::Value>, slots: &Range<u32>, literals: &L, found: &mut Vec<u32>) -> bool {
    walk(expr, slots, literals, found);
    false
}

fn walk_delayed<V: Copy>(arg: &Expr<V>, slots: &Range<u32>, found: &mut Vec<u32>) -> bool {
    match arg {
        Expr::Const(..) => true,
        Expr::Local(slot, _) if slots.contains(slot) => {
            if !found.contains(slot) {
                found.push(*slot);
            }
            true
        }
        _ => false,
    }
}
