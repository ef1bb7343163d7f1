//! Content addresses: how an object's contents were serialised, and their hash.
//!
//! Three spellings exist: words (`nar`), drv prefixes (`r:sha256`), and the modern form (`fixed:r:sha256:…`).
//! Callers gate [`Method::Git`] (`git-hashing`) and [`Method::Text`] in derivations (`dynamic-derivations`).

use crate::error::{Error, ErrorKind, Result};
use crate::hash::{Algorithm, Format, Hash, split_at_byte};

/// How file system objects are turned into the bytes that are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// The contents of one regular file.
    Flat,
    /// Its archive (`nar`, formerly `recursive`).
    Nar,
    /// Git's object hashing.
    Git,
    /// One file, path made as for `toFile`.
    Text,
}

impl Method {
    /// Parses `flat`, `nar`, `git` or `text`.
    pub fn parse(word: &[u8]) -> Result<Self> {
        Ok(match word {
            b"flat" => Self::Flat,
            b"nar" => Self::Nar,
            b"git" => Self::Git,
            b"text" => Self::Text,
            _ => {
                return Err(Error::new(
                    ErrorKind::Usage,
                    &[b"Unknown file ingestion method '", word, b"', expect `flat`, `nar`, or `git`"],
                ));
            }
        })
    }

    /// The inverse of [`Method::parse`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Nar => "nar",
            Self::Git => "git",
            Self::Text => "text",
        }
    }

    /// What stands before the algorithm in a derivation's outputs; flat has nothing.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Flat => "",
            Self::Nar => "r:",
            Self::Git => "git:",
            Self::Text => "text:",
        }
    }

    /// Splits such a prefix off; what has none is flat.
    pub fn split_prefix(text: &[u8]) -> (Self, &[u8]) {
        for method in [Self::Nar, Self::Git, Self::Text] {
            if let Some(rest) = text.strip_prefix(method.prefix().as_bytes()) {
                return (method, rest);
            }
        }
        (Self::Flat, text)
    }

    /// The prefix of the modern form.
    fn modern_prefix(self) -> &'static str {
        match self {
            Self::Flat => "fixed:",
            Self::Nar => "fixed:r:",
            Self::Git => "fixed:git:",
            Self::Text => "text:",
        }
    }

    /// `fixed:r:sha256` and the like.
    pub fn render_with_algorithm(self, algorithm: Algorithm) -> String {
        format!("{}{}", self.modern_prefix(), algorithm.name())
    }

    /// The inverse of [`Method::render_with_algorithm`].
    pub fn parse_with_algorithm(text: &[u8]) -> Result<(Self, Algorithm)> {
        let text = [text, b":"].concat();
        let (method, algorithm, _) = split_modern(&text)?;
        Ok((method, algorithm))
    }
}

/// Method and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentAddress {
    /// How the contents were serialised.
    pub method: Method,
    /// The hash of that.
    pub hash: Hash,
}

impl ContentAddress {
    /// `fixed:r:sha256:<nix32>` and the like.
    pub fn render(&self) -> String {
        format!("{}{}", self.method.modern_prefix(), self.hash.to_string(Format::Nix32, true))
    }

    /// Parses what [`ContentAddress::render`] prints; the hash may be in base 16, 32 or 64.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let (method, algorithm, rest) = split_modern(text)?;
        Ok(ContentAddress { method, hash: Hash::parse_unprefixed(rest, algorithm)? })
    }

    /// Appends the method and algorithm as derivations print them: `r:sha256`.
    pub fn write_method_algorithm(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.method.prefix().as_bytes());
        out.extend_from_slice(self.hash.algorithm().name().as_bytes());
    }
}

fn split_modern(whole: &[u8]) -> Result<(Method, Algorithm, &[u8])> {
    let usage = |parts: &[&[u8]]| Error::new(ErrorKind::Usage, parts);
    let Some((prefix, mut rest)) = split_at_byte(whole, b':') else {
        return Err(usage(&[b"not a content address because it is not in the form '<prefix>:<rest>': ", whole]));
    };
    let method = match prefix {
        b"text" => Method::Text,
        b"fixed" => {
            let (method, after) = [Method::Nar, Method::Git]
                .into_iter()
                .find_map(|m| Some((m, rest.strip_prefix(m.prefix().as_bytes())?)))
                .unwrap_or((Method::Flat, rest));
            rest = after;
            method
        }
        _ => {
            return Err(usage(&[
                b"content address prefix '",
                prefix,
                b"' is unrecognized. Recogonized prefixes are 'text' or 'fixed'",
            ]));
        }
    };
    let Some((algorithm, rest)) = split_at_byte(rest, b':') else {
        return Err(usage(&[b"content address hash must be in form '<algo>:<hash>', but found: ", whole]));
    };
    Ok((method, Algorithm::parse(algorithm)?, rest))
}
