//! Strings: basic and literal, each also over several lines.

use super::Error;
use super::parse::Cursor;

/// Length of the well-formed character beyond ASCII that a text begins with.
fn wide_character(text: &[u8]) -> Option<usize> {
    let window = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(window) {
        Ok(_) => window,
        Err(error) => &window[..error.valid_up_to()],
    };
    let first = std::str::from_utf8(valid).ok()?.chars().next()?;
    (!first.is_ascii()).then(|| first.len_utf8())
}

impl Cursor<'_> {
    /// Length of the character here if it may stand in comments and strings: no control character but the tab.
    pub fn plain_character(&self) -> Option<usize> {
        match self.peek()? {
            b'\t' | b' '..=b'~' => Some(1),
            0x80.. => wide_character(self.rest()),
            _ => None,
        }
    }

    /// A string of any form.
    pub fn string(&mut self) -> Result<Vec<u8>, Error> {
        if self.take(b"\"\"\"") {
            self.basic_lines()
        } else if self.take(b"'''") {
            self.literal_lines()
        } else if self.peek() == Some(b'"') {
            self.basic_string()
        } else {
            self.literal_string()
        }
    }

    fn bad_string(&self, form: &str) -> Error {
        let title = format!("toml::parse_{form}_string: invalid string format");
        let remark = match form {
            "basic" => "expected \"",
            "literal" => "expected '",
            "ml_basic" => "expected \"\"\"",
            _ => "expected '''",
        };
        match form.starts_with("ml") && self.at == self.text.len() {
            true => Error::at_end(self.text, &title, remark),
            false => self.error(&title, remark),
        }
    }

    /// `"…"` on one line.
    pub fn basic_string(&mut self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape(&mut value, "basic")?,
                _ => self.plain_into(&mut value, "basic")?,
            }
        }
        self.at += 1;
        Ok(value)
    }

    /// `'…'` on one line.
    pub fn literal_string(&mut self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.at += 1;
        while self.peek() != Some(b'\'') {
            self.plain_into(&mut value, "literal")?;
        }
        self.at += 1;
        Ok(value)
    }

    fn plain_into(&mut self, value: &mut Vec<u8>, form: &str) -> Result<(), Error> {
        let length = self.plain_character().ok_or_else(|| self.bad_string(form))?;
        value.extend_from_slice(&self.rest()[..length]);
        self.at += length;
        Ok(())
    }

    fn newline_into(&mut self, value: &mut Vec<u8>) -> bool {
        let start = self.at;
        let found = self.take(b"\n") || self.take(b"\r\n");
        value.extend_from_slice(&self.text[start..self.at]);
        found
    }

    /// The closing quotes, with up to two more before them that belong to the string.
    fn close_lines(&mut self, quote: u8, value: &mut Vec<u8>) -> bool {
        let run = self.rest().iter().take_while(|&&byte| byte == quote).count();
        let inside = if run >= 3 { (run - 3).min(2) } else { run };
        value.extend(std::iter::repeat_n(quote, inside));
        self.at += if run >= 3 { inside + 3 } else { run };
        run >= 3
    }

    fn basic_lines(&mut self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.newline_into(&mut Vec::new());
        loop {
            match self.peek() {
                Some(b'"') if self.close_lines(b'"', &mut value) => return Ok(value),
                Some(b'"') => {}
                Some(b'\\') if self.continued() => {}
                Some(b'\\') => self.escape(&mut value, "ml_basic")?,
                _ if self.newline_into(&mut value) => {}
                _ => self.plain_into(&mut value, "ml_basic")?,
            }
        }
    }

    fn literal_lines(&mut self) -> Result<Vec<u8>, Error> {
        let mut value = Vec::new();
        self.newline_into(&mut Vec::new());
        loop {
            match self.peek() {
                Some(b'\'') if self.close_lines(b'\'', &mut value) => return Ok(value),
                Some(b'\'') => {}
                _ if self.newline_into(&mut value) => {}
                _ => self.plain_into(&mut value, "ml_literal")?,
            }
        }
    }

    /// A backslash at the end of a line swallows what follows up to the next character.
    fn continued(&mut self) -> bool {
        let blanks = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let newline = |text: &[u8]| match text {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        let start = self.at;
        self.at += 1;
        let mut lines = 0;
        loop {
            self.at += blanks(self.rest());
            match newline(self.rest()) {
                0 if lines == 0 => {
                    self.at = start;
                    return false;
                }
                0 => return true,
                length => self.at += length,
            }
            lines += 1;
        }
    }

    fn escape(&mut self, value: &mut Vec<u8>, form: &str) -> Result<(), Error> {
        let byte = match self.text.get(self.at + 1) {
            Some(&byte @ (b'\\' | b'"')) => byte,
            Some(b'b') => 0x08,
            Some(b't') => b'\t',
            Some(b'n') => b'\n',
            Some(b'f') => 0x0c,
            Some(b'r') => b'\r',
            Some(b'u') => return self.code_point(value, 4, form),
            Some(b'U') => return self.code_point(value, 8, form),
            // NIX: an unknown escape is reported as a string that does not end here.
            _ => return Err(self.bad_string(form)),
        };
        value.push(byte);
        self.at += 2;
        Ok(())
    }

    fn code_point(&mut self, value: &mut Vec<u8>, digits: usize, form: &str) -> Result<(), Error> {
        let start = self.at + 1;
        let hex = self.text.get(start + 1..start + 1 + digits).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let code = hex.and_then(|hex| u32::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        let Some(code) = code else { return Err(self.bad_string(form)) };
        self.at = start + 1 + digits;
        match char::from_u32(code) {
            Some(character) => {
                value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                Ok(())
            }
            None if code > 0x10ffff => Err(self.error_at(
                start..self.at,
                "toml::parse_utf8_codepoint: input codepoint is too large.",
                "must be in range [0x00, 0x10FFFF]",
            )),
            None => Err(self.error_at(
                start..self.at,
                "toml::parse_utf8_codepoint: [0xD800, 0xDFFF] is not a valid UTF-8",
                "here",
            )),
        }
    }
}
