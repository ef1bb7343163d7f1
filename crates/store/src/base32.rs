//! Nix's base 32 ("nix32"): digits least significant first in the bytes, printed most significant first, alphabet
//! without e, o, t, u. Called for every store path, so encoding writes into a caller's buffer.

use crate::error::{Error, ErrorKind, Result};

/// The alphabet, digit value as index.
pub const ALPHABET: &[u8; 32] = b"0123456789abcdfghijklmnpqrsvwxyz";

const INVALID: u8 = 0xff;

const DIGITS: [u8; 256] = {
    let mut map = [INVALID; 256];
    let mut i = 0;
    while i < 32 {
        map[ALPHABET[i] as usize] = i as u8;
        i += 1;
    }
    map
};

/// The value of one digit, if the byte is in the alphabet.
pub fn digit(byte: u8) -> Option<u8> {
    let value = DIGITS[byte as usize];
    (value != INVALID).then_some(value)
}

/// How many characters `size` bytes take.
pub const fn encoded_len(size: usize) -> usize {
    (size * 8).div_ceil(5)
}

/// Appends the encoding of `bytes` to `out`.
pub fn encode_into(bytes: &[u8], out: &mut Vec<u8>) {
    for n in (0..encoded_len(bytes.len())).rev() {
        let (i, j) = (n * 5 / 8, n * 5 % 8);
        let low = u16::from(bytes[i]);
        let high = bytes.get(i + 1).map_or(0, |b| u16::from(*b));
        out.push(ALPHABET[usize::from(((high << 8 | low) >> j) & 0x1f)]);
    }
}

/// The encoding of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(encoded_len(bytes.len()));
    encode_into(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}

/// Decodes `text`.
///
/// NIX: bits that do not fit a whole byte are kept as one more byte when they are not zero, so a 52-character string
/// may decode to 33 bytes; the caller's length check then reports it.
pub fn decode(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity((text.len() * 5).div_ceil(8));
    for (n, &c) in text.iter().rev().enumerate() {
        let Some(value) = digit(c) else {
            return Err(Error::new(
                ErrorKind::Format,
                &[b"invalid character in Nix32 (Nix's Base32 variation) string: '", &[c], b"'"],
            ));
        };
        let (i, j) = (n * 5 / 8, n * 5 % 8);
        let wide = u16::from(value) << j;
        out.resize(i + 1, 0);
        out[i] |= wide as u8;
        let carry = (wide >> 8) as u8;
        if carry != 0 {
            out.push(carry);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        // nix-hash --type sha256 --flat --base32 of the empty file.
        let empty = crate::hash::sha256(b"");
        assert_eq!(encode(&empty), "0mdqa9w1p6cmli6976v4wi0sw9r4p5prkj7lzfd1877wk11c9c73");
        assert_eq!(encode(b""), "");
        assert_eq!(decode(b"").unwrap(), b"");
    }

    #[test]
    fn bad_digit_is_named() {
        let error = decode(b"0u").unwrap_err();
        assert_eq!(error.message(), b"invalid character in Nix32 (Nix's Base32 variation) string: 'u'");
    }

    #[test]
    fn excess_bits_lengthen_the_result() {
        assert_eq!(decode(&[b'z'; 52]).unwrap().len(), 33);
    }

    proptest! {
        #[test]
        fn round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let text = encode(&bytes);
            prop_assert_eq!(text.len(), encoded_len(bytes.len()));
            prop_assert_eq!(decode(text.as_bytes()).unwrap(), bytes);
        }

        #[test]
        fn decode_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
        }
    }
}
