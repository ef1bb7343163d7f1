//! `LockFile`: the graph of a flake's inputs, as `flake.lock` has it. Versions 5 to 7 are read, 7 is written.
//!
//! Nodes are in a table and name each other by index; the root is the first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use firn_host::fetch::{Attr, FetchError, FetchErrorKind, Fetcher, shown};
use firn_text::json::Tree;

use crate::FlakeRef;

/// The way to an input: names from the root.
pub type InputPath = Vec<String>;

/// What an input of a node is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edge {
    /// A node.
    Node(usize),
    /// Whatever this other input of the root is.
    Follows(InputPath),
}

/// What a node other than the root knows of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Locked {
    /// What exactly it is.
    pub locked: FlakeRef,
    /// What was asked for.
    pub original: FlakeRef,
    /// Whether it is a flake, not any tree.
    pub is_flake: bool,
    /// For relative paths: the input they are relative to.
    pub parent: Option<InputPath>,
}

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// None for the root.
    pub locked: Option<Locked>,
    /// Its inputs.
    pub inputs: BTreeMap<String, Edge>,
}

/// The graph. The root is node 0.
#[derive(Clone, Debug)]
pub struct LockFile {
    /// All nodes.
    pub nodes: Vec<Node>,
}

impl Default for LockFile {
    fn default() -> LockFile {
        LockFile { nodes: vec![Node::default()] }
    }
}

/// `a/b` as a way to an input.
pub fn parse_input_path(text: &str) -> Result<InputPath, FetchError> {
    let is_id = |step: &str| {
        step.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
            && step.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    text.split('/')
        .filter(|step| !step.is_empty())
        .map(|step| match is_id(step) {
            true => Ok(step.to_owned()),
            false => {
                let message = format!("invalid flake input attribute path element '{}'", shown(step));
                Err(FetchError::of(FetchErrorKind::Usage, message))
            }
        })
        .collect()
}

/// A way to an input as text.
pub fn print_input_path(path: &[String]) -> String {
    path.join("/")
}

struct Reader<'a> {
    fetcher: &'a Fetcher,
    nodes: &'a Tree,
    known: HashMap<String, usize>,
    file: LockFile,
}

impl LockFile {
    /// Reads a lock file; `path` is its name in messages.
    pub fn parse(fetcher: &Fetcher, text: &[u8], path: &str) -> Result<LockFile, FetchError> {
        let json = Tree::parse(text).map_err(|why| {
            FetchError::new(format!("Could not parse '{}': {}", shown(path), shown(String::from_utf8_lossy(&why))))
        })?;
        let version = if let Some(Tree::Int(version)) = json.get("version") { *version } else { 0 };
        if !(5..=7).contains(&version) {
            let parts = (shown(path), shown(version));
            return Err(FetchError::new(format!("lock file '{}' has unsupported version {}", parts.0, parts.1)));
        }
        let damaged = || FetchError::new(format!("lock file '{}' lacks its root node", shown(path)));
        let root = json.get("root").and_then(Tree::as_text).ok_or_else(damaged)?;
        let nodes = json.get("nodes").ok_or_else(damaged)?;
        let node = nodes.get(root).ok_or_else(damaged)?;
        let known = HashMap::from([(root.to_owned(), 0)]);
        let mut reader = Reader { fetcher, nodes, known, file: LockFile::default() };
        reader.inputs(0, node)?;
        Ok(reader.file)
    }

    /// The node that a way from the root leads to.
    pub fn find(&self, path: &[String]) -> Result<Option<usize>, FetchError> {
        self.find_from_root(path, &mut Vec::new())
    }

    fn find_from_root(&self, path: &[String], visited: &mut Vec<InputPath>) -> Result<Option<usize>, FetchError> {
        if let Some(at) = visited.iter().position(|earlier| earlier == path) {
            let mut cycle: Vec<String> = visited[at..].iter().map(|path| print_input_path(path)).collect();
            cycle.push(print_input_path(path));
            return Err(FetchError::new(format!("follow cycle detected: [{}]", shown(cycle.join(" -> ")))));
        }
        visited.push(path.to_vec());
        let mut node = 0;
        for step in path {
            node = match self.nodes[node].inputs.get(step) {
                Some(Edge::Node(next)) => *next,
                Some(Edge::Follows(follows)) => match self.find_from_root(follows, visited)? {
                    Some(next) => next,
                    None => return Ok(None),
                },
                None => return Ok(None),
            };
        }
        Ok(Some(node))
    }

