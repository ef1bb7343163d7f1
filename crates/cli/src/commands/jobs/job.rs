//! One job: the value at a path, and what is told of the derivation there (E7).

use super::line::JobLine;
use super::queue::{Found, Outcome, Path};
use super::root::Root;
use super::typed::Typed;
use super::{cache_status, constituents};
use crate::stores::failed;
use firn_eval::{Error, ErrorKind, Machine, Result, place_of, store_error};
use firn_host::{AbsPath, Store};
use firn_memo::kept::labels;
use firn_source::terminal::filter_escapes;
use firn_source::{Pos, Symbol};
use firn_store::derivation::{Derivation, Kind, STRUCTURED_ATTRS};
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;
use firn_text::json::Tree;
use firn_value::{Attrs, ContextBuilder, Type, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The members of a line.
pub(super) type Line = BTreeMap<Vec<u8>, Tree>;

/// The names in a set, and their cells.
type Names = Vec<(Vec<u8>, Option<Found>)>;

/// What every job needs to know.
pub(super) struct Task<'a> {
    pub typed: &'a Typed,
    pub root: Root,
    pub arguments: Attrs,
    /// The function of `--apply`.
    pub apply: Option<Value>,
    pub store: Arc<dyn Store>,
    pub gc_roots: Option<AbsPath>,
    pub full_traces: bool,
    pub store_dir: StoreDir,
}

/// The path as it is written: names with dots are quoted.
pub(super) fn joined(path: &[Vec<u8>]) -> Vec<u8> {
    let quoted = |name: &Vec<u8>| match name.contains(&b'.') {
        true => [b"\"", &name[..], b"\""].concat(),
        false => name.clone(),
    };
    path.iter().map(quoted).collect::<Vec<_>>().join(&b'.')
}

/// A string in a line; bytes that are not UTF-8 are replaced, because JSON has no others.
pub(super) fn text(bytes: &[u8]) -> Tree {
    Tree::Text(String::from_utf8_lossy(bytes).into_owned().into_bytes())
}

fn list(items: impl IntoIterator<Item = Vec<u8>>) -> Tree {
    Tree::List(items.into_iter().map(|item| text(&item)).collect())
}

/// Evaluates the path; the error that became part of a line is given too, to be told.
pub(super) fn evaluate(machine: &Machine, task: &Task<'_>, path: &Path, cell: Option<Found>) -> (Outcome, Option<Box<Error>>) {
    let attr = joined(path);
    let mut line = Line::from([
        (b"attr".to_vec(), text(&attr)),
        (b"attrPath".to_vec(), Tree::List(path.iter().map(|name| text(name)).collect())),
    ]);
    match task.look(machine, path, &attr, cell, &mut line) {
        Ok(Some(names)) => (if names.is_empty() { Outcome::Nothing } else { Outcome::Set(names) }, None),
        Ok(None) => (Outcome::Job(JobLine::Made(Tree::Object(line))), None),
        Err(error) if error.kind() == ErrorKind::Postponed => (Outcome::Postponed, None),
        // The run ends, and nothing is said of what was under way.
        Err(error) if error.kind() == ErrorKind::Interrupted => (Outcome::Nothing, None),
        Err(error) => {
            let message = filter_escapes(&error.diagnostic().render(task.full_traces), true);
            line.insert(b"error".to_vec(), text(&message));
            (Outcome::Job(JobLine::Made(Tree::Object(line))), Some(error))
        }
    }
}

