//! `fetchClosure` from binary caches that the real Nix made, from disk and over HTTP, into every kind of store; the real Nix
//! checks what arrived (E4, E5).

use crate::scratch::{Scratch, nix_is_here};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// `top` refers to `dep` and to itself; `text` vouches for itself.
const GRAPH: &str = r#"
let
  make = name: script: derivation {
    inherit name; system = builtins.currentSystem; builder = "/bin/sh"; PATH = "/bin:/usr/bin"; args = [ "-c" script ];
  };
  dep = make "dep" "echo of dep > $out";
  top = make "top" ''mkdir -p $out/bin; echo "${dep} $out" > $out/names; echo '#!/bin/sh' > $out/bin/run
    chmod +x $out/bin/run; ln -s names $out/link; echo "{ answer = 42; }" > $out/default.nix'';
in [ top dep ]
"#;

struct Caches {
    scratch: Scratch,
    /// The objects that the cache has.
    top: String,
    dep: String,
    text: String,
    /// The content-addressed form of `top`, as the real Nix has it.
    rewritten: String,
    public_key: String,
}

fn nix<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    ["--extra-experimental-features", "nix-command ca-derivations"].iter().chain(arguments).copied().collect()
}

/// Builds the objects, copies them to caches of every compression, and deletes them from the store.
fn caches(name: &str) -> Caches {
    let scratch = Scratch::new(name);
    std::fs::write(scratch.path("graph.nix"), GRAPH).expect("written");
    let drvs = scratch.nix("nix-instantiate", &["--no-gc-warning", "graph.nix"]).lines();
    let drvs: Vec<&str> = drvs.iter().map(String::as_str).collect();
    let built = scratch.nix("nix-store", &[&["--realise"], &drvs[..]].concat()).lines();
    let named = |end: &str| built.iter().find(|path| path.ends_with(end)).expect("built").clone();
    let (top, dep) = (named("-top"), named("-dep"));
    std::fs::write(scratch.path("text"), "vouches for itself\n").expect("written");
    let text = scratch.nix("nix-store", &["--add", &scratch.path("text").display().to_string()]).line();
    let (secret, public) = (scratch.path("secret"), scratch.path("public"));
    let paths = [&secret, &public].map(|path| path.display().to_string());
    scratch.nix("nix-store", &["--generate-binary-cache-key", "test-1", &paths[0], &paths[1]]);
    for compression in ["none", "xz", "bzip2", "gzip", "zstd"] {
        let at = scratch.path(compression).display().to_string();
        let to = format!("file://{at}?compression={compression}&secret-key={}", paths[0]);
        scratch.nix("nix", &nix(&["copy", "--to", &to, &top, &text]));
    }
    let told = scratch.nix("nix", &nix(&["store", "make-content-addressed", &top])).errors();
    let line = told.lines().find(|line| line.contains("-top' to '")).unwrap_or_else(|| panic!("no new path in {told}"));
    let rewritten = line.rsplit('\'').nth(1).expect("quoted").to_owned();
    let xz = format!("file://{}?compression=xz", scratch.path("xz").display());
    scratch.nix("nix", &nix(&["copy", "--to", &xz, &rewritten]));
    let public_key = std::fs::read_to_string(public).expect("a key").trim().to_owned();
    let caches = Caches { scratch, top, dep, text, rewritten, public_key };
    caches.delete();
    caches
}

impl Caches {
    /// Deletes everything that was built or fetched from the store.
    fn delete(&self) {
        self.scratch.nix("nix-store", &["--gc"]);
        for path in [&self.top, &self.dep, &self.text, &self.rewritten] {
            assert!(!Path::new(path).exists(), "{path} was deleted");
        }
    }

    fn forget_downloads(&self) {
        let _ = std::fs::remove_dir_all(self.scratch.path("home"));
    }

    fn cache(&self, name: &str) -> String {
        format!("file://{}", self.scratch.path(name).display())
    }

    fn call(&self, cache: &str, from: &str, more: &str) -> String {
        format!("builtins.fetchClosure {{ fromStore = \"{cache}\"; fromPath = {from}; {more} }}")
    }

