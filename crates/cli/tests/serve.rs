//! `firn cache serve`: a remote like any other, that keeps only what is what its name says, and a page that people can read.
//!
//! The page is looked at in headless Chromium where there is one.
#![allow(clippy::disallowed_methods, reason = "a test runs programs and reads files itself")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

struct Server {
    process: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn firn(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.env_clear().env("HOME", dir.join("home")).env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
    command.env("FIRN_MEMO_LEAST", "0").env("FIRN_SECRET_KEY_FILE", dir.join("key")).stdin(Stdio::null());
    command
}

fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let made = Command::new(env!("CARGO_BIN_EXE_firn")).args(["cache", "key", "generate", "team-1"]).output().unwrap();
    std::fs::write(dir.path().join("key"), made.stdout).unwrap();
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(dir.path().join("src/default.nix"), "{ x = builtins.readFile ./t; y = 2; }").unwrap();
    std::fs::write(dir.path().join("src/t"), "text").unwrap();
    dir
}

fn serve(dir: &Path, arguments: &[&str]) -> Server {
    let mut command = firn(dir);
    command.args(["cache", "serve"]).arg(dir.join("served")).args(["--listen", "127.0.0.1:0"]).args(arguments);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}")).trim_end().trim_end_matches('/').to_owned();
    Server { process, address }
}

fn asks(dir: &Path, cache: &str, remote: &str, attribute: &str) -> Output {
    let mut command = firn(dir);
    command.env("FIRN_CACHE_DIR", dir.join(cache)).current_dir(dir.join("src"));
    command.args(["eval", "--memo", "shared", "--remote", remote, "--json", "-f", "default.nix", attribute]).output().unwrap()
}

fn request(address: &str, head: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = if head.starts_with("PUT") { format!("Content-Length: {}\r\n", body.len()) } else { String::new() };
    // In one piece, and whatever becomes of it: a server may refuse what it has seen the first line of, and hang up.
    let request = [format!("{head}\r\nHost: {address}\r\nConnection: close\r\n{length}\r\n").as_bytes(), body].concat();
    let _ = stream.write_all(&request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let at = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(answer.len());
    let body = answer.get(at + 4..).unwrap_or_default().to_vec();
    (String::from_utf8_lossy(&answer[..at]).into_owned(), body)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn objects(dir: &Path) -> Vec<PathBuf> {
    let (mut all, mut todo) = (Vec::new(), vec![dir.join("served/v1")]);
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() { todo.push(entry.path()) } else { all.push(entry.path()) }
        }
    }
    all.sort();
    all
}

#[test]
fn a_server_is_a_remote_like_any_other() {
    let dir = world();
    let server = serve(dir.path(), &[]);
    let remote = format!("http://{}", server.address);
    let first = asks(dir.path(), "a", &remote, "x");
    assert!(first.status.success() && first.stderr.is_empty(), "{first:?}");
    assert_eq!(objects(dir.path()).len(), 3);
    let mut again = firn(dir.path());
    again.env("FIRN_CACHE_DIR", dir.path().join("b")).current_dir(dir.path().join("src"));
    again.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", dir.path().join("stats"));
    let again = again.args(["eval", "--memo", "shared", "--remote", &remote, "--json", "-f", "default.nix", "x"]).output().unwrap();
    assert_eq!((text(&again.stdout), text(&again.stderr)), (text(&first.stdout), String::new()));
    assert!(std::fs::read_to_string(dir.path().join("stats")).unwrap().contains("\"nrFiles\": 0"));
    let (head, body) = request(&server.address, "GET /status.json HTTP/1.1", b"");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("application/json"), "{head}");
    let status = text(&body);
    for expected in ["\"questions\":1,", "\"answers\":1,", "\"nodes\":1,", "\"pushed\":1,", "\"attribute\":\"x\"", "\"signer\":\"team-1\""] {
        assert!(status.contains(expected), "{expected} in {status}");
    }
}

