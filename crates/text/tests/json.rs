//! JSON: values, messages, limits, and Nix's own reading of the same texts.

mod oracle;

use std::borrow::Cow;
use std::convert::Infallible;

use firn_text::float;
use firn_text::json::{Builder, Error, parse, write_string};

/// Writes what it is given back as JSON.
#[derive(Default)]
struct Echo {
    out: Vec<u8>,
    depth: usize,
    deepest: usize,
}

type Done = Result<(), Infallible>;

impl Echo {
    fn text(&mut self, text: &[u8]) -> Done {
        if !matches!(self.out.last(), None | Some(b'[' | b'{' | b':')) {
            self.out.push(b',');
        }
        self.out.extend_from_slice(text);
        Ok(())
    }
    fn open(&mut self, text: &[u8]) -> Done {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        self.text(text)
    }
    fn shut(&mut self, byte: u8) -> Done {
        self.depth -= 1;
        self.out.push(byte);
        Ok(())
    }
}

impl Builder for Echo {
    type Error = Infallible;
    fn null(&mut self) -> Done {
        self.text(b"null")
    }
    fn boolean(&mut self, value: bool) -> Done {
        self.text(if value { b"true" } else { b"false" })
    }
    fn integer(&mut self, value: i64) -> Done {
        self.text(value.to_string().as_bytes())
    }
    fn float(&mut self, value: f64) -> Done {
        let mut text = Vec::new();
        float::write_json(&mut text, value);
        self.text(&text)
    }
    fn string(&mut self, value: Cow<'_, [u8]>) -> Done {
        let mut text = Vec::new();
        write_string(&mut text, &value).expect("read strings are UTF-8");
        self.text(&text)
    }
    fn start_array(&mut self) -> Done {
        self.open(b"[")
    }
    fn end_array(&mut self) -> Done {
        self.shut(b']')
    }
    fn start_object(&mut self) -> Done {
        self.open(b"{")
    }
    fn key(&mut self, name: Cow<'_, [u8]>) -> Done {
        self.string(name)?;
        self.out.push(b':');
        Ok(())
    }
    fn end_object(&mut self) -> Done {
        self.shut(b'}')
    }
}

fn echo(text: &[u8]) -> Result<String, String> {
    let mut builder = Echo::default();
    match parse(text, &mut builder) {
        Ok(()) => Ok(String::from_utf8(builder.out).expect("UTF-8")),
        Err(error) => Err(String::from_utf8_lossy(&error.message().unwrap_or_default()).into_owned()),
    }
}

#[test]
fn values() {
    for (text, expected) in [
        ("  [1, -2, 3.5, true, null, \"x\"] ", r#"[1,-2,3.5,true,null,"x"]"#),
        (r#"{"a":{"b":[]},"a":{}}"#, r#"{"a":{"b":[]},"a":{}}"#),
        (r#""\u00e9\ud83d\ude00\n\/\u0001""#, "\"é😀\\n/\\u0001\""),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-9223372036854775809", "-9.223372036854776e+18"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("1e20", "1e+20"),
        ("123456789012345.0", "123456789012345.0"),
        ("0.00001", "1e-05"),
        ("\u{feff}1", "1"),
    ] {
        assert_eq!(echo(text.as_bytes()), Ok(expected.to_owned()), "{text}");
    }
}

#[test]
fn messages() {
    let at = "[json.exception.parse_error.101] parse error at line 1, column ";
    let expected_value = "; expected '[', '{', or a literal";
    for (text, expected) in [
        ("", format!("{at}1: attempting to parse an empty input; check that your input string or stream contains the expected JSON")),
        (" ", format!("{at}2: syntax error while parsing value - unexpected end of input{expected_value}")),
        ("[1,", format!("{at}4: syntax error while parsing value - unexpected end of input{expected_value}")),
        ("{a", format!("{at}2: syntax error while parsing object key - invalid literal; last read: '{{a'; expected string literal")),
        ("[1 2]", format!("{at}4: syntax error while parsing array - unexpected number literal; expected ']'")),
        ("{\"a\" 1}", format!("{at}6: syntax error while parsing object separator - unexpected number literal; expected ':'")),
        ("\"\t\"", format!("{at}2: syntax error while parsing value - invalid string: control character U+0009 (HT) must be escaped to \\u0009 or \\t; last read: '\"<U+0009>'")),
        ("1 x", format!("{at}3: syntax error while parsing value - invalid literal; last read: '1 x'; expected end of input")),
        ("1e999", "[json.exception.out_of_range.406] number overflow parsing '1e999'".into()),
        ("18446744073709551615", "unsigned json number 18446744073709551615 outside of Nix integer range".into()),
        ("[\n01\n", "[json.exception.parse_error.101] parse error at line 2, column 0: syntax error while parsing array - unexpected number literal; expected ']'".into()),
    ] {
        assert_eq!(echo(text.as_bytes()), Err(expected), "{text:?}");
    }
}

#[test]
fn text_that_is_not_utf8() {
    for (text, expected) in [
        (&b"a\xff"[..], "invalid UTF-8 byte at index 1: 0xFF"),
        (b"\xe2\x82A", "invalid UTF-8 byte at index 2: 0x41"),
        (b"\xe0\x80\x80", "invalid UTF-8 byte at index 1: 0x80"),
        (b"a\xc3", "incomplete UTF-8 string; last byte: 0xC3"),
    ] {
        assert_eq!(write_string(&mut Vec::new(), text), Err(format!("[json.exception.type_error.316] {expected}")));
    }
    assert!(echo(b"\"\xff\"").is_err_and(|message| message.contains("ill-formed UTF-8 byte")));
}

#[test]
fn depth_needs_no_stack() {
    let depth = 2_000_000;
    let text = [vec![b'['; depth], vec![b']'; depth]].concat();
    let mut builder = Echo::default();
    assert_eq!(parse(&text, &mut builder), Ok::<(), Error<Infallible>>(()));
    assert_eq!(builder.deepest, depth);
}

#[test]
fn documents_as_in_nix() {
    let documents = [
        r#"{"b":[1,2,{"c":null}],"a":"x\ty\u0041"}"#,
        r#"[true,false,[],{},"",-12]"#,
        "\"\\ud83d\\ude00\"",
        " {\"k\" : \"\u{e9}\\\"\\\\/\"} ",
    ];
    let list: String = documents.iter().map(|text| format!("{:?} ", text.replace("${", "\\${"))).collect();
    let expression = format!("map (t: builtins.toJSON (builtins.fromJSON t)) [ {} ]", list.replace("\\u{e9}", "é"));
    let Some(nix) = oracle::eval_json(&expression) else { return };
    let ours: Vec<String> = documents
        .iter()
        .map(|text| {
            // Nix sorts names; the only document whose names are not sorted is put in order here.
            let text = text.replace(r#"{"b":[1,2,{"c":null}],"a":"x\ty\u0041"}"#, r#"{"a":"x\tyA","b":[1,2,{"c":null}]}"#);
            let mut out = Vec::new();
            write_string(&mut out, echo(text.as_bytes()).expect("valid").as_bytes()).expect("UTF-8");
            String::from_utf8(out).expect("UTF-8")
        })
        .collect();
    oracle::assert_same(&format!("[{}]", ours.join(",")), &nix);
}
