//! The attributes of a derivation: coerced to the environment, or written as JSON (`__structuredAttrs`).
//!
//! NIX: positions are absent inside; each error gets a frame that names the attribute and where it was defined.

use crate::json::value_to_json;
use crate::store::eval_error;
use firn_eval::{Coercion, Error, ErrorKind, Machine, Result, Walk, color_bytes, colored, missing_feature, store_error};
use firn_source::{Pos, Symbol};
use firn_store::content_address::Method;
use firn_store::derivation::Derivation;
use firn_store::derivation::env::Env;
use firn_store::hash::Algorithm;
use firn_value::{Attrs, ContextBuilder, Value};
use std::collections::BTreeSet;

/// How attributes become strings.
const COERCION: Coercion = Coercion { more: true, copy_to_store: true, canonical_path: true };

/// A derivation in the making.
pub(crate) struct Draft<'m> {
    pub machine: &'m Machine,
    pub drv: Derivation,
    pub context: ContextBuilder,
    pub content_addressed: bool,
    pub impure: bool,
    pub output_hash: Option<Vec<u8>>,
    pub algorithm: Option<Algorithm>,
    pub method: Option<Method>,
    pub outputs: BTreeSet<Vec<u8>>,
    /// The JSON text of structured attributes so far, without the closing brace.
    json: Option<Vec<u8>>,
}

impl<'m> Draft<'m> {
    pub fn new(machine: &'m Machine, name: &[u8]) -> Draft<'m> {
        Draft {
            machine,
            drv: Derivation { name: name.to_vec(), ..Derivation::default() },
            context: ContextBuilder::default(),
            content_addressed: false,
            impure: false,
            output_hash: None,
            algorithm: None,
            method: None,
            outputs: BTreeSet::from([b"out".to_vec()]),
            json: None,
        }
    }

    /// Reads all attributes.
    pub fn read(&mut self, set: Attrs) -> Result<()> {
        let flag = |name: &str, what: &'static str| match set.get(Symbol::from(name)) {
            Some(value) => self.machine.force_bool(value, Pos::NONE, what),
            None => Ok(false),
        };
        let structured = flag(
            "__structuredAttrs",
            "while evaluating the `__structuredAttrs` attribute passed to builtins.derivationStrict",
        )?;
        let ignore_nulls = flag(
            "__ignoreNulls",
            "while evaluating the `__ignoreNulls` attribute passed to builtins.derivationStrict",
        )?;
        if structured {
            self.json = Some(b"{".to_vec());
        } else {
            self.drv.env = Env::with_capacity(set.len() + 1, 64 * set.len());
        }
        self.machine.offer(set.iter_by_name().map(|(_, _, cell)| cell), Walk::Input);
        for (name, pos, value) in set.iter_by_name() {
            if name.as_bytes() != b"__ignoreNulls" {
                self.read_attribute(name, value, ignore_nulls).map_err(|e| self.in_attribute(e, name, pos))?;
            }
        }
        if let Some(mut json) = self.json.take() {
            json.push(b'}');
            self.drv.structured_attrs = Some(json);
        }
        Ok(())
    }

    #[cold]
    fn in_attribute(&self, error: Box<Error>, name: Symbol, pos: Pos) -> Box<Error> {
        let shown = [color_bytes(name.as_bytes()), color_bytes(&self.drv.name)];
        let parts = [b"while evaluating attribute '".as_slice(), &shown[0], b"' of derivation '", &shown[1], b"'"];
        error.trace(pos, parts.concat())
    }

    fn read_attribute(&mut self, name: Symbol, value: Value, ignore_nulls: bool) -> Result<()> {
        let machine = self.machine;
        if ignore_nulls && machine.force(value, Pos::NONE)? == Value::NULL {
            return Ok(());
        }
        match name.as_bytes() {
            b"__contentAddressed" => {
                if machine.force_bool(value, Pos::NONE, "")? {
                    self.content_addressed = true;
                    self.require(machine.settings().features.ca_derivations, "ca-derivations")?;
                }
            }
            b"__impure" => {
                if machine.force_bool(value, Pos::NONE, "")? {
                    self.impure = true;
                    self.require(machine.settings().features.impure_derivations, "impure-derivations")?;
                }
            }
            b"args" => {
                for item in machine.force_list(value, Pos::NONE, "")?.iter() {
                    let argument = self.coerce(item, "while evaluating an element of the argument list")?;
                    self.drv.args.push(argument.to_vec());
                }
            }
            key if self.json.is_some() => self.read_structured(key, value)?,
            key => self.read_plain(key, value)?,
        }
        Ok(())
    }

    fn require(&self, enabled: bool, feature: &str) -> Result<()> {
        if enabled { Ok(()) } else { Err(missing_feature(feature)) }
    }