    /// The document, and the key of each node in it.
    pub fn to_json(&self) -> Result<(Tree, HashMap<usize, String>), FetchError> {
        let mut writer = Writer { file: self, keys: HashMap::new(), taken: BTreeSet::new(), nodes: BTreeMap::new() };
        let root = writer.node("root", 0)?;
        let json = BTreeMap::from([
            (b"version".to_vec(), Tree::Int(7)),
            (b"root".to_vec(), Tree::text(&root)),
            (b"nodes".to_vec(), Tree::Object(writer.nodes)),
        ]);
        Ok((Tree::Object(json), writer.keys))
    }

    /// The text of the file, without the newline at its end.
    pub fn print(&self) -> Result<String, FetchError> {
        print_json(&self.to_json()?.0)
    }

    /// Whether both would be written alike.
    pub fn same(&self, other: &LockFile) -> Result<bool, FetchError> {
        Ok(self.to_json()?.0 == other.to_json()?.0)
    }

    /// The first input that nothing pins.
    pub fn unlocked(&self, allow_dirty: bool) -> Option<&FlakeRef> {
        let pinned = |reference: &FlakeRef| {
            let input = &reference.input;
            let enough = input.is_locked() || (allow_dirty && input.text("narHash").is_some());
            (enough && input.is_final()) || input.relative_path().is_some()
        };
        let mut visited = BTreeSet::new();
        let mut todo = vec![0];
        while let Some(node) = todo.pop() {
            if !visited.insert(node) {
                continue;
            }
            if let Some(locked) = &self.nodes[node].locked
                && !pinned(&locked.locked)
            {
                return Some(&locked.locked);
            }
            let next = |edge: &Edge| if let Edge::Node(next) = edge { Some(*next) } else { None };
            todo.extend(self.nodes[node].inputs.values().rev().filter_map(next));
        }
        None
    }

    /// All inputs by the way to them; nodes that several inputs share are entered once.
    pub fn all_inputs(&self) -> BTreeMap<InputPath, Edge> {
        let mut all = BTreeMap::new();
        self.collect(&mut Vec::new(), 0, &mut BTreeSet::new(), &mut all);
        all
    }

    fn collect(&self, at: &mut InputPath, node: usize, done: &mut BTreeSet<usize>, all: &mut BTreeMap<InputPath, Edge>) {
        if !done.insert(node) {
            return;
        }
        for (id, edge) in &self.nodes[node].inputs {
            at.push(id.clone());
            all.entry(at.clone()).or_insert_with(|| edge.clone());
            if let Edge::Node(next) = edge {
                self.collect(at, *next, done, all);
            }
            at.pop();
        }
    }

    /// Fails if an input follows one that does not exist.
    pub fn check(&self) -> Result<(), FetchError> {
        for (path, edge) in self.all_inputs() {
            if let Edge::Follows(follows) = edge
                && !follows.is_empty()
                && self.find(&follows)?.is_none()
            {
                let parts = (shown(print_input_path(&path)), shown(print_input_path(&follows)));
                return Err(FetchError::new(format!("input '{}' follows a non-existent input '{}'", parts.0, parts.1)));
            }
        }
        Ok(())
    }
}

/// A document as Nix lays it out.
pub(crate) fn print_json(json: &Tree) -> Result<String, FetchError> {
    let bytes = json.print(Some(2)).map_err(FetchError::new)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Reader<'_> {
    fn inputs(&mut self, node: usize, json: &Tree) -> Result<(), FetchError> {
        let Some(inputs) = json.get("inputs").and_then(Tree::as_object) else { return Ok(()) };
        for (id, value) in inputs {
            let id = String::from_utf8_lossy(id).into_owned();
            let edge = match value {
                Tree::List(steps) => Edge::Follows(texts(steps)?),
                other => {
                    let key = other.as_text().ok_or_else(|| FetchError::new("lock file has an input that is no string"))?;
                    Edge::Node(self.node(key)?)
                }
            };
            self.file.nodes[node].inputs.insert(id, edge);
        }
        Ok(())
    }

    fn node(&mut self, key: &str) -> Result<usize, FetchError> {
        match self.known.get(key) {
            // A cycle to the root can only be written by hand.
            Some(0) => return Err(FetchError::new("lock file contains cycle to root node")),
            Some(node) => return Ok(*node),
            None => {}
        }
        let Some(json) = self.nodes.get(key) else {
            return Err(FetchError::new(format!("lock file references missing node '{}'", shown(key))));
        };
        let locked = self.locked(json)?;
        let node = self.file.nodes.len();
        self.file.nodes.push(Node { locked: Some(locked), inputs: BTreeMap::new() });
        self.known.insert(key.to_owned(), node);
        self.inputs(node, json)?;
        Ok(node)
    }

    fn reference(&self, json: &Tree, name: &str, info: Option<&str>) -> Result<FlakeRef, FetchError> {
        let Some(value) = json.get(name) else {
            return Err(FetchError::new(format!("attribute '{}' missing in lock file", shown(name))));
        };
        let mut attrs = Fetcher::attrs_of_json(value)?;
        // Version 5 had what is known of a tree beside its reference.
        if let Some(info) = info.and_then(|info| json.get(info)) {
            attrs.extend(Fetcher::attrs_of_json(info)?);
        }
        FlakeRef::from_attrs(&self.fetcher.settings, attrs)
    }

    fn locked(&self, json: &Tree) -> Result<Locked, FetchError> {
        let mut locked = self.reference(json, "locked", Some("info"))?;
        let original = self.reference(json, "original", None)?;
        if !locked.input.is_locked() && locked.input.relative_path().is_none() {
            if locked.input.text("narHash").is_none() {
                let shown = shown(firn_host::fetch::attrs_to_json(&locked.input.attrs)?);
                let message =
                    format!("Lock file contains unlocked input '{shown}'. Use '--allow-dirty-locks' to accept this lock file.");
                return Err(FetchError::new(message));
            }
            self.fetcher.warn(&format!(
                "Lock file entry '{}' is unlocked (e.g. lacks a Git revision) but is checked by NAR hash. This is not \
                 reproducible and will break after garbage collection or when shared.",
                shown(locked.show())
            ));
        }
        locked.input.set("__final", Attr::Flag(true));
        let is_flake = json.get("flake") != Some(&Tree::Bool(false));
        let parent = json.get("parent").and_then(Tree::as_list).map(texts).transpose()?;
        Ok(Locked { locked, original, is_flake, parent })
    }
}

