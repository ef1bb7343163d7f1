//! Hashes: algorithms, values, printing, and parsing of every form that Nix reads, with its error texts.
//!
//! Callers gate [`Algorithm::Blake3`] behind its experimental feature. `sha2`, `sha1` and `blake3` choose the
//! processor's SHA or vector instructions at run time.

use crate::base32;
use crate::encoding;
use crate::error::{Error, ErrorKind, Result};
use md5::Digest as _;
use std::io;

/// The algorithms Nix knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// 16 bytes.
    Md5,
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
    /// 64 bytes.
    Sha512,
    /// 32 bytes; experimental (`blake3-hashes`).
    Blake3,
}

impl Algorithm {
    /// The algorithm named `name`, if there is one.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"blake3" => Self::Blake3,
            b"md5" => Self::Md5,
            b"sha1" => Self::Sha1,
            b"sha256" => Self::Sha256,
            b"sha512" => Self::Sha512,
            _ => return None,
        })
    }

    /// The algorithm named `name`, or Nix's error listing the known ones.
    pub fn parse(name: &[u8]) -> Result<Self> {
        Self::from_name(name).ok_or_else(|| {
            Error::new(
                ErrorKind::Usage,
                &[
                    b"unknown hash algorithm '",
                    name,
                    b"', expect 'blake3', 'md5', 'sha1', 'sha256', or 'sha512'",
                ],
            )
        })
    }

    /// The name as Nix prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Md5 => "md5",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// Bytes in a digest.
    pub const fn size(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 | Self::Blake3 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// How a hash is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lower-case hexadecimal.
    Base16,
    /// Nix's base 32.
    Nix32,
    /// Padded base 64.
    Base64,
    /// `algo-base64`.
    Sri,
}

impl Format {
    /// The format called `name`. `base32` is Nix's deprecated alias of `nix32`; the caller prints
    /// [`Format::BASE32_WARNING`] for it.
    pub fn parse(name: &[u8]) -> Result<Self> {
        Ok(match name {
            b"base16" => Self::Base16,
            b"nix32" | b"base32" => Self::Nix32,
            b"base64" => Self::Base64,
            b"sri" => Self::Sri,
            _ => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    &[b"unknown hash format '", name, b"', expect 'base16', 'base32', 'base64', or 'sri'"],
                ));
            }
        })
    }

    /// What Nix warns when `base32` is used as a format name.
    pub const BASE32_WARNING: &'static str = r#""base32" is a deprecated alias for hash format "nix32"."#;

    /// The name as Nix prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base16 => "base16",
            Self::Nix32 => "nix32",
            Self::Base64 => "base64",
            Self::Sri => "sri",
        }
    }

    /// The name inside "invalid … hash" messages.
    fn error_name(self) -> &'static [u8] {
        match self {
            Self::Base16 => b"base16",
            Self::Nix32 => b"nix32",
            Self::Base64 => b"Base64",
            Self::Sri => b"SRI",
        }
    }
}

/// A digest with its algorithm.
#[derive(Clone, Copy)]
pub struct Hash {
    algorithm: Algorithm,
    bytes: [u8; 64],
}

impl Hash {
    /// A hash from a digest of the right size.
    pub fn new(algorithm: Algorithm, digest: &[u8]) -> Option<Self> {
        (digest.len() == algorithm.size()).then(|| Self::padded(algorithm, digest))
    }

    /// The all-zero hash that stands for a hash not yet known.
    pub fn zero(algorithm: Algorithm) -> Self {
        Hash { algorithm, bytes: [0; 64] }
    }

    fn padded(algorithm: Algorithm, digest: &[u8]) -> Self {
        let mut bytes = [0; 64];
        bytes[..digest.len()].copy_from_slice(digest);
        Hash { algorithm, bytes }
    }

