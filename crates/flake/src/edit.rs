//! `lock_flake`: a flake with all its inputs locked, and its `flake.lock` written if it changed.

use std::collections::{BTreeMap, BTreeSet};

use firn_builtins::{Moment, fetch_error, fetcher};
use firn_eval::{Error, ErrorKind, Machine, Result, colored, missing_feature};
use firn_host::AbsPath;
use firn_host::fetch::{FetchError, UseRegistries, shown};
use firn_source::Pos;

use crate::lock::{Locker, lock_file_of, read_lock_file};
use crate::lock_file::{Edge, InputPath, LockFile, print_input_path};
use crate::read::{Refs, read_flake};
use crate::{Flake, FlakeRef, ParseOptions, get_flake};

/// What may happen to lock files.
#[derive(Clone, Debug)]
pub struct LockFlags {
    /// The earlier lock file counts for nothing.
    pub recreate: bool,
    /// The lock file may change.
    pub update: bool,
    /// A changed lock file is written.
    pub write: bool,
    /// Registries may be looked into.
    pub use_registries: bool,
    /// Inputs that nothing pins may be locked now.
    pub allow_unlocked: bool,
    /// A lock file that would name an input that nothing pins is an error, not a warning.
    pub fail_on_unlocked: bool,
    /// The lock file is committed.
    pub commit: bool,
    /// The first line of that commit's message; empty for the usual one.
    pub commit_summary: String,
    /// Read this lock file instead of the flake's.
    pub reference_file: Option<AbsPath>,
    /// Write this file instead of the flake's.
    pub output_file: Option<AbsPath>,
    /// Other references for inputs.
    pub overrides: BTreeMap<InputPath, FlakeRef>,
    /// Inputs whose locks count for nothing.
    pub updates: BTreeSet<InputPath>,
}

impl Default for LockFlags {
    fn default() -> LockFlags {
        LockFlags {
            recreate: false,
            update: true,
            write: true,
            use_registries: true,
            allow_unlocked: true,
            fail_on_unlocked: false,
            commit: false,
            commit_summary: String::new(),
            reference_file: None,
            output_file: None,
            overrides: BTreeMap::new(),
            updates: BTreeSet::new(),
        }
    }
}

/// A flake whose inputs are locked.
#[derive(Clone, Debug)]
pub struct LockedFlake {
    /// The flake.
    pub flake: Flake,
    /// Its inputs.
    pub lock_file: LockFile,
    /// Nodes that are already fetched, the root among them, and where.
    pub places: Vec<(usize, AbsPath)>,
}

/// Locks the flake that a reference means.
pub fn lock_flake(machine: &Machine, reference: &FlakeRef, flags: &LockFlags) -> Result<LockedFlake> {
    let which = if flags.use_registries { UseRegistries::All } else { UseRegistries::No };
    let flake = get_flake(machine, reference, which, &[])?;
    lock(machine, reference, flags, flake)
}

/// Locks the flake in a directory that evaluation already sees.
pub fn lock_flake_at(machine: &Machine, dir: &AbsPath, flags: &LockFlags) -> Result<LockedFlake> {
    let fetcher = fetcher(machine)?;
    // NIX: such a flake has no reference of its own; this one shows up in messages only.
    let reference = FlakeRef::parse(&fetcher, "flake:get-flake", ParseOptions::default()).map_err(|e| fetch_error(&e))?;
    let refs = Refs { original: &reference, resolved: &reference, locked: &reference };
    let flake = read_flake(machine, refs, dir, &[])?;
    lock(machine, &reference, flags, flake)
}

fn lock(machine: &Machine, top: &FlakeRef, flags: &LockFlags, flake: Flake) -> Result<LockedFlake> {
    if !machine.settings().features.flakes {
        return Err(missing_feature("flakes"));
    }
    let shown = colored(flake.locked.show());
    locked(machine, top, flags, flake)
        .map_err(|error| error.trace(Pos::NONE, format!("while updating the lock file of flake '{shown}'")))
}

