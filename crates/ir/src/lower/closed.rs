//! Closed terms: code that refers to nothing around it has one value, however often it runs, and the machine may keep it (L1.3).

use crate::arena::keep;
use crate::expr::{Body, Expr, Var};
use firn_source::Pos;

/// The body of delayed code: without captures and if it may be expensive, one whose value may be kept. Only where calls are measured,
/// that is, where anything is kept at all.
// PERF: found here, closed terms cost nothing when other code is forced: two instructions a force, and 45 a term that is a constant or a
// set, which nearly all are.
#[inline(always)]
pub(super) fn closed<V>(expr: Expr<V>, locals: u32, captures: &'static [Var], pos: Pos) -> Body<V> {
    if captures.is_empty() && crate::marks::are_calls_measured() && may_be_kept(&expr) {
        return Body { expr: Expr::Closed(keep(expr)), locals, captures, pos, now: None };
    }
    Body { expr, locals, captures, pos, now: None }
}

/// Whether the value of the code may be worth keeping. Lists, sets and functions are made each time, as Nix makes them; and what is
/// evaluated in a few steps, as far as a short look tells, is not worth it.
fn may_be_kept<V>(expr: &Expr<V>) -> bool {
    match expr {
        Expr::Const(..) | Expr::List(_) | Expr::Lambda(_) | Expr::Attrs(_) => false,
        Expr::CurPos(_) | Expr::Lazy(_) | Expr::Watched(_) | Expr::Closed(_) => false,
        Expr::SelectName(node) => !matches!(node.base, Expr::Const(..)),
        Expr::Concat(node) => node.parts.iter().any(|(part, _)| !matches!(part, Expr::Const(..))),
        Expr::Not(node) => !matches!(node.operand, Expr::Const(..)),
        _ => true,
    }
}
