//! The deprecated attribute `__json`: its text is read and printed again, as Nix does.
//!
//! NIX: keys come out sorted, of equal keys the last counts, white space goes, numbers print in their shortest form.

use crate::derivation_attrs::bad_json;
use firn_eval::Result;
use firn_text::json::{self, Builder};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The text in the form in which it stands in a derivation.
pub(crate) fn reprint(text: &[u8]) -> Result<Vec<u8>> {
    let mut printer = Printer::default();
    match json::parse(text, &mut printer) {
        Ok(()) => {}
        Err(json::Error::Builder(why)) => return Err(bad_json(why.as_bytes())),
        Err(other) => return Err(bad_json(&other.message().unwrap_or_default())),
    }
    match printer.done.pop() {
        Some((Kind::Object, text)) => Ok(text),
        Some((kind, _)) => {
            let why = format!("[json.exception.type_error.302] type must be object, but is {}", kind.name());
            Err(bad_json(why.as_bytes()))
        }
        None => Err(bad_json(b"[json.exception.type_error.302] type must be object, but is null")),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Boolean => "boolean",
            Kind::Number => "number",
            Kind::String => "string",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }
}

/// Prints values as they end. Open arrays and objects begin at an index of `done`.
#[derive(Default)]
struct Printer {
    done: Vec<(Kind, Vec<u8>)>,
    keys: Vec<Vec<u8>>,
    open: Vec<(usize, usize)>,
}

impl Printer {
    fn push(&mut self, kind: Kind, text: Vec<u8>) -> std::result::Result<(), String> {
        self.done.push((kind, text));
        Ok(())
    }

    fn start(&mut self) -> std::result::Result<(), String> {
        self.open.push((self.done.len(), self.keys.len()));
        Ok(())
    }
}

fn printed(text: &[u8]) -> std::result::Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len() + 2);
    json::write_string(&mut out, text)?;
    Ok(out)
}

impl Builder for Printer {
    type Error = String;

    fn null(&mut self) -> std::result::Result<(), String> {
        self.push(Kind::Null, b"null".to_vec())
    }

    fn boolean(&mut self, value: bool) -> std::result::Result<(), String> {
        self.push(Kind::Boolean, value.to_string().into_bytes())
    }

    fn integer(&mut self, value: i64) -> std::result::Result<(), String> {
        self.push(Kind::Number, value.to_string().into_bytes())
    }

    fn float(&mut self, value: f64) -> std::result::Result<(), String> {
        let mut out = Vec::new();
        firn_text::float::write_json(&mut out, value);
        self.push(Kind::Number, out)
    }

    fn string(&mut self, value: Cow<'_, [u8]>) -> std::result::Result<(), String> {
        let text = printed(&value)?;
        self.push(Kind::String, text)
    }

    fn start_array(&mut self) -> std::result::Result<(), String> {
        self.start()
    }

    fn end_array(&mut self) -> std::result::Result<(), String> {
        let (from, _) = self.open.pop().unwrap_or_default();
        let items: Vec<Vec<u8>> = self.done.drain(from..).map(|(_, text)| text).collect();
        self.push(Kind::Array, [b"[".as_slice(), &items.join(&b','), b"]"].concat())
    }

    fn start_object(&mut self) -> std::result::Result<(), String> {
        self.start()
    }

    fn key(&mut self, name: Cow<'_, [u8]>) -> std::result::Result<(), String> {
        self.keys.push(name.into_owned());
        Ok(())
    }

    fn end_object(&mut self) -> std::result::Result<(), String> {
        let (from, first_key) = self.open.pop().unwrap_or_default();
        let keys = self.keys.drain(first_key..);
        let entries: BTreeMap<Vec<u8>, Vec<u8>> = keys.zip(self.done.drain(from..).map(|(_, text)| text)).collect();
        let mut out = b"{".to_vec();
        for (key, value) in entries {
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(&printed(&key)?);
            out.push(b':');
            out.extend_from_slice(&value);
        }
        out.push(b'}');
        self.push(Kind::Object, out)
    }
}
