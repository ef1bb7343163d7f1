//! Observations as bytes: one node of the graph of observation sets, with its paths in a shared table.
//!
//! ```text
//! node         = [ [role text …], [path …], [child digest …], [group digest …], [observation …] ]
//! path         = [ role number, length shared with the path before, the rest ]     ascending
//! observation  = [ kind, durability, digest, argument … ]                          ascending by encoding
//! ```
//!
//! Code comes with the digest of the bytes that it was read from, where that is known: a machine that has these bytes need not read the
//! code to know that it is the same.
//!
//! What names are looked at among (`Question::Member`) is a group: a node of its own, which need not hold.
//!
//! Paths are written by role ([`Roles`]): the same observations in two checkouts are the same bytes. The digest of a
//! node is that of its bytes, so that equal sets are one set, on disk and between machines.

use super::cbor::{Item, Malformed, Reader, Writer};
use super::roles::Roles;
use firn_host::{
    AbsPath, Digest, DocumentFormat, Durability, Follow, Group, Names, Observation, Question, SearchEntry, SearchPath,
};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// One node: what was observed here, and the sets that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Digests of the nodes below, ascending.
    pub children: Vec<Digest>,
    /// What was observed here.
    pub own: Vec<Observation>,
    /// Of files whose code was observed here, the digest of the bytes that it was read from, where that is known: whoever finds these
    /// bytes need not read code to know that it is the same. No part of what must hold.
    pub texts: BTreeMap<AbsPath, Digest>,
}

/// What a node says, as this run sees it.
pub struct Decoded {
    /// Digests of the nodes below.
    pub children: Vec<Digest>,
    /// What was observed; none in place of what is about a tree that this run does not have.
    pub own: Vec<Option<Observation>>,
    /// As [`Node::texts`], each with the digest of the code.
    pub texts: Vec<(AbsPath, (Digest, Digest))>,
}

/// No path is longer.
const LONGEST: usize = 1 << 16;
/// The paths of one node are no longer together.
const LONGEST_TOGETHER: usize = 1 << 26;

/// Where paths lie, and which observation is about which.
struct Paths<'a> {
    roles: &'a Roles,
    /// By role and rest, ascending, each once.
    places: Vec<(&'a str, &'a [u8])>,
    /// Of each observation, the number of its path.
    // PERF: finding the place of a path, and its number among the others, was half of writing a node.
    numbers: Vec<u64>,
    /// Groups, ascending.
    groups: Vec<Digest>,
}

impl<'a> Paths<'a> {
    fn collect(own: &'a [Observation], roles: &'a Roles) -> Paths<'a> {
        let placed = |(at, seen): (usize, &'a Observation)| Some((roles.place(seen.question.path()?), at));
        let mut placed: Vec<((&str, &[u8]), usize)> = own.iter().enumerate().filter_map(placed).collect();
        placed.sort_unstable();
        let (mut places, mut numbers) = (Vec::with_capacity(placed.len()), vec![u64::MAX; own.len()]);
        for (place, at) in placed {
            if places.last() != Some(&place) {
                places.push(place);
            }
            numbers[at] = places.len() as u64 - 1;
        }
        let mut groups: Vec<Digest> = own.iter().filter_map(|o| group(&o.question)).collect();
        groups.sort_unstable();
        groups.dedup();
        Paths { roles, places, numbers, groups }
    }

    /// The table of roles, then that of paths.
    fn write(&self, writer: &mut Writer) {
        let mut roles: Vec<&str> = self.places.iter().map(|(role, _)| *role).collect();
        roles.dedup();
        writer.array(roles.len());
        for role in &roles {
            writer.text(role);
        }
        writer.array(self.places.len());
        let mut before: &[u8] = &[];
        for (role, rest) in &self.places {
            let number = roles.binary_search(role).unwrap_or_default();
            let shared = before.iter().zip(*rest).take_while(|(a, b)| a == b).count();
            writer.array(3).unsigned(number as u64).unsigned(shared as u64).bytes(&rest[shared..]);
            before = rest;
        }
    }
}