fn texts(steps: &[Tree]) -> Result<InputPath, FetchError> {
    let text = |step: &Tree| step.as_text().map(str::to_owned);
    steps.iter().map(text).collect::<Option<_>>().ok_or_else(|| FetchError::new("lock file has a path of inputs that is no list of strings"))
}

struct Writer<'a> {
    file: &'a LockFile,
    keys: HashMap<usize, String>,
    taken: BTreeSet<String>,
    nodes: BTreeMap<Vec<u8>, Tree>,
}

impl Writer<'_> {
    /// Writes a node under its input's name, with a number where that is taken; its key.
    fn node(&mut self, name: &str, index: usize) -> Result<String, FetchError> {
        if let Some(key) = self.keys.get(&index) {
            return Ok(key.clone());
        }
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let key = std::iter::once(name.to_owned()).chain(numbered).find(|key| !self.taken.contains(key)).unwrap_or_default();
        self.taken.insert(key.clone());
        self.keys.insert(index, key.clone());
        let node = &self.file.nodes[index];
        let mut json = BTreeMap::new();
        if !node.inputs.is_empty() {
            let mut inputs = BTreeMap::new();
            for (id, edge) in &node.inputs {
                let value = match edge {
                    Edge::Node(next) => Tree::text(&self.node(id, *next)?),
                    Edge::Follows(path) => Tree::List(path.iter().map(|step| Tree::text(step)).collect()),
                };
                inputs.insert(id.clone().into_bytes(), value);
            }
            json.insert(b"inputs".to_vec(), Tree::Object(inputs));
        }
        if let Some(locked) = &node.locked {
            let mut exact = locked.locked.to_attrs();
            exact.remove("__final");
            json.insert(b"locked".to_vec(), attrs_to_tree(&exact)?);
            json.insert(b"original".to_vec(), attrs_to_tree(&locked.original.to_attrs())?);
            if !locked.is_flake {
                json.insert(b"flake".to_vec(), Tree::Bool(false));
            }
            if let Some(parent) = &locked.parent {
                json.insert(b"parent".to_vec(), Tree::List(parent.iter().map(|step| Tree::text(step)).collect()));
            }
        }
        self.nodes.insert(key.clone().into_bytes(), Tree::Object(json));
        Ok(key)
    }
}

/// Attributes as a JSON object.
pub(crate) fn attrs_to_tree(attrs: &firn_host::fetch::Attrs) -> Result<Tree, FetchError> {
    let entry = |(name, attr): (&String, &Attr)| {
        let value = match attr {
            Attr::Text(text) => Tree::text(text),
            Attr::Flag(flag) => Tree::Bool(*flag),
            Attr::Number(_) | Attr::Lazy(_) => {
                Tree::Int(i64::try_from(attr.number()?.unwrap_or_default()).unwrap_or(i64::MAX))
            }
        };
        Ok((name.clone().into_bytes(), value))
    };
    attrs.iter().map(entry).collect::<Result<_, FetchError>>().map(Tree::Object)
}
