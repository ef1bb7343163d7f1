//! `Parts` as bytes (spec L2.2).
//!
//! ```text
//! parts   = [ [text …], [row …], [cell …], [object …], [name …], [hash …], scalars ]
//! text    = [ role, rest of the path, digest of the bytes, digest of the rest, [digest of a leaf …] ]
//! row     = [ node − node below … ]                 of nodes after those of texts: nothing, what printed, of each text its places and leaves
//! cell    = node, 2 × scalar | 2 × object + 1       one after the other
//! object  = [ 2 × name | 2 × place + 1, cell … ]
//! hash    = [ derivation, kind, hash ]
//! scalars = the list of them, as plain data in bytes
//! ```

use super::super::cbor::{Malformed, Reader, Writer};
use super::super::plain;
use super::super::roles::Roles;
use super::super::trace::{PRINTED, Trace};
use super::{Cell, Content, Rows, Step, Walked};
use firn_host::{AbsPath, Digest};
use firn_syntax::Leaves;
use firn_value::{List, ListBuilder, Value};

/// A text as it was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutText {
    /// Where it lies.
    pub path: AbsPath,
    /// The digest of its bytes.
    pub bytes: Digest,
    /// The digest of the tokens around the leaves.
    pub rest: Digest,
    /// The digests of the leaves.
    pub leaves: Vec<Digest>,
}

impl CutText {
    /// A text as it is cut.
    pub fn new(path: AbsPath, text: &[u8], cut: &Leaves) -> CutText {
        let digest = |bytes: &[u8]| Digest(blake3::derive_key("firn memo 2026-11 cut text", bytes));
        CutText { path, bytes: digest(text), rest: digest(&cut.rest), leaves: cut.leaves.iter().map(|leaf| digest(leaf)).collect() }
    }

    /// The nodes of what is not as it was in `then`, whose first node is `first`; none if the texts differ in more than leaves.
    pub fn changed(&self, then: &CutText, first: u32) -> Option<Vec<u32>> {
        if self.rest != then.rest || self.leaves.len() != then.leaves.len() {
            return None;
        }
        let places = (self.bytes != then.bytes).then_some(first);
        let leaves = self.leaves.iter().zip(&then.leaves).zip(first + 1..).filter(|((now, then), _)| now != then);
        Some(places.into_iter().chain(leaves.map(|(_, node)| node)).collect())
    }
}

/// The hash by which dependents know a derivation: its printed path, the kind, the hash.
pub type DerivationHash = (Vec<u8>, u8, [u8; 32]);

/// What a later evaluation may take.
#[derive(Debug, Default)]
pub struct Parts {
    /// The texts that were watched.
    pub texts: Vec<CutText>,
    /// What nodes took.
    pub rows: Rows,
    /// The cells; the first is where it begins.
    pub cells: Vec<Cell<Value>>,
    /// The objects.
    pub objects: Vec<Vec<(Step, u32)>>,
    /// The names in them. They are no symbols yet: in which order names become symbols is in which order sets are gone through.
    pub names: Vec<Vec<u8>>,
    /// Of derivations that scalars name.
    pub hashes: Vec<DerivationHash>,
}

/// How many nodes are before those of productions: nothing, what printed, and of each text its places and leaves.
pub fn fixed(texts: &[CutText]) -> u32 {
    2 + texts.iter().map(|text| 1 + text.leaves.len() as u32).sum::<u32>()
}

impl Parts {
    /// What an evaluation came to that was traced.
    pub fn new(trace: &Trace, texts: Vec<CutText>, walked: Walked) -> Parts {
        let Walked { mut cells, objects, names } = walked;
        let mut nodes = vec![0, PRINTED];
        for text in &texts {
            let Some(watched) = trace.text(&text.path) else { continue };
            nodes.push(watched.places);
            nodes.extend(watched.first..watched.first + watched.leaves);
        }
        let rows = Rows::needed(trace, &mut cells, &nodes);
        Parts { texts, rows, cells, objects, names, hashes: Vec::new() }
    }

