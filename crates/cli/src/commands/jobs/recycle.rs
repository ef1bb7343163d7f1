//! The memory limit: a process whose memory is used up leaves what is still to do in a file and becomes a new one.
//!
//! Values live as long as their process, so beginning anew is the way to give memory back. Output, standard error and
//! process id stay the same; nothing that was printed is evaluated again.
#![allow(clippy::disallowed_methods, reason = "the file and the program are this run's own, nothing evaluates by them")]

use super::queue::{Path, Todo};
use crate::failure::Failure;
use firn_text::json::Tree;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::time::Duration;

/// Names the file for the next process.
const VARIABLE: &str = "FIRN_JOBS_RESUME";

/// What the next process must know.
#[derive(Debug, Default)]
pub(super) struct Rest {
    pub todo: Vec<(Path, bool)>,
    pub done: usize,
    pub failed: usize,
    pub elapsed: Duration,
    /// What was read from standard input for an argument.
    pub stdin: Option<Vec<u8>>,
    /// Lines that wait for earlier ones.
    pub held: Vec<(Path, Tree)>,
    /// Lines by attribute, kept for aggregates.
    pub jobs: Vec<Tree>,
}

/// Megabytes of memory that this process has in use; none where the system does not tell.
pub(super) fn memory_in_use() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    let page = unix::unistd::sysconf(unix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some((pages * page.unsigned_abs()) >> 20)
}

fn hex(bytes: &[u8]) -> Tree {
    Tree::text(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

fn unhex(tree: &Tree) -> Option<Vec<u8>> {
    let text = tree.as_text()?;
    (0..text.len() / 2).map(|i| u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()).collect()
}

fn names(path: &Path) -> Tree {
    Tree::List(path.iter().map(|name| hex(name)).collect())
}

fn path(tree: &Tree) -> Option<Path> {
    tree.as_list()?.iter().map(unhex).collect()
}

impl Rest {
    fn to_tree(&self) -> Tree {
        let pair = |a: Tree, b: Tree| Tree::List(vec![a, b]);
        let todo = self.todo.iter().map(|(path, decided)| pair(names(path), Tree::Bool(*decided))).collect();
        let held = self.held.iter().map(|(path, line)| pair(names(path), line.clone())).collect();
        let members = [
            ("todo", Tree::List(todo)),
            ("held", Tree::List(held)),
            ("jobs", Tree::List(self.jobs.clone())),
            ("done", Tree::Int(self.done as i64)),
            ("failed", Tree::Int(self.failed as i64)),
            ("milliseconds", Tree::Int(self.elapsed.as_millis() as i64)),
            ("stdin", self.stdin.as_ref().map_or(Tree::Null, |text| hex(text))),
        ];
        Tree::Object(members.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
    }

    fn from_tree(tree: &Tree) -> Option<Rest> {
        let number = |name: &str| match tree.get(name) {
            Some(Tree::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        let pairs = |name: &str| -> Option<Vec<(Path, Tree)>> {
            let pair = |item: &Tree| match item.as_list()? {
                [first, second] => Some((path(first)?, second.clone())),
                _ => None,
            };
            tree.get(name)?.as_list()?.iter().map(pair).collect()
        };
        let todo = pairs("todo")?.into_iter().map(|(path, decided)| (path, decided == Tree::Bool(true))).collect();
        Some(Rest {
            todo,
            done: number("done")? as usize,
            failed: number("failed")? as usize,
            elapsed: Duration::from_millis(number("milliseconds")?),
            stdin: tree.get("stdin").and_then(unhex),
            held: pairs("held")?,
            jobs: tree.get("jobs")?.as_list()?.to_vec(),
        })
    }

    /// What an earlier process of this run left, if there was one.
    pub fn take() -> Result<Option<Rest>, Failure> {
        // A run that begins again begins with the same.
        static READ: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let Some(name) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let bad = || Failure::error(format!("'{VARIABLE}' does not name the state of a run: {}", name.to_string_lossy()));
        let text = match READ.get() {
            Some(text) => text,
            None => {
                let text = std::fs::read(&name).map_err(|_| bad())?;
                let _ = std::fs::remove_file(&name);
                READ.get_or_init(|| text)
            }
        };
        let tree = Tree::parse(text).map_err(|_| bad())?;
        Rest::from_tree(&tree).map(Some).ok_or_else(bad)
    }

    /// Becomes a new process that goes on from here. Returns only if that fails.
    pub fn go_on(&self) -> Failure {
        let failed = |what: &str, error: std::io::Error| {
            Failure::error(format!("cannot begin anew with less memory: {what}: {}", firn_host::Errno::from(error)))
        };
        let file = std::env::temp_dir().join(format!("firn-jobs-{}-{}", std::process::id(), self.todo.len()));
        let text = match self.to_tree().print(None) {
            Ok(text) => text,
            Err(why) => return Failure::error(format!("cannot begin anew with less memory: {why}")),
        };
        let mut options = std::fs::OpenOptions::new();
        let written = options.write(true).create_new(true).mode(0o600).open(&file).and_then(|mut f| f.write_all(&text));
        if let Err(error) = written {
            return failed(&file.to_string_lossy(), error);
        }
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => return failed("this program's file", error),
        };
        let mut words = std::env::args_os();
        let mut command = std::process::Command::new(&program);
        command.arg0(words.next().unwrap_or_else(|| "firn".into())).args(words).env(VARIABLE, &file);
        let error = command.exec();
        let _ = std::fs::remove_file(&file);
        failed(&program.to_string_lossy(), error)
    }
}

/// Paths without cells, as the next process begins with them.
pub(super) fn begin(todo: Vec<(Path, bool)>) -> impl Iterator<Item = (Path, Todo)> {
    todo.into_iter().map(|(path, decided)| (path, Todo { cell: None, decided }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_comes_back_as_it_went() {
        let rest = Rest {
            todo: vec![(vec![b"a\xff".to_vec(), b"b.c".to_vec()], true), (Vec::new(), false)],
            done: 3,
            failed: 1,
            elapsed: Duration::from_millis(1500),
            stdin: Some(b"text\n".to_vec()),
            held: vec![(vec![b"z".to_vec()], Tree::text("line"))],
            jobs: vec![Tree::Null],
        };
        let text = rest.to_tree().print(None).expect("printable");
        let again = Rest::from_tree(&Tree::parse(&text).expect("JSON")).expect("complete");
        assert_eq!(format!("{rest:?}"), format!("{again:?}"));
    }
}
