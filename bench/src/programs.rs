//! What is measured: every file of `bench/micro`, start-up, and parsing of files from a nixpkgs tree (`FIRN_NIXPKGS`); or,
//! with `--tree`, every file of a folder of functions of such a tree.

use crate::arguments::Arguments;
use std::path::{Path, PathBuf};

/// How many files of nixpkgs are parsed.
const PARSED: usize = 5000;

/// One thing to measure.
#[derive(Debug)]
pub struct Program {
    /// Its name in tables.
    pub name: String,
    /// The words after the tool's name.
    pub words: Vec<String>,
    /// Too short for user time to mean anything: the wall clock is taken, of more runs.
    pub short: bool,
    /// The answers must be equal. Syntax trees print differently from one version of Nix to the next.
    pub same: bool,
}

/// All programs that are asked for.
pub fn all(arguments: &Arguments) -> Result<Vec<Program>, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let mut programs = Vec::new();
    let mut more = Vec::new();
    match &arguments.tree {
        Some(tree) => more = ["--arg".to_owned(), "np".to_owned(), real(tree)?.to_string_lossy().into_owned()].to_vec(),
        None => programs.push(start_up()),
    }
    for file in nix_files(&arguments.programs, false)? {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut words = vec!["--eval".to_owned(), "--strict".to_owned(), real(&file)?.to_string_lossy().into_owned()];
        words.extend(more.clone());
        programs.push(Program { name, words, short: false, same: true });
    }
    match std::env::var_os("FIRN_NIXPKGS") {
        _ if arguments.tree.is_some() => {}
        None => eprintln!("NOTE: FIRN_NIXPKGS names no nixpkgs tree; parsing is not measured"),
        Some(tree) => programs.push(parsing(Path::new(&tree))?),
    }
    programs.retain(|program| program.name.contains(&arguments.only));
    Ok(programs)
}

fn start_up() -> Program {
    let words = ["--eval", "-E", "1"].map(str::to_owned).to_vec();
    Program { name: "start-up".to_owned(), words, short: true, same: true }
}

fn parsing(tree: &Path) -> Result<Program, String> {
    let mut files = nix_files(tree, true)?;
    // Templates are filled in before they are Nix.
    files.retain(|file| !file.to_string_lossy().ends_with("template.nix"));
    if files.len() < PARSED {
        return Err(format!("{} holds {} Nix files, fewer than {PARSED}", tree.display(), files.len()));
    }
    // Spread over the tree, the same ones each time.
    let step = files.len() / PARSED;
    let chosen = files.iter().step_by(step).take(PARSED).map(|file| file.to_string_lossy().into_owned());
    let words = std::iter::once("--parse".to_owned()).chain(chosen).collect();
    Ok(Program { name: format!("parse-{PARSED}-files"), words, short: false, same: false })
}

/// The Nix files of a folder, by path.
fn nix_files(folder: &Path, below: bool) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
            let kind = entry.file_type().map_err(|error| format!("{}: {error}", entry.path().display()))?;
            let path = entry.path();
            if kind.is_dir() && below {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "nix") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
