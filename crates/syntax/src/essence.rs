//! What of a text matters to what it means: its tokens, without the blanks and comments between them (spec L2.5).
//!
//! Called by the host, which observes the code of files. Two texts with the same essence are parsed to the same tree; only
//! the positions in it differ. The text is most often parsed next, on the same thread: its tokens wait for that.

use crate::lex::{Lexed, lex};
use crate::token::{Kind, Token};
use std::cell::RefCell;

/// A text whose tokens are there already.
#[derive(Default)]
struct Ready {
    text: Vec<u8>,
    tokens: Vec<Token>,
    /// Whether the tokens are those of the text.
    is_lexed: bool,
    /// Whether the tokens are the same whatever becomes of pipe operators.
    is_plain: bool,
}

thread_local! {
    static READY: RefCell<Ready> = RefCell::default();
}

/// The tokens of a text: the kind and length of each, then their bytes; none if it is no text of the language.
///
/// ```
/// use firn_syntax::essence;
/// assert_eq!(essence(b"{ a = 1; }"), essence(b"# one\n{\n  a = 1; /* a */\n}\n"));
/// assert_ne!(essence(b"a - b"), essence(b"a-b"));
/// assert_ne!(essence(b"\" a\""), essence(b"\"a\""));
/// ```
pub fn essence(text: &[u8]) -> Option<Vec<u8>> {
    READY.with_borrow_mut(|ready| {
        ready.is_lexed = false;
        // Where the feature is off, such an operator is an error, which the same tokens tell.
        let Lexed { tokens, error } = lex(None, text, true, std::mem::take(&mut ready.tokens));
        let essence = if error.is_none() { gathered(text, &tokens) } else { None };
        ready.is_lexed = essence.is_some();
        ready.is_plain = !tokens.iter().any(|token| matches!(token.kind, Kind::PipeFrom | Kind::PipeInto));
        ready.tokens = tokens;
        ready.text.clear();
        ready.text.extend_from_slice(text);
        essence
    })
}

/// The tokens of a text if its essence was asked for last; `spare` is kept in exchange.
pub(crate) fn ready(text: &[u8], pipes: bool, spare: Vec<Token>) -> Result<Vec<Token>, Vec<Token>> {
    READY.with_borrow_mut(|ready| {
        if !ready.is_lexed || !(pipes || ready.is_plain) || ready.text != text {
            return Err(spare);
        }
        ready.is_lexed = false;
        Ok(std::mem::replace(&mut ready.tokens, spare))
    })
}

fn gathered(text: &[u8], tokens: &[Token]) -> Option<Vec<u8>> {
    let mut all = Vec::with_capacity(8 + 2 * tokens.len() + text.len());
    all.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
    for token in tokens {
        let length = token.end.wrapping_sub(token.start);
        match u8::try_from(length) {
            Ok(length) if length < u8::MAX => all.extend_from_slice(&[token.kind as u8, length]),
            _ => {
                all.extend_from_slice(&[token.kind as u8, u8::MAX]);
                all.extend_from_slice(&length.to_le_bytes());
            }
        }
    }
    // PERF: tokens that touch are copied at once.
    let (mut start, mut end) = (0, 0);
    for token in tokens {
        if token.start != end {
            all.extend_from_slice(text.get(start as usize..end as usize)?);
            start = token.start;
        }
        end = token.end;
    }
    all.extend_from_slice(text.get(start as usize..end as usize)?);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_comments_between_tokens_do_not_matter_and_all_else_does() {
        let same = [
            ("let a = 1; in a", "let\n  # why\n  a = 1; /* what */\nin\n  a\n"),
            ("x: x", "x : x"),
            ("\"a${b}c\"", "\"a${ b /* c */ }c\""),
            ("[ ./a ./b ]", "[ ./a\t./b\r\n]"),
        ];
        for (one, other) in same {
            assert_eq!(essence(one.as_bytes()), essence(other.as_bytes()), "{one} | {other}");
        }
        let different = [
            ("a b", "ab"),
            ("[ a b ]", "[ (a b) ]"),
            ("\"a b\"", "\"a  b\""),
            ("''\n  a\n''", "''\n   a\n''"),
            ("\"# a\"", "\"\""),
            ("a:b", "a: b"),
            ("a/b", "a / b"),
            ("1 .5", "1.5"),
        ];
        for (one, other) in different {
            assert_ne!(essence(one.as_bytes()), essence(other.as_bytes()), "{one} | {other}");
        }
    }
}
