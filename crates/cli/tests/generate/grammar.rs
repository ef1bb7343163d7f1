//! Typed-ish random programs: every term is made for a type, so that most programs evaluate; now and then a term fails.
//!
//! What differs between Nix 2.8 (the oracle) and 2.35 is kept out: integers stay far from overflow, no float reaches
//! JSON, one side of `//` cannot fail, functions handed to builtins are literal, no list occurs twice in a value.

use super::choices::Choices;

/// The types that terms are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An integer.
    Int,
    /// A Boolean.
    Bool,
    /// A string.
    Str,
    /// A list of integers.
    Ints,
    /// A list of strings.
    Strs,
    /// A set of integers with some of the names in [`NAMES`].
    Set,
}

/// The attribute names in use. Programs run below a set that names them all in this order, so that their order does not
/// depend on the program.
pub const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

pub(super) const TYPES: [Type; 6] = [Type::Int, Type::Bool, Type::Str, Type::Ints, Type::Strs, Type::Set];

/// A program under construction.
pub struct Maker {
    pub(super) choices: Choices,
    fuel: usize,
    scope: Vec<(String, Type)>,
    fresh: usize,
}

/// The program that `choices` describe, and the choices it used.
pub fn program(choices: Choices) -> (String, Vec<u32>) {
    let mut maker = Maker { choices, fuel: 60, scope: Vec::new(), fresh: 0 };
    let text = match maker.choices.below(7) {
        6 => {
            let parts: Vec<String> =
                TYPES.iter().enumerate().map(|(i, ty)| format!("r{i} = {};", maker.term(*ty))).collect();
            format!("{{ {} }}", parts.join(" "))
        }
        index => maker.term(TYPES[index]),
    };
    (text, maker.choices.used())
}

impl Maker {
    /// A term of type `ty`, in parentheses where needed.
    pub(super) fn term(&mut self, ty: Type) -> String {
        if self.fuel == 0 {
            return self.leaf(ty);
        }
        self.fuel -= 1;
        match self.choices.below(10) {
            0 | 1 => self.leaf(ty),
            2..=6 => self.operation(ty),
            _ => self.form(ty),
        }
    }

    /// A variable of the type if there is one, else a literal.
    fn leaf(&mut self, ty: Type) -> String {
        let known: Vec<String> = self.scope.iter().filter(|(_, of)| *of == ty).map(|(name, _)| name.clone()).collect();
        if !known.is_empty() && self.choices.below(3) != 0 {
            let index = self.choices.below(known.len());
            return known[known.len() - 1 - index].clone();
        }
        self.literal(ty)
    }

    /// Runs `make` with `name` in scope, lexically innermost.
    pub(super) fn with_variable<R>(&mut self, name: &str, ty: Type, make: impl FnOnce(&mut Self) -> R) -> R {
        self.scope.push((name.to_owned(), ty));
        let made = make(self);
        self.scope.pop();
        made
    }

    /// A name that nothing else has; now and then one that shadows.
    pub(super) fn name(&mut self) -> String {
        if let Some((name, _)) = self.scope.last().filter(|_| self.fresh % 7 == 6) {
            let name = name.clone();
            // The shadowed variable is out of reach: forget its type.
            self.scope.retain(|(known, _)| *known != name);
            self.fresh += 1;
            return name;
        }
        self.fresh += 1;
        format!("v{}", self.fresh)
    }

    pub(super) fn any_type(&mut self) -> Type {
        TYPES[self.choices.below(TYPES.len())]
    }

    /// A form that any type can take: binding, choice, call, selection, failure.
    fn form(&mut self, ty: Type) -> String {
        match self.choices.below(16) {
            0 => self.let_in(ty),
            1 => format!("(if {} then {} else {})", self.term(Type::Bool), self.term(ty), self.term(ty)),
            2 => self.call(ty),
            3 => self.pattern_call(ty),
            4 => self.with_set(ty),
            5 => self.recursive_set(ty),
            6 => format!("{{ x = {}; y = {}; }}.x", self.term(ty), self.failure()),
            7 => format!("({{ }}.missing or {})", self.term(ty)),
            8 => self.caught(ty),
            9 => self.bounded_recursion(ty),
            10 => format!("(builtins.elemAt [ {} {} ] {})", self.term(ty), self.term(ty), self.choices.below(2)),
            11 => format!("(builtins.seq {} {})", self.strict_argument(), self.term(ty)),
            12 => format!("({{ __functor = self: arg: {}; }} {})", self.term(ty), self.failure()),
            13 => format!("(assert {}; {})", self.term(Type::Bool), self.term(ty)),
            14 => self.inherited(ty),
            _ if self.choices.once_in(3) => self.failure(),
            _ => self.literal(ty),
        }
    }

