//! `derivationStrict`: from attributes to a store derivation (E3).
//!
//! 1. The attributes, in the order of their names, fill a [`Draft`] (`derivation_attrs.rs`).
//! 2. What their strings mention becomes the inputs.
//! 3. The outputs get paths or placeholders (`derivation_outputs.rs`).
//! 4. The file is given to the store, its hash remembered, and the strings of its paths are the result.

use crate::derivation_attrs::Draft;
use crate::imports::output_string;
use crate::store::{self, EvalStore, Failure, eval_error};
use firn_eval::times::Doing;
use firn_eval::{
    Builtin, Error, ErrorKind, Machine, Result, Stats, color_bytes, colored, context_elements, context_of, show_location,
    store_error,
};
use firn_source::{Pos, Symbol};
use firn_store::content_address::Method;
use firn_store::context::{Built, Element};
use firn_store::derivation::{Derivation, Output};
use firn_store::path::{StorePath, check_name};
use firn_value::{Attrs, AttrsBuilder, Context, Value, heap_bytes};

fn derivation_strict(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[0], pos, "while evaluating the argument passed to builtins.derivationStrict")?;
    let Some((name, name_pos)) = set.get_with_pos(machine.names().name) else {
        let message = format!("attribute '{}' missing", colored("name"));
        let what = "in the attrset passed as argument to builtins.derivationStrict";
        return Err(Error::new(ErrorKind::Type, message).trace(Pos::NONE, what));
    };
    let what = "while evaluating the `name` attribute passed to builtins.derivationStrict";
    let name = machine
        .force_string_no_context(name, pos, what)
        .map_err(|e| e.trace(name_pos, "while evaluating the derivation attribute 'name'"))?;
    instantiate(machine, name.bytes(), set).map_err(|e| while_evaluating(e, name.bytes(), name_pos))
}

#[cold]
fn while_evaluating(error: Box<Error>, name: &[u8], name_pos: Pos) -> Box<Error> {
    let place = name_pos.resolve().map_or_else(|| "«none»:0".to_owned(), |location| show_location(&location));
    let shown = [color_bytes(name), color_bytes(place.as_bytes())];
    let parts = [
        b"while evaluating derivation '".as_slice(),
        &shown[0],
        b"'\n  whose name attribute is located at ",
        &shown[1],
    ];
    error.trace(Pos::NONE, parts.concat())
}

fn instantiate(machine: &Machine, name: &[u8], set: Attrs) -> Result<Value> {
    if let Err(why) = check_name(name) {
        let parts = [
            b"invalid derivation name: ".as_slice(),
            why.message(),
            format!(". Please pass a different '{}'.", colored("name")).as_bytes(),
        ]
        .concat();
        return Err(Error::new(ErrorKind::Eval, parts));
    }
    let mut draft = Draft::new(machine, name);
    draft.read(set)?;
    let store = store::store(machine);
    let context = std::mem::take(&mut draft.context).finish();
    add_inputs(machine, &store, &mut draft.drv, context)?;
    check_required(&draft)?;
    Stats::bump(&machine.stats.derivations);
    Stats::time(&machine.stats.derivation_time, Doing::Derivations, || {
        draft.set_outputs()?;
        write(machine, &store, &mut draft.drv)
    })
}

/// Everything the strings mention is an input.
fn add_inputs(machine: &Machine, store: &EvalStore, drv: &mut Derivation, context: Context) -> Result<()> {
    for element in context_elements(context) {
        match element {
            Element::Opaque(path) => {
                drv.input_srcs.insert(path);
            }
            Element::Built(built) => drv.add_built_input(&built),
            // The builder may look at the whole graph, so all of it is an input, with all outputs.
            Element::DrvDeep(path) => {
                for part in store.closure(machine, &path)? {
                    if part.is_derivation() {
                        let outputs = store.read_derivation(machine, &part)?.outputs;
                        drv.input_drvs.entry(part.clone()).outputs = outputs.keys().cloned().collect();
                    }
                    drv.input_srcs.insert(part);
                }
            }
        }
    }
    Ok(())
}

fn check_required(draft: &Draft<'_>) -> Result<()> {
    for (value, name) in [(&draft.drv.builder, "builder"), (&draft.drv.system, "system")] {
        if value.is_empty() {
            return Err(eval_error(format!("required attribute '{name}' missing"), Pos::NONE));
        }
    }
    let single_text = draft.method == Some(Method::Text) && draft.has_only_out();
    if draft.drv.name.ends_with(b".drv") && !single_text {
        let ending = colored(".drv");
        let message =
            format!("derivation names are allowed to end in '{ending}' only if they produce a single derivation file");
        return Err(eval_error(message, Pos::NONE));
    }
    Ok(())
}

/// Bytes of values from which on memory counts.
const LARGE: u64 = 48 << 20;

/// Gives the derivation to the store; the strings of its paths.
fn write(machine: &Machine, store: &EvalStore, drv: &mut Derivation) -> Result<Value> {
    let dir = machine.store_dir();
    let (file, hash) = drv
        .finish::<Failure>(dir, &mut |input| Ok(store.hash_modulo(machine, input)?))
        .map_err(|failure| failure.raise(machine))?;
    let path = file.path;
    store.backend.add_text(&path, file.contents.into(), file.references.into(), Method::Text).map_err(|e| store_error(&e))?;
    store.remember_hash(&path, hash);
    if heap_bytes() >= LARGE {
        store.backend.spare_memory();
    }
    let mut set = AttrsBuilder::with_capacity(1 + drv.outputs.len());
    let deep = context_of([&Element::DrvDeep(path.clone())]);
    set.push(machine.names().drv_path, Pos::NONE, Value::string(&dir.print(&path), deep));
    for (name, output) in drv.outputs.iter() {
        let known = known_path(machine, drv, name, output)?;
        let value = output_string(machine, Built::new(path.clone(), name.clone()), known.as_ref());
        set.push(Symbol::intern(name), Pos::NONE, value);
    }
    Ok(set.finish())
}

fn known_path(machine: &Machine, drv: &Derivation, name: &[u8], output: &Output) -> Result<Option<StorePath>> {
    output.path(machine.store_dir(), &drv.name, name).map_err(|e| store_error(&e))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] =
    &[Builtin { name: "derivationStrict", arity: 1, strict: 1, run: derivation_strict }];
