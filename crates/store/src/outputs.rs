//! Output selections as typed after `^`: `*` or names with commas.

use crate::error::Result;
use crate::path::check_name;
use crate::sorted::SortedSet;

/// Which outputs of a derivation are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputsSpec {
    /// `*`.
    All,
    /// These.
    Names(SortedSet<Vec<u8>>),
}

impl OutputsSpec {
    /// Parses `*` or `a,b`; each name must be valid in a store path.
    pub fn parse(text: &[u8]) -> Result<Self> {
        if text == b"*" {
            return Ok(OutputsSpec::All);
        }
        let names: SortedSet<Vec<u8>> = text.split(|c| *c == b',').map(<[u8]>::to_vec).collect();
        names.iter().try_for_each(|name| check_name(name))?;
        Ok(OutputsSpec::Names(names))
    }

    /// Splits `thing^outputs` at the last `^`. Without one, or with an invalid selection, the second half is `None`
    /// or an error respectively.
    pub fn split(text: &[u8]) -> Result<(&[u8], Option<Self>)> {
        match memchr::memrchr(b'^', text) {
            None => Ok((text, None)),
            Some(at) => Ok((&text[..at], Some(Self::parse(&text[at + 1..])?))),
        }
    }

    /// Whether `output` is selected.
    pub fn contains(&self, output: &[u8]) -> bool {
        match self {
            OutputsSpec::All => true,
            OutputsSpec::Names(names) => names.as_slice().binary_search_by(|n| n[..].cmp(output)).is_ok(),
        }
    }

    /// The printed form.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            OutputsSpec::All => b"*".to_vec(),
            OutputsSpec::Names(names) => names.as_slice().join(&b','),
        }
    }
}
