//! XML as `toXML` and `--xml` write it: elements with attributes, two spaces a level, no text content.

/// Writes a document into a buffer. Elements opened are closed by [`Writer::close`], the rest by [`Writer::finish`].
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    open: Vec<&'static str>,
}

impl<'a> Writer<'a> {
    /// Starts a document.
    pub fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        out.extend_from_slice(b"<?xml version='1.0' encoding='utf-8'?>\n");
        Writer { out, open: Vec::new() }
    }

    /// Opens an element. Attributes are written in the order given, which in Nix is by name.
    pub fn open(&mut self, name: &'static str, attributes: &[(&str, &[u8])]) {
        self.start(name, attributes);
        self.out.extend_from_slice(b">\n");
        self.open.push(name);
    }

    /// Closes the innermost open element.
    pub fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.indent();
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b">\n");
        }
    }

    /// Writes an element without content.
    pub fn empty(&mut self, name: &str, attributes: &[(&str, &[u8])]) {
        self.start(name, attributes);
        self.out.extend_from_slice(b" />\n");
    }

    /// Closes what is still open.
    pub fn finish(mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n(b' ', 2 * self.open.len()));
    }

    fn start(&mut self, name: &str, attributes: &[(&str, &[u8])]) {
        self.indent();
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        for (name, value) in attributes {
            self.out.push(b' ');
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b"=\"");
            escape(self.out, value);
            self.out.push(b'"');
        }
    }
}

/// Escapes an attribute's value. Newlines are kept from being normalised; every other byte stands for itself.
pub fn escape(out: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        match byte {
            b'"' => out.extend_from_slice(b"&quot;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'\n' => out.extend_from_slice(b"&#xA;"),
            _ => out.push(byte),
        }
    }
}
