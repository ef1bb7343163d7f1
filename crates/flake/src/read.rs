//! `Flake`: a `flake.nix` as read, before its outputs are called.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use firn_builtins::{fetch_error, fetch_input, fetcher};
use firn_eval::{Error, ErrorKind, Machine, Result, colored, colored_name};
use firn_host::AbsPath;
use firn_host::fetch::{Attrs, UseRegistries};
use firn_source::{Pos, Symbol};
use firn_value::{Type, Value};

use crate::config::{self, Setting};
use crate::inputs::{FlakeInput, Reader, expect, place};
use crate::{FlakeRef, ParseOptions};

/// A flake.
#[derive(Clone, Debug)]
pub struct Flake {
    /// As the user wrote it.
    pub original: FlakeRef,
    /// After registries.
    pub resolved: FlakeRef,
    /// As it was found.
    pub locked: FlakeRef,
    /// Its `flake.nix`, at the store path of its tree.
    pub path: AbsPath,
    /// Its description.
    pub description: Option<Vec<u8>>,
    /// Its inputs.
    pub inputs: BTreeMap<String, FlakeInput>,
    /// What it says about its own tree.
    pub self_attrs: Attrs,
    /// Settings it asks for.
    pub config: Vec<Setting>,
    /// Whether it is to look changed: its lock file is not the one it has.
    pub force_dirty: bool,
}

impl Flake {
    /// The directory of `flake.nix`.
    pub fn dir(&self) -> AbsPath {
        self.path.parent().unwrap_or_else(AbsPath::root)
    }
}

/// The references of a flake.
#[derive(Clone, Copy)]
pub(crate) struct Refs<'a> {
    pub original: &'a FlakeRef,
    pub resolved: &'a FlakeRef,
    pub locked: &'a FlakeRef,
}

/// Fetches a flake and reads it. `root` is the way to it from the flake that is locked.
pub fn get_flake(machine: &Machine, original: &FlakeRef, which: UseRegistries, root: &[String]) -> Result<Flake> {
    let (input, dir) = resolve(machine, original, which)?;
    let resolved = FlakeRef { input, dir: dir.unwrap_or_else(|| original.dir.clone()) };
    let mut tree = fetch_input(machine, &resolved.input)?;
    let mut locked = FlakeRef { input: tree.input.clone(), dir: resolved.dir.clone() };
    let refs = Refs { original, resolved: &resolved, locked: &locked };
    let flake = read_flake(machine, refs, &store_place(machine, &tree.store_path)?, root)?;
    let wanted = with_self_attrs(&locked, &flake.self_attrs)?;
    if wanted == locked {
        return Ok(flake);
    }
    // The flake wants its own tree otherwise (with submodules): it is fetched and read again.
    let mut input = wanted.input;
    input.attrs.remove("narHash");
    input.attrs.remove("__final");
    tree = fetch_input(machine, &input)?;
    locked.input = tree.input.clone();
    let refs = Refs { original, resolved: &resolved, locked: &locked };
    read_flake(machine, refs, &store_place(machine, &tree.store_path)?, root)
}

/// What a reference stands for in the registries, if it needs them.
pub(crate) fn resolve(
    machine: &Machine,
    reference: &FlakeRef,
    which: UseRegistries,
) -> Result<(firn_host::fetch::Input, Option<String>)> {
    if reference.input.is_direct() {
        return Ok((reference.input.clone(), None));
    }
    if which == UseRegistries::No {
        let shown = colored(reference.input.show());
        let message = format!("'{shown}' is an indirect flake reference, but registry lookups are not allowed");
        return Err(Error::new(ErrorKind::Host, message));
    }
    fetcher(machine)?.look_up(&reference.input, which).map_err(|e| fetch_error(&e))
}

pub(crate) fn store_place(machine: &Machine, path: &firn_store::path::StorePath) -> Result<AbsPath> {
    AbsPath::new(&machine.store_dir().print(path)).map_err(|e| machine.host_error(e))
}

