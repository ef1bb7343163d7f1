//! `Parts` as bytes (spec L2.2).
//!
//! ```text
//! parts   = [ [text …], [row …], [context …], [bytes, context + 1 …], cells, bytes, [cells on, node …], [object …], [piece …], [name …], [hash …] ]
//! text    = [ role, rest of the path, digest of the bytes, digest of the rest, [digest of a leaf …] ]
//! row     = [ node − node below … ]                 of nodes after those of texts: nothing, what printed, of each text its places and leaves
//! context = [ element … ]                           of strings; 0 is none
//! bytes   = content …                               of so many cells; those without a node took nothing
//! content = 0 next object | 1 next string | 2 null | 3 false | 4 true | 5, integer | 6 + 2 × object | 7 + 2 × string
//! object  = [ met … ]                               its pieces
//! piece   = [ 2 × name | 2 × place + 1, met … ]     its cells
//! met     = 0 the next one that was not met | number + 1
//! hash    = [ derivation, kind, hash ]
//! ```

use super::super::cbor::{Malformed, Reader, Writer};
use super::super::roles::Roles;
use super::super::trace::{PRINTED, Trace};
use super::{Cell, Content, Lists, Rows, Step, Walked};
use firn_host::{AbsPath, Digest};
use firn_syntax::Leaves;
use firn_source::Symbol;
use firn_value::{Context, Value};
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// The objects, each with its pieces.
    pub objects: Lists<u32>,
    /// The pieces.
    pub pieces: Lists<(Step, u32)>,
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
        let Walked { mut cells, objects, pieces, names } = walked;
        let mut nodes = vec![0, PRINTED];
        for text in &texts {
            let Some(watched) = trace.text(&text.path) else { continue };
            nodes.push(watched.places);
            nodes.extend(watched.first..watched.first + watched.leaves);
        }
        let rows = Rows::needed(trace, &mut cells, &nodes);
        Parts { texts, rows, cells, objects, pieces, names, hashes: Vec::new() }
    }

    /// The bytes.
    // PERF: strings are told apart by a hash map and written where they are met first: with pieces, and before less was kept, 64 M instructions
    // instead of 185 with sorted plain data (`plain`).
    pub fn encode(&self, roles: &Roles) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.array(11).array(self.texts.len());
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
        self.write_cells(&mut writer);
        writer.array(self.objects.len());
        let mut next = 0;
        for object in 0..self.objects.len() as u32 {
            let pieces = self.objects.row(object);
            writer.array(pieces.len());
            pieces.iter().for_each(|&piece| write_met(&mut writer, &mut next, piece));
        }
        writer.array(self.pieces.len());
        let mut next = 1;
        for piece in 0..self.pieces.len() as u32 {
            let members = self.pieces.row(piece);
            writer.array(2 * members.len());
            for &(step, cell) in members {
                let step = match step {
                    Step::Place(place) => 2 * u64::from(place) + 1,
                    Step::Name(name) => 2 * u64::from(name),
                };
                writer.unsigned(step);
                write_met(&mut writer, &mut next, cell);
            }
        }
        writer.array(self.names.len());
        self.names.iter().for_each(|name| _ = writer.bytes(name));
        writer.array(self.hashes.len());
        for (path, kind, hash) in &self.hashes {
            writer.array(3).bytes(path).unsigned(u64::from(*kind)).bytes(hash);
        }
        writer.finish()
    }

    /// Contexts, strings, cells, and nodes of cells.
    fn write_cells(&self, writer: &mut Writer) {
        let contexts = self.contexts();
        let numbers: FxHashMap<*const Symbol, u64> = contexts.iter().zip(1..).map(|(context, number)| (context.elements().as_ptr(), number)).collect();
        writer.array(contexts.len());
        for context in contexts {
            let elements = context.sorted();
            writer.array(elements.len());
            elements.iter().for_each(|element| _ = writer.bytes(element.as_bytes()));
        }
        let mut strings = Writer::new();
        let mut cells = Writer::new();
        let mut known: FxHashMap<(&[u8], u64), u64> = FxHashMap::default();
        let mut objects = 0;
        for cell in &self.cells {
            let content = match cell.content {
                Content::Object(object) if object == objects => {
                    objects += 1;
                    NEXT_OBJECT
                }
                Content::Object(object) => OTHERS + 2 * u64::from(object),
                Content::Scalar(value) => match value.as_str() {
                    Some(string) => {
                        let context = if string.context().is_empty() { 0 } else { numbers[&string.context().elements().as_ptr()] };
                        let count = known.len() as u64;
                        let number = *known.entry((string.bytes(), context)).or_insert(count);
                        if number == count {
                            strings.bytes(string.bytes()).unsigned(context);
                            NEXT_STRING
                        } else {
                            OTHERS + 1 + 2 * number
                        }
                    }
                    None => match value.as_int() {
                        Some(number) => {
                            cells.unsigned(INTEGER).integer(number);
                            continue;
                        }
                        None if value == Value::TRUE => TRUE,
                        None if value == Value::FALSE => FALSE,
                        None => NULL,
                    },
                },
            };
            cells.unsigned(content);
        }
        writer.array(2 * known.len()).raw(&strings.finish());
        writer.unsigned(self.cells.len() as u64).bytes(&cells.finish());
        let with_nodes = || self.cells.iter().enumerate().filter(|(_, cell)| cell.node != 0);
        writer.array(2 * with_nodes().count());
        let mut before = 0;
        for (at, cell) in with_nodes() {
            writer.unsigned((at - before) as u64).unsigned(u64::from(cell.node));
            before = at;
        }
    }

    /// The contexts of all scalars, each once, as they are met.
    pub fn contexts(&self) -> Vec<Context> {
        let mut met: FxHashSet<*const Symbol> = FxHashSet::default();
        let contexts = self.scalars().filter_map(|value| Some(value.as_str()?.context()));
        contexts.filter(|context| !context.is_empty() && met.insert(context.elements().as_ptr())).collect()
    }

    /// The scalars of all cells.
    pub fn scalars(&self) -> impl Iterator<Item = Value> {
        self.cells.iter().filter_map(|cell| if let Content::Scalar(value) = cell.content { Some(value) } else { None })
    }

    /// What bytes stand for. Whatever refers to something that is not there is malformed.
    pub fn decode(bytes: &[u8], roles: &Roles) -> Result<Parts, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(11)?;
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
        let cells = read_cells(&mut reader)?;
        let mut objects = Lists::default();
        let mut next = 0;
        for _ in 0..reader.array()? {
            for _ in 0..reader.array()? {
                objects.add(read_met(&mut reader, &mut next)?);
            }
            objects.end();
        }
        let mut pieces = Lists::default();
        let mut next = 1;
        for _ in 0..reader.array()? {
            for _ in 0..reader.array()? / 2 {
                let step = reader.unsigned()?;
                let number = u32::try_from(step / 2).map_err(|_| Malformed::TooLarge)?;
                let step = if step & 1 == 0 { Step::Name(number) } else { Step::Place(number) };
                pieces.add((step, read_met(&mut reader, &mut next)?));
            }
            pieces.end();
        }
        let names = (0..reader.array()?).map(|_| Ok(reader.bytes()?.to_vec())).collect::<Result<Vec<_>, Malformed>>()?;
        let mut hashes = Vec::new();
        for _ in 0..reader.array()? {
            reader.tuple(3)?;
            let (path, kind) = (reader.bytes()?.to_vec(), reader.unsigned()?);
            hashes.push((path, u8::try_from(kind).map_err(|_| Malformed::Unexpected)?, reader.fixed()?));
        }
        reader.end()?;
        let is_there = |&(step, cell): &(Step, u32)| (cell as usize) < cells.len() && !matches!(step, Step::Name(name) if name as usize >= names.len());
        let are_there = pieces.items.iter().all(is_there)
            && objects.items.iter().all(|&piece| (piece as usize) < pieces.len())
            && cells.iter().all(|cell| (cell.node as usize) < rows.ends.len())
            && cells.iter().all(|cell| !matches!(cell.content, Content::Object(object) if object as usize >= objects.len()));
        if !are_there {
            return Err(Malformed::Unexpected);
        }
        rows.find_walls(&cells, fixed);
        Ok(Parts { texts, rows, cells, objects, pieces, names, hashes })
    }
}