    /// The bytes; none if something cannot leave the process.
    pub fn encode(&self, roles: &Roles) -> Option<Vec<u8>> {
        let mut writer = Writer::new();
        writer.array(7).array(self.texts.len());
        for CutText { path, bytes, rest, leaves } in &self.texts {
            let (role, below) = roles.place(path);
            writer.array(5).text(role).bytes(below).bytes(&bytes.0).bytes(&rest.0).array(leaves.len());
            leaves.iter().for_each(|leaf| _ = writer.bytes(&leaf.0));
        }
        let fixed = fixed(&self.texts);
        writer.array(self.rows.ends.len() - fixed as usize);
        for node in fixed..self.rows.ends.len() as u32 {
            let row = self.rows.row(node);
            writer.array(row.len());
            row.iter().for_each(|below| _ = writer.unsigned(u64::from(node - below)));
        }
        let mut scalars = ListBuilder::new(self.scalars().count());
        let mut written = 0u64;
        writer.array(2 * self.cells.len());
        for cell in &self.cells {
            writer.unsigned(u64::from(cell.node));
            match cell.content {
                Content::Object(object) => _ = writer.unsigned(2 * u64::from(object) + 1),
                Content::Scalar(value) => {
                    writer.unsigned(2 * written);
                    written += 1;
                    scalars.push(value);
                }
            }
        }
        writer.array(self.objects.len());
        for object in &self.objects {
            writer.array(2 * object.len());
            for &(step, cell) in object {
                let step = match step {
                    Step::Place(place) => 2 * u64::from(place) + 1,
                    Step::Name(name) => 2 * u64::from(name),
                };
                writer.unsigned(step).unsigned(u64::from(cell));
            }
        }
        writer.array(self.names.len());
        self.names.iter().for_each(|name| _ = writer.bytes(name));
        writer.array(self.hashes.len());
        for (path, kind, hash) in &self.hashes {
            writer.array(3).bytes(path).unsigned(u64::from(*kind)).bytes(hash);
        }
        writer.bytes(&plain::encode(scalars.finish(), roles).ok()?);
        Some(writer.finish())
    }

    /// The scalars of all cells.
    pub fn scalars(&self) -> impl Iterator<Item = Value> {
        self.cells.iter().filter_map(|cell| if let Content::Scalar(value) = cell.content { Some(value) } else { None })
    }

    /// What bytes stand for. Whatever refers to something that is not there is malformed.
    pub fn decode(bytes: &[u8], roles: &Roles) -> Result<Parts, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(7)?;
        let texts = (0..reader.array()?).map(|_| read_text(&mut reader, roles)).collect::<Result<Vec<_>, _>>()?;
        let mut rows = Rows::default();
        let fixed = fixed(&texts);
        rows.ends.resize(fixed as usize, 0);
        for node in fixed..fixed + u32::try_from(reader.array()?).map_err(|_| Malformed::TooLarge)? {
            for _ in 0..reader.array()? {
                let back = u32::try_from(reader.unsigned()?).map_err(|_| Malformed::TooLarge)?;
                rows.rows.push(node.checked_sub(back).filter(|&below| below > 0 && below < node).ok_or(Malformed::Unexpected)?);
            }
            rows.ends.push(u32::try_from(rows.rows.len()).map_err(|_| Malformed::TooLarge)?);
        }
        let count = reader.array()?;
        let contents = (0..count / 2).map(|_| Ok((reader.index()?, reader.index()?))).collect::<Result<Vec<_>, Malformed>>()?;
        let mut objects: Vec<Vec<(usize, usize)>> = Vec::new();
        for _ in 0..reader.array()? {
            let count = reader.array()?;
            objects.push((0..count / 2).map(|_| Ok((reader.index()?, reader.index()?))).collect::<Result<_, Malformed>>()?);
        }
        let names = (0..reader.array()?).map(|_| Ok(reader.bytes()?.to_vec())).collect::<Result<Vec<_>, Malformed>>()?;
        let mut hashes = Vec::new();
        for _ in 0..reader.array()? {
            reader.tuple(3)?;
            let (path, kind) = (reader.bytes()?.to_vec(), reader.unsigned()?);
            hashes.push((path, u8::try_from(kind).map_err(|_| Malformed::Unexpected)?, reader.fixed()?));
        }
        let scalars = plain::decode(reader.bytes()?, roles)?.as_list().ok_or(Malformed::Unexpected)?;
        reader.end()?;
        let (nodes, cells) = (rows.ends.len(), contents.len());
        let cell = |(node, content)| to_cell(node, content, nodes, objects.len(), scalars);
        let read: Vec<Cell<Value>> = contents.into_iter().map(cell).collect::<Result<_, _>>()?;
        let step = |number: usize| match number & 1 {
            0 => (number / 2 < names.len()).then_some(Step::Name((number / 2) as u32)),
            _ => Some(Step::Place((number / 2) as u32)),
        };
        let found = |(place, cell): (usize, usize)| Some((step(place)?, u32::try_from(cell).ok().filter(|_| cell < cells)?));
        let objects = objects.into_iter().map(|object| object.into_iter().map(found).collect::<Option<Vec<_>>>());
        let objects = objects.collect::<Option<Vec<_>>>().ok_or(Malformed::Unexpected)?;
        rows.find_walls(&read, fixed);
        Ok(Parts { texts, rows, cells: read, objects, names, hashes })
    }
}

