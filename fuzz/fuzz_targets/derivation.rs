//! P4: the derivation reader on arbitrary bytes. What it accepts it writes in a form that reads back the same.

#![no_main]

use firn_store::derivation::Derivation;
use firn_store::store_dir::StoreDir;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Ok(dir) = StoreDir::new(b"/nix/store") else { return };
    let Ok(derivation) = Derivation::parse_aterm(&dir, b"fuzz", text) else { return };
    // NIX: entries may come in any order and repeat; written, they are sorted.
    if let Ok(written) = derivation.to_aterm(&dir) {
        let again = Derivation::parse_aterm(&dir, b"fuzz", &written).expect("what firn writes, it reads");
        assert_eq!(again.to_aterm(&dir).ok(), Some(written));
    }
});
