//! Search path and restrictions: the order of lookup, what pure and restricted evaluation refuse, and in which words.

use std::sync::Mutex;

use firn_host::{
    AbsPath, DefaultPaths, EntrySource, Follow, Found, Host, HostError, LocalOnly, MemoryHost, MemoryWorld, Mode,
    PseudoUrl, Restricted, SearchEntry, SearchPath, must_be_dir, tarball_url,
};

fn path(raw: &str) -> AbsPath {
    AbsPath::new(raw.as_bytes()).expect("no NUL in test paths")
}

fn entries(raw: &str) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let search = SearchPath::parse_nix_path(raw.as_bytes());
    search.entries.iter().map(|entry| (text(&entry.prefix), text(&entry.path))).collect()
}

#[test]
fn nix_path_is_split_as_nix_splits_it() {
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(prefix, path)| (prefix.to_string(), path.to_string())).collect()
    };
    assert_eq!(entries(""), []);
    assert_eq!(entries("/a:b=/c"), pairs(&[("", "/a"), ("b", "/c")]));
    assert_eq!(entries("::/a:"), pairs(&[("", "/a")]));
    assert_eq!(entries("a=b=c"), pairs(&[("a", "b=c")]));
    assert_eq!(entries("n=https://e.org/x.tar.gz:/a"), pairs(&[("n", "https://e.org/x.tar.gz"), ("", "/a")]));
    assert_eq!(entries("n=channel:nixos-unstable:/a"), pairs(&[("n", "channel:nixos-unstable"), ("", "/a")]));
    assert_eq!(entries("flake:nixpkgs:/a"), pairs(&[("", "flake:nixpkgs"), ("", "/a")]));
    assert_eq!(entries("n=flake:nixpkgs"), pairs(&[("n", "flake:nixpkgs")]));
    assert_eq!(entries("a=/x y"), pairs(&[("a", "/x"), ("", "y")]));
    assert_eq!(PseudoUrl::parse(b"ftp://x"), None);
    assert_eq!(tarball_url(b"channel:c"), b"https://channels.nixos.org/c/nixexprs.tar.xz");
    assert!(must_be_dir(b"/a/") && must_be_dir(b"/a/.") && !must_be_dir(b"/a.") && !must_be_dir(b"/a"));
}

/// Fetches what it is told to know and keeps the warnings.
#[derive(Default)]
struct Shelf {
    flake: Option<AbsPath>,
    warnings: Mutex<Vec<String>>,
}

impl EntrySource for Shelf {
    fn fetch(&self, url: PseudoUrl<'_>) -> Result<Option<AbsPath>, HostError> {
        Ok(if matches!(url, PseudoUrl::Flake(_)) { self.flake.clone() } else { None })
    }
    fn warn(&self, message: &[u8]) {
        self.warnings.lock().expect("warnings").push(String::from_utf8_lossy(message).into_owned());
    }
}

#[test]
fn lookup_order_and_failures() {
    let world = MemoryWorld::new();
    world.write("/one/x/f", "");
    world.write("/two/f", "");
    world.symlink("/l", "two");
    world.set_current_dir("/one");
    world.mkdir("/fetched/lib");
    let host = MemoryHost::new(world);
    let find = |nix_path: &str, name: &str| {
        host.find_file(&SearchPath::parse_nix_path(nix_path.as_bytes()), name.as_bytes(), &LocalOnly)
    };
    let at = |raw: &str| Ok(Found::Path(path(raw)));
    assert_eq!(find("x=/two:/one", "x/f"), at("/two/f"));
    assert_eq!(find("x=/nowhere:/one", "x/f"), at("/one/x/f"));
    assert_eq!(find("/two:/one", "x"), at("/one/x"));
    assert_eq!(find("x=/two:/one", "x"), at("/two"));
    assert_eq!(find("l=/l", "l/f"), at("/two/f"));
    assert_eq!(find("r=x", "r/f"), at("/one/x/f"));
    assert_eq!(find("xy=/two:x=/one", "xy/../../f"), at("/two/f"), "no way out of an entry");
    assert_eq!(find("", "nix/fetchurl.nix"), Ok(Found::Builtin(path("/fetchurl.nix"))));
    let error = find("x=/two", "y").expect_err("not found");
    assert_eq!(error.to_string(), "file 'y' was not found in the Nix search path (add it using $NIX_PATH or -I)");
    assert!(error.is_catchable());
    let pure = SearchPath { pure: true, ..SearchPath::default() };
    let error = host.find_file(&pure, b"nixpkgs", &LocalOnly).expect_err("pure");
    assert_eq!(error.to_string(), "cannot look up '<nixpkgs>' in pure evaluation mode (use '--impure' to override)");

    let shelf = Shelf { flake: Some(path("/fetched")), ..Shelf::default() };
    let search = SearchPath::parse_nix_path(b"n=https://e.org/t:n=flake:nixpkgs");
    assert_eq!(host.find_file(&search, b"n/lib", &shelf), at("/fetched/lib"));
    assert_eq!(
        *shelf.warnings.lock().expect("warnings"),
        [
            "Nix search path entry 'https://e.org/t' cannot be downloaded, ignoring",
            "Nix search path entry 'https://e.org/t' does not exist, ignoring",
        ]
    );
}

