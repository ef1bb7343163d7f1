//! Numbers, dates and times: everything that begins with a digit or a sign, `inf` and `nan`.

use super::parse::Cursor;
use super::{Error, Value};

const INTEGER_HINT: &str = "Hint: valid  : -42, 1_000, 1_2_3_4_5, 0xC0FFEE, 0b0010, 0o755\n\
                            Hint: invalid: _42, 1__000, 0123\n";
const FLOAT_HINT: &str = "Hint: valid  : +1.0, -2e-2, 3.141_592_653_589, inf, nan\n\
                          Hint: invalid: .0, 1., _1.0, 1.0_, 1_.0, 1.0__0\n";
const TIME_HINT: &str = "Hint: valid  : 1979-05-27T07:32:00, 1979-05-27 07:32:00.999999\n\
                         Hint: invalid: 1979-05-27T7:32:00, 1979-05-27 17:32\n";
const DATETIME_HINT: &str = "Hint: valid  : 1979-05-27T07:32:00-07:00, 1979-05-27 07:32:00.999999Z\n\
                             Hint: invalid: 1979-05-27T7:32:00-7:00, 1979-05-27 7:32-00:30";
const OFFSET_HINT: &str = "Hint: valid  : +09:00, -05:30\nHint: invalid: +9:00,  -5:30\n";

/// Length of digits with single underscores between them.
fn digits(text: &[u8], is_digit: fn(&u8) -> bool) -> usize {
    let mut length = 0;
    loop {
        match &text[length..] {
            [first, ..] if is_digit(first) => length += 1,
            [b'_', next, ..] if length > 0 && is_digit(next) => length += 2,
            _ => return length,
        }
    }
}

/// Whether a text begins as a pattern says: `0` stands for a digit, everything else for itself.
fn looks_like(text: &[u8], pattern: &[u8]) -> bool {
    agreement(text, pattern) == pattern.len()
}

/// How far a text goes as a pattern says.
fn agreement(text: &[u8], pattern: &[u8]) -> usize {
    let agrees = |(byte, expected): &(&u8, &u8)| match expected {
        b'0' => byte.is_ascii_digit(),
        _ => byte == expected,
    };
    text.iter().zip(pattern).take_while(agrees).count()
}

fn number(text: &[u8]) -> u32 {
    text.iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'))
}

/// Length of a decimal integer with its sign.
fn decimal(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    match text.get(sign) {
        Some(b'0') => sign + 1,
        Some(b'1'..=b'9') => sign + digits(&text[sign..], u8::is_ascii_digit),
        _ => 0,
    }
}

/// Length of an exponent, `e` included.
fn exponent(text: &[u8]) -> usize {
    let [b'e' | b'E', rest @ ..] = text else { return 0 };
    let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
    match digits(&rest[sign..], u8::is_ascii_digit) {
        0 => 0,
        length => 1 + sign + length,
    }
}

/// Length of a float.
fn float(text: &[u8]) -> usize {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    if matches!(text.get(sign..sign + 3), Some(b"inf" | b"nan")) {
        return sign + 3;
    }
    let whole = decimal(text);
    if whole == 0 {
        return 0;
    }
    let mut length = whole;
    if let [b'.', rest @ ..] = &text[whole..] {
        match digits(rest, u8::is_ascii_digit) {
            0 => {}
            fraction => length += 1 + fraction,
        }
    }
    length += exponent(&text[length..]);
    if length == whole { 0 } else { length }
}

