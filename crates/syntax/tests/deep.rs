//! Depth: nothing overflows the stack, and nothing takes the square of the depth.

use firn_source::{Origin, SourceFile};
use firn_syntax::{Ast, Features, Home, MAX_NESTING, ParseError, parse, print};

fn read(text: String) -> Result<Ast, ParseError> {
    parse(SourceFile::register(Origin::Expression, text.into_bytes()), b"/", Home::Pure, Features::default())
}

fn accepted(text: String) {
    let ast = read(text).expect("deep, but an expression");
    print(&ast, &mut Vec::new());
}

const N: usize = 100_000;

#[test]
fn deep_texts_are_read_and_printed() {
    let around = |open: &str, middle: &str, close: &str| open.repeat(N) + middle + &close.repeat(N);
    accepted(around("(", "1", ")"));
    accepted(around("[", "1", "]"));
    accepted(around("{a=", "1", ";}"));
    accepted(around("x: ", "1", ""));
    accepted(around("!", "1", ""));
    accepted(around("1 -> ", "1", ""));
    accepted(around("1 ++ ", "1", ""));
    accepted(around("", "1", " + 1"));
    accepted(around("", "f", " x"));
    accepted(around("(", "f x", ") [y]"));
    accepted(around("a.b or ", "1", ""));
    accepted(around("if 1 then 2 else ", "1", ""));
    accepted(around("with a;", "1", ""));
    accepted(around("\"${", "1", "}\""));
    accepted(around("let a=", "1", ";in 2"));
    accepted(format!("{{{}}}", (0..N).map(|i| format!("a{i}=1;")).collect::<String>()));
    accepted(format!("{{a{}=1;}}", ".b".repeat(N)));
}

#[test]
fn unclosed_depth_is_an_error() {
    for open in ["(", "[", "{a=", "{", "${", "\"${", "''${", "-", "!", "let a="] {
        assert!(read(open.repeat(N)).is_err(), "{open}");
    }
    let error = read("(".repeat(MAX_NESTING as usize + 1) + "1").expect_err("too deep");
    assert!(error.to_string().contains("nested more than"), "{error}");
}
