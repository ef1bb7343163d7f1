//! `Address`: which store a remote is, as a URL with options.
//!
//! ```text
//! file:/srv/firn                                     a directory, shared or not
//! http://host/firn  https://user:pass@host/firn      GET and PUT: WebDAV, or `firn cache serve`
//! s3://bucket/prefix?endpoint=…&region=…             S3 or what speaks like it; keys as the AWS tools find them
//! redis://user:pass@host:6379/0?prefix=…             Redis; rediss: with TLS
//! ```
//!
//! Options of all: `mode=ro|rw` (both reading and writing unless said), `priority=N` (lower is asked first, 50 unless said).

use firn_host::fetch::{Url, decode_query};
use std::collections::BTreeMap;
use std::fmt;

/// What a remote is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It is only read.
    ReadOnly,
    /// It is read and written.
    ReadWrite,
}

/// The kind of store and how it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Store {
    /// A directory.
    Directory(String),
    /// GET and PUT below a URL.
    Http { endpoint: String, root: String, user: Option<(String, String)>, token_file: Option<String> },
    /// A bucket.
    S3 { bucket: String, root: String, endpoint: Option<String>, region: Option<String>, profile: Option<String> },
    /// A database.
    Redis { endpoint: String, user: Option<String>, password: Option<String>, database: i64, root: String },
}

/// A remote as the user names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// The URL without what is secret in it.
    pub shown: String,
    /// What it is used for.
    pub mode: Mode,
    /// Lower is asked first.
    pub priority: u32,
    pub(crate) store: Store,
}

/// Why a text names no remote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadAddress {
    /// The URL.
    pub url: String,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' names no remote: {}", self.url, self.why)
    }
}

impl std::error::Error for BadAddress {}

/// What is left of a URL's options.
struct Options(BTreeMap<String, String>);

impl Options {
    fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|value| !value.is_empty())
    }
}

const PRIORITY: u32 = 50;

impl Address {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Address, BadAddress> {
        let bad = |why: String| BadAddress { url: text.to_owned(), why };
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let url = Url::parse(base, true).map_err(|error| bad(error.to_string()))?;
        let mut options = Options(decode_query(query).map_err(|error| bad(error.to_string()))?);
        let mode = match options.take("mode").as_deref() {
            None | Some("rw") => Mode::ReadWrite,
            Some("ro") => Mode::ReadOnly,
            Some(other) => return Err(bad(format!("mode is ro or rw, not '{other}'"))),
        };
        let priority = match options.take("priority") {
            None => PRIORITY,
            Some(number) => number.parse().map_err(|_| bad(format!("priority is a number, not '{number}'")))?,
        };
        let store = store(&url, base, &mut options).map_err(bad)?;
        if let Some(unknown) = options.0.keys().next() {
            return Err(bad(format!("there is no option '{unknown}'")));
        }
        Ok(Address { shown: shown(&url), mode, priority, store })
    }
}

/// The URL without a password.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    if let Some(authority) = &mut shown.authority {
        authority.password = None;
    }
    shown.query.clear();
    shown.fragment.clear();
    shown.to_string()
}

fn store(url: &Url, base: &str, options: &mut Options) -> Result<Store, String> {
    let authority = url.authority.clone().unwrap_or_default();
    let port = authority.port.map_or(String::new(), |port| format!(":{port}"));
    let host = format!("{}{port}", authority.host);
    let path = format!("/{}", url.steps().join("/"));
    match url.scheme.as_str() {
        "file" => {
            let absolute = url.path.first().is_some_and(String::is_empty) && path != "/";
            if !absolute || !authority.host.is_empty() {
                return Err("a directory is written file:/PATH".to_owned());
            }
            Ok(Store::Directory(path))
        }
        "http" | "https" if !authority.host.is_empty() => {
            let user = authority.user.map(|user| (user, authority.password.unwrap_or_default()));
            let endpoint = format!("{}://{host}", url.scheme);
            Ok(Store::Http { endpoint, root: path, user, token_file: options.take("token-file") })
        }
        "s3" if !authority.host.is_empty() => Ok(Store::S3 {
            bucket: authority.host,
            root: path,
            endpoint: options.take("endpoint"),
            region: options.take("region"),
            profile: options.take("profile"),
        }),
        "redis" | "rediss" if !authority.host.is_empty() => {
            let number = url.steps().first().map_or("0".to_owned(), |step| (*step).to_owned());
            let database = number.parse().map_err(|_| format!("a database is a number, not '{number}'"))?;
            Ok(Store::Redis {
                endpoint: format!("{}://{host}", url.scheme),
                user: authority.user.filter(|user| !user.is_empty()),
                password: authority.password,
                database,
                root: options.take("prefix").unwrap_or_else(|| "firn".to_owned()),
            })
        }
        "http" | "https" | "s3" | "redis" | "rediss" => Err(format!("'{base}' names no host or bucket")),
        other => Err(format!("'{other}:' is not one of file:, http:, https:, s3:, redis:, rediss:")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let address = Address::parse("file:/srv/firn%20x?mode=ro&priority=7").unwrap();
        assert_eq!((address.mode, address.priority), (Mode::ReadOnly, 7));
        assert_eq!(address.store, Store::Directory("/srv/firn x".to_owned()));
        assert_eq!(Address::parse("file:///srv").unwrap().store, Store::Directory("/srv".to_owned()));
        let http = Address::parse("https://me:secret@example.org:8443/a/b/").unwrap();
        assert!(!http.shown.contains("secret"), "{}", http.shown);
        let user = Some(("me".to_owned(), "secret".to_owned()));
        let endpoint = "https://example.org:8443".to_owned();
        assert_eq!(http.store, Store::Http { endpoint, root: "/a/b".to_owned(), user, token_file: None });
        let s3 = Address::parse("s3://bucket/p?endpoint=http://127.0.0.1:9000&region=eu").unwrap();
        assert!(matches!(s3.store, Store::S3 { bucket, endpoint: Some(at), .. } if bucket == "bucket" && at == "http://127.0.0.1:9000"));
        let redis = Address::parse("redis://:pw@localhost:6380/3").unwrap();
        assert!(matches!(redis.store, Store::Redis { database: 3, password: Some(_), user: None, .. }));
    }

    #[test]
    fn what_names_no_remote_is_refused_with_the_reason() {
        for (url, why) in [
            ("srv/firn", "scheme"),
            ("ftp://x/y", "is not one of"),
            ("file:relative", "file:/PATH"),
            ("file:/", "file:/PATH"),
            ("http:///x", "no host"),
            ("redis://h/x", "a database is a number"),
            ("file:/x?mode=w", "ro or rw"),
            ("file:/x?priority=high", "priority is a number"),
            ("file:/x?colour=red", "no option 'colour'"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
    }
}
