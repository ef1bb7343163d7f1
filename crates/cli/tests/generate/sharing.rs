//! Random programs with much to share and much to get wrong: memoised functions called again and again with equal
//! arguments, results full of functions that are compared, thunks that throw, print or look at positions, knots.
//! Untyped: helpers keep most terms from failing, and what fails must fail the same way.

use crate::choices::Choices;

/// What every program can use.
const HELPERS: &str = "memo = builtins.memoise; \
    pos = e: if builtins.isAttrs e then builtins.unsafeGetAttrPos \"a\" e else null; \
    app = f: x: if builtins.isFunction f then f x else f; \
    get = n: e: if builtins.isAttrs e && builtins.hasAttr n e then e.${n} else 0; \
    merge = x: y: if builtins.isAttrs x && builtins.isAttrs y then x // y else x; \
    lst = e: if builtins.isList e then e else [ e ]; \
    len = e: builtins.length (lst e); ";

/// Arguments that calls often share.
const ARGUMENTS: [&str; 13] = [
    "1",
    "2",
    "{ a = 1; }",
    "{ a = 1; b = { c = 2; }; }",
    "[ 1 2 ]",
    "\"s\"",
    "s0",
    "{ a = 1; f = p: p; }",
    "{ }",
    "v0",
    "[ (import PART) ]",
    "{ a = import PART; b = import KNOT; }",
    "(import PART)",
];

struct Maker {
    choices: Choices,
    fuel: usize,
    variables: Vec<String>,
    /// The first memoised function that may be called here.
    callable: usize,
    /// How functions of the other file are named here; empty in that file.
    lib: &'static str,
    fresh: usize,
}

/// A program in files. Where a text names another, it says `LIB`, `KNOT` or `PART`.
pub struct Program {
    /// The program itself.
    pub main: String,
    /// Functions and values of a file that it imports.
    pub lib: String,
    /// What holds results of the functions in `lib`, which import it.
    pub knot: String,
    /// What arguments import: a value, or a function of such.
    pub part: String,
    /// Whether the result is printed strictly.
    pub strict: bool,
    /// The choices it used.
    pub used: Vec<u32>,
}

impl Program {
    /// Its files, of which the first is asked about.
    pub fn files(&self) -> [(&'static str, String); 4] {
        [("main.nix", &self.main), ("lib.nix", &self.lib), ("knot.nix", &self.knot), ("part.nix", &self.part)]
            .map(|(name, text)| (name, text.replace("LIB", "./lib.nix").replace("KNOT", "./knot.nix").replace("PART", "./part.nix")))
    }
}

/// The program that `choices` describe.
pub fn program(choices: Choices) -> Program {
    let mut maker = Maker { choices, fuel: 30, variables: Vec::new(), callable: 4, lib: "", fresh: 0 };
    let known = ["c0", "c1", "k.r0", "k.r1", "k.s"];
    let c0 = maker.with(&["c1", "k.s"], Maker::term);
    let h0 = maker.with(&known, |m| m.function("x", Maker::term));
    let h1 = maker.with(&known, |m| m.function("x", Maker::term));
    let lib = format!(
        "let {HELPERS} in rec {{ c0 = {c0}; c1 = {{ a = {}; g = q: q; }}; h0 = {h0}; h1 = {h1}; k = import KNOT; }}",
        maker.leaf()
    );
    let knot = format!(
        "let l = import LIB; in {{ r0 = l.h0 {}; r1 = l.h1 {}; s = {{ g = q: q; }}; }}",
        maker.plain_argument(),
        maker.plain_argument()
    );
    maker.fuel = 12;
    let part = match maker.choices.below(3) {
        0 => maker.function("x", Maker::term),
        1 => maker.term(),
        _ => format!("{{ a = {}; f = {}; }}", maker.leaf(), maker.function("x", Maker::term)),
    };
    let part = format!("let {HELPERS} l = import LIB; in {part}");
    maker.fuel = 80;
    maker.lib = "l.";
    maker.callable = 1;
    let f0 = maker.function("x", |m| m.term());
    maker.callable = 2;
    let f1 = maker.function("x", |m| m.term());
    maker.callable = 3;
    let f2 = format!("{{ a ? {}, b ? 2, ... }}@args: {}", maker.term(), maker.with(&["a", "b", "args"], Maker::term));
    maker.callable = 4;
    let f3 = maker.function("x", |m| m.function("y", Maker::term));
    maker.callable = 0;
    let known = ["v0", "v1", "v2", "s0", "l.c0", "l.c1", "l.k.r0", "l.k.s"];
    let values: Vec<String> = (0..3).map(|i| format!("v{i} = {};", maker.with(&known, Maker::term))).collect();
    let shown: Vec<String> = (0..4).map(|_| maker.with(&known, Maker::term)).collect();
    let strict = !maker.choices.once_in(3);
    let main = format!(
        "let {HELPERS} l = import LIB; f0 = memo ({f0}); f1 = memo ({f1}); f2 = memo ({f2}); f3 = memo ({f3}); \
         s0 = {{ a = v1; g = q: q; }}; {} in [ {} ]",
        values.join(" "),
        shown.join(" ")
    );
    Program { main, lib, knot, part, strict, used: maker.choices.used() }
}

impl Maker {
    fn with<R>(&mut self, names: &[&str], make: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.variables.len();
        self.variables.extend(names.iter().map(|name| (*name).to_owned()));
        let made = make(self);
        self.variables.truncate(before);
        made
    }

