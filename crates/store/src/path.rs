//! Store paths without their directory: 32 base-32 digits, a dash, a name; and the rules for names.
//!
//! A [`StorePath`] in hand is valid. It is a shared ASCII string, so that string contexts, inputs and caches can hold
//! it at the cost of a reference count, and it orders as Nix orders paths (bytewise).

use crate::base32;
use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::sync::Arc;

/// Digits in the digest part.
pub const DIGEST_LEN: usize = 32;
/// The longest name allowed.
pub const MAX_NAME_LEN: usize = 211;
/// The ending of derivation files.
pub const DRV_EXTENSION: &str = ".drv";

/// `<digest>-<name>`, checked.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorePath(Arc<str>);

impl StorePath {
    /// Parses a base name (no directory).
    pub fn parse(base_name: &[u8]) -> Result<Self> {
        let bad = |parts: &[&[u8]]| Err(Error::new(ErrorKind::BadStorePath, parts));
        if base_name.len() < DIGEST_LEN + 1 {
            return bad(&[b"'", base_name, b"' is too short to be a valid store path"]);
        }
        if base_name[DIGEST_LEN] != b'-' {
            return bad(&[
                b"'",
                base_name,
                b"' can't name a store path because the hash part is not followed by a '-'",
            ]);
        }
        if let Some(&c) = base_name[..DIGEST_LEN].iter().find(|c| base32::digit(**c).is_none()) {
            return bad(&[b"store path '", base_name, b"' contains illegal base-32 character '", &[c], b"'"]);
        }
        Self::checked(base_name)
    }

    /// The path of a 20-byte digest and a name.
    pub fn new(digest: &[u8; 20], name: &[u8]) -> Result<Self> {
        let mut base_name = Vec::with_capacity(DIGEST_LEN + 1 + name.len());
        base32::encode_into(digest, &mut base_name);
        base_name.push(b'-');
        base_name.extend_from_slice(name);
        Self::checked(&base_name)
    }

    /// Checks the name and, given that the digest part is known to be good, makes the path.
    fn checked(base_name: &[u8]) -> Result<Self> {
        if let Err(error) = check_name(&base_name[DIGEST_LEN + 1..]) {
            return Err(Error::new(
                ErrorKind::BadStorePath,
                &[b"path '", base_name, b"' is not a valid store path: ", error.message()],
            ));
        }
        match std::str::from_utf8(base_name) {
            Ok(text) => Ok(StorePath(text.into())),
            Err(_) => unreachable!("digits and name characters are ASCII"),
        }
    }

    /// `<digest>-<name>`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `<digest>-<name>` as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The 32 digits.
    pub fn digest_part(&self) -> &str {
        &self.0[..DIGEST_LEN]
    }

    /// What follows the dash.
    pub fn name(&self) -> &str {
        &self.0[DIGEST_LEN + 1..]
    }

    /// Whether the name ends in `.drv`.
    pub fn is_derivation(&self) -> bool {
        self.name().ends_with(DRV_EXTENSION)
    }

    /// Refuses paths that are not derivations.
    pub fn require_derivation(&self) -> Result<()> {
        if self.is_derivation() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Format,
            &[b"store path '", self.as_bytes(), b"' is not a valid derivation path"],
        ))
    }

    /// The name of the derivation in this file: the name without `.drv`.
    pub fn derivation_name(&self) -> Result<&str> {
        self.require_derivation()?;
        Ok(&self.name()[..self.name().len() - DRV_EXTENSION.len()])
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const NAME_BYTES: [bool; 256] = {
    let mut map = [false; 256];
    let mut i = 0;
    while i < 256 {
        let c = i as u8;
        map[i] = c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.' | b'_' | b'?' | b'=');
        i += 1;
    }
    map
};

/// Whether `name` may stand in a store path; the error says why not.
pub fn check_name(name: &[u8]) -> Result<()> {
    let bad = |parts: &[&[u8]]| Err(Error::new(ErrorKind::BadStorePathName, parts));
    if name.is_empty() {
        return bad(&[b"name must not be empty"]);
    }
    if name.len() > MAX_NAME_LEN {
        return bad(&[b"name '", name, b"' must be no longer than 211 characters"]);
    }
    if name == b"." || name == b".." {
        return bad(&[b"name '", name, b"' is not valid"]);
    }
    for dots in [&b"."[..], b".."] {
        if name.strip_prefix(dots).is_some_and(|rest| rest[0] == b'-') {
            return bad(&[
                b"name '",
                name,
                b"' is not valid: first dash-separated component must not be '",
                dots,
                b"'",
            ]);
        }
    }
    match name.iter().find(|c| !NAME_BYTES[usize::from(**c)]) {
        None => Ok(()),
        Some(&c) => bad(&[b"name '", name, b"' contains illegal character '", &[c], b"'"]),
    }
}

/// The name of an output's path: the derivation's name, and the output's unless that is `out`.
pub fn output_path_name(drv_name: &[u8], output: &[u8]) -> Vec<u8> {
    if output == b"out" { drv_name.to_vec() } else { [drv_name, b"-", output].concat() }
}
