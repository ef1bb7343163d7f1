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

/// The tokens of a text, with a blank between those that do not touch; none if it is no text of the language.
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
        let essence = tokens.split_last().filter(|_| error.is_none()).and_then(|(_end, tokens)| gathered(text, tokens));
        ready.is_lexed = essence.is_some();
        // PERF: few texts have such bytes; looking at every token took a fifth of gathering them.
        let may_pipe = memchr::memchr_iter(b'|', text).any(|at| text.get(at + 1) == Some(&b'>') || text[..at].last() == Some(&b'<'));
        ready.is_plain = !may_pipe || !tokens.iter().any(|token| matches!(token.kind, Kind::PipeFrom | Kind::PipeInto));
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

/// Does something with the tokens of a text; none if it is no text of the language.
pub(crate) fn with_tokens<T>(text: &[u8], work: impl FnOnce(&[Token]) -> Option<T>) -> Option<T> {
    let is_ready = READY.with_borrow(|ready| ready.is_lexed && ready.text == text);
    if !is_ready {
        essence(text)?;
    }
    READY.with_borrow(|ready| work(&ready.tokens))
}

/// The text with one blank for all that stands between two tokens, and nothing where they touch. No token goes on across a
/// blank, nor does one that blanks or a comment ended end elsewhere: this text has the same tokens.
pub(crate) fn gathered(text: &[u8], tokens: &[Token]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut tokens = tokens.iter();
    let Some(first) = tokens.next() else { return Some(all) };
    let (mut start, mut end) = (first.start as usize, first.end as usize);
    all.reserve(tokens.as_slice().last().map_or(end, |last| last.end as usize) - start);
    for token in tokens {
        let (next, after) = (token.start as usize, token.end as usize);
        // PERF: what stands as it will is copied at once.
        if next != end && !(next == end + 1 && text.get(end) == Some(&b' ')) {
            all.extend_from_slice(text.get(start..end)?);
            all.push(b' ');
            start = next;
        }
        end = after;
    }
    all.extend_from_slice(text.get(start..end)?);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_comments_between_tokens_do_not_matter_and_all_else_does() {
        let same = [
            ("let a = 1; in a", "let\n  # why\n  a = 1; /* what */\nin\n  a\n"),
            ("x: x", "x:  x"),
            ("", " # nothing"),
            ("\"a${ b }c\"", "\"a${\tb /* c */ }c\""),
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
            ("a /* b */ c", "a/* b */c d"),
        ];
        for (one, other) in different {
            assert_ne!(essence(one.as_bytes()), essence(other.as_bytes()), "{one} | {other}");
        }
    }

    /// Kinds and bytes of tokens.
    fn tokens(text: &[u8]) -> Vec<(Kind, &[u8])> {
        let shown = |token: &Token| (token.kind, &text[token.start as usize..token.end as usize]);
        lex(None, text, true, Vec::new()).tokens.iter().map(shown).collect()
    }

    #[test]
    fn the_essence_has_the_tokens_of_the_text() {
        // Every order of a few pieces that touch, or are held apart by what means nothing.
        let pieces = ["a", "1", "1.", ".", "./a", "a/b", "<a>", "~/", "\"x ${y}\"", "''z''", ":", "a:b", "/", "//", "-", "+", "or", "${", "}", "{", "<", "|>", "..."];
        let gaps = ["", " ", "\n\t", "# c\n", "/**/", "/* a */ ", " /* * */# b\r\n"];
        for one in pieces {
            for two in pieces {
                for three in pieces {
                    for (first, second) in gaps.iter().flat_map(|first| gaps.iter().map(move |second| (first, second))) {
                        let text = format!("{first}{one}{first}{two}{second}{three}{second}");
                        let Some(essence) = essence(text.as_bytes()) else { continue };
                        let owned = |tokens: Vec<(Kind, &[u8])>| tokens.into_iter().map(|(kind, bytes)| (kind, bytes.to_vec())).collect::<Vec<_>>();
                        assert_eq!(owned(tokens(text.as_bytes())), owned(tokens(&essence)), "{text:?}");
                    }
                }
            }
        }
    }
}
