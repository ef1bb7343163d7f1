//! `--check-cache-status`: whether a derivation's outputs and inputs are here, can be downloaded, or must be built.

use super::job::{Line, Outputs, text};
use firn_eval::{Machine, Result, store_error};
use firn_host::{Missing, Store};
use firn_store::context::Built;
use firn_store::derivation::Derivation;
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use firn_text::json::Tree;
use std::collections::BTreeSet;

/// What would have to be done.
pub(super) struct Status {
    missing: Missing,
}

/// Asks the store. None where nothing can be known, because there is no store.
pub(super) fn ask(machine: &Machine, store: &dyn Store, drv: &Derivation, outputs: &Outputs) -> Result<Option<Status>> {
    if store.is_read_only() {
        return Ok(None);
    }
    let objects: Vec<StorePath> = outputs.values().flatten().cloned().collect();
    let inputs = drv.input_drvs.iter();
    let built: Vec<Built> = inputs
        .flat_map(|(path, node)| node.outputs.iter().map(|output| Built::new(path.clone(), output.clone())))
        .collect();
    let answer = store.missing(&objects, &built).map_err(|e| store_error(&e))?;
    let mut missing = match answer {
        Some(missing) => missing,
        None => walk(machine, store, &objects, &built)?,
    };
    sort(machine, store, &mut missing)?;
    Ok(Some(Status { missing }))
}

/// What a store without substituters lacks: an output that is not there is built from what is not there.
fn walk(machine: &Machine, store: &dyn Store, objects: &[StorePath], built: &[Built]) -> Result<Missing> {
    let valid = |path: &StorePath| store.is_valid(path).map_err(|e| store_error(&e));
    let mut missing = Missing::default();
    for path in objects {
        if !valid(path)? {
            missing.unknown.push(path.clone());
        }
    }
    let (mut seen, mut todo) = (BTreeSet::new(), built.to_vec());
    while let Some(next) = todo.pop() {
        if !seen.insert((next.drv.clone(), next.output.to_vec())) {
            continue;
        }
        let drv = firn_builtins::derivation_at(machine, &next.drv)?;
        let output = drv.outputs.iter().find(|(name, _)| **name == next.output);
        let path = match output {
            Some((name, output)) => output.path(machine.store_dir(), &drv.name, name).map_err(|e| store_error(&e))?,
            None => None,
        };
        if matches!(&path, Some(path) if valid(path)?) {
            continue;
        }
        missing.build.push(next.drv.clone());
        let inputs = drv.input_drvs.iter();
        todo.extend(inputs.flat_map(|(path, node)| node.outputs.iter().map(|o| Built::new(path.clone(), o.clone()))));
    }
    Ok(missing)
}

/// NIX: builds in the order in which they can be done, downloads by name.
fn sort(machine: &Machine, store: &dyn Store, missing: &mut Missing) -> Result<()> {
    let wanted: BTreeSet<StorePath> = missing.build.drain(..).collect();
    let (mut placed, mut order) = (BTreeSet::new(), Vec::new());
    for path in &wanted {
        place(machine, store, path, &wanted, &mut placed, &mut order)?;
    }
    missing.build = order;
    missing.substitute.sort_by(|a, b| a.name().cmp(b.name()).then_with(|| a.cmp(b)));
    Ok(())
}

fn place(
    machine: &Machine,
    store: &dyn Store,
    path: &StorePath,
    wanted: &BTreeSet<StorePath>,
    placed: &mut BTreeSet<StorePath>,
    order: &mut Vec<StorePath>,
) -> Result<()> {
    if !placed.insert(path.clone()) {
        return Ok(());
    }
    let references = match store.references(path).map_err(|e| store_error(&e))? {
        Some(references) => references,
        None => firn_builtins::derivation_at(machine, path)?.references().into(),
    };
    for reference in references.iter().filter(|reference| wanted.contains(*reference)) {
        machine.with_stack(|| place(machine, store, reference, wanted, placed, order))?;
    }
    order.push(path.clone());
    Ok(())
}

impl Status {
    /// Adds the members of the line.
    pub fn write(&self, dir: &StoreDir, line: &mut Line) {
        let Missing { build, substitute, unknown } = &self.missing;
        let status = match (build.is_empty() && unknown.is_empty(), substitute.is_empty()) {
            (true, true) => "local",
            (true, false) => "cached",
            (false, _) => "notBuilt",
        };
        let paths = |paths: &[StorePath]| Tree::List(paths.iter().map(|path| text(&dir.print(path))).collect());
        line.insert(b"cacheStatus".to_vec(), Tree::text(status));
        line.insert(b"isCached".to_vec(), Tree::Bool(status != "notBuilt"));
        line.insert(b"neededBuilds".to_vec(), paths(build));
        line.insert(b"neededSubstitutes".to_vec(), paths(substitute));
    }
}