    fn function(&mut self, name: &str, body: impl FnOnce(&mut Self) -> String) -> String {
        let body = self.with(&[name], body);
        format!("{name}: {body}")
    }

    fn number(&mut self) -> usize {
        self.fresh += 1;
        self.fresh
    }

    fn leaf(&mut self) -> String {
        if self.variables.is_empty() || self.choices.below(3) == 0 {
            return self.choices.below(4).to_string();
        }
        let index = self.choices.below(self.variables.len());
        self.variables[index].clone()
    }

    fn argument(&mut self) -> String {
        match self.choices.below(4) {
            0..=1 => {
                let argument = ARGUMENTS[self.choices.below(ARGUMENTS.len())];
                let is_variable = argument == "s0" || argument == "v0";
                if is_variable && self.callable != 0 { "3".to_owned() } else { argument.to_owned() }
            }
            2 => self.leaf(),
            _ => self.term(),
        }
    }

    /// An argument that is the same wherever it stands.
    fn plain_argument(&mut self) -> &'static str {
        let argument = ARGUMENTS[self.choices.below(ARGUMENTS.len())];
        if argument == "s0" || argument == "v0" { "3" } else { argument }
    }

    fn call(&mut self) -> String {
        if !self.lib.is_empty() && self.choices.below(4) == 0 {
            let argument = if self.choices.below(3) == 0 { self.argument() } else { self.plain_argument().to_owned() };
            return format!("({}h{} {argument})", self.lib, self.choices.below(2));
        }
        let functions = 4 - self.callable.min(4);
        if functions == 0 {
            return self.leaf();
        }
        let index = self.callable + self.choices.below(functions);
        let argument = self.argument();
        match index {
            2 => format!("(app (f2 (merge {{ }} {argument})) {})", self.leaf()),
            3 if self.choices.below(2) == 0 => format!("(f3 {argument} {})", self.argument()),
            _ => format!("(f{index} {argument})"),
        }
    }

    fn term(&mut self) -> String {
        if self.fuel == 0 {
            return self.leaf();
        }
        self.fuel -= 1;
        match self.choices.below(24) {
            0 | 1 => self.leaf(),
            2..=6 => self.call(),
            7 => format!("(get \"{}\" {})", ["a", "b", "f"][self.choices.below(3)], self.term()),
            8 | 9 => self.set(),
            10 => format!("[ {} {} ]", self.term(), self.term()),
            11 => {
                let name = format!("p{}", self.number());
                format!("({})", self.function(&name, Maker::term))
            }
            12 => format!("(builtins.trace \"t{}\" {})", self.number(), self.term()),
            13 => format!("(throw \"e{}\")", self.number()),
            14 => format!("(builtins.tryEval {})", self.term()),
            15 => format!("({} == {})", self.term(), self.term()),
            16 => format!("([ {} ] == [ {} ])", self.call(), self.call()),
            17 => format!("(pos {})", self.term()),
            18 => format!("(if {} == {} then {} else {})", self.leaf(), self.leaf(), self.term(), self.term()),
            19 => {
                let name = format!("l{}", self.number());
                let (value, body) = self.with(&[&name], |m| (m.term(), m.term()));
                format!("(let {name} = {value}; in {body})")
            }
            20 => format!("(builtins.seq {} {})", self.term(), self.term()),
            21 => format!("(app {} {})", self.term(), self.argument()),
            22 => format!("(merge {} {})", self.term(), self.term()),
            _ => match self.choices.below(4) {
                0 => format!("(map (m: {}) (lst {}))", self.with(&["m"], Maker::term), self.term()),
                1 => format!("(len {})", self.term()),
                2 => format!("(builtins.typeOf {})", self.term()),
                _ => format!("(builtins.warn \"w{}\" {})", self.number(), self.term()),
            },
        }
    }

    fn set(&mut self) -> String {
        match self.choices.below(3) {
            0 => format!("{{ a = {}; }}", self.term()),
            1 => format!("{{ a = {}; f = z: {}; }}", self.term(), self.with(&["z"], Maker::term)),
            _ => format!("(rec {{ a = {}; b = {}; f = z: z; }})", self.leaf(), self.with(&["a", "f"], Maker::term)),
        }
    }
}
