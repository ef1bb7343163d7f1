//! Derivations: what `derivationStrict` makes and `.drv` files hold.
//!
//! Parts: [`env`] holds the environment in one buffer, `print` and `parse` are the ATerm form, `modulo` the hash that
//! output paths are made of, `paths` fills output paths in and names the `.drv` file, `json` is what `nix derivation
//! show` prints, `difference` says where two derivations differ.

mod difference;
pub mod env;
mod finish;
mod json;
mod modulo;
mod parse;
mod paths;
mod print;

pub use difference::{Difference, Differences};
pub use json::JSON_VERSION;
pub use modulo::HashModulo;
pub use paths::DrvFile;

use crate::content_address::{ContentAddress, Method};
use crate::context::{Built, OutputName};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::Algorithm;
use crate::path::{StorePath, output_path_name};
use crate::sorted::{SortedMap, SortedSet};
use crate::store_dir::{References, StoreDir};
use env::Env;

/// The environment variable that carries structured attributes in the ATerm form.
pub const STRUCTURED_ATTRS: &[u8] = b"__json";

/// How one output's path is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// By the derivation's inputs.
    InputAddressed(StorePath),
    /// By contents, known beforehand.
    Fixed(ContentAddress),
    /// By contents, known after the build (`ca-derivations`).
    Floating(Method, Algorithm),
    /// By inputs some of which are not known yet.
    Deferred,
    /// By contents, and never reused (`impure-derivations`).
    Impure(Method, Algorithm),
}

impl Output {
    /// The path, where it is known before building.
    pub fn path(&self, dir: &StoreDir, drv_name: &[u8], output: &[u8]) -> Result<Option<StorePath>> {
        match self {
            Output::InputAddressed(path) => Ok(Some(path.clone())),
            Output::Fixed(address) => {
                let name = output_path_name(drv_name, output);
                dir.make_fixed_output_path(&name, address, References::default()).map(Some)
            }
            Output::Floating(..) | Output::Deferred | Output::Impure(..) => Ok(None),
        }
    }
}

/// Which outputs of an input derivation are needed, and of the derivations those outputs are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputNode {
    /// Outputs needed as they are.
    pub outputs: SortedSet<OutputName>,
    /// Outputs that are derivations, of which outputs are needed (`dynamic-derivations`).
    pub dynamic: SortedMap<OutputName, InputNode>,
}

/// What all outputs of a derivation have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Paths by inputs.
    InputAddressed,
    /// Paths by inputs, once those are known.
    Deferred,
    /// One output named `out` with a hash known beforehand.
    Fixed,
    /// Content-addressed after the build.
    Floating,
    /// Impure.
    Impure,
}

/// A store derivation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derivation {
    /// The name, without `.drv`. Not part of the file: it comes from the path.
    pub name: Vec<u8>,
    /// Outputs by name.
    pub outputs: SortedMap<OutputName, Output>,
    /// Input derivations.
    pub input_drvs: SortedMap<StorePath, InputNode>,
    /// Input objects that are not built.
    pub input_srcs: SortedSet<StorePath>,
    /// The `system` attribute.
    pub system: Vec<u8>,
    /// The program that builds.
    pub builder: Vec<u8>,
    /// Its arguments.
    pub args: Vec<Vec<u8>>,
    /// Its environment; must not define `__json`, see [`Derivation::structured_attrs`].
    pub env: Env,
    /// The JSON text of structured attributes, printed as the variable `__json`.
    ///
    /// NIX: Nix 2.35 reprints the JSON (keys sorted, no spaces, last duplicate wins); whoever sets this does so.
    pub structured_attrs: Option<Vec<u8>>,
}

impl Derivation {
    /// Adds an input that a string context names.
    pub fn add_built_input(&mut self, built: &Built) {
        let mut node = self.input_drvs.entry(built.drv.clone());
        let mut output = &built.output;
        for next in &built.then {
            node = node.dynamic.entry(output.clone());
            output = next;
        }
        node.outputs.insert(output.clone());
    }

    /// Whether an input is an output of a derivation that is itself built.
    pub fn has_dynamic_inputs(&self) -> bool {
        self.input_drvs.iter().any(|(_, node)| !node.dynamic.is_empty())
    }

    /// The kind of all outputs; derivations may not mix kinds.
    pub fn kind(&self) -> Result<Kind> {
        let fail = |message: &[u8]| Err(Error::new(ErrorKind::Other, &[message]));
        let mut kind = None;
        let mut floating_algorithm = None;
        for (name, output) in self.outputs.iter() {
            let this = match output {
                Output::InputAddressed(_) => Kind::InputAddressed,
                Output::Fixed(_) => Kind::Fixed,
                Output::Floating(..) => Kind::Floating,
                Output::Deferred => Kind::Deferred,
                Output::Impure(..) => Kind::Impure,
            };
            match kind {
                Some(other) if other != this => return fail(b"can't mix derivation output types"),
                Some(Kind::Fixed) => return fail(b"only one fixed output is allowed for now"),
                _ => kind = Some(this),
            }
            match output {
                Output::Fixed(_) if **name != *b"out" => {
                    return fail(b"single fixed output must be named \"out\"");
                }
                Output::Floating(_, algorithm)
                    if *floating_algorithm.get_or_insert(*algorithm) != *algorithm =>
                {
                    return fail(b"all floating outputs must use the same hash algorithm");
                }
                _ => {}
            }
        }
        kind.map_or_else(|| fail(b"must have at least one output"), Ok)
    }
}
