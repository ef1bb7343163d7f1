//! Versions, numbers, names, suggestions, XML: own cases and Nix's answers to random ones.

mod oracle;

use std::cmp::Ordering;

use firn_text::{float, literal, suggest, version, xml};
use oracle::Random;

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn versions_compare() {
    for (left, right, expected) in [
        ("1.0", "2.3", Ordering::Less),
        ("2.3", "2.3", Ordering::Equal),
        ("2.3.1", "2.3a", Ordering::Greater),
        ("2.3pre1", "2.3", Ordering::Less),
        ("2.3pre3", "2.3pre12", Ordering::Less),
        ("2.3-.-1", "2.3.1", Ordering::Equal),
        ("99999999999", "3", Ordering::Less),
        ("007", "7", Ordering::Equal),
    ] {
        assert_eq!(version::compare(left.as_bytes(), right.as_bytes()), expected, "{left} {right}");
        assert_eq!(version::compare(right.as_bytes(), left.as_bytes()), expected.reverse(), "{right} {left}");
    }
}

#[test]
fn drv_names() {
    for (name, expected) in [
        ("nix-0.12pre12876", ("nix", "0.12pre12876")),
        ("apache-httpd-2.0", ("apache-httpd", "2.0")),
        ("a-", ("a-", "")),
        ("a--1", ("a", "-1")),
        ("", ("", "")),
    ] {
        let (base, rest) = version::parse_drv_name(name.as_bytes());
        assert_eq!((base, rest), (expected.0.as_bytes(), expected.1.as_bytes()), "{name}");
    }
}

#[test]
fn versions_as_in_nix() {
    let mut random = Random(77);
    let mut one = || -> String {
        let parts = ["1", "2", "10", "007", "99999999999", "a", "b", "pre", "rc", ".", ".", "-", "_", "+"];
        (0..random.below(7)).map(|_| random.pick(&parts)).collect()
    };
    let cases: Vec<(String, String)> = (0..3000).map(|_| (one(), one())).collect();
    let list: String = cases.iter().map(|(left, right)| format!("{{ a = {left:?}; b = {right:?}; }}\n")).collect();
    let body = "[ (builtins.compareVersions c.a c.b) (builtins.splitVersion c.a) (builtins.parseDrvName c.b) ]";
    let Some(nix) = oracle::eval_json(&format!("map (c: {body}) [ {list} ]")) else { return };
    let ours: Vec<String> = cases
        .iter()
        .map(|(left, right)| {
            let order = version::compare(left.as_bytes(), right.as_bytes()) as i8;
            let parts: Vec<String> = version::components(left.as_bytes())
                .map(|part| format!("{:?}", String::from_utf8_lossy(part)))
                .collect();
            let (name, rest) = version::parse_drv_name(right.as_bytes());
            let (name, rest) = (String::from_utf8_lossy(name), String::from_utf8_lossy(rest));
            format!("[{order},[{}],{{\"name\":{name:?},\"version\":{rest:?}}}]", parts.join(","))
        })
        .collect();
    oracle::assert_same(&format!("[{}]", ours.join(",")), &nix);
}

#[test]
fn floats_print() {
    for (value, general, fixed, json) in [
        (1.0, "1", "1.000000", "1.0"),
        (0.1, "0.1", "0.100000", "0.1"),
        (1e20, "1e+20", "100000000000000000000.000000", "1e+20"),
        (1_234_567.0, "1.23457e+06", "1234567.000000", "1234567.0"),
        (1_234_565.0, "1.23456e+06", "1234565.000000", "1234565.0"),
        (999_999.5, "1e+06", "999999.500000", "999999.5"),
        (0.000_099_999_99, "0.0001", "0.000100", "9.999999e-05"),
        (-0.0, "-0", "-0.000000", "-0.0"),
        (f64::INFINITY, "inf", "inf", "null"),
        (-f64::NAN.abs(), "-nan", "-nan", "null"),
        (5e-324, "4.94066e-324", "0.000000", "5e-324"),
        (1.0 / 3.0, "0.333333", "0.333333", "0.3333333333333333"),
    ] {
        assert_eq!(text(|out| float::write_general(out, value)), general);
        assert_eq!(text(|out| float::write_fixed(out, value)), fixed);
        assert_eq!(text(|out| float::write_json(out, value)), json);
    }
}

