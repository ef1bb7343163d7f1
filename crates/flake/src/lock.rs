//! Locking: the graph of a flake's inputs, taken from the old lock file where that still holds, fetched where not.
//!
//! 1. Overrides are collected on the way down: those of the command line first, then those of flakes nearer to the root.
//! 2. An input that follows another is noted as such; whether the other exists is checked at the end.
//! 3. An input that is locked and still asked for in the same words keeps its lock, without being fetched.
//! 4. Any other is fetched, read, and its inputs locked in turn, starting from its own lock file.

use std::collections::{BTreeMap, BTreeSet};

use firn_builtins::{fetch_error, fetch_input, fetcher};
use firn_eval::{Error, ErrorKind, Machine, Result, colored};
use firn_host::fetch::{Attr, UseRegistries, shown};
use firn_host::AbsPath;
use firn_source::Pos;

use crate::edit::LockFlags;
use crate::lock_file::{Edge, InputPath, LockFile, Locked, Node, print_input_path};
use crate::read::{Refs, read_flake, resolve, store_place};
use crate::{Flake, FlakeInput, FlakeRef, get_flake};

/// Another reference for an input, and who asks for it.
#[derive(Clone)]
struct Override {
    input: FlakeInput,
    /// The `flake.nix` that relative paths start from.
    source: AbsPath,
    /// The input whose flake asks; none for the command line.
    parent: Option<InputPath>,
}

/// A node of an earlier lock file.
#[derive(Clone, Copy)]
struct Old<'a> {
    file: &'a LockFile,
    node: usize,
}

/// Where the walk is.
struct Place<'a> {
    /// The node whose inputs are locked.
    node: usize,
    /// The way to it.
    path: &'a [String],
    /// What it was in an earlier lock file.
    old: Option<Old<'a>>,
    /// What `follows` in the earlier lock file starts from.
    follows: &'a [String],
    /// Its `flake.nix`.
    source: &'a AbsPath,
    /// Whether inputs come from a lock file that needs no confirming.
    trusted: bool,
}

/// The walk.
pub(crate) struct Locker<'a> {
    machine: &'a Machine,
    flags: &'a LockFlags,
    which: UseRegistries,
    overrides: BTreeMap<InputPath, Override>,
    used: BTreeSet<InputPath>,
    seen: BTreeSet<InputPath>,
    parents: Vec<FlakeRef>,
    /// The graph as far as it is known.
    pub file: LockFile,
    /// Nodes that were fetched, and where their flakes (or trees) are.
    pub places: Vec<(usize, AbsPath)>,
}

/// The `flake.lock` beside a `flake.nix`; an empty graph if there is none.
pub(crate) fn read_lock_file(machine: &Machine, path: &AbsPath) -> Result<LockFile> {
    let failed = |error| machine.host_error(error);
    if !machine.host().path_exists(path, false).map_err(failed)? {
        return Ok(LockFile::default());
    }
    let real = machine.host().resolve_symlinks(path, firn_host::Follow::Full).map_err(failed)?;
    let text = machine.host().read_file(&real).map_err(failed)?;
    LockFile::parse(&*fetcher(machine)?, text.bytes(), &path.to_string()).map_err(|e| fetch_error(&e))
}

pub(crate) fn lock_file_of(machine: &Machine, flake_nix: &AbsPath) -> Result<AbsPath> {
    let dir = flake_nix.parent().unwrap_or_else(AbsPath::root);
    dir.beneath(b"flake.lock").map_err(|e| machine.host_error(e))
}

