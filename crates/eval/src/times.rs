//! Where the time of an evaluation goes, by what the machine is doing, each moment counted once. Only in programs built with the
//! feature `times` (`bench/where`): a look at the clock costs more than most steps.

use firn_value::Expr;

/// What the machine is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// Code that is none of what follows: conditions, `let`, lists, sets, functions, comparisons.
    Code,
    /// Forcing: finding that a cell is not evaluated, claiming it, keeping its value.
    Force,
    /// Calls: finding the function, passing arguments.
    Call,
    /// Attribute lookups, `?` and names of a `with`.
    Select,
    /// `//`.
    Update,
    /// Strings that are put together, and sums.
    Strings,
    /// Builtins.
    Builtins,
    /// Reading files that are imported.
    Input,
    /// Parsing.
    Parse,
    /// Lowering.
    Lower,
    /// Writing derivations down and hashing them.
    Derivations,
}

impl Doing {
    /// All of them, in order, with their names.
    pub const ALL: [(Doing, &str); 11] = [
        (Doing::Code, "code"),
        (Doing::Force, "force"),
        (Doing::Call, "call"),
        (Doing::Select, "select"),
        (Doing::Update, "update"),
        (Doing::Strings, "strings"),
        (Doing::Builtins, "builtins"),
        (Doing::Input, "input"),
        (Doing::Parse, "parse"),
        (Doing::Lower, "lower"),
        (Doing::Derivations, "derivations"),
    ];

    /// What evaluating code is.
    #[inline(always)]
    pub(crate) fn of(expr: &Expr) -> Doing {
        match expr {
            Expr::SelectName(_) | Expr::Select(_) | Expr::HasAttr(_) | Expr::Dynamic(_) => Doing::Select,
            Expr::Call(_) => Doing::Call,
            Expr::Concat(_) | Expr::Sum(_) | Expr::Binary(firn_ir::BinaryOp::Add, _) => Doing::Strings,
            Expr::Binary(firn_ir::BinaryOp::Update, _) => Doing::Update,
            _ => Doing::Code,
        }
    }
}

/// Does something of this kind. Without the feature `times`, nothing more.
#[inline(always)]
pub fn doing<T>(what: impl FnOnce() -> Doing, work: impl FnOnce() -> T) -> T {
    #[cfg(feature = "times")]
    return clock::during(what(), work);
    #[cfg(not(feature = "times"))]
    {
        let _ = what;
        work()
    }
}

/// Nanoseconds that all threads together spent on each, and how many stretches that was, each of which holds a look at the clock; none in
/// programs that do not look.
pub fn spent() -> Option<[(u64, u64); Doing::ALL.len()]> {
    #[cfg(feature = "times")]
    return Some(clock::spent());
    #[cfg(not(feature = "times"))]
    None
}

#[cfg(feature = "times")]
mod clock {
    use super::Doing;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    const KINDS: usize = Doing::ALL.len();

    static SPENT: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];
    static STRETCHES: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

    thread_local! {
        static NOW: Cell<Option<(Doing, Instant)>> = const { Cell::new(None) };
    }

    /// From now on the thread does this; what it did until now.
    fn turn_to(what: Option<Doing>) -> Option<Doing> {
        let now = Instant::now();
        NOW.with(|running| {
            let before = running.replace(what.map(|what| (what, now)));
            before.map(|(before, since)| {
                SPENT[before as usize].fetch_add((now - since).as_nanos() as u64, Ordering::Relaxed);
                STRETCHES[before as usize].fetch_add(1, Ordering::Relaxed);
                before
            })
        })
    }

    pub(super) fn during<T>(what: Doing, work: impl FnOnce() -> T) -> T {
        let outer = turn_to(Some(what));
        let result = work();
        turn_to(outer);
        result
    }

    pub(super) fn spent() -> [(u64, u64); KINDS] {
        std::array::from_fn(|kind| (SPENT[kind].load(Ordering::Relaxed), STRETCHES[kind].load(Ordering::Relaxed)))
    }
}
