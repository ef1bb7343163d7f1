//! Files, directories, the search path and the environment: what evaluation sees of the outside (E4).
//!
//! Every path goes through [`realise_path`]: its context is made to exist, then links are followed as the builtin wants.

use crate::store::{self, Rewrites, eval_error};
use firn_eval::{Builtin, Coercion, Error, ErrorKind, Machine, Result, color_bytes, context_of};
use firn_host::{AbsPath, EntrySource, FileContent, Follow, Found, HostError, PseudoUrl, SearchEntry, SearchPath};
use firn_memo::kept::guards;
use firn_source::{Pos, Symbol};
use firn_store::context::Element;
use firn_store::hash::{Format, Hash};
use firn_store::path::{DIGEST_LEN, StorePath};
use firn_value::{AttrsBuilder, Context, Guard, Thunk, Value};
use hashbrown::HashSet;
use std::sync::{Arc, Mutex};

/// The path that a value means, with its context realised and links followed.
pub(crate) fn realise_path(machine: &Machine, pos: Pos, value: Value, follow: Option<Follow>) -> Result<AbsPath> {
    let (path, context) = machine.coerce_to_path(value, Pos::NONE, "while realising the context of a path")?;
    let realise = || {
        let rewrites = store::store(machine).realise(machine, context)?;
        let path = rewritten(machine, &path, &rewrites)?;
        match follow {
            Some(_) if made_text(machine, &path).is_some() => Ok(path),
            Some(follow) => machine.host().resolve_symlinks(&path, follow).map_err(|e| machine.host_error(e)),
            None => Ok(path),
        }
    };
    realise().map_err(|e| {
        let shown = color_bytes(path.as_bytes());
        e.trace(pos, [b"while realising the context of path '".as_slice(), &shown, b"'"].concat())
    })
}

fn rewritten(machine: &Machine, path: &AbsPath, rewrites: &Rewrites) -> Result<AbsPath> {
    if rewrites.is_empty() {
        return Ok(path.clone());
    }
    AbsPath::new(&store::rewrite(path.as_bytes(), rewrites)).map_err(|e| machine.host_error(e))
}

/// The bytes of a text that this evaluation made and that need not be on disk.
pub(crate) fn made_text(machine: &Machine, path: &AbsPath) -> Option<Arc<[u8]>> {
    let dir = machine.store_dir();
    if !dir.contains(path.as_bytes()) {
        return None;
    }
    match dir.split(path.as_bytes()) {
        Ok((object, b"")) => store::store(machine).backend.text(&object),
        _ => None,
    }
}

enum Bytes {
    Made(Arc<[u8]>),
    File(FileContent),
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Made(bytes) => bytes,
            Bytes::File(content) => content.bytes(),
        }
    }
}

fn read(machine: &Machine, path: &AbsPath) -> Result<Bytes> {
    if let Some(text) = made_text(machine, path) {
        return Ok(Bytes::Made(text));
    }
    if let Some(text) = crate::imports::internal_text(path) {
        return Ok(Bytes::Made(Arc::from(text.as_bytes())));
    }
    Ok(Bytes::File(machine.host().read_file(path).map_err(|e| machine.host_error(e))?))
}

fn read_file(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let path = realise_path(machine, pos, args[0], Some(Follow::Full))?;
    let content = read(machine, &path)?;
    if content.get().contains(&0) {
        let shown = color_bytes(path.as_bytes());
        let parts = [b"the contents of the file '".as_slice(), &shown, b"' cannot be represented as a Nix string"];
        return Err(eval_error(parts.concat(), pos));
    }
    let context = mentioned(machine, &path, content.get());
    Ok(Value::string(content.get(), context))
}

/// The context of a file's contents: of what its store object refers to, the paths whose digest stands in the file.
fn mentioned(machine: &Machine, path: &AbsPath, content: &[u8]) -> Context {
    let dir = machine.store_dir();
    let Ok((object, _)) = dir.split(path.as_bytes()) else { return Context::EMPTY };
    let Ok(Some(references)) = store::store(machine).backend.references(&object) else { return Context::EMPTY };
    let digests: HashSet<&[u8]> = content.windows(DIGEST_LEN).filter(|part| is_digest(part)).collect();
    let stands = |path: &&StorePath| digests.contains(path.digest_part().as_bytes());
    let elements: Vec<Element> = references.iter().filter(stands).cloned().map(Element::Opaque).collect();
    context_of(&elements)
}

