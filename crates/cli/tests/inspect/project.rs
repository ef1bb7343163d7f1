//! A tree of files and a cache of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    pub fn new() -> Project {
        let project = Project { dir: tempfile::tempdir().expect("a scratch directory") };
        std::fs::create_dir(project.root()).expect("a tree");
        project
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().expect("it exists").join("tree")
    }

    pub fn tree(&self) -> String {
        self.root().to_string_lossy().into_owned()
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("directories");
        // Another inode: the same second and size cannot hide the change.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, text).expect("a file");
    }

    pub fn remove(&self, path: &str) {
        let path = self.root().join(path);
        let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.expect("it was there");
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        // Ctrl-C is ignored by what a script starts in the background, and by all that it starts.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_firn")]);
        command.env_clear().env("HOME", "/homeless").env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent");
        command.env("FIRN_CACHE_DIR", self.dir.path().join("cache")).env("FIRN_MEMO_LEAST", "0");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.args(arguments).current_dir(self.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn firn_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        let output = command.output().expect("firn runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "firn {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).replace(&self.tree(), "TREE")
    }

    pub fn firn(&self, arguments: &[&str]) -> String {
        self.firn_with(arguments, &[])
    }
}

/// JSON with every digest cut.
pub fn without_digests(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\"digest\":\"") {
        let end = at + "\"digest\":\"".len();
        out.push_str(&rest[..end]);
        out.push('…');
        rest = &rest[end + 64..];
    }
    out + rest
}