/// The group that a question is asked among, if it is kept.
fn group(question: &Question) -> Option<Digest> {
    match question {
        Question::Member(Group::Kept(digest), _) => Some(*digest),
        _ => None,
    }
}

impl Node {
    /// The node's bytes.
    pub fn encode(&self, roles: &Roles) -> Vec<u8> {
        let paths = Paths::collect(&self.own, roles);
        // PERF: writing into room that grows was a fifth of the work.
        let (path_bytes, own_bytes) = (paths.places.len() * 32, self.own.len() * 80);
        let mut writer = Writer::with_capacity(64 + self.children.len() * 34 + path_bytes + own_bytes);
        writer.array(5);
        paths.write(&mut writer);
        let mut children = self.children.clone();
        children.sort_unstable();
        children.dedup();
        writer.array(children.len());
        for child in &children {
            writer.bytes(&child.0);
        }
        writer.array(paths.groups.len());
        for group in &paths.groups {
            writer.bytes(&group.0);
        }
        let mut apart = Writer::with_capacity(own_bytes);
        let ends: Vec<usize> = self.own.iter().enumerate().map(|seen| encode(&mut apart, seen, &paths, &self.texts)).collect();
        let apart = apart.finish();
        let starts = [0].into_iter().chain(ends.iter().copied());
        let mut own: Vec<&[u8]> = starts.zip(&ends).map(|(start, &end)| &apart[start..end]).collect();
        own.sort_unstable();
        own.dedup();
        writer.array(own.len());
        for observation in own {
            writer.raw(observation);
        }
        writer.finish()
    }

    /// The digest that names these bytes.
    pub fn digest(bytes: &[u8]) -> Digest {
        // PERF: hashing the name of the key anew each time is as much work as a small node.
        static KEYED: LazyLock<blake3::Hasher> = LazyLock::new(|| blake3::Hasher::new_derive_key("firn memo 2026-11 observations"));
        Digest(*KEYED.clone().update(bytes).finalize().as_bytes())
    }

    /// Reads a node back, its paths where this run has them. None in place of an observation about a tree that this
    /// run does not have.
    pub fn decode(bytes: &[u8], roles: &Roles) -> Result<(Vec<Digest>, Vec<Option<Observation>>), Malformed> {
        let Decoded { children, own, .. } = Node::decode_all(bytes, roles)?;
        Ok((children, own))
    }

    /// As [`Node::decode`], with what need not hold.
    pub fn decode_all(bytes: &[u8], roles: &Roles) -> Result<Decoded, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(5)?;
        let names = (0..reader.array()?).map(|_| reader.text()).collect::<Result<Vec<&str>, _>>()?;
        let paths = read_paths(&mut reader, &names, roles)?;
        let children = (0..reader.array()?).map(|_| reader.fixed().map(Digest)).collect::<Result<Vec<_>, _>>()?;
        let groups = (0..reader.array()?).map(|_| reader.fixed().map(Digest)).collect::<Result<Vec<_>, _>>()?;
        let count = reader.array()?;
        let (mut own, mut texts) = (Vec::with_capacity(count), Vec::new());
        for _ in 0..count {
            own.push(decode(&mut reader, &paths, &groups, roles, &mut texts)?);
        }
        reader.end()?;
        Ok(Decoded { children, own, texts })
    }

    /// The digests of the nodes that it names, below it or as groups, without reading the rest.
    pub fn named(bytes: &[u8]) -> Result<Vec<Digest>, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(5)?;
        for _ in 0..reader.array()? {
            reader.text()?;
        }
        for _ in 0..reader.array()? {
            reader.tuple(3)?;
            reader.unsigned()?;
            reader.unsigned()?;
            reader.bytes()?;
        }
        let mut named = Vec::new();
        for _ in 0..2 {
            for _ in 0..reader.array()? {
                named.push(Digest(reader.fixed()?));
            }
        }
        Ok(named)
    }
}

