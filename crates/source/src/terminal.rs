//! What reaches a terminal: colours, and Nix's filter for text that may hold escape sequences.

use unicode_width::UnicodeWidthChar;

/// Red, for errors.
pub const RED: &str = "\x1b[31;1m";
/// Blue, for the word before a place.
pub const BLUE: &str = "\x1b[34;1m";
/// Magenta, for warnings and highlighted parts.
pub const MAGENTA: &str = "\x1b[35;1m";
/// Ends a colour.
pub const PLAIN: &str = "\x1b[0m";

/// Text as Nix's log writes it: escape sequences other than colours are removed (with `plain` the colours too), tabs become
/// spaces, carriage returns and bells vanish.
///
/// NIX: a tab reaches to the next multiple of eight counted from the beginning of the whole text, newlines counting nothing.
pub fn filter_escapes(text: &[u8], plain: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut width = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            0x1b => {
                let (length, is_color) = escape_sequence(&text[at..]);
                if is_color && !plain {
                    out.extend_from_slice(&text[at..at + length]);
                }
                at += length;
            }
            b'\t' => {
                let spaces = 8 - width % 8;
                out.resize(out.len() + spaces, b' ');
                width += spaces;
                at += 1;
            }
            b'\r' | 7 => at += 1,
            _ => {
                let (columns, bytes) = char_width(&text[at..]);
                out.extend_from_slice(&text[at..at + bytes]);
                width += columns;
                at += bytes;
            }
        }
    }
    out
}

/// The length of the escape sequence that the text begins with, and whether it sets a colour.
fn escape_sequence(text: &[u8]) -> (usize, bool) {
    let run = |from: usize, accept: fn(&u8) -> bool| from + text[from..].iter().take_while(|b| accept(b)).count();
    match text.get(1) {
        Some(b'[') => {
            let parameters = run(2, |b| (0x30..=0x3f).contains(b));
            let end = run(parameters, |b| (0x20..=0x2f).contains(b));
            match text.get(end) {
                Some(&last @ 0x40..=0x7e) => (end + 1, last == b'm'),
                _ => (end, false),
            }
        }
        Some(b']') => {
            let end = run(2, |&b| b != 0x1b && b != 7);
            match (text.get(end), text.get(end + 1)) {
                (Some(0x1b), Some(b'\\')) => (end + 2, false),
                (Some(_), _) => (end + 1, false),
                (None, _) => (end, false),
            }
        }
        Some(0x40..=0x5f) => (2, false),
        _ => (1, false),
    }
}

/// Columns and bytes of the first character; what is not UTF-8 counts by bytes.
fn char_width(text: &[u8]) -> (usize, usize) {
    let length = match text[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return (1, 1),
    };
    let continued = text[1..].iter().take(length - 1).take_while(|&&b| b & 0xc0 == 0x80).count();
    if continued + 1 < length {
        return (continued + 1, continued + 1);
    }
    match std::str::from_utf8(&text[..length]).ok().and_then(|s| s.chars().next()) {
        Some(c) => (c.width().unwrap_or(0), length),
        None => (length, length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_when_plain_and_other_sequences_always() {
        let text = b"\x1b[31;1merror:\x1b[0m a\x1b[2Kb\x1b]8;;x\x07c\x1b]8;;\x1b\\d\x1bMe";
        assert_eq!(filter_escapes(text, true), b"error: abcde");
        assert_eq!(filter_escapes(text, false), b"\x1b[31;1merror:\x1b[0m abcde");
    }

    #[test]
    fn tabs_count_from_the_beginning_of_the_text() {
        assert_eq!(filter_escapes(b"ab\tc\r\n\td\x07", true), b"ab      c\n       d");
        assert_eq!(filter_escapes("é\tx".as_bytes(), true), "é       x".as_bytes());
        assert_eq!(filter_escapes(b"\xff\xe2\x82x", true), b"\xff\xe2\x82x");
    }
}
