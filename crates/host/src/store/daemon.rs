//! `Daemon`: a store behind a running `nix-daemon`, spoken to in the worker protocol, versions 1.32 to 1.38.
//!
//! The daemon is reached through its socket. A directory store that must build runs one of its own over a pair of
//! pipes (`nix-daemon --stdio`), the way Nix reaches daemons on other machines: `FIRN_NIX_DAEMON` names the program,
//! otherwise it is looked for on `PATH`.
#![allow(clippy::disallowed_methods)]

mod connection;
mod failure;
mod wire;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use firn_store::content_address::{ContentAddress, Method};
use firn_store::context::Built;
use firn_store::hash::{Algorithm, Format, Hash, Hasher};
use firn_store::nar;
use firn_store::path::StorePath;
use firn_store::path_info::PathInfo;
use firn_store::store_dir::StoreDir;
use firn_store::{Error, ErrorKind, Result};

use super::behind::{Backend, Content, Item};
use super::local::{address_of, object_source, source_error};
use super::reference::Places;
use super::{Missing, StoreSettings, roots};
use crate::AbsPath;
use connection::Connection;
use wire::Message;

/// Requests, by the numbers of the protocol.
mod request {
    pub const IS_VALID_PATH: u64 = 1;
    pub const ADD_TO_STORE: u64 = 7;
    pub const BUILD_PATHS: u64 = 9;
    pub const ADD_TEMP_ROOT: u64 = 11;
    pub const ADD_INDIRECT_ROOT: u64 = 12;
    pub const QUERY_PATH_INFO: u64 = 26;
    pub const QUERY_VALID_PATHS: u64 = 31;
    pub const QUERY_MISSING: u64 = 40;
    pub const QUERY_DERIVATION_OUTPUT_MAP: u64 = 41;
    pub const ADD_MULTIPLE_TO_STORE: u64 = 44;
    pub const BUILD_PATHS_WITH_RESULTS: u64 = 46;
}

/// Statuses of builds that left the outputs in the store: built, substituted, there already, resolved to one there.
const SUCCESSES: [u64; 4] = [0, 1, 2, 13];

/// How to reach the daemon, and a conversation with it that is open.
pub(super) struct Daemon {
    dir: StoreDir,
    settings: StoreSettings,
    socket: Option<AbsPath>,
    open: Mutex<Vec<Connection>>,
    /// The daemon that serves us alone; it ends when its pipes are closed.
    _own: Option<Child>,
}

impl Daemon {
    /// Reaches the daemon at a socket.
    pub fn connect(socket: AbsPath, places: &Places, settings: StoreSettings) -> Result<Daemon> {
        let daemon =
            Daemon { dir: places.dir.clone(), settings, socket: Some(socket), open: Mutex::default(), _own: None };
        let first = daemon.another()?;
        daemon.give_back(first);
        Ok(daemon)
    }

