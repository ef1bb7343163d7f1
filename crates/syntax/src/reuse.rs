//! The memory of trees, from one text to the next: called by the parser and by whoever is done with a tree.

use crate::ast::{Ast, Expr, ExprId, Text};
use firn_source::{SourceFile, SourceText};

/// A set or `let` with as many definitions has values whose code is made later, from the tree.
pub const MANY: usize = 64;

/// A tree with more nodes than this is not kept for the next text: few texts are as large.
pub(crate) const LARGE: usize = 1 << 15;

impl Ast {
    /// A tree without nodes.
    pub(crate) fn empty(file: &'static SourceFile) -> Ast {
        Ast {
            file,
            text: SourceText::default(),
            base_path: Vec::new(),
            root: ExprId(0),
            nodes: Vec::new(),
            ids: Vec::new(),
            paths: Vec::new(),
            parts: Vec::new(),
            formals: Vec::new(),
            lambdas: Vec::new(),
            attrs: Vec::new(),
            attr_defs: Vec::new(),
            sources: Vec::new(),
            dynamic: Vec::new(),
            owned: Vec::new(),
            warnings: Vec::new(),
            names_home: false,
            guarded: None,
            bound: 0,
            leaves: Vec::new(),
            watched_from: 0,
            root_watched: None,
        }
    }

    /// The tree without its nodes, the room for them kept.
    pub(crate) fn cleared(mut self) -> Ast {
        let Ast { nodes, ids, paths, parts, formals, lambdas, attrs, attr_defs, sources, dynamic, .. } =
            &mut self;
        nodes.clear();
        ids.clear();
        paths.clear();
        parts.clear();
        formals.clear();
        lambdas.clear();
        attrs.clear();
        attr_defs.clear();
        sources.clear();
        dynamic.clear();
        self.text = SourceText::default();
        self.base_path.clear();
        self.owned.clear();
        self.warnings.clear();
        self.names_home = false;
        self.guarded = None;
        self.bound = 0;
        self.leaves.clear();
        self.watched_from = 0;
        self.root_watched = None;
        self
    }

    /// The tree without spare room, if code may keep it: if a set or `let` of it has [many](MANY) definitions.
    // PERF: the room is that of the largest tree before it.
    pub fn compact(mut self) -> Ast {
        if self.attrs.iter().any(|set| set.defs.len() >= MANY) {
            self.keep_literals();
            self.nodes.shrink_to_fit();
            self.ids.shrink_to_fit();
            self.paths.shrink_to_fit();
            self.parts.shrink_to_fit();
            self.formals.shrink_to_fit();
            self.lambdas.shrink_to_fit();
            self.attrs.shrink_to_fit();
            self.attr_defs.shrink_to_fit();
            self.sources.shrink_to_fit();
            self.dynamic.shrink_to_fit();
            self.owned.shrink_to_fit();
        }
        self
    }

    /// Lets the text go: of it the tree needs what its literals say.
    fn keep_literals(&mut self) {
        let source = std::mem::take(&mut self.text);
        let mut literals = Vec::new();
        for node in &mut self.nodes {
            if let Expr::String(text) | Expr::Path(text) = node
                && text.start & Text::OWNED == 0
            {
                let bytes = &source[text.start as usize..(text.start + text.len) as usize];
                text.start = literals.len() as u32;
                literals.extend_from_slice(bytes);
            }
        }
        literals.shrink_to_fit();
        self.text = SourceText::new(literals);
    }

    /// Gives the tree's memory to the next text that this thread parses.
    // PERF: growing a dozen vectors per file was an eighth of `--parse`.
    pub fn recycle(self) {
        crate::parse::recycle(self);
    }
}