    /// The hash of `data`.
    pub fn of(algorithm: Algorithm, data: &[u8]) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::padded(algorithm, &md5::Md5::digest(data)),
            Algorithm::Sha1 => Self::padded(algorithm, &sha1::Sha1::digest(data)),
            Algorithm::Sha256 => Self::padded(algorithm, &sha2::Sha256::digest(data)),
            Algorithm::Sha512 => Self::padded(algorithm, &sha2::Sha512::digest(data)),
            Algorithm::Blake3 => Self::padded(algorithm, blake3::hash(data).as_bytes()),
        }
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digest.
    pub fn digest(&self) -> &[u8] {
        &self.bytes[..self.algorithm.size()]
    }

    /// Appends the hash in `format`; `prefix` puts `algo:` in front (SRI always has its own prefix).
    pub fn write(&self, format: Format, prefix: bool, out: &mut Vec<u8>) {
        if prefix || format == Format::Sri {
            out.extend_from_slice(self.algorithm.name().as_bytes());
            out.push(if format == Format::Sri { b'-' } else { b':' });
        }
        match format {
            Format::Base16 => encoding::base16_into(self.digest(), out),
            Format::Nix32 => base32::encode_into(self.digest(), out),
            Format::Base64 | Format::Sri => encoding::base64_into(self.digest(), out),
        }
    }

    /// The hash in `format` as text.
    pub fn to_string(&self, format: Format, prefix: bool) -> String {
        let mut out = Vec::with_capacity(144);
        self.write(format, prefix, &mut out);
        out.into_iter().map(char::from).collect()
    }

    /// Parses `algo-base64` only.
    pub fn parse_sri(text: &[u8]) -> Result<Self> {
        let Some((algorithm, rest)) = split_at_byte(text, b'-') else {
            return Err(bad_hash(&[b"hash '", text, b"' is not SRI"]));
        };
        parse_digest(rest, Algorithm::parse(algorithm)?, Format::Sri)
    }

    /// Parses any form; the algorithm comes from the text, from `algorithm`, or from both if they agree.
    pub fn parse_any(text: &[u8], algorithm: Option<Algorithm>) -> Result<Self> {
        Self::parse_any_with_format(text, algorithm).map(|(hash, _)| hash)
    }

    /// As [`Hash::parse_any`], telling also in which format the text was.
    pub fn parse_any_with_format(text: &[u8], expected: Option<Algorithm>) -> Result<(Self, Format)> {
        parse_form(text, |found| match (found, expected) {
            (None, None) => Err(bad_hash(&[
                b"hash '",
                text,
                b"' does not include a type, nor is the type otherwise known from context",
            ])),
            (Some(found), Some(expected)) if found != expected => Err(bad_hash(&[
                b"hash '",
                text,
                b"' should have type '",
                expected.name().as_bytes(),
                b"'",
            ])),
            (Some(algorithm), _) | (None, Some(algorithm)) => Ok(algorithm),
        })
    }

    /// Parses any form that names its algorithm.
    pub fn parse_any_prefixed(text: &[u8]) -> Result<Self> {
        let missing = || bad_hash(&[b"hash '", text, b"' does not include a type"]);
        parse_form(text, |found| found.ok_or_else(missing)).map(|(hash, _)| hash)
    }

    /// Parses base 16, 32 or 64 without a prefix; the length decides which.
    pub fn parse_unprefixed(text: &[u8], algorithm: Algorithm) -> Result<Self> {
        parse_digest(text, algorithm, format_from_len(text, algorithm)?)
    }

    /// Parses exactly `format` without a prefix.
    pub fn parse_explicit(text: &[u8], algorithm: Algorithm, format: Format) -> Result<Self> {
        parse_digest(text, algorithm, format)
    }

    /// What `outputHash` accepts: the empty string stands for the zero hash of a stated algorithm.
    ///
    /// When the flag is set the caller prints `found empty hash, assuming '<SRI>'`.
    pub fn parse_allow_empty(text: &[u8], algorithm: Option<Algorithm>) -> Result<(Self, bool)> {
        if !text.is_empty() {
            return Ok((Self::parse_any(text, algorithm)?, false));
        }
        match algorithm {
            Some(algorithm) => Ok((Self::zero(algorithm), true)),
            None => Err(bad_hash(&[b"empty hash requires explicit hash algorithm"])),
        }
    }
}

impl PartialEq for Hash {
    /// NIX: equality looks at the digest and its size, not at the algorithm.
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Hash {}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_string(Format::Sri, true))
    }
}

fn bad_hash(parts: &[&[u8]]) -> Error {
    Error::new(ErrorKind::BadHash, parts)
}

/// Splits at the first `byte`, which belongs to neither half.
pub(crate) fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

