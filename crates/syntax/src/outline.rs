//! `Outline`: a file that ends with a large set over a `with`, cut into what the set binds and the rest (spec L2.5).
//!
//! Called by the host, which observes such files binding by binding, like `all-packages.nix` of nixpkgs. What stands in one binding cannot
//! change what another means: the set is not recursive, and names that nobody binds are looked up in the `with`, so that no name in it
//! is an error either. Cut by tokens, not by the tree: this is asked again of texts that nobody parses.

use crate::essence::{essence, gathered, with_tokens};
use crate::token::{Kind, Token};
use crate::{Apart, Features};
use firn_source::SourceText;
use std::ops::Range;

/// Shorter texts are not cut.
const LEAST_TEXT: usize = 4 << 10;
/// Sets that bind fewer names are not cut.
const LEAST_BOUND: usize = 64;

/// Where a file's large set begins, what is bound in it, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// Where the set begins.
    pub start: u32,
    /// The tokens before and after what is bound.
    pub rest: Vec<u8>,
    /// What is bound, in the order of the text. Several may bind one name.
    pub bound: Vec<Bound>,
}

/// A name that a text binds, by where it stands: `a.b = 1;` binds `a`.
// PERF: of ten thousand bindings a few hundred are looked at; copying the tokens of all took a hundredth of a small evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    name: (u32, u32),
    code: (u32, u32),
    /// The code goes on with the name alone: one of several that are inherited.
    is_inherited: bool,
}

impl Bound {
    /// The name, of the text that was cut.
    pub fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.name.0 as usize..self.name.1 as usize).unwrap_or_default()
    }

    /// The tokens that bind it, of the text that was cut.
    pub fn code(&self, text: &[u8]) -> Vec<u8> {
        let code = text.get(self.code.0 as usize..self.code.1 as usize).unwrap_or_default();
        // No token goes on across the semicolon that ends a binding, nor across a blank: alone it has the tokens that it has there.
        // What is no text by itself is part of none, and whoever asks sees that.
        let code = essence(code).unwrap_or_else(|| code.to_vec());
        if self.is_inherited { [&code[..], b" ", self.name(text)].concat() } else { code }
    }
}

/// A text cut into its bindings; none if it is not of that kind. What does not parse may seem to be.
///
/// ```
/// let names: String = (0..99).map(|i| format!("a_name_that_is_not_too_short_for_this_{i} = {i};\n")).collect();
/// let text = format!("pkgs: with pkgs; {{ {names} inherit (a) b; }}").into_bytes().into();
/// let outline = firn_syntax::outline(&text).unwrap();
/// assert_eq!(outline.rest, b"pkgs: with pkgs; { }");
/// let bound = outline.bound[99];
/// assert_eq!((bound.name(&text), &bound.code(&text)[..]), (&b"b"[..], &b"inherit (a) b"[..]));
/// ```
pub fn outline(text: &SourceText) -> Option<Outline> {
    if text.len() < LEAST_TEXT {
        return None;
    }
    with_tokens(text, |tokens, opened| cut(text, tokens, opened? as usize))
}

/// As [`outline`], of a text that is known to be of the language, whatever the settings are, and of which nothing is to be said.
pub fn outline_of_sound(text: &SourceText) -> Option<Outline> {
    let outline = outline(text)?;
    // Whoever asks may be verifying: names must not become symbols before the program has them.
    Apart::default().parse(text.clone(), Features::default())?;
    Some(outline)
}

/// `open`: the token that opened what the last closing brace closes.
fn cut(text: &[u8], tokens: &[Token], open: usize) -> Option<Outline> {
    let (_eof, tokens) = tokens.split_last()?;
    let close = tokens.len().checked_sub(1).filter(|&at| tokens[at].kind == Kind::RBrace)?;
    tokens.get(open).filter(|token| token.kind == Kind::LBrace)?;
    let over = tokens.get(open.checked_sub(3)?..open)?;
    if [over[0].kind, over[1].kind, over[2].kind] != [Kind::With, Kind::Id, Kind::Semicolon] || tokens[..open].iter().any(is_unsure) {
        return None;
    }
    let mut bound = Vec::with_capacity((close - open) / 8);
    let mut waiting = Vec::new();
    let mut at = open + 1;
    while at < close {
        let end = binding_end(tokens, at, close, &mut waiting)?;
        bind(text, tokens, at..end, &mut bound)?;
        at = end + 1;
    }
    let rest = [gathered(text, &tokens[..=open])?, gathered(text, &tokens[close..])?].join(&b' ');
    (bound.len() >= LEAST_BOUND).then_some(Outline { start: tokens[open].start, rest, bound })
}

/// Whether what a token means depends on settings.
fn is_unsure(token: &Token) -> bool {
    matches!(token.kind, Kind::Uri | Kind::HPath | Kind::PipeFrom | Kind::PipeInto)
}

/// Where the binding that begins at a token has its semicolon. None where what it means depends on settings.
///
/// `waiting`, which is made anew: for each bracket, and each `let` that waits for its `in`, semicolons that belong to a `with` or an `assert`.
fn binding_end(tokens: &[Token], from: usize, close: usize, waiting: &mut Vec<(Kind, u32)>) -> Option<usize> {
    waiting.clear();
    waiting.push((Kind::Eof, 0));
    for at in from..close {
        let kind = tokens[at].kind;
        match kind {
            Kind::LParen | Kind::LBrace | Kind::LBracket | Kind::DollarCurly => waiting.push((kind, 0)),
            Kind::Let if tokens[at + 1].kind != Kind::LBrace => waiting.push((kind, 0)),
            Kind::RParen | Kind::RBrace | Kind::RBracket => {
                waiting.pop().filter(|(opened, _)| *opened != Kind::Let && *opened != Kind::Eof)?;
            }
            Kind::In => {
                waiting.pop().filter(|(opened, _)| *opened == Kind::Let)?;
            }
            Kind::With | Kind::Assert => waiting.last_mut()?.1 += 1,
            Kind::Semicolon => match waiting.last_mut()? {
                (_, more) if *more > 0 => *more -= 1,
                (Kind::Eof, _) => return Some(at),
                _ => {}
            },
            _ if is_unsure(&tokens[at]) => return None,
            _ => {}
        }
    }
    None
}

