//! `Apart`: texts parsed before anybody imports them, by a thread of its own, without that being noticeable (decision 0021).
//!
//! 1. Which symbol a name is depends on which name was met first, and sets are gone through in the order of symbols. So nothing here makes a
//!    symbol: names have numbers in the order in which their text has them first, and the tree holds these.
//! 2. Positions count through all texts of the process. Those of such a tree are in a text that [stands for all](SourceFile::unplaced).
//! 3. [`Unplaced::place`], called by who imports the text, makes symbols of the names in that order and moves the positions. What comes of it
//!    is what parsing it there and then would have made.
//! 4. A text of which anything is to be said (an error, a warning), or that names the home directory, has no such tree.

use crate::ast::{Ast, AttrDef, AttrName, Attrs, DynamicDef, Expr, Formal, InheritSource, Lambda, Part};
use crate::names::Names;
use crate::parse::{Features, parse_apart};
use firn_source::{Pos, SourceFile, SourceText, Symbol};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

/// Parses texts whose trees are placed later, by another thread.
#[derive(Default)]
pub struct Apart {
    lexicon: Arc<Mutex<Lexicon>>,
    /// Names that the lexicon has.
    told: usize,
    met: Met,
    spare: Names,
}

/// The names of all texts that were parsed apart, by number, and the symbols of those that somebody met.
// PERF: most names of a text are those of texts before it; looking up their bytes took as long as all else that is done to place a tree.
#[derive(Default)]
struct Lexicon {
    names: Vec<&'static [u8]>,
    symbols: Vec<Option<Symbol>>,
    is_begun: bool,
}

/// The names of all texts, and which of them the text has that is being parsed.
#[derive(Default)]
pub(crate) struct Met {
    names: Vec<&'static [u8]>,
    numbers: HashMap<&'static [u8], u32, FxBuildHasher>,
    /// Numbers of names, in the order in which the text has them first.
    here: Vec<u32>,
}

impl Met {
    /// The number, among the names of the text, of one that it has not had yet.
    pub(crate) fn meet(&mut self, name: &[u8]) -> Symbol {
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None => {
                let (name, number): (&'static [u8], _) = (Box::leak(name.into()), self.names.len() as u32);
                self.names.push(name);
                self.numbers.insert(name, number);
                number
            }
        };
        self.here.push(number);
        Symbol::of_id(self.here.len() as u32 - 1)
    }

    /// The name that has a number among those of the text.
    pub(crate) fn name(&self, symbol: Symbol) -> &'static [u8] {
        self.names[self.here[symbol.id() as usize] as usize]
    }
}

/// The tree of a text that nobody has registered yet.
pub struct Unplaced {
    ast: Ast,
    /// Its names, in the order in which it has them first.
    names: Box<[u32]>,
    lexicon: Arc<Mutex<Lexicon>>,
}

impl Apart {
    /// The tree of a text, as [`parse`](crate::parse) makes it where there is no home directory; none if anything is to be said of it.
    pub fn parse(&mut self, text: SourceText, features: Features) -> Option<Unplaced> {
        self.met.here.clear();
        let names = Names::apart(std::mem::take(&mut self.spare), std::mem::take(&mut self.met));
        let (ast, mut names) = parse_apart(text, features, names);
        self.met = names.take_apart();
        self.spare = names;
        let ast = ast.filter(|ast| ast.warnings.is_empty())?;
        if let Some(more) = self.met.names.get(self.told..).filter(|more| !more.is_empty()) {
            let mut lexicon = self.lexicon.lock().unwrap_or_else(PoisonError::into_inner);
            lexicon.names.extend_from_slice(more);
            lexicon.symbols.resize(self.met.names.len(), None);
            self.told = self.met.names.len();
        }
        Some(Unplaced { ast: ast.without_room(), names: self.met.here[..].into(), lexicon: self.lexicon.clone() })
    }
}

impl Unplaced {
    /// The text that it is of.
    pub fn text(&self) -> &SourceText {
        &self.ast.text
    }

