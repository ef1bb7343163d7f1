//! The code the machine runs.
//!
//! An expression stands in one of two positions. In *strict* position it is evaluated to weak head normal form in the
//! current frame. In *delayed* position it becomes a cell without being evaluated: constants and variables as they
//! are, functions built at once, everything else a [`Expr::Suspend`], whose body runs later in a frame of its own with
//! only the captures it names. Fields say which position they hold.

use crate::{Marks, Plans, Shape};
pub use crate::lower::lazy::Lazy;
pub use crate::strictness::Strict;
pub use crate::tie::Tie;
pub use crate::watched::Watched;
use firn_source::{Pos, Symbol};
use std::sync::atomic::AtomicU64;

/// A resolved variable: a slot of the current frame or a capture of the running body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Var(u32);

impl Var {
    /// A slot of the current frame.
    #[inline]
    pub fn local(slot: u32) -> Var {
        Var(slot << 1)
    }

    /// A capture of the running body.
    #[inline]
    pub fn capture(index: u32) -> Var {
        Var(index << 1 | 1)
    }

    /// Whether it is a capture.
    #[inline]
    pub fn is_capture(self) -> bool {
        self.0 & 1 != 0
    }

    /// The number of the slot or capture.
    #[inline]
    pub fn index(self) -> u32 {
        self.0 >> 1
    }

    /// The variable as one number, for digests.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl std::fmt::Debug for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", if self.is_capture() { "Capture" } else { "Local" }, self.index())
    }
}

