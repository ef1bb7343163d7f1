//! The `inputs` of a `flake.nix`: read without evaluating anything but literals.

use std::collections::BTreeMap;

use firn_builtins::{fetch_error, fetcher};
use firn_eval::{Error, ErrorKind, Machine, Result, colored, colored_name, missing_feature, show_type};
use firn_host::AbsPath;
use firn_host::fetch::{Attr, Attrs};
use firn_ir::Expr;
use firn_source::{Pos, Symbol};
use firn_value::{ContextBuilder, Type, Value};

use crate::lock_file::InputPath;
use crate::{FlakeRef, ParseOptions, parse_input_path};

/// An input as `flake.nix` declares it.
#[derive(Clone, Debug)]
pub struct FlakeInput {
    /// What it refers to; without one, a registry's entry of its name.
    pub reference: Option<FlakeRef>,
    /// Whether it is a flake, not any tree.
    pub is_flake: bool,
    /// The input it stands for, from the root.
    pub follows: Option<InputPath>,
    /// Changes to its own inputs.
    pub overrides: BTreeMap<String, FlakeInput>,
}

impl Default for FlakeInput {
    fn default() -> FlakeInput {
        FlakeInput { reference: None, is_flake: true, follows: None, overrides: BTreeMap::new() }
    }
}

/// The place in messages.
pub(crate) fn place(pos: Pos) -> String {
    let text = pos.resolve().map(|at| String::from_utf8_lossy(&at.show()).into_owned());
    colored(text.unwrap_or_else(|| "«none»:0".to_owned()))
}

/// Forces what is written as a set, a list or a function: that evaluates nothing else.
pub(crate) fn force_trivial(machine: &Machine, value: Value, pos: Pos) -> Result<Value> {
    let Some(thunk) = value.as_thunk() else { return Ok(value) };
    if let Some(forced) = thunk.forced() {
        return Ok(forced);
    }
    let trivial = thunk.suspended_body().is_some_and(|(body, _)| match body.code() {
        Expr::Attrs(set) => set.dynamic.is_empty(),
        Expr::List(_) | Expr::Lambda(_) | Expr::Const(..) => true,
        _ => false,
    });
    if trivial { machine.force(value, pos) } else { Ok(value) }
}

/// A value that must be written as a literal of this type.
pub(crate) fn expect(machine: &Machine, wanted: Type, value: Value, pos: Pos) -> Result<Value> {
    let value = force_trivial(machine, value, pos)?;
    if value.get_type() == Some(wanted) {
        return Ok(value);
    }
    let name = match wanted {
        Type::Attrs => "a set",
        Type::String => "a string",
        Type::Bool => "a Boolean",
        Type::Function => "a function",
        _ => "a value",
    };
    let message = format!("expected {} but got {} at {}", colored(name), colored(show_type(value)), place(pos));
    Err(Error::new(ErrorKind::Host, message))
}

fn text(value: Value) -> Option<String> {
    value.as_str().map(|text| String::from_utf8_lossy(text.bytes()).into_owned())
}

/// Where inputs are read from: the flake, and the way to it from the root.
pub(crate) struct Reader<'a> {
    pub machine: &'a Machine,
    pub flake_dir: &'a AbsPath,
    pub root: &'a [String],
}