    /// About how many bytes it takes, its text included.
    pub fn weight(&self) -> usize {
        let Ast { nodes, ids, paths, attr_defs, .. } = &self.ast;
        self.ast.text.len() + size_of_val(&nodes[..]) + size_of_val(&ids[..]) + 2 * size_of_val(&paths[..]) + 2 * size_of_val(&attr_defs[..])
    }

    /// The tree that parsing the text would make now: `file` is the text, registered, and relative paths start from `base_path`.
    pub fn place(self, file: &'static SourceFile, base_path: &[u8]) -> Ast {
        let symbols = self.symbols();
        let mut ast = self.ast;
        ast.file = file;
        crate::path::append_canonical(&mut ast.base_path, 0, base_path);
        ast.translate(|name| symbols[name.id() as usize], SourceFile::unplaced().pos(0), file.pos(0));
        ast
    }

    fn symbols(&self) -> Vec<Symbol> {
        let mut lexicon = self.lexicon.lock().unwrap_or_else(PoisonError::into_inner);
        let Lexicon { names, symbols, is_begun } = &mut *lexicon;
        if !std::mem::replace(is_begun, true) {
            // As every thread does that parses its first text.
            Symbol::intern(b"");
        }
        let symbol = |&number: &u32| *symbols[number as usize].get_or_insert_with(|| Symbol::intern(names[number as usize]));
        self.names.iter().map(symbol).collect()
    }
}

impl Ast {
    /// The same tree, in memory of its own that has room for nothing else; this thread parses the next text into what it was in.
    fn without_room(mut self) -> Ast {
        let mut exact = Ast::empty(self.file);
        exact.text = std::mem::take(&mut self.text);
        exact.root = self.root;
        exact.nodes = self.nodes[..].into();
        exact.ids = self.ids[..].into();
        exact.paths = self.paths[..].into();
        exact.parts = self.parts[..].into();
        exact.formals = self.formals[..].into();
        exact.lambdas = self.lambdas[..].into();
        exact.attrs = self.attrs[..].into();
        exact.attr_defs = self.attr_defs[..].into();
        exact.sources = self.sources[..].into();
        exact.dynamic = self.dynamic[..].into();
        exact.owned = self.owned[..].into();
        self.recycle();
        exact
    }

