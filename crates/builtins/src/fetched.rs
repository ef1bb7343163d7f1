//! Fetched trees in an evaluation: the fetcher it has, how a tree becomes readable, and the set that describes one.
//!
//! A tree is seen at its store path whether or not it is in a store: the host shows it there (see `firn_host::Mounted`).

use crate::store::{self, eval_error};
use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, Shared, store_error};
use firn_host::fetch::{Attr, FetchError, FetchErrorKind, Fetcher, Input, Lazy, Placed, Tree};
use firn_host::{AbsPath, Host, Mount, PseudoUrl, Restricted, Source, SourceError};
use firn_source::Pos;
use firn_store::content_address::Method;
use firn_store::hash::{Algorithm, Format, Hash};
use firn_store::path::StorePath;
use firn_value::{AttrsBuilder, Context, Thunk, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The fetcher of an evaluation.
struct Fetching(Arc<Fetcher>);

/// Fetches what `flake:` entries of the search path name. Attached by the room that knows flakes.
pub type FlakeEntry = fn(&Machine, &[u8]) -> Result<AbsPath>;

struct FlakeEntries(FlakeEntry);

/// Makes `fetcher` the fetcher of evaluations with this shared state.
pub fn attach_fetcher(shared: &Shared, fetcher: Arc<Fetcher>) {
    shared.extensions.set(Arc::new(Fetching(fetcher)));
}

/// Says how `flake:` entries of the search path are fetched.
pub fn attach_flake_entries(shared: &Shared, fetch: FlakeEntry) {
    shared.extensions.set(Arc::new(FlakeEntries(fetch)));
}

/// The fetcher of this machine's evaluation.
pub fn fetcher(machine: &Machine) -> Result<Arc<Fetcher>> {
    match machine.shared.extensions.find::<Fetching>() {
        Some(fetching) => Ok(fetching.0.clone()),
        None => Err(Error::new(ErrorKind::Host, "this evaluation cannot fetch anything: it has no fetcher")),
    }
}

/// A failure to fetch as an evaluation error.
#[cold]
pub fn fetch_error(error: &FetchError) -> Box<Error> {
    let kind = if error.kind() == FetchErrorKind::Usage { ErrorKind::Usage } else { ErrorKind::Host };
    let mut raised = Error::new(kind, error.message());
    if error.kind() == FetchErrorKind::Mismatch {
        raised = raised.exit_with(102);
    }
    error.trace().iter().fold(raised, |raised, text| raised.trace(Pos::NONE, text.as_str()))
}

/// Refuses an address that restricted evaluation may not fetch.
pub(crate) fn check_uri(machine: &Machine, uri: &[u8]) -> Result<()> {
    match machine.shared.extensions.find::<Restricted<Arc<dyn Host>>>() {
        Some(fence) if machine.settings().restrict_eval => fence.check_uri(uri).map_err(|e| machine.host_error(e)),
        _ => Ok(()),
    }
}

/// Fetches an input and makes its tree readable.
pub fn fetch_input(machine: &Machine, input: &Input) -> Result<Arc<Tree>> {
    let store = store::store(machine);
    let tree = fetcher(machine)?.fetch(input, &*store.backend, machine.store_dir()).map_err(|e| fetch_error(&e))?;
    match &tree.placed {
        Placed::InStore => store::allow(machine, &tree.store_path)?,
        Placed::Elsewhere(mount) => place(machine, &tree.store_path, mount, Method::Nar)?,
    }
    Ok(tree)
}

/// Gives a tree to the store, and shows it at its store path.
pub(crate) fn place(machine: &Machine, path: &StorePath, mount: &Mount, method: Method) -> Result<()> {
    let store = store::store(machine);
    // Shown first: a store that writes behind evaluation is not waited for.
    show(machine, path, mount)?;
    let source = Source {
        root: mount.root.clone(),
        method,
        excluded: (*mount.excluded).clone(),
        references: Arc::from([]),
    };
    store.backend.add_source(path, &source, &mount.host).map_err(|error| match error {
        SourceError::Host(error) => machine.host_error(error),
        SourceError::Store(error) => store_error(&error),
    })?;
    store::allow(machine, path)
}

/// Shows a tree at its store path, unless something is there: that is the same tree, perhaps this very one.
pub(crate) fn show(machine: &Machine, path: &StorePath, mount: &Mount) -> Result<()> {
    let seen_at = AbsPath::new(&machine.store_dir().print(path)).map_err(|e| machine.host_error(e))?;
    if machine.host().file_type(&seen_at).map_err(|e| machine.host_error(e))?.is_none() {
        // A host that cannot show it reads the store itself.
        machine.host().mount(seen_at, mount.clone());
    }
    Ok(())
}

/// Where an entry of the search path leads that has to be fetched.
pub fn fetch_entry(machine: &Machine, url: PseudoUrl<'_>) -> Result<AbsPath> {
    match url {
        PseudoUrl::Tarball(entry) => {
            let url = String::from_utf8_lossy(&firn_host::tarball_url(entry)).into_owned();
            let attrs = [("type".to_owned(), Attr::from("tarball")), ("url".to_owned(), url.into())].into();
            let input = Input::from_attrs(&fetcher(machine)?.settings, attrs).map_err(|e| fetch_error(&e))?;
            let tree = fetch_input(machine, &input)?;
            AbsPath::new(&machine.store_dir().print(&tree.store_path)).map_err(|e| machine.host_error(e))
        }
        PseudoUrl::Flake(reference) => match machine.shared.extensions.find::<FlakeEntries>() {
            _ if !machine.settings().features.flakes => Err(firn_eval::missing_feature("flakes")),
            Some(entries) => entries.0(machine, reference),
            None => Err(Error::new(ErrorKind::Host, "this evaluation knows no flakes")),
        },
    }
}

/// Numbers of revisions that were not counted yet, by the number that stands for them in a suspended call.
#[derive(Default)]
struct Uncounted(Mutex<HashMap<i64, Arc<Lazy>>>);

fn count(machine: &Machine, _: Pos, args: &[Value]) -> Result<Value> {
    let uncounted = machine.shared.extensions.get::<Uncounted>();
    let lazy = args[0].as_int().and_then(|number| store::lock(&uncounted.0).get(&number).cloned());
    match lazy {
        Some(lazy) => Ok(Value::int(lazy.get().map_err(|e| fetch_error(&e))?.try_into().unwrap_or(i64::MAX))),
        None => Ok(Value::int(0)),
    }
}

/// Counts revisions when someone asks.
pub(crate) const COUNT: Builtin = Builtin { name: "revCount", arity: 1, strict: 1, run: count };

/// The builtin behind [`COUNT`], made once at installation.
pub(crate) struct Counter(pub Value);

fn count_later(machine: &Machine, lazy: &Arc<Lazy>) -> Value {
    let uncounted = machine.shared.extensions.get::<Uncounted>();
    let mut table = store::lock(&uncounted.0);
    let number = table.len() as i64;
    table.insert(number, lazy.clone());
    match machine.shared.extensions.find::<Counter>() {
        Some(counter) => Thunk::apply(counter.0, &[Value::int(number)]),
        None => Value::NULL,
    }
}

/// The set that describes a tree: `outPath`, revision, times. `empty_rev` stands zeros in for a missing revision, as
/// `fetchGit` does; `dirty` leaves revisions out.
pub fn tree_attrs(machine: &Machine, path: &StorePath, input: &Input, empty_rev: bool, dirty: bool) -> Result<Value> {
    let failed = |error: FetchError| fetch_error(&error);
    let text = |text: &str| Value::string(text.as_bytes(), Context::EMPTY);
    let int = |number: u64| Value::int(i64::try_from(number).unwrap_or(i64::MAX));
    let mut set = AttrsBuilder::with_capacity(10);
    set.insert("outPath", store::store_path_string(machine, path));
    if let Some(hash) = input.nar_hash().map_err(failed)? {
        set.insert("narHash", text(&hash.to_string(Format::Sri, true)));
    }
    if input.kind() == "git" {
        set.insert("submodules", Value::bool(input.flag("submodules").map_err(failed)?));
    }
    if !dirty {
        let rev = input.rev().map_err(failed)?.or_else(|| empty_rev.then(|| Hash::zero(Algorithm::Sha1)));
        if let Some(rev) = rev {
            let rev = rev.to_string(Format::Base16, false);
            set.insert("rev", text(&rev));
            set.insert("shortRev", text(&rev[..7]));
        }
        match input.attrs.get("revCount") {
            Some(Attr::Lazy(lazy)) => set.insert("revCount", count_later(machine, lazy)),
            Some(Attr::Number(count)) => set.insert("revCount", int(*count)),
            _ if empty_rev => set.insert("revCount", Value::int(0)),
            _ => {}
        }
    }
    if let (Some(rev), Some(short)) = (input.text("dirtyRev"), input.text("dirtyShortRev")) {
        set.insert("dirtyRev", text(rev));
        set.insert("dirtyShortRev", text(short));
    }
    if let Some(time) = input.last_modified().map_err(failed)? {
        set.insert("lastModified", int(time));
        set.insert("lastModifiedDate", text(&Moment::of(time).digits()));
    }
    Ok(set.finish())
}

/// A time in the calendar, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Year, month, day.
    pub date: (i64, u8, u8),
    /// Hour, minute, second.
    pub time: (u8, u8, u8),
}

impl Moment {
    /// Seconds since 1970.
    pub fn of(seconds: u64) -> Moment {
        let (days, rest) = ((seconds / 86400) as i64, seconds % 86400);
        // Eras of 400 years, counted from the first of March of the year 0.
        let shifted = days + 719_468;
        let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let date = (year, month as u8, (day_of_year - (153 * march_month + 2) / 5 + 1) as u8);
        Moment { date, time: ((rest / 3600) as u8, (rest / 60 % 60) as u8, (rest % 60) as u8) }
    }

    /// `20260131235959`
    pub fn digits(self) -> String {
        let ((year, month, day), (hour, minute, second)) = (self.date, self.time);
        format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
    }
}

/// An error about a call, at its place.
#[cold]
pub(crate) fn call_error(message: impl Into<Vec<u8>>, pos: Pos) -> Box<Error> {
    eval_error(message, pos)
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn days_of_the_calendar() {
        for (seconds, digits) in [
            (0, "19700101000000"),
            (951_782_400, "20000229000000"),
            (1_585_388_205, "20200328093645"),
            (4_102_444_799, "20991231235959"),
        ] {
            assert_eq!(Moment::of(seconds).digits(), digits);
        }
    }
}
