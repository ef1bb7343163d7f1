//! `Shelf`: the objects of a server, in a directory. What is put there is what its name says; an index is merged.

use crate::address::Address;
use crate::counts::Wrong;
use crate::entry::{Entry, Payload};
use crate::index::Index;
use crate::key::Keyring;
use crate::object::{Kind, pack, unpack};
use crate::place::{Place, Trouble};
use firn_host::Digest;
use firn_memo::kept::observation::Node;
use firn_memo::kept::{Key, MOST_NODES};
use tokio::sync::Mutex;

/// The objects of a server.
pub(super) struct Shelf {
    place: Place,
    dir: std::path::PathBuf,
    /// Indices are merged one at a time.
    merging: Mutex<()>,
}

/// What there is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Survey {
    /// Objects by kind, in the order of [`Kind::ALL`].
    pub objects: [u64; 3],
    /// Bytes by kind.
    pub bytes: [u64; 3],
}

/// What became of an index that was put.
pub(super) struct Merged {
    /// The attribute that the question asks about.
    pub attribute: String,
    /// Who signed.
    pub signer: String,
    /// Answers that were not there before.
    pub new: u64,
    /// By how much the index grew, in bytes, and whether it is new.
    pub grown: i64,
    pub first: bool,
}

/// Why something is not kept.
pub(super) enum Refused {
    /// It is not what it should be.
    Wrong(Wrong),
    /// It cannot be written.
    Trouble(Trouble),
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Refused {
        Refused::Trouble(trouble)
    }
}

impl From<Wrong> for Refused {
    fn from(wrong: Wrong) -> Refused {
        Refused::Wrong(wrong)
    }
}

impl Shelf {
    pub(super) fn open(dir: &str) -> Result<Shelf, Trouble> {
        let address = Address::parse(&format!("file:{dir}")).map_err(|error| Trouble::Failed(error.to_string()))?;
        Ok(Shelf { place: Place::open(&address)?, dir: dir.into(), merging: Mutex::default() })
    }

    /// Looks at all there is. The directory is the server's own.
    #[allow(clippy::disallowed_methods)]
    pub(super) fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let folder = self.dir.join(format!("v{}", crate::object::VERSION)).join(kind.folder());
            for shard in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                for object in std::fs::read_dir(shard.path()).into_iter().flatten().flatten() {
                    survey.objects[number] += 1;
                    survey.bytes[number] += object.metadata().map_or(0, |about| about.len());
                }
            }
        }
        survey
    }

    pub(super) async fn get(&self, kind: Kind, digest: &Digest) -> Result<Option<Vec<u8>>, Trouble> {
        self.place.get(kind, digest).await
    }

    /// Keeps a node or an answer; whether it is new.
    pub(super) async fn put(&self, kind: Kind, digest: &Digest, packed: Vec<u8>) -> Result<bool, Refused> {
        let bytes = unpack(kind, &packed)?;
        let named = if kind == Kind::Node { Node::digest(&bytes) } else { Payload::digest(&bytes) };
        if named != *digest {
            return Err(Wrong::NotItsName.into());
        }
        if self.place.has(kind, digest).await? {
            return Ok(false);
        }
        self.place.put(kind, digest, packed).await?;
        Ok(true)
    }

    /// Merges an index with the one there. Everything that it names must be here.
    pub(super) async fn merge(&self, question: &Digest, packed: &[u8], keys: &Keyring) -> Result<Merged, Refused> {
        let given = Index::of_question(question, &unpack(Kind::Index, packed)?)?;
        for entry in &given.entries {
            if !keys.is_empty() {
                entry.check(question, keys)?;
            }
            if !self.is_complete(entry).await? {
                return Err(Wrong::Incomplete.into());
            }
        }
        let _alone = self.merging.lock().await;
        let before = self.place.get(Kind::Index, question).await?;
        let known = before.as_deref().and_then(|packed| Index::of_question(question, &unpack(Kind::Index, packed).ok()?).ok());
        let mut index = known.unwrap_or_else(|| Index::new(given.question.clone()));
        let new = given.entries.iter().filter(|entry| !index.has(entry)).count() as u64;
        let signer = given.entries.first().map_or_else(String::new, |entry| entry.signer.clone());
        index.merge(given.entries, keys);
        let packed = pack(Kind::Index, &index.encode()).ok_or(Wrong::TooLarge)?;
        let grown = packed.len() as i64 - before.as_ref().map_or(0, |before| before.len() as i64);
        if before.as_deref() != Some(&packed[..]) {
            self.place.put(Kind::Index, question, packed).await?;
        }
        let attribute = Key::attribute(&index.question).unwrap_or_default();
        let attribute = String::from_utf8_lossy(&attribute).into_owned();
        Ok(Merged { attribute, signer, new, grown, first: before.is_none() })
    }

    async fn is_complete(&self, entry: &Entry) -> Result<bool, Trouble> {
        if entry.nodes.len() > MOST_NODES || !self.place.has(Kind::Answer, &entry.answer).await? {
            return Ok(false);
        }
        for node in &entry.nodes {
            if !self.place.has(Kind::Node, node).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
