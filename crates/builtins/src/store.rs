//! What the builtins keep of the store during one evaluation: the store itself, hashes of derivations, copied sources.
//!
//! [`install`](crate::install) attaches a store that writes nothing; a caller with a real one replaces it by
//! [`attach`] before evaluation begins.

use firn_eval::{Copier, Error, ErrorKind, Machine, Result, Shared, color_bytes, context_elements, store_error};
use firn_host::{AbsPath, EvalOnly, HostError, Store};
use firn_memo::kept::labels;
use firn_memo::kept::parts::DerivationHash;
use firn_source::Pos;
use firn_store::context::{Built, Element};
use firn_store::derivation::{Derivation, HashModulo};
use firn_store::path::StorePath;
use firn_value::{Context, Label, Value};
use hashbrown::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The store of an evaluation and what is remembered about it.
pub(crate) struct EvalStore {
    pub backend: Arc<dyn Store>,
    modulo: Mutex<HashMap<StorePath, (HashModulo, Label)>>,
    /// Store paths of sources, and what copying them observed.
    pub sources: Mutex<HashMap<SourceKey, (StorePath, Label)>>,
    /// Values of imported files that are not on disk, and what importing them observed.
    pub imports: Mutex<HashMap<Vec<u8>, (Value, Label)>>,
}

/// Where a source lies, its name, and whether it is an archive.
pub(crate) type SourceKey = (AbsPath, Vec<u8>, bool);

/// Placeholders and the paths they stand for.
pub(crate) type Rewrites = Vec<(Vec<u8>, Vec<u8>)>;

/// Makes `store` the store of evaluations with this shared state.
pub fn attach(shared: &Shared, store: Arc<dyn Store>) {
    shared.extensions.set(Arc::new(EvalStore {
        backend: store,
        modulo: Mutex::default(),
        sources: Mutex::default(),
        imports: Mutex::default(),
    }));
    shared.extensions.set(Arc::new(Copier(Arc::new(crate::sources::StoreCopier))));
}

/// The derivation in a file that this evaluation made, or that its store has.
pub fn derivation_at(machine: &Machine, path: &StorePath) -> Result<Derivation> {
    store(machine).read_derivation(machine, path)
}

/// The hash by which dependents know a derivation that this evaluation made, or that its store has.
pub fn hash_modulo_at(machine: &Machine, path: &StorePath) -> Result<HashModulo> {
    store(machine).hash_modulo(machine, path)
}

/// The hashes of derivations that this evaluation knows, of those that `contexts` name.
pub fn hashes_in(shared: &Shared, contexts: impl Iterator<Item = Context>) -> Vec<DerivationHash> {
    let (store, dir) = (store_of(shared), &shared.store_dir);
    let known = lock(&store.modulo);
    let mut found = std::collections::BTreeMap::new();
    for element in contexts.flat_map(context_elements) {
        let path = match element {
            Element::Opaque(_) => continue,
            Element::DrvDeep(path) => path,
            Element::Built(built) => built.drv,
        };
        let hash = match known.get(&path) {
            Some((HashModulo::Regular(hash), _)) => (0, *hash),
            Some((HashModulo::Fixed(hash), _)) => (1, *hash),
            Some((HashModulo::Deferred, _)) => (2, [0; 32]),
            None => continue,
        };
        found.insert(dir.print(&path), hash);
    }
    found.into_iter().map(|(path, (kind, hash))| (path, kind, hash)).collect()
}

/// Tells this evaluation the hashes of derivations that it did not make; they follow from their names.
pub fn know_hashes(machine: &Machine, hashes: &[DerivationHash]) {
    let (store, dir) = (store(machine), machine.store_dir());
    let mut known = lock(&store.modulo);
    for (path, kind, hash) in hashes {
        let hash = match kind {
            0 => HashModulo::Regular(*hash),
            1 => HashModulo::Fixed(*hash),
            _ => HashModulo::Deferred,
        };
        if let Ok(path) = dir.parse(path) {
            known.entry(path).or_insert((hash, 0));
        }
    }
}

/// Attaches a store that writes nothing.
pub(crate) fn attach_eval_only(shared: &Shared) {
    attach(shared, Arc::new(EvalOnly::new(shared.store_dir.clone(), Arc::clone(&shared.host))));
}

/// The store of this machine's evaluation.
pub(crate) fn store(machine: &Machine) -> Arc<EvalStore> {
    store_of(&machine.shared)
}

fn store_of(shared: &Shared) -> Arc<EvalStore> {
    shared.extensions.find().unwrap_or_else(|| {
        attach_eval_only(shared);
        shared.extensions.find().expect("just attached")
    })
}

