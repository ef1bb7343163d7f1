//! Store paths in their directory: parsing, printing, and the fingerprints from which every path is made.
//!
//! The evaluator calls these for each derivation and source; each fingerprint is one buffer and one SHA-256.

use crate::content_address::{ContentAddress, Method};
use crate::encoding::base16_into;
use crate::error::{Error, ErrorKind, Result};
use crate::hash::{self, Algorithm, Format, Hash};
use crate::path::{self, StorePath};
use std::sync::Arc;

/// The directory that store paths are printed under and hashed with, usually `/nix/store`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDir(Arc<[u8]>);

impl Default for StoreDir {
    fn default() -> Self {
        StoreDir(Arc::from(&b"/nix/store"[..]))
    }
}

/// What a content-addressed object refers to.
#[derive(Clone, Copy, Debug, Default)]
pub struct References<'a> {
    /// Other objects, in path order without repetition.
    pub others: &'a [StorePath],
    /// Whether it refers to itself.
    pub itself: bool,
}

impl References<'_> {
    fn is_empty(&self) -> bool {
        self.others.is_empty() && !self.itself
    }
}

impl StoreDir {
    /// A store directory; must be an absolute path, and is made canonical.
    pub fn new(dir: &[u8]) -> Result<Self> {
        Ok(StoreDir(canonical(dir)?.into()))
    }

