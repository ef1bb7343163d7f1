//! The memory on disk under what happens to disks: many processes' worth of writers, torn and flipped bytes, full disks.
#![allow(clippy::disallowed_methods, reason = "a test breaks files itself")]

use firn_cache::{Answer, Batch, Disk, HISTORY, Unusable};
use firn_host::{AbsPath, Digest, Durability, Observation, Question, Stamp};
use firn_memo::kept::observation::Node;
use firn_memo::kept::{Key, Record, Roles, Stored};
use std::path::Path;

const LIMIT: u64 = 64 << 20;

fn path(text: &str) -> AbsPath {
    AbsPath::new(text.as_bytes()).unwrap()
}

fn question(number: u64) -> Vec<u8> {
    format!("question {number}").into_bytes()
}

/// What the answer with this number to that question says: large enough to lie in pages of its own now and then.
fn result(number: u64, version: u64) -> Vec<u8> {
    format!("result {number}/{version} ").into_bytes().repeat(if number % 3 == 0 { 1000 } else { 2 })
}

fn answer(number: u64, version: u64) -> Answer {
    let roles = Roles::new();
    let file = |n: u64| Question::File(path(&format!("/src/{n}")));
    let observation = |n: u64| Observation::new(file(n), Digest([n as u8; 32]), Durability::Medium);
    let shared = Node { own: (0..20).map(observation).collect(), ..Node::default() }.encode(&roles);
    let below = Node::digest(&shared);
    let own = Node { children: vec![below], own: vec![observation(100 + number), observation(1000 + version)], ..Node::default() }.encode(&roles);
    let root = Node::digest(&own);
    let record = Record {
        question: question(number),
        result: Stored::Inline(result(number, version)),
        log: Vec::new(),
        observations: root,
        needs: Vec::new(),
        cost: 1000,
        durability: Durability::Medium,
        made: 1_000_000 + version as i64,
        places: Vec::new(),
    };
    Answer { question: Key::digest(&question(number)), record, nodes: vec![(below, shared), (root, own)] }
}

fn stamp(n: u64) -> (Question, Stamp, Digest) {
    let stamp = Stamp { device: 1, inode: n, size: n, modified: (5, 6), changed: (7, 8) };
    (Question::File(path(&format!("/src/{n}"))), stamp, Digest([n as u8; 32]))
}

fn fill(disk: &Disk, numbers: std::ops::Range<u64>) {
    let writer = disk.writer();
    for number in numbers.clone() {
        writer.write(Batch { answers: vec![answer(number, 0)], stamps: vec![stamp(number)], now: 1_000_000, ..Batch::default() });
    }
    writer.finish().unwrap();
}

/// How many of the questions have their answer, all of which must be right.
fn right(disk: &Disk, numbers: std::ops::Range<u64>) -> usize {
    let Some(reading) = disk.read() else { return 0 };
    let mut found = 0;
    for number in numbers {
        for answer in reading.records(&Key::digest(&question(number))) {
            assert_eq!(answer.record.question, question(number));
            assert_eq!(answer.result, result(number, answer.record.made as u64 - 1_000_000));
            if let Some(node) = reading.node(&answer.record.observations) {
                assert_eq!(Node::digest(&node), answer.record.observations);
            }
            found += 1;
        }
        let (question, stamp, digest) = stamp(number);
        assert!(reading.vouched(&question, &stamp).is_none_or(|known| known == digest));
    }
    found
}

#[test]
fn what_was_written_is_there_in_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    fill(&Disk::open(dir.path(), LIMIT).unwrap(), 0..50);
    let disk = Disk::open(dir.path(), LIMIT).unwrap();
    assert_eq!(right(&disk, 0..50), 50);
    let statistics = disk.statistics().unwrap();
    assert_eq!((statistics.questions, statistics.records, statistics.observations), (50, 50, 51));
    assert!(disk.audit(false).unwrap().is_whole());
    let (question, mut stamp, _) = stamp(7);
    stamp.changed.1 += 1;
    assert_eq!(disk.read().unwrap().vouched(&question, &stamp), None);
    disk.clear().unwrap();
    assert_eq!(right(&disk, 0..50), 0);
}

#[test]
fn what_a_process_wrote_alone_need_not_be_walked() {
    let dir = tempfile::tempdir().unwrap();
    let walked = || std::fs::read(dir.path().join("walked")).unwrap_or_default();
    fill(&Disk::open(dir.path(), LIMIT).unwrap(), 0..20);
    let noted = walked();
    assert!(!noted.is_empty());
    assert_eq!(right(&Disk::open(dir.path(), LIMIT).unwrap(), 0..20), 20);
    assert_eq!(walked(), noted, "nothing is walked that was noted");
    // Somebody else touches it while it is open.
    let disk = Disk::open(dir.path(), LIMIT).unwrap();
    let data = std::fs::File::options().write(true).open(dir.path().join("data.mdb")).unwrap();
    data.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    fill(&disk, 20..40);
    drop(disk);
    assert_eq!(walked(), noted, "what others changed is not noted");
    assert_eq!(right(&Disk::open(dir.path(), LIMIT).unwrap(), 0..40), 40);
    assert_ne!(walked(), noted, "it was walked");
}

#[test]
fn a_question_keeps_its_last_answers() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), LIMIT).unwrap();
    let writer = disk.writer();
    for version in 0..HISTORY as u64 + 5 {
        writer.write(Batch { answers: vec![answer(1, version), answer(1, version)], ..Batch::default() });
    }
    writer.finish().unwrap();
    let found = disk.read().unwrap().records(&Key::digest(&question(1)));
    assert_eq!(found.len(), HISTORY);
    assert_eq!(found[0].record.made, 1_000_000 + HISTORY as i64 + 4);
    // The one that was of use goes to the front.
    let writer = disk.writer();
    writer.write(Batch { used: vec![found[9].key.clone()], now: 2_000_000, ..Batch::default() });
    writer.finish().unwrap();
    assert_eq!(disk.read().unwrap().records(&Key::digest(&question(1)))[0].key, found[9].key);
}