/// Unlocks whatever a panicking thread may have left locked: the tables only grow.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EvalStore {
    /// The derivation in a file of the store.
    pub fn read_derivation(&self, machine: &Machine, path: &StorePath) -> Result<Derivation> {
        let dir = machine.store_dir();
        let name = path.derivation_name().map_err(|e| store_error(&e))?.as_bytes();
        // Not through the host: what restricted evaluation may read of the store does not restrict the store itself.
        let valid = self.backend.is_valid(path).map_err(|e| store_error(&e))?;
        let text = if valid { self.backend.read(path).map_err(|e| store_error(&e))? } else { None };
        match text {
            Some(text) => Derivation::parse_aterm(dir, name, &text).map_err(|e| store_error(&e)),
            None => Err(invalid_path(machine, path)),
        }
    }

    /// The hash by which dependents know a derivation; read from its file if this evaluation did not make it.
    pub fn hash_modulo(&self, machine: &Machine, path: &StorePath) -> Result<HashModulo> {
        if let Some(&(known, label)) = lock(&self.modulo).get(path) {
            labels::take(label);
            return Ok(known);
        }
        let (hash, label) = labels::within(|| {
            let drv = self.read_derivation(machine, path)?;
            drv.hash_modulo::<Failure>(machine.store_dir(), &mut |input| Ok(self.hash_modulo(machine, input)?))
                .map_err(|failure| failure.raise(machine))
        });
        let hash = hash?;
        lock(&self.modulo).insert(path.clone(), (hash, label));
        Ok(hash)
    }

    /// Remembers the hash of a derivation that this evaluation made: nothing was asked to know it.
    pub fn remember_hash(&self, path: &StorePath, hash: HashModulo) {
        lock(&self.modulo).insert(path.clone(), (hash, 0));
    }

    /// What an object refers to: as the store says or, for a derivation on disk, as its file says.
    pub fn references(&self, machine: &Machine, path: &StorePath) -> Result<Arc<[StorePath]>> {
        if let Some(known) = self.backend.references(path).map_err(|e| store_error(&e))? {
            return Ok(known);
        }
        if path.is_derivation() {
            return Ok(self.read_derivation(machine, path)?.references().into());
        }
        if !self.backend.is_valid(path).map_err(|e| store_error(&e))? {
            return Err(invalid_path(machine, path));
        }
        let shown = color_bytes(&machine.store_dir().print(path));
        let parts = [b"what '".as_slice(), &shown, b"' refers to is not known: this evaluation has no store database"];
        Err(Error::new(ErrorKind::Store, parts.concat()))
    }

    /// The object and everything it refers to, in order of paths.
    pub fn closure(&self, machine: &Machine, path: &StorePath) -> Result<std::collections::BTreeSet<StorePath>> {
        let mut all = std::collections::BTreeSet::from([path.clone()]);
        let mut todo = vec![path.clone()];
        while let Some(next) = todo.pop() {
            for reference in self.references(machine, &next)?.iter() {
                if all.insert(reference.clone()) {
                    todo.push(reference.clone());
                }
            }
        }
        Ok(all)
    }

    /// Refuses a path that does not exist, unless nothing is written anyway.
    pub fn ensure(&self, machine: &Machine, path: &StorePath) -> Result<()> {
        if self.backend.is_read_only() || self.backend.is_valid(path).map_err(|e| store_error(&e))? {
            return Ok(());
        }
        let shown = color_bytes(&machine.store_dir().print(path));
        let parts = [b"path '".as_slice(), &shown, b"' is required, but there is no substituter that can build it"];
        Err(Error::new(ErrorKind::Store, parts.concat()))
    }

    /// The first path of a context that does not exist.
    pub fn first_invalid(&self, elements: &[Element]) -> Result<Option<StorePath>> {
        for element in elements {
            let path = element.base_path();
            if !self.backend.is_valid(path).map_err(|e| store_error(&e))? {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    /// Makes sure that everything in a context exists, building outputs; gives the paths of outputs that strings have
    /// placeholders for.
    pub fn realise(&self, machine: &Machine, context: Context) -> Result<Rewrites> {
        if context.is_empty() {
            return Ok(Rewrites::new());
        }
        let elements = context_elements(context);
        if let Some(path) = self.first_invalid(&elements)? {
            return Err(invalid_path(machine, &path));
        }
        let built: Vec<&Built> =
            elements.iter().filter_map(|e| if let Element::Built(b) = e { Some(b) } else { None }).collect();
        let Some(first) = built.first() else { return Ok(Rewrites::new()) };
        if !machine.settings().allow_import_from_derivation {
            let shown = color_bytes(&first.display(machine.store_dir()));
            let parts = [
                b"cannot build '".as_slice(),
                &shown,
                b"' during evaluation because the option 'allow-import-from-derivation' is disabled",
            ];
            return Err(Error::new(ErrorKind::Eval, parts.concat()));
        }
        if machine.settings().trace_import_from_derivation {
            let shown = color_bytes(&first.display(machine.store_dir()));
            let parts = [b"warning: built '".as_slice(), &shown, b"' during evaluation due to an import from derivation\n"];
            machine.log(&parts.concat())?;
        }
        let mut rewrites = Rewrites::new();
        for (built, path) in self.outputs(machine, &built)? {
            allow(machine, &path)?;
            if machine.settings().pure_eval || machine.settings().restrict_eval {
                // Where the closure is not known, what it refers to stays out of sight.
                for part in self.closure(machine, &path).unwrap_or_default() {
                    allow(machine, &part)?;
                }
            }
            if machine.settings().features.ca_derivations {
                rewrites.push((built.placeholder().render().into_bytes(), machine.store_dir().print(&path)));
            }
        }
        Ok(rewrites)
    }

    /// Where the outputs are, those that do not exist built together.
    fn outputs<'a>(&self, machine: &Machine, wanted: &[&'a Built]) -> Result<Vec<(&'a Built, StorePath)>> {
        let mut found = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for &built in wanted {
            match self.existing_output(machine, built)? {
                Some(path) => found.push((built, path)),
                None => missing.push(built),
            }
        }
        if !missing.is_empty() {
            let request: Vec<Built> = missing.iter().map(|&built| built.clone()).collect();
            let paths = self.backend.build(&request).map_err(|e| store_error(&e))?;
            found.extend(missing.into_iter().zip(paths));
        }
        Ok(found)
    }

    /// The path of an output, if it is known without building and exists.
    fn existing_output(&self, machine: &Machine, built: &Built) -> Result<Option<StorePath>> {
        if built.is_dynamic() {
            return Ok(None);
        }
        let drv = self.read_derivation(machine, &built.drv)?;
        let Some(output) = drv.outputs.get(&built.output[..]) else { return Ok(None) };
        let path = output.path(machine.store_dir(), &drv.name, &built.output).map_err(|e| store_error(&e))?;
        match path {
            Some(path) if self.backend.is_valid(&path).map_err(|e| store_error(&e))? => Ok(Some(path)),
            _ => Ok(None),
        }
    }
}

