//! TOML: values, refusals, messages, and Nix's own reading of the same documents.

mod oracle;

use firn_text::toml::{Table, Value, parse};

fn table(out: &mut String, table: &Table) {
    out.push('{');
    for (index, (name, entry)) in table.entries.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        *out += &format!("{:?}:", String::from_utf8_lossy(name));
        value(out, entry);
    }
    out.push('}');
}

fn value(out: &mut String, of: &Value) {
    match of {
        Value::Boolean(value) => *out += &value.to_string(),
        Value::Integer(value) => *out += &value.to_string(),
        Value::Float(value) => *out += &format!("{value:?}"),
        Value::String(text) => *out += &format!("{:?}", String::from_utf8_lossy(text)),
        Value::Timestamp(text) => *out += &format!("<{text}>"),
        Value::Table(inner) => table(out, inner),
        Value::Array(array) => {
            out.push('[');
            for (index, item) in array.items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                value(out, item);
            }
            out.push(']');
        }
    }
}

fn show(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(root) => {
            let mut out = String::new();
            table(&mut out, &root);
            out
        }
        Err(error) => panic!("{text:?}: {}", String::from_utf8_lossy(error.message())),
    }
}

#[test]
fn values() {
    for (text, expected) in [
        ("", "{}"),
        ("a = 0xdead_beef\nb = 0o17\nc = 0b11\nd = -1_000", r#"{"a":3735928559,"b":15,"c":3,"d":-1000}"#),
        ("a = 1e3\nb = -inf\nc = nan\nd = 6.25", r#"{"a":1000.0,"b":-inf,"c":NaN,"d":6.25}"#),
        (r#"a = "\u00e9\t""#, "{\"a\":\"é\\t\"}"),
        ("a = \"\"\"\nx\\\n   y\"\"\"\"", "{\"a\":\"xy\\\"\"}"),
        ("a = '''\nx\n'y'''''", "{\"a\":\"x\\n'y''\"}"),
        ("a = [1, # one\n 'x', [true],]", r#"{"a":[1,"x",[true]]}"#),
        ("a.b = 1\na.c.d = 2", r#"{"a":{"b":1,"c":{"d":2}}}"#),
        ("[a.b]\nx = 1\n[a]\ny = 2", r#"{"a":{"b":{"x":1},"y":2}}"#),
        ("[[a]]\nx = 1\n[a.b]\ny = 2\n[[a]]", r#"{"a":[{"b":{"y":2},"x":1},{}]}"#),
        ("a = {b.c = 1, d = {}}", r#"{"a":{"b":{"c":1},"d":{}}}"#),
        ("\"\" = 1\n'x.y' = 2", r#"{"":1,"x.y":2}"#),
        ("a = 1\r\n# c\r\nb = 2", r#"{"a":1,"b":2}"#),
        ("a = 1 [b]\nc = 2", r#"{"a":1,"b":{"c":2}}"#),
    ] {
        assert_eq!(show(text), expected, "{text}");
    }
}

#[test]
fn timestamps() {
    for (text, expected) in [
        ("1979-05-27", "1979-05-27"),
        ("07:32:00.5", "07:32:00.500"),
        ("1979-05-27 07:32:00", "1979-05-27T07:32:00"),
        ("1979-05-27t07:32:00.1234z", "1979-05-27T07:32:00.123400Z"),
        ("1979-05-27T07:32:00.000-07:00", "1979-05-27T07:32:00-07:00"),
        ("1979-05-27T07:32:00.123456789123+00:00", "1979-05-27T07:32:00.123456789Z"),
    ] {
        assert_eq!(show(&format!("a = {text}")), format!("{{\"a\":<{expected}>}}"));
    }
}

#[test]
fn refused() {
    for text in [
        "a", "a =", "= 1", "a = 1 b = 2", "a = 1\na = 2", "a.b = 1\na = 2", "a = 1\na.b = 2", "[a]\n[a]",
        "a.b = 1\n[a]", "a = {}\n[a.b]", "a = {}\na.b = 1", "a = [{}]\n[[a]]", "[[a]]\n[a]", "[a.b]\n[a]\nb.c = 1",
        "a = 01", "a = 1_", "a = 1__0", "a = +0x1", "a = 1.", "a = .5", "a = 1e", "a = True", "a = 9223372036854775808",
        "a = 1e400", "a = \"x", "a = \"\\x41\"", "a = \"\\uD800\"", "a = \"a\nb\"", "a = {b = 1,}", "a = {b = 1\n}",
        "a = [1 2]", "a = [1", "[a", "[ [a] ]", "[]", "a = 1979-02-29", "a = 07:32", "a = 24:00:00", "# \u{1}",
        "a = 1\rb = 2", "é = 1",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text:?}");
    }
    assert!(parse(b"a = \"\xff\"").is_err());
    assert!(parse(b"# \xff").is_err());
}

#[test]
fn messages() {
    let message = |text: &str| match parse(text.as_bytes()) {
        Ok(_) => panic!("{text:?} was read"),
        Err(error) => String::from_utf8_lossy(error.message()).into_owned(),
    };
    assert_eq!(
        message("attr = 9223372036854775808"),
        "[error] toml::parse_dec_integer: too large integer: current max digits = 2^63\n --> fromTOML\n   |\n \
         1 | attr = 9223372036854775808\n   |                           ^-- must be < 2^63\n"
    );
    assert_eq!(
        message("a = 1\na = 2\n"),
        "[error] toml::insert_value: failed to insert a value, value already exists\n --> fromTOML\n   |\n \
         2 | a = 2\n   | ^-- inserting this\n   | ...\n   |\n \
         1 | a = 1\n   |     ^-- but value already exists\n"
    );
}

#[test]
fn nesting_is_bounded() {
    assert!(parse(format!("a = {}{}", "[".repeat(900), "]".repeat(900)).as_bytes()).is_ok());
    assert!(parse(format!("a = {}", "[".repeat(1_000_000)).as_bytes()).is_err());
    assert!(parse(format!("a{} = 1", ".a".repeat(1_000_000)).as_bytes()).is_err());
}

#[test]
fn documents_as_in_nix() {
    let documents = [
        "a = 1\nb = \"x\"\n[c]\nd = [1, 2, [3]]\n[[e]]\nf = true\n[[e]]\ng = {h = 'i'}\n",
        "x.y.z = 1\nx.y.w = 2\n[t.u]\nv = -5\n[t]\ns = 0xff\n",
        "s = \"\"\"\nline\\\n   more\"\"\"\nl = '''\nraw\\n'''\n",
        "[package]\nname = \"firn\"\nversion = \"0.1.0\"\n[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }\n",
    ];
    let list: String = documents.iter().map(|text| format!("{text:?} ")).collect();
    let Some(nix) = oracle::eval_json(&format!("map builtins.fromTOML [ {list} ]")) else { return };
    let ours: Vec<String> = documents.iter().map(|text| show(text)).collect();
    oracle::assert_same(&format!("[{}]", ours.join(",")), &nix);
}
