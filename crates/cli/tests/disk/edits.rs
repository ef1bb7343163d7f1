//! A project on disk and the edits it goes through.

use crate::random::Random;
use crate::program::{BINDINGS, self, DATA, EXPRESSIONS, FUNCTION};
use std::path::{Path, PathBuf};

/// A project and what is asked of it.
pub struct Project {
    root: PathBuf,
    /// The attribute that is asked for.
    pub attribute: String,
    /// The argument that is passed.
    pub argument: String,
    /// The variable that is set.
    pub variable: String,
    /// Earlier contents of files, to go back to.
    history: Vec<(String, String)>,
}

/// A change.
#[derive(Debug)]
pub enum Edit {
    Write(String, String),
    Delete(String),
    Rename(String, String),
    Executable(String, bool),
    Link(String, String),
    Touch(String),
    Directory(String),
    Variable(String),
    Argument(String),
    Attribute(String),
    Nothing,
}

impl Project {
    pub fn new(root: &Path, random: &mut Random) -> Project {
        let mut project = Project::plain(root, "");
        std::fs::create_dir_all(root.join("sub")).expect("made");
        std::fs::create_dir_all(root.join("dir")).expect("made");
        project.write("default.nix", &program(random));
        for (index, name) in EXPRESSIONS.iter().enumerate() {
            project.write(name, &program::file(random, index));
        }
        project.write(FUNCTION, &program::function(random));
        project.write(BINDINGS, &program::bindings(random));
        for name in DATA {
            if random.below(4) > 0 {
                project.write(name, &program::data(random));
            }
        }
        project.attribute = "r.a".to_owned();
        project
    }

    /// The same with a program of several jobs.
    pub fn of_jobs(root: &Path, random: &mut Random) -> Project {
        let mut project = Project::new(root, random);
        project.write("default.nix", &program::jobs(random));
        project
    }

    /// One file; its expression is the attribute `r`.
    pub fn plain(root: &Path, expression: &str) -> Project {
        std::fs::create_dir_all(root).expect("made");
        std::fs::write(root.join("default.nix"), format!("{{ arg ? \"\" }}: {{ r = {expression}; }}")).expect("written");
        let text = |text: &str| text.to_owned();
        Project { root: root.to_owned(), attribute: text("r"), argument: text(""), variable: text("0"), history: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// All files with their contents, to see what went wrong.
    pub fn describe(&self) -> String {
        self.history.iter().map(|(name, text)| format!("{name}: {text}\n")).collect()
    }

    fn write(&mut self, name: &str, text: &str) {
        self.history.push((name.to_owned(), text.to_owned()));
        let path = self.root.join(name);
        // What was made a link or a directory becomes a file again.
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
        if let Some(parent) = path.parent() {
            let _ = std::fs::remove_file(parent);
            let _ = std::fs::create_dir_all(parent);
        }
        std::fs::write(&path, text).expect("written");
    }

    pub fn apply(&mut self, edit: &Edit) {
        use std::os::unix::fs::PermissionsExt;
        let at = |name: &str| self.root.join(name);
        match edit {
            Edit::Write(name, text) => self.write(name, text),
            Edit::Delete(name) => drop(std::fs::remove_file(at(name)).or_else(|_| std::fs::remove_dir_all(at(name)))),
            Edit::Rename(from, to) => drop(std::fs::rename(at(from), at(to))),
            Edit::Executable(name, executable) => {
                let mode = if *executable { 0o755 } else { 0o644 };
                let _ = std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode));
            }
            Edit::Link(name, target) => {
                let _ = std::fs::remove_file(at(name));
                let _ = std::fs::remove_dir_all(at(name));
                let _ = std::os::unix::fs::symlink(target, at(name));
            }
            Edit::Touch(name) => {
                let now = std::time::SystemTime::now();
                let _ = std::fs::File::open(at(name)).and_then(|file| file.set_modified(now));
            }
            Edit::Directory(name) => drop(std::fs::create_dir_all(at(name))),
            Edit::Variable(value) => self.variable.clone_from(value),
            Edit::Argument(value) => self.argument.clone_from(value),
            Edit::Attribute(name) => self.attribute.clone_from(name),
            Edit::Nothing => {}
        }
    }
}

impl Edit {
    pub fn random(project: &Project, random: &mut Random) -> Edit {
        let data = |random: &mut Random| (*random.pick(&DATA)).to_owned();
        match random.below(22) {
            0..=3 => Edit::Write(data(random), program::data(random)),
            4 => {
                let index = random.below(EXPRESSIONS.len() + 1);
                if index == EXPRESSIONS.len() {
                    return Edit::Write(FUNCTION.to_owned(), program::function(random));
                }
                Edit::Write(EXPRESSIONS[index].to_owned(), program::file(random, index))
            }
            5 => {
                // Back to what some file once held.
                let (name, text) = random.pick(&project.history).clone();
                Edit::Write(name, text)
            }
            6 => Edit::Delete(data(random)),
            7 => Edit::Rename(data(random), data(random)),
            8 => Edit::Executable(data(random), random.below(2) == 0),
            9 => Edit::Link(data(random), (*random.pick(&["d0", "../d1", "x", "nowhere", "../dir"])).to_owned()),
            10 => Edit::Touch(data(random)),
            11 => Edit::Directory(format!("dir/{}", random.pick(&["z", "w"]))),
            12 => Edit::Variable(random.below(3).to_string()),
            13 => Edit::Argument(random.below(2).to_string()),
            14..=16 => {
                // The same code, elsewhere in its file.
                let name = *random.pick(&["default.nix", EXPRESSIONS[0], EXPRESSIONS[1], EXPRESSIONS[2], EXPRESSIONS[3], FUNCTION, BINDINGS]);
                match std::fs::read_to_string(project.root.join(name)) {
                    Ok(text) => Edit::Write(name.to_owned(), rewritten(random, &text)),
                    Err(_) => Edit::Nothing,
                }
            }
            18..=20 => match std::fs::read_to_string(project.root.join(BINDINGS)) {
                Ok(text) => Edit::Write(BINDINGS.to_owned(), program::rebound(random, &text)),
                Err(_) => Edit::Nothing,
            },
            17 => Edit::Attribute((*random.pick(&["r.a", "r.b"])).to_owned()),
            _ => Edit::Nothing,
        }
    }
}

/// The program: one set in another, over files that are imported.
fn program(random: &mut Random) -> String {
    let (a, b) = (program::expression(random, "./", 3), program::expression(random, "./", 3));
    let (calls, c, d) = (program::calls(random, &["s", "arg"]), program::given_by_a_call(random), program::given_by_a_call(random));
    let scope = format!("let\n  s = import ./e0.nix;\n{calls}in");
    format!("{{ arg ? \"\" }}: {scope} {{ r = {{ a = {a} + s + {c} + {d}; b = {b} + arg + {c}; }}; }}\n")
}

/// The same code with other blanks and comments.
fn rewritten(random: &mut Random, text: &str) -> String {
    let before = *random.pick(&["", "\n", "# a comment\n", "/* two\n   lines */ ", "  "]);
    format!("{before}{}{}", text.trim_start().trim_start_matches("# a comment\n"), random.pick(&["", " # at the end\n", "\n\n"]))
}