#[test]
fn json_floats_read_back() {
    let mut random = Random(4242);
    for _ in 0..200_000 {
        let bits = (random.below(1 << 31) as u64) << 33 ^ (random.below(1 << 31) as u64) << 10 ^ random.0;
        let value = f64::from_bits(bits);
        if value.is_finite() {
            let printed = text(|out| float::write_json(out, value));
            assert_eq!(printed.parse::<f64>().map(f64::to_bits), Ok(bits), "{printed}");
        }
    }
}

#[test]
fn floats_print_as_in_nix() {
    let mut random = Random(31337);
    let literals: Vec<String> = (0..2000)
        .map(|_| {
            let exponent = random.below(600) as i32 - 300;
            let near = random.below(24) as i32 - 12;
            let exponent = if random.below(2) == 0 { exponent } else { near };
            format!("{}.{:06}e{exponent}", 1 + random.below(9), random.below(1_000_000))
        })
        .collect();
    // The list is printed as values, which JSON is not; `toXML` prints floats the same way.
    let expression = format!("map (f: [ (toString f) (builtins.toXML f) ]) [ {} ]", literals.join(" "));
    let Some(nix) = oracle::eval_json(&expression) else { return };
    let ours: Vec<String> = literals
        .iter()
        .map(|literal| {
            let value = float::parse_literal(literal.as_bytes()).expect("in range");
            let (fixed, general) =
                (text(|out| float::write_fixed(out, value)), text(|out| float::write_general(out, value)));
            let document = text(|out| {
                let mut writer = xml::Writer::new(out);
                writer.open("expr", &[]);
                writer.empty("float", &[("value", general.as_bytes())]);
                writer.finish();
            });
            format!("[{fixed:?},{document:?}]")
        })
        .collect();
    oracle::assert_same(&format!("[{}]", ours.join(",")), &nix);
}

#[test]
fn numbers_parse() {
    assert_eq!(float::parse_int(b"9223372036854775807"), Some(i64::MAX));
    assert_eq!(float::parse_int(b"9223372036854775808"), None);
    assert_eq!(float::parse_int(b"-9223372036854775808"), Some(i64::MIN));
    assert_eq!(float::parse_int(b""), None);
    assert_eq!(float::parse_int(b"1a"), None);
    assert_eq!(float::parse_int(b"-"), None);
    assert_eq!(float::parse_literal(b".5e1"), Some(5.0));
    assert_eq!(float::parse_literal(b"1."), Some(1.0));
    assert_eq!(float::parse_literal(b"1.e400"), None);
    assert_eq!(float::parse_literal(b"1.0e-400"), None);
    assert_eq!(float::parse_literal(b"4.0e-320"), None);
    assert_eq!(float::parse_literal(b"0.0e-400"), Some(0.0));
    let exact = format!("{:.1080}", f64::from_bits(1));
    assert_eq!(float::parse_literal(exact.as_bytes()), Some(f64::from_bits(1)));
}

#[test]
fn literals() {
    let quoted = |input: &str| text(|out| literal::write_string(out, input.as_bytes()));
    assert_eq!(quoted("a\"b\\c\n\r\t$x ${y} $"), r#""a\"b\\c\n\r\t$x \${y} $""#);
    let named = |input: &str| text(|out| literal::write_name(out, input.as_bytes()));
    for plain in ["a", "_x", "a-b", "x'", "or", "A1"] {
        assert_eq!(named(plain), plain);
    }
    for needs in ["", "1a", "-a", "'a", "if", "inherit", "a b", "a.b", "é"] {
        assert_eq!(named(needs), format!("{needs:?}"));
    }
    let mut out = Vec::new();
    assert_eq!(literal::write_string_start(&mut out, b"ab${c}", 3), 3);
    assert_eq!(out, br#""ab\$""#);
}

#[test]
fn suggestions() {
    assert_eq!(suggest::distance(b"kitten", b"sitting"), 3);
    assert_eq!(suggest::distance(b"", b"abc"), 3);
    let names: Vec<&[u8]> = vec![b"foooo", b"bar", b"fo", b"gao", b"foo2", b"foo1", b"fool", b"fox"];
    let expected: Vec<&[u8]> = vec![b"fo", b"foo1", b"foo2", b"fool", b"fox"];
    assert_eq!(suggest::nearest(names, b"foo"), expected);
}

#[test]
fn xml_documents() {
    let document = text(|out| {
        let mut writer = xml::Writer::new(out);
        writer.open("expr", &[]);
        writer.empty("string", &[("value", b"<a>&\"\n'")]);
        writer.finish();
    });
    assert_eq!(
        document,
        "<?xml version='1.0' encoding='utf-8'?>\n<expr>\n  <string value=\"&lt;a&gt;&amp;&quot;&#xA;'\" />\n</expr>\n"
    );
}
