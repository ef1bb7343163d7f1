//! `Place`: a remote that is reached. It reads and writes single objects, within bounds of size; bounds of time are set by
//! whoever waits. All stores are reached through OpenDAL (decision 0013); only files of a directory are read without it.

use crate::address::{Address, Mode, Store};
use crate::object::Kind;
use firn_host::Digest;
use futures::TryStreamExt;
use opendal::services::{Fs, Redis, S3, Webdav};
use opendal::{ErrorKind, HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use std::fmt;
use std::io::{ErrorKind as IoErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A remote that is reached.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its URL, without what is secret in it.
    pub shown: String,
    /// What it is used for.
    pub mode: Mode,
    operator: Operator,
    /// The directory that it is, if it is one.
    directory: Option<PathBuf>,
    /// Whether it writes only what nobody has changed since it was read.
    compares: bool,
}

/// Why a remote is of no use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// It did not answer in time.
    Slow,
    /// It answered that it cannot, or could not be reached.
    Failed(String),
    /// It sent more than such an object may have.
    TooLarge,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Slow => f.write_str("it does not answer in time"),
            Trouble::Failed(why) => f.write_str(why),
            Trouble::TooLarge => f.write_str("it sends more than was asked for"),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<opendal::Error> for Trouble {
    fn from(error: opendal::Error) -> Trouble {
        let mut text = error.message().to_owned();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            text = format!("{text}: {inner}");
            source = inner.source();
        }
        let line: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
        Trouble::Failed(if line.is_empty() { error.kind().to_string() } else { format!("{line} ({})", error.kind()) })
    }
}

/// What an object is expected to be when it is replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// Not there.
    Absent,
    /// As it was when it had this mark.
    Marked(String),
    /// Whatever it is.
    Anything,
}

/// Requests under way at once.
pub(crate) const AT_ONCE: usize = 32;
/// Files of a directory that are read at once: each takes a thread.
const FILES_AT_ONCE: usize = 4;

/// The longest that connecting may take. Deadlines are usually shorter.
const CONNECTING: Duration = Duration::from_secs(10);

impl Place {
    /// Prepares to reach a remote. Nothing is asked of it yet.
    pub fn open(address: &Address) -> Result<Place, Trouble> {
        let operator = match &address.store {
            Store::Directory(root) if address.mode == Mode::ReadOnly => {
                // Who only reads makes no directory.
                if !is_directory(root) {
                    return Err(Trouble::Failed("there is no such directory".to_owned()));
                }
                Operator::new(Fs::default().root(root))?
            }
            Store::Directory(root) => {
                // Written beside and renamed: a reader sees all of an object or nothing.
                let beside = format!("{}/.beside", root.trim_end_matches('/'));
                Operator::new(Fs::default().root(root).atomic_write_dir(&beside))?
            }
            Store::Http { endpoint, root, user, token_file } => {
                let mut webdav = Webdav::default().endpoint(endpoint).root(root).disable_create_dir(true);
                if let Some((name, password)) = user {
                    webdav = webdav.username(name).password(password);
                }
                if let Some(file) = token_file {
                    webdav = webdav.token(&read_token(file)?);
                }
                with_transport(Operator::new(webdav)?)?
            }
            Store::S3 { bucket, root, endpoint, region, profile } => {
                let mut s3 = S3::default().bucket(bucket).root(root);
                // A region must be named; stores that have none take any.
                s3 = s3.region(region.as_deref().unwrap_or("us-east-1"));
                if let Some(endpoint) = endpoint {
                    s3 = s3.endpoint(endpoint).disable_ec2_metadata();
                }
                if let Some(profile) = profile {
                    s3 = s3.profile(profile);
                }
                with_transport(Operator::new(s3)?)?
            }
            Store::Redis { endpoint, user, password, database, root } => {
                let mut redis = Redis::default().endpoint(endpoint).db(*database).root(root);
                if let Some(user) = user {
                    redis = redis.username(user);
                }
                if let Some(password) = password {
                    redis = redis.password(password);
                }
                Operator::new(redis)?
            }
        };
        let capability = operator.info().capability();
        let compares = capability.write_with_if_match && capability.write_with_if_not_exists;
        let directory = match &address.store {
            Store::Directory(root) => Some(PathBuf::from(root)),
            _ => None,
        };
        Ok(Place { shown: address.shown.clone(), mode: address.mode, operator, directory, compares })
    }

    /// Whether two that replace an object at once cannot lose what the other wrote.
    pub fn compares(&self) -> bool {
        self.compares
    }

    /// How many objects are asked for at once.
    pub(crate) fn at_once(&self) -> usize {
        if self.directory.is_some() { FILES_AT_ONCE } else { AT_ONCE }
    }

    /// The object as it lies there; none if there is none.
    pub async fn get(&self, kind: Kind, digest: &Digest) -> Result<Option<Vec<u8>>, Trouble> {
        Ok(self.get_marked(kind, digest).await?.map(|(bytes, _)| bytes))
    }

