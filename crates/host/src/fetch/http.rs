//! Transfers: http and https through one client, with redirections, etags, time limits and further tries.
#![allow(clippy::disallowed_methods)] // Writes downloads into the fetchers' own directory.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use firn_store::hash::{Algorithm, Format, Hasher};

use super::error::{FetchError, FetchErrorKind, file_error, shown};
use super::fetcher::Fetcher;
use super::url::{Url, url_path_to_path};

/// As many as curl follows for Nix.
const REDIRECTS: usize = 10;
const PIECE: usize = 1 << 16;
/// A pause between tries is no longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a server answered.
#[derive(Debug)]
pub(super) enum Transfer {
    /// The content named by the etag is still current.
    Unchanged(Answer),
    /// New content, in a file that the caller moves or removes.
    Content(Answer, PathBuf),
}

/// What is known of an answer besides its content.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub etag: String,
    /// The address that answered.
    pub url: String,
    /// Every address on the way.
    pub asked: Vec<String>,
    pub immutable: Option<String>,
    /// SHA-256 in hexadecimal.
    pub content: String,
}

/// A failed try: whether another may succeed.
struct Failed {
    error: FetchError,
    transient: bool,
}

fn lasting(error: FetchError) -> Failed {
    Failed { error, transient: false }
}

impl Fetcher {
    /// Fetches a URL into a file of the cache. `etag` names the content that is already known.
    pub(super) fn transfer(
        &self,
        url: &str,
        headers: &[(String, String)],
        etag: Option<&str>,
    ) -> Result<Transfer, FetchError> {
        let parsed = Url::parse(url, false)?;
        match parsed.scheme.as_str() {
            "file" => self.copy_file(url, &parsed),
            "http" | "https" => self.download(url, headers, etag),
            other => {
                let parts = (shown(url), shown(other));
                Err(FetchError::new(format!("unable to download '{}': protocol '{}' is not supported", parts.0, parts.1)))
            }
        }
    }

