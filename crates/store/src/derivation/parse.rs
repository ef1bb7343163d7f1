//! The ATerm form, read back. Hostile bytes give an error: no panic, no recursion beyond a bound, no allocation
//! larger than the text.
//!
//! NIX: of repeated outputs the first counts, of repeated inputs and variables the last. Stricter than Nix in two
//! points where Nix's reader is loose and its writer never goes: commas between elements are required, and nothing
//! may follow the end.

use super::{Derivation, InputNode, Output, STRUCTURED_ATTRS};
use crate::content_address::{ContentAddress, Method};
use crate::context::{MAX_CHAIN, OutputName};
use crate::error::{Error, ErrorKind, Result};
use crate::hash::{Algorithm, Hash};
use crate::store_dir::StoreDir;
use std::borrow::Cow;

impl Derivation {
    /// Parses the contents of a `.drv` file; `name` comes from its path ([`crate::path::StorePath::derivation_name`]).
    ///
    /// The `__json` variable becomes [`Derivation::structured_attrs`], byte for byte.
    pub fn parse_aterm(dir: &StoreDir, name: &[u8], text: &[u8]) -> Result<Self> {
        let mut reader = Reader { rest: text, dir, dynamic: false };
        let mut drv = Derivation { name: name.to_vec(), ..Derivation::default() };
        reader.header()?;
        reader.list(|r| {
            r.expect(b"(")?;
            let name = OutputName::from(&*r.string()?);
            let output = r.output()?;
            if !drv.outputs.contains_key(&name) {
                drv.outputs.insert(name, output);
            }
            Ok(())
        })?;
        reader.expect(b",")?;
        reader.list(|r| {
            r.expect(b"(")?;
            let path = r.path()?;
            r.expect(b",")?;
            let path = r.dir.parse(&path)?;
            drv.input_drvs.insert(path, r.node(0)?);
            r.expect(b")")
        })?;
        reader.expect(b",")?;
        reader.list(|r| {
            let path = r.path()?;
            drv.input_srcs.insert(r.dir.parse(&path)?);
            Ok(())
        })?;
        reader.expect(b",")?;
        drv.system = reader.string()?.into_owned();
        reader.expect(b",")?;
        drv.builder = reader.string()?.into_owned();
        reader.expect(b",")?;
        reader.list(|r| {
            drv.args.push(r.string()?.into_owned());
            Ok(())
        })?;
        reader.expect(b",")?;
        reader.list(|r| {
            r.expect(b"(")?;
            let name = r.string()?;
            r.expect(b",")?;
            let value = r.string()?;
            if *name == *STRUCTURED_ATTRS {
                drv.structured_attrs = Some(value.into_owned());
            } else {
                drv.env.insert(&name, &value);
            }
            r.expect(b")")
        })?;
        reader.expect(b")")?;
        if !reader.rest.is_empty() {
            return Err(format_error(&[b"trailing bytes after the end of the derivation"]));
        }
        Ok(drv)
    }
}

fn format_error(parts: &[&[u8]]) -> Error {
    Error::new(ErrorKind::Format, parts)
}

struct Reader<'a> {
    rest: &'a [u8],
    dir: &'a StoreDir,
    /// Whether the header announced the form with dynamic inputs.
    dynamic: bool,
}

impl<'a> Reader<'a> {
    fn header(&mut self) -> Result<()> {
        self.expect(b"D")?;
        match self.rest.first() {
            Some(b'e') => self.expect(b"erive("),
            Some(b'r') => {
                self.expect(b"rvWithVersion(")?;
                let version = self.string()?;
                if *version != *b"xp-dyn-drv" {
                    return Err(format_error(&[b"Unknown derivation ATerm format version '", &version, b"'"]));
                }
                self.dynamic = true;
                self.expect(b",")
            }
            _ => Err(Error::new(
                ErrorKind::Other,
                &[b"derivation does not start with 'Derive' or 'DrvWithVersion'"],
            )),
        }
    }

