//! `--memo shared`: machines that share nothing but a remote. A machine here is a home, a cache and a checkout of its own.
//!
//! Real servers (Redis, nginx with WebDAV, moto for S3) are taken from PATH; where one is missing, its test says so loudly.
//! `FIRN_SHARED_PROGRAMS` (150) says how many random programs are asked in two places.
#![allow(clippy::disallowed_methods, reason = "a test changes files itself; the door is for the evaluator")]

#[path = "shared/jobs.rs"]
mod jobs;
#[path = "shared/many.rs"]
mod many;
#[path = "disk/program.rs"]
mod program;
#[path = "shared/proxy.rs"]
mod proxy;
#[path = "disk/random.rs"]
mod random;
#[path = "shared/servers.rs"]
mod servers;

use random::{Random, number};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Where machines, the key and the remote are.
struct World {
    dir: tempfile::TempDir,
    public: String,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let made = Command::new(env!("CARGO_BIN_EXE_firn")).args(["cache", "key", "generate", "test-1"]).output().unwrap();
        std::fs::write(dir.path().join("key"), &made.stdout).unwrap();
        let public = Command::new(env!("CARGO_BIN_EXE_firn")).args(["cache", "key", "public"]).arg(dir.path().join("key")).output();
        let public = String::from_utf8(public.unwrap().stdout).unwrap().trim().to_owned();
        assert!(public.starts_with("test-1:"), "{public}");
        World { dir, public }
    }

    fn key(&self) -> PathBuf {
        self.dir.path().join("key")
    }

    /// The URL of a directory in this world.
    fn directory(&self) -> String {
        format!("file:{}", self.dir.path().join("remote").display())
    }

    fn machine(&self, name: &str) -> Machine {
        let root = self.dir.path().join(name);
        // Checkouts have other names on other machines, too.
        let src = root.join(if name.contains('/') { "checkout" } else { "src" });
        for part in [&root.join("home"), &root.join("cache"), &src] {
            std::fs::create_dir_all(part).unwrap();
        }
        Machine { root, src, key: self.key(), public: self.public.clone() }
    }
}

/// A machine.
struct Machine {
    root: PathBuf,
    src: PathBuf,
    key: PathBuf,
    public: String,
}

