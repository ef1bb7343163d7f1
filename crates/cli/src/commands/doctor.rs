//! `firn doctor`: what a run would find: versions, settings in force and where each came from, the search path, the store,
//! and the programs that firn starts. Says what is wrong and what to do about it; the exit status says whether anything is.

use super::help;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::program::Invocation;
use crate::settings::{self, Origin};
use crate::stores;
use firn_host::{AbsPath, Host, StoreKind, StoreReference};
use firn_store::path::StorePath;
use firn_store::store_dir::StoreDir;

/// An object that no store has: asking for it shows whether the store answers.
const NOBODYS: &[u8] = b"00000000000000000000000000000000-firn-doctor";

/// What was found.
struct Report<'a> {
    invocation: &'a mut Invocation,
    problems: usize,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    while let Some(word) = words.next_word() {
        match word {
            Word::Flag(flag) if flag == b"--help" => return help::show(invocation, "doctor"),
            Word::Flag(flag) if flags.read(&flag, &mut words)? => {}
            Word::Flag(flag) => return Err(Failure::usage("unrecognised flag '", &flag, "'")),
            Word::Argument(word) => return Err(Failure::usage("unexpected argument '", &word, "'")),
        }
    }
    let mut report = Report { invocation, problems: 0 };
    report.versions()?;
    report.settings(&flags)?;
    report.search(&flags)?;
    report.store(&flags)?;
    report.programs()?;
    let problems = report.problems;
    let summary = match problems {
        0 => "All is well.".to_owned(),
        1 => "One problem.".to_owned(),
        count => format!("{count} problems."),
    };
    report.section(&summary)?;
    if problems == 0 { Ok(()) } else { Err(Failure::Exit(1)) }
}

