//! The syntax tree: what C++ Nix has after parsing and before binding variables, in flat arrays.
//!
//! The parser builds it, the printer and the lowering read it. Nodes are `Copy`, name each other by [`ExprId`], and
//! keep everything of variable length as a [`Range`] into a side vector that the accessors of [`Ast`] hand out as a
//! slice. Every node that can raise an evaluation error carries the position that Nix's node carries.
//!
//! Invariant: a tree may be as deep as its source is long (left-leaning operator chains, nested lists): whoever
//! recurses over it must guard its stack (the printer uses `stacker`).

use firn_source::{Pos, SourceFile, SourceText, Symbol};

/// Names a node of its [`Ast`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExprId(pub(crate) u32);

/// Names an attribute set of its [`Ast`] (also the bindings of a `let`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttrsId(pub(crate) u32);

/// Names a function of its [`Ast`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LambdaId(pub(crate) u32);

impl ExprId {
    /// The node's index: ids are dense from 0, see [`Ast::len`].
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl AttrsId {
    /// The set's index, dense from 0.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl LambdaId {
    /// The function's index, dense from 0.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stretch of one of the side vectors; which one follows from where the range is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Range {
    /// How many elements.
    #[inline]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(crate) fn of<T>(self, all: &[T]) -> &[T] {
        &all[self.start as usize..self.start as usize + self.len as usize]
    }
}

/// The bytes of a string or path literal, see [`Ast::text`]. Literals without escapes are stretches of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text {
    /// Offset into the source, or, with [`Text::OWNED`] set, into the tree's own bytes.
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Text {
    pub(crate) const OWNED: u32 = 1 << 31;
}

/// Operators that Nix desugars to calls of `__sub`, `__mul`, `__div` and `__lessThan`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arith {
    /// `a - b`: `__sub a b`. `-a` is `0 - a`, with an [`Expr::Int`] node for the zero and the position of the minus.
    Sub,
    /// `a * b`: `__mul a b`.
    Mul,
    /// `a / b`: `__div a b`.
    Div,
    /// `a < b`: `__lessThan a b`.
    Less,
    /// `a > b`: `__lessThan b a`.
    Greater,
    /// `a <= b`: `! (__lessThan b a)`.
    LessEq,
    /// `a >= b`: `! (__lessThan a b)`.
    GreaterEq,
}

/// Operators that have a node of their own in Nix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinOp {
    /// `==` (no position in Nix: [`Pos::NONE`]).
    Eq,
    /// `!=` (no position in Nix: [`Pos::NONE`]).
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
}

