//! Remotes in directories: what is pushed comes back, those who push at once lose nothing, and whatever is changed in a
//! remote is a miss.
#![allow(clippy::disallowed_methods, reason = "tests change a remote's files themselves")]

mod hostile;
mod setting;

use firn_remote::{Care, Index, Kind, SecretKey, unpack};
use setting::{answer, directory, question, remotes, results};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);

#[test]
fn what_is_pushed_comes_back_once_signed_by_somebody_who_is_believed() {
    let (memory, remote) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (key, other) = (SecretKey::generate("a-1").unwrap(), SecretKey::generate("b-1").unwrap());
    let url = [directory(remote.path())];
    let (pusher, told) = remotes(&url, Some(key.clone()), &[], DEADLINE);
    let answers = || vec![answer(memory.path(), "q", 1, 3000), answer(memory.path(), "q", 2, 3000), answer(memory.path(), "p", 1, 1)];
    let pushed = pusher.push(answers(), Care::Quick, DEADLINE);
    assert_eq!((pushed.new, pushed.known), (3, 0));
    let again = pusher.push(answers(), Care::Sure, DEADLINE);
    assert_eq!((again.new, again.known, again.written), (0, 3, 0));
    assert!(told.lock().unwrap().is_empty(), "{told:?}");
    let (reader, _) = remotes(&url, None, &[&key], DEADLINE);
    // The newest first.
    assert_eq!(results(&reader, "q"), ["result q 2", "result q 1"]);
    assert_eq!(results(&reader, "p"), ["result p 1"]);
    assert!(results(&reader, "none").is_empty());
    let (stranger, _) = remotes(&url, None, &[&other], DEADLINE);
    assert!(results(&stranger, "q").is_empty());
    assert_eq!(stranger.counts().named().iter().find(|(name, _)| *name == "unknownKey"), Some(&("unknownKey", 2)));
    let (all, silent) = reader.questions();
    let mut expected = vec![question("p").0, question("q").0];
    expected.sort();
    assert_eq!((all, silent), (expected, vec![]));
}

#[test]
fn a_question_keeps_its_newest_answers() {
    let (memory, remote) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = SecretKey::generate("a-1").unwrap();
    let (pusher, _) = remotes(&[directory(remote.path())], Some(key), &[], DEADLINE);
    for state in 1..=20 {
        assert_eq!(pusher.push(vec![answer(memory.path(), "q", state, 2)], Care::Quick, DEADLINE).new, 1);
    }
    let expected: Vec<String> = (5..=20).rev().map(|state| format!("result q {state}")).collect();
    assert_eq!(results(&pusher, "q"), expected);
}

#[test]
fn eight_that_push_at_once_lose_nothing() {
    let remote = tempfile::tempdir().unwrap();
    let url = directory(remote.path());
    let key = SecretKey::generate("a-1").unwrap();
    std::thread::scope(|scope| {
        for state in 1..=8 {
            let (url, key) = (url.clone(), key.clone());
            scope.spawn(move || {
                let memory = tempfile::tempdir().unwrap();
                let (pusher, told) = remotes(&[url], Some(key), &[], DEADLINE);
                pusher.push(vec![answer(memory.path(), "q", state, 100)], Care::Sure, Duration::from_secs(60));
                assert!(told.lock().unwrap().is_empty(), "{told:?}");
            });
        }
    });
    let (reader, _) = remotes(&[url], None, &[&key], DEADLINE);
    let expected: Vec<String> = (1..=8).rev().map(|state| format!("result q {state}")).collect();
    assert_eq!(results(&reader, "q"), expected);
}

#[test]
fn merging_is_the_same_in_any_order() {
    let remote = tempfile::tempdir().unwrap();
    let memory = tempfile::tempdir().unwrap();
    let key = SecretKey::generate("a-1").unwrap();
    let (pusher, _) = remotes(&[directory(remote.path())], Some(key.clone()), &[], DEADLINE);
    pusher.push((1..=12).map(|state| answer(memory.path(), "q", state, 2)).collect(), Care::Quick, DEADLINE);
    let path = remote.path().join(Kind::Index.path(&question("q").0));
    let index = Index::decode(&unpack(Kind::Index, &std::fs::read(path).unwrap()).unwrap()).unwrap();
    let mut keys = firn_remote::Keyring::default();
    keys.add(key.public());
    let merged = |parts: &[&[firn_remote::Entry]]| {
        let mut merged = Index::new(index.question.clone());
        parts.iter().for_each(|part| merged.merge(part.to_vec(), &keys));
        merged.encode()
    };
    let (a, b) = index.entries.split_at(5);
    assert_eq!(merged(&[a, b]), merged(&[b, a, a]));
    assert_eq!(merged(&[a, b]), index.encode());
    // What nobody vouches for never drives out what somebody does.
    let forged: Vec<firn_remote::Entry> = (0..16)
        .map(|number| firn_remote::Entry { made: i64::MAX - number, signature: [number as u8; 64], signer: format!("x{number}"), ..a[0].clone() })
        .collect();
    let mut filled = index.clone();
    filled.merge(forged, &keys);
    assert!(index.entries.iter().all(|entry| filled.has(entry)));
    assert_eq!(filled.entries.len(), firn_remote::HISTORY);
}

#[test]
fn a_remote_that_does_not_answer_costs_its_deadline_once() {
    // It takes connections and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", silent.local_addr().unwrap());
    let (remote, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = SecretKey::generate("a-1").unwrap();
    let good = directory(remote.path());
    let (pusher, _) = remotes(std::slice::from_ref(&good), Some(key.clone()), &[], DEADLINE);
    pusher.push(vec![answer(memory.path(), "q", 1, 5)], Care::Quick, DEADLINE);
    let began = Instant::now();
    let (reader, told) = remotes(&[format!("{url}?priority=1"), good], None, &[&key], Duration::from_millis(300));
    for _ in 0..5 {
        assert_eq!(results(&reader, "q"), ["result q 1"]);
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    assert!(told.lock().unwrap()[0].contains("does not answer in time"), "{told:?}");
    assert_eq!(reader.counts().left_alone, 1);
}

#[test]
fn a_remote_that_is_full_is_reported_once_and_names_nothing_that_is_missing() {
    let (remote, memory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let key = SecretKey::generate("a-1").unwrap();
    let url = [directory(remote.path())];
    let (pusher, _) = remotes(&url, Some(key.clone()), &[], DEADLINE);
    pusher.push(vec![answer(memory.path(), "q", 1, 5)], Care::Quick, DEADLINE);
    // Where answers would go there is a file.
    std::fs::remove_dir_all(remote.path().join("v1/answers")).unwrap();
    std::fs::write(remote.path().join("v1/answers"), b"").unwrap();
    let (pusher, told) = remotes(&url, Some(key), &[], DEADLINE);
    for state in 2..5 {
        assert_eq!(pusher.push(vec![answer(memory.path(), "q", state, 5)], Care::Quick, DEADLINE).new, 0);
    }
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    // Nothing was named that is not there.
    let path = remote.path().join(Kind::Index.path(&question("q").0));
    let index = Index::decode(&unpack(Kind::Index, &std::fs::read(path).unwrap()).unwrap()).unwrap();
    assert_eq!(index.entries.len(), 1);
}