impl Machine {
    fn write(&self, name: &str, text: &str) {
        let path = self.src.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn firn(&self, memo: &str, remote: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.env_clear().env("HOME", self.root.join("home")).env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
        command.env("FIRN_CACHE_DIR", self.root.join("cache")).env("FIRN_MEMO", memo).env("FIRN_MEMO_LEAST", "0");
        command.env("FIRN_REMOTE", remote).env("FIRN_PUBLIC_KEYS", &self.public);
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        command.current_dir(&self.src).stdin(Stdio::null());
        command
    }

    /// A machine that signs.
    fn signing(&self, memo: &str, remote: &str) -> Command {
        let mut command = self.firn(memo, remote);
        command.env("FIRN_SECRET_KEY_FILE", &self.key);
        command
    }

    /// Forgets everything that this machine remembers.
    fn forget(&self) {
        std::fs::remove_dir_all(self.root.join("cache")).unwrap();
    }
}

fn asks(mut command: Command, attribute: &str) -> Output {
    command.args(["eval", "--json", "-f", "default.nix", attribute]).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Evaluates with statistics: what was printed, files evaluated, and a number of what the remotes did.
fn measured(mut command: Command, stats: &Path, attribute: &str, name: &str) -> (String, i64, i64) {
    command.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", stats);
    let output = asks(command, attribute);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stats = std::fs::read_to_string(stats).unwrap();
    let number_from = |from: usize, name: &str| -> i64 {
        let at = from + stats[from..].find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{name} in {stats}"));
        let digits: String = stats[at..].chars().skip(name.len() + 3).skip_while(|c| *c == ' ').take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap()
    };
    let shared = stats.find("\"shared\": {").map_or(0, |from| number_from(from, name));
    (text(&output.stdout), number_from(0, "nrFiles"), shared)
}

const PROGRAM: &str = "let f = n: if n < 2 then n else f (n - 1) + f (n - 2); in \
    { x = f 23; long = import ./project.nix f; y = import ./b.nix; z = builtins.readFile ./t; d = (derivation { name = \"n\"; system = \"s\"; builder = ./t; }).drvPath; }";

/// A thousand files in forty directories, which are listed, and a millisecond of work in each file.
const PROJECT: &str = "f: let sum = builtins.foldl' builtins.add 0; in sum (map (dir: sum (map (file: \
    (import (./parts + \"/${dir}/${file}\") { inherit f; n = 21; }).value) \
    (builtins.attrNames (builtins.readDir (./parts + \"/${dir}\"))))) (builtins.attrNames (builtins.readDir ./parts)))";

fn fill(machine: &Machine) {
    machine.write("project.nix", PROJECT);
    for part in 0..1000 {
        let text = format!("{{ f, n }}: {{ name = \"part {part}\"; value = f n; }}\n# {}\n", "what it is for ".repeat(part % 100));
        machine.write(&format!("parts/{}/{part}.nix", part % 40), &text);
    }
    machine.write("default.nix", PROGRAM);
    machine.write("b.nix", "import ./c.nix + 1\n");
    machine.write("c.nix", "2\n");
    machine.write("t", "text\n");
}

/// Pushes from one machine, evaluates on another that has nothing: the same answers, and no file is evaluated.
fn travels(remote: &str) {
    let world = World::new();
    let (a, b) = (world.machine("a"), world.machine("elsewhere/b"));
    fill(&a);
    fill(&b);
    let stats = world.dir.path().join("stats");
    for attribute in ["x", "y", "z", "d"] {
        let (said, files, pushed) = measured(a.signing("shared", remote), &stats, attribute, "pushed");
        let fresh = asks(b.firn("off", remote), attribute);
        assert_eq!((said.clone(), files > 0, pushed), (text(&fresh.stdout), true, 1), "{remote} {attribute}");
        let (said_there, files, _) = measured(b.firn("shared", remote), &stats, attribute, "asked");
        assert_eq!((said_there, files), (said, 0), "{remote} {attribute}");
    }
    takes_a_tenth(&a, &b, remote);
    // What changed there is evaluated there, and what was so here is found again.
    b.write("c.nix", "3\n");
    assert_eq!(measured(b.signing("shared", remote), &stats, "y", "asked").0, "4\n");
    a.write("c.nix", "3\n");
    let (said, files, _) = measured(a.firn("shared", remote), &stats, "y", "asked");
    assert_eq!((&said[..], files), ("4\n", 0), "{remote}");
    // push and pull by hand.
    b.forget();
    a.forget();
    measured(a.firn("disk", remote), &stats, "x", "asked");
    let pushed = a.signing("off", remote).args(["cache", "push", "x"]).output().unwrap();
    assert!(pushed.status.success() && text(&pushed.stdout).contains("0 answers pushed"), "{pushed:?}");
    let pulled = b.firn("off", remote).args(["cache", "pull", "x", "z"]).output().unwrap();
    assert!(pulled.status.success(), "{pulled:?}");
    if remote.starts_with("file:") || remote.starts_with("s3:") {
        assert!(text(&pulled.stdout).starts_with("2 new answers"), "{pulled:?}");
        let (_, files, asked) = measured(b.firn("shared", &format!("{}?mode=ro", world.directory())), &stats, "x", "asked");
        assert_eq!((files, asked), (0, 0));
    }
}

/// What takes long here takes another machine, with an empty cache, a tenth of that. The best of three: the rest is the machine's other work.
fn takes_a_tenth(a: &Machine, b: &Machine, remote: &str) {
    let timed = |command: Command| {
        let began = Instant::now();
        let said = asks(command, "long");
        assert_eq!(text(&said.stdout), "10946000\n", "{remote}: {}", text(&said.stderr));
        began.elapsed()
    };
    let cold = timed(b.firn("off", remote));
    timed(a.signing("shared", remote));
    let again = (0..3).map(|_| {
        b.forget();
        timed(b.firn("shared", remote))
    });
    let least = again.min().unwrap_or(cold);
    assert!(least * 10 <= cold, "{remote}: {least:?} of {cold:?}");
}

#[test]
fn answers_travel_through_a_directory() {
    let world = World::new();
    travels(&world.directory());
}

#[test]
fn answers_travel_through_redis() {
    if let Some(server) = servers::redis() {
        travels(&server.url);
    }
}

#[test]
fn answers_travel_through_webdav() {
    if let Some(server) = servers::nginx() {
        travels(&server.url);
    }
}

#[test]
fn answers_travel_through_s3() {
    if let Some(server) = servers::s3() {
        travels(&server.url);
    }
}

#[test]
fn random_programs_say_the_same_wherever_they_lie() {
    let mut hits = 0;
    for seed in 0..number("FIRN_SHARED_PROGRAMS", 150) as u64 {
        let world = World::new();
        let remote = world.directory();
        // Other homes, other depths, and directories of other names.
        let machines = [world.machine("one"), world.machine("two/and/more")];
        for machine in &machines {
            let random = &mut Random::new(seed + 1);
            machine.write("default.nix", &places(random));
            for (index, name) in program::EXPRESSIONS.iter().enumerate() {
                machine.write(name, &program::file(random, index));
            }
            machine.write(program::BINDINGS, &program::bindings(random));
            for name in program::DATA {
                machine.write(name, &program::data(random));
            }
        }
        for attribute in ["a", "b", "c"] {
            let _ = asks(machines[0].signing("shared", &remote), attribute);
            let stats = world.dir.path().join("stats");
            let mut shared = machines[1].firn("shared", &remote);
            shared.env("NIX_SHOW_STATS", "1").env("NIX_SHOW_STATS_PATH", &stats);
            let pulled = asks(shared, attribute);
            let fresh = asks(machines[1].firn("off", &remote), attribute);
            let said = |output: &Output| (output.status.code(), text(&output.stdout), text(&output.stderr));
            assert_eq!(said(&pulled), said(&fresh), "seed {seed}, attribute {attribute}");
            let stats = std::fs::read_to_string(stats).unwrap_or_default();
            let shared = stats.split("\"shared\": {").nth(1).unwrap_or_default();
            hits += usize::from(shared.contains("\"hits\": 1"));
        }
    }
    // Otherwise nothing was tried.
    assert!(hits * 10 > number("FIRN_SHARED_PROGRAMS", 150), "{hits} hits");
}

/// A program that looks at places in many ways, most of which do not tell where it lies.
fn places(random: &mut Random) -> String {
    let mut look = |depth: usize| -> String {
        match random.below(26) {
            0 => "toString ./d0".to_owned(),
            1 => "baseNameOf ./dir".to_owned(),
            2 => "baseNameOf ./.".to_owned(),
            3 => "\"${./d0}\"".to_owned(),
            4 => "\"${./.}\"".to_owned(),
            5 => "builtins.pathExists (./. + \"/../home\")".to_owned(),
            6 => "builtins.pathExists ../cache".to_owned(),
            7 => "builtins.pathExists (dirOf ./. + \"/src\")".to_owned(),
            8 => "builtins.pathExists (dirOf ./dir/x + \"/y\")".to_owned(),
            9 => "__curPos.file".to_owned(),
            10 => "__curPos.line".to_owned(),
            11 => "(builtins.unsafeGetAttrPos \"q\" { q = 1; }).column".to_owned(),
            12 => "baseNameOf (builtins.unsafeGetAttrPos \"q\" { q = 1; }).file".to_owned(),
            13 => "[ (./d0 == ./d0) (./d0 == ./d1) (./d0 < ./d1) (./. == ./d0) ]".to_owned(),
            14 => "builtins.filterSource (p: t: builtins.match \".*/one/.*\" p == null) ./dir".to_owned(),
            15 => "builtins.path { path = ./dir; }".to_owned(),
            16 => "builtins.path { path = ./.; filter = p: t: false; }".to_owned(),
            17 => "builtins.readDir ./.".to_owned(),
            18 => "builtins.stringLength (toString ./.)".to_owned(),
            19 => "builtins.toJSON { p = ./d1; }".to_owned(),
            20 => "builtins.map (e: e.key) (builtins.genericClosure { startSet = [ { key = ./d0; } ]; operator = e: [ { key = ./d1; } ]; })".to_owned(),
            21 => "builtins.pathExists ~/none".to_owned(),
            22 => "builtins.typeOf ./d0".to_owned(),
            23 => "builtins.tryEval (builtins.toXML ./d0)".to_owned(),
            24 => "builtins.hashFile \"sha256\" ./d1".to_owned(),
            _ => format!("(import ./e{}.nix)", 1 + depth % 2),
        }
    };
    let (a, b, c, d) = (look(0), look(1), look(2), look(3));
    format!("{{ a = [ ({a}) ]; b = [ ({b}) (import ./e0.nix) ]; c = [ ({c}) ({d}) ]; q = 1; }}\n")
}

#[test]
fn eight_machines_that_push_at_once_lose_nothing() {
    let server = servers::nginx();
    let world = World::new();
    let remote = server.as_ref().map_or_else(|| world.directory(), |server| server.url.clone());
    let machines: Vec<Machine> = (0..8).map(|index| world.machine(&format!("m{index}"))).collect();
    for (index, machine) in machines.iter().enumerate() {
        machine.write("default.nix", "{ x = import ./c.nix; }");
        machine.write("c.nix", &format!("{index}\n"));
        assert!(asks(machine.firn("disk", &remote), "x").status.success());
    }
    let pushing: Vec<_> = machines
        .iter()
        .map(|machine| machine.signing("off", &remote).args(["cache", "push"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
        .collect();
    for process in pushing {
        let output = process.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let reader = world.machine("reader");
    reader.write("default.nix", "{ x = import ./c.nix; }");
    for index in 0..8 {
        reader.write("c.nix", &format!("{index}\n"));
        reader.firn("off", &remote).args(["cache", "clear"]).output().unwrap();
        let stats = world.dir.path().join("stats");
        let (said, files, _) = measured(reader.firn("shared", &remote), &stats, "x", "asked");
        assert_eq!((said, files), (format!("{index}\n"), 0));
    }
}

#[test]
fn a_killed_pusher_names_nothing_that_is_missing() {
    let world = World::new();
    let (machine, remote) = (world.machine("a"), world.directory());
    for index in 0..30 {
        machine.write("default.nix", &format!("{{ x = {index}; y = builtins.readFile ./t; }}"));
        machine.write("t", &index.to_string());
        for attribute in ["x", "y"] {
            assert!(asks(machine.firn("disk", &remote), attribute).status.success());
        }
    }
    let mut random = Random::new(7);
    for _ in 0..number("FIRN_KILLS", 40) {
        let _ = std::fs::remove_dir_all(world.dir.path().join("remote"));
        let mut process = machine.signing("off", &remote).args(["cache", "push"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(random.below(60_000) as u64));
        process.kill().unwrap();
        process.wait().unwrap();
        // Everything that is named is there: a reader that believes the key pulls all of it.
        let reader = world.machine("reader");
        let pulled = reader.firn("off", &remote).env("NIX_SHOW_STATS", "1").args(["cache", "pull"]).output().unwrap();
        assert!(pulled.status.success() && text(&pulled.stderr).is_empty(), "{pulled:?}");
        check_complete(&world.dir.path().join("remote"));
    }
}

/// Every object that an index names is there.
fn check_complete(remote: &Path) {
    use firn_remote::{Index, Kind, unpack};
    let mut todo = vec![remote.join("v1/index")];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                todo.push(entry.path());
                continue;
            }
            let index = Index::decode(&unpack(Kind::Index, &std::fs::read(entry.path()).unwrap()).unwrap()).unwrap();
            for entry in &index.entries {
                assert!(remote.join(Kind::Answer.path(&entry.answer)).exists());
                assert!(entry.nodes.iter().all(|node| remote.join(Kind::Node.path(node)).exists()));
            }
        }
    }
}

#[test]
fn a_tampering_proxy_changes_no_answer_and_holds_nobody_up() {
    let Some(server) = servers::nginx() else { return };
    let proxy = proxy::Proxy::start(&server.url);
    let world = World::new();
    let (a, b) = (world.machine("a"), world.machine("b"));
    fill(&a);
    fill(&b);
    for attribute in ["x", "y", "z", "d"] {
        assert!(asks(a.signing("shared", &server.url), attribute).status.success());
    }
    let wanted = number("FIRN_TAMPERED", 1000);
    let fresh: Vec<String> = ["x", "y", "z", "d"].iter().map(|name| text(&asks(b.firn("off", ""), name).stdout)).collect();
    while proxy.tampered() < wanted {
        for (attribute, expected) in ["x", "y", "z", "d"].iter().zip(&fresh) {
            let _ = std::fs::remove_dir_all(b.root.join("cache"));
            let mut command = b.signing("shared", &proxy.url);
            command.env("FIRN_REMOTE_DEADLINE", "0.3");
            let began = Instant::now();
            let output = asks(command, attribute);
            assert!(output.status.success(), "{output:?}");
            assert_eq!(&text(&output.stdout), expected, "{}", text(&output.stderr));
            assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        }
    }
}

#[test]
fn remotes_are_named_in_a_file_too_and_mistakes_are_told() {
    let world = World::new();
    let a = world.machine("a");
    fill(&a);
    let config = a.root.join("home/.config/nix");
    std::fs::create_dir_all(&config).unwrap();
    let write = |text: &str| std::fs::write(config.join("firn.conf"), text).unwrap();
    let run = |memo: &str| {
        let mut command = a.firn(memo, "");
        command.env_remove("FIRN_REMOTE").env_remove("FIRN_PUBLIC_KEYS");
        asks(command, "y")
    };
    write(&format!("remotes = {}\nsecret-key-file = {}\n", world.directory(), world.key().display()));
    let output = run("shared");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    check_complete(&world.dir.path().join("remote"));
    assert!(world.dir.path().join("remote/v1/index").exists());
    for (text_of_file, expected) in [
        ("remotes =\n", "sharing needs a remote"),
        ("remotes = ftp://x/y\n", "'ftp:' is not one of"),
        ("remote = file:/x\n", "unknown setting 'remote'"),
        ("remotes = file:/x\npublic-keys = nonsense\n", "the public key 'nonsense' is none"),
        ("remotes = file:/x\nsecret-key-file = /nonexistent/key\n", "the secret key file '/nonexistent/key'"),
        ("remotes = file:/x\nremote-deadline = soon\n", "a deadline is a number of seconds"),
    ] {
        write(text_of_file);
        let output = run("shared");
        assert!(!output.status.success() && text(&output.stderr).contains(expected), "{text_of_file}: {output:?}");
        // Who shares nothing is not troubled by what is said about sharing, unless it cannot be read.
        if !expected.starts_with("unknown") {
            assert!(run("off").status.success(), "{text_of_file}");
        }
    }
}
