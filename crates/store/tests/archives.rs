//! Archives: the bytes Nix dumps for `tests/store/source`, round trips of random trees, hostile input.

// Tests read their data directly; the one door outward is for the evaluator.
#![allow(clippy::disallowed_methods)]

use firn_store::hash::{Algorithm, Format, Hash, Hasher};
use firn_store::nar::{Discard, MAX_DEPTH, Sink, Writer, parse};
use firn_store::{Error, ErrorKind, Result};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/store").join(name)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Regular(bool, Vec<u8>),
    Symlink(Vec<u8>),
    Directory(Entries),
}

fn dump(node: &Node, sink: &mut dyn Sink) -> Result<()> {
    match node {
        Node::Regular(executable, bytes) => {
            sink.regular(*executable, bytes.len() as u64)?;
            for chunk in bytes.chunks(3) {
                sink.contents(chunk)?;
            }
            sink.end_regular()
        }
        Node::Symlink(target) => sink.symlink(target),
        Node::Directory(entries) => {
            sink.directory()?;
            for (name, node) in entries {
                sink.entry(name)?;
                dump(node, sink)?;
            }
            sink.end_directory()
        }
    }
}

fn archive(node: &Node) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    dump(node, &mut writer).unwrap();
    writer.finish().unwrap()
}

type Entries = BTreeMap<Vec<u8>, Node>;

/// Builds a tree from events: open directories with the entry in hand.
#[derive(Default)]
struct Builder {
    open: Vec<(Entries, Vec<u8>)>,
    file: Option<(bool, Vec<u8>)>,
    done: Option<Node>,
}

impl Builder {
    fn add(&mut self, node: Node) -> Result<()> {
        match self.open.last_mut() {
            Some((entries, name)) => drop(entries.insert(name.clone(), node)),
            None => self.done = Some(node),
        }
        Ok(())
    }
}

impl Sink for Builder {
    fn directory(&mut self) -> Result<()> {
        self.open.push(Default::default());
        Ok(())
    }
    fn entry(&mut self, name: &[u8]) -> Result<()> {
        self.open.last_mut().unwrap().1 = name.to_vec();
        Ok(())
    }
    fn end_directory(&mut self) -> Result<()> {
        let (entries, _) = self.open.pop().unwrap();
        self.add(Node::Directory(entries))
    }
    fn regular(&mut self, executable: bool, _: u64) -> Result<()> {
        self.file = Some((executable, vec![]));
        Ok(())
    }
    fn contents(&mut self, data: &[u8]) -> Result<()> {
        self.file.as_mut().unwrap().1.extend_from_slice(data);
        Ok(())
    }
    fn end_regular(&mut self) -> Result<()> {
        let (executable, bytes) = self.file.take().unwrap();
        self.add(Node::Regular(executable, bytes))
    }
    fn symlink(&mut self, target: &[u8]) -> Result<()> {
        self.add(Node::Symlink(target.to_vec()))
    }
}

fn tree_of(bytes: &[u8]) -> Result<Node> {
    let mut builder = Builder::default();
    parse(&mut &bytes[..], &mut builder)?;
    Ok(builder.done.unwrap())
}

fn example() -> Node {
    let file = |executable, bytes: &[u8]| Node::Regular(executable, bytes.to_vec());
    let dir = |entries: Vec<(&str, Node)>| {
        Node::Directory(entries.into_iter().map(|(n, node)| (n.as_bytes().to_vec(), node)).collect())
    };
    dir(vec![
        ("a.txt", file(false, b"plain\n")),
        ("run", file(true, b"#!/bin/sh\necho run\n")),
        ("link", Node::Symlink(b"a.txt".to_vec())),
        ("sub", dir(vec![("eight", file(false, b"12345678")), ("empty", file(false, b""))])),
    ])
}

#[test]
fn bytes_that_nix_dumps() {
    let known = std::fs::read(data("source.nar")).unwrap();
    assert_eq!(archive(&example()), known);
    assert_eq!(tree_of(&known).unwrap(), example());
    let mut writer = Writer::new(Hasher::new(Algorithm::Sha256));
    parse(&mut &known[..], &mut writer).unwrap();
    let (hash, len) = writer.finish().unwrap().finish();
    assert_eq!(len, known.len() as u64);
    assert_eq!(hash, Hash::of(Algorithm::Sha256, &known));
    let expected = std::fs::read_to_string(data("source.sha256")).unwrap();
    assert_eq!(hash.to_string(Format::Nix32, false), expected.trim());
}