fn with_self_attrs(reference: &FlakeRef, attrs: &Attrs) -> Result<FlakeRef> {
    let mut reference = reference.clone();
    for (name, attr) in attrs {
        if !["submodules", "lfs"].contains(&name.as_str()) {
            let message = format!("flake 'self' attribute '{}' is not supported", colored(name));
            return Err(Error::new(ErrorKind::Host, message));
        }
        reference.input.set(name, attr.clone());
    }
    Ok(reference)
}

/// Reads the `flake.nix` of a tree.
pub(crate) fn read_flake(machine: &Machine, refs: Refs<'_>, tree: &AbsPath, root: &[String]) -> Result<Flake> {
    let failed = |error| machine.host_error(error);
    let flake_dir = tree.beneath(refs.resolved.dir.as_bytes()).map_err(failed)?;
    let path = flake_dir.beneath(b"flake.nix").map_err(failed)?;
    let program = machine.load(&path, &[])?;
    let traced = |error: Box<Error>| {
        error.trace(Pos::NONE, format!("while evaluating the file '{}':", colored(&path)))
    };
    if !program.is_attrs {
        let message = format!("file '{}' must be an attribute set", colored(&path));
        return Err(traced(Error::new(ErrorKind::Eval, message)));
    }
    let value = machine.run_program(program, &[]).map_err(traced)?;
    let set = machine.force_attrs(value, Pos::NONE, "while evaluating a flake")?;
    let get = |name: &str| set.get_with_pos(Symbol::from(name));
    let mut flake = Flake {
        original: refs.original.clone(),
        resolved: refs.resolved.clone(),
        locked: refs.locked.clone(),
        path: path.clone(),
        description: None,
        inputs: BTreeMap::new(),
        self_attrs: Attrs::new(),
        config: Vec::new(),
        force_dirty: false,
    };
    if let Some((cell, pos)) = get("description") {
        let text = expect(machine, Type::String, cell, pos)?;
        flake.description = text.as_str().map(|text| text.bytes().to_vec());
    }
    if let Some((cell, pos)) = get("inputs") {
        let reader = Reader { machine, flake_dir: &flake_dir, root };
        (flake.inputs, flake.self_attrs) = reader.inputs(cell, pos, true)?;
    }
    let Some((outputs, pos)) = get("outputs") else {
        let message = format!("flake '{}' lacks attribute 'outputs'", colored(refs.resolved.show()));
        return Err(Error::new(ErrorKind::Host, message));
    };
    add_formals(machine, expect(machine, Type::Function, outputs, pos)?, &mut flake)?;
    if let Some((cell, pos)) = get("nixConfig") {
        flake.config = config::read(machine, cell, pos)?;
    }
    for (name, pos, _) in set.iter_by_name() {
        if !["description", "inputs", "outputs", "nixConfig"].iter().any(|known| name.as_bytes() == known.as_bytes()) {
            let message = format!(
                "flake '{}' has an unsupported attribute '{}', at {}",
                colored(refs.resolved.show()),
                colored_name(name),
                place(pos)
            );
            return Err(Error::new(ErrorKind::Host, message));
        }
    }
    Ok(flake)
}

/// Arguments of `outputs` that no input declares are registry entries of their name.
fn add_formals(machine: &Machine, outputs: Value, flake: &mut Flake) -> Result<()> {
    let Some(pattern) = machine.formals(outputs) else { return Ok(()) };
    let fetcher = fetcher(machine)?;
    for formal in pattern.formals.iter().filter(|formal| formal.name.as_bytes() != b"self") {
        let name = String::from_utf8_lossy(formal.name.as_bytes()).into_owned();
        if let Entry::Vacant(entry) = flake.inputs.entry(name) {
            let reference = FlakeRef::parse(&fetcher, entry.key(), ParseOptions::default()).map_err(|e| fetch_error(&e))?;
            entry.insert(FlakeInput { reference: Some(reference), ..FlakeInput::default() });
        }
    }
    Ok(())
}
