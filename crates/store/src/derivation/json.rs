//! The JSON form (version 4), as `nix derivation show` prints each derivation: compact, keys in byte order.

use super::{Derivation, InputNode, Output};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::Format;

/// The version of the form.
pub const JSON_VERSION: u32 = 4;

impl Derivation {
    /// Appends the JSON object. Strings that are not UTF-8 have no JSON form and are an error.
    ///
    /// Paths appear without the store directory, so this needs none. Structured attributes are inserted as they are.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(b"{\"args\":");
        array(self.args.iter().map(Vec::as_slice), out)?;
        out.extend_from_slice(b",\"builder\":");
        string(&self.builder, out)?;
        out.extend_from_slice(b",\"env\":");
        object(self.env.iter(), out, string)?;
        out.extend_from_slice(b",\"inputs\":{\"drvs\":");
        object(self.input_drvs.iter().map(|(p, n)| (p.as_bytes(), n)), out, write_node)?;
        out.extend_from_slice(b",\"srcs\":");
        array(self.input_srcs.iter().map(|p| p.as_bytes()), out)?;
        out.extend_from_slice(b"},\"name\":");
        string(&self.name, out)?;
        out.extend_from_slice(b",\"outputs\":");
        object(self.outputs.iter().map(|(n, o)| (&**n, o)), out, write_output)?;
        if let Some(json) = &self.structured_attrs {
            out.extend_from_slice(b",\"structuredAttrs\":");
            out.extend_from_slice(json);
        }
        out.extend_from_slice(b",\"system\":");
        string(&self.system, out)?;
        out.extend_from_slice(format!(",\"version\":{JSON_VERSION}}}").as_bytes());
        Ok(())
    }
}

fn write_output(output: &Output, out: &mut Vec<u8>) -> Result<()> {
    let text = match output {
        Output::InputAddressed(path) => format!("{{\"path\":\"{path}\"}}"),
        Output::Fixed(address) => {
            let hash = address.hash.to_string(Format::Sri, true);
            format!("{{\"hash\":\"{hash}\",\"method\":\"{}\"}}", address.method.name())
        }
        Output::Floating(method, algorithm) => {
            format!("{{\"hashAlgo\":\"{}\",\"method\":\"{}\"}}", algorithm.name(), method.name())
        }
        Output::Deferred => "{}".to_string(),
        Output::Impure(method, algorithm) => {
            format!("{{\"hashAlgo\":\"{}\",\"impure\":true,\"method\":\"{}\"}}", algorithm.name(), method.name())
        }
    };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

fn write_node(node: &InputNode, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(b"{\"dynamicOutputs\":");
    object(node.dynamic.iter().map(|(n, child)| (&**n, child)), out, write_node)?;
    out.extend_from_slice(b",\"outputs\":");
    array(node.outputs.iter().map(|n| &**n), out)?;
    out.push(b'}');
    Ok(())
}

fn array<'a>(items: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'[');
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(item, out)?;
    }
    out.push(b']');
    Ok(())
}

fn object<'a, T: ?Sized + 'a>(
    items: impl Iterator<Item = (&'a [u8], &'a T)>,
    out: &mut Vec<u8>,
    value: impl Fn(&T, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    out.push(b'{');
    for (i, (key, item)) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(key, out)?;
        out.push(b':');
        value(item, out)?;
    }
    out.push(b'}');
    Ok(())
}

fn string(text: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if let Err(error) = std::str::from_utf8(text) {
        let at = error.valid_up_to();
        let message = format!("invalid UTF-8 byte at index {at}: 0x{:02X}", text[at]);
        return Err(Error::new(ErrorKind::Format, &[message.as_bytes()]));
    }
    out.push(b'"');
    for &c in text {
        match c {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', c]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{c:04x}").as_bytes()),
            _ => out.push(c),
        }
    }
    out.push(b'"');
    Ok(())
}