/// The paths of a node, one after the other.
pub(super) struct PathTable<'r, 'b> {
    roles: usize,
    reader: &'r mut Reader<'b>,
    left: usize,
    current: Vec<u8>,
    together: usize,
}

impl<'r, 'b> PathTable<'r, 'b> {
    /// Begins to read one with so many roles, into room that is there.
    pub fn read(reader: &'r mut Reader<'b>, roles: usize, mut room: Vec<u8>) -> Result<Self, Malformed> {
        room.clear();
        let left = reader.array()?;
        Ok(PathTable { roles, reader, left, current: room, together: 0 })
    }

    /// The number of the next path's role, and what follows that.
    pub fn next(&mut self) -> Result<Option<(usize, &[u8])>, Malformed> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        self.reader.tuple(3)?;
        let role = self.reader.index()?;
        let shared = self.reader.index()?;
        if role >= self.roles || shared > self.current.len() {
            return Err(Malformed::Unexpected);
        }
        self.current.truncate(shared);
        self.current.extend_from_slice(self.reader.bytes()?);
        // Each path may share all of the one before it: without a bound a small input could stand for a huge table.
        self.together += self.current.len();
        if self.current.len() > LONGEST || self.together > LONGEST_TOGETHER {
            return Err(Malformed::TooLarge);
        }
        Ok(Some((role, &self.current)))
    }

    /// The room, for the next table.
    pub fn room(self) -> Vec<u8> {
        self.current
    }
}

fn read_paths(reader: &mut Reader<'_>, names: &[&str], roles: &Roles) -> Result<Vec<Option<AbsPath>>, Malformed> {
    let mut table = PathTable::read(reader, names.len(), Vec::new())?;
    let mut paths = Vec::with_capacity(table.left);
    while let Some((role, rest)) = table.next()? {
        paths.push(roles.resolve(names[role], rest));
    }
    Ok(paths)
}

/// Writes an observation by its number, and says where it ends.
fn encode(writer: &mut Writer, (at, seen): (usize, &Observation), paths: &Paths<'_>, texts: &BTreeMap<AbsPath, Digest>) -> usize {
    let Observation { question, digest, durability } = seen;
    let text = match question {
        Question::Code(path) => texts.get(path),
        _ => None,
    };
    let (kind, arguments) = match question {
        Question::File(_) => (0, 1),
        Question::Directory(_) => (1, 1),
        Question::DirectoryEntry(..) => (2, 2),
        Question::Type(_) => (3, 1),
        Question::Stat(_) => (4, 1),
        Question::Link(_) => (5, 1),
        Question::Resolve(..) => (6, 2),
        Question::ExprPath(_) => (7, 1),
        Question::Exists(..) => (8, 2),
        Question::Env(_) => (9, 1),
        Question::SearchPath(..) => (10, 3),
        Question::Time => (11, 0),
        Question::Home => (12, 0),
        Question::CurrentDir => (13, 0),
        Question::System => (14, 0),
        Question::Setting(_) => (15, 1),
        Question::Tree(_) => (16, 1),
        Question::StorePath(_) => (17, 1),
        Question::Output(..) => (18, 2),
        Question::Location(_) => (19, 1),
        Question::Outline(_) => (20, 1),
        Question::Key(..) => (21, 3),
        Question::Code(_) if text.is_some() => (24, 2),
        Question::Code(_) => (22, 1),
        Question::Member(..) => (23, 2),
    };
    writer.array(3 + arguments).unsigned(kind).unsigned(*durability as u64).bytes(&digest.0);
    match question {
        Question::Env(name)
        | Question::Setting(name)
        | Question::Tree(name)
        | Question::StorePath(name)
        | Question::Location(name) => {
            writer.bytes(name);
        }
        Question::Output(drv, output) => {
            writer.bytes(drv).bytes(output);
        }
        Question::SearchPath(search, name) => write_search_path(writer, search, name, paths.roles),
        Question::Member(group, name) => {
            // A group that is not kept has no number: what is written then cannot be read.
            let number = match group {
                Group::Kept(digest) => paths.groups.binary_search(digest).map_or(u64::MAX, |at| at as u64),
                Group::Made(_) => u64::MAX,
            };
            writer.unsigned(number).bytes(name);
        }
        other => {
            if other.path().is_some() {
                writer.unsigned(paths.numbers[at]);
            }
        }
    }
    match question {
        Question::Code(_) => match text {
            Some(text) => writer.bytes(&text.0),
            None => writer,
        },
        Question::DirectoryEntry(_, name) => writer.bytes(name),
        Question::Resolve(_, follow) => writer.bool(*follow == Follow::Full),
        Question::Exists(_, must_be_dir) => writer.bool(*must_be_dir),
        Question::Key(_, format, names) => {
            writer.bool(*format == DocumentFormat::Toml);
            write_names(writer, names)
        }
        _ => writer,
    };
    writer.len()
}

