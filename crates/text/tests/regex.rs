//! Regular expressions: own cases, limits, and random patterns against Nix.

mod oracle;

use firn_text::regex::{Captures, Error, Regex};
use oracle::Random;

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern.as_bytes()).unwrap_or_else(|error| panic!("{pattern}: {error:?}"))
}

fn json_groups(captures: &Captures, text: &str) -> String {
    let groups: Vec<String> = (1..captures.len())
        .map(|index| captures.group(index).map_or("null".into(), |range| format!("{:?}", &text[range])))
        .collect();
    format!("[{}]", groups.join(","))
}

fn match_json(pattern: &str, text: &str) -> String {
    compile(pattern).full_match(text.as_bytes()).map_or("null".into(), |found| json_groups(&found, text))
}

fn split_json(pattern: &str, text: &str) -> String {
    let mut parts = Vec::new();
    let mut from = 0;
    compile(pattern).for_each_match(text.as_bytes(), |found| {
        parts.push(format!("{:?}", &text[from..found.span().start]));
        parts.push(json_groups(found, text));
        from = found.span().end;
    });
    parts.push(format!("{:?}", &text[from..]));
    format!("[{}]", parts.join(","))
}

#[test]
fn whole_matches() {
    for (pattern, text, expected) in [
        ("a.c", "a\nc", "[]"),
        ("abc", "abcd", "null"),
        ("(a|ab)(c|bcd)(d*)", "abcd", r#"["a","bcd",""]"#),
        ("(a*)*", "aa", r#"[""]"#),
        ("(a*)+", "aa", r#"[""]"#),
        ("(a){0}b", "b", "[null]"),
        ("(x)?(y)?", "y", r#"[null,"y"]"#),
        ("^a$", "a", "[]"),
        ("", "", "[]"),
        ("a|", "", "[]"),
        ("[]a-]+", "]-a", "[]"),
        ("[[:upper:][:digit:]]+", "A1", "[]"),
        ("[[=a=]]", "A", "[]"),
        ("a{2,3}", "aaaa", "null"),
    ] {
        assert_eq!(match_json(pattern, text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn splits() {
    for (pattern, text, expected) in [
        (",", "a,b", r#"["a",[],"b"]"#),
        ("", "ab", r#"["",[],"a",[],"b",[],""]"#),
        ("b*", "abb", r#"["",[],"a",[],"",[],""]"#),
        ("^a", "aa", r#"["",[],"a"]"#),
        ("a|ab|abc", "xabcx", r#"["x",[],"x"]"#),
        ("(a)|(b)", "ab", r#"["",["a",null],"",[null,"b"],""]"#),
    ] {
        assert_eq!(split_json(pattern, text), expected, "{pattern} on {text:?}");
    }
}

#[test]
fn refused() {
    for pattern in ["(", ")", "a{2,1}", "a{,2}", "*a", "^*", "[a", r"\d", r"(a)\1", "[[:x:]]", "[z-a]", "a\\", "{1}"] {
        assert_eq!(Regex::new(pattern.as_bytes()).err(), Some(Error::Invalid), "{pattern}");
    }
    assert_eq!(Regex::new(b"a{100000}").err(), Some(Error::TooLarge));
    assert_eq!(Error::TooLarge.message(b"x"), b"memory limit exceeded by regular expression 'x'");
    assert_eq!(Error::Invalid.message(b"("), b"invalid regular expression '('");
}

#[test]
fn bytes_are_not_characters() {
    let found = compile("(.)(.)").full_match("é".as_bytes()).expect("two bytes");
    assert_eq!(found.group(2), Some(1..2));
    assert!(compile("[^a]").is_full_match(b"\xff"));
    assert!(!compile(".").is_full_match(b"\0"));
}

#[test]
fn deep_nesting_needs_no_stack() {
    let depth = 20_000;
    let pattern = "(".repeat(depth) + "a" + &")".repeat(depth);
    assert_eq!(compile(&pattern).groups(), depth);
}

/// Longer than a segment of the machine, so that the walk passes parts of the text again.
#[test]
fn long_texts() {
    let mut text = vec![b'a'; 3_000_000];
    text.extend(b"bc");
    text.extend(vec![b'd'; 1_500_000]);
    let found = compile("(a*)(b)c(d|e)*").full_match(&text).expect("matches");
    assert_eq!(found.group(1), Some(0..3_000_000));
    assert_eq!(found.group(2), Some(3_000_000..3_000_001));
    assert_eq!(found.group(3), Some(text.len() - 1..text.len()));
    let mut spans = Vec::new();
    compile("ab|cd{3}|d$").for_each_match(&text, |found| spans.push(found.span()));
    assert_eq!(spans, [2_999_999..3_000_001, 3_000_001..3_000_005, text.len() - 1..text.len()]);
}

/// A pattern whose automaton outgrows its limit, on a text that visits all of it.
#[test]
fn many_states() {
    let mut random = Random(99);
    let text: Vec<u8> = (0..150_000).map(|_| b"ab"[random.below(2)]).collect();
    let regex = compile("(a|b){14}a(a|b)*(b)?");
    assert_eq!(regex.full_match(&text).is_some(), text[14] == b'a');
    let mut found = 0;
    compile("(a)(a|b){12}(b)").for_each_match(&text, |captures| {
        let span = captures.span();
        assert_eq!((text[span.start], text[span.end - 1], span.len()), (b'a', b'b', 14));
        found += 1;
    });
    assert!(found > 1000);
}

#[test]
fn shared_between_threads() {
    let regex = compile("([a-z]+)([0-9]*)");
    std::thread::scope(|scope| {
        for number in 0..4 {
            let regex = &regex;
            scope.spawn(move || {
                let text = format!("thread{number}");
                let found = regex.full_match(text.as_bytes()).expect("matches");
                assert_eq!(found.group(2), Some(6..7));
            });
        }
    });
}

/// A random pattern with few enough repetitions for libstdc++ to come back.
fn pattern(random: &mut Random, depth: usize, budget: &mut usize) -> String {
    let mut out = String::new();
    for alternative in 0..[1, 1, 1, 2, 2, 3][random.below(6)] {
        if alternative > 0 {
            out.push('|');
        }
        for _ in 0..[0, 1, 1, 1, 2, 2, 3][random.below(7)] {
            match random.below(20) {
                0..=6 if depth > 0 => out += &format!("({})", pattern(random, depth - 1, budget)),
                7 => out.push('.'),
                8 => out += random.pick(&["[ab]", "[^a]", "[[:alpha:]]", "[b-c]"]),
                9 => {
                    out += random.pick(&["^", "$"]);
                    continue;
                }
                _ => out += random.pick(&["a", "a", "b", "c"]),
            }
            if *budget > 0 && random.below(2) == 0 {
                *budget -= 1;
                out += random.pick(&["*", "*", "+", "?", "?", "{0}", "{2}", "{0,2}", "{1,}", "{1,3}"]);
            }
        }
    }
    out
}

#[test]
fn random_patterns_as_in_nix() {
    let mut random = Random(0x5eed_1234_9876);
    for _ in 0..2 {
        let cases: Vec<(String, String)> = (0..2000)
            .map(|_| {
                let pattern = pattern(&mut random, 2, &mut 4);
                let text = (0..random.below(8)).map(|_| random.pick(&["a", "a", "b", "c"])).collect();
                (pattern, text)
            })
            .collect();
        let list: String =
            cases.iter().map(|(re, text)| format!("{{ re = {re:?}; s = {text:?}; }}\n").replace('$', "\\$")).collect();
        let expression = format!("map (c: [ c.re (builtins.match c.re c.s) (builtins.split c.re c.s) ]) [ {list} ]");
        let Some(nix) = oracle::eval_json(&expression) else { return };
        let ours: Vec<String> = cases
            .iter()
            .map(|(re, text)| format!("[{re:?},{},{}]", match_json(re, text), split_json(re, text)))
            .collect();
        oracle::assert_same(&format!("[{}]", ours.join(",")), &nix);
    }
}