fn parse_form(
    text: &[u8],
    resolve: impl FnOnce(Option<Algorithm>) -> Result<Algorithm>,
) -> Result<(Hash, Format)> {
    let (prefix, rest, sri) = match (split_at_byte(text, b':'), split_at_byte(text, b'-')) {
        (Some((prefix, rest)), _) => (Some(prefix), rest, false),
        (None, Some((prefix, rest))) => (Some(prefix), rest, true),
        (None, None) => (None, text, false),
    };
    let algorithm = resolve(prefix.map(Algorithm::parse).transpose()?)?;
    let format = if sri { Format::Sri } else { format_from_len(rest, algorithm)? };
    Ok((parse_digest(rest, algorithm, format)?, format))
}

fn format_from_len(text: &[u8], algorithm: Algorithm) -> Result<Format> {
    let size = algorithm.size();
    match text.len() {
        n if n == encoding::base16_len(size) => Ok(Format::Base16),
        n if n == base32::encoded_len(size) => Ok(Format::Nix32),
        n if n == encoding::base64_len(size) => Ok(Format::Base64),
        _ => Err(bad_hash(&[
            b"hash '",
            text,
            b"' has wrong length for hash algorithm '",
            algorithm.name().as_bytes(),
            b"'",
        ])),
    }
}

/// NIX: a character outside the alphabet is not reported as such: the decoder's error is dropped and the text counts
/// as having decoded to nothing, so the message speaks of length 0.
fn parse_digest(text: &[u8], algorithm: Algorithm, format: Format) -> Result<Hash> {
    let digest = match format {
        Format::Base16 => encoding::base16_decode(text),
        Format::Nix32 => base32::decode(text),
        Format::Base64 | Format::Sri => encoding::base64_decode(text),
    }
    .unwrap_or_default();
    Hash::new(algorithm, &digest).ok_or_else(|| {
        bad_hash(&[
            b"invalid ",
            format.error_name(),
            b" hash '",
            text,
            b"', length ",
            digest.len().to_string().as_bytes(),
            b" != expected length ",
            algorithm.size().to_string().as_bytes(),
        ])
    })
}

/// SHA-256 of `data`, without the wrapper: the form every store path computation uses.
pub fn sha256(data: &[u8]) -> [u8; 32] {
    sha2::Sha256::digest(data).into()
}

/// The SHA-256 of these, one after the other.
pub fn sha256_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = sha2::Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize().into()
}

/// Folds a digest to 20 bytes by XOR, as store path digests are made.
pub fn compress(digest: &[u8]) -> [u8; 20] {
    let mut out = [0; 20];
    for (i, b) in digest.iter().enumerate() {
        out[i % 20] ^= b;
    }
    out
}

/// A hash in the making; feed it through [`io::Write`] or [`Hasher::update`].
#[derive(Clone)]
pub struct Hasher {
    state: State,
    len: u64,
}

#[derive(Clone)]
enum State {
    Md5(md5::Md5),
    Sha1(sha1::Sha1),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    /// An empty hasher.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::Md5 => State::Md5(md5::Md5::new()),
            Algorithm::Sha1 => State::Sha1(sha1::Sha1::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(sha2::Sha512::new()),
            Algorithm::Blake3 => State::Blake3(Box::default()),
        };
        Hasher { state, len: 0 }
    }

    /// Adds `data`.
    pub fn update(&mut self, data: &[u8]) {
        self.len += data.len() as u64;
        match &mut self.state {
            State::Md5(h) => h.update(data),
            State::Sha1(h) => h.update(data),
            State::Sha256(h) => h.update(data),
            State::Sha512(h) => h.update(data),
            State::Blake3(h) => {
                h.update(data);
            }
        }
    }

    /// The hash of everything fed, and how many bytes that was.
    pub fn finish(self) -> (Hash, u64) {
        let hash = match self.state {
            State::Md5(h) => Hash::padded(Algorithm::Md5, &h.finalize()),
            State::Sha1(h) => Hash::padded(Algorithm::Sha1, &h.finalize()),
            State::Sha256(h) => Hash::padded(Algorithm::Sha256, &h.finalize()),
            State::Sha512(h) => Hash::padded(Algorithm::Sha512, &h.finalize()),
            State::Blake3(h) => Hash::padded(Algorithm::Blake3, h.finalize().as_bytes()),
        };
        (hash, self.len)
    }
}

impl io::Write for Hasher {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.update(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
