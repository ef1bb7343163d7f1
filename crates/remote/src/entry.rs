//! `Entry`: one answer as an index names it, and the statement about it that is signed.
//!
//! ```text
//! entry      = [ [node digest …], answer digest, cost, durability, made, key name, signature ]
//! statement  = [ "firn answer", version, format, epoch, question digest, root, answer digest, cost, durability, made ]
//! payload    = [ result, log, [store path …] ]
//! ```
//!
//! The root is that of the nodes ([`Flat::root`]), the answer digest that of the payload: a signature covers the question,
//! every observation, the result, what was printed and what the store must have, and fits no other question (spec L3.3).

use crate::counts::Wrong;
use crate::key::{Keyring, SecretKey};
use crate::object::VERSION;
use firn_host::{Digest, Durability};
use firn_memo::kept::cbor::{Malformed, Reader, Writer};
use firn_memo::kept::record::FORMAT;
use firn_memo::kept::{EPOCH, Flat, MOST_NODES};

/// One answer, signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The nodes of what was observed, ascending.
    pub nodes: Vec<Digest>,
    /// The digest of the [`Payload`].
    pub answer: Digest,
    /// Microseconds that the evaluation took.
    pub cost: u64,
    /// The least durable of the observations.
    pub durability: Durability,
    /// Seconds since 1970 when it was made.
    pub made: i64,
    /// The name of the key that signed it.
    pub signer: String,
    /// The signature of the statement.
    pub signature: [u8; 64],
}

impl Entry {
    /// Signs the entry for a question.
    pub fn sign(&mut self, question: &Digest, key: &SecretKey) {
        self.signer.clone_from(&key.name);
        self.signature = key.sign(&self.statement(question));
    }

    /// What is signed.
    pub fn statement(&self, question: &Digest) -> Vec<u8> {
        let Entry { nodes, answer, cost, durability, made, signer: _, signature: _ } = self;
        let (root, _) = Flat::root(nodes);
        let mut writer = Writer::new();
        writer.array(10).text("firn answer").unsigned(VERSION.into()).unsigned(FORMAT.into()).unsigned(EPOCH);
        writer.bytes(&question.0).bytes(&root.0).bytes(&answer.0);
        writer.unsigned(*cost).unsigned(*durability as u64).integer(*made);
        writer.finish()
    }

    /// Fails unless somebody who is believed has signed this for the question.
    pub fn check(&self, question: &Digest, keys: &Keyring) -> Result<(), Wrong> {
        if !keys.knows(&self.signer) {
            return Err(Wrong::UnknownKey);
        }
        let signed = keys.vouches(&self.signer, &self.statement(question), &self.signature);
        signed.then_some(()).ok_or(Wrong::BadSignature)
    }

    /// What tells two answers of one signer apart: equal answers that rest on the same are one, whenever they were made.
    pub(crate) fn identity(&self) -> (Digest, Digest, &str) {
        (Flat::root(&self.nodes).0, self.answer, &self.signer)
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        let Entry { nodes, answer, cost, durability, made, signer, signature } = self;
        writer.array(7).array(nodes.len());
        for node in nodes {
            writer.bytes(&node.0);
        }
        writer.bytes(&answer.0).unsigned(*cost).unsigned(*durability as u64).integer(*made);
        writer.text(signer).bytes(signature);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Entry, Malformed> {
        reader.tuple(7)?;
        let count = reader.array()?;
        if count > MOST_NODES {
            return Err(Malformed::TooLarge);
        }
        let nodes = (0..count).map(|_| reader.fixed().map(Digest)).collect::<Result<Vec<_>, _>>()?;
        if !nodes.is_sorted_by(|a, b| a < b) {
            return Err(Malformed::NotCanonical);
        }
        let answer = Digest(reader.fixed()?);
        let cost = reader.unsigned()?;
        let durability = Durability::from_number(reader.unsigned()?).ok_or(Malformed::Unexpected)?;
        let made = reader.integer()?;
        let signer = reader.text()?.to_owned();
        if signer.len() > 255 {
            return Err(Malformed::TooLarge);
        }
        Ok(Entry { nodes, answer, cost, durability, made, signer, signature: reader.fixed()? })
    }
}

/// What an answer says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// The result as plain data.
    pub result: Vec<u8>,
    /// What was printed on the way.
    pub log: Vec<u8>,
    /// Store objects that the result refers to.
    pub needs: Vec<Vec<u8>>,
}

impl Payload {
    /// The payload's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Payload { result, log, needs } = self;
        let mut writer = Writer::new();
        writer.array(3).bytes(result).bytes(log).array(needs.len());
        for path in needs {
            writer.bytes(path);
        }
        writer.finish()
    }

    /// Reads a payload back.
    pub fn decode(bytes: &[u8]) -> Result<Payload, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(3)?;
        let (result, log) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        let needs = (0..reader.array()?).map(|_| reader.bytes().map(<[u8]>::to_vec)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Payload { result, log, needs })
    }

    /// The digest that names these bytes.
    pub fn digest(bytes: &[u8]) -> Digest {
        Digest(blake3::derive_key("firn remote 2026-11 answer", bytes))
    }
}
