//! Integers and floats.

use super::{DIGIT, Lexer, PATH, Step, is};
use crate::token::Kind;

impl Lexer {
    pub(super) fn number(&mut self) -> Step {
        let start = self.at;
        let digits = self.end_of(start, DIGIT);
        let after = self.text.get(digits).copied().unwrap_or(0);
        if (is(after, PATH) || after == b'/') && start >= self.plain_until && self.run() {
            return Ok(());
        }
        if after == b'.' {
            // NIX: a float starts with 1-9 and may end in its point, or is `0.` and at least one digit.
            let fraction = self.end_of(digits + 1, DIGIT);
            let zero = digits == start + 1 && self.text[start] == b'0' && fraction > digits + 1;
            if self.text[start] != b'0' || zero {
                return self.float(start, fraction);
            }
        }
        let text = &self.text[start..digits];
        if text.len() > 18 && parse_int(text).is_none() {
            return self.fail(start, quoted("invalid integer '", text));
        }
        self.take(Kind::Int, digits - start);
        Ok(())
    }

    /// A float whose digits end at `end`, an exponent not yet looked at.
    pub(super) fn float(&mut self, start: usize, end: usize) -> Step {
        let mut end = end;
        if self.text.get(end).is_some_and(|b| b | 0x20 == b'e') {
            let sign = usize::from(matches!(self.text.get(end + 1), Some(b'+' | b'-')));
            let exponent = self.end_of(end + 1 + sign, DIGIT);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let text = &self.text[start..end];
        let value = parse_float(text);
        let mantissa = text.iter().take_while(|b| **b | 0x20 != b'e');
        // NIX: strtod's range errors: overflow, and a result that lost digits to being subnormal.
        let tiny = value < f64::MIN_POSITIVE && mantissa.into_iter().any(|b| (b'1'..=b'9').contains(b));
        if value.is_infinite() || tiny {
            return self.fail(start, quoted("invalid float '", text));
        }
        self.take(Kind::Float, end - start);
        Ok(())
    }
}

fn quoted(start: &str, text: &[u8]) -> Vec<u8> {
    [start.as_bytes(), text, b"'"].concat()
}

/// The value of an integer literal; `None` when it does not fit.
pub(crate) fn parse_int(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0i64, |n, b| n.checked_mul(10)?.checked_add(i64::from(b - b'0')))
}

/// The value of a float literal, infinite when it does not fit.
pub(crate) fn parse_float(text: &[u8]) -> f64 {
    std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).unwrap_or(f64::INFINITY)
}
