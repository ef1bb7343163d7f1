//! Where two derivations differ, part by part, for people who look for the reason of a different path.
//!
//! Store paths that differ in their digest only are the usual consequence of a difference elsewhere, so each difference
//! says whether it is such a consequence ([`Difference::only_digests`]) and inputs are paired by name.

use super::{Derivation, InputNode, Output, STRUCTURED_ATTRS};
use crate::base32;
use crate::path::{DIGEST_LEN, StorePath};
use std::collections::BTreeSet;

/// One part that differs. An absent side is a part that the derivation does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which part, such as `env.buildInputs`.
    pub part: String,
    /// What it is on the left.
    pub left: Option<Vec<u8>>,
    /// What it is on the right.
    pub right: Option<Vec<u8>>,
}

/// Everything in which two derivations differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// Parts other than paired inputs.
    pub parts: Vec<Difference>,
    /// Input derivations of the same name and different digests: the reason may lie inside them.
    pub inputs: Vec<(StorePath, StorePath)>,
}

impl Difference {
    /// Whether both sides are the same but for the digests of store paths.
    pub fn only_digests(&self) -> bool {
        match (&self.left, &self.right) {
            (Some(left), Some(right)) => masked(left) == masked(right),
            _ => false,
        }
    }
}

impl Derivation {
    /// Where `self` (left) and `other` (right) differ.
    pub fn differences(&self, other: &Derivation) -> Differences {
        let mut found = Differences::default();
        found.text("name", Some(&self.name), Some(&other.name));
        found.table("outputs", outputs(self), outputs(other));
        found.input_drvs(self, other);
        let sources =
            |drv: &Derivation| -> BTreeSet<Vec<u8>> { drv.input_srcs.iter().map(|p| p.as_bytes().to_vec()).collect() };
        found.names("inputSrcs", &sources(self), &sources(other));
        found.text("system", Some(&self.system), Some(&other.system));
        found.text("builder", Some(&self.builder), Some(&other.builder));
        let numbered = |args: &[Vec<u8>]| -> Table {
            args.iter().enumerate().map(|(i, text)| (i.to_string().into_bytes(), text.clone())).collect()
        };
        found.table("args", numbered(&self.args), numbered(&other.args));
        found.table("env", environment(self), environment(other));
        found
    }
}

/// Names and texts in order of names.
type Table = Vec<(Vec<u8>, Vec<u8>)>;

fn outputs(drv: &Derivation) -> Table {
    let show = |output: &Output| match output {
        Output::InputAddressed(path) => path.as_bytes().to_vec(),
        other => format!("{other:?}").into_bytes(),
    };
    drv.outputs.iter().map(|(name, output)| (name.to_vec(), show(output))).collect()
}

fn environment(drv: &Derivation) -> Table {
    let mut table: Table = drv.env.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    table.extend(drv.structured_attrs.iter().map(|json| (STRUCTURED_ATTRS.to_vec(), json.clone())));
    table.sort();
    table
}

