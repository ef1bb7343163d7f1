//! Paths that become store paths: what `"${./x}"` does.

use crate::{Machine, colored};
use firn_source::{Pos, Symbol};
use firn_value::{Error, ErrorKind, Result};
use std::sync::Arc;

/// Copies sources into whatever store the run has, or only computes where they would be.
pub trait SourceCopier: Send + Sync {
    /// The store path (printed) of a file or directory under its base name, and the encoded context element.
    fn copy(&self, machine: &Machine, path: &[u8], pos: Pos) -> Result<(Vec<u8>, Symbol)>;
}

/// Holds the copier of a machine.
#[derive(Clone)]
pub struct Copier(pub Arc<dyn SourceCopier>);

impl std::fmt::Debug for Copier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Copier")
    }
}

impl Machine {
    /// Copies a path to the store: its store path and context element.
    pub fn copy_path_to_store(&self, path: &[u8], pos: Pos) -> Result<(Vec<u8>, Symbol)> {
        if path.ends_with(b".drv") {
            let message = format!("file names are not allowed to end in '{}'", colored(".drv"));
            return Err(Error::new(ErrorKind::Eval, message));
        }
        match self.shared.extensions.find::<Copier>() {
            Some(copier) => copier.0.copy(self, path, pos),
            None => Err(Error::new(ErrorKind::Store, "this evaluation has no store to copy sources to").at(pos)),
        }
    }
}
