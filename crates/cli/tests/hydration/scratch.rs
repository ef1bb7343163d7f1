//! `Scratch`: a store, its state and its settings in a temporary directory, with firn and the real Nix to run on it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Whether the real Nix can be run; says so loudly if not.
pub fn nix_is_here() -> bool {
    let all = ["nix-instantiate", "nix-store", "nix-daemon"];
    let runs =
        |name: &str| Command::new(name).arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success());
    let here =
        std::env::var_os("FIRN_ORACLE").is_none_or(|named| !named.is_empty()) && all.iter().all(|name| runs(name));
    if !here {
        eprintln!("NOT TESTED: hydration needs nix-instantiate, nix-store and nix-daemon on PATH");
    }
    here
}

/// A directory that is deleted with all below it.
pub struct Scratch {
    root: PathBuf,
    daemon: Option<Child>,
}

/// What a program that succeeded said.
pub struct Said(Output);

impl Said {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    pub fn line(&self) -> String {
        self.lines().pop().unwrap_or_default()
    }

    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}

impl Scratch {
    /// An empty store. The name is short: sockets have short paths.
    pub fn new(name: &str) -> Scratch {
        let temp = std::fs::canonicalize(std::env::temp_dir()).unwrap();
        let root = temp.join(format!("firn-{name}-{}", std::process::id()));
        delete(&root);
        std::fs::create_dir_all(root.join("etc")).unwrap();
        // No sandbox, no substituters, no build users: the least that a builder needs.
        let settings = "sandbox = false\nsubstituters =\nsubstitute = false\nbuild-users-group =\n";
        std::fs::write(root.join("etc/nix.conf"), settings).unwrap();
        Scratch { root, daemon: None }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("s/socket")
    }

    /// Writes `graph.nix` and the tree that it takes as a source.
    pub fn write_graph(&self, text: &str) {
        std::fs::write(self.path("graph.nix"), text).unwrap();
        std::fs::create_dir_all(self.path("src/below")).unwrap();
        std::fs::write(self.path("src/below/file"), "of the tree\n").unwrap();
        std::fs::write(self.path("src/run"), "#!/bin/sh\necho ran\n").unwrap();
        std::fs::set_permissions(self.path("src/run"), std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink("below/file", self.path("src/link")).unwrap();
    }

    /// A program with this store in its environment, and nothing else of the caller's but `PATH`.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env_clear().env("HOME", self.path("home")).env("NO_COLOR", "1");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("NIX_STORE_DIR", self.path("store")).env("NIX_STATE_DIR", self.path("var"));
        command
            .env("NIX_LOG_DIR", self.path("log"))
            .env("NIX_CONF_DIR", self.path("etc"))
            .env("NIX_USER_CONF_FILES", "");
        command.env("NIX_DAEMON_SOCKET_PATH", self.socket());
        command.env("NIX_REMOTE", if self.daemon.is_some() { "daemon" } else { "local" });
        command
    }

    pub fn firn_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_firn"));
        command.arg("instantiate").args(arguments);
        command
    }

    /// Runs `firn instantiate`, which must succeed.
    pub fn firn(&self, arguments: &[&str]) -> Said {
        succeed(&mut self.firn_command(arguments))
    }

    /// Runs `firn instantiate`, which must fail; what it said.
    pub fn firn_fails(&self, arguments: &[&str]) -> String {
        let output = self.firn_command(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?} succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Runs a program of Nix, which must succeed.
    pub fn nix(&self, program: &str, arguments: &[&str]) -> Said {
        let mut command = self.command(program);
        succeed(command.args(arguments))
    }

    /// Starts a daemon on this store; from now on everyone uses it.
    pub fn start_daemon(&mut self) {
        std::fs::create_dir_all(self.path("s")).unwrap();
        let mut command = self.command("nix-daemon");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        self.daemon = Some(child);
        let started = Instant::now();
        while !self.socket().exists() {
            assert!(started.elapsed() < Duration::from_secs(20), "the daemon does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn has_daemon(&self) -> bool {
        self.daemon.is_some()
    }

    /// Has the real Nix look at everything in the store.
    pub fn verify(&self) {
        let said = self.nix("nix-store", &["--verify", "--check-contents"]).errors();
        let complaints = ["modified", "disappeared", "not in the", "error", "warning"];
        assert!(!complaints.iter().any(|word| said.contains(word)), "{said}");
        for object in self.valid() {
            for (name, mode, _) in files_below(&object) {
                assert!([0o444, 0o555, 0o777].contains(&(mode & 0o777)), "{name} has mode {mode:o}");
            }
        }
    }

    /// The objects that the real Nix holds to be valid: a run that was cut off leaves others.
    fn valid(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.objects().iter().map(|name| self.path("store").join(name)).collect();
        let mut invalid = std::collections::HashSet::new();
        // A command line has room for so many.
        for some in all.chunks(500) {
            let mut command = self.command("nix-store");
            let said = succeed(command.args(["--check-validity", "--print-invalid"]).args(some)).lines();
            invalid.extend(said.into_iter().map(PathBuf::from));
        }
        all.retain(|path| !invalid.contains(path));
        all
    }

    /// The first output of a derivation that was built.
    pub fn built(&self, drv: &str) -> String {
        let outputs = self.nix("nix-store", &["-q", "--binding", "out", drv]).line();
        std::fs::read_to_string(outputs).unwrap()
    }

    /// The names of the objects in the store.
    pub fn objects(&self) -> Vec<String> {
        let all = std::fs::read_dir(self.path("store")).unwrap();
        let mut names: Vec<String> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".links" && !name.ends_with(".lock"));
        names.sort();
        names
    }
}

fn succeed(command: &mut Command) -> Said {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Said(output)
}

/// Every file and link at or below a path, `.links` and locks excepted; the store's time of modification is checked.
pub fn files_below(top: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut all = Vec::new();
    let mut todo = vec![top.to_owned()];
    while let Some(path) = todo.pop() {
        let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
        if name == ".links" || name.ends_with(".lock") {
            continue;
        }
        let status = path.symlink_metadata().unwrap();
        let is_object = !path.ends_with("store");
        assert!(!is_object || status.mtime() == 1, "{} was modified at {}", path.display(), status.mtime());
        if status.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if status.is_symlink() {
            all.push((name, status.mode(), std::fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()));
        } else {
            all.push((name, status.mode(), std::fs::read(&path).unwrap()));
        }
    }
    all
}

fn delete(path: &Path) {
    let Ok(status) = path.symlink_metadata() else { return };
    if status.is_dir() {
        // What a store holds may not be written, not even to delete it.
        drop(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)));
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            delete(&entry.path());
        }
        drop(std::fs::remove_dir(path));
    } else {
        drop(std::fs::remove_file(path));
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            drop(daemon.kill());
            drop(daemon.wait());
        }
        delete(&self.root);
    }
}
