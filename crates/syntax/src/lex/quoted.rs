//! Pieces of `"…"` and `''…''`.

use super::{LITERAL, Lexer, Mode, Step};
use crate::token::{Form, Kind};
use memchr::{memchr, memchr2};

impl Lexer {
    /// One piece of `"…"`.
    pub(super) fn string(&mut self) -> Step {
        let (start, text) = (self.at, self.text);
        let mut at = start;
        let mut form = Form::Verbatim;
        let mut nul = false;
        loop {
            at = self.end_of(at, LITERAL);
            if at == text.len() {
                break;
            }
            match text[at] {
                b'"' => break,
                b'\\' if at + 1 < text.len() => {
                    form = Form::Escaped;
                    at += 2;
                }
                b'\\' => break,
                b'$' => match text.get(at + 1) {
                    Some(b'"') => at += 1,
                    Some(b'\\') if at + 2 < text.len() => {
                        form = Form::Escaped;
                        at += 3;
                    }
                    Some(b'{' | b'\\') | None => break,
                    Some(&second) => {
                        nul |= second == 0;
                        form = if second == b'\r' { Form::Escaped } else { form };
                        at += 2;
                    }
                },
                b'\r' => {
                    form = Form::Escaped;
                    at += 1;
                }
                _ => {
                    nul = true;
                    at += 1;
                }
            }
        }
        if at > start {
            if nul {
                let mut value = Vec::new();
                unescape(&text[start..at], &mut value);
                return self.fail(start, nul_message(&value));
            }
            self.take_form(Kind::Str, form, at - start);
            return Ok(());
        }
        match (self.peek(0), self.peek(1)) {
            (b'"', _) => {
                self.take(Kind::Quote, 1);
                self.leave();
            }
            (b'$', b'{') => {
                self.take(Kind::DollarCurly, 2);
                self.enter(Mode::Plain);
            }
            // NIX: what cannot be completed before the end of the text is the end, and is reported after itself.
            _ => self.finish(text.len()),
        }
        Ok(())
    }

    pub(super) fn open_indented(&mut self) {
        let blank = self.text[self.at + 2..].iter().take_while(|&&b| b == b' ').count();
        let line = usize::from(self.peek(2 + blank) == b'\n') * (blank + 1);
        self.take(Kind::IndOpen, 2 + line);
        self.enter(Mode::Indented);
    }

    /// One piece of `''…''`.
    pub(super) fn indented(&mut self) -> Step {
        let (start, text) = (self.at, self.text);
        let mut at = start;
        while let Some(found) = memchr2(b'$', b'\'', &text[at..]) {
            at += found;
            let stop = matches!(
                (text[at], text.get(at + 1)),
                (_, None) | (b'$', Some(b'{' | b'\'')) | (b'\'', Some(b'\'' | b'$'))
            );
            if stop {
                break;
            }
            at += 2;
        }
        if memchr2(b'$', b'\'', &text[at..]).is_none() {
            at = text.len();
        }
        if at > start {
            if memchr(0, &text[start..at]).is_some() {
                return self.fail(start, nul_message(&text[start..at]));
            }
            self.take(Kind::IndStr, at - start);
            return Ok(());
        }
        match (self.text.get(at), self.peek(1), self.peek(2)) {
            (None, ..) => self.finish(at),
            (Some(b'$'), b'{', _) => {
                self.take(Kind::DollarCurly, 2);
                self.enter(Mode::Plain);
            }
            (Some(b'$'), ..) => self.take_form(Kind::IndStr, Form::Dollar, 1),
            (_, b'\'', b'$') => self.take_form(Kind::IndStr, Form::Dollar, 3),
            (_, b'\'', b'\'') => self.take_form(Kind::IndStr, Form::TwoQuotes, 3),
            (_, b'\'', b'\\') if at + 3 < text.len() => self.take_form(Kind::IndStr, Form::Escaped, 4),
            (_, b'\'', _) => {
                self.take(Kind::IndClose, 2);
                self.leave();
            }
            _ => self.take_form(Kind::IndStr, Form::OneQuote, 1),
        }
        Ok(())
    }
}

fn nul_message(value: &[u8]) -> Vec<u8> {
    let mut message = b"input string '".to_vec();
    for &byte in value {
        match byte {
            0 => message.extend_from_slice("␀".as_bytes()),
            _ => message.push(byte),
        }
    }
    message.extend_from_slice(b"' cannot be represented as Nix string because it contains null bytes");
    message
}

/// Undoes the escapes of `"…"` and turns carriage returns into line feeds.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut i = 0;
    while i < text.len() {
        let byte = text[i];
        i += 1;
        match byte {
            b'\\' if i < text.len() => {
                out.push(match text[i] {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => other,
                });
                i += 1;
            }
            b'\r' => {
                out.push(b'\n');
                i += usize::from(text.get(i) == Some(&b'\n'));
            }
            _ => out.push(byte),
        }
    }
}
