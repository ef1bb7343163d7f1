//! Paths of a derivation: of its outputs, filled in or checked, and of its own `.drv` file.

use super::{Derivation, HashModulo, Output};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::sha256;
use crate::path::{DRV_EXTENSION, StorePath};
use crate::store_dir::StoreDir;

/// A derivation ready to be written to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrvFile {
    /// Where it goes.
    pub path: StorePath,
    /// Its bytes.
    pub contents: Vec<u8>,
    /// What the file refers to: sources and input derivations, in order.
    pub references: Vec<StorePath>,
}

impl Derivation {
    /// The `.drv` file: bytes, path and references.
    pub fn to_file(&self, dir: &StoreDir) -> Result<DrvFile> {
        self.file_of(dir, self.to_aterm(dir)?)
    }

    /// The file with these bytes, which are those of this derivation.
    pub(super) fn file_of(&self, dir: &StoreDir, contents: Vec<u8>) -> Result<DrvFile> {
        let references = self.references();
        let name = [&self.name[..], DRV_EXTENSION.as_bytes()].concat();
        let path = dir.make_text_path(&name, &sha256(&contents), &references)?;
        Ok(DrvFile { path, contents, references })
    }

    /// Sources and input derivations, merged in order.
    pub fn references(&self) -> Vec<StorePath> {
        let mut all = Vec::with_capacity(self.input_srcs.len() + self.input_drvs.len());
        all.extend(self.input_srcs.iter().cloned());
        all.extend(self.input_drvs.keys().cloned());
        // Two ascending runs: the stable sort merges them.
        all.sort();
        all.dedup();
        all
    }

    /// Gives deferred outputs their paths where all inputs are known, and sets the variables named like outputs
    /// where they are absent or empty. Outputs that stay unknown stay deferred.
    pub fn fill_output_paths<E: From<Error>>(
        &mut self,
        dir: &StoreDir,
        lookup: &mut dyn FnMut(&StorePath) -> Result<HashModulo, E>,
    ) -> Result<(), E> {
        let mut own = None;
        let names: Vec<_> = self.outputs.keys().cloned().collect();
        for name in names {
            let path = match self.outputs.get(&name) {
                Some(Output::InputAddressed(_) | Output::Deferred) => {
                    let hash = match own {
                        Some(hash) => hash,
                        None => *own.insert(self.hash_modulo_masked(dir, true, lookup)?),
                    };
                    self.computed_path(dir, &name, hash)?
                }
                Some(output @ Output::Fixed(_)) => output.path(dir, &self.name, &name)?,
                _ => None,
            };
            let Some(path) = path else { continue };
            if self.outputs.get(&name) == Some(&Output::Deferred) {
                self.outputs.insert(name.clone(), Output::InputAddressed(path.clone()));
            }
            let full = dir.print(&path);
            if self.env.get(&name).is_none_or(<[u8]>::is_empty) {
                self.env.insert(&name, &full);
            }
            self.check_variable(&name, &full)?;
        }
        self.kind()?;
        Ok(())
    }

    /// Refuses output paths or variables other than [`Derivation::fill_output_paths`] would set. Returns what Nix
    /// only warns about.
    pub fn check_output_paths<E: From<Error>>(
        &self,
        dir: &StoreDir,
        lookup: &mut dyn FnMut(&StorePath) -> Result<HashModulo, E>,
    ) -> Result<Vec<Vec<u8>>, E> {
        let mut warnings = Vec::new();
        let mut own = None;
        for (name, output) in self.outputs.iter() {
            match output {
                Output::InputAddressed(_) | Output::Deferred => {
                    let hash = match own {
                        Some(hash) => hash,
                        None => *own.insert(self.hash_modulo_masked(dir, true, lookup)?),
                    };
                    let Some(path) = self.computed_path(dir, name, hash)? else { continue };
                    let full = dir.print(&path);
                    if *output == Output::Deferred {
                        warnings.push(
                            [
                                b"derivation has incorrect deferred output, should be '",
                                &full[..],
                                b"'.\nThis will be an error in future versions of Nix; compatibility of CA \
                                  derivations will be broken.",
                            ]
                            .concat(),
                        );
                    } else {
                        self.check_variable(name, &full)?;
                    }
                }
                Output::Fixed(_) => {
                    if let Some(path) = output.path(dir, &self.name, name)? {
                        self.check_variable(name, &dir.print(&path))?;
                    }
                }
                Output::Floating(..) | Output::Impure(..) => {}
            }
        }
        self.kind()?;
        Ok(warnings)
    }

    /// The path an output addressed by inputs has, or nothing while that is not known; an error if it states another.
    fn computed_path(&self, dir: &StoreDir, name: &[u8], hash: HashModulo) -> Result<Option<StorePath>> {
        let stated = match self.outputs.get(name) {
            Some(Output::InputAddressed(path)) => Some(path),
            _ => None,
        };
        let wrong = |path: &StorePath, should: &[u8]| {
            let parts: [&[u8]; 4] = [b"derivation has incorrect output '", &dir.print(path), b"', should be ", should];
            Err(Error::new(ErrorKind::Other, &parts))
        };
        match (hash, stated) {
            (HashModulo::Regular(hash), _) => {
                let path = dir.make_output_path(name, &hash, &self.name)?;
                match stated {
                    Some(other) if *other != path => wrong(other, &[b"'", &dir.print(&path)[..], b"'"].concat()),
                    _ => Ok(Some(path)),
                }
            }
            (_, Some(path)) => wrong(path, b"deferred"),
            (_, None) => Ok(None),
        }
    }

    fn check_variable(&self, name: &[u8], full: &[u8]) -> Result<()> {
        match self.env.get(name) {
            Some(value) if value == full => Ok(()),
            Some(value) => Err(Error::new(
                ErrorKind::Other,
                &[
                    b"derivation has incorrect environment variable '",
                    name,
                    b"', should be '",
                    full,
                    b"' but is actually '",
                    value,
                    b"'",
                ],
            )),
            None => Err(Error::new(
                ErrorKind::Other,
                &[
                    b"derivation has missing environment variable '",
                    name,
                    b"', should be '",
                    full,
                    b"' but is not present",
                ],
            )),
        }
    }
}
