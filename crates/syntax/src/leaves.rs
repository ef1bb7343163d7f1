//! `Leaves`: a text cut into what it says under each name, where nothing is bound below, and the rest (spec L2.5).
//!
//! Called by whoever learns which of several edits a result rests on (`memo::kept::parts`). A leaf's value is an expression of its own:
//! two texts with the same rest differ in nothing but what their leaves say, and these stand in the same order.

use crate::essence;
use crate::ast::{Ast, Expr, ExprId};
use firn_source::Symbol;

/// A text that is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaves {
    /// The tokens around the leaves.
    pub rest: Vec<u8>,
    /// The tokens of each leaf, in the order of the text.
    pub leaves: Vec<Vec<u8>>,
}

/// Whether a name means a constant, where nobody binds it.
pub(crate) fn is_constant(name: Symbol) -> bool {
    matches!(name.as_bytes(), b"true" | b"false" | b"null")
}

/// Whether what is bound under these names, of which the first and the last are told, is something that a whole package set rests on.
// PERF: as a leaf it would be in what nearly every value rests on, and after an edit of it hardly anything could be taken.
pub(crate) fn is_ground(first: Option<Symbol>, last: Option<Symbol>) -> bool {
    let is_platform =
        |name: Symbol| matches!(name.as_bytes(), b"system" | b"localSystem" | b"crossSystem" | b"hostPlatform" | b"buildPlatform" | b"overlays");
    first.is_some_and(|name| name.as_bytes() == b"nixpkgs") || last.is_some_and(is_platform)
}

impl Ast {
    /// Whether the text gives a constant's name to something else.
    fn binds_constants(&self) -> bool {
        let mut names = self.attr_defs.iter().map(|def| def.name).chain(self.formals.iter().map(|formal| formal.name));
        names.any(is_constant) || self.lambdas.iter().filter_map(|lambda| lambda.arg).any(is_constant)
    }

    /// The text cut into leaves, if it was [parsed](crate::parse_noting_leaves) for that; none if it cannot be.
    pub fn cut(&self) -> Option<Leaves> {
        if self.binds_constants() {
            return None;
        }
        let mut places: Vec<_> = self.leaves.iter().map(|(_, place)| place.start as usize..place.end as usize).collect();
        places.sort_by_key(|place| place.start);
        let (mut rest, mut leaves, mut from) = (Vec::new(), Vec::new(), 0);
        for place in places {
            leaves.push(essence(self.text.get(place.clone())?)?);
            rest.extend_from_slice(self.text.get(from..place.start)?);
            // Something that is an expression, and no leaf's: a leaf is never a variable.
            rest.extend_from_slice(b"leaf ");
            from = place.end;
        }
        rest.extend_from_slice(self.text.get(from..)?);
        Some(Leaves { rest: essence(&rest)?, leaves })
    }

    /// Has whoever evaluates a leaf say so, by its place in the order of the text counted from `from`, which is not 0.
    pub fn watch_leaves(&mut self, from: u32) {
        self.leaves.sort_by_key(|(_, place)| place.start);
        self.watched_from = from;
    }

    /// The number of a leaf that is watched, or 0.
    #[inline]
    pub fn watched(&self, id: ExprId) -> u32 {
        if self.watched_from == 0 {
            return 0;
        }
        let at = self.leaves.iter().position(|(leaf, _)| *leaf == id);
        at.map_or(0, |at| self.watched_from + at as u32)
    }

    /// Has whoever evaluates what the last selection begins from say so.
    pub fn watch_root(&mut self) {
        self.root_watched = self.selected_last();
    }

    /// What the last selection begins from, if that is watched.
    #[inline]
    pub fn root_watched(&self) -> Option<ExprId> {
        self.root_watched
    }

    /// What the text's last selection begins from, through functions, `let`, `with` and `assert`, if it ends with one.
    fn selected_last(&self) -> Option<ExprId> {
        let mut id = self.root;
        loop {
            id = match self.expr(id) {
                Expr::Select { base, default: None, .. } => return Some(base),
                Expr::Lambda(lambda) => self.lambda(lambda).body,
                Expr::Let { body, .. } | Expr::With { body, .. } | Expr::Assert { body, .. } => body,
                _ => return None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Features, Home, parse_noting_leaves};
    use firn_source::{Origin, SourceFile};

    fn cut(text: &str) -> Leaves {
        let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
        let ast = parse_noting_leaves(file, b"/", Home::Pure, Features::default()).expect("it parses");
        ast.cut().expect("it is cut")
    }

    fn shown(text: &str) -> (String, Vec<String>) {
        let Leaves { rest, leaves } = cut(text);
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        (text(&rest), leaves.iter().map(text).collect())
    }

    #[test]
    fn leaves_are_what_is_bound_and_binds_nothing() {
        let (rest, leaves) = shown(
            "{ pkgs, ... }: # why\n { a.b = 1; c = [ 2  3 ]; d = f { e = \"x ${y}\"; g = { }; h = z: 1; i = z; n = true; }; j = let k = 4; in k + 5; ${l} = 6 /* m */; }",
        );
        assert_eq!(leaves, ["1", "[ 2 3 ]", "\"x ${y}\"", "true", "4", "6"]);
        assert_eq!(
            rest,
            "{ pkgs, ... }: { a.b = leaf ; c = leaf ; d = f { e = leaf ; g = { }; h = z: 1; i = z; n = leaf ; }; j = let k = leaf ; in k + 5; ${l} = leaf ; }"
        );
    }

    #[test]
    fn what_package_sets_are_made_of_is_no_leaf() {
        let (_, leaves) = shown("{ a.system = \"a\"; system.b = 1; nixpkgs.config.c = 2; d.overlays = [ ]; e.nixpkgs = 3; }");
        assert_eq!(leaves, ["1", "3"]);
    }

    #[test]
    fn constants_that_mean_something_else_are_not_cut() {
        for text in ["true: { a = true; }", "{ true, ... }: { a = true; }", "let null = 1; in { a = null; }"] {
            let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
            let ast = parse_noting_leaves(file, b"/", Home::Pure, Features::default()).expect("it parses");
            assert_eq!(ast.cut(), None, "{text}");
        }
    }

    #[test]
    fn what_a_leaf_says_is_not_in_the_rest() {
        let one = cut("{ a = 1; b = [ \"x\" ]; }");
        let other = cut("{\n  # a remark\n  a = 22;\n  b = [ \"x\" ];\n}");
        assert_eq!(one.rest, other.rest);
        assert_eq!(one.leaves[1], other.leaves[1]);
        assert_ne!(one.leaves[0], other.leaves[0]);
        assert_ne!(one.rest, cut("{ a = 1; b = [ \"x\" ]; c = 2; }").rest);
        assert_ne!(one.rest, cut("{ a = x; b = [ \"x\" ]; }").rest, "a variable is no leaf");
    }
}