/// What cells came to, as numbers.
const NEXT_OBJECT: u64 = 0;
const NEXT_STRING: u64 = 1;
const NULL: u64 = 2;
const FALSE: u64 = 3;
const TRUE: u64 = 4;
const INTEGER: u64 = 5;
/// From here on objects and strings that were met before.
const OTHERS: u64 = 6;

/// Something that is mostly the next one which was not met yet.
fn write_met(writer: &mut Writer, next: &mut u32, number: u32) {
    if number == *next {
        *next += 1;
        writer.unsigned(0);
    } else {
        writer.unsigned(u64::from(number) + 1);
    }
}

fn read_met(reader: &mut Reader<'_>, next: &mut u32) -> Result<u32, Malformed> {
    match reader.unsigned()? {
        0 => {
            *next += 1;
            Ok(*next - 1)
        }
        number => u32::try_from(number - 1).map_err(|_| Malformed::TooLarge),
    }
}

fn read_cells(reader: &mut Reader<'_>) -> Result<Vec<Cell<Value>>, Malformed> {
    let mut contexts = vec![Context::EMPTY];
    for _ in 0..reader.array()? {
        let elements = (0..reader.array()?).map(|_| Ok(Symbol::intern(reader.bytes()?))).collect::<Result<Vec<_>, Malformed>>()?;
        contexts.push(Context::of(elements));
    }
    let mut strings = Vec::new();
    for _ in 0..reader.array()? / 2 {
        let (bytes, context) = (reader.bytes()?, reader.index()?);
        strings.push(Value::string(bytes, *contexts.get(context).ok_or(Malformed::Unexpected)?));
    }
    let count = reader.index()?;
    let mut contents = Reader::new(reader.bytes()?);
    let mut cells = Vec::with_capacity(count.min(contents.left()));
    let (mut objects, mut met) = (0, 0);
    for _ in 0..count {
        let content = match contents.unsigned()? {
            NEXT_OBJECT => {
                objects += 1;
                Content::Object(objects - 1)
            }
            NEXT_STRING => {
                met += 1;
                Content::Scalar(*strings.get(met - 1).ok_or(Malformed::Unexpected)?)
            }
            NULL => Content::Scalar(Value::NULL),
            FALSE => Content::Scalar(Value::FALSE),
            TRUE => Content::Scalar(Value::TRUE),
            INTEGER => Content::Scalar(Value::int(contents.integer()?)),
            other if other & 1 == 0 => Content::Object(u32::try_from((other - OTHERS) / 2).map_err(|_| Malformed::TooLarge)?),
            other => Content::Scalar(*usize::try_from((other - OTHERS) / 2).ok().and_then(|at| strings.get(at)).ok_or(Malformed::Unexpected)?),
        };
        cells.push(Cell { node: 0, content });
    }
    contents.end()?;
    let mut at = 0usize;
    for _ in 0..reader.array()? / 2 {
        let (gap, node) = (reader.index()?, reader.index()?);
        at = at.checked_add(gap).ok_or(Malformed::TooLarge)?;
        cells.get_mut(at).ok_or(Malformed::Unexpected)?.node = u32::try_from(node).map_err(|_| Malformed::TooLarge)?;
    }
    Ok(cells)
}

fn read_text(reader: &mut Reader<'_>, roles: &Roles) -> Result<CutText, Malformed> {
    reader.tuple(5)?;
    let (role, below) = (reader.text()?, reader.bytes()?);
    let path = roles.resolve(role, below).ok_or(Malformed::Unexpected)?;
    let (bytes, rest) = (Digest(reader.fixed()?), Digest(reader.fixed()?));
    let leaves = (0..reader.array()?).map(|_| Ok(Digest(reader.fixed()?))).collect::<Result<Vec<_>, Malformed>>()?;
    Ok(CutText { path, bytes, rest, leaves })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::{labels, trace};
    use firn_source::Pos;
    use firn_value::{AttrsBuilder, ListBuilder, Thunk};

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
        let bytes = parts.encode(&roles);
        let back = Parts::decode(&bytes, &roles).expect("it was written");
        assert_eq!(back.encode(&roles), bytes);
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
