//! Base 16 and base 64 as Nix reads and writes them (its readers are laxer than the RFCs: see each function).

use crate::error::{Error, ErrorKind, Result};

const HEX: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const INVALID: u8 = 0xff;

const BASE64_DIGITS: [u8; 256] = {
    let mut map = [INVALID; 256];
    let mut i = 0;
    while i < 64 {
        map[BASE64[i] as usize] = i as u8;
        i += 1;
    }
    map
};

/// How many characters `size` bytes take in base 16.
pub const fn base16_len(size: usize) -> usize {
    size * 2
}

/// How many characters `size` bytes take in base 64, padding included.
pub const fn base64_len(size: usize) -> usize {
    size.div_ceil(3) * 4
}

/// Appends `bytes` in lower-case base 16.
pub fn base16_into(bytes: &[u8], out: &mut Vec<u8>) {
    // PERF: grown once; byte by byte this was 1.7 % of a thousand packages' time, since it names every input's hash.
    let start = out.len();
    out.resize(start + base16_len(bytes.len()), 0);
    for (pair, &b) in out[start..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]];
    }
}

/// Decodes base 16, either case. An odd digit at the end is an error.
pub fn base16_decode(text: &[u8]) -> Result<Vec<u8>> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Ok(c - b'0'),
        b'A'..=b'F' => Ok(c - b'A' + 10),
        b'a'..=b'f' => Ok(c - b'a' + 10),
        _ => Err(Error::new(ErrorKind::Format, &[b"invalid character in Base16 string: '", &[c], b"'"])),
    };
    if !text.len().is_multiple_of(2) {
        return Err(Error::new(ErrorKind::Format, &[b"Base16 string '", text, b"' has odd length"]));
    }
    text.chunks_exact(2).map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Appends `bytes` in padded base 64.
pub fn base64_into(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for k in 0..4 {
            if k <= chunk.len() {
                out.push(BASE64[(word >> (18 - 6 * k) & 0x3f) as usize]);
            } else {
                out.push(b'=');
            }
        }
    }
}

/// Decodes base 64.
///
/// NIX: stops at the first `=`, whatever follows; skips newlines; drops left-over bits; wants no padding.
pub fn base64_decode(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity((text.len() + 2) / 4 * 3);
    let (mut word, mut bits) = (0u32, 0u32);
    for &c in text {
        match c {
            b'=' => break,
            b'\n' => continue,
            _ => {}
        }
        let value = BASE64_DIGITS[usize::from(c)];
        if value == INVALID {
            return Err(Error::new(ErrorKind::Format, &[b"invalid character in Base64 string: '", &[c], b"'"]));
        }
        word = word << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lax_base64() {
        assert_eq!(base64_decode(b"Zm9v\nYmFy").unwrap(), b"foobar");
        assert_eq!(base64_decode(b"Zm8=garbage!").unwrap(), b"fo");
        assert_eq!(base64_decode(b"Zm8").unwrap(), b"fo");
        assert_eq!(base64_decode(b"Z!").unwrap_err().message(), b"invalid character in Base64 string: '!'");
    }

    #[test]
    fn hex_of_either_case() {
        assert_eq!(base16_decode(b"0aFF").unwrap(), [0x0a, 0xff]);
        assert_eq!(base16_decode(b"0g").unwrap_err().message(), b"invalid character in Base16 string: 'g'");
        assert!(base16_decode(b"0").is_err());
    }

    proptest! {
        #[test]
        fn round_trips(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let (mut hex, mut b64) = (vec![], vec![]);
            base16_into(&bytes, &mut hex);
            base64_into(&bytes, &mut b64);
            prop_assert_eq!(&base16_decode(&hex).unwrap(), &bytes);
            prop_assert_eq!(&base64_decode(&b64).unwrap(), &bytes);
        }

        #[test]
        fn decoders_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = (base16_decode(&bytes), base64_decode(&bytes));
        }
    }
}
