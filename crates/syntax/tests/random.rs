//! Random texts: whatever the bytes, parsing ends in a tree or an error; what is printed reads back as itself.

use firn_source::{Origin, SourceFile};
use firn_syntax::{Ast, Features, Home, ParseError, parse, print};

/// A small generator with a fixed start, so that a failure can be run again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

fn read(text: &[u8]) -> Result<Ast, ParseError> {
    let features = Features { pipe_operators: true, ..Features::default() };
    let file = SourceFile::register(Origin::Expression, text.to_vec());
    parse(file, b"/base", Home::Dir(b"/home"), features)
}

fn printed(ast: &Ast) -> Vec<u8> {
    let mut out = Vec::new();
    print(ast, &mut out);
    out
}

const PIECES: &[&str] = &[
    "{", "}", "(", ")", "[", "]", ";", "=", ":", "@", ",", "?", ".", "...", "\"", "''", "${", "if ", "then ", "else ",
    "let ", "in ", "rec ", "inherit ", "with ", "assert ", "or ", "!", "-", "+", "*", "/", "//", "++", "==", "!=", "<",
    ">", "<=", ">=", "->", "&&", "||", "|>", "<|", "1", "1.5", "./a", "~/x", "<a/b>", "a/", "x:y", " ", "\n", "x", "y ",
    "$", "\\", "'", "#", "/*", "*/", "^", "é", "a.b", "\r", "\0", "__curPos", "0", ".", "x ",
];

#[test]
fn any_sequence_of_tokens_ends_in_a_tree_or_an_error() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut accepted = 0;
    for _ in 0..40_000 {
        let len = 1 + random.below(14);
        let text: String = (0..len).map(|_| random.pick(PIECES)).collect();
        if let Ok(ast) = read(text.as_bytes()) {
            accepted += 1;
            printed(&ast);
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn any_bytes_end_in_a_tree_or_an_error() {
    let mut random = Random(42);
    for _ in 0..10_000 {
        let len = random.below(60);
        let text: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        let _ = read(&text);
    }
}

/// A random expression that Nix accepts, without `assert` (which prints without the parentheses it needs).
fn expression(random: &mut Random, depth: usize, out: &mut String) {
    if depth == 0 {
        let atoms = ["x", "y", "1", "2.5", "\"s\"", "\"\"", "''i''", "./p", "/abs/p", "<n>", "__curPos", "{ }", "[ ]"];
        out.push_str(random.pick(&atoms));
        return;
    }
    out.push('(');
    let shape = random.below(14);
    let template = [
        "# #", "# + #", "# - #", "!#", "-#", "# // #", "#.a.\"b c\" or #", "# ? a.${#}", "x: #", "{ a ? #, b, ... }@c: #",
        "if # then # else #", "with #; #", "let a = #; inherit (#) b; in #", "[ # # ]",
    ][shape];
    let sets = ["{ a = #; b.c = #; inherit x; }", "rec { \"d e\" = #; ${#} = #; }", "\"s${#}t${#}\"", "''\n  a\n  ${#}\n  b''"];
    let template = if random.below(4) == 0 { random.pick(&sets) } else { template };
    for byte in template.chars() {
        match byte {
            '#' => expression(random, depth - 1, out),
            other => out.push(other),
        }
    }
    out.push(')');
}

#[test]
fn printed_programs_read_back() {
    let mut random = Random(7);
    for _ in 0..3_000 {
        let mut text = String::new();
        let depth = random.below(5);
        expression(&mut random, depth, &mut text);
        let ast = read(text.as_bytes()).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let first = printed(&ast);
        let again = read(&first).unwrap_or_else(|e| panic!("{}\n{e}", String::from_utf8_lossy(&first)));
        // Sums of strings print flat and read back nested: from then on nothing changes.
        let second = printed(&again);
        let third = read(&second).map(|ast| printed(&ast));
        assert_eq!(third.ok().as_ref(), Some(&second), "{text}");
    }
}

#[test]
fn damaged_programs_end_in_a_tree_or_an_error() {
    let mut random = Random(99);
    for _ in 0..5_000 {
        let mut text = String::new();
        let depth = 1 + random.below(3);
        expression(&mut random, depth, &mut text);
        let mut bytes = text.into_bytes();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = random.next() as u8,
                _ => drop(bytes.splice(at..at, random.pick(PIECES).bytes())),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let _ = read(&bytes);
    }
}
