//! Values of large sets are lowered when they first run: they mean what they mean in a small set.

use firn_eval::{Machine, Settings, Shared, print_ambiguous};
use firn_host::{AbsPath, MemoryHost, MemoryWorld};
use firn_source::Origin;
use std::fmt::Write;
use std::sync::Arc;

fn machine() -> Machine {
    // Tests run on threads, and one of them evaluates on several.
    firn_value::single_threaded(false);
    let mut shared = Shared::new(Settings::default(), Arc::new(MemoryHost::new(MemoryWorld::new())));
    firn_builtins::install(&mut shared);
    Machine::new(Arc::new(shared))
}

/// What an expression gives, or how it fails.
fn answer(text: &str) -> Result<String, String> {
    let machine = machine();
    let value = machine.eval_text(text.as_bytes(), Origin::Expression, &AbsPath::root());
    match value.and_then(|value| machine.force_deep(value).map(|()| value)) {
        Ok(value) => {
            let mut out = Vec::new();
            print_ambiguous(&machine, value, true, &mut out);
            Ok(String::from_utf8_lossy(&out).into_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Definitions that make a set large.
fn many() -> String {
    (0..100).fold(String::new(), |mut text, i| {
        write!(text, "pad{i} = f {i}; ").expect("a string takes everything");
        text
    })
}

const VALUES: &[&str] = &[
    "f x + g.h",
    "let y = x; z = y + x; in [ y z f ]",
    "let inherit (g) h; inherit x; in h + x",
    "with g; h + x",
    "with g; with { k = 3; }; h + k + outer",
    "outer + inner",
    "if x == 1 then (y: y + x) 2 else throw \"no\"",
    "map (y: y + x) [ 1 2 x ]",
    "({ a, b ? a + x, ... }@all: [ a b all.c x ]) { a = 1; c = 2; }",
    "rec { a = b; b = x; c.d = a; }.c.d",
    "{ ${\"a\" + toString x} = x; inherit x; inherit (g) h; }",
    "(let __sub = a: b: a * b * x; in 7 - 3)",
    "(x - 3) * x / 1 < 5 && !(x > 7)",
    "let a = { b = x; }; in a.b or 3 + (a.c or x)",
    "\"${toString x}-${outer}\" + outer",
    "assert x == 1; x",
    "assert x == 2; x",
    "f (f (f x)) + f null",
    "builtins.length [ x ] + (with builtins; length [ x x ])",
    "let n = 70; in (builtins.genList (i: i * x) n)",
    "f undefinedName",
    "let a = undefinedName; in x",
    "(y: { inherit undefinedName; }) 1",
    "with { p = q; }; (rec { q = p; }).q",
    "nested.deep.value",
];

fn forms(value: &str, pads: &str) -> [String; 4] {
    let bound = "f = y: y + 1; x = 1; g = { h = 10; }; nested = { deep = { value = f x; }; };";
    let around = "with { outer = \"o\"; h = 20; }; with { inner = \"i\"; };";
    [
        format!("{around} (rec {{ {bound} {pads} value = {value}; }}).value"),
        format!("{around} let {bound} in {{ {pads} value = {value}; }}.value"),
        format!("{around} let {bound} {pads} value = {value}; in value"),
        format!("{around} (f: x: g: nested: ({{ {pads} value = {value}; }}).value) (y: y + 1) 1 {{ h = 10; }} {{ deep.value = 2; }}"),
    ]
}

#[test]
fn values_of_large_sets_are_those_of_small_ones() {
    let pads = many();
    for value in VALUES {
        for (large, small) in forms(value, &pads).iter().zip(&forms(value, "")) {
            assert_eq!(answer(large), answer(small), "{value}");
        }
    }
}

#[test]
fn an_undefined_name_fails_though_nothing_asks_for_it() {
    let program = format!("let f = y: y; in {{ {} bad = f (y: undefinedName); }}.pad1", many());
    assert_eq!(answer(&program), answer("undefinedName"));
}

#[test]
fn a_large_set_is_the_same_from_all_threads() {
    let machine = machine();
    let text = format!("let f = y: {{ inherit y; z = y * 2; }}; in {{ {} }}", many());
    let set = machine.eval_text(text.as_bytes(), Origin::Expression, &AbsPath::root()).expect("it evaluates");
    let shared = machine.shared.clone();
    let printed: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let run = || {
            let machine = Machine::new(shared.clone());
            machine.force_deep(set).expect("it evaluates");
            let mut out = Vec::new();
            print_ambiguous(&machine, set, true, &mut out);
            out
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(printed.windows(2).all(|pair| pair[0] == pair[1]));
}
