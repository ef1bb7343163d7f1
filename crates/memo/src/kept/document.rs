//! Digests of parts of documents: what one key of a JSON or TOML file holds, so that a change elsewhere in a lock file
//! touches nobody (spec L2.5).

use super::cbor::Writer;
use firn_host::{Digest, DocumentFormat};
use firn_text::json::Tree;
use firn_text::toml;

/// The digest of the value under a path of keys; none if the text is no such document. Absence is an answer too.
pub fn digest_key(text: &[u8], format: DocumentFormat, names: &[impl AsRef<[u8]>]) -> Option<Digest> {
    let mut found = Writer::new();
    match format {
        DocumentFormat::Json => {
            let document = Tree::parse(text).ok()?;
            if let Some(part) = names.iter().try_fold(&document, |part, name| part.as_object()?.get(name.as_ref())) {
                write_json(part, &mut found);
            }
        }
        DocumentFormat::Toml => {
            let document = toml::Value::Table(toml::parse(text).ok()?);
            if let Some(part) = names.iter().try_fold(&document, |part, name| toml_entry(part, name.as_ref())) {
                write_toml(part, &mut found);
            }
        }
    }
    Some(Digest(blake3::derive_key("firn memo 2026-11 document key", &found.finish())))
}

fn toml_entry<'t>(part: &'t toml::Value, name: &[u8]) -> Option<&'t toml::Value> {
    match part {
        toml::Value::Table(table) => table.entries.get(name),
        _ => None,
    }
}

fn write_json(part: &Tree, writer: &mut Writer) {
    match part {
        Tree::Null => _ = writer.null(),
        Tree::Bool(truth) => _ = writer.bool(*truth),
        Tree::Int(number) => _ = writer.integer(*number),
        Tree::Float(float) => _ = writer.float(*float),
        Tree::Text(text) => _ = writer.bytes(text),
        Tree::List(items) => {
            writer.array(items.len());
            items.iter().for_each(|item| write_json(item, writer));
        }
        Tree::Object(entries) => {
            writer.map(entries.len());
            for (name, item) in entries {
                writer.bytes(name);
                write_json(item, writer);
            }
        }
    }
}

fn write_toml(part: &toml::Value, writer: &mut Writer) {
    match part {
        toml::Value::Boolean(truth) => _ = writer.bool(*truth),
        toml::Value::Integer(number) => _ = writer.integer(*number),
        toml::Value::Float(float) => _ = writer.bytes(&float.to_bits().to_be_bytes()).float(*float),
        toml::Value::String(text) => _ = writer.bytes(text),
        toml::Value::Timestamp(text) => _ = writer.text(text),
        toml::Value::Array(array) => {
            writer.array(array.items.len());
            array.items.iter().for_each(|item| write_toml(item, writer));
        }
        toml::Value::Table(table) => {
            writer.map(table.entries.len());
            for (name, item) in &table.entries {
                writer.bytes(name);
                write_toml(item, writer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_value_wherever_it_stands() {
        let json = |text: &str, names: &[&str]| digest_key(text.as_bytes(), DocumentFormat::Json, names);
        assert_eq!(json(r#"{"a":{"b":1},"c":2}"#, &["a", "b"]), json("{ \"c\": 3,\n \"a\": { \"b\": 1 } }", &["a", "b"]));
        assert_ne!(json(r#"{"a":1}"#, &["a"]), json(r#"{"a":2}"#, &["a"]));
        assert_ne!(json(r#"{"a":null}"#, &["a"]), json("{}", &["a"]));
        assert_eq!(json(r#"{"a":[]}"#, &["a", "b"]), json("{}", &["a", "b"]));
        assert_eq!(json("{", &["a"]), None);
        let toml = |text: &str| digest_key(text.as_bytes(), DocumentFormat::Toml, &["t", "k"]);
        assert_eq!(toml("[t]\nk = 1\n"), toml("x = 9\n# c\n[t]\nj = 0\nk = 1\n"));
        assert_ne!(toml("[t]\nk = 1\n"), toml("[t]\nk = '1'\n"));
    }
}