#[test]
fn search_path_of_a_run() {
    let world = MemoryWorld::new();
    world.mkdir("/nix/var/nix/profiles/per-user/root/channels/nixpkgs");
    let defaults = DefaultPaths { def_expr: path("/h/.nix-defexpr"), state_dir: path("/nix/var/nix") };
    let argument = [SearchEntry::parse(b"a=/a")];
    let setting = [SearchEntry::parse(b"s=/s")];
    let of_run = |world: &MemoryWorld, defaults| {
        let host = MemoryHost::new(world.clone());
        let search = SearchPath::of_run(&host, &argument, &setting, defaults).expect("search path");
        search.entries.iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect::<Vec<_>>()
    };
    let channels = "/nix/var/nix/profiles/per-user/root/channels";
    let nixpkgs = format!("{channels}/nixpkgs");
    assert_eq!(of_run(&world, Some(&defaults)), ["/a", "/s", &nixpkgs, channels]);
    assert_eq!(of_run(&world, None), ["/a", "/s"]);
    world.set_env("NIX_PATH", "/e");
    assert_eq!(of_run(&world, None), ["/a", "/e"]);
    world.set_env("NIX_PATH", "");
    assert_eq!(of_run(&world, None), ["/a"]);
}

fn tunnel() -> MemoryWorld {
    let world = MemoryWorld::new();
    world.symlink("/t/tunnel.d/tunnel", "..");
    world.write("/t/tunnel.d/f", "f");
    world.write("/t/bar", "secret");
    world.symlink("/t/innocent", "secret-name");
    world.set_env("V", "1");
    world
}

#[test]
fn restricted_evaluation_sees_what_is_allowed() {
    let host = Restricted::new(MemoryHost::new(tunnel()), Mode::Restricted, Vec::new());
    let search = SearchPath::parse_nix_path(b"foo=/t/tunnel.d");
    host.allow_search_path(&search, &LocalOnly).expect("allowed");
    assert_eq!(host.read_file(&path("/t/tunnel.d/f")).expect("allowed").bytes(), b"f");
    let refused = |at: &str| format!("access to absolute path '{at}' is forbidden in restricted mode");
    assert_eq!(host.read_file(&path("/t/bar")).expect_err("refused").to_string(), refused("/t/bar"));
    assert_eq!(host.existing_type(&path("/t/bar")).expect_err("refused").to_string(), refused("/t/bar"));
    // Through a link that leads out.
    let found = host.find_file(&search, b"foo/tunnel/bar", &LocalOnly).expect_err("refused");
    assert_eq!(found.to_string(), refused("/t/bar"));
    // Above the allowed path only the way to it is seen.
    let above = host.resolve_symlinks(&path("/t/tunnel.d/tunnel"), Follow::Full).expect("resolved");
    assert_eq!(above, path("/t"));
    assert_eq!(format!("{:?}", host.read_dir(&above).expect("listing")), r#"{"tunnel.d": Some(Directory)}"#);
    assert_eq!(host.dir_entry(&above, b"bar"), Ok(None));
    assert_eq!(host.path_exists(&path("/t/bar"), false), Ok(false));
    // The target of a link that may not be seen is not given away.
    assert_eq!(host.resolve_symlinks(&path("/t/innocent"), Follow::Full), Ok(path("/t/innocent")));
    assert_eq!(host.env(b"V"), None);
}

#[test]
fn pure_evaluation_refuses_in_its_own_words() {
    let host = Restricted::new(MemoryHost::new(tunnel()), Mode::Pure, Vec::new());
    assert_eq!(
        host.read_file(&path("/t/bar")).expect_err("refused").to_string(),
        "access to absolute path '/t/bar' is forbidden in pure evaluation mode (use '--impure' to override)"
    );
    assert_eq!(
        host.resolve_expr_path(&path("/t/bar")).expect_err("refused").to_string(),
        "access to absolute path '/t/bar' is forbidden in pure evaluation mode (use '--impure' to override)"
    );
    host.allow(path("/t/bar"));
    assert_eq!(host.read_file(&path("/t/bar")).expect("allowed").bytes(), b"secret");
}

#[test]
fn addresses() {
    let allowed = [&b"https://github.com"[..], b"ssh:", b"file:///ok/"].map(<[u8]>::to_vec).to_vec();
    let host = Restricted::new(MemoryHost::new(MemoryWorld::new()), Mode::Restricted, allowed);
    host.allow(path("/t/a b"));
    for uri in ["https://github.com", "https://github.com/x", "ssh://host", "file:///ok/x", "/t/a b", "file:///t/a%20b"] {
        assert_eq!(host.check_uri(uri.as_bytes()), Ok(()), "{uri}");
    }
    let error = host.check_uri(b"https://github.community/x").expect_err("refused");
    assert_eq!(error.to_string(), "access to URI 'https://github.community/x' is forbidden in restricted mode");
    assert_eq!(host.check_uri(b"file:///t/x"), Err(HostError::Forbidden(path("/t/x"), Mode::Restricted)));
}