    fn copy_file(&self, url: &str, parsed: &Url) -> Result<Transfer, FetchError> {
        let path = PathBuf::from(url_path_to_path(&parsed.path)?);
        let opened = File::open(&path).and_then(|file| {
            if file.metadata()?.is_file() { Ok(file) } else { Err(std::io::ErrorKind::IsADirectory.into()) }
        });
        let Ok(mut file) = opened else {
            let parts = (shown(url), shown("Could not read a file:// file"), path.display());
            let message = format!("unable to download '{}': {} (37) Couldn't open file {}", parts.0, parts.1, parts.2);
            return Err(FetchError::of(FetchErrorKind::Missing, message));
        };
        let place = self.cache.temporary("files")?;
        let mut into = Sink::create(&place)?;
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece).map_err(|e| file_error("reading from", &path, e))? {
                0 => break,
                read => into.write(&piece[..read])?,
            }
        }
        let answer = Answer { url: url.to_owned(), asked: vec![url.to_owned()], content: into.finish(), ..Answer::default() };
        Ok(Transfer::Content(answer, place))
    }

    fn download(&self, url: &str, headers: &[(String, String)], etag: Option<&str>) -> Result<Transfer, FetchError> {
        if self.settings.offline {
            return Err(FetchError::new(format!("unable to download '{}': network access is disabled", shown(url))));
        }
        let mut pause = self.settings.retry_delay;
        let mut tries = 1;
        loop {
            match self.try_download(url, headers, etag) {
                Ok(transfer) => return Ok(transfer),
                Err(failed) if failed.transient && tries < self.settings.attempts.max(1) => {
                    let parts = (failed.error.message().to_owned(), pause.as_millis());
                    self.warn(&format!("{}; retrying in {} ms", parts.0, parts.1));
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    tries += 1;
                }
                Err(failed) => return Err(failed.error),
            }
        }
    }

    fn try_download(&self, url: &str, headers: &[(String, String)], etag: Option<&str>) -> Result<Transfer, Failed> {
        let agent = self.agent();
        let mut answer = Answer { url: url.to_owned(), ..Answer::default() };
        for _ in 0..=REDIRECTS {
            answer.asked.push(answer.url.clone());
            let mut request = agent.get(&answer.url);
            // Tokens are for the server they were given for, not for those it sends us to.
            for (name, value) in headers.iter().filter(|_| same_host(url, &answer.url)) {
                request = request.header(name, value);
            }
            if let Some(etag) = etag.filter(|etag| !etag.is_empty()) {
                request = request.header("If-None-Match", etag);
            }
            let response = request.call().map_err(|error| broken(url, &error))?;
            let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            note_immutable(&mut answer, header("link"));
            match response.status().as_u16() {
                304 => {
                    answer.etag = etag.unwrap_or_default().to_owned();
                    return Ok(Transfer::Unchanged(answer));
                }
                301 | 302 | 303 | 307 | 308 if header("location").is_some() => {
                    let to = header("location").unwrap_or_default();
                    answer.url = redirected(&answer.url, &to).map_err(lasting)?;
                }
                200..=299 => {
                    answer.etag = header("etag").unwrap_or_default();
                    let length = header("content-length").and_then(|length| length.parse().ok());
                    return self.receive(url, answer, response.into_body(), length);
                }
                status => return Err(refused(url, status, response.into_body())),
            }
        }
        Err(lasting(FetchError::new(format!("unable to download '{}': too many redirections", shown(url)))))
    }

    /// Asks a server a question of some media type; its answer, which must not be longer than `most`.
    pub(super) fn post(&self, url: &str, media: &str, question: &str, most: u64) -> Result<Vec<u8>, FetchError> {
        if self.settings.offline {
            return Err(FetchError::new(format!("unable to upload to '{}': network access is disabled", shown(url))));
        }
        let broken = |why: &dyn std::fmt::Display| FetchError::new(format!("unable to upload to '{}': {why}", shown(url)));
        let request = self.agent().post(url).header("Content-Type", media).header("Accept", media);
        let response = request.send(question).map_err(|e| broken(&e))?;
        let status = response.status().as_u16();
        if !(200..=299).contains(&status) {
            return Err(broken(&format!("HTTP error {}", shown(status))));
        }
        let mut answer = Vec::new();
        response.into_body().into_reader().take(most).read_to_end(&mut answer).map_err(|e| broken(&e))?;
        Ok(answer)
    }

    fn agent(&self) -> ureq::Agent {
        let name = format!("firn/{} {}", env!("CARGO_PKG_VERSION"), self.settings.user_agent_suffix);
        ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(self.settings.connect_timeout))
            .timeout_recv_response(Some(self.settings.stalled_timeout))
            .user_agent(name.trim_end())
            .build()
            .into()
    }

    /// Writes a body to disk as it arrives; gives up when nothing arrives for too long or too little arrived.
    fn receive(&self, url: &str, mut answer: Answer, body: ureq::Body, length: Option<u64>) -> Result<Transfer, Failed> {
        let place = self.cache.temporary("files").map_err(lasting)?;
        let mut into = Sink::create(&place).map_err(lasting)?;
        let pieces = read_in_thread(body);
        let received = self.write_pieces(url, &pieces, &mut into, length);
        if let Err(failed) = received {
            let _ = std::fs::remove_file(&place);
            return Err(failed);
        }
        answer.content = into.finish();
        Ok(Transfer::Content(answer, place))
    }

    fn write_pieces(
        &self,
        url: &str,
        pieces: &Receiver<Result<Vec<u8>, String>>,
        into: &mut Sink,
        length: Option<u64>,
    ) -> Result<(), Failed> {
        let transient = |why: String| {
            let error = FetchError::new(format!("unable to download '{}': {why}", shown(url)));
            Failed { error, transient: true }
        };
        let mut received = 0;
        loop {
            match pieces.recv_timeout(self.settings.stalled_timeout) {
                Ok(Ok(piece)) => {
                    received += piece.len() as u64;
                    into.write(&piece).map_err(lasting)?;
                }
                Ok(Err(why)) => return Err(transient(why)),
                Err(RecvTimeoutError::Timeout) => return Err(transient("nothing arrived for too long".to_owned())),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match length {
            Some(length) if length != received => {
                Err(transient(format!("the transfer ended after {received} of {length} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// Reads a body in a thread of its own, so that waiting for it can end.
fn read_in_thread(body: ureq::Body) -> Receiver<Result<Vec<u8>, String>> {
    let (sender, receiver) = sync_channel(16);
    std::thread::spawn(move || {
        let mut reader = body.into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; PIECE];
        loop {
            let message = match reader.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => Ok(piece[..read].to_vec()),
                Err(error) => Err(error.to_string()),
            };
            let ended = message.is_err();
            if sender.send(message).is_err() || ended {
                return;
            }
        }
    });
    receiver
}

fn same_host(one: &str, other: &str) -> bool {
    let host = |url: &str| Url::parse(url, true).ok().and_then(|url| url.authority).map(|place| (place.host, place.port));
    host(one) == host(other)
}

/// The address a redirection leads to; relative ones start from where it was given.
fn redirected(from: &str, to: &str) -> Result<String, FetchError> {
    let url = match Url::parse(to, true) {
        Ok(url) if !url.scheme.is_empty() => url,
        _ => {
            let mut base = Url::parse(from, true)?;
            let (path, query) = to.split_once('?').unwrap_or((to, ""));
            let path = path.split('#').next().unwrap_or_default();
            if path.starts_with('/') {
                base.path = path.split('/').map(super::url::percent_decode).collect::<Result<_, _>>()?;
            } else {
                base.path.pop();
                base.path.extend(path.split('/').map(super::url::percent_decode).collect::<Result<Vec<_>, _>>()?);
            }
            base.query = super::url::decode_query(query)?;
            base
        }
    };
    if !["http", "https"].contains(&url.scheme.as_str()) {
        return Err(FetchError::new(format!("redirection from '{}' to '{}' is not followed", shown(from), shown(to))));
    }
    // The server's own spelling is kept: decoding and encoding again may change what it signed.
    Ok(if to.contains("://") { to.split('#').next().unwrap_or_default().to_owned() } else { url.to_string() })
}

/// `Link: <URL>; rel="immutable"` names an address that always serves this content.
fn note_immutable(answer: &mut Answer, link: Option<String>) {
    let Some(link) = link else { return };
    for part in link.split(',') {
        if part.contains("rel=\"immutable\"")
            && let Some(url) = part.trim().strip_prefix('<').and_then(|rest| rest.split('>').next())
        {
            answer.immutable = Some(url.to_owned());
        }
    }
}

fn broken(url: &str, error: &ureq::Error) -> Failed {
    // A name that cannot be resolved now will not be in a second.
    let unknown = matches!(error, ureq::Error::Io(why) if why.raw_os_error().is_none() && why.to_string().contains("lookup"));
    let transient =
        !unknown && !matches!(error, ureq::Error::BadUri(_) | ureq::Error::HostNotFound | ureq::Error::Tls(_));
    Failed { error: FetchError::new(format!("unable to download '{}': {error}", shown(url))), transient }
}

fn refused(url: &str, status: u16, body: ureq::Body) -> Failed {
    let mut text = Vec::new();
    let _ = body.into_reader().take(1 << 16).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    let mut message = format!("unable to download '{}': HTTP error {}", shown(url), shown(status));
    if text.len() < 1024 || text.contains("<html>") {
        message.push_str(&format!("\n\nresponse body:\n\n{}", shown(text)));
    }
    let kind = if matches!(status, 401 | 403 | 404 | 407 | 410) { FetchErrorKind::Missing } else { FetchErrorKind::Other };
    Failed { error: FetchError::of(kind, message), transient: matches!(status, 408 | 429 | 500 | 502..=504) }
}

/// A file that is hashed while it is written.
struct Sink {
    place: PathBuf,
    file: File,
    hasher: Hasher,
}

impl Sink {
    fn create(place: &Path) -> Result<Sink, FetchError> {
        let file = File::create(place).map_err(|e| file_error("creating", place, e))?;
        Ok(Sink { place: place.to_owned(), file, hasher: Hasher::new(Algorithm::Sha256) })
    }

    fn write(&mut self, piece: &[u8]) -> Result<(), FetchError> {
        self.hasher.update(piece);
        self.file.write_all(piece).map_err(|e| file_error("writing", &self.place, e))
    }

    fn finish(self) -> String {
        self.hasher.finish().0.to_string(Format::Base16, false)
    }
}
