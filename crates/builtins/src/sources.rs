//! Sources: files and trees that become store objects (`toFile`, `path`, `filterSource`, `"${./x}"`).
//!
//! A tree is walked once, hashed on the way and handed to the store with the list of what a filter left out, so that a
//! filter is called once per entry whether or not the store keeps anything.

use crate::store::{self, Failure, eval_error, lock};
use firn_eval::{Builtin, Machine, Result, SourceCopier, color_bytes, context_elements, store_error};
use firn_host::{AbsPath, Follow, Source, SourceError, dump};
use firn_memo::kept::labels;
use firn_source::{Pos, Symbol};
use firn_store::content_address::{ContentAddress, Method};
use firn_store::context::Element;
use firn_store::hash::{Algorithm, Format, Hash, Hasher, sha256};
use firn_store::nar;
use firn_store::path::StorePath;
use firn_store::store_dir::References;
use firn_value::{Context, Value};
use std::sync::Arc;

fn to_file(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let name = machine.force_string_no_context(
        args[0],
        pos,
        "while evaluating the first argument passed to builtins.toFile",
    )?;
    let text = machine.force_string(args[1], pos, "while evaluating the second argument passed to builtins.toFile")?;
    let mut references = Vec::new();
    for element in context_elements(text.context()) {
        match element {
            Element::Opaque(path) => references.push(path),
            other => return Err(refers_to_derivation(name.bytes(), &other, pos)),
        }
    }
    let dir = machine.store_dir();
    let path = dir.make_text_path(name.bytes(), &sha256(text.bytes()), &references).map_err(|e| store_error(&e))?;
    let backend = &store::store(machine).backend;
    backend.add_text(&path, text.bytes().into(), references.into(), Method::Text).map_err(|e| store_error(&e))?;
    store::allow(machine, &path)?;
    Ok(store::store_path_string(machine, &path))
}

#[cold]
fn refers_to_derivation(name: &[u8], element: &Element, pos: Pos) -> Box<firn_eval::Error> {
    let shown = [color_bytes(b"builtins.toFile"), color_bytes(name), color_bytes(&element.to_bytes())];
    let parts = [
        b"files created by ".as_slice(),
        &shown[0],
        b" may not reference derivations, but ",
        &shown[1],
        b" references ",
        &shown[2],
    ];
    eval_error(parts.concat(), pos)
}

/// What is to become a store object.
struct Addition<'a> {
    name: &'a [u8],
    path: AbsPath,
    context: Context,
    filter: Option<Value>,
    method: Method,
    expected: Option<Hash>,
}

fn filter_source(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let what = "while evaluating the second argument (the path to filter) passed to 'builtins.filterSource'";
    let (path, context) = machine.coerce_to_path(args[1], pos, what)?;
    machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.filterSource")?;
    let name = machine.path_name(&path).to_vec();
    let filter = Some(args[0]);
    add_path(machine, pos, &Addition { name: &name, path, context, filter, method: Method::Nar, expected: None })
}

fn path(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[0], pos, "while evaluating the argument passed to 'builtins.path'")?;
    let (mut path, mut name, mut filter, mut expected) = (None, &[][..], None, None);
    let mut method = Method::Nar;
    for (key, at, value) in set.iter() {
        match key.as_bytes() {
            b"path" => {
                let what = "while evaluating the 'path' attribute passed to 'builtins.path'";
                path = Some(machine.coerce_to_path(value, at, what)?);
            }
            b"name" => {
                let what = "while evaluating the `name` attribute passed to builtins.path";
                name = machine.force_string_no_context(value, at, what)?.bytes();
            }
            b"filter" => {
                let what = "while evaluating the `filter` parameter passed to builtins.path";
                machine.force_function(value, at, what)?;
                filter = Some(value);
            }
            b"recursive" => {
                let what = "while evaluating the `recursive` attribute passed to builtins.path";
                method = if machine.force_bool(value, at, what)? { Method::Nar } else { Method::Flat };
            }
            b"sha256" => {
                let what = "while evaluating the `sha256` attribute passed to builtins.path";
                let text = machine.force_string_no_context(value, at, what)?;
                expected = Some(parse_hash(machine, text.bytes(), Some(Algorithm::Sha256))?);
            }
            other => {
                let shown = color_bytes(other);
                return Err(eval_error(
                    [b"unsupported argument '".as_slice(), &shown, b"' to 'builtins.path'"].concat(),
                    at,
                ));
            }
        }
    }
    let Some((path, context)) = path else {
        return Err(eval_error("missing required 'path' attribute in the first argument to 'builtins.path'", pos));
    };
    let base = if name.is_empty() { machine.path_name(&path).to_vec() } else { Vec::new() };
    let name = if name.is_empty() { &base } else { name };
    add_path(machine, pos, &Addition { name, path, context, filter, method, expected })
}