impl Task<'_> {
    /// Fills in the line of a derivation; the names of anything else.
    fn look(
        &self,
        machine: &Machine,
        path: &Path,
        attr: &[u8],
        cell: Option<Found>,
        line: &mut Line,
    ) -> Result<Option<Names>> {
        // NIX: a name that is a number, or has a quote in it, is not found as it is written.
        let plain = |name: &Vec<u8>| {
            !name.is_empty() && !name.contains(&b'"') && !name.iter().all(u8::is_ascii_digit)
        };
        let cell = match cell.filter(|_| path.iter().all(plain)) {
            Some(Found { cell, label }) => {
                labels::take(label);
                cell
            }
            None => machine.find_along(attr, self.arguments, self.root.get(machine)?)?.0,
        };
        let value = machine.auto_call(self.arguments, cell)?;
        let Some(set) = value.as_attrs() else { return Ok(Some(Vec::new())) };
        if !machine.is_derivation(set)? {
            return self.names(machine, path, set).map(Some);
        }
        self.derivation(machine, attr, value, set, line)?;
        Ok(None)
    }

    fn names(&self, machine: &Machine, path: &Path, set: Attrs) -> Result<Names> {
        let mut recurse = self.typed.force_recurse || path.is_empty();
        if !self.typed.force_recurse
            && let Some((cell, pos)) = set.get_with_pos(Symbol::from("recurseForDerivations"))
        {
            recurse = machine.force_bool(cell, pos, "while evaluating recurseForDerivations")?;
        }
        if !recurse {
            return Ok(Vec::new());
        }
        let so_far = labels::so_far();
        // Each rests on what the set has under its name, not on which other names there are.
        let found = |(name, _, cell): (Symbol, Pos, Value)| {
            let (_, own) = labels::apart(|| set.has(name));
            (name.as_bytes().to_vec(), Some(Found { cell, label: labels::both(so_far, own) }))
        };
        Ok(set.iter_by_name().map(found).collect())
    }

    fn derivation(&self, machine: &Machine, attr: &[u8], value: Value, set: Attrs, line: &mut Line) -> Result<()> {
        let names = machine.names();
        let Some(name) = set.get(names.name) else {
            return Err(Error::new(ErrorKind::Type, "derivation name missing"));
        };
        let context = "while evaluating the 'name' attribute of a derivation";
        let name = machine.force_string_no_context(name, Pos::NONE, context)?;
        let aggregate =
            if self.typed.constituents { Some(constituents::read(machine, set)?) } else { None };
        if let Some(function) = self.apply {
            let applied = machine.call(function, &[value], Pos::NONE)?;
            machine.force_attrs(applied, Pos::NONE, "apply needs to evaluate to an attrset")?;
            line.insert(b"extraValue".to_vec(), json(machine, applied)?);
        }
        let outputs = outputs(machine, attr, set)?;
        let drv_path = drv_path(machine, set)?;
        let mut more = Line::new();
        if self.typed.no_instantiate {
            more.insert(b"system".to_vec(), text(&system(machine, set)?));
        } else {
            let drv = firn_builtins::derivation_at(machine, &drv_path)?;
            self.read_file(machine, &drv, &outputs, &mut more)?;
        }
        if self.typed.meta {
            more.insert(b"meta".to_vec(), meta(machine, set)?);
        }
        if let Some(aggregate) = aggregate {
            aggregate.write(&mut more);
        }
        let dir = machine.store_dir();
        let shown = |path: &Option<StorePath>| path.as_ref().map_or(Tree::Null, |path| text(&dir.print(path)));
        line.append(&mut more);
        line.insert(b"name".to_vec(), text(name.bytes()));
        line.insert(b"drvPath".to_vec(), text(&dir.print(&drv_path)));
        line.insert(b"outputs".to_vec(), Tree::Object(outputs.iter().map(|(k, p)| (k.clone(), shown(p))).collect()));
        self.add_root(&drv_path)
    }

    /// What the `.drv` file says.
    fn read_file(&self, machine: &Machine, drv: &Derivation, outputs: &Outputs, line: &mut Line) -> Result<()> {
        let dir = machine.store_dir();
        line.insert(b"system".to_vec(), text(&drv.system));
        if self.typed.show_input_drvs {
            let inputs = drv.input_drvs.iter();
            let named = |outputs: &firn_store::derivation::InputNode| list(outputs.outputs.iter().map(|o| o.to_vec()));
            let all = inputs.map(|(path, node)| (dir.print(path), named(node))).collect();
            line.insert(b"inputDrvs".to_vec(), Tree::Object(all));
        }
        line.insert(b"requiredSystemFeatures".to_vec(), list(required_features(drv)?));
        if self.typed.check_cache_status
            && let Some(status) = cache_status::ask(machine, &*self.store, drv, outputs)?
        {
            status.write(dir, line);
        }
        Ok(())
    }

    /// Does for a line from memory what evaluating it would have done besides.
    pub fn keep_alive(&self, outcome: &Outcome) -> Result<()> {
        let drv = match outcome {
            Outcome::Job(line) if self.makes_roots() => line.drv_path(),
            _ => None,
        };
        let path = drv.map(|path| self.store_dir.parse(&path)).transpose().map_err(|e| store_error(&e))?;
        path.map_or(Ok(()), |path| self.add_root(&path))
    }

    fn makes_roots(&self) -> bool {
        self.gc_roots.is_some() && !self.typed.no_instantiate
    }

    fn add_root(&self, drv_path: &StorePath) -> Result<()> {
        let Some(dir) = self.gc_roots.as_ref().filter(|_| self.makes_roots()) else { return Ok(()) };
        let root = dir.child(drv_path.as_bytes());
        // The host would remember that the link is not there yet, and nobody evaluates by it.
        #[allow(clippy::disallowed_methods)]
        if std::fs::symlink_metadata(root.as_path()).is_err() {
            self.store.add_root(drv_path, &root).map_err(|e| match failed(e) {
                crate::failure::Failure::Error(error) => error,
                _ => Error::new(ErrorKind::Store, "cannot make a garbage collector root"),
            })?;
        }
        Ok(())
    }
}

