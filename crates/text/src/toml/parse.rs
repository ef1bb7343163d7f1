//! The grammar: a cursor over the text, lines of `key = value`, headers, arrays and inline tables.

use std::ops::Range;

use super::document::Key;
use super::{Array, Error, Origin, Table, Value};

/// Arrays and inline tables inside one another, and parts of a key. More is refused, so that neither reading nor
/// dropping a document can exhaust the stack.
const DEPTH_LIMIT: usize = 1000;

/// A place in the text.
pub(super) struct Cursor<'a> {
    pub text: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    pub fn take(&mut self, prefix: &[u8]) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    /// An error about the byte here.
    pub fn error(&self, title: &str, remark: &str) -> Error {
        Error::new(self.text, title, &[(self.at..self.at + 1, remark)])
    }

    pub fn error_at(&self, place: Range<usize>, title: &str, remark: &str) -> Error {
        Error::new(self.text, title, &[(place, remark)])
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn take_newline(&mut self) -> bool {
        self.take(b"\n") || self.take(b"\r\n")
    }

    /// A comment up to its newline; false where there is none.
    fn take_comment(&mut self) -> Result<bool, Error> {
        if !self.take(b"#") {
            return Ok(false);
        }
        while let Some(length) = self.plain_character() {
            self.at += length;
        }
        if self.at < self.text.len() && !self.take_newline() {
            let title = "toml::parse_comment_line: newline (LF / CRLF) or EOF is expected";
            let hint = "Hint: most of the control characters are not allowed in comments";
            return Err(self.error(title, "but got this").with_hint(hint));
        }
        Ok(true)
    }

    /// Blanks, comments and newlines; whether there was a newline.
    fn skip_lines(&mut self) -> Result<bool, Error> {
        let mut newline = false;
        loop {
            self.skip_blanks();
            if !self.take_newline() && !self.take_comment()? {
                return Ok(newline);
            }
            newline = true;
        }
    }
}

/// Reads a document.
pub fn parse(text: &[u8]) -> Result<Table, Error> {
    let mut cursor = Cursor { text, at: 0 };
    cursor.take(b"\xef\xbb\xbf");
    let mut root = Table::new(Origin::Header, 0..1);
    cursor.lines(&mut root)?;
    while cursor.at < text.len() {
        let start = cursor.at;
        let of_tables = cursor.rest().starts_with(b"[[");
        let (open, close, title): (&[u8], &[u8], _) = match of_tables {
            true => (b"[[", b"]]", "toml::parse_file: invalid array-table key"),
            false => (b"[", b"]", "toml::parse_file: invalid table key"),
        };
        if !cursor.take(open) {
            return Err(cursor.error(title, "here"));
        }
        cursor.skip_blanks();
        let mut key = cursor.key()?;
        cursor.skip_blanks();
        if !cursor.take(close) {
            return Err(cursor.error(title, if of_tables { "expected ]]" } else { "expected ]" }));
        }
        key.place = start..cursor.at;
        cursor.skip_blanks();
        if !cursor.take_comment()? && cursor.at < text.len() && !cursor.take_newline() {
            return Err(cursor.error("toml::parse_file: newline (or EOF) expected", "here"));
        }
        let table = if of_tables { root.append(text, &key)? } else { root.open(text, &key)? };
        cursor.lines(table)?;
    }
    Ok(root)
}

