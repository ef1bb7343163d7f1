//! Handing over: what is pushed is complete before anything names it, and several who push at once lose nothing.
//!
//! 1. Nodes and answers are written first, those that are there already not again. They are named by their content: it does
//!    not matter who writes them, or how often.
//! 2. The index of each question is read, merged with the new entries and written. A pusher killed before that has left
//!    objects that nobody names, and nothing else.
//! 3. Where the store replaces only what has not changed since, that is all. Elsewhere somebody may have written in between,
//!    so the index is read again after longer than anybody may take from reading to writing, and what was lost is written again.

use crate::entry::{Entry, Payload};
use crate::index::Index;
use crate::key::{Keyring, SecretKey};
use crate::object::{Kind, pack};
use crate::place::{Expected, Trouble};
use crate::place::AT_ONCE;
use crate::remotes::{Reached, Remotes};
use firn_cache::{Found, Reading};
use firn_host::Digest;
use firn_memo::kept::{Flat, Key, Nodes};
use futures::{StreamExt, TryStreamExt, stream};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// An answer laid out for the way.
#[derive(Clone, Debug)]
pub struct Travelling {
    question: Vec<u8>,
    entry: Entry,
    nodes: Nodes,
    payload: Vec<u8>,
}

/// What was pushed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Pushed {
    /// Answers that are there now and were not before.
    pub new: u64,
    /// Answers that were there.
    pub known: u64,
    /// Objects written.
    pub written: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// How surely what is pushed has to stay there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Care {
    /// Nobody waits to see whether another pusher overwrote it: at worst a hit is lost.
    Quick,
    /// It is looked after until it is sure to stay.
    Sure,
}

/// The longest from reading an index to writing it; whoever took longer reads it again.
const WINDOW: Duration = Duration::from_millis(150);
/// How often an index is written again before it is given up.
const ROUNDS: usize = 40;

/// Lays out an answer from the database. None if something of it is missing, or it is larger than remotes take.
pub fn travelling(reading: &Reading<'_>, found: &Found) -> Option<Travelling> {
    let record = &found.record;
    let flat = Flat::new(record.observations, &|digest| reading.node(digest).map(<[u8]>::to_vec))?;
    let payload = Payload { result: found.result.clone(), log: record.log.clone(), needs: record.needs.clone() }.encode();
    let entry = Entry {
        nodes: flat.nodes.iter().map(|(digest, _)| *digest).collect(),
        answer: Payload::digest(&payload),
        cost: record.cost,
        durability: record.durability,
        made: record.made,
        signer: String::new(),
        signature: [0; 64],
    };
    Some(Travelling { question: record.question.clone(), entry, nodes: flat.nodes, payload })
}

impl Remotes {
    /// Signs answers and hands them to every remote that is written. Waits no longer than `limit` for each, nor than what is left
    /// of its deadline.
    pub fn push(&self, answers: Vec<Travelling>, care: Care, limit: Duration) -> Pushed {
        let mut total = Pushed::default();
        let Some(secret) = &self.secret else { return total };
        let batch = Batch::new(answers, secret);
        for reached in self.reached.iter().filter(|reached| reached.takes()) {
            let began = Instant::now();
            let done = self.block_on(limit.min(self.left(reached)), batch.hand_over(reached, &self.keys, care));
            self.spend(reached, began.elapsed());
            match done {
                Ok(pushed) => {
                    total.new += pushed.new;
                    total.known += pushed.known;
                    total.written += pushed.written;
                    total.bytes += pushed.bytes;
                }
                Err(trouble) => self.leave_alone(reached, &trouble),
            }
        }
        self.count(|counts| {
            counts.pushed += total.new;
            counts.written += total.written;
            counts.bytes_out += total.bytes;
        });
        total
    }
}

/// Answers by question, and everything they name.
struct Batch {
    questions: BTreeMap<Digest, (Vec<u8>, Vec<Entry>)>,
    objects: BTreeMap<(Kind, Digest), Vec<u8>>,
}

impl Batch {
    fn new(answers: Vec<Travelling>, secret: &SecretKey) -> Batch {
        let mut batch = Batch { questions: BTreeMap::new(), objects: BTreeMap::new() };
        for Travelling { question, mut entry, nodes, payload } in answers {
            // What does not fit into a remote stays at home.
            let Some(answer) = pack(Kind::Answer, &payload) else { continue };
            let packed = nodes.iter().map(|(digest, bytes)| Some((*digest, pack(Kind::Node, bytes)?)));
            let Some(packed) = packed.collect::<Option<Vec<_>>>() else { continue };
            batch.objects.insert((Kind::Answer, entry.answer), answer);
            batch.objects.extend(packed.into_iter().map(|(digest, bytes)| ((Kind::Node, digest), bytes)));
            let digest = Key::digest(&question);
            entry.sign(&digest, secret);
            batch.questions.entry(digest).or_insert_with(|| (question, Vec::new())).1.push(entry);
        }
        batch
    }