impl Report<'_> {
    fn section(&mut self, title: &str) -> Result<(), Failure> {
        self.invocation.output.line(title.as_bytes())
    }

    fn fine(&mut self, what: &str) -> Result<(), Failure> {
        self.invocation.output.line(format!("  {what}").as_bytes())
    }

    fn wrong(&mut self, what: &str, advice: &str) -> Result<(), Failure> {
        self.problems += 1;
        self.invocation.output.line(format!("! {what}\n    {advice}").as_bytes())
    }

    fn versions(&mut self) -> Result<(), Failure> {
        self.section("Versions")?;
        self.fine(&format!("firn {}", env!("CARGO_PKG_VERSION")))?;
        self.fine(&format!("language of Nix {}", help::NIX_VERSION))
    }

    fn settings(&mut self, flags: &Flags) -> Result<(), Failure> {
        self.section("Settings in force")?;
        let mut warnings = Vec::new();
        let said = std::cell::RefCell::new(&mut warnings);
        let warn = |text: &[u8]| {
            said.borrow_mut().push(firn_source::terminal::filter_escapes(text, true));
        };
        let found = match settings::origins(&*self.invocation.host, flags, &warn) {
            Ok(found) => found,
            Err(failure) => {
                return self.wrong(&told(&failure), "correct the file or variable that is named");
            }
        };
        if found.is_empty() {
            self.fine("none is set; all have their usual values")?;
        }
        for Origin { name, value, place } in found {
            let value = String::from_utf8_lossy(&value).into_owned();
            self.fine(&format!("{name} = {value}  ({place})"))?;
        }
        for warning in warnings {
            self.wrong(&String::from_utf8_lossy(&warning), "remove it, or correct its name")?;
        }
        Ok(())
    }

    fn search(&mut self, flags: &Flags) -> Result<(), Failure> {
        let resolved = settings::resolve(&*self.invocation.host, flags, false, &|_| ())?;
        self.section("Search path")?;
        if resolved.search.entries.is_empty() {
            self.fine("empty: <nixpkgs> and the like are not found")?;
        }
        let host = self.invocation.host.clone();
        for entry in resolved.search.entries.iter() {
            let shown = String::from_utf8_lossy(&entry.path).into_owned();
            let name = if entry.prefix.is_empty() { "*".to_owned() } else { String::from_utf8_lossy(&entry.prefix).into_owned() };
            let is_remote = entry.path.windows(3).any(|part| part == b"://") || entry.path.starts_with(b"flake:");
            let here = host.current_dir().unwrap_or_else(|_| AbsPath::root());
            let exists = here.join(&entry.path).is_ok_and(|path| host.path_exists(&path, false).unwrap_or(false));
            match is_remote || exists {
                true => self.fine(&format!("{name} = {shown}"))?,
                false => self.wrong(&format!("{name} = {shown} does not exist"), "correct NIX_PATH, -I or nix-path")?,
            }
        }
        Ok(())
    }

    fn store(&mut self, flags: &Flags) -> Result<(), Failure> {
        self.section("Store")?;
        let host = self.invocation.host.clone();
        let mut resolved = settings::resolve(&*host, flags, false, &|_| ())?;
        resolved.writes = settings::Writes::AtOnce;
        let here = host.current_dir().map_err(settings::host_failure)?;
        let named = resolved.store.clone().unwrap_or_else(|| b"auto".to_vec());
        let shown = String::from_utf8_lossy(&named).into_owned();
        let advice = "set `store` or NIX_REMOTE; `dummy://` evaluates without a store";
        let reference = match StoreReference::parse(&named, &here) {
            Ok(reference) => reference,
            Err(error) => return self.wrong(&format!("{shown}: {error}"), advice),
        };
        let dir = StoreDir::new(resolved.eval.store_dir.as_bytes()).map_err(stores::failed)?;
        if let Ok(places) = reference.places(&*host, &dir) {
            let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
            self.fine(&format!("{shown}: objects in {}, state in {}", text(places.real.as_bytes()), text(places.state.as_bytes())))?;
        }
        if reference.kind == StoreKind::Dummy {
            return self.fine("nothing is written: paths are computed");
        }
        let log = self.invocation.log.clone();
        let opened = stores::open(&host, &mut resolved, flags.verbosity, &log, None);
        let asked = opened.and_then(|opened| {
            let path = StorePath::parse(NOBODYS).map_err(stores::failed)?;
            opened.store.is_valid(&path).map_err(stores::failed)
        });
        match asked {
            Ok(_) => self.fine("answers"),
            Err(failure) => self.wrong(&told(&failure), advice),
        }
    }

    fn programs(&mut self) -> Result<(), Failure> {
        self.section("Other programs")?;
        for (name, variable, needed) in [
            ("git", "", "needed for git+ flakes and fetchGit"),
            ("nix-daemon", "FIRN_NIX_DAEMON", "needed to build in a store directory (import from derivation)"),
        ] {
            match self.find(name, variable) {
                Some(path) => self.fine(&format!("{name}: {path}"))?,
                None => self.fine(&format!("{name}: not found; {needed}"))?,
            }
        }
        Ok(())
    }

    fn find(&self, name: &str, variable: &str) -> Option<String> {
        let host = &self.invocation.host;
        if let Some(named) = host.env(variable.as_bytes()).filter(|named| !named.is_empty()) {
            return Some(String::from_utf8_lossy(&named).into_owned());
        }
        let path = host.env(b"PATH")?;
        let found = |dir: &[u8]| {
            let file = AbsPath::new(&[dir, b"/", name.as_bytes()].concat()).ok()?;
            host.path_exists(&file, false).unwrap_or(false).then(|| String::from_utf8_lossy(file.as_bytes()).into_owned())
        };
        path.split(|&b| b == b':').filter(|dir| !dir.is_empty()).find_map(found)
    }
}

/// A failure in one line.
fn told(failure: &Failure) -> String {
    let message = match failure {
        Failure::Error(error) => error.message().to_vec(),
        Failure::Usage(message) => message.clone(),
        Failure::Exit(status) => format!("exit status {status}").into_bytes(),
    };
    String::from_utf8_lossy(&firn_source::terminal::filter_escapes(&message, true)).into_owned()
}