impl Cursor<'_> {
    /// A value that is neither string, boolean, array nor table.
    pub fn number(&mut self) -> Result<Value, Error> {
        let text = self.rest();
        if looks_like(text, b"0000-00-00") {
            return self.date().map(Value::Timestamp);
        }
        if looks_like(text, b"00:00:00") {
            return self.time().map(Value::Timestamp);
        }
        let length = float(text);
        if length > 0 {
            return self.float(length);
        }
        self.integer()
    }

    fn float(&mut self, length: usize) -> Result<Value, Error> {
        let text: String =
            self.rest()[..length].iter().filter(|&&byte| byte != b'_').map(|&byte| char::from(byte)).collect();
        self.at += length;
        if self.peek() == Some(b'_') {
            let title = "bad float: `_` must be surrounded by digits";
            return Err(self.error(title, "invalid underscore").with_hint(FLOAT_HINT));
        }
        let value = match text.as_str() {
            "nan" | "+nan" => f64::NAN.copysign(1.0),
            "-nan" => f64::NAN.copysign(-1.0),
            "inf" | "+inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            text => text.parse().unwrap_or(f64::INFINITY),
        };
        if value.is_infinite() && !text.ends_with("inf") {
            let title = "toml::parse_floating: failed to read floating point value from stream";
            return Err(self.error(title, "here"));
        }
        Ok(Value::Float(value))
    }

    fn integer(&mut self) -> Result<Value, Error> {
        let text = self.rest();
        let (name, radix, length, skip): (_, _, _, usize) = match text {
            [b'0', b'x', rest @ ..] => ("hex", 16, digits(rest, u8::is_ascii_hexdigit), 2),
            [b'0', b'o', rest @ ..] => ("oct", 8, digits(rest, |byte| matches!(byte, b'0'..=b'7')), 2),
            [b'0', b'b', rest @ ..] => ("bin", 2, digits(rest, |byte| matches!(byte, b'0' | b'1')), 2),
            _ => ("dec", 10, decimal(text), 0),
        };
        if length == 0 {
            return Err(match text.first() {
                Some(b'.') => {
                    let title = "bad float: integer part is required before decimal point";
                    self.error(title, "missing integer part").with_hint(FLOAT_HINT)
                }
                Some(b'_') => {
                    let title = "bad number: `_` must be surrounded by digits";
                    self.error(title, "digits required before `_`").with_hint(INTEGER_HINT)
                }
                _ => self.error("bad format: unknown value appeared", "here"),
            });
        }
        let written: String =
            text[skip..skip + length].iter().filter(|&&byte| byte != b'_').map(|&byte| char::from(byte)).collect();
        self.at += skip + length;
        self.check_end(written.trim_start_matches(['+', '-']) == "0" && radix == 10)?;
        i64::from_str_radix(&written, radix).map(Value::Integer).map_err(|_| {
            let what = if radix == 10 { "digits" } else { "value" };
            let title = format!("toml::parse_{name}_integer: too large integer: current max {what} = 2^63");
            self.error(&title, "must be < 2^63")
        })
    }

    /// Refuses what cannot follow an integer but looks as if it belonged to it.
    fn check_end(&mut self, zero: bool) -> Result<(), Error> {
        let (title, remark, hint) = match self.peek() {
            Some(b'_') if zero => {
                ("bad integer: leading zero is not allowed in decimal int", "leading zero", INTEGER_HINT)
            }
            Some(b'_') => ("bad integer: `_` must be surrounded by digits", "invalid underscore", INTEGER_HINT),
            Some(b'0') => {
                self.at -= 1;
                ("bad integer: leading zero", "leading zero is not allowed", INTEGER_HINT)
            }
            Some(b'1'..=b'9') => {
                ("bad integer: invalid digit after an integer", "this digit is not allowed", INTEGER_HINT)
            }
            Some(b':' | b'-') => ("bad datetime: invalid format", "here", DATETIME_HINT),
            Some(b'.' | b'e' | b'E') => ("bad float: invalid format", "here", FLOAT_HINT),
            _ => return Ok(()),
        };
        Err(self.error(title, remark).with_hint(hint))
    }

    /// A date, perhaps with a time and an offset.
    fn date(&mut self) -> Result<String, Error> {
        let text = self.rest();
        let (year, month, day) = (number(&text[..4]), number(&text[5..7]), number(&text[8..10]));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        if day == 0 || day > days {
            let remark = "month must be 01-12, day must be any of 01-28,29,30,31 depending on the month/year.";
            return Err(self.error("toml::parse_local_date: invalid date.", remark));
        }
        let mut out = format!("{year:04}-{month:02}-{day:02}");
        self.at += 10;
        let bad_time = "bad time: must be HH:MM:SS.subsec";
        match self.rest() {
            [b'T' | b't' | b' ', rest @ ..] if looks_like(rest, b"00:00:00") => {
                self.at += 1;
                out.push('T');
                out += &self.time()?;
                self.offset(&mut out)?;
            }
            [b'T' | b't', ..] | [b' ', b'0'..=b'9', ..] => {
                self.at += 1;
                self.at += agreement(self.rest(), b"00:00:00");
                return Err(self.error(bad_time, "expected digit [0-9]").with_hint(TIME_HINT));
            }
            [b'0'..=b'9', ..] => {
                return Err(self.error("bad datetime: missing T or space", "here").with_hint(TIME_HINT));
            }
            _ => {}
        }
        Ok(out)
    }

    /// `HH:MM:SS` with a fraction, which is written as 0, 3, 6 or 9 digits.
    fn time(&mut self) -> Result<String, Error> {
        let text = self.rest();
        let (hour, minute, second) = (number(&text[..2]), number(&text[3..5]), number(&text[6..8]));
        let title = "toml::parse_local_time: invalid time.";
        if hour > 23 || minute > 59 {
            return Err(self.error(title, "hour must be 00-23, minute must be 00-59."));
        }
        if second > 60 {
            return Err(self.error(title, "second must be 00-60."));
        }
        let mut out = format!("{hour:02}:{minute:02}:{second:02}");
        self.at += 8;
        if let [b'.', rest @ ..] = self.rest() {
            let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if length > 0 {
                let mut fraction = [b'0'; 9];
                let used = length.min(9);
                fraction[..used].copy_from_slice(&rest[..used]);
                let precision = match fraction.iter().rposition(|&digit| digit != b'0') {
                    None => 0,
                    Some(last) => (last / 3 + 1) * 3,
                };
                if precision > 0 {
                    out.push('.');
                    out.extend(fraction[..precision].iter().map(|&digit| char::from(digit)));
                }
                self.at += 1 + length;
            }
        }
        Ok(out)
    }

    /// `Z`, `+HH:MM`, `-HH:MM` or nothing.
    fn offset(&mut self, out: &mut String) -> Result<(), Error> {
        let text = self.rest();
        if let Some(b'Z' | b'z') = text.first() {
            out.push('Z');
            self.at += 1;
        } else if let [sign @ (b'+' | b'-'), rest @ ..] = text {
            if !looks_like(rest, b"00:00") {
                self.at += 1 + agreement(rest, b"00:00");
                let title = "bad offset: must be [+-]HH:MM or Z";
                return Err(self.error(title, "expected z or Z or digit [0-9]").with_hint(OFFSET_HINT));
            }
            let (hour, minute) = (number(&rest[..2]), number(&rest[3..5]));
            if hour > 24 || minute > 60 {
                let title = "toml::parse_offset_datetime: too large offset: |hour| <= 24, |minute| <= 60";
                return Err(self.error_at(self.at..self.at + 6, title, "here"));
            }
            match hour * 60 + minute {
                0 => out.push('Z'),
                total => {
                    out.push(char::from(*sign));
                    *out += &format!("{:02}:{:02}", total / 60, total % 60);
                }
            }
            self.at += 6;
        }
        Ok(())
    }
}