    /// The directory's path, without a slash at the end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// `<dir>/<digest>-<name>`.
    pub fn print(&self, path: &StorePath) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.len() + 1 + path.as_bytes().len());
        self.print_into(path, &mut out);
        out
    }

    /// Appends `<dir>/<digest>-<name>`.
    pub fn print_into(&self, path: &StorePath, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
        out.push(b'/');
        out.extend_from_slice(path.as_bytes());
    }

    /// Parses a path that must be directly inside the store directory.
    pub fn parse(&self, text: &[u8]) -> Result<StorePath> {
        if text.is_empty() {
            return Err(Error::new(ErrorKind::BadStorePath, &[b"empty path is not a valid store path"]));
        }
        // Nearly always the text is canonical already and needs no second buffer.
        if let Some(base) = self.direct_child(text)
            && base != b"."
            && base != b".."
        {
            return StorePath::parse(base);
        }
        let full = canonical(text)?;
        match self.direct_child(&full) {
            Some(base) => StorePath::parse(base),
            None => Err(Error::new(
                ErrorKind::BadStorePath,
                &[b"path \"", &full, b"\" is not in the Nix store"],
            )),
        }
    }

    fn direct_child<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let base = path.strip_prefix(&*self.0)?.strip_prefix(b"/")?;
        (!base.is_empty() && !base.contains(&b'/')).then_some(base)
    }

    /// Whether `path` lies below the store directory.
    pub fn contains(&self, path: &[u8]) -> bool {
        let Some(rest) = path.strip_prefix(&*self.0) else { return false };
        if rest.first() != Some(&b'/') {
            return false;
        }
        let first = rest.split(|c| *c == b'/').find(|part| !part.is_empty());
        first.is_some_and(|part| part != b"." && part != b"..")
    }

    /// Splits a path below the store directory into the store path and the rest (`/…`, or empty).
    pub fn split<'a>(&self, path: &'a [u8]) -> Result<(StorePath, &'a [u8])> {
        if !self.contains(path) {
            return Err(Error::new(ErrorKind::Other, &[b"path '", path, b"' is not in the Nix store"]));
        }
        let start = self.0.len() + 1;
        let end = memchr::memchr(b'/', &path[start..]).map_or(path.len(), |at| start + at);
        Ok((self.parse(&path[..end])?, &path[end..]))
    }

    /// `<type>:<algo>:<hex>:<dir>:<name>`, hashed and folded.
    pub fn make_store_path(&self, kind: &[u8], hash: &Hash, name: &[u8]) -> Result<StorePath> {
        let mut text = Vec::with_capacity(kind.len() + self.0.len() + name.len() + 160);
        text.extend_from_slice(kind);
        self.finish_store_path(text, hash, name)
    }

    fn finish_store_path(&self, mut text: Vec<u8>, hash: &Hash, name: &[u8]) -> Result<StorePath> {
        text.push(b':');
        hash.write(Format::Base16, true, &mut text);
        self.finish_fingerprint(text, name)
    }

    fn finish_fingerprint(&self, mut text: Vec<u8>, name: &[u8]) -> Result<StorePath> {
        text.push(b':');
        text.extend_from_slice(&self.0);
        text.push(b':');
        text.extend_from_slice(name);
        StorePath::new(&hash::compress(&hash::sha256(&text)), name)
    }

    /// The path of output `output` of an input-addressed derivation with this hash.
    pub fn make_output_path(&self, output: &[u8], drv_hash: &[u8; 32], drv_name: &[u8]) -> Result<StorePath> {
        let name = path::output_path_name(drv_name, output);
        let mut text = Vec::with_capacity(96 + output.len() + self.0.len() + name.len());
        text.extend_from_slice(b"output:");
        text.extend_from_slice(output);
        text.extend_from_slice(b":sha256:");
        base16_into(drv_hash, &mut text);
        self.finish_fingerprint(text, &name)
    }

    /// The type word with references stuffed in, the first part of a fingerprint.
    fn start_fingerprint(&self, word: &[u8], references: &References<'_>) -> Vec<u8> {
        let mut text = Vec::with_capacity(256 + references.others.len() * (self.0.len() + 64));
        text.extend_from_slice(word);
        for path in references.others {
            text.push(b':');
            self.print_into(path, &mut text);
        }
        if references.itself {
            text.extend_from_slice(b":self");
        }
        text
    }

    /// The path of a text file (`toFile`, `.drv`) whose contents hash to `digest`.
    pub fn make_text_path(&self, name: &[u8], digest: &[u8; 32], references: &[StorePath]) -> Result<StorePath> {
        let references = References { others: references, itself: false };
        let mut text = self.start_fingerprint(b"text", &references);
        text.extend_from_slice(b":sha256:");
        base16_into(digest, &mut text);
        self.finish_fingerprint(text, name)
    }

    /// The path of an object whose contents hash to `address.hash` by `address.method`.
    pub fn make_fixed_output_path(
        &self,
        name: &[u8],
        address: &ContentAddress,
        references: References<'_>,
    ) -> Result<StorePath> {
        let hash = &address.hash;
        let algorithm = hash.algorithm();
        match address.method {
            Method::Text => return self.make_text_path_of(name, hash, references),
            Method::Git if !matches!(algorithm, Algorithm::Sha1 | Algorithm::Sha256) => {
                let parts: [&[u8]; 2] = [
                    b"Git file ingestion must use SHA-1 or SHA-256 hash, but instead using: ",
                    algorithm.name().as_bytes(),
                ];
                return Err(Error::new(ErrorKind::Other, &parts));
            }
            Method::Nar if algorithm == Algorithm::Sha256 => {
                return self.finish_store_path(self.start_fingerprint(b"source", &references), hash, name);
            }
            Method::Nar | Method::Git | Method::Flat => {}
        }
        if !references.is_empty() {
            return Err(Error::new(
                ErrorKind::Other,
                &[
                    b"fixed output derivation '",
                    name,
                    b"' is not allowed to refer to other store paths.\nYou may need to use the \
                      'unsafeDiscardReferences' derivation attribute, see the manual for more details.",
                ],
            ));
        }
        let mut inner = Vec::with_capacity(192);
        inner.extend_from_slice(b"fixed:out:");
        inner.extend_from_slice(address.method.prefix().as_bytes());
        hash.write(Format::Base16, true, &mut inner);
        inner.push(b':');
        self.make_output_path(b"out", &hash::sha256(&inner), name)
    }

    fn make_text_path_of(&self, name: &[u8], hash: &Hash, references: References<'_>) -> Result<StorePath> {
        if references.itself {
            return Err(Error::new(ErrorKind::Other, &[b"self-reference not allowed with text hashing"]));
        }
        match <&[u8; 32]>::try_from(hash.digest()) {
            Ok(digest) if hash.algorithm() == Algorithm::Sha256 => {
                self.make_text_path(name, digest, references.others)
            }
            // Nix asserts here; reachable from a program that asks for text hashing with another algorithm.
            _ => Err(Error::new(
                ErrorKind::Other,
                &[b"text hashing must use SHA-256, but instead using: ", hash.algorithm().name().as_bytes()],
            )),
        }
    }
}

/// Resolves `.`, `..` and repeated slashes of an absolute path by text alone.
pub fn canonical(path: &[u8]) -> Result<Vec<u8>> {
    if path.is_empty() {
        return Err(Error::new(ErrorKind::Other, &[b"cannot canonicalise an empty path"]));
    }
    if path[0] != b'/' {
        return Err(Error::new(ErrorKind::Other, &[b"not an absolute path: \"", path, b"\""]));
    }
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    for part in path.split(|c| *c == b'/') {
        match part {
            b"" | b"." => {}
            b".." => out.truncate(memchr::memrchr(b'/', &out).unwrap_or(0)),
            _ => {
                out.push(b'/');
                out.extend_from_slice(part);
            }
        }
    }
    if out.is_empty() {
        out.push(b'/');
    }
    Ok(out)
}