/// A node. Positions are those of Nix's nodes; where Nix has none, none is here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Expr {
    /// An integer literal.
    Int(i64),
    /// A floating-point literal.
    Float(f64),
    /// A string without interpolation (also URL literals), escapes and indentation already undone.
    String(Text),
    /// A path literal, see [`Ast::path_literal`]. As the first part of an interpolated path ([`Expr::Concat`]) it may end in `/`.
    Path(Text),
    /// A variable. Names that the parser made up (`__findFile`, `__nixPath`) have [`Pos::NONE`].
    Var {
        /// Its name.
        name: Symbol,
        /// Where it is written.
        pos: Pos,
    },
    /// `base.path` or `base.path or default`. `let { … }` is a select of `body` from a recursive set, with [`Pos::NONE`].
    Select {
        /// What is selected from.
        base: ExprId,
        /// [`Ast::path`].
        path: Range,
        /// The value when a name of the path is missing.
        default: Option<DefaultId>,
        /// Start of the whole expression.
        pos: Pos,
    },
    /// `base ? path`.
    HasAttr {
        /// What is asked.
        base: ExprId,
        /// [`Ast::path`].
        path: Range,
    },
    /// `{ … }` or `rec { … }`.
    Attrs(AttrsId),
    /// `[ … ]`: [`Ast::exprs`].
    List(Range),
    /// A function.
    Lambda(LambdaId),
    /// `fun arg…`, flattened as Nix flattens it: `f x y` is one call of two arguments, and so are `(f x) y`,
    /// `y |> f x`. `<x>` is `__findFile __nixPath "x"`, and `(a - b) c` is `__sub a b c` (an ordinary call node).
    Call {
        /// The function. Itself a [`Expr::Call`] only in `(f x) or`, which Nix does not flatten.
        fun: ExprId,
        /// At least one argument: [`Ast::exprs`].
        args: Range,
        /// Start of the function expression (of the operator, for pipes).
        pos: Pos,
    },
    /// An operator that Nix desugars to a call; see [`Arith`] for which.
    Arith {
        /// Which.
        op: Arith,
        /// Left as written.
        lhs: ExprId,
        /// Right as written.
        rhs: ExprId,
        /// The operator's position, which is the desugared call's. The function's variable has [`Pos::NONE`].
        pos: Pos,
    },
    /// An operator with a node of its own.
    Binary {
        /// Which.
        op: BinOp,
        /// Left.
        lhs: ExprId,
        /// Right.
        rhs: ExprId,
        /// The operator's position.
        pos: Pos,
    },
    /// `! e`.
    Not(ExprId),
    /// `let attrs in body`. The set is recursive in effect though not marked [`Attrs::recursive`]; it has no dynamic names.
    Let {
        /// The bindings.
        attrs: AttrsId,
        /// The body.
        body: ExprId,
    },
    /// `with attrs; body`.
    With {
        /// The set.
        attrs: ExprId,
        /// The body.
        body: ExprId,
        /// The `with`.
        pos: Pos,
    },
    /// `if cond then … else …`.
    If {
        /// Condition.
        cond: ExprId,
        /// When true.
        then: ExprId,
        /// When false.
        other: ExprId,
        /// The `if`.
        pos: Pos,
    },
    /// `assert cond; body`.
    Assert {
        /// Condition.
        cond: ExprId,
        /// The body.
        body: ExprId,
        /// The `assert`.
        pos: Pos,
    },
    /// `a + b`, an interpolated string, or an interpolated path.
    Concat {
        /// True for strings (parts are coerced), false for `+` and paths (the first part decides the type).
        force_string: bool,
        /// [`Ast::parts`].
        parts: Range,
        /// `+`: the operator; `"…"`: the first part; `''…''` and paths: the start.
        pos: Pos,
    },
    /// `__curPos`.
    CurPos(Pos),
}

/// The default of a select: an [`ExprId`] in a form that makes `Option` free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefaultId(std::num::NonZeroU32);

impl DefaultId {
    pub(crate) fn new(expr: ExprId) -> Option<DefaultId> {
        std::num::NonZeroU32::new(expr.0 + 1).map(DefaultId)
    }

    /// The default expression.
    #[inline]
    pub fn expr(self) -> ExprId {
        ExprId(self.0.get() - 1)
    }
}

/// One name of an attribute path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrName {
    /// Known at parse time: `a`, `"a"`, `${"a"}`.
    Static(Symbol),
    /// `${e}` or an interpolated string.
    Dynamic(ExprId),
}

/// An attribute set or the bindings of a `let`, after nested definitions (`a.b = …; a.c = …;`) were merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attrs {
    /// Marked `rec` (or `let { … }`).
    pub recursive: bool,
    /// The set's start; [`Pos::NONE`] for the bindings of a `let` and for sets made by nested paths.
    pub pos: Pos,
    /// [`Ast::attr_defs`]: names known at parse time, each once, in order of first definition.
    pub defs: Range,
    /// [`Ast::inherit_sources`]: the `e` of each `inherit (e) …`, in source order.
    pub sources: Range,
    /// [`Ast::dynamic_defs`]: `${e} = …`, in source order.
    pub dynamic: Range,
}

/// A definition under a name known at parse time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttrDef {
    /// The name.
    pub name: Symbol,
    /// Start of the attribute path that first defined it, or of the name in an `inherit`.
    pub pos: Pos,
    /// What it stands for.
    pub value: AttrValue,
}

/// What an attribute is defined as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrValue {
    /// `name = expr;`
    Plain(ExprId),
    /// `inherit name;`: the variable `name` (position: the definition's) in the scope *around* the set.
    Inherited,
    /// `inherit (e) name;`: select of `name` (position: the definition's) from the given entry of [`Attrs::sources`].
    InheritedFrom(u32),
}

/// The `e` of an `inherit (e) …`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InheritSource {
    /// The expression.
    pub expr: ExprId,
    /// Its start: the position of the hidden variable through which Nix reads it.
    pub pos: Pos,
}

/// A definition under a computed name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DynamicDef {
    /// The name.
    pub name: ExprId,
    /// The value.
    pub value: ExprId,
    /// Start of the attribute path.
    pub pos: Pos,
}