#[test]
fn what_is_not_what_its_name_says_is_not_kept() {
    let dir = world();
    let server = serve(dir.path(), &[]);
    let remote = format!("http://{}", server.address);
    assert!(asks(dir.path(), "a", &remote, "x").status.success());
    let before: Vec<Vec<u8>> = objects(dir.path()).iter().map(|path| std::fs::read(path).unwrap()).collect();
    let names: Vec<String> =
        objects(dir.path()).iter().map(|path| path.strip_prefix(dir.path().join("served")).unwrap().display().to_string()).collect();
    for (name, content) in names.iter().zip(&before) {
        for other in before.iter().filter(|other| *other != content).chain([&b"nonsense".to_vec(), &vec![]]) {
            let (head, _) = request(&server.address, &format!("PUT /{name} HTTP/1.1"), other);
            assert!(head.starts_with("HTTP/1.1 400"), "{name}: {head}");
        }
        let (head, _) = request(&server.address, &format!("PUT /{name} HTTP/1.1"), content);
        assert!(head.starts_with("HTTP/1.1 204"), "{name}: {head}");
        let (head, body) = request(&server.address, &format!("GET /{name} HTTP/1.1"), b"");
        assert!(head.starts_with("HTTP/1.1 200") && &body == content, "{name}: {head}");
        let (head, body) = request(&server.address, &format!("GET /{name} HTTP/1.1\r\nRange: bytes=0-0"), b"");
        assert!(head.starts_with("HTTP/1.1 206") && body == content[..1], "{name}: {head}");
    }
    // An index that names what is not here is not taken.
    let index = names.iter().find(|name| name.contains("/index/")).unwrap();
    let answer = names.iter().position(|name| name.contains("/answers/")).unwrap();
    std::fs::remove_file(objects(dir.path())[answer].clone()).unwrap();
    let content = &before[names.iter().position(|name| name == index).unwrap()];
    let (head, _) = request(&server.address, &format!("PUT /{index} HTTP/1.1"), content);
    assert!(head.starts_with("HTTP/1.1 409"), "{head}");
    for (head, status) in [
        ("GET /v1/nodes/../../key HTTP/1.1", "404"),
        ("GET /nothing HTTP/1.1", "404"),
        ("GET /v2/nodes/ab/ab HTTP/1.1", "404"),
        ("POST / HTTP/1.1\r\nContent-Length: 0", "405"),
        (&format!("DELETE /{index} HTTP/1.1"), "405"),
        ("nonsense", "400"),
    ] {
        let (answered, _) = request(&server.address, head, b"");
        assert!(answered.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answered}");
    }
}

#[test]
fn tokens_and_reading_only_are_kept_to() {
    let dir = world();
    std::fs::write(dir.path().join("token"), "s3cret\n").unwrap();
    let server = serve(dir.path(), &["--token-file", dir.path().join("token").to_str().unwrap()]);
    let remote = format!("http://{}", server.address);
    let refused = asks(dir.path(), "a", &remote, "x");
    assert!(refused.status.success() && text(&refused.stderr).contains("is left alone"), "{refused:?}");
    assert!(objects(dir.path()).is_empty());
    let with_token = format!("{remote}?token-file={}", dir.path().join("token").display());
    let taken = asks(dir.path(), "b", &with_token, "x");
    assert!(taken.status.success() && taken.stderr.is_empty(), "{taken:?}");
    assert_eq!(objects(dir.path()).len(), 3);
    drop(server);
    let server = serve(dir.path(), &["--read-only"]);
    let refused = asks(dir.path(), "c", &format!("http://{}", server.address), "y");
    assert!(text(&refused.stderr).contains("is left alone"), "{refused:?}");
    let found = asks(dir.path(), "d", &format!("http://{}?mode=ro", server.address), "x");
    assert!(found.status.success() && found.stderr.is_empty(), "{found:?}");
}

#[test]
fn the_page_shows_what_is_there() {
    let dir = world();
    let server = serve(dir.path(), &[]);
    let remote = format!("http://{}", server.address);
    for attribute in ["x", "y"] {
        assert!(asks(dir.path(), "a", &remote, attribute).status.success());
    }
    assert!(asks(dir.path(), "b", &remote, "x").status.success());
    let (head, body) = request(&server.address, "GET / HTTP/1.1", b"");
    assert!(head.contains("text/html") && head.contains("content-security-policy: default-src 'none'"), "{head}");
    let page = text(&body);
    assert!(page.contains("<td class=\"attribute\">y</td>") && !page.contains("@recent@"), "{page}");
    let Some(chromium) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(name).exists()))
    }) else {
        return eprintln!("\n**** NOT TESTED: there is no chromium on PATH, the page was not looked at ****\n");
    };
    assert!(page.contains("prefers-color-scheme: dark"));
    for scheme in ["light", "dark"] {
        let mut command = Command::new(chromium);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=12000"]);
        command.arg(format!("--user-data-dir={}", dir.path().join(format!("browser-{scheme}")).display()));
        if scheme == "dark" {
            command.arg("--blink-settings=preferredColorScheme=0");
        }
        let output = command.arg("--dump-dom").arg(format!("{remote}/")).env("HOME", dir.path()).output().unwrap();
        let dom = text(&output.stdout);
        // Its script has run: the numbers were fetched again and put in place.
        assert!(dom.contains("<span id=\"questions\">2</span>"), "{dom}\n{}", text(&output.stderr));
        assert!(dom.contains("role=\"status\" class=\"\">running</span>"), "{dom}");
        assert!(dom.contains(">x</td>") && dom.contains(">y</td>") && dom.contains("team-1"), "{dom}");
        let shot = dir.path().join(format!("{scheme}.png"));
        let mut command = Command::new(chromium);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,700"]);
        command.arg(format!("--user-data-dir={}", dir.path().join(format!("shot-{scheme}")).display()));
        if scheme == "dark" {
            command.arg("--blink-settings=preferredColorScheme=0");
        }
        let output = command.arg(format!("--screenshot={}", shot.display())).arg(format!("{remote}/")).env("HOME", dir.path()).output();
        assert!(output.is_ok() && std::fs::metadata(&shot).is_ok_and(|about| about.len() > 5000), "{output:?}");
        if let Some(keep) = std::env::var_os("FIRN_KEEP_SCREENSHOTS") {
            std::fs::copy(&shot, Path::new(&keep).join(format!("{scheme}.png"))).unwrap();
        }
    }
}
