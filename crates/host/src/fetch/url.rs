//! URLs as Nix reads and prints them: RFC 3986, with a few characters forgiven in flake references.

use std::collections::BTreeMap;

use super::error::{FetchError, shown};

/// Who serves a URL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Authority {
    /// The user, if one is named.
    pub user: Option<String>,
    /// The password, if one is given.
    pub password: Option<String>,
    /// The host; empty for files.
    pub host: String,
    /// Whether the host is an address in brackets.
    pub bracketed: bool,
    /// The port, if one is named.
    pub port: Option<u16>,
}

/// A URL in parts, each decoded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Url {
    /// What stands before the colon.
    pub scheme: String,
    /// Who serves it; none where no `//` follows the colon.
    pub authority: Option<Authority>,
    /// The path between slashes; an absolute one begins with an empty step.
    pub path: Vec<String>,
    /// Parameters by name.
    pub query: BTreeMap<String, String>,
    /// What follows `#`.
    pub fragment: String,
}

const PATH_KEEPS: &str = ":@";
const QUERY_KEEPS: &str = ":@/?";

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_path_byte(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:@%/".contains(&byte)
}

/// Escapes what is neither unreserved nor in `keep`.
pub fn percent_encode(text: &str, keep: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        if is_unreserved(byte) || keep.as_bytes().contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Undoes escapes; an incomplete one is an error.
pub fn percent_decode(text: &str) -> Result<String, FetchError> {
    let bad = || FetchError::bad_url(format!("invalid URI parameter '{}': bad pct-encoding", shown(text)));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or_else(bad)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| FetchError::bad_url(format!("URL part '{}' is not UTF-8", shown(text))))
}

/// The parameters of a query. Those without `=` are left out.
pub fn decode_query(query: &str) -> Result<BTreeMap<String, String>, FetchError> {
    let mut all = BTreeMap::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let Some((name, value)) = part.split_once('=') else { continue };
        all.entry(percent_decode(name)?).or_insert(percent_decode(value)?);
    }
    Ok(all)
}

fn invalid(url: &str) -> FetchError {
    FetchError::bad_url(format!("'{}' is not a valid URL: leftover", shown(url)))
}

impl Authority {
    fn parse(text: &str) -> Result<Authority, FetchError> {
        let bad = |why: &str| FetchError::bad_url(format!("invalid URL authority: '{}': {why}", shown(text)));
        let (user_info, place) = match text.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, text),
        };
        let (user, password) = match user_info.map(|info| info.split_once(':').unwrap_or((info, ""))) {
            None => (None, None),
            Some((user, password)) => {
                let given = user_info.is_some_and(|info| info.contains(':'));
                (Some(percent_decode(user)?), given.then(|| percent_decode(password)).transpose()?)
            }
        };
        let (host, port, bracketed) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(|| bad("mismatch"))?;
                (host, after.strip_prefix(':').unwrap_or_default(), true)
            }
            None => {
                let (host, port) = place.rsplit_once(':').unwrap_or((place, ""));
                (host, port, false)
            }
        };
        if !bracketed && !host.bytes().all(|byte| is_unreserved(byte) || b"!$&'()*+,;=%".contains(&byte)) {
            return Err(bad("mismatch"));
        }
        let port = match port {
            "" => None,
            digits => {
                Some(digits.parse().map_err(|_| FetchError::bad_url(format!("port '{}' is invalid", shown(digits))))?)
            }
        };
        Ok(Authority { user, password, host: percent_decode(host)?, bracketed, port })
    }

    fn print(&self, out: &mut String) {
        if let Some(user) = &self.user {
            out.push_str(&percent_encode(user, ""));
            if let Some(password) = &self.password {
                out.push(':');
                out.push_str(&percent_encode(password, ""));
            }
            out.push('@');
        }
        match self.bracketed {
            true => out.push_str(&format!("[{}]", percent_encode(&self.host, ":"))),
            false => out.push_str(&percent_encode(&self.host, "")),
        }
        if let Some(port) = self.port {
            out.push_str(&format!(":{port}"));
        }
    }
}

impl Url {
    /// Reads a URL. `lenient` lets blanks and quotes stand in query and fragment, as flake references may.
    pub fn parse(url: &str, lenient: bool) -> Result<Url, FetchError> {
        let no_scheme = || FetchError::bad_url(format!("'{}' doesn't have a scheme", shown(url)));
        let (scheme, rest) = url.split_once(':').ok_or_else(no_scheme)?;
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if !scheme.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) || !scheme.bytes().all(inner) {
            return Err(no_scheme());
        }
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let extra = |byte: u8, more: &[u8]| is_path_byte(byte) || byte == b'?' || (lenient && more.contains(&byte));
        if !query.bytes().all(|byte| extra(byte, b" \"")) || !fragment.bytes().all(|byte| extra(byte, b" \"^")) {
            return Err(invalid(url));
        }
        let (authority, path) = match place.strip_prefix("//") {
            Some(after) => {
                let end = after.find('/').unwrap_or(after.len());
                (Some(Authority::parse(&after[..end])?), &after[end..])
            }
            None => (None, place),
        };
        if !path.bytes().all(is_path_byte) {
            return Err(invalid(url));
        }
        let is_file = scheme.rsplit('+').next() == Some("file");
        if is_file && authority.as_ref().is_some_and(|authority| !authority.host.is_empty()) {
            let named = place[2..].split('/').next().unwrap_or_default();
            let parts = (shown(url), shown(named));
            return Err(FetchError::bad_url(format!("file:// URL '{}' has unexpected authority '{}'", parts.0, parts.1)));
        }
        let path = if is_file && path.is_empty() { "/" } else { path };
        Ok(Url {
            scheme: scheme.to_owned(),
            authority,
            path: path.split('/').map(percent_decode).collect::<Result<_, _>>()?,
            query: decode_query(query)?,
            fragment: percent_decode(fragment)?,
        })
    }

    /// What stands before `+` in the scheme, and what after it.
    pub fn scheme_parts(&self) -> (Option<&str>, &str) {
        match self.scheme.split_once('+') {
            Some((application, transport)) => (Some(application), transport),
            None => (None, &self.scheme),
        }
    }

    /// The steps of the path that are not empty.
    pub fn steps(&self) -> Vec<&str> {
        self.path.iter().map(String::as_str).filter(|step| !step.is_empty()).collect()
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = format!("{}:", self.scheme);
        if let Some(authority) = &self.authority {
            out.push_str("//");
            authority.print(&mut out);
        }
        let path: Vec<String> = self.path.iter().map(|step| percent_encode(step, PATH_KEEPS)).collect();
        out.push_str(&path.join("/"));
        for (index, (name, value)) in self.query.iter().enumerate() {
            out.push(if index == 0 { '?' } else { '&' });
            out.push_str(&format!("{}={}", percent_encode(name, QUERY_KEEPS), percent_encode(value, QUERY_KEEPS)));
        }
        if !self.fragment.is_empty() {
            out.push_str(&format!("#{}", percent_encode(&self.fragment, "")));
        }
        f.write_str(&out)
    }
}

