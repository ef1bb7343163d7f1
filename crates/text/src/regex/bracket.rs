//! Bracket expressions: `[a-z]`, `[^[:space:]]`, `[[.hyphen.]]`, `[[=a=]]`, in the "C" locale.

use super::Error;
use super::nfa::ByteSet;
use super::scan::{Scanner, Token};

/// What stands before a possible dash.
#[derive(Clone, Copy)]
enum Last {
    Nothing,
    Byte(u8),
    Class,
}

/// Reads a bracket expression after its opening.
pub(super) fn parse(scanner: &mut Scanner, negated: bool) -> Result<ByteSet, Error> {
    let mut set = ByteSet::default();
    let mut last = Last::Nothing;
    if let Some(byte) = scanner.take_byte()? {
        last = Last::Byte(byte);
    } else if scanner.take(Token::Dash)? {
        last = Last::Byte(b'-');
    }
    while term(scanner, &mut set, &mut last)? {}
    flush(&mut set, last);
    Ok(if negated { set.complement() } else { set })
}

fn flush(set: &mut ByteSet, last: Last) {
    if let Last::Byte(byte) = last {
        set.insert(byte);
    }
}

/// One element; false at the end of the bracket.
fn term(scanner: &mut Scanner, set: &mut ByteSet, last: &mut Last) -> Result<bool, Error> {
    if scanner.take(Token::BracketClose)? {
        return Ok(false);
    }
    if let Some(name) = scanner.take_value(Token::CollatingSymbol)? {
        let byte = collating_element(name)?;
        flush(set, *last);
        set.insert(byte);
        *last = Last::Byte(byte);
    } else if let Some(name) = scanner.take_value(Token::EquivalenceClass)? {
        flush(set, *last);
        *last = Last::Class;
        // NIX: equivalence is equality without case.
        let byte = collating_element(name)?;
        set.insert(byte.to_ascii_lowercase());
        set.insert(byte.to_ascii_uppercase());
    } else if let Some(name) = scanner.take_value(Token::CharacterClass)? {
        flush(set, *last);
        *last = Last::Class;
        let holds = character_class(name)?;
        (0..128u8).filter(|&byte| holds(byte)).for_each(|byte| set.insert(byte));
    } else if let Some(byte) = scanner.take_byte()? {
        flush(set, *last);
        *last = Last::Byte(byte);
    } else if scanner.take(Token::Dash)? {
        if scanner.take(Token::BracketClose)? {
            flush(set, *last);
            *last = Last::Byte(b'-');
            return Ok(false);
        }
        // NIX: a dash that neither opens nor closes the bracket must stand between two single characters.
        let Last::Byte(low) = *last else { return Err(Error::Invalid) };
        let high = match scanner.take_byte()? {
            Some(byte) => byte,
            None if scanner.take(Token::Dash)? => b'-',
            None => return Err(Error::Invalid),
        };
        range(set, low, high)?;
        *last = Last::Nothing;
    } else {
        return Err(Error::Invalid);
    }
    Ok(true)
}

/// NIX: `char` is signed, so bytes from 0x80 up sort before ASCII.
fn range(set: &mut ByteSet, low: u8, high: u8) -> Result<(), Error> {
    let (low, high) = (low as i8, high as i8);
    if low > high {
        return Err(Error::Invalid);
    }
    (low..=high).for_each(|byte| set.insert(byte as u8));
    Ok(())
}

fn character_class(name: &[u8]) -> Result<fn(u8) -> bool, Error> {
    Ok(match name.to_ascii_lowercase().as_slice() {
        b"d" | b"digit" => |byte| byte.is_ascii_digit(),
        b"w" => |byte| byte.is_ascii_alphanumeric() || byte == b'_',
        b"s" | b"space" => |byte| matches!(byte, b' ' | 0x09..=0x0d),
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"print" => |byte| matches!(byte, 0x20..=0x7e),
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        _ => return Err(Error::Invalid),
    })
}

/// The byte named by `[.name.]`: a letter by itself, everything else by its POSIX name.
fn collating_element(name: &[u8]) -> Result<u8, Error> {
    if let [byte] = name
        && byte.is_ascii_alphabetic()
    {
        return Ok(*byte);
    }
    let find = |names: &[&str], from: u8| {
        names.iter().position(|known| known.as_bytes() == name).map(|index| from + index as u8)
    };
    find(CONTROLS_TO_AT, 0)
        .or_else(|| find(BETWEEN_LETTERS, b'['))
        .or_else(|| find(AFTER_LETTERS, b'{'))
        .ok_or(Error::Invalid)
}

#[rustfmt::skip]
const CONTROLS_TO_AT: &[&str] = &[
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "alert", "backspace", "tab", "newline", "vertical-tab",
    "form-feed", "carriage-return", "SO", "SI", "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM",
    "SUB", "ESC", "IS4", "IS3", "IS2", "IS1", "space", "exclamation-mark", "quotation-mark", "number-sign",
    "dollar-sign", "percent-sign", "ampersand", "apostrophe", "left-parenthesis", "right-parenthesis", "asterisk",
    "plus-sign", "comma", "hyphen", "period", "slash", "zero", "one", "two", "three", "four", "five", "six", "seven",
    "eight", "nine", "colon", "semicolon", "less-than-sign", "equals-sign", "greater-than-sign", "question-mark",
    "commercial-at",
];
const BETWEEN_LETTERS: &[&str] =
    &["left-square-bracket", "backslash", "right-square-bracket", "circumflex", "underscore", "grave-accent"];
const AFTER_LETTERS: &[&str] = &["left-curly-bracket", "vertical-line", "right-curly-bracket", "tilde", "DEL"];
