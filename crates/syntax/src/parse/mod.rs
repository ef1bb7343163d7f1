//! The parser: recursive descent with operator precedence over the tokens of one text.
//!
//! It accepts exactly Nix's grammar and does in each place what Nix's semantic actions do, in the same order, so that
//! of several errors the same one is reported. Where a token does not fit, it only notes so: the message comes from
//! the automaton in [`crate::expected`], which replays the tokens.

mod binds;
mod expr;
mod function;
mod indent;
mod operators;
mod path;
mod string;

use crate::ast::{Ast, AttrName, Attrs, Expr, ExprId, Formal, Part, Range, Text};
use crate::error::ParseError;
use crate::expected;
use crate::lex::{Lexed, lex};
use crate::names::Names;
use crate::reuse::LARGE;
use crate::token::{Form, Kind, Token};
use binds::Sets;
use firn_source::{Pos, SourceFile, SourceText, Symbol};
use std::cell::{Cell, RefCell};

/// How deep expressions may nest in the source. Nix has no limit but the machine's stack.
pub const MAX_NESTING: u32 = 200_000;

/// What to do about a discouraged form (Nix's `lint-…` settings).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lint {
    /// Nothing.
    #[default]
    Ignore,
    /// Add to [`Ast::warnings`].
    Warn,
    /// Refuse.
    Fatal,
}

/// Settings that change what is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// The experimental feature `pipe-operators`.
    pub pipe_operators: bool,
    /// `lint-url-literals`
    pub url_literals: Lint,
    /// `lint-absolute-path-literals`
    pub absolute_path_literals: Lint,
    /// `lint-short-path-literals`
    pub short_path_literals: Lint,
}

/// What `~/…` stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home<'a> {
    /// The user's home directory.
    Dir(&'a [u8]),
    /// Pure evaluation: such paths are refused.
    Pure,
}

/// Parses a text. `base_path` is the absolute directory that relative paths start from.
pub fn parse(
    file: &'static SourceFile,
    base_path: &[u8],
    home: Home<'_>,
    features: Features,
) -> Result<Ast, ParseError> {
    parse_tokens(file, base_path, home, features, |_| ()).map_err(|(failure, _)| *failure)
}

/// As [`parse`], and notes which bindings are leaves: what the text says under a name, and nothing under it ([`crate::Leaves`]).
pub fn parse_noting_leaves(
    file: &'static SourceFile,
    base_path: &[u8],
    home: Home<'_>,
    features: Features,
) -> Result<Ast, ParseError> {
    NOTES.set(true);
    let parsed = parse(file, base_path, home, features);
    NOTES.set(false);
    parsed
}

/// Why a text is not a row of bindings.
#[derive(Debug)]
pub enum NoBindings {
    /// It may become one when more is typed.
    Incomplete,
    /// It is something else.
    Other(ParseError),
}

/// Parses a row of bindings (`a = 1; inherit b;`) as the set that holds them, for the REPL. `closed` reads the text as if a
/// semicolon followed.
pub fn parse_bindings(
    file: &'static SourceFile,
    base_path: &[u8],
    home: Home<'_>,
    features: Features,
    closed: bool,
) -> Result<Ast, NoBindings> {
    let mut end = 0;
    let embrace = |tokens: &mut Vec<Token>| {
        let at = tokens.last().map_or(0, |token| token.start);
        let eof = tokens.pop();
        tokens.insert(0, Token { kind: Kind::LBrace, form: Form::Verbatim, start: 0, end: 0 });
        if closed {
            tokens.push(Token { kind: Kind::Semicolon, form: Form::Verbatim, start: at, end: at });
        }
        end = tokens.len();
        tokens.push(Token { kind: Kind::RBrace, form: Form::Verbatim, start: at, end: at });
        tokens.extend(eof);
    };
    match parse_tokens(file, base_path, home, features, embrace) {
        // Whatever else begins and ends with braces is no row of bindings.
        Ok(ast) if matches!(ast.nodes[ast.root.0 as usize], Expr::Attrs(_)) => Ok(ast),
        Ok(_) => Err(NoBindings::Other(ParseError::new(Pos::NONE, "not a row of bindings"))),
        Err((_, at)) if at >= end => Err(NoBindings::Incomplete),
        Err((failure, _)) => Err(NoBindings::Other(*failure)),
    }
}

/// Parses what `change` makes of the tokens; a failure is told with the index of its token.
fn parse_tokens(
    file: &'static SourceFile,
    base_path: &[u8],
    home: Home<'_>,
    features: Features,
    change: impl FnOnce(&mut Vec<Token>),
) -> Result<Ast, (Box<ParseError>, usize)> {
    let Some(source) = file.text() else {
        return Err((Box::new(ParseError::new(file.pos(0), "the text is no longer there")), 0));
    };
    let (parsed, names) = parse_source(file, source, (base_path, home, features), Names::take(), change);
    names.give_back();
    parsed
}

