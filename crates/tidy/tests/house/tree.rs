//! The work tree as the rules see it: its text files with their paths, and a list of complaints.

use std::fs;
use std::path::{Path, PathBuf};

/// What holds nothing of the project's own, or (recorded runs) notes a machine on purpose.
const SKIPPED: [&str; 3] = [".git", "target", "runs"];

/// One text file.
#[derive(Debug)]
pub struct File {
    /// Path from the root, with `/`.
    pub path: String,
    /// Content; other bytes than UTF-8 replaced.
    pub text: String,
}

impl File {
    /// Whether the name ends so.
    pub fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|e| e == extension)
    }

    /// Lines with their numbers from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }
}

/// The root of the work tree.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is two levels below the root").to_path_buf()
}

/// All files of the project, by path. Symbolic links are not followed.
pub fn files() -> Vec<File> {
    let mut found = Vec::new();
    walk(&root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.iter().any(|file| file.path == "Cargo.toml"), "the root of the work tree was not found");
    found
}

fn walk(directory: &Path, prefix: &str, found: &mut Vec<File>) {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let entry = entry.expect("a readable directory entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type().expect("a directory entry has a type");
        if kind.is_dir() {
            walk(&entry.path(), &path, found);
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).unwrap_or_else(|error| panic!("{path}: {error}"));
            found.push(File { path, text: String::from_utf8_lossy(&bytes).into_owned() });
        }
    }
}

/// Fails with every complaint, if there is one.
pub fn judge(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// Where `word` stands in `line` as a whole word.
/// A hyphen joins words: names of settings are no code.
pub fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    line.match_indices(word).any(|(at, _)| {
        !part_of_name(line[..at].chars().next_back()) && !part_of_name(line[at + word.len()..].chars().next())
    })
}

/// The line without a comment that ends it. A `//` inside a string ends it too, which only makes the rules laxer.
pub fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}
