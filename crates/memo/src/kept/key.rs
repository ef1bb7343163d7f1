//! `Key`: a question as asked on a command line, in words that any checkout and any machine would use (spec L3.1).
//!
//! Trees are named by role, the paths of arguments within them; whatever changes the meaning of the answer (settings,
//! system, features, the form it is printed in) is part of the question (nix#3872). Equal questions have equal bytes.

use super::cbor::{Item, Reader, Writer};
use super::roles::Roles;
use firn_host::{AbsPath, Digest};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Raised when evaluation itself changes what it answers; entries of other epochs are never asked for.
pub const EPOCH: u64 = 1;

static QUESTION: LazyLock<blake3::Hasher> = LazyLock::new(|| blake3::Hasher::new_derive_key("firn memo 2026-11 question"));

/// Before a question, where parts of its evaluation are meant. No question begins so.
const PARTS_OF: &[u8] = b"parts of ";

/// Where an evaluation begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A file or directory.
    File(AbsPath),
    /// An expression, and the directory it is seen from.
    Expression(Vec<u8>, AbsPath),
    /// A flake with everything pinned, by its fingerprint.
    Flake(Vec<u8>),
}

/// An argument for functions that are called automatically.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// An expression.
    Expression(Vec<u8>),
    /// A string.
    Text(Vec<u8>),
}

/// A question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Where evaluation begins.
    pub entry: Entry,
    /// The directory that other expressions of the command line (arguments, functions to apply) are seen from, if there
    /// are any.
    pub base: Option<AbsPath>,
    /// The attribute path.
    pub attribute: Vec<u8>,
    /// What is done with the value: how it is printed, or that it is instantiated.
    pub form: Vec<u8>,
    /// Arguments for functions that are called automatically.
    pub arguments: BTreeMap<Vec<u8>, Argument>,
    /// Settings that change what expressions mean, by name.
    pub settings: BTreeMap<String, Vec<u8>>,
}

/// A question without its attribute path: what the questions of a run have in common.
// PERF: of a thousand questions of one run all but a few bytes are the same; writing and hashing them each time took a twelfth of an unchanged run.
#[derive(Clone, Debug)]
pub struct Stem {
    /// The question; its attribute path means nothing.
    pub asked: Asked,
    written: Vec<u8>,
    hashed: blake3::Hasher,
}

/// A question's bytes and their digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The name under which answers are stored.
    pub digest: Digest,
    /// The question in full.
    pub question: Vec<u8>,
}

impl Stem {
    /// What the questions have in common that differ from this one in their attribute path.
    pub fn new(asked: &Asked, roles: &Roles) -> Stem {
        let Asked { entry, base, attribute: _, form, arguments, settings } = asked;
        let mut writer = Writer::new();
        writer.array(8).unsigned(EPOCH).text(env!("CARGO_PKG_VERSION"));
        let place = |writer: &mut Writer, path: &AbsPath| {
            let (role, rest) = roles.place(path);
            writer.text(role).bytes(rest);
        };
        match entry {
            Entry::File(path) => {
                writer.array(3).unsigned(0);
                place(&mut writer, path);
            }
            Entry::Expression(text, base) => {
                writer.array(4).unsigned(1).bytes(text);
                place(&mut writer, base);
            }
            Entry::Flake(fingerprint) => {
                writer.array(2).unsigned(2).bytes(fingerprint);
            }
        }
        match base {
            Some(path) => {
                writer.array(2);
                place(&mut writer, path);
            }
            None => _ = writer.null(),
        }
        writer.bytes(form).array(arguments.len());
        for (name, argument) in arguments {
            let (kind, text) = match argument {
                Argument::Expression(text) => (0, text),
                Argument::Text(text) => (1, text),
            };
            writer.array(3).bytes(name).unsigned(kind).bytes(text);
        }
        writer.array(settings.len());
        for (name, value) in settings {
            writer.array(2).text(name).bytes(value);
        }
        let written = writer.finish();
        let mut hashed = QUESTION.clone();
        hashed.update(&written);
        Stem { asked: asked.clone(), written, hashed }
    }

    /// The key of the question about an attribute.
    pub fn key(&self, attribute: &[u8]) -> Key {
        let mut writer = Writer::new();
        writer.bytes(attribute);
        let last = writer.finish();
        let digest = Digest(*self.hashed.clone().update(&last).finalize().as_bytes());
        Key { digest, question: [&self.written[..], &last].concat() }
    }

    /// The question about an attribute.
    pub fn asked(&self, attribute: &[u8]) -> Asked {
        Asked { attribute: attribute.to_vec(), ..self.asked.clone() }
    }
}

impl Key {
    /// The key of a question.
    pub fn new(asked: &Asked, roles: &Roles) -> Key {
        Stem::new(asked, roles).key(&asked.attribute)
    }

    /// The key that parts of the question's evaluation are kept under.
    pub fn of_parts(&self) -> Key {
        let question = [PARTS_OF, &self.question[..]].concat();
        Key { digest: Key::digest(&question), question }
    }

    /// Whether these are bytes of a question whose answer is parts of an evaluation.
    pub fn is_of_parts(question: &[u8]) -> bool {
        question.starts_with(PARTS_OF)
    }

    /// The attribute path that a question asks about.
    pub fn attribute(question: &[u8]) -> Option<Vec<u8>> {
        let mut reader = Reader::new(question);
        reader.tuple(8).ok()?;
        let mut left = 7;
        while left > 0 {
            left -= 1;
            if let Item::Array(len) = reader.item().ok()? {
                left += len;
            }
        }
        reader.bytes().ok().map(<[u8]>::to_vec)
    }

    /// The digest of a question's bytes.
    pub fn digest(question: &[u8]) -> Digest {
        Digest(*QUESTION.clone().update(question).finalize().as_bytes())
    }
}