/// As [`parse`], of a text that nobody has registered. Names get the numbers of `names`, positions are those in the [text that stands for such
/// texts](SourceFile::unplaced), and there is no home directory.
pub(crate) fn parse_apart(source: SourceText, features: Features, names: Names) -> (Option<Ast>, Names) {
    let (parsed, names) = parse_source(SourceFile::unplaced(), source, (b"", Home::Pure, features), names, |_| ());
    (parsed.ok(), names)
}

/// Parses a text; gives the names back.
fn parse_source(
    file: &'static SourceFile,
    source: SourceText,
    (base_path, home, features): (&[u8], Home<'_>, Features),
    names: Names,
    change: impl FnOnce(&mut Vec<Token>),
) -> (Result<Ast, (Box<ParseError>, usize)>, Names) {
    let scratch = SCRATCH.take();
    let Lexed { mut tokens, error } = match crate::essence::ready(&source, features.pipe_operators, scratch.tokens) {
        Ok(tokens) => Lexed { tokens, error: None },
        Err(spare) => lex(Some(file), &source, features.pipe_operators, spare),
    };
    change(&mut tokens);
    let mut ast = scratch.ast.unwrap_or_else(|| Ast::empty(file));
    ast.file = file;
    ast.text = source.clone();
    crate::path::append_canonical(&mut ast.base_path, 0, base_path);
    // Most nodes take two tokens or more, a name or literal takes one.
    ast.nodes.reserve(tokens.len() / 2 + 4);
    let mut parser = Parser {
        file,
        text: &source,
        tokens,
        at: 0,
        lexical: error,
        home,
        features,
        names,
        depth: 0,
        cursed: None,
        ast,
        sets: scratch.sets,
        ids: scratch.ids,
        parts: scratch.parts,
        path: scratch.path,
        inherited: scratch.inherited,
        formals: scratch.formals,
        grown: hashbrown::HashMap::default(),
        notes_leaves: NOTES.get(),
    };
    let result = parser.whole();
    let Parser { names, tokens, sets, ids, parts, path, inherited, formals, ast, at, .. } = parser;
    SCRATCH.set(Scratch { tokens, sets, ids, parts, path, inherited, formals, ast: None }.cleared());
    let parsed = match result {
        Ok(()) => Ok(ast),
        Err(failure) => Err((failure, at)),
    };
    (parsed, names)
}

/// Vectors that a thread keeps from one text to the next.
#[derive(Default)]
struct Scratch {
    tokens: Vec<Token>,
    sets: Sets,
    ids: Vec<ExprId>,
    parts: Vec<Part>,
    path: Vec<AttrName>,
    inherited: Vec<(Symbol, Pos)>,
    formals: Vec<Formal>,
    ast: Option<Ast>,
}

/// Takes back a tree that is no longer needed; see [`Ast::recycle`].
pub(crate) fn recycle(ast: Ast) {
    if ast.nodes.capacity() <= LARGE {
        SCRATCH.with_borrow_mut(|scratch| scratch.ast = Some(ast.cleared()));
    }
}

thread_local! {
    static NOTES: Cell<bool> = const { Cell::new(false) };
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Scratch {
    /// For the next text; what only a large one needs is not kept.
    fn cleared(mut self) -> Scratch {
        if self.tokens.capacity() > 2 * LARGE {
            return Scratch::default();
        }
        self.sets.clear();
        self.ids.clear();
        self.parts.clear();
        self.path.clear();
        self.inherited.clear();
        self.formals.clear();
        self
    }
}

/// A failure is rare: one word beside the result.
type Parsed<T> = Result<T, Box<ParseError>>;

struct Parser<'a> {
    file: &'static SourceFile,
    text: &'a [u8],
    tokens: Vec<Token>,
    /// The current token. Invariant: in bounds, because the last token ends every rule.
    at: usize,
    /// The error behind [`Kind::Failed`].
    lexical: Option<ParseError>,
    home: Home<'a>,
    features: Features,
    names: Names,
    depth: u32,
    /// End of the operand just parsed, if it is `e or` (see [`Parser::warn_cursed_or`]).
    cursed: Option<(u32, u32)>,
    ast: Ast,
    sets: Sets,
    /// Stacks of what is being collected; each rule works above the length it found.
    ids: Vec<ExprId>,
    parts: Vec<Part>,
    path: Vec<AttrName>,
    inherited: Vec<(Symbol, Pos)>,
    formals: Vec<Formal>,
    /// Room behind the arguments of calls that were moved to grow, by node.
    grown: hashbrown::HashMap<u32, u32, rustc_hash::FxBuildHasher>,
    /// Leaves are noted.
    notes_leaves: bool,
}

impl Parser<'_> {
    fn whole(&mut self) -> Parsed<()> {
        let root = self.expr()?;
        if self.kind() != Kind::Eof {
            return self.unexpected();
        }
        self.ast.root = root;
        self.lay_out_sets();
        Ok(())
    }

    #[inline]
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    /// The kind of the token `n` further on; the last one repeats.
    #[inline]
    fn kind_after(&self, n: usize) -> Kind {
        self.tokens.get(self.at + n).map_or(Kind::Eof, |t| t.kind)
    }

    #[inline]
    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, kind: Kind) -> Parsed<()> {
        if self.kind() != kind {
            return self.unexpected();
        }
        self.advance();
        Ok(())
    }

    #[inline]
    fn pos(&self, token: Token) -> Pos {
        self.file.pos(token.start)
    }

    #[inline]
    fn add(&mut self, expr: Expr) -> ExprId {
        let id = ExprId(self.ast.nodes.len() as u32);
        self.ast.nodes.push(expr);
        id
    }

    /// The symbol of an identifier token.
    #[inline]
    fn symbol(&mut self, token: Token) -> Symbol {
        self.names.intern(&self.text[token.start as usize..token.end as usize])
    }

    /// Appends bytes that are not a stretch of the source.
    fn own(&mut self, bytes: &[u8]) -> Text {
        let start = self.ast.owned.len() as u32;
        self.ast.owned.extend_from_slice(bytes);
        Text { start: start | Text::OWNED, len: bytes.len() as u32 }
    }

    fn take_ids(&mut self, from: usize) -> Range {
        let start = self.ast.ids.len() as u32;
        self.ast.ids.extend_from_slice(&self.ids[from..]);
        let len = (self.ids.len() - from) as u32;
        self.ids.truncate(from);
        Range { start, len }
    }

    fn take_parts(&mut self, from: usize) -> Range {
        let start = self.ast.parts.len() as u32;
        self.ast.parts.extend_from_slice(&self.parts[from..]);
        let len = (self.parts.len() - from) as u32;
        self.parts.truncate(from);
        Range { start, len }
    }

    fn take_path(&mut self, from: usize) -> Range {
        let start = self.ast.paths.len() as u32;
        self.ast.paths.extend_from_slice(&self.path[from..]);
        let len = (self.path.len() - from) as u32;
        self.path.truncate(from);
        Range { start, len }
    }

    /// Fails if the lexer failed at the current token. NIX: a rule that ends in an expression is complete only when the
    /// next token was read, so the lexer's error comes before those of the rule's own checks.
    #[inline]
    fn lexed_so_far(&mut self) -> Parsed<()> {
        if self.kind() == Kind::Failed { self.unexpected() } else { Ok(()) }
    }

    /// The current token does not fit.
    #[cold]
    fn unexpected<T>(&mut self) -> Parsed<T> {
        if self.kind() == Kind::Failed
            && let Some(error) = self.lexical.take()
        {
            return Err(Box::new(error));
        }
        let (index, message) = expected::syntax_error(&self.tokens);
        debug_assert_eq!(index, self.at, "parser and automaton disagree: {message}");
        let token = self.tokens[index];
        let at = if token.kind == Kind::Eof { token.end } else { token.start };
        self.fail(self.file.pos(at), message)
    }

    #[cold]
    fn fail<T>(&self, pos: Pos, message: impl Into<Vec<u8>>) -> Parsed<T> {
        Err(Box::new(ParseError::new(pos, message)))
    }

    /// Runs a rule one level deeper, on a fresh piece of stack when the current one runs low.
    #[inline]
    fn deeper<T>(&mut self, rule: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        /// Stack that must be left for the levels between two looks at it.
        const RED_ZONE: usize = 384 << 10;
        const PIECE: usize = 2 << 20;
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("expression is nested more than {MAX_NESTING} levels deep");
            return self.fail(self.pos(self.token()), message);
        }
        let result = if self.depth.is_multiple_of(8) {
            stacker::maybe_grow(RED_ZONE, PIECE, || rule(self))
        } else {
            rule(self)
        };
        self.depth -= 1;
        result
    }

    /// Applies a lint to the place `pos`.
    fn lint(&mut self, level: Lint, pos: Pos, setting: &str, message: impl FnOnce(bool) -> Vec<u8>) -> Parsed<()> {
        if level == Lint::Ignore {
            return Ok(());
        }
        let mut message = message(level == Lint::Fatal);
        message.extend_from_slice(format!(" ({setting})").as_bytes());
        if level == Lint::Fatal {
            return self.fail(pos, message);
        }
        self.ast.warnings.push(crate::ast::Warning { pos, message });
        Ok(())
    }

    fn new_attrs(&mut self, pos: Pos) -> crate::ast::AttrsId {
        let id = crate::ast::AttrsId(self.ast.attrs.len() as u32);
        let none = Range::default();
        self.ast.attrs.push(Attrs { recursive: false, pos, defs: none, sources: none, dynamic: none });
        self.sets.open();
        id
    }
}
