//! Code that is copied for another file is the code that lowering that file gives.

use firn_ir::{CodeDigests, Globals, Literals, Place, Program, Shape, lower, relocate};
use firn_source::{Origin, SourceFile, Symbol};
use firn_syntax::{Features, Home};
use std::fmt::Write;
use std::sync::Arc;

/// A constant.
#[derive(Debug)]
enum Made {
    Int(#[allow(dead_code, reason = "it is printed")] i64),
    Float(#[allow(dead_code, reason = "it is printed")] f64),
    Text(#[allow(dead_code, reason = "it is printed")] String),
    Path(#[allow(dead_code, reason = "it is printed")] String),
    List(#[allow(dead_code, reason = "it is printed")] Vec<&'static Made>),
    Set(&'static Shape, Vec<&'static Made>),
}

#[derive(Default)]
struct Making;

fn kept(made: Made) -> &'static Made {
    Box::leak(Box::new(made))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Literals for Making {
    type Value = &'static Made;

    fn int(&mut self, n: i64) -> &'static Made {
        kept(Made::Int(n))
    }

    fn float(&mut self, x: f64) -> &'static Made {
        kept(Made::Float(x))
    }

    fn string(&mut self, bytes: &[u8]) -> &'static Made {
        kept(Made::Text(text(bytes)))
    }

    fn path(&mut self, path: &[u8]) -> &'static Made {
        kept(Made::Path(text(path)))
    }

    fn list(&mut self, items: &[&'static Made]) -> &'static Made {
        kept(Made::List(items.to_vec()))
    }

    fn attrs(&mut self, shape: &'static Shape, values: &[&'static Made]) -> &'static Made {
        kept(Made::Set(shape, values.to_vec()))
    }

    fn reshaped(&mut self, set: &'static Made, shape: impl FnOnce(&'static Shape) -> &'static Shape) -> &'static Made {
        let Made::Set(old, values) = set else { panic!("{set:?} has no shape") };
        kept(Made::Set(shape(old), values.clone()))
    }

    fn list_again(&mut self, list: &'static Made) -> &'static Made {
        let Made::List(items) = list else { panic!("{list:?} is no list") };
        kept(Made::List(items.clone()))
    }

    fn leaf(&mut self, value: Self::Value, _: u32) -> Self::Value {
        value
    }

    fn strict_args(&self, _: &'static Made) -> (usize, u8) {
        (0, 0)
    }

    fn builtin_in(&self, _: &'static Made, _: Symbol) -> Option<&'static Made> {
        None
    }
}

struct Known;

impl Globals<&'static Made> for Known {
    fn global(&self, name: Symbol) -> Option<&'static Made> {
        matches!(name.as_bytes(), b"true" | b"map" | b"toString" | b"__findFile" | b"__nixPath").then(|| kept(Made::Text(name.to_string())))
    }
}

fn program(file: &'static SourceFile, base: &str, guard: Option<(u32, u32)>) -> &'static Program<&'static Made> {
    let mut ast = firn_syntax::parse(file, base.as_bytes(), Home::Pure, Features::default()).expect("the text is sound");
    if let Some((start, guard)) = guard {
        assert!(ast.guard(start, guard));
    }
    lower(&Arc::new(ast.compact()), &[], &Known, &mut Making).expect("every name has a meaning")
}

/// The code, all of it made, without what ties it to the file.
fn shown(program: &'static Program<&'static Made>) -> String {
    CodeDigests::default().body(&program.body, &|_, _| ());
    let shown = format!("{:?}", program.body);
    let mut pieces = shown.split("Tie(");
    let first = pieces.next().into_iter();
    first.chain(pieces.filter_map(|piece| piece.split_once(')')).map(|(_, rest)| rest)).collect()
}

/// Definitions that make a set large, whose values are made late.
fn many() -> String {
    (0..80).fold(String::new(), |mut text, i| {
        write!(text, "pad{i} = f {i} ./pad{i}; ").expect("a string takes everything");
        text
    })
}

fn texts() -> Vec<String> {
    let forms = [
        "1 + 2.5",
        "[ ./x ../y ../../../../z /full/path a/b ./. ]",
        "{ a = ./x; b = { c = [ { d = ../y; } 1 ]; e = \"s\"; }; f = { }; }",
        "{ a = 1; b.c = 2; b.d = { e = \"text\"; }; }",
        "f: x: ./a/${x} + ./b + \"${./c}/${x}\" + x",
        "x: [ __curPos <nixpkgs> <a/b> ]",
        "x: assert x == ./x && ../y != /full; assert true; x",
        "x: x.${toString ./name} or ./default + (x ? a.${\"b\" + ./c}) + x.a.b or 1 + x.c",
        "{ a, b ? ./b, c ? a + b, d ? { e = ./e; }, ... }@all: x: y: with all; [ a b c d free (if x then y else !x) ]",
        "rec { a = b; b = ./b; inherit (c) d; c = { d = 1; }; ${toString a} = x: x; }",
        "let a = 1; b = [ a ]; inherit ({ c = ./c; }) c; inherit (rec { e = f; f = 1; }) e; in { inherit a b c e; }",
        "with { a = 1; }; with { b = 2; }; x: { inherit a b; c = a - b * a / b < a || b > a -> a <= b; d = [ 1 ] ++ [ ]; }",
        "let __sub = a: b: a; in x: x - 1 >= 2 && x // { } == x",
        "x: map (y: y + x) [ (x 1 2) (x { a = 1; b = x; }) (x (x + 1)) (x x.y) ]",
        "let { body = a; a = ./x; }",
    ];
    let deep = format!("x: {}x{}", "(".repeat(200), " + 1)".repeat(200));
    let mut all: Vec<String> = forms.iter().map(|&form| form.to_owned()).chain([deep]).collect();
    for form in forms {
        all.push(format!("with {{ outer = 1; }}; f: {{ {} value = ({form}); other = f ({form}); late = outer; }}", many()));
        all.push(format!("let f = x: y: x; {} value = f ({form}); in f value pad1", many()));
    }
    all
}

#[test]
fn a_copy_is_what_lowering_gives() {
    for text in texts() {
        let register = || SourceFile::register(Origin::Expression, text.clone().into_bytes());
        let (one, other) = (register(), register());
        for base in ["/else/where", "/", "/one"] {
            let lowered = shown(program(other, base, None));
            for is_made in [false, true] {
                let first = program(one, "/one/dir/of/files", None);
                if is_made {
                    shown(first);
                }
                let copy = relocate::<Making>(first, Place::new(one, other, base.as_bytes(), 0));
                assert_eq!(shown(copy), lowered, "{text} at {base}");
            }
        }
    }
}

#[test]
fn a_copy_has_its_own_guard() {
    let text = format!("f: {{ {} }}", many());
    let register = || SourceFile::register(Origin::Expression, text.clone().into_bytes());
    let (one, other) = (register(), register());
    let first = program(one, "/one", Some((3, 7)));
    let copy = relocate::<Making>(first, Place::new(one, other, b"/other", 9));
    assert_eq!(shown(copy), shown(program(other, "/other", Some((3, 9)))));
}
