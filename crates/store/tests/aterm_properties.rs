//! Random derivations with arbitrary bytes survive writing and reading; damaged text never panics the reader.

use firn_store::content_address::{ContentAddress, Method};
use firn_store::context::{Built, Element, OutputName};
use firn_store::derivation::{Derivation, Output};
use firn_store::hash::{Algorithm, Hash};
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

fn path() -> impl Strategy<Value = StorePath> {
    (any::<[u8; 20]>(), "[a-zA-Z0-9+_?=][a-zA-Z0-9+._?=-]{0,12}")
        .prop_map(|(digest, name)| StorePath::new(&digest, name.as_bytes()).unwrap())
}

/// Output names and the system are written unescaped, so only those without quote and backslash read back.
fn plain() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>().prop_filter("unescaped", |c| !matches!(c, b'"' | b'\\')), 0..6)
}

fn output_name() -> impl Strategy<Value = OutputName> {
    plain().prop_map(OutputName::from)
}

fn method() -> impl Strategy<Value = (Method, Algorithm)> {
    use Algorithm::{Blake3, Md5, Sha1, Sha256, Sha512};
    let methods = prop::sample::select(vec![Method::Flat, Method::Nar, Method::Git, Method::Text]);
    let algorithms = prop::sample::select(vec![Md5, Sha1, Sha256, Sha512, Blake3]);
    (methods, algorithms).prop_filter("has a path", |(m, a)| match m {
        Method::Git => matches!(a, Sha1 | Sha256),
        Method::Text => *a == Sha256,
        Method::Flat | Method::Nar => true,
    })
}

fn output() -> impl Strategy<Value = Output> {
    prop_oneof![
        path().prop_map(Output::InputAddressed),
        Just(Output::Deferred),
        method().prop_map(|(m, a)| Output::Floating(m, a)),
        method().prop_map(|(m, a)| Output::Impure(m, a)),
    ]
}

prop_compose! {
    fn fixed()((method, algorithm) in method(), seed: [u8; 4]) -> Output {
        Output::Fixed(ContentAddress { method, hash: Hash::of(algorithm, &seed) })
    }
}

fn built() -> impl Strategy<Value = Built> {
    (path(), output_name(), vec(output_name(), 0..3))
        .prop_map(|(drv, output, then)| Built { drv, output, then: then.into() })
}

prop_compose! {
    fn derivation()(
        name in "[a-z]{1,8}",
        outputs in btree_map(output_name(), output(), 0..4),
        fixed in proptest::option::of(fixed()),
        inputs in vec(built(), 0..5),
        sources in vec(path(), 0..4),
        system in plain(),
        builder in vec(any::<u8>(), 0..20),
        args in vec(vec(any::<u8>(), 0..20), 0..4),
        env in vec((vec(any::<u8>(), 0..8), vec(any::<u8>(), 0..40)), 0..8),
        json in proptest::option::of(vec(any::<u8>(), 0..30)),
    ) -> Derivation {
        let mut drv = Derivation { name: name.into_bytes(), system, builder, args, structured_attrs: json, ..Derivation::default() };
        for (name, output) in outputs {
            drv.outputs.insert(name, output);
        }
        if let Some(fixed) = fixed {
            drv.outputs.insert(b"out"[..].into(), fixed);
        }
        inputs.iter().for_each(|built| drv.add_built_input(built));
        drv.input_srcs = sources.into_iter().collect();
        for (name, value) in env {
            drv.env.insert(&name, &value);
        }
        drv
    }
}

proptest! {
    #[test]
    fn write_then_parse(drv in derivation()) {
        let dir = StoreDir::default();
        let text = drv.to_aterm(&dir).unwrap();
        let back = Derivation::parse_aterm(&dir, &drv.name, &text).unwrap();
        prop_assert_eq!(&back, &drv);
        prop_assert_eq!(back.to_aterm(&dir).unwrap(), text);
    }

    #[test]
    fn damaged_text_never_panics(drv in derivation(), at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
        let dir = StoreDir::default();
        let mut text = drv.to_aterm(&dir).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(back) = Derivation::parse_aterm(&dir, b"x", &text) {
            let _ = back.to_file(&dir);
        }
        text.truncate(cut.index(text.len()));
        prop_assert!(Derivation::parse_aterm(&dir, b"x", &text).is_err());
    }

    #[test]
    fn garbage_never_panics(bytes in vec(any::<u8>(), 0..120)) {
        let dir = StoreDir::default();
        let _ = Derivation::parse_aterm(&dir, b"x", &bytes);
        let _ = Derivation::parse_aterm(&dir, b"x", &[b"Derive([(\"", &bytes[..]].concat());
        let _ = (Element::parse(&bytes), StorePath::parse(&bytes), dir.parse(&bytes), dir.split(&bytes));
        let _ = dir.parse(&[b"/nix/store/", &bytes[..]].concat());
        let _ = (Hash::parse_any(&bytes, Some(Algorithm::Sha256)), ContentAddress::parse(&bytes));
    }

    #[test]
    fn context_round_trip(built in built()) {
        let exclamation = built.chain().any(|o| o.contains(&b'!'));
        let element = Element::Built(built);
        if !exclamation {
            prop_assert_eq!(Element::parse(&element.to_bytes()).unwrap(), element);
        }
    }
}
