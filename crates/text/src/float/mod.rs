//! Numbers as text: how Nix prints floats in each place, and how its literals are read.
//!
//! Three printed forms: [`write_general`] for values, XML and error messages (a C++ stream's default, six significant
//! digits), [`write_fixed`] for `toString` and interpolation (six decimals), [`write_json`] for `toJSON`.

mod grisu;

pub use grisu::write_json;

use std::fmt::Write as _;

/// Text of a float that is not finite, as C prints it.
fn special(value: f64) -> Option<&'static str> {
    match (value.is_nan(), value.is_sign_negative()) {
        (true, false) => Some("nan"),
        (true, true) => Some("-nan"),
        (false, _) if value.is_finite() => None,
        (false, false) => Some("inf"),
        (false, true) => Some("-inf"),
    }
}

/// As `%g`: six significant digits without trailing zeros, an exponent below 1e-4 and from 1e6 up.
pub fn write_general(out: &mut Vec<u8>, value: f64) {
    if let Some(text) = special(value) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    // One digit before the point and five after it: the exponent is the one after rounding, as `%g` wants it.
    let mut text = String::with_capacity(16);
    // Writing to a string does not fail.
    let _ = write!(text, "{value:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let decimals = (5 - exponent) as usize;
        let mut fixed = String::with_capacity(16);
        let _ = write!(fixed, "{value:.decimals$}");
        out.extend_from_slice(without_trailing_zeros(&fixed).as_bytes());
    } else {
        out.extend_from_slice(without_trailing_zeros(mantissa).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    }
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// As `%f`: six decimals.
pub fn write_fixed(out: &mut Vec<u8>, value: f64) {
    match special(value) {
        Some(text) => out.extend_from_slice(text.as_bytes()),
        None => out.extend_from_slice(format!("{value:.6}").as_bytes()),
    }
}

/// Reads a decimal integer: an optional sign and digits, nothing else, `None` outside 64 bits.
pub fn parse_int(text: &[u8]) -> Option<i64> {
    let digits = match text {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads a float literal of the language (its form already checked by the lexer). `None` where C's `strtod` reports a
/// range error: too large, or so small that precision is lost.
pub fn parse_literal(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let value: f64 = text.parse().ok()?;
    if value.is_infinite() || (!value.is_normal() && !is_exact(text, value)) {
        return None;
    }
    Some(value)
}

/// Whether a subnormal or zero is the very number that was written.
fn is_exact(text: &str, value: f64) -> bool {
    if value == 0.0 {
        let mantissa = text.split(['e', 'E']).next().unwrap_or("");
        return !mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    }
    // A subnormal has at most 767 significant digits.
    decimal(text) == decimal(&format!("{value:.800e}"))
}

/// Significant digits and the power of ten of the first one.
fn decimal(text: &str) -> (String, i64) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let exponent: i64 = exponent.parse().unwrap_or(i64::MIN / 2);
    let first = exponent + whole.len() as i64 - 1 - leading as i64;
    (digits.trim_matches('0').to_owned(), first)
}
