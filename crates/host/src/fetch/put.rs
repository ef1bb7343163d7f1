//! Writing into trees that inputs mean: how a lock file gets to its flake.
#![allow(clippy::disallowed_methods)] // Writes where the user's flake is.

use std::path::{Path, PathBuf};

use super::error::{FetchError, file_error, shown};
use super::fetcher::Fetcher;
use super::git;
use super::input::Input;
use super::schemes::Scheme;
use crate::AbsPath;

impl Fetcher {
    /// Writes a file of the tree that an input means. In a Git work tree it becomes a tracked file, and with a message
    /// it is committed.
    pub fn put_file(&self, input: &Input, path: &str, text: &[u8], message: Option<&str>) -> Result<(), FetchError> {
        let Some(root) = input.source_path()?.map(PathBuf::from) else {
            let parts = (shown(input.show()), shown(path));
            return Err(FetchError::new(format!("input '{}' does not support modifying file '{}'", parts.0, parts.1)));
        };
        let place = root.join(path);
        write(&place, text)?;
        if input.scheme != Some(Scheme::Git) {
            return Ok(());
        }
        let ignored = git::ask(&root, &["check-ignore", "--quiet", "--", path])?.is_some();
        if ignored {
            return Ok(());
        }
        git::run(&root, &["add", "--intent-to-add", "--", path])?;
        if let Some(message) = message {
            git::run(&root, &["commit", "--quiet", "--message", message, "--", path])?;
        }
        Ok(())
    }

    /// Writes a file that the user named.
    pub fn write_file(&self, path: &AbsPath, text: &[u8]) -> Result<(), FetchError> {
        write(path.as_path(), text)
    }
}

/// Beside its place first, so that nobody ever sees half of it; a link stays one.
fn write(place: &Path, text: &[u8]) -> Result<(), FetchError> {
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let made = place.with_extension(format!("lock.{}", std::process::id()));
    std::fs::write(&made, text).map_err(|e| file_error("writing", &made, e))?;
    std::fs::rename(&made, &place).map_err(|e| file_error("renaming", &made, e))
}