fn locked(machine: &Machine, top: &FlakeRef, flags: &LockFlags, mut flake: Flake) -> Result<LockedFlake> {
    let failed = |error: FetchError| fetch_error(&error);
    let own = lock_file_of(machine, &flake.path)?;
    let old = match &flags.reference_file {
        Some(file) if !fetcher(machine)?.settings.allow_dirty => {
            let message = "reference lock file was provided, but the `allow-dirty` setting is set to false";
            return Err(Error::new(ErrorKind::Host, format!("{message} ({file})")));
        }
        Some(file) => read_reference(machine, file)?,
        None => read_lock_file(machine, &own)?,
    };
    let which = if flags.use_registries { UseRegistries::Limited } else { UseRegistries::No };
    let mut locker = Locker::new(machine, flags, which, &flake);
    locker.run(&flake, (!flags.recreate).then_some(&old))?;
    let (new, mut places) = (locker.file, locker.places);
    if !new.same(&old).map_err(failed)? || flags.output_file.is_some() {
        let diff = diff(&old, &new);
        if flags.write {
            if let Some(written) = write(machine, top, flags, &new, &diff)? {
                flake = written;
                places[0].1 = flake.dir();
            }
        } else {
            let message =
                format!("not writing modified lock file of flake '{}':\n{}", shown(top.show()), diff.trim_end_matches('\n'));
            fetcher(machine)?.warn(&message);
            flake.force_dirty = true;
        }
    }
    Ok(LockedFlake { flake, lock_file: new, places })
}

/// A lock file anywhere on disk: the user named it, so no fence is asked.
fn read_reference(machine: &Machine, file: &AbsPath) -> Result<LockFile> {
    let fetcher = fetcher(machine)?;
    let disk = fetcher.disk();
    let real = disk.resolve_symlinks(file, firn_host::Follow::Full).map_err(|e| machine.host_error(e))?;
    let text = disk.read_file(&real).map_err(|e| machine.host_error(e))?;
    LockFile::parse(&fetcher, text.bytes(), &file.to_string()).map_err(|e| fetch_error(&e))
}

/// Writes a lock file; the flake as it is then, if it was the flake's own.
fn write(machine: &Machine, top: &FlakeRef, flags: &LockFlags, new: &LockFile, diff: &str) -> Result<Option<Flake>> {
    let failed = |error: FetchError| fetch_error(&error);
    let fetcher = fetcher(machine)?;
    let source = top.input.source_path().map_err(failed)?;
    let fail = |message: String| Err(Error::new(ErrorKind::Host, message));
    if source.is_none() && flags.output_file.is_none() {
        let shown = colored(top.show());
        return fail(format!("cannot write modified lock file of flake '{shown}' (use '--no-write-lock-file' to ignore)"));
    }
    if let Some(unlocked) = new.unlocked(fetcher.settings.allow_dirty_locks) {
        let parts = (shown(top.show()), shown(unlocked.show()));
        if flags.fail_on_unlocked {
            return fail(format!(
                "Not writing lock file of flake '{}' because it has an unlocked input ('{}'). Use '--allow-dirty-locks' to \
                 allow this anyway.",
                parts.0, parts.1
            ));
        }
        if fetcher.settings.warn_dirty {
            let message = "because it has an unlocked input";
            fetcher.warn(&format!("not writing lock file of flake '{}' {message} ('{}')", parts.0, parts.1));
        }
        return Ok(None);
    }
    if !flags.update {
        let shown = colored(top.show());
        return fail(format!(
            "flake '{shown}' requires lock file changes but they're not allowed due to '--no-update-lock-file'"
        ));
    }
    let text = format!("{}\n", new.print().map_err(failed)?);
    if let Some(file) = &flags.output_file {
        if flags.commit {
            return fail("'--commit-lock-file' and '--output-lock-file' are incompatible".to_owned());
        }
        fetcher.write_file(file, text.as_bytes()).map_err(failed)?;
        return Ok(None);
    }
    put(top, flags, source.unwrap_or_default(), &text, diff, &fetcher).map_err(failed)?;
    // The tree is another one now.
    fetcher.forget();
    let which = if flags.use_registries { UseRegistries::All } else { UseRegistries::No };
    get_flake(machine, top, which, &[]).map(Some)
}