    /// Runs a daemon of our own on a directory store, to build.
    pub fn spawn(places: &Places, settings: &StoreSettings, wanted: &[Built]) -> Result<Daemon> {
        let program = settings.daemon_program.clone().unwrap_or_else(|| "nix-daemon".into());
        let mut command = Command::new(&program);
        let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        let store =
            format!("local?real={}&state={}", encoded(places.real.as_bytes()), encoded(places.state.as_bytes()));
        command.arg("--stdio").arg("--store").arg(store);
        command.env("NIX_STORE_DIR", text(places.dir.as_bytes())).env_remove("NIX_REMOTE");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            let said = crate::Errno::from(error).to_string();
            let what = wanted.first().map(|built| built.display(&places.dir)).unwrap_or_default();
            let parts: [&[u8]; 6] = [
                b"cannot build '",
                &what,
                b"' during evaluation: a store directory is built in by a 'nix-daemon', and '",
                program.as_encoded_bytes(),
                b"' could not be started (set FIRN_NIX_DAEMON, or use a store that has a daemon): ",
                said.as_bytes(),
            ];
            Error::new(ErrorKind::Other, &parts)
        })?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(ErrorKind::Other, &[b"the daemon that was started has no pipes"]));
        };
        let ready = from.as_fd().try_clone_to_owned()?;
        let connection = Connection::begin(Box::new(from), Box::new(to), ready, settings)
            .map_err(|e| unopened(program.as_encoded_bytes(), &e))?;
        let open = Mutex::new(vec![connection]);
        Ok(Daemon { dir: places.dir.clone(), settings: settings.clone(), socket: None, open, _own: Some(child) })
    }

    fn another(&self) -> Result<Connection> {
        let Some(socket) = &self.socket else {
            return Err(Error::new(ErrorKind::Other, &[b"the daemon that was started to build has ended"]));
        };
        let stream = UnixStream::connect(socket.as_path()).map_err(|error| {
            let said = crate::Errno::from(error).to_string();
            Error::new(
                ErrorKind::Other,
                &[b"cannot connect to socket at '", socket.as_bytes(), b"': ", said.as_bytes()],
            )
        })?;
        let ready: OwnedFd = stream.as_fd().try_clone_to_owned()?;
        let to = stream.try_clone()?;
        Connection::begin(Box::new(stream), Box::new(to), ready, &self.settings)
            .map_err(|e| unopened(socket.as_bytes(), &e))
    }

    fn give_back(&self, connection: Connection) {
        if !connection.is_broken() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// Runs an action with a conversation of its own: evaluation and the writer each have one.
    fn with<T>(&self, action: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let idle = self.open.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.another()?,
        };
        let result = action(&mut connection);
        self.give_back(connection);
        result
    }

    /// Adds many texts and objects of other stores as one stream of archives.
    fn add_known(&self, items: &[&Item]) -> Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        let mut question = Message::default();
        // No repair, and signatures are checked, unless contents vouch for themselves.
        question.number(request::ADD_MULTIPLE_TO_STORE).flag(false).flag(false);
        self.with(|connection| {
            let send = |out: &mut dyn std::io::Write| -> Result<()> {
                out.write_all(&(items.len() as u64).to_le_bytes())?;
                items.iter().try_for_each(|item| self.send_known(item, out))
            };
            connection.ask_with_stream(&question, send, |_| Ok(()))
        })
    }

    /// Tells the daemon what is known of an object, and its archive.
    fn send_known(&self, item: &Item, out: &mut dyn std::io::Write) -> Result<()> {
        match &item.content {
            Content::Text(text, method) => {
                let (nar_hash, nar_size) = nar::dump_file(text, Hasher::new(Algorithm::Sha256))?.finish();
                let (path, references) = (item.path.clone(), item.references.to_vec());
                let address = Some(address_of(text, *method)?);
                let info = PathInfo { path, nar_hash, nar_size, references, deriver: None, signatures: Vec::new(), address };
                out.write_all(self.describe(&info).bytes())?;
                nar::dump_file(text, &mut *out)?;
            }
            Content::Object(info, root, host) => {
                out.write_all(self.describe(info).bytes())?;
                let mut writer = nar::Writer::new(out);
                object_source(info, root).dump(&**host, &mut writer).map_err(source_error)?;
                writer.finish()?;
            }
            // Of a tree the daemon itself makes the path.
            Content::Tree(..) => {}
        }
        Ok(())
    }

    fn describe(&self, known: &PathInfo) -> Message {
        let mut info = Message::default();
        info.path(&self.dir, &known.path);
        info.string(&known.deriver.as_ref().map(|deriver| self.dir.print(deriver)).unwrap_or_default());
        info.string(known.nar_hash.to_string(Format::Base16, false).as_bytes());
        info.paths(&self.dir, known.references.iter()).number(0).number(known.nar_size);
        info.flag(false).strings(known.signatures.iter().map(|signature| signature.as_bytes()));
        info.string(known.address.map(|address| address.render()).unwrap_or_default().as_bytes());
        info
    }

    /// Adds a tree; the daemon makes its path, which must be the one expected.
    fn add_tree(&self, item: &Item) -> Result<()> {
        let Content::Tree(source, host) = &item.content else { return Ok(()) };
        let mut question = Message::default();
        question.number(request::ADD_TO_STORE).string(item.path.name().as_bytes());
        question.string(source.method.render_with_algorithm(Algorithm::Sha256).as_bytes());
        question.paths(&self.dir, item.references.iter()).flag(false);
        let send = |out: &mut dyn std::io::Write| -> Result<()> {
            if source.method == Method::Flat {
                let content =
                    host.read_once(&source.root).map_err(|e| Error::new(ErrorKind::Other, &[&e.to_bytes()]))?;
                return Ok(out.write_all(content.bytes())?);
            }
            let mut writer = nar::Writer::new(out);
            source.dump(&**host, &mut writer).map_err(source_error)?;
            writer.finish().map(|_| ())
        };
        let added = self.with(|connection| {
            connection.ask_with_stream(&question, send, |connection| {
                let path = connection.answer().path(&self.dir)?;
                read_info(connection, &self.dir, &item.path)?;
                Ok(path)
            })
        })?;
        if added != item.path {
            let parts: [&[u8]; 3] = [b"'", source.root.as_bytes(), b"' changed while it was being added to the store"];
            return Err(Error::new(ErrorKind::Other, &parts));
        }
        Ok(())
    }

    /// Which of the objects exist.
    fn valid(&self, items: &[Item]) -> Result<Vec<StorePath>> {
        let mut question = Message::default();
        question.number(request::QUERY_VALID_PATHS).paths(&self.dir, items.iter().map(|item| &item.path)).flag(false);
        let mut valid = self.with(|connection| connection.ask(&question, |own| own.answer().paths(&self.dir)))?;
        valid.sort();
        Ok(valid)
    }

    /// Builds, and gives the paths of the outputs.
    pub fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        let names: Vec<Vec<u8>> = wanted.iter().map(|built| requested(&self.dir, built)).collect();
        self.with(|connection| {
            if connection.has(34) {
                return self.build_with_results(connection, wanted, &names);
            }
            let mut question = Message::default();
            question.number(request::BUILD_PATHS).strings(names.iter().map(Vec::as_slice)).number(0);
            connection.ask(&question, |own| own.answer().number()).map_err(|error| {
                let status = failure::told_status(error.message());
                error.with_status(status)
            })?;
            wanted.iter().map(|built| self.output(connection, built)).collect()
        })
    }

    fn build_with_results(
        &self,
        connection: &mut Connection,
        wanted: &[Built],
        names: &[Vec<u8>],
    ) -> Result<Vec<StorePath>> {
        let mut question = Message::default();
        question.number(request::BUILD_PATHS_WITH_RESULTS).strings(names.iter().map(Vec::as_slice)).number(0);
        let results = connection.ask(&question, |own| {
            (0..own.answer().length()?).map(|_| BuildResult::read(own)).collect::<Result<Vec<_>>>()
        })?;
        if let Some(failed) = results.iter().find(|result| !SUCCESSES.contains(&result.status)) {
            let told = Error::new(ErrorKind::Other, &[&failed.message]);
            return Err(told.with_status(failure::status(failed.status, &failed.message)));
        }
        let mut paths = Vec::with_capacity(wanted.len());
        for (built, name) in wanted.iter().zip(names) {
            let result = results.iter().find(|result| result.wanted == *name);
            let path = result.and_then(|result| result.output(built.last_output()));
            paths.push(match path {
                Some(path) => StorePath::parse(&path)?,
                None => self.output(connection, built)?,
            });
        }
        Ok(paths)
    }

    /// Asks where an output is.
    fn output(&self, connection: &mut Connection, built: &Built) -> Result<StorePath> {
        let mut question = Message::default();
        question.number(request::QUERY_DERIVATION_OUTPUT_MAP).path(&self.dir, &built.drv);
        let outputs = connection.ask(&question, |own| {
            let pairs = (0..own.answer().length()?).map(|_| Ok((own.answer().string()?, own.answer().string()?)));
            pairs.collect::<Result<Vec<_>>>()
        })?;
        match outputs.iter().find(|(name, path)| **name == **built.last_output() && !path.is_empty()) {
            Some((_, path)) => self.dir.parse(path),
            None => {
                let parts: [&[u8]; 3] =
                    [b"the daemon built '", &built.display(&self.dir), b"' and does not know where it is"];
                Err(Error::new(ErrorKind::Other, &parts))
            }
        }
    }
}