    async fn hand_over(&self, reached: &Reached, keys: &Keyring, care: Care) -> Result<Pushed, Trouble> {
        let mut pushed = Pushed::default();
        let named = self.already_named(reached).await?;
        self.write_objects(reached, &named, &mut pushed).await?;
        let mut waiting: Vec<Digest> = self.questions.keys().copied().collect();
        let mut first = true;
        for round in 0..ROUNDS {
            let merge = |question: Digest| async move {
                Ok::<_, Trouble>((question, self.merge(reached, keys, &question).await?))
            };
            let merged: Vec<(Digest, Merged)> =
                stream::iter(waiting).map(merge).buffer_unordered(AT_ONCE).try_collect().await?;
            waiting = Vec::new();
            for (question, merged) in merged {
                if first {
                    pushed.new += merged.new;
                    pushed.known += merged.known;
                }
                pushed.written += u64::from(merged.bytes > 0);
                pushed.bytes += merged.bytes;
                // Written, and it may be overwritten; or not written, because somebody else was quicker.
                if merged.lost || merged.bytes > 0 && !reached.place.compares() {
                    waiting.push(question);
                }
            }
            first = false;
            let enough = care == Care::Quick && round > 0;
            if waiting.is_empty() || enough {
                return Ok(pushed);
            }
            if care == Care::Sure && !reached.place.compares() {
                tokio::time::sleep(WINDOW + jitter()).await;
            }
        }
        Err(Trouble::Failed("others write the same answers all the time".to_owned()))
    }

    /// What the indices there name already is there.
    async fn already_named(&self, reached: &Reached) -> Result<FxHashSet<(Kind, Digest)>, Trouble> {
        let read = |question: &Digest| {
            let question = *question;
            async move { reached.index(&question).await }
        };
        let all: Vec<_> = stream::iter(self.questions.keys()).map(read).buffer_unordered(AT_ONCE).try_collect().await?;
        let entries = all.into_iter().filter_map(|(index, ..)| index).flat_map(|index| index.entries);
        let mut named = FxHashSet::default();
        for entry in entries {
            named.insert((Kind::Answer, entry.answer));
            named.extend(entry.nodes.iter().map(|node| (Kind::Node, *node)));
        }
        Ok(named)
    }

    async fn write_objects(
        &self,
        reached: &Reached,
        named: &FxHashSet<(Kind, Digest)>,
        pushed: &mut Pushed,
    ) -> Result<(), Trouble> {
        let place = &reached.place;
        let write = |((kind, digest), bytes): (&(Kind, Digest), &Vec<u8>)| {
            let (kind, digest, bytes) = (*kind, *digest, bytes.clone());
            async move {
                if place.has(kind, &digest).await? {
                    return Ok::<_, Trouble>(None);
                }
                let len = bytes.len() as u64;
                place.put(kind, &digest, bytes).await?;
                Ok(Some(len))
            }
        };
        let todo = self.objects.iter().filter(|(name, _)| !named.contains(name));
        let written: Vec<Option<u64>> = stream::iter(todo).map(write).buffer_unordered(AT_ONCE).try_collect().await?;
        pushed.written += written.iter().flatten().count() as u64;
        pushed.bytes += written.iter().flatten().sum::<u64>();
        Ok(())
    }

    /// Reads the index of a question, merges the new entries into it and writes it.
    async fn merge(&self, reached: &Reached, keys: &Keyring, question: &Digest) -> Result<Merged, Trouble> {
        let Some((text, entries)) = self.questions.get(question) else { return Ok(Merged::default()) };
        for attempt in 0.. {
            let began = Instant::now();
            let (index, mark, there) = reached.index(question).await?;
            let mut index = index.unwrap_or_else(|| Index::new(text.clone()));
            let new = entries.iter().filter(|entry| !index.has(entry)).count() as u64;
            let known = entries.len() as u64 - new;
            if new == 0 {
                return Ok(Merged { known, ..Merged::default() });
            }
            index.merge(entries.iter().cloned(), keys);
            let Some(packed) = pack(Kind::Index, &index.encode()) else {
                return Err(Trouble::Failed("the index of a question is too large".to_owned()));
            };
            // Where reading alone takes longer than the window, nothing is gained by reading again for ever.
            if began.elapsed() > WINDOW && attempt < 2 && !reached.place.compares() {
                continue;
            }
            let expected = match (there, mark) {
                (false, _) => Expected::Absent,
                (true, Some(mark)) => Expected::Marked(mark),
                (true, None) => Expected::Anything,
            };
            let bytes = packed.len() as u64;
            let written = reached.place.replace(Kind::Index, question, packed, expected).await?;
            return Ok(Merged { new, known, bytes: if written { bytes } else { 0 }, lost: !written });
        }
        Ok(Merged::default())
    }
}

/// What became of one index.
#[derive(Clone, Copy, Default)]
struct Merged {
    new: u64,
    known: u64,
    /// Bytes written; none if there was nothing to write.
    bytes: u64,
    /// Somebody else was quicker.
    lost: bool,
}

/// Up to a window more, so that those who met once do not meet again.
fn jitter() -> Duration {
    let mut byte = [0];
    // Without chance they may meet again, and the next round parts them.
    let _ = getrandom::fill(&mut byte);
    WINDOW * u32::from(byte[0]) / 255
}
