//! What of a text matters to what it means: its tokens, without the blanks and comments between them (spec L2.5).
//!
//! Called by the host, which observes the code of files. Two texts with the same essence are parsed to the same tree; only
//! the positions in it differ.

use crate::lex::lex;
use crate::token::Kind;

/// The tokens of a text, each behind its kind and length; none if it is no text of the language.
///
/// ```
/// use firn_syntax::essence;
/// assert_eq!(essence(b"{ a = 1; }"), essence(b"# one\n{\n  a = 1; /* a */\n}\n"));
/// assert_ne!(essence(b"a - b"), essence(b"a-b"));
/// assert_ne!(essence(b"\" a\""), essence(b"\"a\""));
/// ```
pub fn essence(text: &[u8]) -> Option<Vec<u8>> {
    // Where the feature is off, such an operator is an error, which the same tokens tell.
    let tokens = lex(None, text, true, Vec::new()).tokens;
    let mut all = Vec::with_capacity(text.len());
    for token in &tokens {
        if token.kind == Kind::Failed {
            return None;
        }
        let bytes = text.get(token.start as usize..token.end as usize)?;
        all.push(token.kind as u8);
        all.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        all.extend_from_slice(bytes);
    }
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
