//! Literals and operations of each type: the part of the grammar that knows the operators and builtins.

use super::grammar::{Maker, NAMES, Type};

const STRINGS: [&str; 8] =
    ["\"\"", "\"x\"", "\"ab\"", "\"a b\"", "\"é\"", "\"q\\\"\\n\"", "\"1.2\"", "''\n  in\n   dented\n''"];

impl Maker {
    /// A constant of type `ty`.
    pub(super) fn literal(&mut self, ty: Type) -> String {
        match ty {
            Type::Int => match self.choices.below(12) {
                n @ 0..=9 => n.to_string(),
                10 => "(-1)".to_owned(),
                _ => "37".to_owned(),
            },
            Type::Bool => ["true", "false"][self.choices.below(2)].to_owned(),
            Type::Str => STRINGS[self.choices.below(STRINGS.len())].to_owned(),
            Type::Ints => self.list(Type::Int),
            Type::Strs => self.list(Type::Str),
            Type::Set => self.set_literal(),
        }
    }

    fn list(&mut self, of: Type) -> String {
        let elements: Vec<String> = (0..self.choices.below(4)).map(|_| self.term(of)).collect();
        format!("[ {} ]", elements.join(" "))
    }

    /// A set literal; its head cannot fail to evaluate.
    fn set_literal(&mut self) -> String {
        let mut text = String::from("{ ");
        for name in NAMES {
            if self.choices.once_in(2) {
                let value = self.term(Type::Int);
                text += &format!("{name} = {value}; ");
            }
        }
        text + "}"
    }