#[test]
fn size_is_bounded_and_parts_go_with_their_records() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), 1 << 20).unwrap();
    for from in (0..600).step_by(50) {
        fill(&disk, from..from + 50);
    }
    let statistics = disk.statistics().unwrap();
    assert!(statistics.bytes <= 1 << 20, "{statistics:?}");
    assert!(statistics.records > 20);
    assert!(disk.audit(false).unwrap().is_whole());
    disk.collect(0, 1_000_000).unwrap();
    let left = disk.statistics().unwrap();
    assert_eq!((left.records, left.observations, left.blobs), (0, 0, 0));
    // Ages decide where size does not: the lifetime of what rests on local files is 90 days.
    fill(&disk, 0..5);
    assert_eq!(disk.collect(LIMIT, 1_000_000 + 80 * 86400).unwrap().records, 0);
    assert_eq!(disk.collect(LIMIT, 1_000_000 + 91 * 86400).unwrap().records, 5);
}

#[test]
fn exports_come_back_whole_or_not_at_all() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (from, to) = (Disk::open(here.path(), LIMIT).unwrap(), Disk::open(there.path(), LIMIT).unwrap());
    fill(&from, 0..20);
    let mut stream = Vec::new();
    assert_eq!(from.export(&mut stream).unwrap(), 20);
    for at in [0, 20, stream.len() / 2, stream.len() - 1] {
        let mut broken = stream.clone();
        broken[at] ^= 4;
        assert!(to.import(&broken).is_err());
        assert!(to.import(&stream[..at]).is_err());
    }
    assert_eq!(to.statistics().unwrap().records, 0);
    assert_eq!(to.import(&stream).unwrap(), 20);
    assert_eq!(to.import(&stream).unwrap(), 0);
    assert_eq!(right(&to, 0..20), 20);
    assert!(to.audit(false).unwrap().is_whole());
}

/// A copy of a directory whose data file has been changed.
fn broken(from: &Path, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut data = std::fs::read(from.join("data.mdb")).unwrap();
    change(&mut data);
    std::fs::write(dir.path().join("data.mdb"), data).unwrap();
    dir
}

/// A generator that needs no crate.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn flipped_bits_anywhere_lose_what_they_hit_and_nothing_lies() {
    let dir = tempfile::tempdir().unwrap();
    fill(&Disk::open(dir.path(), LIMIT).unwrap(), 0..300);
    let length = std::fs::metadata(dir.path().join("data.mdb")).unwrap().len() as usize;
    let rounds = std::env::var("FIRN_CACHE_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut seed = 0x1234_5678_9abc_def1;
    let mut kept = Vec::new();
    for round in 0..rounds {
        // Every third round hits the first pages, where everything begins.
        let end = if round % 3 == 0 { 4 * 4096 } else { length };
        let flips = 1 + random(&mut seed) % 4;
        let dir = broken(dir.path(), |data| {
            for _ in 0..flips {
                let at = random(&mut seed) as usize % end;
                let bit = random(&mut seed) % 8;
                println!("round {round}: bit {bit} of byte {at:#x}");
                data[at] ^= 1 << bit;
            }
        });
        let disk = Disk::open(dir.path(), LIMIT).unwrap();
        kept.push(right(&disk, 0..300));
        fill(&disk, 300..310);
        assert_eq!(right(&disk, 300..310), 10);
        let _ = disk.audit(true).unwrap();
        assert!(disk.audit(false).unwrap().is_whole());
    }
    kept.sort_unstable();
    // Half of all rounds lose a few entries at most.
    assert!(kept[kept.len() / 2] > 200, "{kept:?}");
}

#[test]
fn truncation_anywhere_is_survived() {
    let dir = tempfile::tempdir().unwrap();
    fill(&Disk::open(dir.path(), LIMIT).unwrap(), 0..100);
    let length = std::fs::metadata(dir.path().join("data.mdb")).unwrap().len() as usize;
    let mut seed = 99;
    for round in 0..60 {
        let at = if round < 20 { round * 512 } else { random(&mut seed) as usize % length };
        let dir = broken(dir.path(), |data| data.truncate(at));
        let disk = Disk::open(dir.path(), LIMIT).unwrap();
        right(&disk, 0..100);
        fill(&disk, 100..110);
        assert_eq!(right(&disk, 100..110), 10);
    }
}

#[test]
fn overwritten_stretches_are_survived() {
    let dir = tempfile::tempdir().unwrap();
    fill(&Disk::open(dir.path(), LIMIT).unwrap(), 0..100);
    let mut seed = 7;
    for _ in 0..60 {
        let dir = broken(dir.path(), |data| {
            let from = random(&mut seed) as usize % data.len();
            let end = (from + random(&mut seed) as usize % 9000).min(data.len());
            let fill = random(&mut seed) as u8;
            data[from..end].iter_mut().for_each(|byte| *byte = fill);
        });
        let disk = Disk::open(dir.path(), LIMIT).unwrap();
        right(&disk, 0..100);
        fill(&disk, 100..110);
        assert_eq!(right(&disk, 100..110), 10);
    }
}

#[test]
fn no_directory_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(Disk::open(&file.join("cache"), LIMIT), Err(Unusable::Files(..))));
}
