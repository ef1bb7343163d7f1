//! What archives are compressed with, by name or by their first bytes.

use std::io::{BufRead, Read, Result};

/// A form of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

impl Compression {
    /// By the name that binary caches have for it.
    pub fn from_name(name: &str) -> Option<Compression> {
        Some(match name {
            "none" => Compression::None,
            "gzip" => Compression::Gzip,
            "bzip2" => Compression::Bzip2,
            "xz" => Compression::Xz,
            "zstd" => Compression::Zstd,
            _ => return None,
        })
    }

    /// By the first bytes; what has no mark is not compressed.
    pub fn from_start(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [b'B', b'Z', b'h', ..] => Compression::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// The bytes that were compressed. Several streams in a row are read as one, as by the tools of these names.
    pub fn decode(self, packed: impl BufRead + 'static) -> Result<Box<dyn Read>> {
        Ok(match self {
            Compression::None => Box::new(packed),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
            Compression::Xz => Box::new(lzma_rust2::XzReader::new(packed, true)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        })
    }
}