fn is_digest(part: &[u8]) -> bool {
    part.iter().all(|&byte| firn_store::base32::digit(byte).is_some())
}

fn path_exists(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let value = machine.force(args[0], pos)?;
    let must_be_dir = value.as_str().is_some_and(|s| firn_host::must_be_dir(s.bytes()));
    let path = match realise_path(machine, pos, value, None) {
        Ok(path) => path,
        Err(error) if error.kind() == ErrorKind::Restricted => return Ok(Value::FALSE),
        Err(error) => return Err(error),
    };
    if made_text(machine, &path).is_some() {
        return Ok(Value::bool(!must_be_dir));
    }
    let exists = machine.host().path_exists(&path, must_be_dir).map_err(|e| machine.host_error(e))?;
    Ok(Value::bool(exists))
}

fn type_name(name: &str) -> Value {
    Value::string(name.as_bytes(), Context::EMPTY)
}

fn read_file_type(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let path = realise_path(machine, pos, args[0], None)?;
    if made_text(machine, &path).is_some() {
        return Ok(type_name("regular"));
    }
    let file_type = machine.host().existing_type(&path).map_err(|e| machine.host_error(e))?;
    Ok(type_name(file_type.nix_name()))
}

fn read_dir(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let path = realise_path(machine, pos, args[0], Some(Follow::Full))?;
    let (listing, guard) = machine.host().read_names(&path).map_err(|e| machine.host_error(e))?;
    let mut set = AttrsBuilder::with_capacity(listing.entries().len());
    let mut names = Vec::with_capacity(listing.entries().len());
    for (name, file_type) in listing.entries() {
        let value = match file_type {
            Some(file_type) => type_name(file_type.nix_name()),
            // NIX: what the listing does not tell is looked up when it is asked for.
            None => {
                let function = machine.shared.get_global("__readFileType").unwrap_or(Value::NULL);
                let child = path.beneath(name).map_err(|e| machine.host_error(e))?;
                Thunk::apply(function, &[Value::path(child.as_bytes())])
            }
        };
        let name = Symbol::intern(name);
        names.push((name, *file_type));
        set.push(name, Pos::NONE, value);
    }
    let set = set.finish();
    let Some((guard, set_itself)) = guard.map(Guard).zip(set.as_attrs()) else { return Ok(set) };
    guards::entries(guard, names.into_iter());
    Ok(set_itself.guarded_by(Some(guard)))
}

fn hash_file(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let name = machine.force_string_no_context(
        args[0],
        pos,
        "while evaluating the first argument passed to builtins.hashFile",
    )?;
    let algorithm = crate::hashes::algorithm(machine, name.bytes())?;
    let path = realise_path(machine, pos, args[1], Some(Follow::Full))?;
    let content = read(machine, &path)?;
    let hash = Hash::of(algorithm, content.get()).to_string(Format::Base16, false);
    Ok(Value::string(hash.as_bytes(), Context::EMPTY))
}

/// Fetches search path entries, and tells the user about those that lead nowhere, each once.
struct Entries<'a> {
    machine: &'a Machine,
    /// Why a flake could not be had: the lookup ends with it.
    failure: Mutex<Option<Box<Error>>>,
}

#[derive(Default)]
struct Warned(Mutex<HashSet<Vec<u8>>>);

impl EntrySource for Entries<'_> {
    fn fetch(&self, url: PseudoUrl<'_>) -> std::result::Result<Option<AbsPath>, HostError> {
        match (crate::fetch_entry(self.machine, url), url) {
            (Ok(path), _) => Ok(Some(path)),
            (Err(_), PseudoUrl::Tarball(_)) => Ok(None),
            (Err(error), PseudoUrl::Flake(reference)) => {
                *store::lock(&self.failure) = Some(error);
                Err(HostError::NotInSearchPath(reference.into()))
            }
        }
    }

    fn warn(&self, message: &[u8]) {
        let warned = self.machine.shared.extensions.get::<Warned>();
        let mut warned = store::lock(&warned.0);
        // A machine that may not print leaves the warning to the next that looks.
        if warned.contains(message) {
            // Alone, this would have been printed here.
            self.machine.heard();
        } else if self.machine.log(&[b"warning: ", message, b"\n"].concat()).is_ok() {
            warned.insert(message.to_vec());
        }
    }
}

