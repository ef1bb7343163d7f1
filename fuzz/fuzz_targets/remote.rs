//! P4: what comes from a remote, on arbitrary bytes: packed objects, indices with their entries, answers, and the texts that
//! name remotes and keys. Whatever is accepted has exactly these bytes; nothing takes more memory than its bound.

#![no_main]

use firn_memo::kept::Flat;
use firn_memo::kept::observation::Node;
use firn_remote::{Address, Index, Keyring, Kind, Payload, PublicKey, SecretKey, unpack};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for kind in Kind::ALL {
        if let Ok(unpacked) = unpack(kind, bytes) {
            assert!(unpacked.len() <= kind.most());
            read(&unpacked);
        }
    }
    read(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Address::parse(text);
        if let Some((kind, digest)) = Kind::of_path(text) {
            assert_eq!(kind.path(&digest), text);
        }
        if let Ok(key) = PublicKey::parse(text) {
            assert_eq!(key.to_string(), text.trim());
        }
        if let Ok(key) = SecretKey::parse(text) {
            assert_eq!(key.reveal(), text.trim());
        }
    }
});

fn read(bytes: &[u8]) {
    if let Ok(mut index) = Index::decode(bytes) {
        assert_eq!(index.encode(), bytes);
        let question = index.digest();
        // Nobody is believed, so nothing is.
        assert!(index.entries.iter().all(|entry| entry.check(&question, &Keyring::default()).is_err()));
        let entries = index.entries.clone();
        index.merge(entries, &Keyring::default());
        let once = index.encode();
        index.merge([], &Keyring::default());
        assert_eq!(index.encode(), once);
    }
    if let Ok(payload) = Payload::decode(bytes) {
        assert_eq!(payload.encode(), bytes);
    }
    let only = |_: &_| Some(bytes.to_vec());
    if let Some(flat) = Flat::new(Node::digest(bytes), &only) {
        let digests: Vec<_> = flat.nodes.iter().map(|(digest, _)| *digest).collect();
        assert_eq!(Flat::root(&digests).0, flat.root);
        assert!(flat.nodes.iter().all(|(digest, bytes)| Node::digest(bytes) == *digest));
    }
}