    /// Runs `firn instantiate` on an expression: whether it succeeded, and what it said.
    fn firn(&self, expression: &str, more: &[&str]) -> (bool, String) {
        let keys = ["--option", "trusted-public-keys", &self.public_key];
        let features = ["--extra-experimental-features", "fetch-closure"];
        let arguments: Vec<&str> = more.iter().chain(&keys).chain(&features).copied().collect();
        let mut command = self.scratch.firn_command(&arguments);
        let output = command.env("_NIX_IN_TEST", "1").args(["-E", expression]).output().expect("firn runs");
        let said = if output.status.success() { &output.stdout } else { &output.stderr };
        (output.status.success(), String::from_utf8_lossy(said).trim_end().to_owned())
    }

    fn gives(&self, expression: &str, more: &[&str]) -> String {
        let (fine, said) = self.firn(expression, more);
        assert!(fine, "{expression}: {said}");
        said
    }

    fn fails(&self, expression: &str, more: &[&str]) -> String {
        let (fine, said) = self.firn(expression, more);
        assert!(!fine, "{expression}: {said}");
        said
    }

    /// The file of the cache that tells of an object.
    fn narinfo(&self, cache: &str, path: &str) -> PathBuf {
        let base = path.rsplit('/').next().expect("a base name");
        self.scratch.path(cache).join(format!("{}.narinfo", &base[..32]))
    }

    fn edit(&self, cache: &str, path: &str, edit: impl Fn(String) -> String) {
        let place = self.narinfo(cache, path);
        let text = std::fs::read_to_string(&place).expect("a narinfo");
        std::fs::write(&place, edit(text)).expect("written");
    }
}

const EVAL: [&str; 2] = ["--eval", "--strict"];
const WRITE: [&str; 3] = ["--eval", "--strict", "--read-write-mode"];

/// An expression that reads all kinds of files of `top`.
fn reading(call: &str) -> String {
    format!(
        "let top = {call}; in [ (import top).answer (builtins.readFile \"${{top}}/link\") (builtins.attrNames (builtins.readDir top)) ]"
    )
}

#[test]
fn closures_come_from_caches_of_every_compression_into_an_evaluation_without_a_store() {
    if !nix_is_here() {
        return;
    }
    let caches = caches("closure");
    let read = format!("[ 42 \"{} {}\\n\" [ \"bin\" \"default.nix\" \"link\" \"names\" ] ]", caches.dep, caches.top);
    for name in ["none", "xz", "bzip2", "gzip", "zstd"] {
        caches.forget_downloads();
        let call = caches.call(&caches.cache(name), &caches.top, "inputAddressed = true;");
        assert_eq!(caches.gives(&reading(&call), &EVAL), read, "{name}");
        let text = caches.call(&caches.cache(name), &caches.text, "");
        assert_eq!(caches.gives(&format!("builtins.readFile ({text})"), &EVAL), "\"vouches for itself\\n\"");
    }
    // Over HTTP, in pure evaluation, and a second time from what was downloaded.
    caches.forget_downloads();
    let url = serve(caches.scratch.path("xz"));
    let call = caches.call(&url, &format!("\"{}\"", caches.top), "inputAddressed = true;");
    for _ in 0..2 {
        assert_eq!(caches.gives(&reading(&call), &["--eval", "--strict", "--pure-eval"]), read);
    }
    assert!(!Path::new(&caches.top).exists(), "an evaluation without a store writes none");
}

#[test]
fn closures_reach_stores_and_the_real_nix_accepts_them() {
    if !nix_is_here() {
        return;
    }
    let mut caches = caches("closure-in");
    let url = serve(caches.scratch.path("xz"));
    for daemon in [false, true] {
        if daemon {
            let key = format!("{}\n", caches.public_key);
            let conf = format!("sandbox = false\nsubstituters =\nsubstitute = false\nbuild-users-group =\ntrusted-public-keys = {key}");
            std::fs::write(caches.scratch.path("etc/nix.conf"), conf).expect("written");
            caches.scratch.start_daemon();
        }
        for (from, more) in [(&caches.top, "inputAddressed = true;"), (&caches.rewritten, ""), (&caches.text, "")] {
            let call = caches.call(&url, from, more);
            let needs = format!(
                "derivation {{ name = \"needs\"; system = builtins.currentSystem; builder = \"/bin/sh\"; input = {call}; }}"
            );
            let drv = caches.gives(&needs, &["--no-gc-warning"]);
            caches.scratch.nix("nix-store", &["--check-validity", from]);
            let references = caches.scratch.nix("nix-store", &["-q", "--references", drv.trim()]).lines();
            assert!(references.contains(from), "{references:?}");
            // Found in the store, the cache is not asked.
            let there = caches.call("http://127.0.0.1:1", from, more);
            assert_eq!(caches.gives(&there, &WRITE), format!("\"{from}\""));
        }
        let references = caches.scratch.nix("nix-store", &["-q", "--references", &caches.top]).lines();
        assert_eq!(references.len(), 2, "{references:?}");
        let about = caches.scratch.nix("nix", &nix(&["path-info", "--sigs", &caches.top])).text();
        assert!(about.contains("test-1:"), "{about}");
        caches.scratch.verify();
        caches.delete();
    }
}

