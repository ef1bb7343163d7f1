//! Derivations against the bytes Nix wrote for `tests/store/derivations.nix` (refreshed by `tests/store/refresh`).

// Tests read their data directly; the one door outward is for the evaluator.
#![allow(clippy::disallowed_methods)]

use firn_store::derivation::{Derivation, HashModulo, Kind, Output};
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use firn_store::Error;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/store").join(name)
}

struct Known {
    dir: StoreDir,
    files: BTreeMap<StorePath, Vec<u8>>,
    parsed: BTreeMap<StorePath, Derivation>,
}

fn known() -> Known {
    let dir = StoreDir::default();
    let (mut files, mut parsed) = (BTreeMap::new(), BTreeMap::new());
    for entry in std::fs::read_dir(data("drvs")).unwrap() {
        let entry = entry.unwrap();
        let path = StorePath::parse(entry.file_name().to_str().unwrap().as_bytes()).unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        let name = path.derivation_name().unwrap().as_bytes();
        parsed.insert(path.clone(), Derivation::parse_aterm(&dir, name, &bytes).unwrap());
        files.insert(path, bytes);
    }
    assert!(files.len() >= 70);
    Known { dir, files, parsed }
}

impl Known {
    fn modulo(&self, path: &StorePath) -> Result<HashModulo, Error> {
        self.parsed[path].hash_modulo(&self.dir, &mut |input: &StorePath| self.modulo(input))
    }
}

#[test]
fn bytes_and_paths() {
    let known = known();
    for (path, drv) in &known.parsed {
        let file = drv.to_file(&known.dir).unwrap();
        assert_eq!(file.contents, known.files[path], "{path}");
        assert_eq!(&file.path, path);
    }
}

#[test]
fn every_attribute_has_its_file() {
    let known = known();
    let table = std::fs::read_to_string(data("attributes.txt")).unwrap();
    assert!(table.lines().count() >= 45);
    for line in table.lines() {
        let (_, path) = line.split_once(' ').unwrap();
        assert!(known.files.contains_key(&known.dir.parse(path.as_bytes()).unwrap()), "{line}");
    }
}

/// Derivations with two inputs of one hash, of which different outputs are used. Nix 2.8, which wrote the files, unites
/// the outputs; Nix 2.35, which firn follows, keeps those of the greater path, so their own paths differ.
const UNITED_BY_OLD_NIX: [&str; 2] = ["equal-hashes.drv", "equal-hashes-other.drv"];

#[test]
fn output_paths_from_scratch() {
    let known = known();
    let mut kinds = BTreeMap::new();
    for (path, drv) in &known.parsed {
        *kinds.entry(format!("{:?}", drv.kind().unwrap())).or_insert(0) += 1;
        let mut lookup = |input: &StorePath| known.modulo(input);
        if UNITED_BY_OLD_NIX.contains(&path.name()) {
            drv.check_output_paths(&known.dir, &mut lookup).unwrap_err();
            continue;
        }
        assert!(drv.check_output_paths(&known.dir, &mut lookup).unwrap().is_empty(), "{path}");
        let mut fresh = drv.clone();
        for (name, output) in drv.outputs.iter() {
            if matches!(output, Output::InputAddressed(_)) {
                fresh.outputs.insert(name.clone(), Output::Deferred);
                fresh.env.insert(name, b"");
            }
        }
        fresh.fill_output_paths(&known.dir, &mut lookup).unwrap();
        assert_eq!(&fresh, drv, "{path}");
    }
    assert_eq!(kinds.keys().map(String::as_str).collect::<Vec<_>>(), ["Deferred", "Fixed", "Floating", "Impure", "InputAddressed"]);
}

#[test]
fn wrong_paths_are_refused() {
    let known = known();
    let lookup = &mut |input: &StorePath| known.modulo(input);
    let (_, drv) = known.parsed.iter().find(|(p, _)| p.name() == "minimal.drv").unwrap();
    let right = String::from_utf8(drv.env.get(b"out").unwrap().to_vec()).unwrap();
    let mut wrong = drv.clone();
    wrong.env.insert(b"out", b"x");
    assert_eq!(
        wrong.check_output_paths(&known.dir, lookup).unwrap_err().to_string(),
        format!("derivation has incorrect environment variable 'out', should be '{right}' but is actually 'x'")
    );
    let mut wrong = drv.clone();
    let other = known.files.keys().next().unwrap().clone();
    wrong.outputs.insert(b"out"[..].into(), Output::InputAddressed(other.clone()));
    assert_eq!(
        wrong.fill_output_paths(&known.dir, lookup).unwrap_err().to_string(),
        format!("derivation has incorrect output '/nix/store/{other}', should be '{right}'")
    );
}