#[test]
fn large_files_stream() {
    let node = Node::Regular(false, (0..300_001u32).map(|i| i as u8).collect());
    assert_eq!(tree_of(&archive(&node)).unwrap(), node);
}

#[test]
fn writer_refuses_nonsense() {
    let fresh = || Writer::new(Vec::new());
    let text = |r: Result<()>| r.unwrap_err().to_string();
    assert_eq!(text(fresh().finish().map(drop)), "bad archive: events out of order");
    assert_eq!(text(fresh().entry(b"a")), "bad archive: events out of order");
    let mut short = fresh();
    short.regular(false, 3).unwrap();
    assert_eq!(text(short.contents(b"four")), "bad archive: file is longer than announced");
    assert_eq!(text(short.end_regular()), "bad archive: file is shorter than announced");
    let mut unsorted = fresh();
    unsorted.directory().unwrap();
    unsorted.entry(b"b").unwrap();
    unsorted.symlink(b"x").unwrap();
    assert_eq!(text(unsorted.entry(b"b")), "bad archive: NAR directory is not sorted");
    assert_eq!(text(unsorted.entry(b"c/d")), "bad archive: NAR contains invalid file name 'c/d'");
    let mut deep = fresh();
    let result = (0..=MAX_DEPTH).try_for_each(|_| deep.directory().and_then(|()| deep.entry(b"d")));
    assert_eq!(text(result), "bad archive: NAR directory nesting exceeds maximum depth of 64");
}

/// An archive from raw strings, padded as the format wants.
fn raw(strings: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![];
    for s in strings {
        out.extend_from_slice(&(s.len() as u64).to_le_bytes());
        out.extend_from_slice(s);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

#[test]
fn reader_errors() {
    let fail = |bytes: &[u8]| parse(&mut &bytes[..], &mut Discard).unwrap_err();
    let text = |bytes: &[u8]| fail(bytes).to_string();
    const M: &[u8] = b"nix-archive-1";
    assert_eq!(text(&raw(&[b"nope"])), "bad archive: input doesn't look like a Nix archive");
    assert_eq!(text(&[0xff; 64]), "bad archive: input doesn't look like a Nix archive");
    assert_eq!(text(&raw(&[M, b"["])), "bad archive: expected tag '(', got '['");
    assert_eq!(text(&raw(&[M, b"(", b"type", b"fifo"])), "bad archive: unknown file type 'fifo'");
    assert_eq!(text(&raw(&[M, b"(", b"type", &[b'x'; 33]])), "string is too long");
    assert_eq!(
        text(&raw(&[M, b"(", b"type", b"symlink", b"target", b""])),
        "bad archive: NAR contains invalid symlink target"
    );
    let mut padded = raw(&[M, b"("]);
    *padded.last_mut().unwrap() = 1;
    assert_eq!(text(&padded), "non-zero padding");
    let mut huge = raw(&[M, b"(", b"type", b"regular", b"contents"]);
    huge.extend_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(fail(&huge).kind(), ErrorKind::Io);
    let mut deep = raw(&[M]);
    for _ in 0..100_000 {
        deep.extend(raw(&[b"(", b"type", b"directory", b"entry", b"(", b"name", b"d", b"node"]));
    }
    assert_eq!(text(&deep), "bad archive: NAR directory nesting exceeds maximum depth of 64");
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(1u8.., 1..6).prop_filter("a file name", |n| {
        n != b"." && n != b".." && !n.contains(&b'/')
    })
}

fn any_node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40)).prop_map(|(x, b)| Node::Regular(x, b)),
        proptest::collection::vec(1u8.., 1..20).prop_map(Node::Symlink),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        proptest::collection::btree_map(any_name(), inner, 0..6).prop_map(Node::Directory)
    })
}

proptest! {
    #[test]
    fn round_trip(node in any_node()) {
        let bytes = archive(&node);
        prop_assert_eq!(tree_of(&bytes).unwrap(), node);
        let mut copy = Writer::new(Vec::new());
        parse(&mut &bytes[..], &mut copy).unwrap();
        prop_assert_eq!(copy.finish().unwrap(), bytes);
    }

    #[test]
    fn mutated_archives_never_panic(node in any_node(), at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
        let mut bytes = archive(&node);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _: Result<(), Error> = parse(&mut &bytes[..], &mut Discard);
        bytes.truncate(cut.index(bytes.len()));
        prop_assert!(parse(&mut &bytes[..], &mut Discard).is_err());
    }
}
