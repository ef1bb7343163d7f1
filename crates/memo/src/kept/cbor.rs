//! Deterministic CBOR (RFC 8949 §4.2): the one byte sequence that a datum has, and a reader that accepts no other.
//!
//! Everything that is stored is written by [`Writer`] and read by [`Reader`]. The reader never allocates more than its
//! input is long, never recurses, and refuses indefinite lengths, longer forms than needed, reserved values and bytes left
//! over: two different byte strings never mean the same datum.

use std::fmt;

/// Writes one datum.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const SIMPLE: u8 = 7;

impl Writer {
    /// Nothing yet.
    pub fn new() -> Writer {
        Writer::default()
    }

    /// Nothing yet, with room for this many bytes.
    pub fn with_capacity(capacity: usize) -> Writer {
        Writer { bytes: Vec::with_capacity(capacity) }
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// How much was written.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    fn head(&mut self, major: u8, argument: u64) {
        if argument < 24 { self.bytes.push(major << 5 | argument as u8) } else { self.long_head(major << 5, argument) }
    }

    fn long_head(&mut self, major: u8, argument: u64) {
        match argument {
            0..=0xff => self.bytes.extend_from_slice(&[major | 24, argument as u8]),
            0x100..=0xffff => {
                self.bytes.push(major | 25);
                self.bytes.extend_from_slice(&(argument as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.bytes.push(major | 26);
                self.bytes.extend_from_slice(&(argument as u32).to_be_bytes());
            }
            _ => {
                self.bytes.push(major | 27);
                self.bytes.extend_from_slice(&argument.to_be_bytes());
            }
        }
    }

    /// A number that is not negative.
    pub fn unsigned(&mut self, number: u64) -> &mut Writer {
        self.head(UNSIGNED, number);
        self
    }

    /// A number.
    pub fn integer(&mut self, number: i64) -> &mut Writer {
        match u64::try_from(number) {
            Ok(number) => self.head(UNSIGNED, number),
            Err(_) => self.head(NEGATIVE, !(number as u64)),
        }
        self
    }

    /// Bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.head(BYTES, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Text.
    pub fn text(&mut self, text: &str) -> &mut Writer {
        self.head(TEXT, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self
    }

    /// An array of this many items, which follow.
    pub fn array(&mut self, len: usize) -> &mut Writer {
        self.head(ARRAY, len as u64);
        self
    }

    /// A map of this many pairs, which follow: keys ascending by their encoding.
    pub fn map(&mut self, len: usize) -> &mut Writer {
        self.head(MAP, len as u64);
        self
    }

    /// A tag for the item that follows.
    pub fn tag(&mut self, tag: u64) -> &mut Writer {
        self.head(TAG, tag);
        self
    }

    /// A truth value.
    pub fn bool(&mut self, truth: bool) -> &mut Writer {
        self.bytes.push(SIMPLE << 5 | if truth { 21 } else { 20 });
        self
    }

    /// Null.
    pub fn null(&mut self) -> &mut Writer {
        self.bytes.push(SIMPLE << 5 | 22);
        self
    }

    /// A float in the shortest form that holds it exactly; every NaN is the one NaN.
    pub fn float(&mut self, float: f64) -> &mut Writer {
        if float.is_nan() {
            self.bytes.extend_from_slice(&[0xf9, 0x7e, 0x00]);
        } else if let Some(half) = to_half(float) {
            self.bytes.push(0xf9);
            self.bytes.extend_from_slice(&half.to_be_bytes());
        } else if f64::from(float as f32).to_bits() == float.to_bits() {
            self.bytes.push(0xfa);
            self.bytes.extend_from_slice(&(float as f32).to_be_bytes());
        } else {
            self.bytes.push(0xfb);
            self.bytes.extend_from_slice(&float.to_be_bytes());
        }
        self
    }

    /// A datum that is already written.
    pub fn raw(&mut self, datum: &[u8]) -> &mut Writer {
        self.bytes.extend_from_slice(datum);
        self
    }
}

/// The half-precision form, if it holds the number exactly.
fn to_half(float: f64) -> Option<u16> {
    let sign = if float.is_sign_negative() { 0x8000 } else { 0 };
    if float == 0.0 {
        return Some(sign);
    }
    if float.is_infinite() {
        return Some(sign | 0x7c00);
    }
    let bits = float.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mantissa = bits & 0x000f_ffff_ffff_ffff;
    if (-14..=15).contains(&exponent) {
        if mantissa & 0x3ff_ffff_ffff != 0 {
            return None;
        }
        return Some(sign | ((exponent + 15) as u16) << 10 | (mantissa >> 42) as u16);
    }
    if (-24..=-15).contains(&exponent) {
        let full = mantissa | 1 << 52;
        let shift = (42 - 14 - exponent) as u32;
        let kept = full >> shift;
        return (kept << shift == full).then_some(sign | kept as u16);
    }
    None
}

fn from_half(half: u16) -> f64 {
    let sign = if half & 0x8000 == 0 { 1.0 } else { -1.0 };
    let mantissa = f64::from(half & 0x3ff);
    match (half >> 10) & 0x1f {
        0 => sign * mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        exponent => sign * (1.0 + mantissa / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
    }
}

/// Why bytes are not a datum of the expected kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// The input ends too early.
    Short,
    /// Not the one encoding that the datum has.
    NotCanonical,
    /// Another kind of item than expected.
    Unexpected,
    /// More than one datum.
    Trailing,
    /// Nested too deeply, or larger than allowed.
    TooLarge,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::Short => "ends too early",
            Malformed::NotCanonical => "is not in its canonical form",
            Malformed::Unexpected => "has an item of an unexpected kind",
            Malformed::Trailing => "has bytes left over",
            Malformed::TooLarge => "is too large or too deeply nested",
        })
    }
}

