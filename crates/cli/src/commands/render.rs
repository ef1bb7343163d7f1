//! Forms of a value that commands share: JSON and XML.

use crate::failure::Failure;
use crate::session::Session;
use firn_source::Pos;
use firn_value::{ContextBuilder, Value};

/// The value as JSON, on one line. `copy_to_store` gives paths as store paths.
pub(super) fn json(session: &Session, value: Value, strict: bool, pos: Pos, copy_to_store: bool) -> Result<Vec<u8>, Failure> {
    let (mut out, mut context) = (Vec::new(), ContextBuilder::default());
    firn_builtins::value_to_json(&session.machine, value, strict, pos, &mut out, &mut context, copy_to_store)?;
    Ok(out)
}

/// The value as XML.
pub(super) fn xml(session: &Session, value: Value, strict: bool, location: bool) -> Result<Vec<u8>, Failure> {
    let (mut out, mut context) = (Vec::new(), ContextBuilder::default());
    firn_builtins::value_to_xml(&session.machine, value, strict, location, Pos::NONE, &mut out, &mut context)?;
    Ok(out)
}

/// JSON on one line, laid out with two spaces a level.
pub(super) fn indented(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    let newline = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.resize(out.len() + 2 * depth, b' ');
    };
    for (index, &byte) in compact.iter().enumerate() {
        let next = compact.get(index + 1);
        match byte {
            _ if quoted => {
                out.push(byte);
                quoted = escaped || byte != b'"';
                escaped = !escaped && byte == b'\\';
            }
            b'"' => {
                out.push(byte);
                quoted = true;
            }
            b'{' | b'[' => {
                out.push(byte);
                depth += 1;
                if !matches!(next, Some(b'}' | b']')) {
                    newline(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth -= 1;
                if !matches!(compact.get(index.wrapping_sub(1)), Some(b'{' | b'[')) {
                    newline(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                newline(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn json_is_laid_out() {
        let laid = super::indented(br#"{"a":[1,{}],"b\"{":[],"c":{"d":":,"}}"#);
        let expected = "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\\\"{\": [],\n  \"c\": {\n    \"d\": \":,\"\n  }\n}";
        assert_eq!(String::from_utf8_lossy(&laid), expected);
    }
}