/// Where a search path has a name; entries that name downloads or flakes are fetched.
pub fn find_in_search_path(machine: &Machine, search: &SearchPath, name: &[u8]) -> Result<Found> {
    let entries = Entries { machine, failure: Mutex::default() };
    let found = machine.host().find_file(search, name, &entries);
    match store::lock(&entries.failure).take() {
        Some(failure) => Err(failure),
        None => found.map_err(|e| machine.host_error(e)),
    }
}

fn find_file(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[0], pos, "while evaluating the first argument passed to builtins.findFile")?;
    let mut entries = Vec::with_capacity(list.len());
    for item in list.iter() {
        entries.push(search_entry(machine, pos, item)?);
    }
    let name = machine.force_string_no_context(
        args[1],
        pos,
        "while evaluating the second argument passed to builtins.findFile",
    )?;
    let search = SearchPath { entries: entries.into(), pure: machine.settings().pure_eval };
    Ok(match find_in_search_path(machine, &search, name.bytes()).map_err(|e| e.at(pos))? {
        Found::Path(path) => Value::path(path.as_bytes()),
        Found::Builtin(path) => Value::path(&crate::imports::internal_path(&path)),
    })
}

fn search_entry(machine: &Machine, pos: Pos, item: Value) -> Result<SearchEntry> {
    let names = machine.names();
    let set = machine.force_attrs(item, pos, "while evaluating an element of the list passed to builtins.findFile")?;
    let prefix = match set.get(names.prefix) {
        None => Arc::default(),
        Some(prefix) => machine
            .force_string_no_context(
                prefix,
                pos,
                "while evaluating the `prefix` attribute of an element of the list passed to builtins.findFile",
            )?
            .bytes()
            .into(),
    };
    let Some(path) = set.get(names.path) else {
        let message = format!("attribute '{}' missing", firn_eval::colored("path"));
        return Err(Error::new(ErrorKind::Type, message).trace(Pos::NONE, "in an element of the __nixPath"));
    };
    let context = "while evaluating the `path` attribute of an element of the list passed to builtins.findFile";
    let path = machine.coerce_to_string(path, pos, context, Coercion::PLAIN)?;
    let (bytes, context) = path.as_str().map_or((&[][..], Context::EMPTY), |s| (s.bytes(), s.context()));
    let store = store::store(machine);
    if let Some(invalid) = store.first_invalid(&firn_eval::context_elements(context))? {
        let shown = [color_bytes(bytes), color_bytes(invalid.as_bytes())];
        let parts = [b"cannot find '".as_slice(), &shown[0], b"', since path '", &shown[1], b"' is not valid"];
        return Err(eval_error(parts.concat(), pos));
    }
    let rewrites = store.realise(machine, context)?;
    Ok(SearchEntry { prefix, path: store::rewrite(bytes, &rewrites).into() })
}

fn get_env(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let name = machine.force_string_no_context(
        args[0],
        pos,
        "while evaluating the first argument passed to builtins.getEnv",
    )?;
    let settings = machine.settings();
    let value = if settings.restrict_eval || settings.pure_eval { None } else { machine.host().env(name.bytes()) };
    Ok(Value::string(value.as_deref().unwrap_or_default(), Context::EMPTY))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "readFile", arity: 1, strict: 1, run: read_file },
    Builtin { name: "pathExists", arity: 1, strict: 1, run: path_exists },
    Builtin { name: "readFileType", arity: 1, strict: 1, run: read_file_type },
    Builtin { name: "readDir", arity: 1, strict: 1, run: read_dir },
    Builtin { name: "hashFile", arity: 2, strict: 0b01, run: hash_file },
    Builtin { name: "findFile", arity: 2, strict: 0b01, run: find_file },
    Builtin { name: "getEnv", arity: 1, strict: 1, run: get_env },
];