    fn strict_argument(&mut self) -> String {
        let ty = self.any_type();
        self.term(ty)
    }

    fn let_in(&mut self, ty: Type) -> String {
        let of = self.any_type();
        let value = self.term(of);
        let name = self.name();
        let body = self.with_variable(&name, of, |maker| maker.term(ty));
        let unused = if self.choices.once_in(4) { format!(" unused = {};", self.failure()) } else { String::new() };
        format!("(let {name} = {value};{unused} in {body})")
    }

    fn call(&mut self, ty: Type) -> String {
        let of = self.any_type();
        let argument = self.term(of);
        let name = self.name();
        let body = self.with_variable(&name, of, |maker| maker.term(ty));
        format!("(({name}: {body}) {argument})")
    }

    fn pattern_call(&mut self, ty: Type) -> String {
        let (first, second) = (self.any_type(), self.any_type());
        let (given, default) = (self.term(first), self.term(second));
        let (p, q) = (self.name(), self.name());
        let (p, q) = if p == q { (p.clone(), format!("{q}x")) } else { (p, q) };
        let body = self.with_variable(&p, first, |maker| maker.with_variable(&q, second, |maker| maker.term(ty)));
        let rest = if self.choices.once_in(3) { (", ...", " more = 1;") } else { ("", "") };
        format!("(({{ {p}, {q} ? {default}{} }}@all: {body}) {{ {p} = {given};{} }})", rest.0, rest.1)
    }

    fn with_set(&mut self, ty: Type) -> String {
        let of = self.any_type();
        let value = self.term(of);
        self.fresh += 1;
        let name = format!("w{}", self.fresh);
        let body = self.with_variable(&name, of, |maker| maker.term(ty));
        format!("(with {{ {name} = {value}; }}; {body})")
    }

    fn recursive_set(&mut self, ty: Type) -> String {
        let of = self.any_type();
        let value = self.term(of);
        let name = self.name();
        let body = self.with_variable(&name, of, |maker| maker.term(ty));
        format!("(rec {{ {name} = {value}; result = {body}; }}).result")
    }

    fn inherited(&mut self, ty: Type) -> String {
        let of = self.any_type();
        let value = self.term(of);
        let name = self.name();
        let body = self.with_variable(&name, of, |maker| maker.term(ty));
        format!("(let inherit ({{ {name} = {value}; }}) {name}; in {body})")
    }

    fn caught(&mut self, ty: Type) -> String {
        let tried = if self.choices.once_in(2) { "(throw \"caught\")".to_owned() } else { self.term(ty) };
        let fallback = self.term(ty);
        format!("(let t = builtins.tryEval {tried}; in if t.success then t.value else {fallback})")
    }

    fn bounded_recursion(&mut self, ty: Type) -> String {
        let (times, start) = (self.choices.below(4), self.term(ty));
        let (go, n, acc) = (self.name() + "go", self.name() + "n", self.name() + "acc");
        let step = self.with_variable(&n, Type::Int, |maker| maker.with_variable(&acc, ty, |maker| maker.term(ty)));
        format!("(let {go} = {n}: {acc}: if {n} <= 0 then {acc} else {go} ({n} - 1) {step}; in {go} {times} {start})")
    }

    /// A term that fails when forced: mostly in a way that `tryEval` catches.
    pub(super) fn failure(&mut self) -> String {
        let failures = [
            "(throw \"t\")",
            "(assert false; 1)",
            "(throw \"u\")",
            "(assert 1 == 2; \"x\")",
            "(1 + \"a\")",
            "(abort \"x\")",
            "({ }.nope)",
            "(1 / 0)",
            "(builtins.head [ ])",
            "(let x = x; in x)",
            "(\"a\" 1)",
        ];
        let index = self.choices.below(16);
        failures[if index < failures.len() { index } else { index % 4 }].to_owned()
    }
}