impl<'a> Locker<'a> {
    pub fn new(machine: &'a Machine, flags: &'a LockFlags, which: UseRegistries, flake: &Flake) -> Locker<'a> {
        let given = flags.overrides.iter().map(|(path, reference)| {
            let input = FlakeInput { reference: Some(reference.clone()), ..FlakeInput::default() };
            (path.clone(), Override { input, source: flake.path.clone(), parent: None })
        });
        Locker {
            machine,
            flags,
            which,
            overrides: given.collect(),
            used: BTreeSet::new(),
            seen: BTreeSet::new(),
            parents: Vec::new(),
            file: LockFile::default(),
            places: vec![(0, flake.dir())],
        }
    }

    /// Locks the inputs of the root.
    pub fn run(&mut self, flake: &Flake, old: Option<&LockFile>) -> Result<()> {
        let old = old.map(|file| Old { file, node: 0 });
        let place = Place { node: 0, path: &[], old, follows: &[], source: &flake.path, trusted: false };
        self.inputs(&flake.inputs, &place)?;
        let fetcher = fetcher(self.machine)?;
        for (path, reference) in self.flags.overrides.iter().filter(|(path, _)| !self.used.contains(*path)) {
            let parts = (shown(print_input_path(path)), shown(reference.show()));
            fetcher.warn(&format!("the flag '--override-input {} {}' does not match any input", parts.0, parts.1));
        }
        for path in self.flags.updates.iter().filter(|path| !self.seen.contains(*path)) {
            fetcher.warn(&format!("'{}' does not match any input of this flake", shown(print_input_path(path))));
        }
        self.file.check().map_err(|e| fetch_error(&e))
    }

    fn add_overrides(&mut self, input: &FlakeInput, path: &[String], place: &Place<'_>) {
        for (id, inner) in &input.overrides {
            let at: InputPath = path.iter().cloned().chain([id.clone()]).collect();
            if inner.reference.is_some() || inner.follows.is_some() {
                self.overrides.entry(at.clone()).or_insert_with(|| Override {
                    input: inner.clone(),
                    source: place.source.clone(),
                    parent: Some(place.path.to_vec()),
                });
            }
            self.add_overrides(inner, &at, place);
        }
    }

    fn inputs(&mut self, inputs: &BTreeMap<String, FlakeInput>, place: &Place<'_>) -> Result<()> {
        for (id, input) in inputs {
            let path: InputPath = place.path.iter().cloned().chain([id.clone()]).collect();
            self.add_overrides(input, &path, place);
        }
        let fetcher = fetcher(self.machine)?;
        for path in self.overrides.keys() {
            if let Some((last, above)) = path.split_last()
                && above == place.path
                && !inputs.contains_key(last)
            {
                let parts = (shown(print_input_path(place.path)), shown(last));
                fetcher.warn(&format!("input '{}' has an override for a non-existent input '{}'", parts.0, parts.1));
            }
        }
        for (id, input) in inputs {
            let path: InputPath = place.path.iter().cloned().chain([id.clone()]).collect();
            self.input(id, input, &path, place).map_err(|error| {
                let shown = colored(print_input_path(&path));
                error.trace(Pos::NONE, format!("while updating the flake input '{shown}'"))
            })?;
        }
        Ok(())
    }

    fn input(&mut self, id: &str, declared: &FlakeInput, path: &InputPath, place: &Place<'_>) -> Result<()> {
        let changed = self.overrides.get(path).cloned();
        if changed.is_some() {
            self.used.insert(path.clone());
        }
        self.seen.insert(path.clone());
        let mut input = changed.as_ref().map_or_else(|| declared.clone(), |changed| changed.input.clone());
        input.is_flake = declared.is_flake;
        if let Some(follows) = input.follows {
            self.file.nodes[place.node].inputs.insert(id.to_owned(), Edge::Follows(follows));
            return Ok(());
        }
        let reference = match input.reference.take() {
            Some(reference) => reference,
            None => {
                let attrs = [("type".to_owned(), Attr::from("indirect")), ("id".to_owned(), id.into())].into();
                FlakeRef::from_attrs(&fetcher(self.machine)?.settings, attrs).map_err(|e| fetch_error(&e))?
            }
        };
        let source = changed.as_ref().map_or_else(|| place.source.clone(), |changed| changed.source.clone());
        let parent = reference.input.relative_path().map(|_| match &changed {
            Some(changed) => changed.parent.clone().unwrap_or_default(),
            None => place.path.to_vec(),
        });
        let wanted = Wanted { id, path, reference, source, parent, is_flake: input.is_flake, declared };
        match self.kept(&wanted, place) {
            Some(old) => self.keep(&wanted, place, old),
            None => self.renew(&wanted, place),
        }
    }

    /// The node of the earlier lock file, if it still is what is wanted.
    fn kept<'o>(&self, wanted: &Wanted<'_>, place: &Place<'o>) -> Option<Old<'o>> {
        let old = place.old?;
        if self.flags.updates.contains(wanted.path) || self.flags.overrides.contains_key(wanted.path) {
            return None;
        }
        let Edge::Node(node) = old.file.nodes[old.node].inputs.get(wanted.id)? else { return None };
        let locked = old.file.nodes[*node].locked.as_ref()?;
        let same = locked.original.canonical() == wanted.reference.canonical() && locked.parent == wanted.parent;
        same.then_some(Old { file: old.file, node: *node })
    }

    fn add_node(&mut self, place: &Place<'_>, id: &str, locked: Locked) -> usize {
        let node = self.file.nodes.len();
        self.file.nodes.push(Node { locked: Some(locked), inputs: BTreeMap::new() });
        self.file.nodes[place.node].inputs.insert(id.to_owned(), Edge::Node(node));
        node
    }

    fn keep(&mut self, wanted: &Wanted<'_>, place: &Place<'_>, old: Old<'_>) -> Result<()> {
        let Some(locked) = old.file.nodes[old.node].locked.clone() else { return Ok(()) };
        let node = self.add_node(place, wanted.id, locked.clone());
        let below = |path: &InputPath| path.len() > wanted.path.len() && path.starts_with(wanted.path);
        let mut refetch = self.flags.updates.iter().any(below);
        let mut inputs = BTreeMap::new();
        if !refetch {
            match self.inputs_of_lock(wanted, place, old) {
                Some(found) => inputs = found,
                None => refetch = true,
            }
        }
        if !refetch {
            // Nothing is fetched; what lies below may still be overridden from above.
            let next = Place { node, path: wanted.path, old: Some(old), source: place.source, trusted: true, ..*place };
            return self.inputs(&inputs, &next);
        }
        let flake = self.flake(wanted, &locked.locked, self.which)?;
        self.places.push((node, flake.dir()));
        let next =
            Place { node, path: wanted.path, old: Some(old), follows: place.follows, source: &flake.path, trusted: false };
        self.inputs(&flake.inputs, &next)
    }

    /// The inputs of a locked node as if a flake had declared them; none if the flake itself has to be asked.
    fn inputs_of_lock(&self, wanted: &Wanted<'_>, place: &Place<'_>, old: Old<'_>) -> Option<BTreeMap<String, FlakeInput>> {
        let mut inputs = BTreeMap::new();
        for (id, edge) in &old.file.nodes[old.node].inputs {
            let input = match edge {
                Edge::Node(node) => {
                    let locked = old.file.nodes[*node].locked.as_ref()?;
                    let reference = Some(locked.original.clone());
                    FlakeInput { reference, is_flake: locked.is_flake, ..FlakeInput::default() }
                }
                Edge::Follows(follows) => {
                    let at: InputPath = wanted.path.iter().cloned().chain([id.clone()]).collect();
                    if !place.trusted && !self.overrides.contains_key(&at) {
                        return None;
                    }
                    let follows = place.follows.iter().chain(follows).cloned().collect();
                    FlakeInput { follows: Some(follows), ..FlakeInput::default() }
                }
            };
            inputs.insert(id.clone(), input);
        }
        Some(inputs)
    }

    /// The flake of an input; relative ones lie in the tree of whoever names them.
    fn flake(&self, wanted: &Wanted<'_>, reference: &FlakeRef, which: UseRegistries) -> Result<Flake> {
        match wanted.relative_place(self.machine)? {
            Some(tree) => {
                let refs = Refs { original: reference, resolved: reference, locked: reference };
                read_flake(self.machine, refs, &tree, wanted.path)
            }
            None => get_flake(self.machine, reference, which, wanted.path),
        }
    }

    fn renew(&mut self, wanted: &Wanted<'_>, place: &Place<'_>) -> Result<()> {
        let input = &wanted.reference.input;
        if !self.flags.allow_unlocked && !input.is_locked() && input.relative_path().is_none() {
            let shown = colored(print_input_path(wanted.path));
            let message = format!("cannot update unlocked flake input '{shown}' in pure mode");
            return Err(Error::new(ErrorKind::Host, message));
        }
        // An override by hand is not written down as what was asked for: the next update would undo it otherwise.
        let by_hand = self.flags.overrides.contains_key(wanted.path);
        let declared = wanted.declared.reference.clone().filter(|_| by_hand);
        let original = declared.unwrap_or_else(|| wanted.reference.clone());
        let parent = wanted.parent.clone();
        if !wanted.is_flake {
            let (tree, locked) = self.tree(wanted)?;
            let node = self.add_node(place, wanted.id, Locked { locked, original, is_flake: false, parent });
            self.places.push((node, tree));
            return Ok(());
        }
        let which = if by_hand { UseRegistries::All } else { self.which };
        let flake = self.flake(wanted, &wanted.reference, which)?;
        let locked = flake.locked.clone();
        let node = self.add_node(place, wanted.id, Locked { locked, original, is_flake: true, parent });
        if self.parents.contains(&wanted.reference) {
            let message = format!("found circular import of flake '{}'", colored(wanted.reference.show()));
            return Err(Error::new(ErrorKind::Host, message));
        }
        self.parents.push(wanted.reference.clone());
        self.places.push((node, flake.dir()));
        let own = read_lock_file(self.machine, &lock_file_of(self.machine, &flake.path)?)?;
        let next = Place {
            node,
            path: wanted.path,
            old: Some(Old { file: &own, node: 0 }),
            follows: wanted.path,
            source: &flake.path,
            trusted: false,
        };
        self.inputs(&flake.inputs, &next)?;
        self.parents.pop();
        Ok(())
    }

    /// A tree that is no flake.
    fn tree(&self, wanted: &Wanted<'_>) -> Result<(AbsPath, FlakeRef)> {
        if let Some(place) = wanted.relative_place(self.machine)? {
            return Ok((place, wanted.reference.clone()));
        }
        let (input, _) = resolve(self.machine, &wanted.reference, self.which)?;
        let tree = fetch_input(self.machine, &input)?;
        let locked = FlakeRef { input: tree.input.clone(), dir: wanted.reference.dir.clone() };
        Ok((store_place(self.machine, &tree.store_path)?, locked))
    }
}

/// An input as it is to be.
struct Wanted<'a> {
    id: &'a str,
    path: &'a InputPath,
    reference: FlakeRef,
    /// The `flake.nix` that relative paths start from.
    source: AbsPath,
    parent: Option<InputPath>,
    is_flake: bool,
    declared: &'a FlakeInput,
}

impl Wanted<'_> {
    fn relative_place(&self, machine: &Machine) -> Result<Option<AbsPath>> {
        let Some(path) = self.reference.input.relative_path() else { return Ok(None) };
        let dir = self.source.parent().unwrap_or_else(AbsPath::root);
        dir.join(path.as_bytes()).map(Some).map_err(|e| machine.host_error(e))
    }
}