fn write_names<'w>(writer: &'w mut Writer, names: &Names) -> &'w mut Writer {
    writer.array(names.len());
    for name in names.iter() {
        writer.bytes(name);
    }
    writer
}

fn write_search_path(writer: &mut Writer, search: &SearchPath, name: &[u8], roles: &Roles) {
    writer.bytes(name).bool(search.pure).array(search.entries.len());
    for SearchEntry { prefix, path } in search.entries.iter() {
        writer.array(2).bytes(prefix);
        // Only a canonical path can be written by role and read back as it was.
        match AbsPath::new(path).ok().filter(|whole| whole.as_bytes() == &**path) {
            Some(whole) => {
                let (role, rest) = roles.place(&whole);
                writer.array(2).text(role).bytes(rest);
            }
            None => {
                writer.bytes(path);
            }
        }
    }
}

/// How an observation begins: what kind it is of, and what it says of it.
pub(super) struct Head {
    len: usize,
    pub kind: u64,
    pub durability: Durability,
    pub digest: Digest,
}

impl Head {
    /// Reads it. The path comes next, where there is one.
    pub fn read(reader: &mut Reader<'_>) -> Result<Head, Malformed> {
        let len = reader.array()?;
        let kind = reader.unsigned()?;
        let durability = Durability::from_number(reader.unsigned()?).ok_or(Malformed::Unexpected)?;
        let digest = Digest(reader.fixed()?);
        Ok(Head { len, kind, durability, digest })
    }

    /// Whether it is about a path.
    pub fn has_path(&self) -> bool {
        matches!(self.kind, 0..=8 | 20..=22 | 24)
    }

    /// Refuses one that has more or less than its kind has.
    pub fn end(&self) -> Result<(), Malformed> {
        let expected = match self.kind {
            11..=14 => 3,
            0 | 1 | 3..=5 | 7 | 9 | 15..=17 | 19 | 20 | 22 => 4,
            2 | 6 | 8 | 18 | 23 | 24 => 5,
            _ => 6,
        };
        if self.len == expected { Ok(()) } else { Err(Malformed::Unexpected) }
    }

    /// The observation, of which the head and the path have been read. None if it is about a tree that this run does not have.
    pub fn observation(
        self,
        reader: &mut Reader<'_>,
        path: Option<AbsPath>,
        groups: &[Digest],
        roles: &Roles,
    ) -> Result<Option<Observation>, Malformed> {
        let question = match (path, self.kind) {
            (Some(path), kind) => Some(about_path(reader, kind, path)?),
            (None, 10) => search_path(reader, roles)?,
            (None, 23) => {
                let group = *groups.get(reader.index()?).ok_or(Malformed::Unexpected)?;
                Some(Question::Member(Group::Kept(group), shared(reader)?))
            }
            (None, kind) => Some(about_name(reader, kind)?),
        };
        self.end()?;
        Ok(question.map(|question| Observation { question, digest: self.digest, durability: self.durability }))
    }
}

