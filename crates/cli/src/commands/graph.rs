//! `firn graph`: what a result depends on, as a graph: the files that were read and which names which, directories that were
//! listed, variables of the environment, names looked up in the search path, and the derivations a derivation needs.
//!
//! The host's recording says what was observed. Which file led to which is read from the path literals in them.

mod draw;

use super::help;
use crate::arguments::{Word, Words};
use crate::failure::Failure;
use crate::flags::Flags;
use crate::installable::Opening;
use crate::lock_flags::TypedLocks;
use crate::program::Invocation;
use crate::session::Session;
use crate::settings;
use draw::{Graph, Kind};
use firn_eval::{PrintOptions, try_print_value};
use firn_host::{AbsPath, Observation, Question};
use firn_value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The command line as typed.
#[derive(Debug, Default)]
struct Typed {
    file: Option<Vec<u8>>,
    expression: Option<Vec<u8>>,
    named: Option<Vec<u8>>,
    svg: bool,
    all: bool,
    locks: TypedLocks,
}

/// Runs the command.
pub fn run(invocation: &mut Invocation, mut words: Words, mut flags: Flags) -> Result<(), Failure> {
    let mut typed = Typed::default();
    while let Some(word) = words.next_word() {
        match word {
            Word::Argument(named) if typed.named.is_none() => typed.named = Some(named),
            Word::Argument(other) => return Err(Failure::usage("unexpected argument '", &other, "'")),
            Word::Flag(flag) => match &flag[..] {
                b"--help" => return help::show(invocation, "graph"),
                b"--file" | b"-f" => typed.file = words.values(&flag).map(|[file]| Some(file))?,
                b"--expr" => typed.expression = words.values(&flag).map(|[text]| Some(text))?,
                b"--svg" => typed.svg = true,
                b"--dot" => typed.svg = false,
                b"--all" => typed.all = true,
                _ if typed.locks.read(&flag, &mut words)? || flags.read(&flag, &mut words)? => {}
                _ => return Err(Failure::usage("unrecognised flag '", &flag, "'")),
            },
        }
    }
    if typed.file.is_some() && typed.expression.is_some() {
        return Err(Failure::Usage(b"'--file' and '--expr' are exclusive".to_vec()));
    }
    invocation.log.set_verbosity(flags.verbosity);
    flags.read_only = true;
    // What is remembered was not asked for now.
    flags.memo = Some(b"off".to_vec());
    let observed = Arc::new(Mutex::new(Vec::new()));
    flags.recording = Some(Arc::clone(&observed));
    let (session, value) = typed.value(invocation, &mut flags)?;
    let graph = typed.graph(&session, value, &observed)?;
    let text = if typed.svg { graph.svg() } else { graph.dot() };
    invocation.output.write(text.as_bytes())
}

impl Typed {
    fn value(&self, invocation: &Invocation, flags: &mut Flags) -> Result<(Session, Value), Failure> {
        if self.file.is_none() && self.expression.is_none() {
            let named = self.named.clone().unwrap_or_else(|| b".".to_vec());
            let opened = Opening { flags, locks: &self.locks, allow_missing: false }.open(invocation, &named)?;
            let value = opened.value()?;
            return Ok((opened.session, value));
        }
        let log = invocation.log.clone();
        let resolved = settings::resolve(&*invocation.host, flags, self.file.is_none(), &|text| log.warn(text))?;
        let session = Session::start(&invocation.host, flags, resolved, &invocation.log)?;
        let source = match (&self.file, &self.expression) {
            (Some(file), _) => session.file_expression(&session.file_argument(file)?)?,
            (None, text) => session.expression(text.as_deref().unwrap_or_default())?,
        };
        let root = session.evaluate(source)?;
        let (cell, pos) = session.machine.find_along(self.named.as_deref().unwrap_or_default(), session.arguments, root)?;
        let value = session.machine.force(cell, pos)?;
        Ok((session, value))
    }

    /// Evaluates all of the value, and draws what was observed.
    fn graph(&self, session: &Session, value: Value, observed: &Mutex<Vec<Observation>>) -> Result<Graph, Failure> {
        let machine = &session.machine;
        let options = PrintOptions { force: true, derivation_paths: true, ..PrintOptions::default() };
        try_print_value(machine, value, &options, &mut Vec::new())?;
        let title = self.named.as_ref().or(self.file.as_ref()).or(self.expression.as_ref());
        let title = title.map_or_else(|| ".".to_owned(), |name| String::from_utf8_lossy(name).into_owned());
        let mut graph = Graph::new(title);
        let questions = std::mem::take(&mut *observed.lock().unwrap_or_else(PoisonError::into_inner));
        let mut files: BTreeMap<AbsPath, usize> = BTreeMap::new();
        for Observation { question, .. } in questions {
            match question {
                Question::File(path) | Question::Code(path) => drop(files.insert(path, 0)),
                Question::Directory(path) => graph.outside(Kind::Directory, &path_text(&path)),
                Question::Env(name) => graph.outside(Kind::Variable, &String::from_utf8_lossy(&name)),
                Question::SearchPath(_, name) => {
                    graph.outside(Kind::Search, &format!("<{}>", String::from_utf8_lossy(&name)));
                }
                _ => {}
            }
        }
        self.add_files(session, &mut graph, &mut files)?;
        self.add_inputs(session, &mut graph, value)?;
        Ok(graph)
    }