impl Cursor<'_> {
    /// The lines of a table, up to the next header.
    fn lines(&mut self, table: &mut Table) -> Result<(), Error> {
        let mut newline = true;
        while self.at < self.text.len() {
            newline |= self.skip_lines()?;
            // NIX: a header may stand on the same line as the value before it.
            if matches!(self.peek(), None | Some(b'[')) {
                break;
            }
            if !newline {
                let title = "toml::parse_table: newline (LF / CRLF) or EOF is expected";
                return Err(self.error(title, "here"));
            }
            self.pair(table, 0)?;
            self.skip_blanks();
            newline = self.take_comment()?;
        }
        Ok(())
    }

    /// `key = value`, put into the table.
    fn pair(&mut self, table: &mut Table, depth: usize) -> Result<(), Error> {
        let key = self.key()?;
        self.skip_blanks();
        if !self.take(b"=") {
            let title = "toml::parse_key_value_pair: invalid key value separator `=`";
            return Err(self.error(title, "expected ="));
        }
        self.skip_blanks();
        let start = self.at;
        let value = self.value(depth)?;
        table.insert(self.text, key, value, start..self.at)
    }

    /// A key, dotted or not.
    fn key(&mut self) -> Result<Key, Error> {
        let start = self.at;
        let mut parts = Vec::new();
        loop {
            parts.push(self.simple_key()?);
            let end = self.at;
            self.skip_blanks();
            if !self.take(b".") {
                self.at = end;
                return Ok(Key { parts, place: start..end });
            }
            if parts.len() >= DEPTH_LIMIT {
                return Err(self.error("toml::parse_key: too many parts", "here"));
            }
            self.skip_blanks();
        }
    }

    fn simple_key(&mut self) -> Result<Vec<u8>, Error> {
        match self.peek() {
            Some(b'"') => self.basic_string(),
            Some(b'\'') => self.literal_string(),
            _ => {
                let bare = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
                let length = self.rest().iter().take_while(bare).count();
                if length == 0 {
                    let title = "toml::parse_simple_key: invalid key: key must be \"quoted\", 'quoted-literal', or \
                                 bare key.";
                    let hint = "Hint: non-ASCII scripts are allowed in toml v1.1.0, but not in v1.0.0.\n";
                    let remark = "expected alpha [a-zA-Z], digit [0-9], -, or _";
                    return Err(self.error(title, remark).with_hint(hint));
                }
                self.at += length;
                Ok(self.text[self.at - length..self.at].to_vec())
            }
        }
    }

    /// Any value.
    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if depth >= DEPTH_LIMIT {
            return Err(self.error("toml::parse_value: too deeply nested", "here"));
        }
        match self.peek() {
            Some(b'"' | b'\'') => self.string().map(Value::String),
            Some(b'[') => self.array(depth),
            Some(b'{') => self.inline_table(depth),
            Some(b't' | b'f') => {
                let value = if self.take(b"true") {
                    true
                } else if self.take(b"false") {
                    false
                } else {
                    let title = "toml::parse_boolean: invalid boolean: boolean must be `true` or `false`, in \
                                 lowercase. string must be surrounded by `\"`";
                    return Err(self.error(title, "here"));
                };
                Ok(Value::Boolean(value))
            }
            _ => self.number(),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Error> {
        let start = self.at;
        let mut items = Vec::new();
        let mut comma = true;
        self.take(b"[");
        loop {
            self.skip_lines()?;
            match self.peek() {
                None => {
                    let title = "toml::parse_array: missing closing bracket `]`";
                    return Err(Error::at_end(self.text, title, "expected `]`, reached EOF"));
                }
                Some(b']') => break,
                Some(_) if !comma => {
                    let title = "toml::parse_array: expected value-separator `,` or closing `]`";
                    return Err(self.error(title, "here"));
                }
                Some(_) => items.push(self.value(depth + 1)?),
            }
            self.skip_lines()?;
            comma = self.take(b",");
        }
        self.at += 1;
        Ok(Value::Array(Array { items, of_tables: false, place: start..self.at }))
    }

    fn inline_table(&mut self, depth: usize) -> Result<Value, Error> {
        let start = self.at;
        let mut table = Table::new(Origin::Header, start..start + 1);
        self.take(b"{");
        self.skip_blanks();
        if !self.take(b"}") {
            loop {
                self.pair(&mut table, depth + 1)?;
                self.skip_blanks();
                if self.take(b"}") {
                    break;
                }
                match self.peek() {
                    Some(b',') => self.at += 1,
                    _ => {
                        let title = "toml::parse_inline_table: expected value-separator `,` or closing `}`";
                        return Err(self.error(title, "here"));
                    }
                }
                self.skip_blanks();
                if self.peek() == Some(b'}') {
                    let title = "toml::parse_inline_table: trailing comma is not allowed in TOML-v1.0.0)";
                    return Err(self.error(title, "here"));
                }
            }
        }
        table.set_inline(start..self.at);
        Ok(Value::Table(table))
    }
}
