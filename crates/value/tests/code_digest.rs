//! L1.3, M5: code digests ignore positions and names of variables, and nothing else.

use firn_ir::{CodeDigests, Globals, lower};
use firn_source::{Origin, SourceFile, Symbol};
use firn_value::{Constants, Value};

struct NoGlobals;

impl Globals<Value> for NoGlobals {
    fn global(&self, _: Symbol) -> Option<Value> {
        None
    }
}

fn digest(text: &str) -> [u8; 32] {
    let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
    let ast = firn_syntax::parse(file, b"/", firn_syntax::Home::Pure, firn_syntax::Features::default()).expect("it parses");
    let program = lower(&ast.into(), &[], &NoGlobals, &mut Constants).expect("it lowers");
    CodeDigests::default().body(&program.body, &|value: Value, hasher| {
        hasher.update(format!("{value:?}").as_bytes());
    })
}

#[test]
fn names_of_variables_comments_and_layout_do_not_matter() {
    for (a, b) in [
        ("x: x", "yy:\n  yy # the same"),
        ("let a = 1; b = a; in b", "let q = 1; p = q; in p"),
        ("x: y: x.foo y", "(u: v: u.foo v)"),
        ("x: with x; foo", "s: with s; foo"),
        ("{ a }: rec { c = a; d = c; }", "{ a }:\n rec { c = a;\n d = c; }"),
    ] {
        assert_eq!(digest(a), digest(b), "{a} and {b}");
    }
}

#[test]
fn everything_that_means_something_matters() {
    let programs = [
        "x: x", "x: y: x", "x: y: y", "x: [ x ]", "x: { a = x; }", "x: { b = x; }", "x: x.a", "x: x.b", "x: x ? a", "x: !x",
        "x: x + 1", "x: x + 2", "x: x - 1", "x: x * 1", "x: x / 1", "x: x < 1", "x: x > 1", "x: x <= 1", "x: x >= 1", "x: x == 1",
        "x: x != 1", "x: x && x", "x: x || x", "x: x -> x", "x: x // x", "x: x ++ x", "x: \"${x}\"", "x: \"a${x}\"", "{ a }: a",
        "{ a, b }: a", "{ a, ... }: a", "{ a ? 1 }: a", "{ a ? 2 }: a", "{ b }: b", "x: with x; a", "x: with x; b",
        "x: if x then 1 else 2", "x: if x then 2 else 1", "x: assert x; 1", "x: x x", "rec { a = b; b = 1; }",
        "rec { a = 1; b = 1; }", "x: x.a or 1", "x: x.a.b", "x: x.${x}", "let a = a; in a", "x: let a = x; in a",
    ];
    for (i, a) in programs.iter().enumerate() {
        for b in &programs[i + 1..] {
            assert_ne!(digest(a), digest(b), "{a} and {b}");
        }
    }
}

#[test]
fn the_numbers_of_symbols_do_not_matter() {
    // Names first seen in another order get other numbers; the code stays the same.
    let before = digest("{ zeta, alpha }: rec { omega = alpha; beta = zeta; }");
    for name in ["unseen-b", "unseen-a"] {
        let _ = Symbol::from(name);
    }
    let one = digest("{ unseen-a, unseen-b }: rec { c = unseen-b; inherit unseen-a; }");
    let other = digest("{ unseen-a, unseen-b }: rec { c = unseen-b; inherit unseen-a; }");
    assert_eq!(one, other);
    assert_eq!(before, digest("{ zeta, alpha }: rec { omega = alpha; beta = zeta; }"));
}