/// A part of a [`Expr::Concat`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The part's expression.
    pub expr: ExprId,
    /// Where the part starts (the `${` of an interpolation).
    pub pos: Pos,
}

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lambda {
    /// Start of the function.
    pub pos: Pos,
    /// The attribute it was defined as (`f = x: y: …` names both functions), for messages and traces.
    pub name: Option<Symbol>,
    /// `x` of `x: …`, `x@{ … }: …`, `{ … }@x: …`.
    pub arg: Option<Symbol>,
    /// The pattern, if any.
    pub formals: Option<Formals>,
    /// The body.
    pub body: ExprId,
}

/// The `{ a, b ? d, ... }` of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formals {
    /// [`Ast::formals`]: in source order, each name once. NIX: Nix keeps them sorted by symbol number (order of
    /// creation), which decides which missing argument is reported first.
    pub list: Range,
    /// `...` was given.
    pub ellipsis: bool,
}

/// One name of a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Formal {
    /// The name.
    pub name: Symbol,
    /// Where it is written.
    pub pos: Pos,
    /// `? default`.
    pub default: Option<ExprId>,
}

/// Something Nix prints on standard error while parsing, without failing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning {
    /// The place, for warnings that Nix prints with a source excerpt.
    pub pos: Pos,
    /// The text.
    pub message: Vec<u8>,
}

/// A parsed source text.
#[derive(Debug)]
pub struct Ast {
    pub(crate) file: &'static SourceFile,
    pub(crate) text: SourceText,
    /// Where relative paths start, canonical; empty for the root.
    pub(crate) base_path: Vec<u8>,
    pub(crate) root: ExprId,
    pub(crate) nodes: Vec<Expr>,
    pub(crate) ids: Vec<ExprId>,
    pub(crate) paths: Vec<AttrName>,
    pub(crate) parts: Vec<Part>,
    pub(crate) formals: Vec<Formal>,
    pub(crate) lambdas: Vec<Lambda>,
    pub(crate) attrs: Vec<Attrs>,
    pub(crate) attr_defs: Vec<AttrDef>,
    pub(crate) sources: Vec<InheritSource>,
    pub(crate) dynamic: Vec<DynamicDef>,
    pub(crate) owned: Vec<u8>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) names_home: bool,
    /// The set that is guarded, and its guard (`crates/eval/src/import.rs`).
    pub(crate) guarded: Option<(AttrsId, u32)>,
    /// Bindings so far, and those that are leaves with where their values stand, where they are noted ([`crate::Leaves`]).
    pub(crate) bound: u32,
    pub(crate) leaves: Vec<(ExprId, std::ops::Range<u32>)>,
    pub(crate) watched_from: u32,
    pub(crate) root_watched: Option<ExprId>,
}