    /// As [`Place::get`], with the mark that tells whether it has been replaced since.
    pub(crate) async fn get_marked(&self, kind: Kind, digest: &Digest) -> Result<Option<(Vec<u8>, Option<String>)>, Trouble> {
        let path = kind.path(digest);
        let most = kind.most_packed();
        if let Some(directory) = &self.directory {
            let file = directory.join(&path);
            let read = tokio::task::spawn_blocking(move || read_file(&file, most)).await;
            return read.map_err(|error| Trouble::Failed(error.to_string()))?.map(|read| read.map(|bytes| (bytes, None)));
        }
        let reader = self.operator.reader(&path).await?;
        let mut stream = match reader.clone().into_stream(..).await {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        loop {
            match stream.try_next().await {
                Ok(Some(part)) => {
                    if bytes.len() + part.len() > most {
                        return Err(Trouble::TooLarge);
                    }
                    part.for_each(|part| bytes.extend_from_slice(&part));
                }
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let mark = reader.metadata().and_then(|about| about.etag().map(str::to_owned));
        Ok(Some((bytes, mark)))
    }

    /// Whether the object is there. Reading a byte works everywhere; asking about it does not.
    pub async fn has(&self, kind: Kind, digest: &Digest) -> Result<bool, Trouble> {
        let reader = self.operator.reader(&kind.path(digest)).await?;
        match reader.read(0..1).await {
            Ok(byte) => Ok(!byte.is_empty()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::RangeNotSatisfied) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes an object.
    pub async fn put(&self, kind: Kind, digest: &Digest, bytes: Vec<u8>) -> Result<(), Trouble> {
        self.operator.write(&kind.path(digest), bytes).await?;
        Ok(())
    }

    /// Replaces an object; false if it is not what was expected, as far as the store can tell.
    pub(crate) async fn replace(&self, kind: Kind, digest: &Digest, bytes: Vec<u8>, expected: Expected) -> Result<bool, Trouble> {
        let path = kind.path(digest);
        let written = match (&expected, self.compares) {
            (Expected::Absent, true) => self.operator.write_with(&path, bytes.clone()).if_not_exists(true).await,
            (Expected::Marked(mark), true) => self.operator.write_with(&path, bytes.clone()).if_match(mark).await,
            _ => self.operator.write(&path, bytes.clone()).await,
        };
        match written {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::ConditionNotMatch => Ok(false),
            // A store that speaks like S3 and cannot compare.
            Err(error) if self.compares && error.kind() == ErrorKind::Unsupported => {
                self.operator.write(&path, bytes).await?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The digests of all questions that have answers there. None if this store does not tell what it has.
    pub async fn questions(&self) -> Result<Option<Vec<Digest>>, Trouble> {
        let capability = self.operator.info().capability();
        if !capability.list || matches!(self.operator.info().scheme(), "webdav") {
            return Ok(None);
        }
        let mut found = Vec::new();
        let folder = format!("v{}/{}/", crate::object::VERSION, Kind::Index.folder());
        let mut lister = match self.operator.lister_with(&folder).recursive(true).await {
            Ok(lister) => lister,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(found)),
            Err(error) => return Err(error.into()),
        };
        while let Some(entry) = lister.try_next().await? {
            if let Some((Kind::Index, digest)) = Kind::of_path(entry.path()) {
                found.push(digest);
            }
        }
        found.sort_unstable();
        Ok(Some(found))
    }
}

/// The operator with a way to speak HTTP: no more redirects than a store needs, and a bound on connecting.
fn with_transport(operator: Operator) -> Result<Operator, Trouble> {
    // Whoever came first has chosen the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECTING)
        .redirect(reqwest::redirect::Policy::limited(3))
        .user_agent(concat!("firn/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Trouble::Failed(error.to_string()))?;
    let transport = HttpTransporter::new(ReqwestTransport::new(client));
    let context = operator.context().with_http_transport(transport);
    Ok(operator.with_context(context))
}

/// The bytes of a file; none if there is none. Not through the host: no evaluation sees it.
// PERF: OpenDAL makes room for two megabytes of zeros to read any file: a tenth of the time of a small answer.
#[allow(clippy::disallowed_methods)]
fn read_file(file: &Path, most: usize) -> Result<Option<Vec<u8>>, Trouble> {
    let failed = |error: std::io::Error| Trouble::Failed(format!("'{}' cannot be read: {error}", file.display()));
    let opened = match std::fs::File::open(file) {
        Ok(opened) => opened,
        Err(error) if matches!(error.kind(), IoErrorKind::NotFound | IoErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let size = opened.metadata().map_err(failed)?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(most).min(most) + 1);
    opened.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > most { Err(Trouble::TooLarge) } else { Ok(Some(bytes)) }
}

/// Whether there is a directory. Not through the host: no evaluation sees it.
#[allow(clippy::disallowed_methods)]
fn is_directory(path: &str) -> bool {
    std::path::Path::new(path).is_dir()
}

/// The token in a file. Not through the host: no evaluation sees it.
#[allow(clippy::disallowed_methods)]
fn read_token(file: &str) -> Result<String, Trouble> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Trouble::Failed(format!("the token file '{file}' cannot be read: {error}")))?;
    Ok(text.trim().to_owned())
}
