//! The dispatch over code in strict position: a table of functions, one for each kind of code.
//!
//! PERF: a call through a table is a jump where nothing is left to do, which a `match` is not (the compiler knows that some of
//! its branches never fail and puts their results together anew): a branch of an `if` costs 4 instructions where it was 21.

use crate::Machine;
use crate::frame::Frame;
use crate::times::{Doing, doing};
use firn_ir::{Binary, BinaryOp};
use firn_source::Pos;
use firn_value::{Expr, Result, Value};

/// Evaluates code of one kind.
type Way = fn(&Machine, &'static Expr, Frame<'_>) -> Result<Value>;

/// The way of a kind of code that has a node.
macro_rules! way {
    ($kind:ident, $evaluate:ident) => {{
        fn way(machine: &Machine, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
            match expr {
                Expr::$kind(node) => machine.$evaluate(node, frame),
                _ => astray(),
            }
        }
        way
    }};
}

/// The ways in the order of [`Expr::kind`].
static WAYS: [Way; Expr::KINDS] = [
    Machine::eval_constant,
    Machine::eval_local,
    Machine::eval_capture,
    way!(Dynamic, dynamic),
    way!(SelectName, select_name),
    way!(Select, select),
    way!(HasAttr, has_attr),
    way!(Attrs, attrs),
    way!(List, eval_list),
    way!(Lambda, eval_lambda),
    way!(Call, eval_call),
    way!(Let, let_in),
    way!(With, with),
    way!(If, if_then),
    way!(Assert, assert),
    way!(Not, not),
    Machine::eval_binary,
    way!(Concat, concat),
    way!(Sum, sum),
    way!(CurPos, eval_position),
    way!(Suspend, run_now),
    way!(Lazy, eval_lazy),
    way!(Deep, eval_deep),
    way!(Watched, eval_watched),
    way!(Closed, eval_closed),
];

/// Evaluates an operator.
type Operator = fn(&Machine, &'static Binary<Value>, Frame<'_>, BinaryOp) -> Result<Value>;

/// The operators in the order of [`BinaryOp`].
static OPERATORS: [Operator; BinaryOp::GreaterEq as usize + 1] = [
    Machine::compare_equal,
    Machine::compare_equal,
    Machine::logic,
    Machine::logic,
    Machine::logic,
    Machine::update,
    Machine::concat_two_lists,
    Machine::add,
    Machine::subtract,
    Machine::arithmetic_expr,
    Machine::arithmetic_expr,
    Machine::less_expr,
    Machine::less_expr,
    Machine::less_expr,
    Machine::less_expr,
];

/// Only a table in another order than its kinds leads here.
#[cold]
fn astray() -> ! {
    unreachable!("each kind of code has its own way")
}

impl Machine {
    /// Evaluates code that is unlikely to be an atom, or for who has nothing left to do: then it is a jump.
    #[inline(always)]
    pub(crate) fn eval_node(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        doing(|| Doing::of(expr), || WAYS[expr.kind()](self, expr, frame))
    }

    fn eval_constant(&self, expr: &'static Expr, _: Frame<'_>) -> Result<Value> {
        if let Expr::Const(value, _) = expr { self.force(*value, Pos::NONE) } else { astray() }
    }

    fn eval_local(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        if let Expr::Local(slot, pos) = expr { self.force(frame.local(*slot), *pos) } else { astray() }
    }

    fn eval_capture(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        if let Expr::Capture(index, pos) = expr { self.force(frame.capture(*index), *pos) } else { astray() }
    }

    fn eval_binary(&self, expr: &'static Expr, frame: Frame<'_>) -> Result<Value> {
        let Expr::Binary(op, node) = expr else { astray() };
        OPERATORS[*op as usize](self, node, frame, *op)
    }
}
