//! P4: what is read from the cache, on arbitrary bytes. Whatever is accepted has exactly these bytes; nothing takes more
//! memory than its input is worth.

#![no_main]

use firn_host::AbsPath;
use firn_memo::kept::observation::{Decoded, Node};
use firn_memo::kept::{Record, Roles, plain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut roles = Roles::new();
    if let Ok(tree) = AbsPath::new(b"/src") {
        roles.assign("entry", tree);
    }
    if let Ok(value) = plain::decode(bytes, &roles) {
        assert_eq!(plain::encode(value, &roles).as_deref(), Ok(bytes));
    }
    if let Ok(record) = Record::decode(bytes) {
        assert_eq!(record.encode(), bytes);
    }
    if let Ok(Decoded { children, own, texts }) = Node::decode_all(bytes, &roles) {
        assert!(Node::named(bytes).is_ok_and(|named| named.starts_with(&children)));
        if let Some(own) = own.into_iter().collect::<Option<Vec<_>>>() {
            let texts = texts.into_iter().map(|(path, (text, _))| (path, text)).collect();
            let written = Node { children, own, texts }.encode(&roles);
            assert!(Node::decode(&written, &roles).is_ok());
        }
    }
});