/// What one binding binds. None where a name is computed, or written in a way that would have to be undone.
fn bind(text: &[u8], tokens: &[Token], binding: Range<usize>, bound: &mut Vec<Bound>) -> Option<()> {
    let mut at = binding.start;
    let code_to = |end: usize| Some((tokens[binding.start].start, tokens.get(end.checked_sub(1)?)?.end));
    if tokens[at].kind != Kind::Inherit {
        let (name, _) = name(text, tokens, at)?;
        bound.push(Bound { name, code: code_to(binding.end)?, is_inherited: false });
        return Some(());
    }
    at += 1;
    if tokens[at].kind == Kind::LParen {
        let mut depth = 0usize;
        loop {
            match tokens.get(at)?.kind {
                Kind::LParen => depth += 1,
                Kind::RParen => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    let code = code_to(at)?;
    while at < binding.end {
        let (name, after) = name(text, tokens, at)?;
        bound.push(Bound { name, code, is_inherited: true });
        at = after;
    }
    Some(())
}

/// The name at a token, and the token after it.
fn name(text: &[u8], tokens: &[Token], at: usize) -> Option<((u32, u32), usize)> {
    let place = |token: &Token| (token.start, token.end);
    match tokens[at].kind {
        Kind::Id | Kind::OrKw => Some((place(&tokens[at]), at + 1)),
        Kind::Quote => {
            let [inside, end] = tokens.get(at + 1..at + 3)? else { return None };
            let is_plain = |bytes: &&[u8]| !bytes.contains(&b'\\') && !bytes.contains(&b'\r');
            text.get(inside.start as usize..inside.end as usize).filter(is_plain)?;
            (inside.kind == Kind::Str && end.kind == Kind::Quote).then(|| (place(inside), at + 3))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filler() -> String {
        (0..100).map(|i| format!("  filler_with_a_long_name_{i} = with x; let y = {i}; in assert y == 1; {{ a = y; }};\n")).collect()
    }

    fn text(before: &str, inside: &str) -> SourceText {
        format!("{before} {{\n{}{inside}}}\n", filler()).into_bytes().into()
    }

    fn cut(before: &str, inside: &str) -> Option<Outline> {
        outline(&text(before, inside))
    }

    #[test]
    fn bindings_are_cut_where_they_end() {
        let inside = "a = x: with y; z; b.c = let d = 1; e = with f; g; in [ d { h = 1; i = 2; } ];
            \"j-k\" = \"${let l = 1; in l}; m\"; inherit n o; inherit (p { q = 1; }) r \"s t\"; u = assert v; w; u.x = ''a;${b;}'';
            y = let { body = 1; z = 2; };";
        // `${b;}` is no expression: cutting asks only for brackets.
        let text = text("{ lib }: self: with self;", inside);
        let outline = outline(&text).expect("cut");
        assert_eq!(outline.rest, b"{ lib }: self: with self; { }");
        let show = |bound: &Bound| format!("{} | {}", String::from_utf8_lossy(bound.name(&text)), String::from_utf8_lossy(&bound.code(&text)));
        let shown: Vec<String> = outline.bound[100..].iter().map(show).collect();
        assert_eq!(
            shown,
            [
                "a | a = x: with y; z",
                "b | b.c = let d = 1; e = with f; g; in [ d { h = 1; i = 2; } ]",
                "j-k | \"j-k\" = \"${let l = 1; in l}; m\"",
                "n | inherit n",
                "o | inherit o",
                "r | inherit (p { q = 1; }) r",
                "s t | inherit (p { q = 1; }) s t",
                "u | u = assert v; w",
                "u | u.x = ''a;${b;}''",
                "y | y = let { body = 1; z = 2; }",
            ]
        );
    }

    #[test]
    fn what_cannot_be_told_apart_is_not_cut() {
        assert!(cut("pkgs: with pkgs;", "").is_some());
        for (before, inside) in [
            ("pkgs: with pkgs; rec", ""),
            ("pkgs:", ""),
            ("pkgs: assert pkgs;", ""),
            ("pkgs: with pkgs.a;", ""),
            ("pkgs: with pkgs; f", ""),
            ("pkgs: with pkgs;", "${a} = 1;"),
            ("pkgs: with pkgs;", "\"${a}\" = 1;"),
            ("pkgs: with pkgs;", "\"a\\n\" = 1;"),
            ("pkgs: with pkgs;", "a = ~/b;"),
            ("pkgs: with pkgs;", "a = http://b;"),
            ("pkgs: with pkgs;", "a = b |> c;"),
        ] {
            assert_eq!(cut(before, inside), None, "{before} {inside}");
        }
        assert!(outline_of_sound(&format!("p: with p; {{ {} }}", filler()).into_bytes().into()).is_some());
        assert!(outline_of_sound(&format!("p: with p; {{ {} a = 1; a = 2; }}", filler()).into_bytes().into()).is_none());
        assert_eq!(firn_source::Symbol::find(b"filler_with_a_long_name_7"), None, "no name became a symbol");
    }
}