impl std::error::Error for Malformed {}

/// The head of the next item.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Item<'a> {
    /// A number.
    Integer(i64),
    /// A number above the signed range.
    Large(u64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Text.
    Text(&'a str),
    /// An array of so many items.
    Array(usize),
    /// A map of so many pairs.
    Map(usize),
    /// A tag for the next item.
    Tag(u64),
    /// A truth value.
    Bool(bool),
    /// Null.
    Null,
    /// A float.
    Float(f64),
}

/// Reads one datum, item by item.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

type Read<T> = Result<T, Malformed>;

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// What has not been read.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Refuses bytes left over.
    pub fn end(&self) -> Read<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed::Trailing) }
    }

    fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn argument(&mut self, short: u8) -> Read<u64> {
        let (width, least) = match short {
            0..=23 => return Ok(short.into()),
            24 => (1, 24),
            25 => (2, 0x100),
            26 => (4, 0x1_0000),
            27 => (8, 0x1_0000_0000),
            _ => return Err(Malformed::NotCanonical),
        };
        let number = self.take(width)?.iter().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        if number < least { Err(Malformed::NotCanonical) } else { Ok(number) }
    }

    /// The next item; of arrays and maps only the head.
    pub fn item(&mut self) -> Read<Item<'a>> {
        let [first] = self.take(1)? else { return Err(Malformed::Short) };
        let (major, short) = (first >> 5, first & 31);
        if major == SIMPLE {
            return self.simple(short);
        }
        let argument = self.argument(short)?;
        // Each item takes at least a byte: a length beyond what is left is a lie, and nothing is allocated for it.
        let len = |factor: usize| match usize::try_from(argument) {
            Ok(len) if len.checked_mul(factor).is_some_and(|bytes| bytes <= self.rest.len()) => Ok(len),
            _ => Err(Malformed::Short),
        };
        Ok(match major {
            UNSIGNED => i64::try_from(argument).map_or(Item::Large(argument), Item::Integer),
            NEGATIVE => Item::Integer(!i64::try_from(argument).map_err(|_| Malformed::Unexpected)?),
            BYTES => Item::Bytes(self.take(len(1)?)?),
            TEXT => Item::Text(std::str::from_utf8(self.take(len(1)?)?).map_err(|_| Malformed::Unexpected)?),
            ARRAY => Item::Array(len(1)?),
            MAP => Item::Map(len(2)?),
            _ => Item::Tag(argument),
        })
    }

    fn simple(&mut self, short: u8) -> Read<Item<'a>> {
        let before = self.rest;
        let float = match short {
            20 => return Ok(Item::Bool(false)),
            21 => return Ok(Item::Bool(true)),
            22 => return Ok(Item::Null),
            25 => from_half(u16::from_be_bytes(self.array_of()?)),
            26 => f64::from(f32::from_be_bytes(self.array_of()?)),
            27 => f64::from_be_bytes(self.array_of()?),
            _ => return Err(Malformed::Unexpected),
        };
        let mut again = Writer::new();
        again.float(float);
        // A longer form than needed, or another NaN than the one.
        if again.bytes[1..] != before[..before.len() - self.rest.len()] {
            return Err(Malformed::NotCanonical);
        }
        Ok(Item::Float(float))
    }

    fn array_of<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Malformed::Short)
    }

    /// The argument of the next item, which is of this kind.
    // PERF: who knows what comes next need not ask for everything that could: a third of reading a node.
    #[inline]
    fn argument_of(&mut self, kind: u8) -> Read<u64> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed::Short)?;
        if first >> 5 != kind {
            return Err(Malformed::Unexpected);
        }
        self.rest = rest;
        match first & 31 {
            short @ 0..24 => Ok(short.into()),
            long => self.argument(long),
        }
    }

    /// A number that is not negative.
    #[inline]
    pub fn unsigned(&mut self) -> Read<u64> {
        self.argument_of(UNSIGNED)
    }

    /// A number.
    pub fn integer(&mut self) -> Read<i64> {
        match self.item()? {
            Item::Integer(number) => Ok(number),
            _ => Err(Malformed::Unexpected),
        }
    }

    /// A number used as an index or a small count.
    pub fn index(&mut self) -> Read<usize> {
        usize::try_from(self.unsigned()?).map_err(|_| Malformed::TooLarge)
    }

    /// Bytes.
    #[inline]
    pub fn bytes(&mut self) -> Read<&'a [u8]> {
        let len = self.argument_of(BYTES)?;
        self.take(usize::try_from(len).map_err(|_| Malformed::Short)?)
    }

    /// Exactly so many bytes.
    pub fn fixed<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.bytes()?.try_into().map_err(|_| Malformed::Unexpected)
    }

    /// Text.
    pub fn text(&mut self) -> Read<&'a str> {
        match self.item()? {
            Item::Text(text) => Ok(text),
            _ => Err(Malformed::Unexpected),
        }
    }

    /// The length of an array.
    #[inline]
    pub fn array(&mut self) -> Read<usize> {
        let len = usize::try_from(self.argument_of(ARRAY)?).map_err(|_| Malformed::Short)?;
        if len <= self.rest.len() { Ok(len) } else { Err(Malformed::Short) }
    }

    /// The head of an array of exactly this length.
    pub fn tuple(&mut self, len: usize) -> Read<()> {
        if self.array()? == len { Ok(()) } else { Err(Malformed::Unexpected) }
    }

    /// A truth value.
    pub fn bool(&mut self) -> Read<bool> {
        match self.item()? {
            Item::Bool(truth) => Ok(truth),
            _ => Err(Malformed::Unexpected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(x: f64) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.float(x);
        writer.finish()
    }

    #[test]
    fn floats_take_the_shortest_exact_form() {
        // The examples of RFC 8949, appendix A.
        assert_eq!(float(0.0), [0xf9, 0, 0]);
        assert_eq!(float(-0.0), [0xf9, 0x80, 0]);
        assert_eq!(float(1.5), [0xf9, 0x3e, 0]);
        assert_eq!(float(65504.0), [0xf9, 0x7b, 0xff]);
        assert_eq!(float(5.960464477539063e-8), [0xf9, 0, 1]);
        assert_eq!(float(0.00006103515625), [0xf9, 4, 0]);
        assert_eq!(float(100000.0), [0xfa, 0x47, 0xc3, 0x50, 0]);
        assert_eq!(float(1.1), [0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a]);
        assert_eq!(float(f64::NEG_INFINITY), [0xf9, 0xfc, 0]);
        for half in 0..=u16::MAX {
            let value = from_half(half);
            if !value.is_nan() {
                assert_eq!(to_half(value), Some(half));
                assert_eq!(Reader::new(&float(value)).item(), Ok(Item::Float(value)));
            }
        }
    }

    #[test]
    fn only_one_form_is_read() {
        for bytes in [&[0x18, 23][..], &[0x19, 0, 255], &[0x5f, 0xff], &[0xfb, 0, 0, 0, 0, 0, 0, 0, 0], &[0xf9, 0x7e, 1]] {
            assert_eq!(Reader::new(bytes).item(), Err(Malformed::NotCanonical), "{bytes:?}");
        }
        assert_eq!(Reader::new(&[0x9b, 0, 0, 1, 0, 0, 0, 0, 0]).item(), Err(Malformed::Short));
        let number = |n: i64| {
            let mut writer = Writer::new();
            writer.integer(n);
            writer.finish()
        };
        for n in [0, 23, 24, 255, 256, -1, -24, -25, i64::MIN, i64::MAX] {
            assert_eq!(Reader::new(&number(n)).integer(), Ok(n));
        }
    }
}