    fn attribute(&mut self) -> &'static str {
        NAMES[self.choices.below(NAMES.len())]
    }

    /// An operator or builtin that yields `ty`.
    pub(super) fn operation(&mut self, ty: Type) -> String {
        match ty {
            Type::Int => self.int(),
            Type::Bool => self.bool(),
            Type::Str => self.string(),
            Type::Ints => self.ints(),
            Type::Strs => self.strs(),
            Type::Set => self.set(),
        }
    }

    fn int(&mut self) -> String {
        match self.choices.below(14) {
            0 => format!("({} + {})", self.term(Type::Int), self.term(Type::Int)),
            1 => format!("({} - {})", self.term(Type::Int), self.term(Type::Int)),
            // A small factor keeps products far from overflow.
            2 => format!("({} * {})", self.term(Type::Int), self.choices.below(5)),
            3 => format!("({} / {})", self.term(Type::Int), self.choices.below(9) + 1),
            4 => format!("(- {})", self.term(Type::Int)),
            5 => format!("(builtins.stringLength {})", self.term(Type::Str)),
            6 => format!("(builtins.length {})", self.term(Type::Ints)),
            7 => format!("(builtins.foldl' (acc: x: acc - x) {} {})", self.term(Type::Int), self.term(Type::Ints)),
            8 => format!("({}.{} or {})", self.term(Type::Set), self.attribute(), self.term(Type::Int)),
            9 => format!("(builtins.bitAnd {} {})", self.term(Type::Int), self.choices.below(16)),
            10 => format!("(builtins.length (builtins.attrNames {}))", self.term(Type::Set)),
            11 => format!("(builtins.compareVersions {} {})", self.term(Type::Str), self.term(Type::Str)),
            12 if self.choices.once_in(3) => format!("{}.{}", self.term(Type::Set), self.attribute()),
            12 => format!("(builtins.fromJSON (builtins.toJSON {}))", self.term(Type::Int)),
            _ => format!("(builtins.floor ({} * 0.5))", self.term(Type::Int)),
        }
    }

    fn bool(&mut self) -> String {
        let pair = |maker: &mut Self, op: &str| {
            let ty = maker.any_type();
            format!("({} {op} {})", maker.term(ty), maker.term(ty))
        };
        match self.choices.below(14) {
            0 => pair(self, "=="),
            1 => pair(self, "!="),
            2 => format!("({} < {})", self.term(Type::Int), self.term(Type::Int)),
            3 => format!("({} >= {})", self.term(Type::Str), self.term(Type::Str)),
            4 => format!("({} && {})", self.term(Type::Bool), self.term(Type::Bool)),
            5 => format!("({} || {})", self.term(Type::Bool), self.term(Type::Bool)),
            6 => format!("({} -> {})", self.term(Type::Bool), self.term(Type::Bool)),
            7 => format!("(! {})", self.term(Type::Bool)),
            8 => format!("({} ? {})", self.term(Type::Set), self.attribute()),
            9 => format!("(builtins.elem {} {})", self.term(Type::Int), self.term(Type::Ints)),
            10 => format!("(builtins.all (x: x > {}) {})", self.term(Type::Int), self.term(Type::Ints)),
            11 => format!("(builtins.any (x: x == {}) {})", self.term(Type::Str), self.term(Type::Strs)),
            12 => format!("({} <= {})", self.term(Type::Ints), self.term(Type::Ints)),
            _ => {
                let ty = self.any_type();
                format!("(builtins.isString {})", self.term(ty))
            }
        }
    }

    fn string(&mut self) -> String {
        match self.choices.below(13) {
            0 => format!("({} + {})", self.term(Type::Str), self.term(Type::Str)),
            1 => format!("\"<${{{}}}>\"", self.term(Type::Str)),
            2 => format!("(toString {})", self.term(Type::Int)),
            3 => format!(
                "(builtins.substring {} {} {})",
                self.choices.below(4),
                self.choices.below(5),
                self.term(Type::Str)
            ),
            4 => format!("(builtins.concatStringsSep {} {})", self.term(Type::Str), self.term(Type::Strs)),
            5 => format!("(builtins.replaceStrings [ \"a\" \"b\" ] [ \"bb\" \"\" ] {})", self.term(Type::Str)),
            6 => {
                let ty = self.any_type();
                format!("(builtins.toJSON {})", self.term(ty))
            }
            7 => {
                let ty = self.any_type();
                format!("(builtins.typeOf {})", self.term(ty))
            }
            8 => format!("(toString {})", self.term(Type::Strs)),
            9 => format!("''a${{{}}}\n  b''", self.term(Type::Str)),
            10 => format!("(builtins.hashString \"md5\" {})", self.term(Type::Str)),
            11 => format!("\"${{{{ __toString = self: {}; }}}}\"", self.term(Type::Str)),
            _ => format!("(baseNameOf ({} + \"/n\"))", self.term(Type::Str)),
        }
    }

    fn ints(&mut self) -> String {
        match self.choices.below(12) {
            0 => format!("({} ++ {})", self.term(Type::Ints), self.term(Type::Ints)),
            1 => self.mapped(Type::Int),
            2 => format!("(builtins.filter (x: x > {}) {})", self.term(Type::Int), self.term(Type::Ints)),
            3 => {
                let body = self.with_variable("i", Type::Int, |maker| maker.term(Type::Int));
                format!("(builtins.genList (i: {body}) {})", self.choices.below(5))
            }
            4 => format!("(builtins.sort (x: y: x < y) {})", self.term(Type::Ints)),
            5 => format!("(builtins.attrValues {})", self.term(Type::Set)),
            6 => format!("(builtins.concatMap (x: [ x {} ]) {})", self.term(Type::Int), self.term(Type::Ints)),
            7 => format!("(builtins.tail ([ 0 ] ++ {}))", self.term(Type::Ints)),
            8 => format!("(builtins.partition (x: x < {}) {}).right", self.term(Type::Int), self.term(Type::Ints)),
            9 => format!("(builtins.catAttrs \"a\" [ {} {} ])", self.term(Type::Set), self.term(Type::Set)),
            10 => format!("(builtins.concatLists [ {} {} ])", self.term(Type::Ints), self.term(Type::Ints)),
            _ => format!("(map builtins.stringLength {})", self.term(Type::Strs)),
        }
    }

    /// `map` of a function over a list of integers, its body being of type `to`.
    fn mapped(&mut self, to: Type) -> String {
        let name = self.name();
        let body = self.with_variable(&name, Type::Int, |maker| maker.term(to));
        format!("(map ({name}: {body}) {})", self.term(Type::Ints))
    }

    fn strs(&mut self) -> String {
        match self.choices.below(7) {
            0 => format!("({} ++ {})", self.term(Type::Strs), self.term(Type::Strs)),
            1 => format!("(builtins.attrNames {})", self.term(Type::Set)),
            2 => self.mapped(Type::Str),
            3 => format!("(map toString {})", self.term(Type::Ints)),
            4 => format!("(builtins.filter builtins.isString (builtins.split \"[ab]\" {}))", self.term(Type::Str)),
            5 => format!("(builtins.sort builtins.lessThan {})", self.term(Type::Strs)),
            _ => format!("(builtins.splitVersion {})", self.term(Type::Str)),
        }
    }

    fn set(&mut self) -> String {
        match self.choices.below(9) {
            0 => format!("({} // {})", self.set_literal(), self.term(Type::Set)),
            1 => format!("({} // {})", self.term(Type::Set), self.set_literal()),
            2 => {
                format!("(removeAttrs {} [ \"{}\" \"{}\" ])", self.term(Type::Set), self.attribute(), self.attribute())
            }
            3 => {
                let body = self.with_variable("value", Type::Int, |maker| {
                    maker.with_variable("name", Type::Str, |maker| maker.term(Type::Int))
                });
                format!("(builtins.mapAttrs (name: value: {body}) {})", self.term(Type::Set))
            }
            4 => format!("(builtins.intersectAttrs {} {})", self.term(Type::Set), self.term(Type::Set)),
            5 => {
                let (first, second) = (self.attribute(), self.attribute());
                let (one, two) = (self.term(Type::Int), self.term(Type::Int));
                format!(
                    "(builtins.listToAttrs [ {{ name = \"{first}\"; value = {one}; }} {{ name = \"{second}\"; value = {two}; }} ])"
                )
            }
            6 => format!(
                "{{ ${{\"{}\"}} = {}; ${{null}} = {}; }}",
                self.attribute(),
                self.term(Type::Int),
                self.failure()
            ),
            7 => {
                let value = self.term(Type::Int);
                format!("(let a = {value}; in {{ inherit a; b = a; }})")
            }
            _ => format!("(builtins.fromJSON (builtins.toJSON {}))", self.set_literal()),
        }
    }
}
