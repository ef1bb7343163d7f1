//! Placeholders: strings that stand for paths which are known only after a build.

use crate::base32;
use crate::hash::{compress, sha256};
use crate::path::{DRV_EXTENSION, StorePath, output_path_name};

/// What `builtins.placeholder` gives, and what stands for a floating output inside its own derivation.
pub fn own_output(output: &[u8]) -> String {
    render(&sha256(&[b"nix-output:", output].concat()))
}

/// A stand-in for an output of another derivation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeholder([u8; 32]);

impl Placeholder {
    /// For a floating output of a derivation that exists.
    pub fn unknown_ca_output(drv: &StorePath, output: &[u8]) -> Self {
        // NIX: four characters are cut off whether or not they are `.drv`.
        let name = drv.name().as_bytes();
        let name = if name.len() < DRV_EXTENSION.len() { name } else { &name[..name.len() - DRV_EXTENSION.len()] };
        let parts = [b"nix-upstream-output:", drv.digest_part().as_bytes(), b":", &output_path_name(name, output)];
        Placeholder(sha256(&parts.concat()))
    }

    /// For an output of the derivation that `self` will turn out to be.
    pub fn unknown_derivation(&self, output: &[u8]) -> Self {
        let mut text = b"nix-computed-output:".to_vec();
        base32::encode_into(&compress(&self.0), &mut text);
        text.push(b':');
        text.extend_from_slice(output);
        Placeholder(sha256(&text))
    }

    /// The string that appears in programs.
    pub fn render(&self) -> String {
        render(&self.0)
    }
}

fn render(digest: &[u8; 32]) -> String {
    format!("/{}", base32::encode(digest))
}