/// The file that a URL's path names.
pub fn url_path_to_path(steps: &[String]) -> Result<String, FetchError> {
    for step in steps {
        let name = shown(step.replace('\0', "\u{2400}"));
        if step.contains('/') {
            let message = format!("URL path component '{name}' contains '/', which is not allowed in file names");
            return Err(FetchError::bad_url(message));
        }
        if step.contains('\0') {
            return Err(FetchError::bad_url(format!("URL path component '{name}' contains NUL byte which is not allowed")));
        }
    }
    let Some((first, rest)) = steps.split_first() else { return Ok(String::new()) };
    let mut path = if first.is_empty() { "/".to_owned() } else { first.clone() };
    for step in rest {
        if !path.ends_with('/') {
            path.push('/');
        }
        path.push_str(step);
    }
    Ok(path)
}

/// A file's path as that of a URL.
pub fn path_to_url_path(path: &str) -> Vec<String> {
    let mut steps: Vec<String> = if path.starts_with('/') { vec![String::new()] } else { Vec::new() };
    steps.extend(path.split('/').filter(|step| !step.is_empty()).map(str::to_owned));
    if path.is_empty() || path.ends_with('/') {
        steps.push(String::new());
    }
    steps
}

/// What Git takes for a repository, as a URL: absolute paths and `host:path` have none of their own.
pub fn fix_git_url(url: &str) -> Result<Url, FetchError> {
    if url.starts_with('/') {
        let path = path_to_url_path(url);
        return Ok(Url { scheme: "file".to_owned(), authority: Some(Authority::default()), path, ..Url::default() });
    }
    if let Some(ssh) = scp_style(url)? {
        return Ok(ssh);
    }
    let mut parsed = Url::parse(url, false)?;
    if let Some(transport) = parsed.scheme.strip_prefix("git+") {
        parsed.scheme = transport.to_owned();
    }
    Ok(parsed)
}

/// `user@host:path` as `ssh://user@host/path`.
fn scp_style(url: &str) -> Result<Option<Url>, FetchError> {
    const KNOWN: [&str; 9] = ["ssh", "git", "http", "https", "file", "ftp", "ftps", "path", "flake"];
    let Some((place, path)) = url.split_once(':') else { return Ok(None) };
    let scheme = place.strip_prefix("git+").unwrap_or(place);
    if url.contains("://") || place.contains('/') || KNOWN.contains(&scheme) {
        return Ok(None);
    }
    if path.is_empty() {
        return Err(FetchError::bad_url(format!("SCP-style Git URL '{}' has an empty path", shown(url))));
    }
    let (user, host) = match place.rsplit_once('@') {
        Some((user, host)) => (Some(user.to_owned()), host),
        None => (None, place),
    };
    let authority = Authority { user, host: host.to_owned(), ..Authority::default() };
    let mut steps: Vec<String> = path.split('/').map(str::to_owned).collect();
    if steps.first().is_some_and(|first| !first.is_empty()) {
        steps.insert(0, String::new());
    }
    Ok(Some(Url { scheme: "ssh".to_owned(), authority: Some(authority), path: steps, ..Url::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_print_as_they_were_read() {
        for url in [
            "path:./a",
            "path:/a/b?narHash=sha256-a%2Bb/c%3D&rev=12",
            "git+file:///a/b?dir=x&ref=main",
            "https://user:pw@example.org:8080/a%20b?x=1",
            "github:owner/repo/branch",
            "git+ssh://git@[::1]/x",
        ] {
            assert_eq!(Url::parse(url, true).expect("a URL").to_string(), url);
        }
        assert_eq!(Url::parse("file://", false).expect("the root").path, ["", ""]);
        assert!(Url::parse("a/b", true).is_err() && Url::parse("/a:b", true).is_err());
        assert!(Url::parse("file://host/x", true).is_err());
        assert_eq!(Url::parse("path:x#a b", true).expect("forgiven").fragment, "a b");
        assert!(Url::parse("path:x#a b", false).is_err());
    }

    #[test]
    fn git_places_become_urls() {
        for (place, url) in [
            ("/a/b", "file:///a/b"),
            ("git@example.org:a/b.git", "ssh://git@example.org/a/b.git"),
            ("git+https://example.org/a", "https://example.org/a"),
            ("file:///x", "file:///x"),
        ] {
            assert_eq!(fix_git_url(place).expect("a place").to_string(), url);
        }
    }
}