#[test]
fn closures_are_rewritten_to_what_nix_rewrites_them_to() {
    if !nix_is_here() {
        return;
    }
    let caches = caches("closure-ca");
    let call = |to: &str| caches.call(&caches.cache("zstd"), &caches.top, &format!("toPath = {to};"));
    let rewritten = &caches.rewritten;
    let said = caches.fails(&call("\"\""), &WRITE);
    let hint = format!(
        "rewriting '{}' to content-addressed form yielded '{rewritten}'\n       Use this value for the 'toPath' attribute passed to 'fetchClosure'",
        caches.top
    );
    assert!(said.contains(&hint), "{said}");
    let said = caches.fails(&call(&caches.dep), &WRITE);
    assert!(said.contains(&format!("yielded '{rewritten}', while '{}' was expected", caches.dep)), "{said}");
    assert_eq!(caches.gives(&format!("(import ({})).answer", call(rewritten)), &EVAL), "42");
    let drv = format!("derivation {{ name = \"n\"; system = \"s\"; builder = \"b\"; input = {}; }}", call(rewritten));
    caches.gives(&drv, &["--no-gc-warning"]);
    caches.scratch.nix("nix-store", &["--check-validity", rewritten]);
    caches.scratch.verify();
    // What is there must be content-addressed to be a result of rewriting.
    let copied = caches.call(&caches.cache("xz"), &caches.top, "inputAddressed = true;");
    caches.gives(&format!("derivation {{ name = \"n\"; system = \"s\"; builder = \"b\"; input = {copied}; }}"), &["--no-gc-warning"]);
    let said = caches.fails(&call(&caches.top), &WRITE);
    assert!(said.contains(&format!("The 'toPath' value '{}' is input-addressed", caches.top)), "{said}");
}