/// A hash as `outputHash` and `sha256` take it: an empty one stands for zeros, with a warning.
pub(crate) fn parse_hash(machine: &Machine, text: &[u8], algorithm: Option<Algorithm>) -> Result<Hash> {
    let (hash, empty) = Hash::parse_allow_empty(text, algorithm).map_err(|e| store_error(&e))?;
    if hash.algorithm() == Algorithm::Blake3 {
        crate::hashes::algorithm(machine, b"blake3")?;
    }
    if empty {
        let shown = hash.to_string(Format::Sri, true);
        machine.log(format!("warning: found empty hash, assuming '{shown}'\n").as_bytes())?;
    }
    Ok(hash)
}

fn add_path(machine: &Machine, pos: Pos, addition: &Addition<'_>) -> Result<Value> {
    let added = add_realised(machine, pos, addition).map_err(|e| {
        let shown = color_bytes(addition.path.as_bytes());
        e.trace(pos, [b"while adding path '".as_slice(), &shown, b"'"].concat())
    })?;
    Ok(store::store_path_string(machine, &added))
}

fn add_realised(machine: &Machine, pos: Pos, addition: &Addition<'_>) -> Result<StorePath> {
    let store = store::store(machine);
    let dir = machine.store_dir();
    let mut path = addition.path.clone();
    let mut references: Arc<[StorePath]> = Arc::from([]);
    if dir.contains(path.as_bytes()) && !addition.context.is_empty() {
        let rewrites = store.realise(machine, addition.context)?;
        path = AbsPath::new(&store::rewrite(path.as_bytes(), &rewrites)).map_err(|e| machine.host_error(e))?;
        let (object, _) = dir.split(path.as_bytes()).map_err(|e| store_error(&e))?;
        references = store.backend.references(&object).ok().flatten().unwrap_or(references);
    }
    if let Some(hash) = addition.expected {
        let address = ContentAddress { method: addition.method, hash };
        let others = References { others: &references, itself: false };
        let wanted = dir.make_fixed_output_path(addition.name, &address, others).map_err(|e| store_error(&e))?;
        if !store.backend.is_valid(&wanted).map_err(|e| store_error(&e))? {
            let found = add_source(machine, pos, addition, &path, references)?;
            if found != wanted {
                let shown = color_bytes(path.as_bytes());
                let parts = [b"store path mismatch in (possibly filtered) path added from '".as_slice(), &shown, b"'"];
                return Err(eval_error(parts.concat(), pos));
            }
        }
        store::allow(machine, &wanted)?;
        return Ok(wanted);
    }
    add_source(machine, pos, addition, &path, references)
}

/// Hashes a tree and gives it to the store; without a filter, each place and name once per run.
fn add_source(
    machine: &Machine,
    pos: Pos,
    addition: &Addition<'_>,
    path: &AbsPath,
    references: Arc<[StorePath]>,
) -> Result<StorePath> {
    if let Some(text) = crate::files::made_text(machine, path) {
        return add_made(machine, addition, &text, references);
    }
    let root = machine.host().resolve_symlinks(path, Follow::Full).map_err(|e| machine.host_error(e))?;
    copy(machine, pos, addition, root, references)
}

/// A text of this evaluation under another name.
fn add_made(
    machine: &Machine,
    addition: &Addition<'_>,
    text: &[u8],
    references: Arc<[StorePath]>,
) -> Result<StorePath> {
    let hash = match addition.method {
        Method::Flat => Hash::of(Algorithm::Sha256, text),
        _ => nar::dump_file(text, Hasher::new(Algorithm::Sha256)).map_err(|e| store_error(&e))?.finish().0,
    };
    let address = ContentAddress { method: addition.method, hash };
    let others = References { others: &references, itself: false };
    let path =
        machine.store_dir().make_fixed_output_path(addition.name, &address, others).map_err(|e| store_error(&e))?;
    let backend = &store::store(machine).backend;
    backend.add_text(&path, text.to_vec().into(), references, addition.method).map_err(|e| store_error(&e))?;
    store::allow(machine, &path)?;
    Ok(path)
}