/// Outputs by name; the path is not known before it is built for content-addressed derivations.
pub(super) type Outputs = BTreeMap<Vec<u8>, Option<StorePath>>;

fn store_path(machine: &Machine, cell: Value, pos: Pos, context: &'static str) -> Result<StorePath> {
    let string = machine.coerce_to_string(cell, pos, context, firn_eval::Coercion::PLAIN)?;
    let bytes = string.as_str().map_or(&[][..], |text| text.bytes());
    machine.store_dir().parse(bytes).map_err(|_| {
        let shown = firn_eval::color_bytes(bytes);
        let message = [b"path '", &shown[..], b"' is not in the Nix store"].concat();
        Error::new(ErrorKind::Eval, message).trace(pos, context)
    })
}

fn drv_path(machine: &Machine, set: Attrs) -> Result<StorePath> {
    let context = "while evaluating the 'drvPath' attribute of a derivation";
    let Some((cell, pos)) = set.get_with_pos(machine.names().drv_path) else {
        return Err(Error::new(ErrorKind::Eval, "derivation does not contain a 'drvPath' attribute"));
    };
    let path = store_path(machine, cell, pos, context)?;
    path.derivation_name().map_err(|e| store_error(&e).trace(pos, context))?;
    Ok(path)
}

fn outputs(machine: &Machine, attr: &[u8], set: Attrs) -> Result<Outputs> {
    let mut found = Outputs::new();
    let read = read_outputs(machine, set, &mut found);
    let ca = machine.settings().features.ca_derivations;
    match read {
        Ok(()) => Ok(found),
        Err(error) if matches!(error.kind(), ErrorKind::Postponed | ErrorKind::Interrupted) => Err(error),
        // NIX: paths of content-addressed outputs are not known; what was read before one stays.
        Err(_) if ca && !found.is_empty() => Ok(found),
        Err(_) if ca => output_names(machine, set).map(|names| names.into_iter().map(|name| (name, None)).collect()),
        Err(error) => {
            let said = error.diagnostic().render(machine.settings().show_trace);
            let shown = firn_eval::color_bytes(attr);
            let parts = [b"derivation '".as_slice(), &shown, b"' does not have valid outputs: ", &said];
            Err(Error::new(ErrorKind::Eval, parts.concat()))
        }
    }
}

fn output_names(machine: &Machine, set: Attrs) -> Result<Vec<Vec<u8>>> {
    let Some((cell, pos)) = set.get_with_pos(Symbol::from("outputs")) else { return Ok(vec![b"out".to_vec()]) };
    let list = machine.force_list(cell, pos, "while evaluating the 'outputs' attribute of a derivation")?;
    let context = "while evaluating the name of an output of a derivation";
    list.iter().map(|item| Ok(machine.force_string_no_context(item, pos, context)?.bytes().to_vec())).collect()
}

