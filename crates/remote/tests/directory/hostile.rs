//! Remotes that lie: every byte flipped, objects cut short, exchanged, replayed, blown up. Nothing wrong ever comes out.

use crate::DEADLINE;
use crate::setting::{answer, directory, question, remotes, results};
use firn_remote::{Care, Entry, Index, Kind, Payload, Remotes, SecretKey, pack, unpack};
use std::path::{Path, PathBuf};

struct Victim {
    remote: tempfile::TempDir,
    key: SecretKey,
}

impl Victim {
    fn new() -> Victim {
        let (remote, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = SecretKey::generate("a-1").unwrap();
        let (pusher, _) = remotes(&[directory(remote.path())], Some(key.clone()), &[], DEADLINE);
        pusher.push(vec![answer(memory.path(), "q", 1, 40), answer(memory.path(), "p", 2, 40)], Care::Quick, DEADLINE);
        Victim { remote, key }
    }

    fn reader(&self) -> Remotes {
        remotes(&[directory(self.remote.path())], None, &[&self.key], DEADLINE).0
    }

    fn index_path(&self, name: &str) -> PathBuf {
        self.remote.path().join(Kind::Index.path(&question(name).0))
    }

    fn index(&self, name: &str) -> Index {
        Index::decode(&unpack(Kind::Index, &std::fs::read(self.index_path(name)).unwrap()).unwrap()).unwrap()
    }

    fn write_index(&self, name: &str, index: &Index) {
        std::fs::write(self.index_path(name), pack(Kind::Index, &index.encode()).unwrap()).unwrap();
    }

    /// All objects with their bytes.
    fn objects(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut all, mut todo) = (Vec::new(), vec![self.remote.path().join("v1")]);
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { todo.push(path) } else { all.push((path.clone(), std::fs::read(&path).unwrap())) }
            }
        }
        all.sort();
        all
    }

    /// The answers to `q` are right or missing.
    fn check(&self, what: &str) -> bool {
        let found = results(&self.reader(), "q");
        assert!(found.is_empty() || found == ["result q 1"], "{what}: {found:?}");
        !found.is_empty()
    }
}

#[test]
fn no_flipped_bit_and_no_cut_object_gets_through() {
    let victim = Victim::new();
    assert!(victim.check("whole"));
    for (path, whole) in victim.objects() {
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(&path, &bytes).unwrap();
            victim.check("flipped");
        }
        for len in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..len]).unwrap();
            victim.check("cut");
        }
        std::fs::write(&path, &whole).unwrap();
    }
    assert!(victim.check("whole again"));
}

#[test]
fn objects_in_each_others_places_are_not_believed() {
    let victim = Victim::new();
    let objects = victim.objects();
    for (path, whole) in &objects {
        for (_, other) in &objects {
            std::fs::write(path, other).unwrap();
            victim.check("exchanged");
        }
        std::fs::write(path, whole).unwrap();
    }
}

#[test]
fn an_entry_fits_only_the_question_it_was_signed_for() {
    let victim = Victim::new();
    let foreign = victim.index("p").entries;
    victim.write_index("q", &Index { question: question("q").1, entries: foreign.clone() });
    assert!(!victim.check("replayed"));
    let reader = victim.reader();
    assert!(results(&reader, "q").is_empty());
    assert_eq!(reader.counts().of(firn_remote::Wrong::BadSignature), 1);
    victim.write_index("q", &Index { question: question("p").1, entries: foreign });
    let reader = victim.reader();
    assert!(results(&reader, "q").is_empty());
    assert_eq!(reader.counts().of(firn_remote::Wrong::OtherQuestion), 1);
}

#[test]
fn nothing_that_is_signed_can_be_changed() {
    let victim = Victim::new();
    let (mine, theirs) = (victim.index("q").entries[0].clone(), victim.index("p").entries[0].clone());
    let other = SecretKey::generate("a-1").unwrap();
    let mut signed_by_other = mine.clone();
    signed_by_other.sign(&question("q").0, &other);
    let changed = [
        Entry { answer: theirs.answer, ..mine.clone() },
        Entry { nodes: theirs.nodes.clone(), ..mine.clone() },
        Entry { nodes: Vec::new(), ..mine.clone() },
        Entry { cost: 0, ..mine.clone() },
        Entry { made: 0, ..mine.clone() },
        Entry { durability: firn_host::Durability::High, ..mine.clone() },
        Entry { signature: theirs.signature, ..mine.clone() },
        Entry { signer: "a-2".to_owned(), ..mine.clone() },
        signed_by_other,
    ];
    for entry in changed {
        assert!(entry.check(&question("q").0, &Default::default()).is_err());
        victim.write_index("q", &Index { question: question("q").1, entries: vec![entry.clone()] });
        assert!(!victim.check("changed"), "{entry:?}");
        // A good one beside it is still found.
        victim.write_index("q", &Index { question: question("q").1, entries: vec![entry, mine.clone()] });
        assert!(victim.check("beside"));
    }
}

#[test]
fn bombs_and_floods_are_refused() {
    let victim = Victim::new();
    let answer = victim.index("q").entries[0].answer;
    let path = |root: &Path| root.join(Kind::Answer.path(&answer));
    let bomb = vec![0; Kind::Answer.most() + 1];
    let bomb = zstd_of(&bomb);
    assert!(bomb.len() < Kind::Answer.most_packed());
    std::fs::write(path(victim.remote.path()), bomb).unwrap();
    let reader = victim.reader();
    assert!(results(&reader, "q").is_empty());
    assert_eq!(reader.counts().of(firn_remote::Wrong::TooLarge), 1);
    std::fs::write(path(victim.remote.path()), vec![7; Kind::Answer.most_packed() + 1]).unwrap();
    let (reader, told) = remotes(&[directory(victim.remote.path())], None, &[&victim.key], DEADLINE);
    assert!(results(&reader, "q").is_empty());
    assert!(told.lock().unwrap()[0].contains("sends more than was asked for"), "{told:?}");
}

fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, 1).unwrap()
}

#[test]
fn readers_of_bytes_take_anything() {
    let victim = Victim::new();
    let index = victim.index("q").encode();
    let payload = Payload { result: vec![1; 40], log: vec![], needs: vec![vec![2; 5]] }.encode();
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below.max(1)
    };
    for round in 0..60_000 {
        let whole = if round % 2 == 0 { &index } else { &payload };
        let mut bytes = whole.clone();
        for _ in 0..=random(4) {
            match random(4) {
                0 => bytes.truncate(random(bytes.len() + 1)),
                1 if !bytes.is_empty() => {
                    let at = random(bytes.len());
                    bytes[at] = random(256) as u8;
                }
                2 => {
                    let at = random(bytes.len() + 1);
                    bytes.insert(at, [0x9b, 0x5b, 0xff, 0x9f, 0x1b][random(5)]);
                }
                _ => {
                    let at = random(bytes.len() + 1);
                    bytes.extend_from_slice(&whole[at.min(whole.len())..]);
                }
            }
        }
        // What is read is written back as it was: there is one form of each.
        if let Ok(read) = Index::decode(&bytes) {
            assert_eq!(read.encode(), bytes);
        }
        if let Ok(read) = Payload::decode(&bytes) {
            assert_eq!(read.encode(), bytes);
        }
        let _ = unpack(Kind::Index, &bytes);
    }
}
