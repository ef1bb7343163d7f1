//! `firn cache serve`: a remote for those who have none ([`firn_remote::serve`]).

use crate::failure::Failure;
use crate::program::Invocation;
use crate::settings::host_failure;
use crate::settings::remote::Remote;
use firn_host::{AbsPath, Follow, Host};
use firn_remote::serve::{Config, Server};

/// The flags as typed.
pub struct Flags {
    /// `--listen`.
    pub listen: Option<Vec<u8>>,
    /// `--read-only`.
    pub read_only: bool,
    /// `--token-file`.
    pub token_file: Option<Vec<u8>>,
}

/// Serves until it is ended.
pub fn run(invocation: &mut Invocation, words: &[Vec<u8>], flags: &Flags, remote: &Remote) -> Result<(), Failure> {
    let dir = match words {
        [dir] => path(invocation, dir)?,
        [] => return Err(Failure::Usage(b"which directory to serve?".to_vec())),
        [_, more, ..] => return Err(Failure::usage("unexpected argument '", more, "'")),
    };
    let dir = String::from_utf8(dir.as_bytes().to_vec());
    let dir = dir.map_err(|error| Failure::usage("the name of the directory is no text: '", error.as_bytes(), "'"))?;
    let listen = flags.listen.as_deref().unwrap_or(b"127.0.0.1:8080");
    let address = std::str::from_utf8(listen).ok().and_then(|text| text.parse().ok());
    let listen = address.ok_or_else(|| Failure::usage("an address is written IP:PORT, not '", listen, "'"))?;
    let token = flags.token_file.as_deref().map(|file| token(invocation, file)).transpose()?;
    let keys = remote.settings(&*invocation.host)?.keys;
    let config = Config { dir: dir.clone(), listen, read_only: flags.read_only, token, keys };
    let server = Server::start(config, now).map_err(|trouble| Failure::error(format!("serving '{dir}': {trouble}")))?;
    let shown = server.address().map_or_else(String::new, |address| address.to_string());
    invocation.output.line(format!("serving '{dir}' at http://{shown}/").as_bytes())?;
    invocation.output.flush()?;
    server.run()
}

fn path(invocation: &Invocation, file: &[u8]) -> Result<AbsPath, Failure> {
    invocation.host.current_dir().and_then(|here| here.join(file)).map_err(host_failure)
}

fn token(invocation: &Invocation, file: &[u8]) -> Result<String, Failure> {
    let path = path(invocation, file)?;
    let real = invocation.host.resolve_symlinks(&path, Follow::Full).map_err(host_failure)?;
    let content = invocation.host.read_once(&real).map_err(host_failure)?;
    let token = String::from_utf8_lossy(content.bytes()).trim().to_owned();
    if token.is_empty() { Err(Failure::usage("there is no token in '", file, "'")) } else { Ok(token) }
}

/// The clock: no evaluation sees it.
#[allow(clippy::disallowed_methods)]
fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}