fn read_outputs(machine: &Machine, set: Attrs, found: &mut Outputs) -> Result<()> {
    let out_path = machine.names().out_path;
    let Some((_, pos)) = set.get_with_pos(Symbol::from("outputs")) else {
        let Some((cell, pos)) = set.get_with_pos(out_path) else {
            return Err(Error::new(ErrorKind::Eval, "derivation does not have attribute 'outPath'"));
        };
        let path = store_path(machine, cell, pos, "while evaluating the output path of a derivation")?;
        found.insert(b"out".to_vec(), Some(path));
        return Ok(());
    };
    for name in output_names(machine, set)? {
        let Some(cell) = set.get(Symbol::intern(&name)) else { continue };
        let output = machine.force_attrs(cell, pos, "while evaluating an output of a derivation")?;
        let Some((path, pos)) = output.get_with_pos(out_path) else { continue };
        let path = store_path(machine, path, pos, "while evaluating an output path of a derivation")?;
        found.entry(name).or_insert(Some(path));
    }
    Ok(())
}

fn system(machine: &Machine, set: Attrs) -> Result<Vec<u8>> {
    let Some((cell, pos)) = set.get_with_pos(Symbol::from("system")) else { return Ok(b"unknown".to_vec()) };
    let context = "while evaluating the 'system' attribute of a derivation";
    Ok(machine.force_string_no_context(cell, pos, context)?.bytes().to_vec())
}

/// The value as JSON.
fn json(machine: &Machine, value: Value) -> Result<Tree> {
    let (mut out, mut context) = (Vec::new(), ContextBuilder::default());
    firn_builtins::value_to_json(machine, value, true, Pos::NONE, &mut out, &mut context, true)?;
    Tree::parse(&out).map_err(|message| Error::new(ErrorKind::Eval, message))
}

fn meta(machine: &Machine, set: Attrs) -> Result<Tree> {
    let Some((cell, pos)) = set.get_with_pos(Symbol::from("meta")) else { return Ok(Tree::Null) };
    let meta = machine.force_attrs(cell, pos, "while evaluating the 'meta' attribute of a derivation")?;
    let mut shown = Line::new();
    for (name, _, cell) in meta.iter_by_name() {
        if is_plain(machine, cell)? {
            shown.insert(name.as_bytes().to_vec(), json(machine, cell)?);
        }
    }
    // NIX: an object that got no member is none.
    Ok(if shown.is_empty() { Tree::Null } else { Tree::Object(shown) })
}

/// Whether a value in `meta` is told: no functions, no derivations, no paths.
fn is_plain(machine: &Machine, cell: Value) -> Result<bool> {
    machine.nested(place_of(cell), || {
        let value = machine.force(cell, place_of(cell))?;
        let all = |cells: &mut dyn Iterator<Item = Value>| -> Result<bool> {
            for cell in cells {
                if !is_plain(machine, cell)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        if let Some(list) = value.as_list() {
            all(&mut list.iter())
        } else if let Some(set) = value.as_attrs() {
            Ok(!set.has(machine.names().out_path) && all(&mut set.iter().map(|(_, _, cell)| cell))?)
        } else {
            Ok(matches!(value.get_type(), Some(Type::Int | Type::Bool | Type::String | Type::Float)))
        }
    })
}

/// What the machine that builds must have.
fn required_features(drv: &Derivation) -> Result<BTreeSet<Vec<u8>>> {
    let mut features = BTreeSet::new();
    let name = "requiredSystemFeatures";
    match (&drv.structured_attrs, drv.env.get(name.as_bytes())) {
        (Some(attrs), _) => {
            let tree = Tree::parse(attrs).map_err(|message| Error::new(ErrorKind::Eval, message))?;
            let listed = tree.get(name).and_then(Tree::as_list).unwrap_or_default();
            features.extend(listed.iter().filter_map(Tree::as_text).map(|text| text.as_bytes().to_vec()));
        }
        (None, Some(words)) => {
            let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            features.extend(words.split(is_space).filter(|word| !word.is_empty()).map(<[u8]>::to_vec));
        }
        (None, None) => {}
    }
    debug_assert!(drv.env.get(STRUCTURED_ATTRS).is_none());
    let kind = drv.kind().map_err(|e| store_error(&e))?;
    if matches!(kind, Kind::Floating | Kind::Deferred | Kind::Impure) {
        features.insert(b"ca-derivations".to_vec());
    }
    Ok(features)
}
