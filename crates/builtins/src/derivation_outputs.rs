//! The outputs of a derivation: a path known by its content, by its inputs, or a placeholder until it is built.

use crate::derivation_attrs::Draft;
use crate::sources::parse_hash;
use crate::store::eval_error;
use firn_eval::{Result, store_error};
use firn_source::Pos;
use firn_store::content_address::{ContentAddress, Method};
use firn_store::derivation::Output;
use firn_store::hash::Algorithm;
use firn_store::placeholder;

impl Draft<'_> {
    /// Decides how the outputs are found and puts them and their variables into the derivation.
    pub(crate) fn set_outputs(&mut self) -> Result<()> {
        if let Some(hash) = self.output_hash.take() {
            self.set_fixed(&hash)
        } else if self.content_addressed || self.impure {
            self.set_floating()
        } else {
            self.set_input_addressed();
            Ok(())
        }
    }

    /// NIX: `__contentAddressed` and `__impure` are ignored: a fixed output is content-addressed already.
    fn set_fixed(&mut self, hash: &[u8]) -> Result<()> {
        if !self.has_only_out() {
            return Err(eval_error("multiple outputs are not supported in fixed-output derivations", Pos::NONE));
        }
        let hash = parse_hash(self.machine, hash, self.algorithm)?;
        let output = Output::Fixed(ContentAddress { method: self.method.unwrap_or(Method::Flat), hash });
        let dir = self.machine.store_dir();
        if let Some(path) = output.path(dir, &self.drv.name, b"out").map_err(|e| store_error(&e))? {
            self.drv.env.insert(b"out", &dir.print(&path));
        }
        self.drv.outputs.insert(b"out"[..].into(), output);
        Ok(())
    }

    fn set_floating(&mut self) -> Result<()> {
        if self.content_addressed && self.impure {
            return Err(eval_error("derivation cannot be both content-addressed and impure", Pos::NONE));
        }
        let algorithm = self.algorithm.unwrap_or(Algorithm::Sha256);
        let method = self.method.unwrap_or(Method::Nar);
        for name in &self.outputs {
            self.drv.env.insert(name, placeholder::own_output(name).as_bytes());
            let output =
                if self.impure { Output::Impure(method, algorithm) } else { Output::Floating(method, algorithm) };
            self.drv.outputs.insert(name[..].into(), output);
        }
        Ok(())
    }

    /// The paths follow when the derivation is finished.
    fn set_input_addressed(&mut self) {
        for name in &self.outputs {
            self.drv.env.insert(name, b"");
            self.drv.outputs.insert(name[..].into(), Output::Deferred);
        }
    }
}
