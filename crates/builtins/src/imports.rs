//! `import` and `scopedImport`, and the files that come with the evaluator: `derivation`, `<nix/fetchurl.nix>`.

use crate::files::{made_text, realise_path};
use crate::store;
use firn_eval::{Builtin, Machine, Result};
use firn_host::AbsPath;
use firn_memo::kept::labels;
use firn_source::{Origin, Pos};
use firn_store::context::{Built, Element};
use firn_store::path::StorePath;
use firn_value::{AttrsBuilder, ListBuilder, Value};

/// Where `<nix/…>` leads: a place that no disk has.
const INTERNAL: &[u8] = b"/__corepkgs__";

const FETCHURL: &str = include_str!("internal/fetchurl.nix");
const DERIVATION: &str = include_str!("internal/derivation.nix");
const IMPORTED_DERIVATION: &str = include_str!("internal/imported-derivation.nix");

/// The path value of a file that comes with the evaluator.
pub(crate) fn internal_path(path: &AbsPath) -> Vec<u8> {
    [INTERNAL, path.as_bytes()].concat()
}

/// The text of a file that comes with the evaluator.
pub(crate) fn internal_text(path: &AbsPath) -> Option<&'static str> {
    (path.as_bytes().strip_prefix(INTERNAL)? == b"/fetchurl.nix").then_some(FETCHURL)
}

/// The value of a text that is not on disk, evaluated once under `key`.
fn import_once(machine: &Machine, key: &[u8], text: &[u8], origin: Origin, base: &AbsPath) -> Result<Value> {
    let store = store::store(machine);
    if let Some(&(known, label)) = store::lock(&store.imports).get(key) {
        labels::take(label);
        return Ok(known);
    }
    let (value, label) = labels::within(|| machine.eval_text(text, origin, base));
    Ok(store::lock(&store.imports).entry(key.to_vec()).or_insert((value?, label)).0)
}

fn import(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let path = realise_path(machine, pos, args[0], None)?;
    if let Some(object) = valid_derivation(machine, &path)? {
        return import_derivation(machine, pos, &path, &object);
    }
    if let Some(text) = made_text(machine, &path) {
        let base = path.parent().unwrap_or_else(AbsPath::root);
        return import_once(machine, path.as_bytes(), &text, Origin::File(path.as_bytes().to_vec()), &base);
    }
    if let Some(text) = internal_text(&path) {
        return import_once(
            machine,
            path.as_bytes(),
            text.as_bytes(),
            Origin::Internal("<nix/fetchurl.nix>"),
            &AbsPath::root(),
        );
    }
    machine.import(&path, pos)
}

fn scoped_import(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let path = realise_path(machine, pos, args[1], None)?;
    if let Some(object) = valid_derivation(machine, &path)? {
        return import_derivation(machine, pos, &path, &object);
    }
    let scope =
        machine.force_attrs(args[0], pos, "while evaluating the first argument passed to builtins.scopedImport")?;
    machine.scoped_import(scope, &path)
}

/// The store path, if the path is that of a derivation that exists.
fn valid_derivation(machine: &Machine, path: &AbsPath) -> Result<Option<StorePath>> {
    if !path.as_bytes().ends_with(b".drv") {
        return Ok(None);
    }
    let Ok(object) = machine.store_dir().parse(path.as_bytes()) else { return Ok(None) };
    let valid = store::store(machine).backend.is_valid(&object).map_err(|e| firn_eval::store_error(&e))?;
    Ok(valid.then_some(object))
}

/// NIX: importing a derivation from the store gives its outputs, much as `derivation` does.
fn import_derivation(machine: &Machine, pos: Pos, path: &AbsPath, object: &StorePath) -> Result<Value> {
    let drv = store::store(machine).read_derivation(machine, object)?;
    let names = machine.names();
    let plain = |bytes: &[u8]| Value::string(bytes, firn_value::Context::EMPTY);
    let mut set = AttrsBuilder::with_capacity(3 + drv.outputs.len());
    let deep = firn_eval::context_of([&Element::DrvDeep(object.clone())]);
    set.push(names.drv_path, Pos::NONE, Value::string(path.as_bytes(), deep));
    set.push(names.name, Pos::NONE, plain(drv.env.get(b"name").unwrap_or_default()));
    let mut outputs = ListBuilder::new(drv.outputs.len());
    for (name, output) in drv.outputs.iter() {
        let built = Built::new(object.clone(), name.clone());
        let known = output.path(machine.store_dir(), &drv.name, name).map_err(|e| firn_eval::store_error(&e))?;
        set.push(firn_source::Symbol::intern(name), Pos::NONE, output_string(machine, built, known.as_ref()));
        outputs.push(plain(name));
    }
    set.insert("outputs", outputs.finish());
    let origin = Origin::Internal("«nix-internal»/imported-drv-to-derivation.nix");
    let function =
        import_once(machine, b"imported-derivation", IMPORTED_DERIVATION.as_bytes(), origin, &AbsPath::root())?;
    let result = machine.call(function, &[set.finish()], pos)?;
    Ok(machine.force_attrs(result, pos, "while calling imported-drv-to-derivation.nix.gen.hh")?.value())
}

/// The string of an output: its path, or what stands for it until it is built.
pub(crate) fn output_string(machine: &Machine, built: Built, known: Option<&StorePath>) -> Value {
    let text = match known {
        Some(path) => machine.store_dir().print(path),
        None => built.placeholder().render().into_bytes(),
    };
    Value::string(&text, firn_eval::context_of([&Element::Built(built)]))
}

/// The function behind the global `derivation`, made when it is first needed.
pub(crate) fn derivation_function(machine: &Machine, _: Pos, _: &[Value]) -> Result<Value> {
    let origin = Origin::Internal("«nix-internal»/derivation-internal.nix");
    machine.eval_text(DERIVATION.as_bytes(), origin, &AbsPath::root())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "import", arity: 1, strict: 1, run: import },
    Builtin { name: "scopedImport", arity: 2, strict: 0b10, run: scoped_import },
];
