//! Elements of string contexts: which store objects a string mentions.
//!
//! The printed form (`path`, `=path`, `!output!path`) is the one Nix keeps beside strings. Elements order as in Nix:
//! opaque, then deep, then built. The evaluator holds these in every string with context.

use crate::error::{Error, ErrorKind, Result};
use crate::path::StorePath;
use crate::placeholder::Placeholder;
use crate::store_dir::StoreDir;
use std::cmp::Ordering;
use std::sync::Arc;

/// The name of a derivation's output. Bytes: Nix checks names only where it makes paths of them.
pub type OutputName = Arc<[u8]>;

/// The longest chain of outputs that are themselves derivations. Nix has no limit but recurses per link.
pub const MAX_CHAIN: usize = 256;

/// One thing a string depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// The object at this path.
    Opaque(StorePath),
    /// The derivation at this path, all it needs and all outputs of those.
    DrvDeep(StorePath),
    /// The output of a derivation.
    Built(Built),
}

/// An output of a derivation, which may itself be an output (dynamic derivations), and so on.
///
/// Held as a flat chain, so that neither parsing nor dropping recurses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Built {
    /// The derivation file that exists from the start.
    pub drv: StorePath,
    /// The output of that.
    pub output: OutputName,
    /// The output of the derivation produced so, and on; empty unless dynamic.
    pub then: Box<[OutputName]>,
}

impl Built {
    /// The plain case.
    pub fn new(drv: StorePath, output: OutputName) -> Self {
        Built { drv, output, then: Box::default() }
    }

    /// Whether this needs `dynamic-derivations`.
    pub fn is_dynamic(&self) -> bool {
        !self.then.is_empty()
    }

    /// The output named last: what is built in the end.
    pub fn last_output(&self) -> &OutputName {
        self.then.last().unwrap_or(&self.output)
    }

    /// The output `output` of the derivation that this builds.
    pub fn output_of(&self, output: OutputName) -> Result<Self> {
        if self.then.len() + 2 > MAX_CHAIN {
            return Err(chain_too_long());
        }
        let then = self.then.iter().cloned().chain([output]).collect();
        Ok(Built { drv: self.drv.clone(), output: self.output.clone(), then })
    }

    /// The outputs from the innermost on.
    pub fn chain(&self) -> impl DoubleEndedIterator<Item = &OutputName> {
        std::iter::once(&self.output).chain(self.then.iter())
    }

    /// What stands in strings for a path that is not known before building.
    pub fn placeholder(&self) -> Placeholder {
        let first = Placeholder::unknown_ca_output(&self.drv, &self.output);
        self.then.iter().fold(first, |p, output| p.unknown_derivation(output))
    }

    /// `<path>^output^output` as on command lines and in messages.
    pub fn display(&self, dir: &StoreDir) -> Vec<u8> {
        let mut out = dir.print(&self.drv);
        for output in self.chain() {
            out.push(b'^');
            out.extend_from_slice(output);
        }
        out
    }
}

impl PartialOrd for Built {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Built {
    /// Nix compares the derivation first, and a plain path is less than a built one: so shorter chains come first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.then
            .len()
            .cmp(&other.then.len())
            .then_with(|| self.drv.cmp(&other.drv))
            .then_with(|| self.output.cmp(&other.output))
            .then_with(|| self.then.cmp(&other.then))
    }
}

impl Element {
    /// Parses the printed form.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let bad = |why: &[u8]| {
            Err(Error::new(ErrorKind::BadContext, &[b"Bad String Context element: ", why, b": ", text]))
        };
        match text {
            [] => bad(b"String context element should never be an empty string"),
            [b'=', rest @ ..] => Ok(Element::DrvDeep(StorePath::parse(rest)?)),
            [b'!', rest @ ..] => match memchr::memrchr(b'!', rest) {
                None => bad(b"String content element beginning with '!' should have a second '!'"),
                Some(at) => Ok(Element::Built(parse_chain(&rest[..at], &rest[at + 1..])?)),
            },
            _ if text.contains(&b'!') => {
                bad(b"String content element not beginning with '!' should not have a second '!'")
            }
            _ => Ok(Element::Opaque(StorePath::parse(text)?)),
        }
    }

    /// Prints the form that [`Element::parse`] reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Element::Opaque(path) => path.as_bytes().to_vec(),
            Element::DrvDeep(path) => [b"=", path.as_bytes()].concat(),
            Element::Built(built) => {
                let mut out = vec![b'!'];
                for output in built.chain().rev() {
                    out.extend_from_slice(output);
                    out.push(b'!');
                }
                out.extend_from_slice(built.drv.as_bytes());
                out
            }
        }
    }

    /// For messages: full paths, `^output`, and ` (deep)`.
    pub fn display(&self, dir: &StoreDir) -> Vec<u8> {
        match self {
            Element::Opaque(path) => dir.print(path),
            Element::DrvDeep(path) => [&dir.print(path)[..], b" (deep)"].concat(),
            Element::Built(built) => built.display(dir),
        }
    }

    /// The store path that exists without building anything.
    pub fn base_path(&self) -> &StorePath {
        match self {
            Element::Opaque(path) | Element::DrvDeep(path) => path,
            Element::Built(built) => &built.drv,
        }
    }
}

/// `outputs` is `outermost!…!innermost`.
fn parse_chain(outputs: &[u8], drv: &[u8]) -> Result<Built> {
    let drv = StorePath::parse(drv)?;
    let mut names = outputs.rsplit(|c| *c == b'!').map(OutputName::from);
    // `rsplit` yields at least one part.
    let output = names.next().unwrap_or_default();
    let then: Box<[OutputName]> = names.by_ref().take(MAX_CHAIN - 1).collect();
    if names.next().is_some() {
        return Err(chain_too_long());
    }
    Ok(Built { drv, output, then })
}

fn chain_too_long() -> Error {
    Error::new(ErrorKind::BadContext, &[b"chain of dynamic derivation outputs is longer than 256"])
}
