//! What of a text matters to what it means: its tokens, without the blanks and comments between them (spec L2.5).
//!
//! Called by the host, which observes the code of files. Two texts with the same essence are parsed to the same tree; only
//! the positions in it differ. The text is most often parsed next, on the same thread: its tokens wait for that.

use crate::lex::{Noted, lex_noting};
use crate::token::{Kind, Token};
use firn_source::SourceText;
use std::cell::RefCell;
use std::sync::Arc;

/// A text whose tokens are there already.
#[derive(Default)]
struct Ready {
    /// The text that the tokens are of, if there is one.
    // PERF: told by where it is: copying and comparing texts took longer than gathering their tokens.
    text: Option<SourceText>,
    tokens: Vec<Token>,
    /// Room for what stands between them.
    room: Vec<(u32, u32)>,
    /// Whether the tokens are the same whatever becomes of pipe operators.
    is_plain: bool,
    /// The token that opened what the last closing brace closes.
    opened: Option<u32>,
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
    READY.with_borrow_mut(|ready| ready.make(text)).map(|gaps| gaps.essence(text))
}

/// What has to be left out of a text to have its [`essence`]; the text is cut or parsed next.
///
/// ```
/// let text = b"# one\n{\n  a = 1; /* a */\n}\n".to_vec().into();
/// assert_eq!(firn_syntax::gaps_of_next(&text).map(|gaps| gaps.essence(&text)), firn_syntax::essence(&text));
/// ```
pub fn gaps_of_next(text: &SourceText) -> Option<Gaps> {
    READY.with_borrow_mut(|ready| {
        let gaps = ready.make(text)?;
        ready.text = Some(text.clone());
        Some(gaps)
    })
}

/// Where a text has what is no token.
// PERF: with these anybody can make the essence, later: there are six times as many tokens, and they are needed elsewhere.
pub struct Gaps {
    /// Where the first token begins and the last one ends.
    tokens: (u32, u32),
    /// All but single blanks, ascending; one may follow another.
    pieces: Box<[(u32, u32)]>,
}

impl Gaps {
    /// The essence of the text, as [`gathered`] makes it of the tokens.
    pub fn essence(&self, text: &[u8]) -> Vec<u8> {
        let (mut from, end) = (self.tokens.0 as usize, self.tokens.1 as usize);
        let mut all = Vec::with_capacity(end.saturating_sub(from));
        for &(start, after) in &self.pieces {
            let (start, after) = (start as usize, after as usize);
            if start >= end {
                break;
            }
            // No token ends with a blank where another piece may follow: one at either side belongs to the gap.
            let start = start - usize::from(start > from && text.get(start - 1) == Some(&b' '));
            if start > from {
                all.extend_from_slice(text.get(from..start).unwrap_or_default());
                all.push(b' ');
            }
            from = from.max(after + usize::from(text.get(after) == Some(&b' ')));
        }
        all.extend_from_slice(text.get(from..end).unwrap_or_default());
        all
    }
}

impl Ready {
    fn make(&mut self, text: &[u8]) -> Option<Gaps> {
        self.text = None;
        // Where the feature is off, such an operator is an error, which the same tokens tell.
        let Noted { lexed, gaps, is_piped, opened } = lex_noting(text, std::mem::take(&mut self.tokens), std::mem::take(&mut self.room));
        self.tokens = lexed.tokens;
        let pieces = gaps.as_slice().into();
        self.room = gaps;
        self.opened = opened;
        self.is_plain = !is_piped;
        let (_end, tokens) = self.tokens.split_last().filter(|_| lexed.error.is_none())?;
        // The end of a path is a token without a place.
        let last = tokens.iter().rfind(|token| token.kind != Kind::PathEnd);
        let place = tokens.first().zip(last).map(|(first, last)| (first.start, last.end));
        Some(Gaps { tokens: place.unwrap_or_default(), pieces })
    }

    fn is_of(&self, text: &SourceText) -> bool {
        self.text.as_ref().is_some_and(|ready| Arc::ptr_eq(ready, text))
    }
}

/// The tokens of a text if it was to be parsed next; `spare` is kept in exchange.
pub(crate) fn ready(text: &SourceText, pipes: bool, spare: Vec<Token>) -> Result<Vec<Token>, Vec<Token>> {
    READY.with_borrow_mut(|ready| {
        if !ready.is_of(text) || !(pipes || ready.is_plain) {
            return Err(spare);
        }
        ready.text = None;
        Ok(std::mem::replace(&mut ready.tokens, spare))
    })
}

/// Does something with the tokens of a text, and the number of the one that opened what the last closing brace closes; none if it is no
/// text of the language.
pub(crate) fn with_tokens<T>(text: &SourceText, work: impl FnOnce(&[Token], Option<u32>) -> Option<T>) -> Option<T> {
    if !READY.with_borrow(|ready| ready.is_of(text)) {
        gaps_of_next(text)?;
    }
    READY.with_borrow(|ready| work(&ready.tokens, ready.opened))
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
    use crate::lex::lex;

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
        let pieces = ["a", "1", "1.", ".", "./a", "a/b", "<a>", "~/", "\"x ${y}\"", "''z''", ":", "a:b", "/", "//", "-", "+", "or", "${", "}", "{", "<", "|>", "...", "\0"];
        let gaps = ["", " ", "\n\t", "# c\n", "/**/", "/* a */ ", " /* * */# b\r\n"];
        for one in pieces {
            for two in pieces {
                for three in pieces {
                    for (first, second) in gaps.iter().flat_map(|first| gaps.iter().map(move |second| (first, second))) {
                        let text = format!("{first}{one}{first}{two}{second}{three}{second}");
                        let Some(essence) = essence(text.as_bytes()) else { continue };
                        let mut all = lex(None, text.as_bytes(), true, Vec::new()).tokens;
                        all.retain(|token| token.kind != Kind::PathEnd && token.kind != Kind::Eof);
                        assert_eq!(Some(&essence), gathered(text.as_bytes(), &all).as_ref(), "{text:?}");
                        let owned = |tokens: Vec<(Kind, &[u8])>| tokens.into_iter().map(|(kind, bytes)| (kind, bytes.to_vec())).collect::<Vec<_>>();
                        assert_eq!(owned(tokens(text.as_bytes())), owned(tokens(&essence)), "{text:?}");
                    }
                }
            }
        }
    }
}