    fn expect(&mut self, text: &[u8]) -> Result<()> {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(format_error(&[b"expected string '", text, b"'"])),
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.rest.first() == Some(&byte);
        if hit {
            self.rest = &self.rest[1..];
        }
        hit
    }

    fn list(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.expect(b"[")?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.eat(b']') {
                return Ok(());
            }
            self.expect(b",")?;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        self.expect(b"\"")?;
        let text = self.rest;
        let mut owned: Option<Vec<u8>> = None;
        let mut start = 0;
        loop {
            let Some(at) = memchr::memchr2(b'"', b'\\', &text[start..]).map(|at| start + at) else {
                return Err(unterminated());
            };
            if text[at] == b'"' {
                self.rest = &text[at + 1..];
                return Ok(match owned {
                    None => Cow::Borrowed(&text[..at]),
                    Some(mut bytes) => {
                        bytes.extend_from_slice(&text[start..at]);
                        Cow::Owned(bytes)
                    }
                });
            }
            let Some(&escaped) = text.get(at + 1) else { return Err(unterminated()) };
            let bytes = owned.get_or_insert_with(Vec::new);
            bytes.extend_from_slice(&text[start..at]);
            bytes.push(match escaped {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                other => other,
            });
            start = at + 2;
        }
    }

    fn path(&mut self) -> Result<Cow<'a, [u8]>> {
        let path = self.string()?;
        check_path(&path)?;
        Ok(path)
    }

    /// The rest of an output after its name.
    fn output(&mut self) -> Result<Output> {
        self.expect(b",")?;
        let path = self.string()?;
        self.expect(b",")?;
        let algorithm = self.string()?;
        self.expect(b",")?;
        let hash = self.string()?;
        self.expect(b")")?;
        if algorithm.is_empty() {
            // NIX: the hash field is not looked at here.
            if path.is_empty() {
                return Ok(Output::Deferred);
            }
            check_path(&path)?;
            return Ok(Output::InputAddressed(self.dir.parse(&path)?));
        }
        let (method, algorithm) = Method::split_prefix(&algorithm);
        let algorithm = Algorithm::parse(algorithm)?;
        match &*hash {
            b"impure" if path.is_empty() => Ok(Output::Impure(method, algorithm)),
            b"impure" => Err(format_error(&[b"impure derivation output should not specify output path"])),
            b"" if path.is_empty() => Ok(Output::Floating(method, algorithm)),
            b"" => Err(format_error(&[b"content-addressing derivation output should not specify output path"])),
            hash => {
                check_path(&path)?;
                let hash = Hash::parse_unprefixed(hash, algorithm)?;
                Ok(Output::Fixed(ContentAddress { method, hash }))
            }
        }
    }

    fn names(&mut self, node: &mut InputNode) -> Result<()> {
        self.list(|r| {
            node.outputs.insert(OutputName::from(&*r.string()?));
            Ok(())
        })
    }

    fn node(&mut self, depth: usize) -> Result<InputNode> {
        let mut node = InputNode::default();
        if !self.dynamic {
            self.names(&mut node)?;
            return Ok(node);
        }
        match self.rest.first() {
            Some(b'[') => self.names(&mut node)?,
            Some(b'(') if depth < MAX_CHAIN => {
                self.expect(b"(")?;
                self.names(&mut node)?;
                self.expect(b",")?;
                self.list(|r| {
                    r.expect(b"(")?;
                    let name = OutputName::from(&*r.string()?);
                    r.expect(b",")?;
                    node.dynamic.insert(name, r.node(depth + 1)?);
                    r.expect(b")")
                })?;
                self.expect(b")")?;
            }
            _ => return Err(format_error(&[b"invalid inputDrvs entry in derivation"])),
        }
        Ok(node)
    }
}

fn unterminated() -> Error {
    format_error(&[b"unterminated string in derivation"])
}

fn check_path(path: &[u8]) -> Result<()> {
    if path.first() == Some(&b'/') {
        return Ok(());
    }
    Err(format_error(&[b"bad path '", path, b"' in derivation"]))
}