impl Reader<'_> {
    /// All inputs, and the attributes of `self`.
    pub fn inputs(&self, value: Value, pos: Pos, allow_self: bool) -> Result<(BTreeMap<String, FlakeInput>, Attrs)> {
        let value = expect(self.machine, Type::Attrs, value, pos)?;
        let (mut inputs, mut itself) = (BTreeMap::new(), Attrs::new());
        for (name, at, cell) in value.as_attrs().iter().flat_map(|set| set.iter_by_name()) {
            if name.as_bytes() == b"self" {
                if !allow_self {
                    let message = format!("'self' input attribute not allowed at {}", place(at));
                    return Err(Error::new(ErrorKind::Host, message));
                }
                let set = expect(self.machine, Type::Attrs, cell, at)?;
                for (name, at, cell) in set.as_attrs().iter().flat_map(|set| set.iter_by_name()) {
                    self.attribute(name, at, force_trivial(self.machine, cell, at)?, &mut itself)?;
                }
            } else {
                let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
                inputs.insert(name, self.input(cell, at)?);
            }
        }
        Ok((inputs, itself))
    }

    fn attribute(&self, name: Symbol, pos: Pos, value: Value, attrs: &mut Attrs) -> Result<()> {
        let attr = if let Some(text) = text(value) {
            text.into()
        } else if let Some(flag) = value.as_bool() {
            Attr::Flag(flag)
        } else if let Some(number) = value.as_int() {
            Attr::Number(u64::try_from(number).map_err(|_| {
                let parts = (colored(name), colored(number));
                Error::new(ErrorKind::Eval, format!("negative value given for flake input attribute {}: {}", parts.0, parts.1))
            })?)
        } else if name.as_bytes() == b"publicKeys" {
            if !fetcher(self.machine)?.settings.verified_fetches {
                return Err(missing_feature("verified-fetches"));
            }
            let (mut json, mut context) = (Vec::new(), ContextBuilder::default());
            firn_builtins::value_to_json(self.machine, value, true, pos, &mut json, &mut context, true)?;
            String::from_utf8_lossy(&json).into_owned().into()
        } else {
            let message = format!(
                "flake input attribute '{}' is {} while a string, Boolean, or integer is expected",
                colored_name(name),
                colored(show_type(value))
            );
            return Err(Error::new(ErrorKind::Type, message));
        };
        attrs.insert(String::from_utf8_lossy(name.as_bytes()).into_owned(), attr);
        Ok(())
    }

    fn input(&self, value: Value, pos: Pos) -> Result<FlakeInput> {
        let value = expect(self.machine, Type::Attrs, value, pos)?;
        let mut input = FlakeInput::default();
        let (mut attrs, mut url) = (Attrs::new(), None);
        for (name, at, cell) in value.as_attrs().iter().flat_map(|set| set.iter_by_name()) {
            self.part(name, at, cell, &mut input, &mut attrs, &mut url).map_err(|error| {
                error.trace(at, format!("while evaluating flake attribute '{}'", colored_name(name)))
            })?;
        }
        let fetcher = fetcher(self.machine)?;
        if attrs.contains_key("type") {
            let reference = FlakeRef::from_attrs(&fetcher.settings, attrs);
            input.reference = Some(reference.map_err(|e| fetch_error(&e).trace(pos, "while evaluating flake input"))?);
        } else {
            attrs.remove("url");
            if let Some(name) = attrs.keys().next() {
                let message = format!("unexpected flake input attribute '{}', at {}", colored(name), place(pos));
                return Err(Error::new(ErrorKind::Host, message));
            }
            if let Some(url) = url {
                let options =
                    ParseOptions { base: None, allow_missing: true, is_flake: input.is_flake, keep_relative: true };
                input.reference = Some(FlakeRef::parse(&fetcher, &url, options).map_err(|e| fetch_error(&e))?);
            }
        }
        if input.reference.is_some() && input.follows.is_some() {
            let message = format!("flake input has both a flake reference and a follows attribute, at {}", place(pos));
            return Err(Error::new(ErrorKind::Host, message));
        }
        Ok(input)
    }

    fn part(
        &self,
        name: Symbol,
        pos: Pos,
        cell: Value,
        input: &mut FlakeInput,
        attrs: &mut Attrs,
        url: &mut Option<String>,
    ) -> Result<()> {
        match name.as_bytes() {
            b"url" => {
                let value = force_trivial(self.machine, cell, pos)?;
                *url = Some(match (text(value), value.as_path()) {
                    (Some(text), _) => text,
                    (None, Some(path)) => self.relative(path, pos)?,
                    (None, None) => {
                        let found = colored(show_type(value));
                        let message = format!("expected a string or a path but got {found} at {}", place(pos));
                        return Err(Error::new(ErrorKind::Host, message));
                    }
                });
                attrs.extend(url.clone().map(|url| ("url".to_owned(), url.into())));
            }
            b"flake" => input.is_flake = expect(self.machine, Type::Bool, cell, pos)? == Value::TRUE,
            b"inputs" => input.overrides = self.inputs(cell, pos, false)?.0,
            b"follows" => {
                let value = expect(self.machine, Type::String, cell, pos)?;
                let path = parse_input_path(&text(value).unwrap_or_default()).map_err(|e| fetch_error(&e))?;
                input.follows = Some(self.root.iter().cloned().chain(path).collect());
            }
            _ => self.attribute(name, pos, force_trivial(self.machine, cell, pos)?, attrs)?,
        }
        Ok(())
    }

    /// A path in the flake's own tree, as a reference relative to the flake.
    fn relative(&self, path: &[u8], pos: Pos) -> Result<String> {
        let path = AbsPath::new(path).map_err(|e| self.machine.host_error(e))?;
        let dir = self.machine.store_dir();
        let object = |path: &AbsPath| dir.split(path.as_bytes()).ok().map(|(object, _)| object);
        if object(&path) != object(self.flake_dir) {
            let message = format!(
                "input attribute path '{}' at {} must be in the same source tree as {}",
                colored(&path),
                place(pos),
                colored(self.flake_dir)
            );
            return Err(Error::new(ErrorKind::Host, message));
        }
        Ok(format!("path:{}", String::from_utf8_lossy(&self.flake_dir.relative_to(&path))))
    }
}