    fn coerce(&mut self, value: Value, what: &'static str) -> Result<&'static [u8]> {
        let text = self.machine.coerce_to_string(value, Pos::NONE, what, COERCION)?;
        let Some(text) = text.as_str() else { return Ok(&[]) };
        self.context.add(text.context());
        Ok(text.bytes())
    }

    fn read_plain(&mut self, key: &[u8], value: Value) -> Result<()> {
        let text = self.coerce(value, "")?;
        if key == b"__json" {
            let name = String::from_utf8_lossy(&self.drv.name).into_owned();
            self.warn(&format!(
                "In derivation '{name}': setting structured attributes via '__json' is deprecated, and may be disallowed \
                 in future versions of Nix. Set '__structuredAttrs = true' instead."
            ))?;
            self.drv.structured_attrs = Some(crate::derivation_json::reprint(text)?);
            return Ok(());
        }
        self.drv.env.insert(key, text);
        match key {
            b"builder" => self.drv.builder = text.to_vec(),
            b"system" => self.drv.system = text.to_vec(),
            b"outputHash" => self.output_hash = Some(text.to_vec()),
            b"outputHashAlgo" => self.algorithm = self.read_algorithm(text)?,
            b"outputHashMode" => self.read_method(text)?,
            b"outputs" => {
                let words = text.split(|byte| b" \t\n\r".contains(byte)).filter(|word| !word.is_empty());
                self.read_outputs(words)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn read_structured(&mut self, key: &[u8], value: Value) -> Result<()> {
        if key == b"__structuredAttrs" {
            return Ok(());
        }
        let machine = self.machine;
        if let Some(json) = &mut self.json {
            if json.len() > 1 {
                json.push(b',');
            }
            firn_text::json::write_string(json, key).map_err(|why| eval_error(why, Pos::NONE))?;
            json.push(b':');
            value_to_json(machine, value, true, Pos::NONE, json, &mut self.context, true)?;
        }
        let plain = |value| machine.force_string_no_context(value, Pos::NONE, "").map(|text| text.bytes());
        match key {
            b"builder" => {
                let text = machine.force_string(value, Pos::NONE, "")?;
                self.context.add(text.context());
                self.drv.builder = text.bytes().to_vec();
            }
            b"system" => self.drv.system = plain(value)?.to_vec(),
            b"outputHash" => self.output_hash = Some(plain(value)?.to_vec()),
            b"outputHashAlgo" => self.algorithm = self.read_algorithm(plain(value)?)?,
            b"outputHashMode" => self.read_method(plain(value)?)?,
            b"outputs" => {
                let list = machine.force_list(value, Pos::NONE, "")?;
                let names = list.iter().map(plain).collect::<Result<Vec<_>>>()?;
                self.read_outputs(names.into_iter())?;
            }
            b"allowedReferences"
            | b"allowedRequisites"
            | b"disallowedReferences"
            | b"disallowedRequisites"
            | b"maxSize"
            | b"maxClosureSize" => self.warn_disabled(&String::from_utf8_lossy(key))?,
            _ => {}
        }
        Ok(())
    }

    fn warn(&self, message: &str) -> Result<()> {
        self.machine.log(format!("warning: {message}\n").as_bytes())
    }

    fn warn_disabled(&self, attribute: &str) -> Result<()> {
        let name = String::from_utf8_lossy(&self.drv.name);
        self.warn(&format!(
            "In a derivation named '{name}', 'structuredAttrs' disables the effect of the derivation attribute \
             '{attribute}'; use 'outputChecks.<output>.{attribute}' instead"
        ))
    }

    /// NIX: an unknown algorithm counts as none.
    fn read_algorithm(&self, name: &[u8]) -> Result<Option<Algorithm>> {
        match Algorithm::from_name(name) {
            Some(Algorithm::Blake3) => crate::hashes::algorithm(self.machine, name).map(Some),
            other => Ok(other),
        }
    }

    fn read_method(&mut self, word: &[u8]) -> Result<()> {
        let features = &self.machine.settings().features;
        let method = match word {
            // The old name.
            b"recursive" => Method::Nar,
            _ => Method::parse(word).map_err(|_| {
                let shown = color_bytes(word);
                eval_error(
                    [b"invalid value '".as_slice(), &shown, b"' for 'outputHashMode' attribute"].concat(),
                    Pos::NONE,
                )
            })?,
        };
        self.method = Some(method);
        match method {
            Method::Text if !features.dynamic_derivations => Err(self.missing_dynamic_derivations()),
            Method::Git => self.require(features.git_hashing, "git-hashing"),
            _ => Ok(()),
        }
    }

    #[cold]
    fn missing_dynamic_derivations(&self) -> Box<Error> {
        let feature = colored("dynamic-derivations");
        let name = String::from_utf8_lossy(&self.drv.name);
        let message = format!(
            "experimental Nix feature '{feature}' is disabled (text-hashed derivation '{name}', outputHashMode = \
             \"text\"); add '--extra-experimental-features {feature}' to enable it"
        );
        Error::new(ErrorKind::Eval, message)
    }

    fn read_outputs<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        self.outputs.clear();
        for name in names {
            if self.outputs.contains(name) {
                let shown = color_bytes(name);
                return Err(eval_error(
                    [b"duplicate derivation output '".as_slice(), &shown, b"'"].concat(),
                    Pos::NONE,
                ));
            }
            if name == b"drvPath" {
                return Err(eval_error("invalid derivation output name 'drvPath'", Pos::NONE));
            }
            self.outputs.insert(name.to_vec());
        }
        if self.outputs.is_empty() {
            return Err(eval_error("derivation cannot have an empty set of outputs", Pos::NONE));
        }
        Ok(())
    }

    /// Whether `out` is the only output.
    pub fn has_only_out(&self) -> bool {
        self.outputs.len() == 1 && self.outputs.contains(&b"out"[..])
    }
}

/// An error of the JSON text in `__json`.
pub(crate) fn bad_json(why: &[u8]) -> Box<Error> {
    let shown = [color_bytes(b"__json"), color_bytes(why)];
    let error = firn_store::Error::new(
        firn_store::ErrorKind::Other,
        &[b"cannot process ", &shown[0], b" attribute: ", &shown[1]],
    );
    store_error(&error)
}
