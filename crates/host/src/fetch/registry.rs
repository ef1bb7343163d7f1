//! Registries: what names of flakes stand for, by the command line, the user, the system and the world, in that order.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use firn_text::json::Tree;

use super::attrs::{Attr, Attrs};
use super::error::{FetchError, shown};
use super::fetcher::Fetcher;
use super::input::Input;
use crate::{AbsPath, Follow, Host};

/// Which registries are looked into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UseRegistries {
    /// None.
    No,
    /// All.
    All,
    /// Those that do not depend on the machine: the command line's and the global one.
    Limited,
}

/// An entry: one input stands for another.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What is asked for.
    pub from: Input,
    /// What it stands for.
    pub to: Input,
    /// The directory of the flake in it.
    pub dir: Option<String>,
    /// Branch and revision must match too.
    pub exact: bool,
}

/// The registries of a run, each read when it is first needed.
#[derive(Debug, Default)]
pub struct Registries {
    flags: Mutex<Vec<Entry>>,
    user: OnceLock<Vec<Entry>>,
    system: OnceLock<Vec<Entry>>,
    global: OnceLock<Result<Vec<Entry>, FetchError>>,
}

impl Registries {
    /// `--override-flake`.
    pub fn add(&self, entry: Entry) {
        self.flags.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}

/// Attributes out of a JSON object.
pub(crate) fn attrs_of_json(json: &Tree) -> Result<Attrs, FetchError> {
    let unsupported = || FetchError::new("unsupported input attribute type in lock file");
    let entries = json.as_object().ok_or_else(unsupported)?;
    entries
        .iter()
        .map(|(name, value)| {
            let attr = match value {
                Tree::Text(_) => Attr::Text(value.as_text().ok_or_else(unsupported)?.to_owned()),
                Tree::Bool(flag) => Attr::Flag(*flag),
                Tree::Int(number) => Attr::Number(u64::try_from(*number).map_err(|_| unsupported())?),
                _ => return Err(unsupported()),
            };
            Ok((String::from_utf8_lossy(name).into_owned(), attr))
        })
        .collect()
}

impl Fetcher {
    /// Attributes out of a JSON object, as lock files and registries have them.
    pub fn attrs_of_json(json: &Tree) -> Result<Attrs, FetchError> {
        attrs_of_json(json)
    }

    /// What an input stands for, and the flake's directory in it if the registry names one.
    pub fn look_up(&self, input: &Input, which: UseRegistries) -> Result<(Input, Option<String>), FetchError> {
        let (mut current, mut dir) = (input.clone(), None);
        if which == UseRegistries::No {
            return Ok((current, dir));
        }
        // Registries are edited and downloaded: what they say today is for today.
        self.observe(&format!("registry:{}", input.show()), None, false, false);
        for _ in 0..100 {
            let Some(entry) = self.entry_for(&current, which)? else {
                if !current.is_direct() {
                    let shown = shown(current.show());
                    return Err(FetchError::new(format!("cannot find flake '{shown}' in the flake registries")));
                }
                return Ok((current, dir));
            };
            let next = if entry.exact {
                entry.to.clone()
            } else {
                let branch = current.text("ref").filter(|_| entry.from.text("ref").is_none());
                let rev = current.rev_text()?.filter(|_| entry.from.text("rev").is_none());
                entry.to.with_overrides(branch, rev.as_deref())?
            };
            dir = entry.dir;
            current = next;
        }
        Err(FetchError::new(format!("cycle detected in flake registry for '{}'", shown(current.show()))))
    }

    fn entry_for(&self, input: &Input, which: UseRegistries) -> Result<Option<Entry>, FetchError> {
        let matches = |entry: &&Entry| if entry.exact { entry.from == *input } else { entry.from.contains(input) };
        let registries = &self.registries;
        let flags = registries.flags.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = flags.iter().find(matches) {
            return Ok(Some(entry.clone()));
        }
        drop(flags);
        if which == UseRegistries::All {
            let user = registries.user.get_or_init(|| match &self.settings.user_conf_dir {
                Some(dir) => self.read_registry(&dir.join("registry.json"), &*self.disk()),
                None => Vec::new(),
            });
            let system = registries.system.get_or_init(|| self.read_registry(&self.settings.conf_dir.join("registry.json"), &*self.disk()));
            if let Some(entry) = user.iter().chain(system).find(matches) {
                return Ok(Some(entry.clone()));
            }
        }
        // A direct input is seldom in the global registry: the network is not asked about it.
        if input.is_direct() && !self.settings.flake_registry.starts_with('/') {
            return Ok(None);
        }
        let global = registries.global.get_or_init(|| self.global_registry()).as_ref().map_err(FetchError::clone)?;
        Ok(global.iter().find(matches).cloned())
    }

    fn global_registry(&self) -> Result<Vec<Entry>, FetchError> {
        let place = &self.settings.flake_registry;
        if place.is_empty() {
            return Ok(Vec::new());
        }
        if place.starts_with('/') {
            return Ok(self.read_registry(Path::new(place), &*self.disk()));
        }
        Ok(self.read_registry(&self.downloaded(place)?, &*self.fresh_disk()))
    }

    /// The entries of a registry file. One that is absent has none; of one that cannot be read the user is told.
    fn read_registry(&self, file: &Path, host: &dyn Host) -> Vec<Entry> {
        let read = || -> Result<Vec<Entry>, FetchError> {
            let path = AbsPath::new(std::os::unix::ffi::OsStrExt::as_bytes(file.as_os_str()))?;
            let real = host.resolve_symlinks(&path, Follow::Full)?;
            if host.file_type(&real)?.is_none() {
                return Ok(Vec::new());
            }
            let json = Tree::parse(host.read_file(&real)?.bytes())
                .map_err(|message| FetchError::new(String::from_utf8_lossy(&message).into_owned()))?;
            match json.get("version") {
                Some(Tree::Int(2)) => {}
                version => {
                    let version = if let Some(Tree::Int(version)) = version { *version } else { 0 };
                    let parts = (shown(file.display()), shown(version));
                    return Err(FetchError::new(format!("flake registry '{}' has unsupported version {}", parts.0, parts.1)));
                }
            }
            let flakes = json.get("flakes").and_then(Tree::as_list).unwrap_or_default();
            flakes.iter().map(|flake| self.entry_of_json(flake)).collect()
        };
        read().unwrap_or_else(|error| {
            self.warn(&format!("cannot read flake registry '{}': {}", shown(file.display()), error.message()));
            Vec::new()
        })
    }

    fn entry_of_json(&self, json: &Tree) -> Result<Entry, FetchError> {
        let part = |name: &str| attrs_of_json(json.get(name).unwrap_or(&Tree::Null));
        let mut to = part("to")?;
        let dir = match to.remove("dir") {
            Some(Attr::Text(dir)) => Some(dir),
            _ => None,
        };
        Ok(Entry {
            from: Input::from_attrs(&self.settings, part("from")?)?,
            to: Input::from_attrs(&self.settings, to)?,
            dir,
            exact: json.get("exact") == Some(&Tree::Bool(true)),
        })
    }
}