#[test]
fn kinds_do_not_mix() {
    let mut drv = Derivation::default();
    let fail = |drv: &Derivation| drv.kind().unwrap_err().to_string();
    assert_eq!(fail(&drv), "must have at least one output");
    drv.outputs.insert(b"out"[..].into(), Output::Deferred);
    assert_eq!(drv.kind().unwrap(), Kind::Deferred);
    let known = known();
    let fixed = known.parsed.values().find(|d| d.kind().unwrap() == Kind::Fixed).unwrap();
    let fixed = fixed.outputs.get(&b"out"[..]).unwrap();
    drv.outputs.insert(b"x"[..].into(), fixed.clone());
    assert_eq!(fail(&drv), "can't mix derivation output types");
    drv.outputs.insert(b"out"[..].into(), fixed.clone());
    assert_eq!(fail(&drv), "only one fixed output is allowed for now");
    let mut lone = Derivation::default();
    lone.outputs.insert(b"x"[..].into(), fixed.clone());
    assert_eq!(fail(&lone), "single fixed output must be named \"out\"");
}

#[test]
fn parse_errors() {
    let dir = StoreDir::default();
    let fail = |text: &[u8]| Derivation::parse_aterm(&dir, b"x", text).unwrap_err().to_string();
    assert_eq!(fail(b""), "expected string 'D'");
    assert_eq!(fail(b"Dx"), "derivation does not start with 'Derive' or 'DrvWithVersion'");
    assert_eq!(fail(b"Derive["), "expected string 'erive('");
    assert_eq!(fail(b"DrvWithVersion(\"2\","), "Unknown derivation ATerm format version '2'");
    assert_eq!(fail(b"Derive([(\"out\\"), "unterminated string in derivation");
    assert_eq!(fail(b"Derive([(\"out\",\"x\",\"\",\"\")]"), "bad path 'x' in derivation");
    assert_eq!(
        fail(b"Derive([(\"out\",\"/x\",\"r:sha256\",\"\")]"),
        "content-addressing derivation output should not specify output path"
    );
    assert_eq!(
        fail(b"Derive([(\"out\",\"/x\",\"r:sha256\",\"impure\")]"),
        "impure derivation output should not specify output path"
    );
    assert_eq!(fail(b"Derive([],[],[],\"\",\"\",[],[]) "), "trailing bytes after the end of the derivation");
    let nested = [&b"DrvWithVersion(\"xp-dyn-drv\",[],[(\"/nix/store/apj5qgiy27fawvks5q43nr31d56zwslq-c.drv\","[..],
        &b"([],[(\"a\",".repeat(100_000)].concat();
    assert_eq!(fail(&nested), "invalid inputDrvs entry in derivation");
}

#[test]
fn variable_json_is_reserved() {
    let mut drv = Derivation::default();
    drv.env.insert(b"__json", b"{}");
    assert!(drv.to_aterm(&StoreDir::default()).unwrap_err().to_string().starts_with("Cannot have an environment"));
}

#[test]
fn json_form() {
    let known = known();
    let json = |name: &str| {
        let (_, drv) = known.parsed.iter().find(|(p, _)| p.name() == name).unwrap();
        let mut out = vec![];
        drv.write_json(&mut out).map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(
        json("uses-text-of-text.drv").unwrap(),
        r#"{"args":[],"builder":"/bin/sh","env":{"builder":"/bin/sh","name":"uses-text-of-text","#.to_string()
            + &expected_rest()
    );
    assert!(json("recursive.drv").unwrap().contains(
        r#""outputs":{"out":{"hash":"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=","method":"nar"}}"#
    ));
    assert!(json("impure.drv").unwrap().contains(r#"{"out":{"hashAlgo":"sha256","impure":true,"method":"nar"}}"#));
    assert!(json("floating-flat.drv").unwrap().contains(r#"{"out":{"hashAlgo":"sha1","method":"flat"}}"#));
    assert!(json("uses-one.drv").unwrap().contains(r#"-dep.drv":{"dynamicOutputs":{},"outputs":["out"]}},"srcs":[]}"#));
    assert!(json("control.drv").unwrap().contains("\\u0001\\u001f\u{7f}"));
    assert!(json("structured.drv").unwrap().contains(r#","structuredAttrs":{"builder":"/bin/sh","list":["a",2,null]"#));
    assert_eq!(json("bytes.drv").unwrap_err().to_string(), "invalid UTF-8 byte at index 127: 0x80");
}

/// What follows the name in the JSON of `usesTextOfText`, with the paths found in its file.
fn expected_rest() -> String {
    let known = known();
    let (_, drv) = known.parsed.iter().find(|(p, _)| p.name() == "uses-text-of-text.drv").unwrap();
    let out = String::from_utf8(drv.env.get(b"out").unwrap().to_vec()).unwrap();
    let src = drv.input_srcs.as_slice()[0].as_str();
    format!(
        r#""out":"{out}","system":"x86_64-linux","t":"/nix/store/{src}"}},"inputs":{{"drvs":{{}},"srcs":["{src}"]}},"name":"uses-text-of-text","outputs":{{"out":{{"path":"{}"}}}},"system":"x86_64-linux","version":4}}"#,
        out.strip_prefix("/nix/store/").unwrap()
    )
}