impl Differences {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.inputs.is_empty()
    }

    /// The differences that are not mere consequences of other paths.
    pub fn reasons(&self) -> impl Iterator<Item = &Difference> {
        self.parts.iter().filter(|difference| !difference.only_digests())
    }

    fn text(&mut self, part: &str, left: Option<&[u8]>, right: Option<&[u8]>) {
        if left != right {
            let owned = |side: Option<&[u8]>| side.map(<[u8]>::to_vec);
            self.parts.push(Difference { part: part.to_owned(), left: owned(left), right: owned(right) });
        }
    }

    fn table(&mut self, part: &str, left: Table, right: Table) {
        let names: BTreeSet<&[u8]> = left.iter().chain(&right).map(|(name, _)| &name[..]).collect();
        for name in names {
            let side = |table: &'_ Table| table.iter().find(|(n, _)| n == name).map(|(_, text)| text.clone());
            let shown = format!("{part}.{}", String::from_utf8_lossy(name));
            self.text(&shown, side(&left).as_deref(), side(&right).as_deref());
        }
    }

    /// Members of one side only.
    fn names(&mut self, part: &str, left: &BTreeSet<Vec<u8>>, right: &BTreeSet<Vec<u8>>) {
        for name in left.difference(right) {
            self.text(part, Some(name), None);
        }
        for name in right.difference(left) {
            self.text(part, None, Some(name));
        }
    }

    fn input_drvs(&mut self, left: &Derivation, right: &Derivation) {
        let mut theirs: Vec<(&StorePath, &InputNode)> =
            right.input_drvs.iter().filter(|(path, _)| !left.input_drvs.contains_key(*path)).collect();
        for (path, node) in left.input_drvs.iter() {
            match right.input_drvs.get(path) {
                Some(same) => self.nodes(path, node, Some(same)),
                None => match theirs.iter().position(|(other, _)| other.name() == path.name()) {
                    Some(at) => {
                        let (other, other_node) = theirs.remove(at);
                        self.inputs.push((path.clone(), other.clone()));
                        self.nodes(path, node, Some(other_node));
                    }
                    None => self.nodes(path, node, None),
                },
            }
        }
        for (path, node) in theirs {
            self.text(&format!("inputDrvs.{path}"), None, Some(&show_node(node)));
        }
    }

    fn nodes(&mut self, path: &StorePath, left: &InputNode, right: Option<&InputNode>) {
        let right = right.map(show_node);
        self.text(&format!("inputDrvs.{path}"), Some(&show_node(left)), right.as_deref());
    }
}

fn show_node(node: &InputNode) -> Vec<u8> {
    let mut text = node.outputs.iter().map(|name| name.to_vec()).collect::<Vec<_>>().join(&b' ');
    for (name, inner) in node.dynamic.iter() {
        text.extend_from_slice(&[b" ", &name[..], b"!(", &show_node(inner), b")"].concat());
    }
    text
}

/// The text with the digest of everything that looks like a store path blotted out.
fn masked(text: &[u8]) -> Vec<u8> {
    let mut out = text.to_vec();
    let mut run = 0;
    for at in 0..text.len() {
        if text[at] == b'-' && run == DIGEST_LEN {
            out[at - DIGEST_LEN..at].fill(b'.');
        }
        run = if base32::digit(text[at]).is_some() { run + 1 } else { 0 };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(digit: char, name: &str) -> StorePath {
        StorePath::parse(format!("{}-{name}", digit.to_string().repeat(DIGEST_LEN)).as_bytes()).unwrap()
    }

    fn drv(digit: char, flags: &str) -> Derivation {
        let mut drv = Derivation { name: b"x".to_vec(), builder: b"sh".to_vec(), ..Derivation::default() };
        drv.outputs.insert(b"out"[..].into(), Output::InputAddressed(path(digit, "x")));
        drv.input_drvs.entry(path(digit, "dep.drv")).outputs.insert(b"out"[..].into());
        drv.env.insert(b"dep", format!("/nix/store/{}/bin", path(digit, "dep")).as_bytes());
        drv.env.insert(b"flags", flags.as_bytes());
        drv
    }

    #[test]
    fn consequences_are_told_from_reasons() {
        let found = drv('a', "-O2").differences(&drv('b', "-O3"));
        assert_eq!(found.inputs, [(path('a', "dep.drv"), path('b', "dep.drv"))]);
        let reasons: Vec<&str> = found.reasons().map(|d| d.part.as_str()).collect();
        assert_eq!(reasons, ["env.flags"]);
        let parts: Vec<&str> = found.parts.iter().map(|d| d.part.as_str()).collect();
        assert_eq!(parts, ["outputs.out", "env.dep", "env.flags"]);
    }

    #[test]
    fn parts_of_one_side_only_are_reasons() {
        let mut right = drv('a', "-O2");
        right.args.push(b"-e".to_vec());
        right.input_srcs.insert(path('c', "builder.sh"));
        let found = drv('a', "-O2").differences(&right);
        let parts: Vec<&str> = found.reasons().map(|d| d.part.as_str()).collect();
        assert_eq!(parts, ["inputSrcs", "args.0"]);
        assert!(drv('a', "").differences(&drv('a', "")).is_empty());
    }
}
