//! Where nodes say they are, which is where errors will point; and the settings that change what is accepted.

use firn_source::{Origin, Pos, SourceFile, Symbol};
use firn_syntax::ast::{Arith, AttrName, AttrValue, Expr};
use firn_syntax::{Ast, Features, Home, Lint, ParseError, parse};

fn read_with(text: &str, features: Features) -> Result<Ast, ParseError> {
    let file = SourceFile::register(Origin::Expression, text.as_bytes().to_vec());
    parse(file, b"/base", Home::Dir(b"/home"), features)
}

fn read(text: &str) -> Ast {
    read_with(text, Features { pipe_operators: true, ..Features::default() }).expect(text)
}

/// The column of a position, 0 for none.
fn column(pos: Pos) -> u32 {
    pos.resolve().map_or(0, |l| l.column)
}

#[test]
fn nodes_are_where_nix_has_them() {
    for (text, expected) in [
        ("  x", 3),
        ("  (x)", 4),
        (" f x", 2),
        (" (f) x", 2),
        (" (f x) y", 3),
        (" x.y", 2),
        (" (x).y", 2),
        (" x ? y", 2),
        (" a - b", 4),
        ("  -b", 3),
        (" a < b", 4),
        (" a <= b", 4),
        (" a == b", 0),
        (" a && b", 4),
        (" a // b", 4),
        (" a ++ b", 4),
        (" a + b", 4),
        (" !a", 3),
        (" 1", 0),
        (" \"s\"", 0),
        (" \"s${x}\"", 3),
        (" \"${x}\"", 3),
        (" ''s${x}''", 2),
        (" ./a/${x}", 2),
        (" [ x ]", 4),
        (" [ ]", 0),
        (" { }", 2),
        (" rec { }", 2),
        (" let { }", 0),
        (" let x = 1; in x", 0),
        (" x: y", 2),
        (" { x }: y", 2),
        (" x@{ y }: y", 2),
        (" with x; y", 2),
        (" if x then y else z", 2),
        (" assert x; y", 2),
        (" <x>", 2),
        (" __curPos", 2),
        (" a |> f", 4),
        (" a |> f b", 7),
        (" f <| a <| b", 4),
        (" f or", 2),
    ] {
        let ast = read(text);
        assert_eq!(column(ast.pos_of(ast.root())), expected, "{text}");
    }
}

#[test]
fn definitions_are_where_nix_has_them() {
    let ast = read("{ a.b = 1; inherit c; inherit (d) e; ${f}.g = 2; h = x: y: z; }");
    let Expr::Attrs(set) = ast.expr(ast.root()) else { panic!("a set") };
    let attrs = ast.attrs(set);
    let found: Vec<_> =
        ast.attr_defs(attrs.defs).iter().map(|d| (d.name.to_str().into_owned(), column(d.pos))).collect();
    let expected = [("a", 3), ("c", 20), ("e", 35), ("h", 50)];
    assert_eq!(found, expected.map(|(n, c)| (n.to_owned(), c)));
    assert_eq!(ast.attr_defs(attrs.defs)[2].value, AttrValue::InheritedFrom(0));
    assert_eq!(column(ast.inherit_sources(attrs.sources)[0].pos), 32);
    assert_eq!(column(ast.dynamic_defs(attrs.dynamic)[0].pos), 38);
    let AttrValue::Plain(function) = ast.attr_defs(attrs.defs)[3].value else { panic!("a plain definition") };
    let Expr::Lambda(outer) = ast.expr(function) else { panic!("a function") };
    let Expr::Lambda(inner) = ast.expr(ast.lambda(outer).body) else { panic!("a function") };
    assert_eq!(ast.lambda(outer).name, Some(Symbol::from("h")));
    assert_eq!(ast.lambda(inner).name, Some(Symbol::from("h")));
}

#[test]
fn operators_stay_recognisable() {
    let ast = read("a <= b");
    assert!(matches!(ast.expr(ast.root()), Expr::Arith { op: Arith::LessEq, .. }));
    let ast = read("(a - b) c");
    let Expr::Call { fun, args, .. } = ast.expr(ast.root()) else { panic!("a call") };
    assert_eq!(ast.expr(fun), Expr::Var { name: Symbol::from("__sub"), pos: Pos::NONE });
    assert_eq!(args.len(), 3);
    let ast = read("a.${\"b\"}.\"${c}\"");
    let Expr::Select { path, .. } = ast.expr(ast.root()) else { panic!("a selection") };
    assert!(matches!(ast.path(path), [AttrName::Static(_), AttrName::Dynamic(_)]));
}

#[test]
fn lints_warn_or_refuse() {
    let message = |text: &str, features: Features| match read_with(text, features) {
        Ok(ast) => ast.warnings().iter().map(|w| String::from_utf8_lossy(&w.message).into_owned()).collect(),
        Err(error) => format!("refused: {}", String::from_utf8_lossy(&error.message)),
    };
    let url = |url_literals| Features { url_literals, ..Features::default() };
    assert_eq!(message("a:b", url(Lint::Ignore)), "");
    assert_eq!(
        message("a:b", url(Lint::Warn)),
        "URL literals are discouraged. Consider using a string literal \"a:b\" instead (lint-url-literals)"
    );
    assert_eq!(
        message("a:b", url(Lint::Fatal)),
        "refused: URL literals are disallowed. Consider using a string literal \"a:b\" instead (lint-url-literals)"
    );
    let short = Features { short_path_literals: Lint::Fatal, ..Features::default() };
    assert_eq!(message("./a/b", short), "");
    assert_eq!(
        message("a/b", short),
        "refused: relative path literal 'a/b' should be prefixed with '.' for clarity: './a/b' \
         (lint-short-path-literals)"
    );
    let absolute = Features { absolute_path_literals: Lint::Warn, ..Features::default() };
    let advice = "by a string, relative path, or parameter (lint-absolute-path-literals)";
    let start = "path literals are not portable. Consider replacing path literal";
    assert_eq!(message("/a", absolute), format!("absolute {start} '/a' {advice}"));
    assert_eq!(message("~/a", absolute), format!("home {start} '~/a' {advice}"));
}

#[test]
fn home_is_refused_when_pure() {
    let file = SourceFile::register(Origin::Expression, b"[ ~/a/b ]".to_vec());
    let error = parse(file, b"/", Home::Pure, Features::default()).expect_err("pure");
    assert_eq!(error.message, b"the path '~/a/b' can not be resolved in pure mode");
    assert_eq!(error.pos, Pos::NONE);
}
