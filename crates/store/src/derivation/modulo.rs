//! The hash of a derivation "modulo" its fixed-output inputs: input paths are replaced by the hashes of what they
//! hold, so that how a fixed output is fetched does not change what depends on it.
//!
//! Recursion into inputs is the caller's lookup, which memoizes by path; this module sees one derivation at a time.

use super::print::{HashedInput, HashedOutputs, Variant};
use super::{Derivation, Kind, Output};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::{Format, sha256};
use crate::path::StorePath;
use crate::store_dir::StoreDir;

/// What stands for a derivation in those that depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashModulo {
    /// The hash of its text with inputs replaced.
    Regular([u8; 32]),
    /// The hash of its only output, `out`, which is known beforehand.
    Fixed([u8; 32]),
    /// Not known before something is built.
    Deferred,
}

impl Derivation {
    /// The hash by which dependents know this derivation.
    ///
    /// `lookup` gives the same for an input, from a cache or by reading its file.
    pub fn hash_modulo<E: From<Error>>(
        &self,
        dir: &StoreDir,
        lookup: &mut dyn FnMut(&StorePath) -> Result<HashModulo, E>,
    ) -> Result<HashModulo, E> {
        self.hash_modulo_masked(dir, false, lookup)
    }

    /// As [`Derivation::hash_modulo`]; with `mask_outputs` the hash from which this derivation's own output paths are
    /// made, which must not depend on them.
    pub fn hash_modulo_masked<E: From<Error>>(
        &self,
        dir: &StoreDir,
        mask_outputs: bool,
        lookup: &mut dyn FnMut(&StorePath) -> Result<HashModulo, E>,
    ) -> Result<HashModulo, E> {
        match self.kind()? {
            Kind::Fixed => return Ok(HashModulo::Fixed(self.hash_fixed(dir)?)),
            Kind::Floating | Kind::Impure => return Ok(HashModulo::Deferred),
            Kind::InputAddressed | Kind::Deferred => {}
        }
        let Some(inputs) = self.hash_inputs(lookup)? else { return Ok(HashModulo::Deferred) };
        let mut text = Vec::new();
        self.write_variant(dir, Variant { mask_outputs, inputs: Some(&inputs) }, &mut text)?;
        Ok(HashModulo::Regular(sha256(&text)))
    }

    /// The inputs with hashes for paths in hash order, or nothing if one of them is deferred.
    ///
    /// NIX: of two inputs with one hash, the one with the greater path stays with its outputs; the other is dropped.
    /// That is Nix 2.35; older versions (2.8 among them) unite the outputs.
    pub(super) fn hash_inputs<E: From<Error>>(
        &self,
        lookup: &mut dyn FnMut(&StorePath) -> Result<HashModulo, E>,
    ) -> Result<Option<Vec<HashedInput<'_>>>, E> {
        let mut inputs = Vec::with_capacity(self.input_drvs.len());
        for (path, node) in self.input_drvs.iter() {
            if !node.dynamic.is_empty() {
                return Ok(None);
            }
            match lookup(path)? {
                HashModulo::Deferred => return Ok(None),
                HashModulo::Regular(hash) => inputs.push(HashedInput { hash, outputs: HashedOutputs::Of(node) }),
                HashModulo::Fixed(hash) => {
                    for output in node.outputs.iter() {
                        if **output != *b"out" {
                            let parts: [&[u8]; 5] =
                                [b"no hash for output '", output, b"' of derivation '", &self.name, b"'"];
                            return Err(Error::new(ErrorKind::Other, &parts).into());
                        }
                        inputs.push(HashedInput { hash, outputs: HashedOutputs::Out });
                    }
                }
            }
        }
        // Reversed, a stable sort puts the last of equal hashes first, where `dedup` keeps it.
        inputs.reverse();
        inputs.sort_by_key(|input| input.hash);
        inputs.dedup_by(|later, kept| later.hash == kept.hash);
        Ok(Some(inputs))
    }

    fn hash_fixed(&self, dir: &StoreDir) -> Result<[u8; 32]> {
        let Some(Output::Fixed(address)) = self.outputs.get(&b"out"[..]) else {
            unreachable!("kind() is Fixed only with a fixed output `out`")
        };
        let output = Output::Fixed(*address);
        let mut text = Vec::with_capacity(256);
        text.extend_from_slice(b"fixed:out:");
        address.write_method_algorithm(&mut text);
        text.push(b':');
        address.hash.write(Format::Base16, false, &mut text);
        text.push(b':');
        if let Some(path) = output.path(dir, &self.name, b"out")? {
            dir.print_into(&path, &mut text);
        }
        Ok(sha256(&text))
    }
}