fn decode(
    reader: &mut Reader<'_>,
    paths: &[Option<AbsPath>],
    groups: &[Digest],
    roles: &Roles,
    texts: &mut Vec<(AbsPath, (Digest, Digest))>,
) -> Result<Option<Observation>, Malformed> {
    let head = Head::read(reader)?;
    if !head.has_path() {
        return head.observation(reader, None, groups, roles);
    }
    let Some(path) = paths.get(reader.index()?).ok_or(Malformed::Unexpected)?.clone() else {
        skip(reader, head.len.checked_sub(4).ok_or(Malformed::Unexpected)?)?;
        return Ok(None);
    };
    if head.kind == 24 {
        texts.push((path.clone(), (Digest(reader.fixed()?), head.digest)));
    }
    head.observation(reader, Some(path), groups, roles)
}

fn shared(reader: &mut Reader<'_>) -> Result<Arc<[u8]>, Malformed> {
    reader.bytes().map(Arc::from)
}

fn about_path(reader: &mut Reader<'_>, kind: u64, path: AbsPath) -> Result<Question, Malformed> {
    Ok(match kind {
        0 => Question::File(path),
        1 => Question::Directory(path),
        2 => Question::DirectoryEntry(path, shared(reader)?),
        3 => Question::Type(path),
        4 => Question::Stat(path),
        5 => Question::Link(path),
        6 => Question::Resolve(path, if reader.bool()? { Follow::Full } else { Follow::Ancestors }),
        7 => Question::ExprPath(path),
        8 => Question::Exists(path, reader.bool()?),
        20 => Question::Outline(path),
        22 | 24 => Question::Code(path),
        _ => {
            let format = if reader.bool()? { DocumentFormat::Toml } else { DocumentFormat::Json };
            Question::Key(path, format, read_names(reader)?)
        }
    })
}

fn about_name(reader: &mut Reader<'_>, kind: u64) -> Result<Question, Malformed> {
    Ok(match kind {
        9 => Question::Env(shared(reader)?),
        11 => Question::Time,
        12 => Question::Home,
        13 => Question::CurrentDir,
        14 => Question::System,
        15 => Question::Setting(shared(reader)?),
        16 => Question::Tree(shared(reader)?),
        17 => Question::StorePath(shared(reader)?),
        18 => Question::Output(shared(reader)?, shared(reader)?),
        19 => Question::Location(shared(reader)?),
        _ => return Err(Malformed::Unexpected),
    })
}

/// None if an entry lies in a tree that this run does not have.
fn search_path(reader: &mut Reader<'_>, roles: &Roles) -> Result<Option<Question>, Malformed> {
    let name = shared(reader)?;
    let pure = reader.bool()?;
    let count = reader.array()?;
    let mut entries = Vec::with_capacity(count);
    let mut all = true;
    for _ in 0..count {
        reader.tuple(2)?;
        let prefix = shared(reader)?;
        let path = match reader.item()? {
            Item::Bytes(path) => Some(path.into()),
            Item::Array(2) => {
                let (role, rest) = (reader.text()?, reader.bytes()?);
                roles.resolve(role, rest).map(|path| path.as_bytes().into())
            }
            _ => return Err(Malformed::Unexpected),
        };
        match path {
            Some(path) => entries.push(SearchEntry { prefix, path }),
            None => all = false,
        }
    }
    Ok(all.then(|| Question::SearchPath(SearchPath { entries: entries.into(), pure }, name)))
}

fn read_names(reader: &mut Reader<'_>) -> Result<Names, Malformed> {
    (0..reader.array()?).map(|_| reader.bytes().map(Arc::from)).collect()
}

fn skip(reader: &mut Reader<'_>, items: usize) -> Result<(), Malformed> {
    let mut left = items;
    while left > 0 {
        left -= 1;
        if let Item::Array(len) = reader.item()? {
            left += len;
        }
    }
    Ok(())
}