fn read_text(reader: &mut Reader<'_>, roles: &Roles) -> Result<CutText, Malformed> {
    reader.tuple(5)?;
    let (role, below) = (reader.text()?, reader.bytes()?);
    let path = roles.resolve(role, below).ok_or(Malformed::Unexpected)?;
    let (bytes, rest) = (Digest(reader.fixed()?), Digest(reader.fixed()?));
    let leaves = (0..reader.array()?).map(|_| Ok(Digest(reader.fixed()?))).collect::<Result<Vec<_>, Malformed>>()?;
    Ok(CutText { path, bytes, rest, leaves })
}

fn to_cell(node: usize, content: usize, nodes: usize, objects: usize, scalars: List) -> Result<Cell<Value>, Malformed> {
    let number = content / 2;
    let content = match content & 1 {
        0 => (number < scalars.len()).then(|| Content::Scalar(scalars.get(number))),
        _ => Some(Content::Object(number as u32)).filter(|_| number < objects),
    };
    let node = u32::try_from(node).ok().filter(|_| node < nodes).ok_or(Malformed::Unexpected)?;
    Ok(Cell { node, content: content.ok_or(Malformed::Unexpected)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{labels, trace};
    use firn_source::{Pos, Symbol};
    use firn_value::{AttrsBuilder, Context, Thunk};

    /// `{ a = leaf 0; b = { c = "x"; }; d = [ leaf 1 taken with a ]; }`, and what of it is kept.
    fn learned(roles: &Roles) -> Parts {
        trace::begin();
        let path = roles.resolve("entry", b"/text").expect("the tree has a role");
        let first = trace::watch(&path, 2).expect("not watched yet");
        let ((), both) = labels::apart(|| [first + 1, first].into_iter().for_each(labels::take));
        let text = |bytes: &[u8]| Value::string(bytes, Context::EMPTY);
        let set = |pairs: &[(&str, Value)]| {
            let mut set = AttrsBuilder::with_capacity(pairs.len());
            pairs.iter().for_each(|(name, value)| set.push(Symbol::from(*name), Pos::NONE, *value));
            set.finish()
        };
        let mut list = ListBuilder::new(1);
        list.push(Thunk::ready_labelled(Value::int(7), both));
        let root = set(&[
            ("a", Thunk::ready_labelled(Value::TRUE, first)),
            ("b", set(&[("c", Thunk::ready(text(b"x")))])),
            ("d", Thunk::ready(list.finish())),
        ]);
        let cut = CutText { path, bytes: Digest([1; 32]), rest: Digest([2; 32]), leaves: vec![Digest([3; 32]), Digest([4; 32])] };
        Parts::new(&trace::end(), vec![cut], Walked::from(root, 0))
    }

    fn roles() -> Roles {
        let mut roles = Roles::new();
        roles.assign("entry", AbsPath::new(b"/parts").expect("no NUL"));
        roles
    }

    #[test]
    fn parts_come_back_and_damaged_ones_do_not() {
        let roles = roles();
        let parts = learned(&roles);
        let bytes = parts.encode(&roles).expect("all of it is plain");
        let back = Parts::decode(&bytes, &roles).expect("it was written");
        assert_eq!(back.encode(&roles), Some(bytes.clone()));
        assert_eq!(back.texts, parts.texts);
        // Nothing, what printed, places and two leaves; then the production that took both.
        assert_eq!(back.rows.row(5), [4, 3]);
        assert_eq!(back.scalars().count(), 3);
        for len in 0..bytes.len() {
            assert!(Parts::decode(&bytes[..len], &roles).is_err(), "cut at {len}");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x11;
            // Something else, or nothing; never a number that leads nowhere.
            if let Ok(other) = Parts::decode(&flipped, &roles) {
                let nodes = other.rows.ends.len();
                assert!(other.cells.iter().all(|cell| (cell.node as usize) < nodes));
                assert!(other.rows.rows.iter().all(|&below| (below as usize) < nodes));
            }
        }
    }

    #[test]
    fn texts_tell_which_leaves_changed() {
        let then = learned(&roles()).texts.remove(0);
        assert_eq!(then.changed(&then, 2), Some(vec![]));
        let now = CutText { bytes: Digest([9; 32]), leaves: vec![Digest([3; 32]), Digest([5; 32])], ..then.clone() };
        assert_eq!(now.changed(&then, 2), Some(vec![2, 4]));
        assert_eq!(CutText { rest: Digest([9; 32]), ..then.clone() }.changed(&then, 2), None);
    }
}