/// What became of one thing to build.
struct BuildResult {
    wanted: Vec<u8>,
    status: u64,
    message: Vec<u8>,
    /// Ids of outputs (`hash!name`) and a JSON object about each.
    outputs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl BuildResult {
    fn read(connection: &mut Connection) -> Result<BuildResult> {
        let times = connection.has(37);
        let answer = connection.answer();
        let wanted = answer.string()?;
        let status = answer.number()?;
        let message = answer.string()?;
        for _times_built_nondeterministic_start_stop in 0..4 {
            answer.number()?;
        }
        for _user_and_system_time in 0..if times { 2 } else { 0 } {
            if answer.flag()? {
                answer.number()?;
            }
        }
        let pairs = (0..answer.length()?).map(|_| Ok((answer.string()?, answer.string()?)));
        let outputs = pairs.collect::<Result<Vec<_>>>()?;
        Ok(BuildResult { wanted, status, message, outputs })
    }

    /// The base name of an output's path.
    fn output(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (_, json) = self.outputs.iter().find(|(id, _)| id.split(|&b| b == b'!').nth(1) == Some(name))?;
        // The object is small and flat, and no base name has a character that JSON escapes.
        let key = b"\"outPath\":";
        let at = json.windows(key.len()).position(|part| part == key)? + key.len();
        let rest = json[at..].trim_ascii_start().strip_prefix(b"\"")?;
        let end = rest.iter().position(|&b| b == b'"')?;
        Some(rest[..end].to_vec())
    }
}

fn requested(dir: &StoreDir, built: &Built) -> Vec<u8> {
    let mut text = dir.print(&built.drv);
    for output in built.chain() {
        text.push(b'!');
        text.extend_from_slice(output);
    }
    text
}

/// Reads what the daemon knows of an object.
fn read_info(connection: &mut Connection, dir: &StoreDir, path: &StorePath) -> Result<PathInfo> {
    let answer = connection.answer();
    let deriver = answer.string()?;
    let nar_hash = Hash::parse_any(&answer.string()?, Some(Algorithm::Sha256))?;
    let mut references = answer.paths(dir)?;
    references.sort();
    let (_time, nar_size, _ultimate) = (answer.number()?, answer.number()?, answer.flag()?);
    let (signatures, address) = (answer.strings()?, answer.string()?);
    Ok(PathInfo {
        path: path.clone(),
        nar_hash,
        nar_size,
        references,
        deriver: if deriver.is_empty() { None } else { Some(dir.parse(&deriver)?) },
        signatures: signatures.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect(),
        address: if address.is_empty() { None } else { Some(ContentAddress::parse(&address)?) },
    })
}

fn unopened(place: &[u8], error: &Error) -> Error {
    let parts: [&[u8]; 4] = [b"cannot open connection to remote store '", place, b"': ", error.message()];
    Error::new(ErrorKind::Other, &parts)
}

/// A path as the value of a parameter in a store's name.
fn encoded(path: &[u8]) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"/._-+".contains(&b);
    path.iter().map(|&b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02x}") }).collect()
}

