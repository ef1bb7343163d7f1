//! What is known of a store object: its archive's hash and size, what it refers to, who signed that, and by which content
//! address it is named, if by one.

use crate::content_address::{ContentAddress, Method};
use crate::error::Result;
use crate::hash::{Format, Hash};
use crate::key::Keyring;
use crate::path::StorePath;
use crate::store_dir::{References, StoreDir};

/// What is known of a store object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathInfo {
    /// Its path.
    pub path: StorePath,
    /// The SHA-256 of its archive.
    pub nar_hash: Hash,
    /// The length of its archive.
    pub nar_size: u64,
    /// What it refers to, itself included if it does; in path order without repetition.
    pub references: Vec<StorePath>,
    /// The derivation it was built from.
    pub deriver: Option<StorePath>,
    /// Signatures, `name:base64`.
    pub signatures: Vec<String>,
    /// The content address it claims.
    pub address: Option<ContentAddress>,
}

impl PathInfo {
    /// The text that is signed.
    pub fn fingerprint(&self, dir: &StoreDir) -> Vec<u8> {
        let mut text = b"1;".to_vec();
        dir.print_into(&self.path, &mut text);
        text.push(b';');
        self.nar_hash.write(Format::Nix32, true, &mut text);
        text.extend_from_slice(format!(";{};", self.nar_size).as_bytes());
        for (at, reference) in self.references.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            dir.print_into(reference, &mut text);
        }
        text
    }

    /// Whether a key that is believed signed this.
    pub fn is_signed(&self, dir: &StoreDir, keys: &Keyring) -> bool {
        let statement = self.fingerprint(dir);
        self.signatures.iter().any(|signature| keys.believes(&statement, signature))
    }

    /// Whether it refers to itself.
    pub fn refers_to_itself(&self) -> bool {
        self.references.contains(&self.path)
    }

    /// What it refers to besides itself.
    pub fn others(&self) -> Vec<StorePath> {
        self.references.iter().filter(|reference| **reference != self.path).cloned().collect()
    }

    /// The path that the claimed content address makes; none if none is claimed.
    pub fn addressed_path(&self, dir: &StoreDir) -> Result<Option<StorePath>> {
        let Some(address) = &self.address else { return Ok(None) };
        // A text that refers to itself cannot be: such a claim makes no path.
        if address.method == Method::Text && self.refers_to_itself() {
            return Ok(None);
        }
        let others = self.others();
        let references = References { others: &others, itself: self.refers_to_itself() };
        dir.make_fixed_output_path(self.path.name().as_bytes(), address, references).map(Some)
    }

    /// Whether its path follows from its content: then nobody needs to vouch for it.
    pub fn is_content_addressed(&self, dir: &StoreDir) -> bool {
        self.addressed_path(dir).is_ok_and(|path| path.as_ref() == Some(&self.path))
    }
}
