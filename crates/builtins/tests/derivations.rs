//! Programs whose derivations are known: every `.drv` that Nix wrote for `tests/store/derivations.nix` comes out of
//! evaluation with the same path and the same bytes (E3). The two `equalHashes` are where Nix 2.35 differs from the Nix
//! that wrote the files; see the test of that name in the `store` crate.

use firn_eval::{Machine, Settings, Shared};
use firn_host::{AbsPath, EvalOnly, RealHost, RealWorld, Store};
use firn_source::Origin;
use firn_store::path::StorePath;
use firn_value::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/store").canonicalize().expect("tests/store")
}

fn machine() -> (Machine, Arc<EvalOnly>) {
    let mut settings = Settings::default();
    settings.features.ca_derivations = true;
    settings.features.impure_derivations = true;
    let mut shared = Shared::new(settings, Arc::new(RealHost::new(RealWorld)));
    firn_builtins::install(&mut shared);
    let store = Arc::new(EvalOnly::new(shared.store_dir.clone(), Arc::clone(&shared.host)));
    firn_builtins::attach(&shared, store.clone());
    *shared.log.lock().expect("no thread panicked") = Box::new(|_| {});
    (Machine::new(Arc::new(shared)), store)
}

fn evaluate(machine: &Machine, text: &str) -> firn_eval::Result<Value> {
    let value = machine.eval_text(text.as_bytes(), Origin::Expression, &AbsPath::root())?;
    machine.force_deep(value)?;
    Ok(value)
}

fn string(machine: &Machine, text: &str) -> String {
    match evaluate(machine, text) {
        Ok(value) => String::from_utf8_lossy(value.as_str().expect("a string").bytes()).into_owned(),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn known_derivations_come_out_byte_for_byte() {
    let (machine, store) = machine();
    let vectors = vectors();
    let program = format!(
        "builtins.concatStringsSep \"\\n\" (builtins.attrValues (builtins.mapAttrs (n: d: \"${{n}} ${{d.drvPath}}\") \
         (import {}/derivations.nix)))",
        vectors.display()
    );
    let found = string(&machine, &program);
    let expected = std::fs::read_to_string(vectors.join("attributes.txt")).expect("attributes.txt");
    let found: Vec<&str> = found.lines().collect();
    let expected: Vec<&str> = expected.lines().filter(|line| !line.is_empty()).collect();
    for line in expected.iter().filter(|line| !line.starts_with("equalHashes")) {
        assert!(found.contains(line), "{line}\nis not among\n{}", found.join("\n"));
    }
    assert_eq!(found.len(), expected.len());
    for entry in std::fs::read_dir(vectors.join("drvs")).expect("drvs") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("names are ASCII");
        if name.contains("equal-hashes") {
            continue;
        }
        let path = StorePath::parse(name.as_bytes()).expect("a store path");
        let text = store.text(&path).unwrap_or_else(|| panic!("{name} was not made"));
        assert!(*text == *std::fs::read(entry.path()).expect("readable"), "{name} has other bytes");
    }
}

#[test]
fn nothing_is_instantiated_before_a_path_is_asked_for() {
    let (machine, _) = machine();
    let drv = "derivation { name = \"x\"; outputs = [ \"out\" \"dev\" ]; builder = throw \"forced\"; }";
    assert_eq!(string(&machine, &format!("({drv}).name + ({drv}).dev.outputName + ({drv}).type")), "xdevderivation");
    assert_eq!(string(&machine, &format!("({drv}).outPath")), "error: forced");
    assert_eq!(string(&machine, "(derivation { outputs = throw \"first\"; }).name"), "error: first");
}

#[test]
fn texts_of_this_evaluation_can_be_read_and_imported() {
    let (machine, _) = machine();
    assert_eq!(string(&machine, "builtins.readFile (builtins.toFile \"a\" \"b\")"), "b");
    assert_eq!(string(&machine, "(import (builtins.toFile \"a\" \"{ x = ''y''; }\")).x"), "y");
}

#[test]
fn errors_name_the_attribute_and_the_derivation() {
    let (machine, _) = machine();
    let error = evaluate(&machine, "(derivation { name = \"n\"; system = \"s\"; builder = \"b\"; a = { }; }).drvPath")
        .expect_err("a set has no string");
    let frames: Vec<String> = error
        .frames()
        .into_iter()
        .map(|frame| {
            String::from_utf8_lossy(&frame.text)
                .replace(firn_eval::Error::HIGHLIGHT, "")
                .replace(firn_eval::Error::PLAIN, "")
        })
        .collect();
    assert!(frames.iter().any(|f| f == "while evaluating attribute 'a' of derivation 'n'"), "{frames:?}");
    assert!(
        frames
            .iter()
            .any(|f| f
                .starts_with("while evaluating derivation 'n'\n  whose name attribute is located at «string»:1:15")),
        "{frames:?}"
    );
}