impl Ast {
    /// The text this tree was parsed from.
    pub fn file(&self) -> &'static SourceFile {
        self.file
    }

    /// Has the set that begins at this offset of the text guarded. False if there is none, or it is recursive, or has computed names.
    pub fn guard(&mut self, start: u32, guard: u32) -> bool {
        let pos = self.file.pos(start);
        let found = self.attrs.iter().position(|set| !set.recursive && set.dynamic.is_empty() && set.pos == pos);
        self.guarded = found.map(|index| (AttrsId(index as u32), guard));
        found.is_some()
    }

    /// The guard of a set, or 0.
    pub fn guard_of(&self, set: AttrsId) -> u32 {
        self.guarded.filter(|(guarded, _)| *guarded == set).map_or(0, |(_, guard)| guard)
    }

    /// The whole expression.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// Number of nodes (merging may leave some that are not reachable from the root).
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes; never for a parsed text.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    #[inline]
    pub fn expr(&self, id: ExprId) -> Expr {
        self.nodes[id.index()]
    }

    /// Elements of a list, arguments of a call.
    #[inline]
    pub fn exprs(&self, range: Range) -> &[ExprId] {
        range.of(&self.ids)
    }

    /// An attribute path; never empty.
    #[inline]
    pub fn path(&self, range: Range) -> &[AttrName] {
        range.of(&self.paths)
    }

    /// Parts of a concatenation; never empty.
    #[inline]
    pub fn parts(&self, range: Range) -> &[Part] {
        range.of(&self.parts)
    }

    /// An attribute set.
    #[inline]
    pub fn attrs(&self, id: AttrsId) -> &Attrs {
        &self.attrs[id.index()]
    }

    /// Definitions of a set.
    #[inline]
    pub fn attr_defs(&self, range: Range) -> &[AttrDef] {
        range.of(&self.attr_defs)
    }

    /// Sources of a set's `inherit (e)`.
    #[inline]
    pub fn inherit_sources(&self, range: Range) -> &[InheritSource] {
        range.of(&self.sources)
    }

    /// Definitions of a set under computed names.
    #[inline]
    pub fn dynamic_defs(&self, range: Range) -> &[DynamicDef] {
        range.of(&self.dynamic)
    }

    /// A function.
    #[inline]
    pub fn lambda(&self, id: LambdaId) -> &Lambda {
        &self.lambdas[id.index()]
    }

    /// Names of a pattern.
    #[inline]
    pub fn formals(&self, range: Range) -> &[Formal] {
        range.of(&self.formals)
    }

    /// The bytes of a literal.
    #[inline]
    pub fn text(&self, text: Text) -> &[u8] {
        let start = (text.start & !Text::OWNED) as usize;
        let all = if text.start & Text::OWNED == 0 { &**self.text } else { &*self.owned };
        &all[start..start + text.len as usize]
    }

    /// Appends the absolute path that a path literal means.
    pub fn path_literal(&self, text: Text, out: &mut Vec<u8>) {
        let literal = self.text(text);
        if text.start & Text::OWNED != 0 {
            // Below the home directory: absolute as it is.
            return out.extend_from_slice(literal);
        }
        crate::path::append_literal(&self.base_path, literal, out);
    }

    /// The literal of a path that starts from the directory of the text; none if it is written in full (`/x`, `~/x`).
    pub fn relative_path(&self, text: Text) -> Option<&[u8]> {
        let is_relative = text.start & Text::OWNED == 0 && self.text(text).first() != Some(&b'/');
        is_relative.then(|| self.text(text))
    }

    /// Whether a path literal names the home directory (`~/x`).
    pub fn names_home(&self) -> bool {
        self.names_home
    }

    /// The literal of every path, as it is written; of one below the home directory what it means.
    pub fn path_literals(&self) -> impl Iterator<Item = &[u8]> {
        self.nodes.iter().filter_map(|node| if let Expr::Path(text) = *node { Some(self.text(text)) } else { None })
    }

    /// Tells of path literals that may lead out of their directory: whether one is written in full (`/x`, `~/x`), and the path that it means.
    pub fn each_path_beyond(&self, mut each: impl FnMut(bool, &[u8])) {
        let paths = self.nodes.iter().filter_map(|node| if let Expr::Path(text) = *node { Some(text) } else { None });
        // PERF: nearly every one lies below, as its letters tell.
        let is_below = |text| self.relative_path(text).is_some_and(|literal| !literal.windows(2).any(|pair| pair == b".."));
        for text in paths.filter(|&text| !is_below(text)) {
            let mut path = Vec::new();
            self.path_literal(text, &mut path);
            each(self.relative_path(text).is_none(), &path);
        }
    }

    /// Warnings to print, in order.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The position Nix reports for a node (`getPos`); [`Pos::NONE`] for literals, `let`, `==` and `!=`.
    pub fn pos_of(&self, id: ExprId) -> Pos {
        let mut id = id;
        loop {
            return match self.expr(id) {
                Expr::Int(_) | Expr::Float(_) | Expr::String(_) | Expr::Path(_) | Expr::Let { .. } => Pos::NONE,
                Expr::Var { pos, .. }
                | Expr::Select { pos, .. }
                | Expr::Call { pos, .. }
                | Expr::Arith { pos, .. }
                | Expr::Binary { pos, .. }
                | Expr::With { pos, .. }
                | Expr::If { pos, .. }
                | Expr::Assert { pos, .. }
                | Expr::Concat { pos, .. }
                | Expr::CurPos(pos) => pos,
                Expr::Attrs(set) => self.attrs(set).pos,
                Expr::Lambda(lambda) => self.lambda(lambda).pos,
                Expr::HasAttr { base, .. } => {
                    id = base;
                    continue;
                }
                Expr::Not(operand) => {
                    id = operand;
                    continue;
                }
                Expr::List(range) => match self.exprs(range).first() {
                    Some(&first) => {
                        id = first;
                        continue;
                    }
                    None => Pos::NONE,
                },
            };
        }
    }
}

const _: () = assert!(std::mem::size_of::<Expr>() == 24);
const _: () = assert!(std::mem::size_of::<AttrDef>() == 16);