#[test]
fn what_is_wrong_with_a_cache_is_told_and_leaves_nothing() {
    if !nix_is_here() {
        return;
    }
    let caches = caches("closure-bad");
    let (top, dep, text) = (&caches.top, &caches.dep, &caches.text);
    let call = |from: &str, more: &str| caches.call(&caches.cache("none"), from, more);
    let fails = |expression: &str, said: &str| {
        for mode in [&EVAL[..], &["--no-gc-warning"]] {
            let whole = caches.fails(&format!("derivation {{ name = \"n\"; system = \"s\"; builder = {expression}; }}"), mode);
            assert!(whole.contains(said), "{said:?} is not in {whole}");
        }
    };
    fails(&call(top, ""), "is input-addressed, but 'inputAddressed' is set to 'false' (default)");
    fails(&call(text, "inputAddressed = true;"), "is not input-addressed, but 'inputAddressed' is set to 'true'");
    let nowhere = top.replace("-top", "-pot");
    fails(&call(&nowhere, ""), &format!("path '{nowhere}' is not valid"));
    fails(&caches.call("file:///nonexistent", top, ""), &format!("path '{top}' is not valid"));
    let server = serve(caches.scratch.path("none"));
    fails(&caches.call(&format!("{server}/nar"), top, ""), "does not appear to be a binary cache");
    fails(&caches.call("ssh://host", top, ""), "'fetchClosure' only supports http:// and https:// stores");
    fails(&caches.call(&format!("{server}?priority=1"), top, ""), "does not support URL query parameters");
    // Signatures: none, or of something else.
    let unsigned = |text: String| text.lines().filter(|line| !line.starts_with("Sig:")).map(|line| format!("{line}\n")).collect();
    let original = std::fs::read_to_string(caches.narinfo("none", dep)).expect("a narinfo");
    let untrusted = format!("cannot add path '{dep}' because it lacks a signature by a trusted key");
    caches.edit("none", dep, unsigned);
    fails(&call(top, "inputAddressed = true;"), &untrusted);
    assert_eq!(caches.gives(&call(dep, "inputAddressed = true;"), &["--eval", "--option", "require-sigs", "false"]), format!("\"{dep}\""));
    caches.forget_downloads();
    caches.edit("none", dep, |_| original.replace("NarSize: ", "NarSize: 1"));
    fails(&call(top, "inputAddressed = true;"), &untrusted);
    caches.edit("none", dep, |_| original.replace("NarHash: sha256:", "NarHash: sha257:"));
    fails(&call(top, "inputAddressed = true;"), "is corrupt: bad hash at line");
    caches.edit("none", dep, |_| original.clone());
    // An object that claims an address it does not have needs a signature; content must be what its address says.
    let claim = std::fs::read_to_string(caches.narinfo("none", text)).expect("a narinfo");
    caches.edit("none", text, |text| text.replace("CA: fixed:r:", "CA: fixed:"));
    fails(&call(text, ""), "is input-addressed, but");
    caches.edit("none", text, |_| claim.clone());
    // Archives: gone, cut off, changed.
    let url = claim.lines().find_map(|line| line.strip_prefix("URL: ")).expect("an address");
    let archive = caches.scratch.path("none").join(url);
    let bytes = std::fs::read(&archive).expect("an archive");
    let mut changed = bytes.clone();
    let at = changed.windows(7).position(|part| part == b"vouches").expect("the text");
    changed[at] = b'V';
    for damaged in [&bytes[..bytes.len() - 8], &changed, &[&bytes[..], b"more"].concat()] {
        std::fs::write(&archive, damaged).expect("written");
        fails(&call(text, ""), &format!("hash mismatch importing path '{text}';\n         specified: sha256-"));
    }
    std::fs::remove_file(&archive).expect("removed");
    fails(&call(text, ""), &format!("file '{url}' does not exist in binary cache"));
    let left = |below: &str| std::fs::read_dir(caches.scratch.path(below)).map_or(0, Iterator::count);
    assert_eq!(left("home/.cache/firn/fetch/closures") + left("home/.cache/firn/fetch/files"), 0);
    assert!([top, dep, text].iter().all(|path| !Path::new(path).exists()));
}

#[test]
fn memory_keeps_what_content_vouches_for_and_nothing_else() {
    if !nix_is_here() {
        return;
    }
    let caches = caches("closure-memo");
    let read = |from: &str, more: &str| format!("builtins.readFile ({})", caches.call(&caches.cache("xz"), from, more));
    let (dep, text) = (read(&caches.dep, "inputAddressed = true;"), read(&caches.text, ""));
    let remembering = ["--eval", "--memo", "disk"];
    // What failed is asked again.
    let (place, away) = (caches.scratch.path("xz"), caches.scratch.path("away"));
    std::fs::rename(&place, &away).expect("moved");
    for expression in [&dep, &text] {
        caches.fails(expression, &remembering);
    }
    std::fs::rename(&away, &place).expect("moved back");
    for _ in 0..2 {
        assert_eq!(caches.gives(&dep, &remembering), "\"of dep\\n\"");
        assert_eq!(caches.gives(&text, &remembering), "\"vouches for itself\\n\"");
    }
    // Who vouched for it yesterday may not be believed today; content needs nobody.
    let wary = Caches { public_key: String::new(), ..caches };
    let said = wary.fails(&dep, &remembering);
    assert!(said.contains("lacks a signature by a trusted key"), "{said}");
    assert_eq!(wary.gives(&text, &remembering), "\"vouches for itself\\n\"");
}

/// Serves the files of a directory until the test ends; the address.
fn serve(root: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
            let (status, body) = match std::fs::read(root.join(path)) {
                Ok(body) => (200, body),
                Err(_) => (404, Vec::new()),
            };
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    url
}
