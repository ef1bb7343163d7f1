//! What the tests of this crate share: memories with answers in them, and remotes in directories.

use firn_cache::{Answer, Batch, Disk};
use firn_host::{AbsPath, Digest, Durability, Observation, Question};
use firn_memo::kept::{ENTRY, Encoded, Key, Record, Roles, Sets, Stored};
use firn_remote::{Address, Keyring, Remotes, SecretKey, Settings, Travelling, travelling};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What remotes have reported.
pub type Told = Arc<Mutex<Vec<String>>>;

/// A question with its bytes.
pub fn question(name: &str) -> (Digest, Vec<u8>) {
    let bytes = format!("question {name}").into_bytes();
    (Key::digest(&bytes), bytes)
}

/// A memory with one answer, laid out for the way: it rests on `files` files, of which one says `state`.
pub fn answer(dir: &Path, name: &str, state: u8, files: usize) -> Travelling {
    let disk = Disk::open(dir, 1 << 28).unwrap();
    let (sets, mut roles) = (Sets::new(), Roles::new());
    roles.assign(ENTRY, AbsPath::new(b"/home/somebody/src").unwrap());
    let ids: Vec<_> = (0..files)
        .map(|number| {
            let path = AbsPath::new(format!("/home/somebody/src/d{}/f{number}", number % 9).as_bytes()).unwrap();
            let digest = Digest([if number == 0 { state } else { 0 }; 32]);
            sets.observe(&Observation::new(Question::File(path), digest, Durability::Medium), true)
        })
        .collect();
    let set = sets.join(&ids, &[]);
    let Encoded { root, nodes, .. } = sets.encode(set, &roles).unwrap();
    let (digest, question) = question(name);
    let record = Record {
        question,
        result: Stored::Inline(format!("result {name} {state}").into_bytes()),
        log: b"trace: x\n".to_vec(),
        observations: root,
        needs: vec![b"/nix/store/x.drv".to_vec()],
        cost: 1_000_000,
        durability: Durability::Medium,
        made: 1_000 + i64::from(state),
        places: Vec::new(),
    };
    let writer = disk.writer();
    writer.write(Batch { answers: vec![Answer { question: digest, record, nodes }], now: 2_000, ..Batch::default() });
    writer.finish().unwrap();
    let reading = disk.read().unwrap();
    let records = reading.records(&digest);
    let found = records.iter().find(|found| found.record.made == 1_000 + i64::from(state)).unwrap();
    travelling(&reading, found).unwrap()
}

/// Remotes that say what they report, and what they have reported.
pub fn remotes(urls: &[String], secret: Option<SecretKey>, keys: &[&SecretKey], deadline: Duration) -> (Remotes, Told) {
    let mut ring = Keyring::default();
    keys.iter().for_each(|key| ring.add(key.public()));
    let addresses = urls.iter().map(|url| Address::parse(url).unwrap()).collect();
    let told = Told::default();
    let hears = told.clone();
    let settings = Settings { addresses, keys: ring, secret, deadline };
    let remotes = Remotes::open(settings, move |text| hears.lock().unwrap().push(text.to_owned())).unwrap();
    (remotes, told)
}

/// The URL of a directory.
pub fn directory(dir: &Path) -> String {
    format!("file:{}", dir.display())
}

/// The results of all candidates for a question.
pub fn results(remotes: &Remotes, name: &str) -> Vec<String> {
    let mut lookup = remotes.ask(question(name).0);
    let mut all = Vec::new();
    while let Some(candidate) = lookup.next(&|_| false) {
        let Some(answer) = lookup.take(candidate) else { continue };
        let record = answer.record;
        let Stored::Inline(result) = record.result else { panic!("a result comes inline") };
        assert_eq!((record.question, &record.log[..]), (question(name).1, &b"trace: x\n"[..]));
        all.push(String::from_utf8(result).unwrap());
    }
    all
}