impl Backend for Daemon {
    fn is_valid(&self, path: &StorePath) -> Result<bool> {
        let mut question = Message::default();
        question.number(request::IS_VALID_PATH).path(&self.dir, path);
        self.with(|connection| connection.ask(&question, |own| own.answer().flag()))
    }

    fn references(&self, path: &StorePath) -> Result<Option<Arc<[StorePath]>>> {
        Ok(self.info(path)?.map(|info| info.references.into()))
    }

    fn info(&self, path: &StorePath) -> Result<Option<PathInfo>> {
        let mut question = Message::default();
        question.number(request::QUERY_PATH_INFO).path(&self.dir, path);
        self.with(|connection| {
            connection.ask(&question, |own| {
                if !own.answer().flag()? {
                    return Ok(None);
                }
                read_info(own, &self.dir, path).map(Some)
            })
        })
    }

    fn write(&self, batch: &[Item]) -> Result<()> {
        let valid = self.valid(batch)?;
        let mut known = Vec::new();
        for item in batch.iter().filter(|item| valid.binary_search(&item.path).is_err()) {
            match &item.content {
                Content::Text(..) | Content::Object(..) => known.push(item),
                Content::Tree(..) => {
                    // A tree may refer to texts before it.
                    self.add_known(&std::mem::take(&mut known))?;
                    self.add_tree(item)?;
                }
            }
        }
        self.add_known(&known)
    }

    fn build(&self, wanted: &[Built]) -> Result<Vec<StorePath>> {
        // NIX: what a daemon that others started says of a failure has no status in it.
        Daemon::build(self, wanted).map_err(|error| error.with_status(1))
    }

    fn missing(&self, objects: &[StorePath], outputs: &[Built]) -> Result<Option<Missing>> {
        let mut names: Vec<Vec<u8>> = objects.iter().map(|path| self.dir.print(path)).collect();
        names.extend(outputs.iter().map(|built| requested(&self.dir, built)));
        let mut question = Message::default();
        question.number(request::QUERY_MISSING).strings(names.iter().map(Vec::as_slice));
        let missing = self.with(|connection| {
            connection.ask(&question, |own| {
                let answer = own.answer();
                let (build, substitute) = (answer.paths(&self.dir)?, answer.paths(&self.dir)?);
                let unknown = answer.paths(&self.dir)?;
                let (_download_size, _unpacked_size) = (answer.number()?, answer.number()?);
                Ok(Missing { build, substitute, unknown })
            })
        })?;
        Ok(Some(missing))
    }

    fn add_root(&self, path: &StorePath, root: &AbsPath) -> Result<()> {
        let mut question = Message::default();
        question.number(request::ADD_TEMP_ROOT).path(&self.dir, path);
        self.with(|connection| connection.ask(&question, |own| own.answer().number()))?;
        roots::make(&self.dir, path, root)?;
        let mut question = Message::default();
        question.number(request::ADD_INDIRECT_ROOT).string(root.as_bytes());
        self.with(|connection| connection.ask(&question, |own| own.answer().number()))?;
        Ok(())
    }
}