/// Writes the flake's own lock file, and tells the user what changed.
fn put(
    top: &FlakeRef,
    flags: &LockFlags,
    source: String,
    text: &str,
    diff: &str,
    fetcher: &firn_host::fetch::Fetcher,
) -> std::result::Result<(), FetchError> {
    let relative = if top.dir.is_empty() { "flake.lock".to_owned() } else { format!("{}/flake.lock", top.dir) };
    let file = AbsPath::new(source.as_bytes())?.beneath(relative.as_bytes())?;
    let exists = fetcher.disk().path_exists(&file, false)?;
    let (place, changes) = (format!("\"{}\"", shown(&file)), diff.trim_end_matches('\n'));
    fetcher.warn(&match (exists, changes) {
        (true, "") => format!("updating lock file {place}"),
        (true, changes) => format!("updating lock file {place}:\n{changes}"),
        (false, changes) => format!("creating lock file {place}: \n{changes}"),
    });
    let message = flags.commit.then(|| {
        let usual = format!("{relative}: {}", if exists { "Update" } else { "Add" });
        let summary = if flags.commit_summary.is_empty() { usual } else { flags.commit_summary.clone() };
        format!("{summary}\n\nFlake lock file updates:\n\n{}", plain(diff))
    });
    fetcher.put_file(&top.input, &relative, text.as_bytes(), message.as_deref())
}

/// Text without colours.
fn plain(text: &str) -> String {
    ["\x1b[32;1m", "\x1b[31;1m", "\x1b[35;1m", "\x1b[1m", "\x1b[0m"].iter().fold(text.to_owned(), |text, code| text.replace(code, ""))
}

fn describe(file: &LockFile, edge: &Edge) -> String {
    match edge {
        Edge::Follows(path) => format!("follows '{}'", shown(print_input_path(path))),
        Edge::Node(node) => {
            let Some(locked) = &file.nodes[*node].locked else { return String::new() };
            let day = locked.locked.input.last_modified().ok().flatten().map(|time| Moment::of(time).date);
            let day = day.map_or(String::new(), |(year, month, day)| format!(" ({year:04}-{month:02}-{day:02})"));
            format!("'{}'{day}", locked.locked.show())
        }
    }
}

/// What changed from one lock file to another, for people.
fn diff(old: &LockFile, new: &LockFile) -> String {
    let (before, after) = (old.all_inputs(), new.all_inputs());
    let paths: BTreeSet<&InputPath> = before.keys().chain(after.keys()).collect();
    let mut out = String::new();
    let locked = |file: &LockFile, edge: &Edge| match edge {
        Edge::Node(node) => file.nodes[*node].locked.as_ref().map(|locked| locked.locked.clone()),
        Edge::Follows(_) => None,
    };
    for path in paths {
        let name = shown(print_input_path(path));
        match (before.get(path), after.get(path)) {
            (None, Some(edge)) => {
                out.push_str(&format!("• \x1b[32;1mAdded input '{name}':\x1b[0m\n    {}\n", describe(new, edge)));
            }
            (Some(_), None) => out.push_str(&format!("• \x1b[31;1mRemoved input '{name}'\x1b[0m\n")),
            (Some(was), Some(is)) => {
                let same = match (was, is) {
                    (Edge::Node(_), Edge::Node(_)) => locked(old, was) == locked(new, is),
                    _ => was == is,
                };
                if !same {
                    let parts = (describe(old, was), describe(new, is));
                    out.push_str(&format!("• \x1b[1mUpdated input '{name}':\x1b[0m\n    {}\n  → {}\n", parts.0, parts.1));
                }
            }
            (None, None) => {}
        }
    }
    out
}