/// Code. `V` is the machine's constant.
#[derive(Debug)]
pub enum Expr<V: 'static> {
    /// A ready value, and what ties it to the file.
    Const(V, Tie),
    /// A variable of this frame; its cell may be unevaluated.
    Local(u32, Pos),
    /// A captured variable.
    Capture(u32, Pos),
    /// A name looked up in the enclosing `with` scopes.
    Dynamic(&'static Dynamic),
    /// `base.name`, the common form of selection.
    SelectName(&'static SelectName<V>),
    /// Selection in general: several or dynamic names, a default.
    Select(&'static Select<V>),
    /// `base ? path`.
    HasAttr(&'static HasAttr<V>),
    /// An attribute set.
    Attrs(&'static Attrs<V>),
    /// A list of delayed elements.
    List(&'static &'static [Expr<V>]),
    /// A function.
    Lambda(&'static Lambda<V>),
    /// A function applied to delayed arguments.
    Call(&'static Call<V>),
    /// `let`.
    Let(&'static Let<V>),
    /// `with`.
    With(&'static With<V>),
    /// `if`.
    If(&'static If<V>),
    /// `assert`.
    Assert(&'static Assert<V>),
    /// `!e`.
    Not(&'static Not<V>),
    /// An operator on two strict operands (the right one lazily for the logical ones).
    Binary(BinaryOp, &'static Binary<V>),
    /// String or path interpolation.
    Concat(&'static Concat<V>),
    /// `a + b + c …`, more than two operands.
    Sum(&'static Sum<V>),
    /// `__curPos`.
    CurPos(Pos),
    /// Delayed position only: a body to run later.
    Suspend(&'static Suspend<V>),
    /// The whole of a body only: code that is made when it first runs, in a frame of its own with the same captures.
    Lazy(&'static Lazy<V>),
    /// An expression nested so deeply that the machine must look to its stack first.
    Deep(&'static Expr<V>),
    /// An expression that somebody wants to hear of.
    Watched(&'static Watched<V>),
    /// The whole of a body without captures only: code whose value the machine may keep.
    Closed(&'static Expr<V>),
}

impl<V> Expr<V> {
    /// How many kinds of code there are.
    pub const KINDS: usize = 25;

    /// Which kind of code it is, as a number below [`Expr::KINDS`], in the order above.
    #[inline(always)]
    pub fn kind(&self) -> usize {
        match self {
            Expr::Const(..) => 0,
            Expr::Local(..) => 1,
            Expr::Capture(..) => 2,
            Expr::Dynamic(_) => 3,
            Expr::SelectName(_) => 4,
            Expr::Select(_) => 5,
            Expr::HasAttr(_) => 6,
            Expr::Attrs(_) => 7,
            Expr::List(_) => 8,
            Expr::Lambda(_) => 9,
            Expr::Call(_) => 10,
            Expr::Let(_) => 11,
            Expr::With(_) => 12,
            Expr::If(_) => 13,
            Expr::Assert(_) => 14,
            Expr::Not(_) => 15,
            Expr::Binary(..) => 16,
            Expr::Concat(_) => 17,
            Expr::Sum(_) => 18,
            Expr::CurPos(_) => 19,
            Expr::Suspend(_) => 20,
            Expr::Lazy(_) => 21,
            Expr::Deep(_) => 22,
            Expr::Watched(_) => 23,
            Expr::Closed(_) => 24,
        }
    }

    /// The code of a variable.
    pub fn variable(var: Var, pos: Pos) -> Expr<V> {
        if var.is_capture() { Expr::Capture(var.index(), pos) } else { Expr::Local(var.index(), pos) }
    }
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `==`
    Eq,
    /// `!=`
    NEq,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `->`
    Impl,
    /// `//`
    Update,
    /// `++`
    ConcatLists,
    /// `+` on anything it takes.
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `<`: NIX: the operators `>`, `<=` and `>=` are calls of the same builtin, operands swapped or result negated.
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEq,
    /// `>=`
    GreaterEq,
}

/// Code with a frame of its own: what a thunk or a function runs.
#[derive(Debug)]
#[repr(align(16))]
pub struct Body<V: 'static> {
    /// The code, strict.
    pub expr: Expr<V>,
    /// Number of local slots.
    pub locals: u32,
    /// Where the creating frame finds each captured cell.
    pub captures: &'static [Var],
    /// Position of the expression, for messages.
    pub pos: Pos,
    /// The same code for the frame around it, when it is small: run where the value is needed at once.
    pub now: Option<&'static Expr<V>>,
}

const _: () = assert!(size_of::<Expr<u64>>() == 16);
const _: () = assert!(size_of::<Body<u64>>() == 48);

impl<V> Body<V> {
    /// The code, made now if it was put off, for those who look at code without running it.
    pub fn code(&'static self) -> &'static Expr<V> {
        let body = if let Expr::Lazy(lazy) = self.expr { lazy.body() } else { self };
        if let Expr::Closed(inner) = body.expr { inner } else { &body.expr }
    }
}

/// Code to run later.
#[derive(Debug)]
pub struct Suspend<V: 'static> {
    /// The code for a frame of its own.
    pub body: Body<V>,
}

impl<V> Suspend<V> {
    /// Whether it is a list or a set of delayed values: making it evaluates nothing.
    #[inline]
    pub fn is_made(&self) -> bool {
        match &self.body.expr {
            Expr::List(_) => true,
            Expr::Attrs(set) => set.plain,
            _ => false,
        }
    }
}

/// A variable that no lexical scope binds.
#[derive(Debug)]
pub struct Dynamic {
    /// The name.
    pub name: Symbol,
    /// Where it is used.
    pub pos: Pos,
    /// The enclosing `with` scopes, innermost first.
    pub scopes: &'static [WithScope],
}

/// A `with` scope that a variable may come from.
#[derive(Debug)]
pub struct WithScope {
    /// The set.
    pub var: Var,
    /// Where its `with` stands.
    pub pos: Pos,
    /// Shape and index last seen.
    pub cache: InlineCache,
}

/// `base.name`.
#[derive(Debug)]
pub struct SelectName<V: 'static> {
    /// Strict.
    pub base: Expr<V>,
    /// The name.
    pub name: Symbol,
    /// Where.
    pub pos: Pos,
    /// Shape and index last seen.
    pub cache: InlineCache,
}

/// One component of an attribute path.
#[derive(Debug)]
pub enum AttrName<V: 'static> {
    /// Written out, with the shape and index last seen there.
    Static(Symbol, InlineCache),
    /// Computed: strict code, and for messages its source as Nix prints it and where it is.
    Dynamic(Expr<V>, &'static [u8], Pos),
}

/// Selection along a path, with an optional default.
#[derive(Debug)]
pub struct Select<V: 'static> {
    /// Strict.
    pub base: Expr<V>,
    /// The path.
    pub path: &'static [AttrName<V>],
    /// Strict: evaluated when the path does not exist.
    pub default: Option<Expr<V>>,
    /// Where.
    pub pos: Pos,
}

/// `base ? path`.
#[derive(Debug)]
pub struct HasAttr<V: 'static> {
    /// Strict.
    pub base: Expr<V>,
    /// The path.
    pub path: &'static [AttrName<V>],
    /// Where.
    pub pos: Pos,
}

/// A delayed expression to be stored in a local slot.
#[derive(Debug)]
pub struct Binding<V: 'static> {
    /// The slot.
    pub slot: u32,
    /// Its value names nothing that is bound with it, so that it is made at once.
    pub alone: bool,
    /// Delayed.
    pub value: Expr<V>,
}

const _: () = assert!(size_of::<Binding<u64>>() == 24);

impl<V> Binding<V> {
    /// A binding in a scope whose slots begin at `first`.
    pub(crate) fn new(slot: u32, value: Expr<V>, first: u32) -> Binding<V> {
        let outside = |captures: &[Var]| captures.iter().all(|var| var.is_capture() || var.index() < first);
        let alone = match &value {
            Expr::Suspend(node) => outside(node.body.captures),
            Expr::Lambda(lambda) => outside(lambda.body.captures),
            _ => false,
        };
        Binding { slot, alone, value }
    }
}

/// An attribute set literal.
#[derive(Debug)]
pub struct Attrs<V: 'static> {
    /// Names and positions of the static attributes.
    pub shape: &'static Shape,
    /// Sources of `inherit (…)`, bound first. In a `rec` set they see the set's own names.
    pub from: &'static [Binding<V>],
    /// Delayed values: in shape order, or in a `rec` set in source order.
    pub values: &'static [Expr<V>],
    /// What a `rec` set has more.
    pub rec: Option<&'static Rec>,
    /// Attributes with computed names, in source order.
    pub dynamic: &'static [DynamicAttr<V>],
    /// There is nothing but names and values.
    pub plain: bool,
    /// The number of its guard, or 0 (`firn_value::Guard`).
    pub guard: u32,
    /// Where the set begins.
    pub pos: Pos,
}

/// The names of a `rec` set. Slots follow the source, not symbol numbers, so that code is the same in every run.
#[derive(Debug)]
pub struct Rec {
    /// Value `i` is bound to slot `first + i`.
    pub first: u32,
    /// For each name in shape order the index of its value.
    pub order: &'static [u32],
    /// Index of the value of `__overrides`, if the set has one.
    pub overrides: Option<u32>,
}

/// `${name} = value;`
#[derive(Debug)]
pub struct DynamicAttr<V: 'static> {
    /// Strict.
    pub name: Expr<V>,
    /// Delayed.
    pub value: Expr<V>,
    /// Where.
    pub pos: Pos,
}

/// The slots of most frames.
pub const FEW_SLOTS: usize = 4;

/// A function of one or more arguments. `x: y: { a, b }: body` is one function of three arguments; only the last
/// argument may be a pattern, so that a pattern is always matched when its argument arrives.
#[derive(Debug)]
#[repr(align(16))]
pub struct Lambda<V: 'static> {
    /// Plain arguments; argument `i` is local slot `i`.
    pub params: &'static [Param],
    /// The pattern that is the last argument, if any: the set is local slot `params.len()`.
    pub pattern: Option<&'static Pattern<V>>,
    /// The code.
    pub body: Body<V>,
    /// The name the function was bound to.
    pub name: Option<Symbol>,
    /// Arguments that may be evaluated before the call.
    pub strict: Strict,
    /// How many arguments it takes: the plain ones and the pattern.
    pub arity: u32,
    /// The same if a call needs no more than [`FEW_SLOTS`] and matches no pattern; otherwise none.
    pub few: u8,
    /// Whether calls are remembered.
    pub marks: Marks,
}

impl<V> Lambda<V> {
    /// How many arguments it takes.
    #[inline]
    pub fn arity(&self) -> usize {
        self.arity as usize
    }

    /// Whether it does nothing but give a set of which the attribute of this name is its one argument.
    pub fn gives_its_argument_as(&self, name: Symbol) -> bool {
        let Expr::Attrs(set) = &self.body.expr else { return false };
        let is_alone = self.params.len() == 1 && self.pattern.is_none() && set.rec.is_none() && set.dynamic.is_empty();
        is_alone && set.shape.index(name).is_some_and(|at| matches!(set.values[at], Expr::Local(0, _)))
    }

    /// Position of the function that takes argument `done` (from 0) of the curried chain.
    pub fn pos_at(&self, done: usize) -> Pos {
        match (self.params.get(done), &self.pattern) {
            (Some(param), _) => param.pos,
            (None, Some(pattern)) => pattern.pos,
            (None, None) => Pos::NONE,
        }
    }
}

/// A plain argument.
#[derive(Debug)]
pub struct Param {
    /// Its name.
    pub name: Symbol,
    /// Where its function begins.
    pub pos: Pos,
}

/// A set pattern.
#[derive(Debug)]
pub struct Pattern<V: 'static> {
    /// Formals in source order, in slots `first`, `first + 1`, ….
    pub formals: &'static [Formal<V>],
    /// Slot of the first formal.
    pub first: u32,
    /// Whether other attributes are allowed.
    pub ellipsis: bool,
    /// The `@` name.
    pub at: Option<Symbol>,
    /// Where the function begins.
    pub pos: Pos,
    /// How sets of shapes met before are taken apart.
    pub plans: Plans,
}

/// One formal argument.
#[derive(Debug)]
pub struct Formal<V: 'static> {
    /// Its name.
    pub name: Symbol,
    /// Where it is written.
    pub pos: Pos,
    /// Delayed.
    pub default: Option<Expr<V>>,
}

/// A call.
#[derive(Debug)]
pub struct Call<V: 'static> {
    /// Strict.
    pub fun: Expr<V>,
    /// Delayed.
    pub args: &'static [Expr<V>],
    /// Where.
    pub pos: Pos,
}

/// `let`: mutually recursive bindings around a body.
#[derive(Debug)]
pub struct Let<V: 'static> {
    /// Sources of `inherit (…)` and then the bindings.
    pub bindings: &'static [Binding<V>],
    /// A binding that the body forces first and no other one sees: it is evaluated at once, after the others are bound.
    pub early: Option<Binding<V>>,
    /// Strict.
    pub body: Expr<V>,
}

/// `with`: the scope's cell in a slot around a body.
#[derive(Debug)]
pub struct With<V: 'static> {
    /// Slot of the scope.
    pub slot: u32,
    /// Delayed.
    pub scope: Expr<V>,
    /// Strict.
    pub body: Expr<V>,
}

/// `if`.
#[derive(Debug)]
pub struct If<V: 'static> {
    /// Strict.
    pub cond: Expr<V>,
    /// Strict.
    pub then: Expr<V>,
    /// Strict.
    pub otherwise: Expr<V>,
    /// Where.
    pub pos: Pos,
}

/// `assert`.
#[derive(Debug)]
pub struct Assert<V: 'static> {
    /// Strict.
    pub cond: Expr<V>,
    /// Strict.
    pub body: Expr<V>,
    /// The condition as Nix prints it.
    pub text: &'static [u8],
    /// Where.
    pub pos: Pos,
}

/// `!e`.
#[derive(Debug)]
pub struct Not<V: 'static> {
    /// Strict.
    pub operand: Expr<V>,
    /// Where.
    pub pos: Pos,
}

/// Two operands.
#[derive(Debug)]
pub struct Binary<V: 'static> {
    /// Strict.
    pub left: Expr<V>,
    /// Strict, evaluated when the operator needs it.
    pub right: Expr<V>,
    /// Where the operator stands.
    pub pos: Pos,
    /// Positions of the operands.
    pub operands: [Pos; 2],
}

/// `first + …`: additions from left to right.
#[derive(Debug)]
pub struct Sum<V: 'static> {
    /// Strict.
    pub first: Expr<V>,
    /// What is added in turn.
    pub rest: &'static [Addend<V>],
}

/// One step of a sum.
#[derive(Debug)]
pub struct Addend<V: 'static> {
    /// Strict.
    pub right: Expr<V>,
    /// Where the operator stands.
    pub pos: Pos,
    /// Positions of the operands.
    pub operands: [Pos; 2],
}

