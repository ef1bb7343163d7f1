//! Secret keys in Nix's form, `name:base64`: what signs here. What checks is in the `store` room, with Nix's own signatures.

use ed25519_dalek::{Signer, SigningKey};
use firn_store::key::{join, split};
pub use firn_store::key::{BadKey, Keyring, PublicKey};
use std::fmt;

/// A key that signs.
#[derive(Clone)]
pub struct SecretKey {
    /// Its name.
    pub name: String,
    key: SigningKey,
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey({})", self.name)
    }
}

impl SecretKey {
    /// A new key of this name.
    pub fn generate(name: &str) -> Result<SecretKey, BadKey> {
        if name.is_empty() || name.len() > 255 || name.contains([':']) || name.contains(char::is_whitespace) {
            return Err(BadKey::Form);
        }
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| BadKey::NoRandom)?;
        Ok(SecretKey { name: name.to_owned(), key: SigningKey::from_bytes(&seed) })
    }

    /// Reads `name:base64` as `nix key generate-secret` and `nix-store --generate-binary-cache-key` write it.
    pub fn parse(text: &str) -> Result<SecretKey, BadKey> {
        let (name, bytes) = split(text)?;
        let bytes: [u8; 64] = bytes.try_into().map_err(|_| BadKey::Bytes)?;
        let key = SigningKey::from_keypair_bytes(&bytes).map_err(|_| BadKey::Weak)?;
        Ok(SecretKey { name, key })
    }

    /// The key as it is kept in a file.
    pub fn reveal(&self) -> String {
        join(&self.name, &self.key.to_keypair_bytes())
    }

    /// The key to check with.
    pub fn public(&self) -> PublicKey {
        PublicKey::new(&self.name, self.key.verifying_key().as_bytes()).expect("a secret key's public half signs")
    }

    /// The signature of a statement.
    pub fn sign(&self, statement: &[u8]) -> [u8; 64] {
        self.key.sign(statement).to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_sign_for_one_statement() {
        let secret = SecretKey::generate("cache.example.org-1").unwrap();
        let again = SecretKey::parse(&secret.reveal()).unwrap();
        assert_eq!(again.public(), PublicKey::parse(&secret.public().to_string()).unwrap());
        let mut ring = Keyring::default();
        assert!(!ring.vouches("cache.example.org-1", b"x", &again.sign(b"x")));
        ring.add(again.public());
        assert!(ring.vouches("cache.example.org-1", b"x", &again.sign(b"x")));
        assert!(!ring.vouches("cache.example.org-1", b"y", &again.sign(b"x")));
        assert!(!ring.vouches("cache.example.org-2", b"x", &again.sign(b"x")));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "name", "name:", ":AAAA", "name:AAAA", "na me:AAAA", "name:!!!!"] {
            assert!(PublicKey::parse(text).is_err() && SecretKey::parse(text).is_err(), "{text}");
        }
        assert_eq!(PublicKey::parse("a:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap_err(), BadKey::Weak);
        let mut halves = SecretKey::generate("a").unwrap().key.to_keypair_bytes();
        halves[63] ^= 1;
        assert_eq!(SecretKey::parse(&join("a", &halves)).unwrap_err(), BadKey::Weak);
        assert!(SecretKey::generate("a:b").is_err() && SecretKey::generate("").is_err());
    }
}