    /// Gives every name its symbol, and has every position count from `to` instead of `from`.
    fn translate(&mut self, symbol: impl Fn(Symbol) -> Symbol, from: Pos, to: Pos) {
        let move_to = |pos: &mut Pos| *pos = pos.moved(from, to);
        let name_it = |name: &mut Symbol| *name = symbol(*name);
        let Ast { nodes, paths, parts, formals, lambdas, attrs, attr_defs, sources, dynamic, .. } = self;
        for node in nodes {
            match node {
                Expr::Var { name, pos } => {
                    name_it(name);
                    move_to(pos);
                }
                Expr::Select { pos, .. }
                | Expr::Call { pos, .. }
                | Expr::Arith { pos, .. }
                | Expr::Binary { pos, .. }
                | Expr::With { pos, .. }
                | Expr::If { pos, .. }
                | Expr::Assert { pos, .. }
                | Expr::Concat { pos, .. }
                | Expr::CurPos(pos) => move_to(pos),
                Expr::Int(_)
                | Expr::Float(_)
                | Expr::String(_)
                | Expr::Path(_)
                | Expr::HasAttr { .. }
                | Expr::Attrs(_)
                | Expr::List(_)
                | Expr::Lambda(_)
                | Expr::Not(_)
                | Expr::Let { .. } => {}
            }
        }
        for name in paths {
            match name {
                AttrName::Static(name) => name_it(name),
                AttrName::Dynamic(_) => {}
            }
        }
        for Part { expr: _, pos } in parts {
            move_to(pos);
        }
        for Formal { name, pos, default: _ } in formals {
            name_it(name);
            move_to(pos);
        }
        for Lambda { pos, name, arg, formals: _, body: _ } in lambdas {
            move_to(pos);
            name.iter_mut().chain(arg).for_each(name_it);
        }
        for Attrs { recursive: _, pos, defs: _, sources: _, dynamic: _ } in attrs {
            move_to(pos);
        }
        for AttrDef { name, pos, value: _ } in attr_defs {
            name_it(name);
            move_to(pos);
        }
        for InheritSource { expr: _, pos } in sources {
            move_to(pos);
        }
        for DynamicDef { name: _, value: _, pos } in dynamic {
            move_to(pos);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Home, parse};
    use firn_source::Origin;

    const TEXTS: [&str; 6] = [
        "{ a-b, c ? a-b, ... }@all: with all; rec { inherit a-b; inherit (c) x \"y z\"; ${c}.d = 1 + -x; e.f = <np> ./g ~/h; e.i = __curPos; }",
        "let a-name-that-is-longer-than-sixteen-1 = 1; a-name-that-is-longer-than-sixteen-2 = a-name-that-is-longer-than-sixteen-1; in [ a-name-that-is-longer-than-sixteen-2 ]",
        "f: x: if f ? x.y then assert x; { \"${f}\" = ''a ${x} b''; \"q\\n\" = x.y or ./z/${x}; } else !x && f x (g: g) || x < 1 |> f",
        "{ zeta = 1; alpha = zeta: alpha; }",
        "{ alpha, zeta }: alpha // zeta ++ [ omega ] == (let { body = 1; })",
        "",
    ];

    fn features() -> Features {
        Features { pipe_operators: true, ..Features::default() }
    }

    fn parsed(text: &str) -> Option<Ast> {
        let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
        parse(file, b"/base", Home::Pure, features()).ok().filter(|ast| ast.warnings().is_empty())
    }

    /// All of a tree, with positions as they are in the text.
    pub(crate) fn shown(ast: Ast) -> String {
        let mut ast = ast;
        let (from, to) = (ast.file.pos(0), SourceFile::unplaced().pos(0));
        ast.translate(|name| name, from, to);
        let Ast { root, nodes, ids, paths, parts, formals, lambdas, attrs, attr_defs, sources, dynamic, owned, base_path, .. } = &ast;
        format!("{root:?} {nodes:?} {ids:?} {paths:?} {parts:?} {formals:?} {lambdas:?} {attrs:?} {attr_defs:?} {sources:?} {dynamic:?} {owned:?} {base_path:?}")
    }

    #[test]
    fn a_tree_that_is_placed_is_the_one_that_parsing_makes() {
        let mut apart = Apart::default();
        let trees: Vec<_> = TEXTS.iter().map(|text| apart.parse(SourceText::new(text.as_bytes().to_vec()), features())).collect();
        for (text, tree) in TEXTS.iter().zip(trees).rev() {
            let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
            let placed = tree.map(|tree| shown(tree.place(file, b"/base")));
            assert_eq!(placed, parsed(text).map(shown), "{text}");
        }
    }

    #[test]
    fn names_become_symbols_when_a_tree_is_placed_and_in_the_order_of_the_text() {
        let mut apart = Apart::default();
        let [one, other] = ["apart-1: apart-2: apart-3", "{ apart-3, apart-1, apart-4 }: apart-5.apart-2"]
            .map(|text| apart.parse(SourceText::new(text.as_bytes().to_vec()), features()).expect("it parses"));
        let known = || (1..=5).map(|i| Symbol::find(format!("apart-{i}").as_bytes())).collect::<Vec<_>>();
        assert_eq!(known(), [None; 5]);
        let text = other.text().to_vec();
        other.place(SourceFile::register(Origin::Expression, text), b"/");
        let order = |of: [usize; 5]| of.map(|i| known()[i - 1]).windows(2).all(|pair| pair[0] < pair[1]);
        assert!(order([3, 1, 4, 5, 2]), "{:?}", known());
        let before = known();
        let text = one.text().to_vec();
        one.place(SourceFile::register(Origin::Expression, text), b"/");
        assert_eq!(known(), before);
    }

    #[test]
    fn what_is_to_be_said_of_a_text_is_left_to_who_imports_it() {
        let mut apart = Apart::default();
        for text in ["{ a = 1; a = 2; }", "{ a, a }: 1", "a@{ a }: 1", "{ a.b = 1; a.b.c = 2; }", "~/a", "{", "\"", "a or b"] {
            assert!(apart.parse(SourceText::new(text.as_bytes().to_vec()), features()).is_none() || parsed(text).is_some(), "{text}");
        }
    }
}
