//! Transfers: redirections, etags, broken and slow answers, errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::Bench;
use crate::server::{Reply, Server};

fn full(body: &str) -> Reply {
    Reply::Full(200, Vec::new(), body.into())
}

fn header(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

fn text(bench: &Bench, url: &str) -> Result<String, String> {
    let file = bench.fetcher.downloaded(url).map_err(|error| error.to_string())?;
    Ok(std::fs::read_to_string(file).expect("a downloaded file"))
}

#[test]
fn redirections_are_followed_to_an_end() {
    let server = Server::start(Box::new(|path, _| match path {
        "/a" => Reply::Full(302, header("Location", "/b?x=1"), Vec::new()),
        "/b?x=1" => Reply::Full(301, header("Location", "c/d"), Vec::new()),
        "/c/d" => full("found"),
        "/loop" => Reply::Full(307, header("Location", "/loop"), Vec::new()),
        "/file" => Reply::Full(302, header("Location", "file:///etc/passwd"), Vec::new()),
        _ => Reply::Full(404, Vec::new(), b"nothing here\n".to_vec()),
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    assert_eq!(text(&bench, &format!("{}/a", server.url)).as_deref(), Ok("found"));
    let error = text(&bench, &format!("{}/loop", server.url)).expect_err("never ends");
    assert!(error.contains("too many redirections"), "{error}");
    let error = text(&bench, &format!("{}/file", server.url)).expect_err("leads to the disk");
    assert!(error.contains("is not followed"), "{error}");
    let url = format!("{}/missing", server.url);
    let error = text(&bench, &url).expect_err("missing");
    assert_eq!(error, format!("unable to download '{url}': HTTP error 404\n\nresponse body:\n\nnothing here"));
}

#[test]
fn what_did_not_change_is_not_sent_again() {
    let server = Server::start(Box::new(|_, etag| match etag {
        Some("\"one\"") => Reply::Full(304, Vec::new(), Vec::new()),
        _ => Reply::Full(200, header("ETag", "\"one\""), b"content".to_vec()),
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let url = format!("{}/x", server.url);
    let young = Bench::new(cache.path(), |_| {});
    assert_eq!(text(&young, &url).as_deref(), Ok("content"));
    assert_eq!(text(&young, &url).as_deref(), Ok("content"));
    assert_eq!(server.count(), 1, "a young answer is not asked for again");
    let old = Bench::new(cache.path(), |settings| settings.tarball_ttl = Duration::ZERO);
    assert_eq!(text(&old, &url).as_deref(), Ok("content"));
    assert_eq!(server.count(), 2, "an old one is, and its content kept");
    let offline = Bench::new(cache.path(), |settings| settings.offline = true);
    assert_eq!(text(&offline, &url).as_deref(), Ok("content"));
    assert!(text(&offline, &format!("{url}/other")).expect_err("unknown").contains("network access is disabled"));
    assert_eq!(server.count(), 2);
}

#[test]
fn broken_transfers_are_tried_again() {
    let tries = Arc::new(AtomicUsize::new(0));
    let seen = tries.clone();
    let server = Server::start(Box::new(move |path, _| match (path, seen.fetch_add(1, Ordering::Relaxed)) {
        ("/half", 0) => Reply::Truncated(b"half".to_vec(), 8),
        ("/half", _) => full("all of it"),
        ("/busy", _) => Reply::Full(503, Vec::new(), b"busy".to_vec()),
        _ => Reply::Truncated(b"half".to_vec(), 8),
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(cache.path(), |_| {});
    assert_eq!(text(&bench, &format!("{}/half", server.url)).as_deref(), Ok("all of it"));
    assert_eq!(server.count(), 2);
    assert!(bench.warnings.lock().expect("no panic")[0].contains("retrying in 1 ms"));
    let error = text(&bench, &format!("{}/always", server.url)).expect_err("never whole");
    assert!(error.contains("unable to download"), "{error}");
    let error = text(&bench, &format!("{}/busy", server.url)).expect_err("busy");
    assert!(error.contains("HTTP error 503"), "{error}");
    assert_eq!(server.count(), 6, "two tries each");
    let left = std::fs::read_dir(cache.path().join("files")).expect("a directory").count();
    assert_eq!(left, 1, "nothing half-written stays");
}

#[test]
fn a_stalled_transfer_ends() {
    let server = Server::start(Box::new(|path, _| match path {
        "/slow" => Reply::Stalled(b"slow but whole".to_vec(), Duration::from_millis(300)),
        _ => Reply::Stalled(b"never".to_vec(), Duration::from_secs(60)),
    }));
    let cache = tempfile::tempdir().expect("a directory");
    let patient = Bench::new(cache.path(), |_| {});
    assert_eq!(text(&patient, &format!("{}/slow", server.url)).as_deref(), Ok("slow but whole"));
    let bench = Bench::new(cache.path(), |settings| {
        settings.stalled_timeout = Duration::from_millis(200);
        settings.attempts = 1;
    });
    let error = text(&bench, &format!("{}/stuck", server.url)).expect_err("stuck");
    assert!(error.contains("nothing arrived for too long"), "{error}");
}

#[test]
fn an_old_copy_serves_when_the_server_is_gone() {
    let cache = tempfile::tempdir().expect("a directory");
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let server = Server::start(Box::new(move |_, _| match seen.fetch_add(1, Ordering::Relaxed) {
        0 => full("old"),
        _ => Reply::Full(500, Vec::new(), Vec::new()),
    }));
    let bench = Bench::new(cache.path(), |settings| settings.tarball_ttl = Duration::ZERO);
    let url = format!("{}/x", server.url);
    assert_eq!(text(&bench, &url).as_deref(), Ok("old"));
    assert_eq!(text(&bench, &url).as_deref(), Ok("old"));
    let warnings = bench.warnings.lock().expect("no panic").join("\n");
    assert!(warnings.contains("using cached version"), "{warnings}");
}

#[test]
fn files_are_read_from_disk() {
    let dir = tempfile::tempdir().expect("a directory");
    let bench = Bench::new(&dir.path().join("cache"), |_| {});
    let file = dir.path().join("a b");
    std::fs::write(&file, "one").expect("writes");
    let url = format!("file://{}/a%20b", dir.path().display());
    assert_eq!(text(&bench, &url).as_deref(), Ok("one"));
    std::fs::write(&file, "two").expect("writes");
    assert_eq!(text(&bench, &url).as_deref(), Ok("two"));
    assert!(text(&bench, "file:///nonexistent/x").expect_err("missing").contains("(37) Couldn't open file"));
}