fn copy(
    machine: &Machine,
    pos: Pos,
    addition: &Addition<'_>,
    root: AbsPath,
    references: Arc<[StorePath]>,
) -> Result<StorePath> {
    let store = store::store(machine);
    let key = (root, addition.name.to_vec(), addition.method == Method::Nar);
    let memoised = addition.filter.is_none() && references.is_empty();
    if memoised && let Some((known, label)) = lock(&store.sources).get(&key) {
        labels::take(*label);
        return Ok(known.clone());
    }
    let (path, label) = labels::within(|| copy_anew(machine, pos, addition, &key, references));
    let path = path?;
    if memoised {
        lock(&store.sources).insert(key, (path.clone(), label));
    }
    Ok(path)
}

fn copy_anew(
    machine: &Machine,
    pos: Pos,
    addition: &Addition<'_>,
    key: &store::SourceKey,
    references: Arc<[StorePath]>,
) -> Result<StorePath> {
    let store = store::store(machine);
    let mut source = Source { root: key.0.clone(), method: addition.method, excluded: Default::default(), references };
    let hash = hash_source(machine, pos, addition, &mut source)?;
    let address = ContentAddress { method: addition.method, hash };
    let others = References { others: &source.references, itself: false };
    let path =
        machine.store_dir().make_fixed_output_path(addition.name, &address, others).map_err(|e| store_error(&e))?;
    store.backend.add_source(&path, &source, &machine.shared.host).map_err(|e| match e {
        SourceError::Host(error) => machine.host_error(error),
        SourceError::Store(error) => store_error(&error),
    })?;
    store::allow(machine, &path)?;
    if store.backend.is_read_only() {
        show(machine, &path, source)?;
    }
    Ok(path)
}

/// Shows a source at its store path: where nothing is written, evaluation may still want to read it there.
fn show(machine: &Machine, path: &StorePath, source: Source) -> Result<()> {
    let host = Arc::clone(&machine.shared.host);
    let mount = firn_host::Mount { host, root: source.root, excluded: Arc::new(source.excluded) };
    crate::fetched::show(machine, path, &mount)
}

/// The hash of a source, and in it what the filter leaves out.
fn hash_source(machine: &Machine, pos: Pos, addition: &Addition<'_>, source: &mut Source) -> Result<Hash> {
    if source.method == Method::Flat {
        let content = machine.host().read_once(&source.root).map_err(|e| machine.host_error(e))?;
        return Ok(Hash::of(Algorithm::Sha256, content.bytes()));
    }
    let mut writer = nar::Writer::new(Hasher::new(Algorithm::Sha256));
    let excluded = &mut source.excluded;
    let mut keep = |path: &AbsPath| -> std::result::Result<bool, Failure> {
        let Some(filter) = addition.filter else { return Ok(true) };
        let keep = call_filter(machine, pos, filter, path)?;
        if !keep {
            excluded.insert(path.clone());
        }
        Ok(keep)
    };
    dump(machine.host(), &source.root, &mut keep, &mut writer).map_err(|failure| failure.raise(machine))?;
    Ok(writer.finish().map_err(|e| store_error(&e))?.finish().0)
}

fn call_filter(machine: &Machine, pos: Pos, filter: Value, path: &AbsPath) -> std::result::Result<bool, Failure> {
    let file_type = machine.host().existing_type(path)?;
    let args = [
        Value::string(machine.path_text(path.as_bytes()), Context::EMPTY),
        Value::string(file_type.nix_name().as_bytes(), Context::EMPTY),
    ];
    let answer = machine.call(filter, &args, pos)?;
    Ok(machine.force_bool(answer, pos, "while evaluating the return value of the path filter function")?)
}

/// Copies paths that are coerced to strings.
pub(crate) struct StoreCopier;

impl SourceCopier for StoreCopier {
    fn copy(&self, machine: &Machine, path: &[u8], pos: Pos) -> Result<(Vec<u8>, Symbol)> {
        let path = AbsPath::new(path).map_err(|e| machine.host_error(e))?;
        let name = machine.path_name(&path).to_vec();
        let root = machine.host().resolve_symlinks(&path, Follow::Ancestors).map_err(|e| machine.host_error(e))?;
        let addition =
            Addition { name: &name, path, context: Context::EMPTY, filter: None, method: Method::Nar, expected: None };
        let copied = match crate::files::made_text(machine, &root) {
            Some(text) => add_made(machine, &addition, &text, Arc::from([]))?,
            None => self::copy(machine, pos, &addition, root, Arc::from([]))?,
        };
        let element = Symbol::intern(&Element::Opaque(copied.clone()).to_bytes());
        Ok((machine.store_dir().print(&copied), element))
    }
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "toFile", arity: 2, strict: 0b01, run: to_file },
    Builtin { name: "path", arity: 1, strict: 1, run: path },
    Builtin { name: "filterSource", arity: 2, strict: 0b10, run: filter_source },
];