/// Interpolation.
#[derive(Debug)]
pub struct Concat<V: 'static> {
    /// The result is a string whatever the first part is.
    pub force_string: bool,
    /// Strict parts with their positions.
    pub parts: &'static [(Expr<V>, Pos)],
    /// Where.
    pub pos: Pos,
}

/// A one-entry inline cache: the address of a shape and an index into it. Racing writers leave a whole entry.
#[derive(Debug, Default)]
pub struct InlineCache(AtomicU64);

impl InlineCache {
    /// The index that stands for a name the shape does not have.
    pub const ABSENT: usize = 0xffff;

    /// The address of the remembered shape, and the index in it or [`InlineCache::ABSENT`]. Invariant: the index is
    /// below the shape's length; nothing but `set` writes it.
    #[inline]
    pub fn get(&self) -> (u64, usize) {
        let word = self.0.load(std::sync::atomic::Ordering::Relaxed);
        (word >> 16, (word & 0xffff) as usize)
    }

    /// Remembers where `shape` has `name`, or that it does not, and says so; places past 16 bits are not remembered.
    #[inline]
    pub fn set(&self, shape: &'static Shape, name: Symbol) -> Option<usize> {
        let index = shape.index(name);
        let addr = std::ptr::from_ref(shape).addr() as u64;
        if index.is_none_or(|i| i < InlineCache::ABSENT) && addr < 1 << 48 {
            let place = index.unwrap_or(InlineCache::ABSENT);
            self.0.store(addr << 16 | place as u64, std::sync::atomic::Ordering::Relaxed);
        }
        index
    }
}
