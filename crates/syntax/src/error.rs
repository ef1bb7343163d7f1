//! Parse errors, in Nix's words.

use firn_source::{Origin, Pos};
use std::fmt;

/// Why a text is not an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Where; [`Pos::NONE`] when Nix names no place.
    pub pos: Pos,
    /// Nix's text, without `error: ` and without the source excerpt. Bytes, because it may quote the source.
    pub message: Vec<u8>,
}

impl ParseError {
    pub(crate) fn new(pos: Pos, message: impl Into<Vec<u8>>) -> ParseError {
        ParseError { pos, message: message.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.message))?;
        if self.pos.is_some() {
            let mut place = Vec::new();
            write_place(self.pos, &mut place);
            write!(f, " at {}", String::from_utf8_lossy(&place))?;
        }
        Ok(())
    }
}

impl std::error::Error for ParseError {}

/// Writes a position as Nix does inside a message: `file:line:column`.
pub(crate) fn write_place(pos: Pos, out: &mut Vec<u8>) {
    let Some(location) = pos.resolve() else {
        out.extend_from_slice("«none»:0".as_bytes());
        return;
    };
    match location.file.origin() {
        Origin::File(path) => out.extend_from_slice(path),
        Origin::Stdin => out.extend_from_slice("«stdin»".as_bytes()),
        Origin::Expression => out.extend_from_slice("«string»".as_bytes()),
        Origin::Internal(name) => out.extend_from_slice(name.as_bytes()),
    }
    out.extend_from_slice(format!(":{}:{}", location.line, location.column).as_bytes());
}
