//! References and lock files, read and printed.

use std::sync::Arc;

use firn_flake::{Edge, FlakeRef, LockFile, ParseOptions};
use firn_host::AbsPath;
use firn_host::fetch::{FetchSettings, Fetcher, attrs_to_json};
use firn_host::{Host, RealHost, RealWorld};

fn fetcher() -> Fetcher {
    let host = || -> Arc<dyn Host> { Arc::new(RealHost::new(RealWorld)) };
    Fetcher::new(FetchSettings { flakes: true, ..FetchSettings::default() }, host(), host, |_| {})
}

fn parse(text: &str) -> Result<FlakeRef, String> {
    let options = ParseOptions { allow_missing: true, ..ParseOptions::default() };
    FlakeRef::parse(&fetcher(), text, options).map_err(|error| error.to_string())
}

#[test]
fn references_are_read_and_printed() {
    for (text, attrs, url) in [
        ("nixpkgs", r#"{"id":"nixpkgs","type":"indirect"}"#, "flake:nixpkgs"),
        ("nixpkgs/nixos-20.03", r#"{"id":"nixpkgs","ref":"nixos-20.03","type":"indirect"}"#, "flake:nixpkgs/nixos-20.03"),
        (
            "github:NixOS/nixpkgs/23.05?dir=lib",
            r#"{"dir":"lib","owner":"NixOS","ref":"23.05","repo":"nixpkgs","type":"github"}"#,
            "github:NixOS/nixpkgs/23.05?dir=lib",
        ),
        (
            "gitlab:a/b?host=example.org",
            r#"{"host":"example.org","owner":"a","repo":"b","type":"gitlab"}"#,
            "gitlab:a/b?host=example.org",
        ),
        ("sourcehut:~a/b", r#"{"owner":"~a","repo":"b","type":"sourcehut"}"#, "sourcehut:~a/b"),
        ("path:/a/b", r#"{"path":"/a/b","type":"path"}"#, "path:/a/b"),
        ("/a/b?dir=c", r#"{"dir":"c","path":"/a/b","type":"path"}"#, "path:/a/b?dir=c"),
        ("git+file:///a?ref=x", r#"{"ref":"x","type":"git","url":"file:///a"}"#, "git+file:///a?ref=x"),
        (
            "git+https://example.org/a?shallow=1",
            r#"{"shallow":true,"type":"git","url":"https://example.org/a"}"#,
            "git+https://example.org/a?shallow=1",
        ),
        ("https://example.org/x", r#"{"type":"tarball","url":"https://example.org/x"}"#, "https://example.org/x"),
        ("file+https://example.org/x", r#"{"type":"file","url":"https://example.org/x"}"#, "https://example.org/x"),
    ] {
        let reference = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(attrs_to_json(&reference.to_attrs()).expect("prints"), attrs, "{text}");
        assert_eq!(reference.to_url().expect("prints"), url, "{text}");
        let again = FlakeRef::from_attrs(&fetcher().settings, reference.to_attrs()).expect("the same");
        assert_eq!(again, reference, "{text}");
    }
}

#[test]
fn what_is_no_reference_is_told() {
    for (text, why) in [
        ("./x", "flake reference './x' is not an absolute path"),
        // NIX: what is no URL is taken for a path.
        ("github:a", "flake reference 'github:a' is not an absolute path"),
        ("path:/a?x=1", "path URL 'path:/a?x=1' has unsupported parameter 'x'"),
        ("nixpkgs#hello", "unexpected fragment 'hello' in flake reference 'nixpkgs#hello'"),
        ("svn+https://example.org/x", "input 'svn+https://example.org/x' is unsupported"),
        ("file+git:///x", "input 'file+git:///x' is unsupported; did you mean 'git+file' instead of 'file+git'?"),
    ] {
        assert_eq!(parse(text).expect_err(text), why);
    }
}

#[test]
fn paths_on_disk_lead_to_their_flake_and_repository() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = std::fs::canonicalize(dir.path()).expect("a path");
    for place in ["repo/.git", "repo/sub/inner", "plain/deep"] {
        std::fs::create_dir_all(root.join(place)).expect("makes directories");
    }
    for file in ["repo/sub/flake.nix", "plain/flake.nix"] {
        std::fs::write(root.join(file), "{ }").expect("writes");
    }
    let base = AbsPath::new(root.to_str().expect("UTF-8").as_bytes()).expect("no NUL");
    let read = |text: &str| {
        let options = ParseOptions { base: Some(&base), ..ParseOptions::default() };
        let found = FlakeRef::parse_with_fragment(&fetcher(), text, options);
        found.map(|(reference, fragment)| (reference.show(), fragment)).map_err(|error| error.to_string())
    };
    let at = root.display();
    assert_eq!(read("./repo/sub#a b"), Ok((format!("git+file://{at}/repo?dir=sub"), "a b".to_owned())));
    assert_eq!(read("repo/sub").map(|(url, _)| url), Ok("flake:repo/sub".to_owned()), "a name comes first");
    assert_eq!(read("./repo/sub/inner"), Ok((format!("git+file://{at}/repo?dir=sub"), String::new())));
    assert_eq!(read("./plain/deep"), Ok((format!("path:{at}/plain"), String::new())));
    assert_eq!(read("path:plain"), Ok((format!("path:{at}/plain"), String::new())));
    assert!(read("./repo").expect_err("no flake").contains("is not part of a flake"));
    assert!(read("./missing").expect_err("nothing").contains("No such file or directory"));
}

const OLD: &str = r#"{
  "version": 5, "root": "root",
  "nodes": {
    "root": { "inputs": { "a": "a", "b": ["a", "c"] } },
    "a": {
      "inputs": { "c": "c" },
      "info": { "lastModified": 5, "narHash": "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" },
      "locked": { "type": "path", "path": "/a" }, "original": { "type": "path", "path": "/a" }
    },
    "c": {
      "flake": false, "locked": { "type": "path", "path": "./c", "dir": "d" },
      "original": { "type": "path", "path": "./c" }, "parent": ["a"]
    }
  }
}"#;

#[test]
fn lock_files_of_older_versions_are_written_as_new_ones() {
    let file = LockFile::parse(&fetcher(), OLD.as_bytes(), "flake.lock").expect("version 5");
    let follows = Edge::Follows(vec!["a".to_owned(), "c".to_owned()]);
    assert_eq!(file.nodes[0].inputs.get("b"), Some(&follows));
    assert_eq!(file.find(&["b".to_owned()]).expect("no cycle"), file.find(&["a".to_owned(), "c".to_owned()]).expect("no cycle"));
    file.check().expect("follows what is there");
    let text = file.print().expect("prints");
    assert!(text.ends_with("\"root\": \"root\",\n  \"version\": 7\n}"), "{text}");
    assert!(text.contains("\"parent\": [\n        \"a\"\n      ]"), "{text}");
    let again = LockFile::parse(&fetcher(), text.as_bytes(), "flake.lock").expect("version 7");
    assert!(again.same(&file).expect("prints"));
}

#[test]
fn damaged_lock_files_are_refused() {
    for (text, why) in [
        ("{", "Could not parse 'x'"),
        ("{}", "lock file 'x' has unsupported version 0"),
        (r#"{"version":8}"#, "lock file 'x' has unsupported version 8"),
        (r#"{"version":7}"#, "lacks its root node"),
        (r#"{"version":7,"root":"r","nodes":{"r":{"inputs":{"a":"a"}}}}"#, "lock file references missing node 'a'"),
        (r#"{"version":7,"root":"r","nodes":{"r":{"inputs":{"a":"r"}}}}"#, "lock file contains cycle to root node"),
        (r#"{"version":7,"root":"r","nodes":{"r":{"inputs":{"a":"a"}},"a":{}}}"#, "attribute 'locked' missing in lock file"),
    ] {
        let error = LockFile::parse(&fetcher(), text.as_bytes(), "x").expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let cycle = OLD.replace("\"inputs\": { \"a\": \"a\", \"b\": [\"a\", \"c\"] }", "\"inputs\": { \"b\": [\"d\"], \"d\": [\"b\"] }");
    let file = LockFile::parse(&fetcher(), cycle.as_bytes(), "x").expect("reads");
    assert!(file.check().expect_err("a circle").to_string().starts_with("follow cycle detected: ["));
}
