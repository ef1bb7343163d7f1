//! Public keys and signatures in Nix's form: `name:base64`. A signature is believed if it is by a key that the user named.

use crate::encoding::{base64_decode, base64_into};
use ed25519_dalek::{Signature, VerifyingKey};
use std::collections::BTreeMap;
use std::fmt;

/// Why a text is not a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKey {
    /// There is no name, a colon and something after it.
    Form,
    /// What follows the colon is not base64 of the right length.
    Bytes,
    /// The two halves of a secret key do not belong together, or the point is not one that signs.
    Weak,
    /// The system gives no random bytes.
    NoRandom,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadKey::Form => "a key is written NAME:BASE64",
            BadKey::Bytes => "a key has 32 bytes of base64 after the colon, a secret one 64",
            BadKey::Weak => "the bytes are not those of an ed25519 key",
            BadKey::NoRandom => "the system gives no random bytes",
        })
    }
}

impl std::error::Error for BadKey {}

/// Takes name and bytes of a key or signature apart. Only the one canonical base64 is taken: what prints otherwise than it
/// was read is refused.
pub fn split(text: &str) -> Result<(String, Vec<u8>), BadKey> {
    let text = text.trim();
    let (name, encoded) = text.split_once(':').ok_or(BadKey::Form)?;
    if name.is_empty() || encoded.is_empty() || name.len() > 255 || name.contains(char::is_whitespace) {
        return Err(BadKey::Form);
    }
    let bytes = base64_decode(encoded.as_bytes()).map_err(|_| BadKey::Bytes)?;
    (join("", &bytes)[1..] == *encoded).then(|| (name.to_owned(), bytes)).ok_or(BadKey::Bytes)
}

/// The inverse of [`split`].
pub fn join(name: &str, bytes: &[u8]) -> String {
    let mut text = format!("{name}:").into_bytes();
    base64_into(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A key that signatures are checked with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKey {
    /// Its name.
    pub name: String,
    key: VerifyingKey,
}

impl PublicKey {
    /// A key of this name.
    pub fn new(name: &str, bytes: &[u8; 32]) -> Result<PublicKey, BadKey> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| BadKey::Weak)?;
        if key.is_weak() { Err(BadKey::Weak) } else { Ok(PublicKey { name: name.to_owned(), key }) }
    }

    /// Reads `name:base64`.
    pub fn parse(text: &str) -> Result<PublicKey, BadKey> {
        let (name, bytes) = split(text)?;
        PublicKey::new(&name, &bytes.try_into().map_err(|_| BadKey::Bytes)?)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.name, self.key.as_bytes()))
    }
}

/// The keys that are believed, by name.
#[derive(Clone, Debug, Default)]
pub struct Keyring {
    keys: BTreeMap<String, Vec<VerifyingKey>>,
}

impl Keyring {
    /// Believes a key. Several may have one name.
    pub fn add(&mut self, key: PublicKey) {
        self.keys.entry(key.name).or_default().push(key.key);
    }

    /// Whether no key is believed.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether a key of this name is believed.
    pub fn knows(&self, name: &str) -> bool {
        self.keys.contains_key(name)
    }

    /// Whether the key of this name signed the statement.
    pub fn vouches(&self, name: &str, statement: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        let keys = self.keys.get(name).map_or(&[][..], Vec::as_slice);
        keys.iter().any(|key| key.verify_strict(statement, &signature).is_ok())
    }

    /// Whether a signature in Nix's form, `name:base64`, is one of the statement by a key that is believed.
    pub fn believes(&self, statement: &[u8], signature: &str) -> bool {
        let Ok((name, bytes)) = split(signature) else { return false };
        <[u8; 64]>::try_from(bytes).is_ok_and(|bytes| self.vouches(&name, statement, &bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_nix_is_read() {
        // Made with nix-store --generate-binary-cache-key.
        let public = "cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=";
        assert_eq!(PublicKey::parse(public).map(|key| key.to_string()).as_deref(), Ok(public));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "name", "name:", ":AAAA", "name:AAAA", "na me:AAAA", "name:!!!!"] {
            assert!(PublicKey::parse(text).is_err(), "{text}");
        }
        let zero = format!("a:{}=", "A".repeat(43));
        assert_eq!(PublicKey::parse(&zero).err(), Some(BadKey::Weak));
        assert!(!Keyring::default().believes(b"x", "nothing") && !Keyring::default().believes(b"x", &zero));
    }
}
