//! Known values, computed with Nix 2.8 (`nix-hash`, `nix hash file`, `nix-instantiate --eval`); messages are 2.35's.

use firn_store::content_address::{ContentAddress, Method};
use firn_store::context::{Built, Element, OutputName};
use firn_store::hash::{Algorithm, Format, Hash, Hasher, sha256};
use firn_store::outputs::OutputsSpec;
use firn_store::path::{StorePath, check_name, output_path_name};
use firn_store::placeholder::own_output;
use firn_store::store_dir::{References, StoreDir, canonical};
use firn_store::{Error, ErrorKind};

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.expect_err("an error").to_string()
}

#[test]
fn hashes_of_a_string() {
    let table = [
        (
            Algorithm::Md5,
            "3636782e8ee98d37997379a38a530c13",
            "0k1i9qm8vrffckg3g9iqp7hdin",
            "md5-NjZ4Lo7pjTeZc3mjilMMEw==",
        ),
        (
            Algorithm::Sha1,
            "4ee4ff320eb52e02053b1fca38bcf1d3dac5dc4f",
            "9zfcbnnky6y3ijhz7c2h4bmm1qrgzr2f",
            "sha1-TuT/Mg61LgIFOx/KOLzx09rF3E8=",
        ),
        (
            Algorithm::Sha256,
            "9faf0311ed038e53dc8716254511d2d5b41225dd9cb3a89ca36ae6776a4068e2",
            "1qk881m7grkalffaicwwvlji5d6ms88la98nhzf573h3xl8h7bwz",
            "sha256-n68DEe0DjlPchxYlRRHS1bQSJd2cs6ico2rmd2pAaOI=",
        ),
        (
            Algorithm::Sha512,
            "0ea4a0cfeb8cbe46a0281b41eecf3425985d356fdbd0dc12df2b9b5853327fc4\
             0460a47702acf0166770c3319ccd0b577c8d5e68fc9de539cedd8b4888cf1ced",
            "3nirkw8925xvkirwnfzqs2yimy5f2ydkhqw6w372vqaq0kplih09i3z699mi6rbvw9drl6vdwsmv6156k7ywh8v52h4dglcxg7s190f",
            "sha512-DqSgz+uMvkagKBtB7s80JZhdNW/b0NwS3yubWFMyf8QEYKR3AqzwFmdwwzGczQtXfI1eaPyd5TnO3YtIiM8c7Q==",
        ),
    ];
    for (algorithm, hex, nix32, sri) in table {
        let hash = Hash::of(algorithm, b"firn");
        assert_eq!(hash.to_string(Format::Base16, false), hex);
        assert_eq!(hash.to_string(Format::Nix32, true), format!("{}:{nix32}", algorithm.name()));
        assert_eq!(hash.to_string(Format::Sri, false), sri);
        let base64 = hash.to_string(Format::Base64, false);
        let forms = [(hex, Format::Base16), (nix32, Format::Nix32), (&*base64, Format::Base64), (sri, Format::Sri)];
        for (text, format) in forms {
            let (parsed, found) = Hash::parse_any_with_format(text.as_bytes(), Some(algorithm)).unwrap();
            assert_eq!((parsed, found, parsed.algorithm()), (hash, format, algorithm));
        }
        assert_eq!(Hash::parse_any_prefixed(format!("{}:{hex}", algorithm.name()).as_bytes()).unwrap(), hash);
        assert_eq!(Hash::parse_sri(sri.as_bytes()).unwrap(), hash);
        let mut hasher = Hasher::new(algorithm);
        hasher.update(b"fi");
        hasher.update(b"rn");
        assert_eq!(hasher.finish(), (hash, 4));
    }
    // BLAKE3's own published vector for the empty input.
    assert_eq!(
        Hash::of(Algorithm::Blake3, b"").to_string(Format::Base16, true),
        "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    );
}

#[test]
fn hash_errors() {
    let any = |text: &str, algorithm| message(Hash::parse_any(text.as_bytes(), algorithm));
    let sha256 = Some(Algorithm::Sha256);
    assert_eq!(any("abc", sha256), "hash 'abc' has wrong length for hash algorithm 'sha256'");
    assert_eq!(any("sha256-abc", Some(Algorithm::Sha1)), "hash 'sha256-abc' should have type 'sha1'");
    assert_eq!(any("sha256-abcd", None), "invalid SRI hash 'abcd', length 3 != expected length 32");
    assert_eq!(
        any("abc", None),
        "hash 'abc' does not include a type, nor is the type otherwise known from context"
    );
    assert_eq!(
        any("foo:abc", None),
        "unknown hash algorithm 'foo', expect 'blake3', 'md5', 'sha1', 'sha256', or 'sha512'"
    );
    let not_hex = "g".repeat(64);
    assert_eq!(any(&not_hex, sha256), format!("invalid base16 hash '{not_hex}', length 0 != expected length 32"));
    let too_much = "z".repeat(52);
    assert_eq!(any(&too_much, sha256), format!("invalid nix32 hash '{too_much}', length 33 != expected length 32"));
    assert_eq!(message(Hash::parse_any_prefixed(b"abc")), "hash 'abc' does not include a type");
    assert_eq!(message(Hash::parse_sri(b"abc")), "hash 'abc' is not SRI");
    assert_eq!(message(Hash::parse_allow_empty(b"", None)), "empty hash requires explicit hash algorithm");
    let (zero, warn) = Hash::parse_allow_empty(b"", sha256).unwrap();
    assert!(warn);
    assert_eq!(zero.to_string(Format::Sri, true), "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    assert_eq!(
        message(Format::parse(b"x")),
        "unknown hash format 'x', expect 'base16', 'base32', 'base64', or 'sri'"
    );
}

#[test]
fn text_paths() {
    let dir = StoreDir::default();
    let text = |name: &[u8], contents: &[u8], refs: &[StorePath]| {
        dir.make_text_path(name, &sha256(contents), refs).unwrap()
    };
    assert_eq!(text(b"hello.txt", b"hello\n", &[]).as_str(), "qa1w9gdfrba6jl2r57mb3c43863gqywp-hello.txt");
    let a = text(b"a", b"x", &[]);
    let b = text(b"b", &dir.print(&a), std::slice::from_ref(&a));
    assert_eq!(b.as_str(), "mxfyh6dq3pj8wggqhb10ckc4xipf75gk-b");
}

#[test]
fn fixed_paths() {
    let dir = StoreDir::default();
    let path = |method, hash, itself| {
        let references = References { others: &[], itself };
        dir.make_fixed_output_path(b"renamed", &ContentAddress { method, hash }, references)
    };
    let contents = b"plain\n";
    let nar = firn_store::nar::dump_file(contents, Vec::new()).unwrap();
    let nar = Hash::of(Algorithm::Sha256, &nar);
    let flat = Hash::of(Algorithm::Sha256, contents);
    assert_eq!(path(Method::Nar, nar, false).unwrap().as_str(), "q5ph907sr4ks916yznhwfk4shfpbvcjb-renamed");
    assert_eq!(path(Method::Flat, flat, false).unwrap().as_str(), "mwf11phyksqvg5z9gy3cjqhpw57zq8a2-renamed");
    assert!(message(path(Method::Flat, flat, true)).starts_with("fixed output derivation 'renamed' is not allowed"));
    assert_ne!(path(Method::Nar, nar, true).unwrap(), path(Method::Nar, nar, false).unwrap());
    let md5 = Hash::of(Algorithm::Md5, contents);
    assert_eq!(
        message(path(Method::Git, md5, false)),
        "Git file ingestion must use SHA-1 or SHA-256 hash, but instead using: md5"
    );
    assert_eq!(message(path(Method::Text, flat, true)), "self-reference not allowed with text hashing");
    assert_eq!(
        path(Method::Text, flat, false).unwrap(),
        dir.make_text_path(b"renamed", &sha256(contents), &[]).unwrap()
    );
}

#[test]
fn placeholders() {
    assert_eq!(own_output(b"out"), "/1rz4g4znpzjwh1xymhjpm42vipw92pr73vdgl6xs1hycac8kf2n9");
    assert_eq!(own_output(b"dev"), "/02qcpld1y6xhs5gz9bchpxaw0xdhmsp5dv88lh25r2ss44kh8dxz");
    assert_eq!(own_output(b""), "/171rf4jhx57xqz3p7swniwkig249cif71pa08p80mgaf0mqz5bmr");
    let drv = StorePath::parse(b"apj5qgiy27fawvks5q43nr31d56zwslq-c.drv").unwrap();
    let built = |output: &[u8]| Built::new(drv.clone(), output.into());
    assert_eq!(built(b"out").placeholder().render(), "/022m156hf6ks3v1cng1ldsxvwb5igaw0dnr3bzzdns5drsxsfnf0");
    assert_eq!(built(b"dev").placeholder().render(), "/142x57f22x4pbf06dywfmzngr7g4jw82bcmxl2sg18xndmpaklp3");
}

#[test]
fn path_names() {
    for good in ["a", ".x", "..x", "a.b-c_d?e=f+G9", "...", ".a-b"] {
        check_name(good.as_bytes()).unwrap();
    }
    let bad = |name: &[u8]| message(check_name(name));
    assert_eq!(bad(b""), "name must not be empty");
    assert_eq!(bad(b"."), "name '.' is not valid");
    assert_eq!(bad(b".."), "name '..' is not valid");
    assert_eq!(bad(b".-a"), "name '.-a' is not valid: first dash-separated component must not be '.'");
    assert_eq!(bad(b"..-a"), "name '..-a' is not valid: first dash-separated component must not be '..'");
    assert_eq!(bad(b"a/b"), "name 'a/b' contains illegal character '/'");
    assert_eq!(check_name("é".as_bytes()).unwrap_err().message(), b"name '\xc3\xa9' contains illegal character '\xc3'");
    let long = "x".repeat(212);
    assert_eq!(bad(long.as_bytes()), format!("name '{long}' must be no longer than 211 characters"));
    check_name("x".repeat(211).as_bytes()).unwrap();
    assert_eq!(output_path_name(b"n", b"out"), b"n");
    assert_eq!(output_path_name(b"n", b"dev"), b"n-dev");
}

#[test]
fn path_parsing() {
    let dir = StoreDir::default();
    let full = b"/nix/store/qa1w9gdfrba6jl2r57mb3c43863gqywp-hello.txt";
    let path = dir.parse(full).unwrap();
    assert_eq!((path.digest_part(), path.name()), ("qa1w9gdfrba6jl2r57mb3c43863gqywp", "hello.txt"));
    assert_eq!(dir.print(&path), full);
    assert_eq!(dir.parse(b"/nix//store/./x/../qa1w9gdfrba6jl2r57mb3c43863gqywp-hello.txt/").unwrap(), path);
    assert_eq!(dir.split(&[full, &b"/a/b"[..]].concat()).unwrap().1, b"/a/b");
    assert_eq!(message(dir.split(b"/tmp/x")), "path '/tmp/x' is not in the Nix store");
    let bad = |text: &str| message(dir.parse(text.as_bytes()));
    assert_eq!(bad(""), "empty path is not a valid store path");
    assert_eq!(bad("x"), "not an absolute path: \"x\"");
    assert_eq!(bad("/tmp/../nix/store/"), "path \"/nix/store\" is not in the Nix store");
    assert_eq!(bad("/nix/store/.."), "path \"/nix\" is not in the Nix store");
    assert_eq!(bad("/nix/store/short"), "'short' is too short to be a valid store path");
    let digest = "qa1w9gdfrba6jl2r57mb3c43863gqywp";
    assert_eq!(
        bad(&format!("/nix/store/{digest}xhello")),
        format!("'{digest}xhello' can't name a store path because the hash part is not followed by a '-'")
    );
    assert_eq!(
        bad("/nix/store/ea1w9gdfrba6jl2r57mb3c43863gqywp-x"),
        "store path 'ea1w9gdfrba6jl2r57mb3c43863gqywp-x' contains illegal base-32 character 'e'"
    );
    assert_eq!(
        bad(&format!("/nix/store/{digest}-a!")),
        format!("path '{digest}-a!' is not a valid store path: name 'a!' contains illegal character '!'")
    );
    assert_eq!(
        message(path.require_derivation()),
        format!("store path '{digest}-hello.txt' is not a valid derivation path")
    );
    assert!(dir.contains(b"/nix/store/x") && !dir.contains(b"/nix/store") && !dir.contains(b"/nix/storex/y"));
    assert_eq!(canonical(b"/../a//./b/..").unwrap(), b"/a");
    assert_eq!(canonical(b"/a/..").unwrap(), b"/");
}

#[test]
fn content_addresses() {
    let hash = Hash::of(Algorithm::Sha256, b"firn");
    let nix32 = "sha256:1qk881m7grkalffaicwwvlji5d6ms88la98nhzf573h3xl8h7bwz";
    let table = [(Method::Flat, "fixed:"), (Method::Nar, "fixed:r:"), (Method::Git, "fixed:git:"), (Method::Text, "text:")];
    for (method, prefix) in table {
        let address = ContentAddress { method, hash };
        assert_eq!(address.render(), format!("{prefix}{nix32}"));
        assert_eq!(ContentAddress::parse(address.render().as_bytes()).unwrap(), address);
        let pair = method.render_with_algorithm(Algorithm::Sha1);
        assert_eq!(pair, format!("{prefix}sha1"));
        assert_eq!(Method::parse_with_algorithm(pair.as_bytes()).unwrap(), (method, Algorithm::Sha1));
        assert_eq!(Method::parse(method.name().as_bytes()).unwrap(), method);
    }
    let bad = |text: &[u8]| message(ContentAddress::parse(text));
    assert_eq!(bad(b"x"), "not a content address because it is not in the form '<prefix>:<rest>': x");
    assert_eq!(bad(b"fixed:x"), "content address hash must be in form '<algo>:<hash>', but found: fixed:x");
    assert_eq!(
        bad(b"foo:x"),
        "content address prefix 'foo' is unrecognized. Recogonized prefixes are 'text' or 'fixed'"
    );
    assert_eq!(
        message(Method::parse(b"recursive")),
        "Unknown file ingestion method 'recursive', expect `flat`, `nar`, or `git`"
    );
}

#[test]
fn contexts() {
    let drv = "apj5qgiy27fawvks5q43nr31d56zwslq-c.drv";
    let forms = [drv.to_string(), format!("={drv}"), format!("!out!{drv}"), format!("!b!a!{drv}")];
    let mut elements: Vec<Element> = forms.iter().map(|f| Element::parse(f.as_bytes()).unwrap()).collect();
    for (form, element) in forms.iter().zip(&elements) {
        assert_eq!(element.to_bytes(), form.as_bytes());
    }
    assert!(elements.is_sorted());
    let dir = StoreDir::default();
    assert_eq!(elements[1].display(&dir), format!("/nix/store/{drv} (deep)").as_bytes());
    assert_eq!(elements[3].display(&dir), format!("/nix/store/{drv}^a^b").as_bytes());
    let Some(Element::Built(nested)) = elements.pop() else { panic!() };
    assert!(nested.is_dynamic());
    assert_eq!(**nested.last_output(), *b"b");
    assert_eq!(Built::new(nested.drv.clone(), b"a"[..].into()).output_of(b"b"[..].into()).unwrap(), nested);
    let bad = |text: &[u8]| message(Element::parse(text));
    assert_eq!(
        bad(b""),
        "Bad String Context element: String context element should never be an empty string: "
    );
    assert_eq!(
        bad(b"!a"),
        "Bad String Context element: String content element beginning with '!' should have a second '!': !a"
    );
    assert_eq!(
        bad(b"a!b"),
        "Bad String Context element: String content element not beginning with '!' should not have a second '!': a!b"
    );
    let hostile = [b"!x".repeat(100_000), b"!".to_vec(), drv.as_bytes().to_vec()].concat();
    assert_eq!(Element::parse(&hostile).unwrap_err().kind(), ErrorKind::BadContext);
}

#[test]
fn outputs_specs() {
    let (thing, spec) = OutputsSpec::split(b"a^b^out,dev").unwrap();
    let spec = spec.unwrap();
    assert_eq!((thing, &spec.to_bytes()[..]), (&b"a^b"[..], &b"dev,out"[..]));
    assert!(spec.contains(b"dev") && !spec.contains(b"lib"));
    assert_eq!(OutputsSpec::parse(b"*").unwrap(), OutputsSpec::All);
    assert_eq!(message(OutputsSpec::parse(b"a,")), "name must not be empty");
    let _: OutputName = b"out"[..].into();
}