    fn add_files(&self, session: &Session, graph: &mut Graph, files: &mut BTreeMap<AbsPath, usize>) -> Result<(), Failure> {
        // Where a tree lies says nothing; what its files are called in it does.
        let common = common_directory(files.keys());
        for (path, node) in files.iter_mut() {
            let text = path_text(path);
            let shown = text.strip_prefix(&common).map_or(text.as_str(), |rest| rest.trim_start_matches('/'));
            *node = graph.node(Kind::File, shown);
        }
        let mut named = vec![false; graph.len()];
        for (path, &node) in files.iter() {
            let host = session.machine.host();
            let Ok(content) = host.read_file(path) else { continue };
            let dir = path.parent().unwrap_or_else(AbsPath::root);
            for literal in path_literals(content.bytes()) {
                let Ok(target) = dir.join(literal) else { continue };
                let inside = target.join(b"default.nix").ok();
                let found = files.get(&target).or_else(|| files.get(&inside?));
                if let Some(&found) = found.filter(|found| **found != node) {
                    graph.edge(node, found);
                    named[found] = true;
                }
            }
        }
        for &node in files.values().filter(|node| !named[**node]) {
            graph.edge(Graph::ROOT, node);
        }
        Ok(())
    }

    /// The derivations that a derivation needs; with `--all` those that they need too.
    fn add_inputs(&self, session: &Session, graph: &mut Graph, value: Value) -> Result<(), Failure> {
        let machine = &session.machine;
        let Some(set) = value.as_attrs() else { return Ok(()) };
        if !machine.is_derivation(set)? {
            return Ok(());
        }
        let Some((cell, pos)) = set.get_with_pos(machine.names().drv_path) else { return Ok(()) };
        let path = machine.force_string(cell, pos, "while evaluating the path of a derivation")?;
        let own = machine.store_dir().parse(path.bytes()).map_err(crate::stores::failed)?;
        let (mut todo, mut nodes) = (vec![(own.clone(), Graph::ROOT)], BTreeMap::from([(own, Graph::ROOT)]));
        while let Some((path, node)) = todo.pop() {
            for input in firn_builtins::derivation_at(machine, &path)?.input_drvs.keys() {
                let known = nodes.get(input).copied();
                let next = known.unwrap_or_else(|| {
                    let name = input.derivation_name().map_or_else(|_| input.name().to_owned(), |name| name.to_string());
                    graph.node(Kind::Derivation, &name)
                });
                graph.edge(node, next);
                if known.is_none() {
                    nodes.insert(input.clone(), next);
                    if self.all {
                        todo.push((input.clone(), next));
                    }
                }
            }
        }
        Ok(())
    }
}

fn path_text(path: &AbsPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}

/// The deepest directory that all files are in.
fn common_directory<'a>(files: impl Iterator<Item = &'a AbsPath>) -> String {
    let mut common: Option<Vec<String>> = None;
    for file in files {
        let text = path_text(file);
        let mut parts: Vec<String> = text.split('/').map(str::to_owned).collect();
        parts.pop();
        common = Some(match common {
            None => parts,
            Some(before) => before.into_iter().zip(parts).take_while(|(a, b)| a == b).map(|(a, _)| a).collect(),
        });
    }
    common.unwrap_or_default().join("/")
}

/// What looks like a relative path in a text.
fn path_literals(text: &[u8]) -> Vec<&[u8]> {
    let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"._-+/".contains(b);
    let words = text.split(|b| !is_part(b));
    words.filter(|word| word.starts_with(b"./") || word.starts_with(b"../")).map(trimmed).collect()
}

fn trimmed(mut word: &[u8]) -> &[u8] {
    while let [rest @ .., b'/' | b'.'] = word {
        word = rest;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_and_trimmed() {
        let found = path_literals(b"import ./a.nix { x = ../b/c; y = ./. + \"/z\"; } # see ./d/.");
        assert_eq!(found, [&b"./a.nix"[..], b"../b/c", b"", b"./d"]);
        let files = [b"/a/b/c.nix".as_slice(), b"/a/b/d/e.nix"].map(|path| AbsPath::new(path).expect("absolute"));
        assert_eq!(common_directory(files.iter()), "/a/b");
    }
}
