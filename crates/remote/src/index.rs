//! `Index`: the answers to one question, newest first, bounded. Merging two gives the same whichever comes first.
//!
//! ```text
//! index = [ version, format, question, [entry …] ]
//! ```
//!
//! One object for each question, so that asking takes one request in a store that cannot list. Two that write it at once are
//! dealt with by whoever writes ([`Remotes::push`](crate::Remotes::push)).

use crate::counts::Wrong;
use crate::entry::Entry;
use crate::key::Keyring;
use crate::object::VERSION;
use firn_host::Digest;
use firn_memo::kept::Key;
use firn_memo::kept::cbor::{Malformed, Reader, Writer};
use firn_memo::kept::record::FORMAT;
use std::collections::BTreeMap;

/// The most answers that are kept for one question, as on disk (spec L2.7).
pub const HISTORY: usize = firn_cache::HISTORY;

/// The answers to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Index {
    /// The question in full.
    pub question: Vec<u8>,
    /// The answers, newest first.
    pub entries: Vec<Entry>,
}

impl Index {
    /// No answers yet.
    pub fn new(question: Vec<u8>) -> Index {
        Index { question, entries: Vec::new() }
    }

    /// The question's digest, which is where the index lies.
    pub fn digest(&self) -> Digest {
        Key::digest(&self.question)
    }

    /// The index's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.array(4).unsigned(VERSION.into()).unsigned(FORMAT.into()).bytes(&self.question).array(self.entries.len());
        self.entries.iter().for_each(|entry| entry.write(&mut writer));
        writer.finish()
    }

    /// Reads an index back.
    pub fn decode(bytes: &[u8]) -> Result<Index, Malformed> {
        let mut reader = Reader::new(bytes);
        reader.tuple(4)?;
        if reader.unsigned()? != u64::from(VERSION) || reader.unsigned()? != u64::from(FORMAT) {
            return Err(Malformed::Unexpected);
        }
        let question = reader.bytes()?.to_vec();
        let count = reader.array()?;
        if count > HISTORY {
            return Err(Malformed::TooLarge);
        }
        let entries = (0..count).map(|_| Entry::read(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Index { question, entries })
    }

    /// Reads the index of a question, and nothing else.
    pub fn of_question(question: &Digest, bytes: &[u8]) -> Result<Index, Wrong> {
        let index = Index::decode(bytes).map_err(|_| Wrong::Malformed)?;
        if index.digest() == *question { Ok(index) } else { Err(Wrong::OtherQuestion) }
    }

    /// Takes in other answers. Of equal ones the newest stays; of too many those go that `keys` do not vouch for, then the
    /// oldest. Both orders of merging give the same.
    pub fn merge(&mut self, others: impl IntoIterator<Item = Entry>, keys: &Keyring) {
        let question = self.digest();
        let mut by_identity: BTreeMap<(Digest, Digest, String), Entry> = BTreeMap::new();
        for entry in self.entries.drain(..).chain(others) {
            let (root, answer, signer) = entry.identity();
            let newer = |old: &Entry| (old.made, old.cost, old.signature) < (entry.made, entry.cost, entry.signature);
            let key = (root, answer, signer.to_owned());
            if by_identity.get(&key).is_none_or(newer) {
                by_identity.insert(key, entry);
            }
        }
        let mut judged: Vec<(bool, Entry)> =
            by_identity.into_values().map(|entry| (entry.check(&question, keys).is_ok(), entry)).collect();
        let rank = |(good, entry): &(bool, Entry)| (*good, entry.made, entry.signature);
        judged.sort_by_key(|judged| std::cmp::Reverse(rank(judged)));
        judged.truncate(HISTORY);
        judged.sort_by_key(|(_, entry)| std::cmp::Reverse((entry.made, entry.signature)));
        self.entries = judged.into_iter().map(|(_, entry)| entry).collect();
    }

    /// Whether it has this answer, however old.
    pub fn has(&self, entry: &Entry) -> bool {
        self.entries.iter().any(|known| known.identity() == entry.identity())
    }
}