/// Lets pure and restricted evaluation read a store object.
pub(crate) fn allow(machine: &Machine, path: &StorePath) -> Result<()> {
    let place = AbsPath::new(&machine.store_dir().print(path)).map_err(|e| machine.host_error(e))?;
    machine.host().allow(place);
    Ok(())
}

#[cold]
pub(crate) fn invalid_path(machine: &Machine, path: &StorePath) -> Box<Error> {
    let shown = color_bytes(&machine.store_dir().print(path));
    Error::new(ErrorKind::Store, [b"path '".as_slice(), &shown, b"' is not valid"].concat())
}

/// Replaces placeholders in a string.
pub(crate) fn rewrite(text: &[u8], rewrites: &Rewrites) -> Vec<u8> {
    let mut text = text.to_vec();
    for (from, to) in rewrites {
        let mut start = 0;
        while let Some(at) = text[start..].windows(from.len()).position(|part| part == from) {
            text.splice(start + at..start + at + from.len(), to.iter().copied());
            start += at + to.len();
        }
    }
    text
}

/// The string of a store path with that path as its context.
pub(crate) fn store_path_string(machine: &Machine, path: &StorePath) -> Value {
    let element = Element::Opaque(path.clone());
    Value::string(&machine.store_dir().print(path), firn_eval::context_of([&element]))
}

/// An error on the way through the store or the host, which know no evaluation errors.
pub(crate) enum Failure {
    Store(firn_store::Error),
    Host(HostError),
    Eval(Box<Error>),
}

impl From<firn_store::Error> for Failure {
    fn from(error: firn_store::Error) -> Failure {
        Failure::Store(error)
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Failure {
        Failure::Host(error)
    }
}

impl From<Box<Error>> for Failure {
    fn from(error: Box<Error>) -> Failure {
        Failure::Eval(error)
    }
}

impl Failure {
    /// The evaluation error that it is.
    #[cold]
    pub fn raise(self, machine: &Machine) -> Box<Error> {
        match self {
            Failure::Store(error) => store_error(&error),
            Failure::Host(error) => machine.host_error(error),
            Failure::Eval(error) => error,
        }
    }
}

/// An evaluation error at a place.
#[cold]
pub(crate) fn eval_error(message: impl Into<Vec<u8>>, pos: Pos) -> Box<Error> {
    Error::new(ErrorKind::Eval, message).at(pos)
}
