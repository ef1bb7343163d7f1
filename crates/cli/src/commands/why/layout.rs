//! Observations as a tree for people: by tree and directory, then by what else was asked. Directories that would take the
//! whole screen are folded into counts.

use crate::observed;
use firn_host::{Observation, Question};
use firn_memo::kept::{ROOT, Roles};
use std::collections::{BTreeMap, VecDeque};

/// As many lines are shown before directories are folded.
const LINES: usize = 48;

#[derive(Debug, Default)]
struct Node {
    name: String,
    /// What was asked about it.
    notes: Vec<String>,
    children: Vec<usize>,
    open: bool,
}

/// The tree. Nodes are numbers into it; the first is above all.
#[derive(Debug)]
pub(in crate::commands) struct Layout {
    nodes: Vec<Node>,
}

impl Layout {
    pub fn new(observations: &[Observation], roles: &Roles) -> Layout {
        let mut layout = Layout { nodes: vec![Node { open: true, ..Node::default() }] };
        // By tree and path; each path once.
        let mut paths: BTreeMap<(&str, Vec<&[u8]>), Vec<String>> = BTreeMap::new();
        let mut names: BTreeMap<&'static str, BTreeMap<String, ()>> = BTreeMap::new();
        for observation in observations {
            if let Some(path) = observation.question.path() {
                let (role, rest) = roles.place(path);
                let components = rest.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
                let notes = paths.entry((role, components)).or_default();
                let note = observed::about_path(observation);
                if !notes.contains(&note) {
                    notes.push(note);
                }
            } else if !matches!(observation.question, Question::Location(_))
                && let Some((heading, name)) = observed::about_name(&observation.question)
            {
                let note = match &observation.question {
                    Question::Env(_) if observed::is_absence(observation) => "  not set",
                    // What firn itself provides is found where there is nothing else, too.
                    Question::SearchPath(_, name) if !name.starts_with(b"nix/") && observed::is_absence(observation) => {
                        "  not found"
                    }
                    _ => "",
                };
                names.entry(heading).or_default().insert(format!("{name}{note}"), ());
            }
        }
        let mut headings: BTreeMap<&str, usize> = BTreeMap::new();
        for ((role, components), notes) in paths {
            let heading = *headings.entry(role).or_insert_with(|| {
                let tree = roles.tree(role).map_or_else(String::new, |tree| String::from_utf8_lossy(tree.as_bytes()).into_owned());
                layout.add(0, if role == ROOT { "/".to_owned() } else { tree })
            });
            let node = components.iter().fold(heading, |node, part| layout.child(node, &String::from_utf8_lossy(part)));
            layout.nodes[node].notes.extend(notes);
        }
        for (heading, names) in names {
            let heading = layout.add(0, heading.to_owned());
            names.into_keys().for_each(|name| _ = layout.add(heading, name));
        }
        layout.join_single(0);
        layout
    }

    fn add(&mut self, above: usize, name: String) -> usize {
        self.nodes.push(Node { name, ..Node::default() });
        let node = self.nodes.len() - 1;
        self.nodes[above].children.push(node);
        node
    }

    /// Paths come in order: a child that exists is the last.
    fn child(&mut self, above: usize, name: &str) -> usize {
        let last = self.nodes[above].children.last().copied();
        last.filter(|&node| self.nodes[node].name == name).unwrap_or_else(|| self.add(above, name.to_owned()))
    }

    /// Directories of which nothing is known but one thing in them become one with it.
    fn join_single(&mut self, top: usize) {
        let mut todo: Vec<usize> = self.nodes[top].children.clone();
        while let Some(node) = todo.pop() {
            for index in 0..self.nodes[node].children.len() {
                let child = self.nodes[node].children[index];
                while let [only] = self.nodes[child].children[..]
                    && self.nodes[child].notes.is_empty()
                {
                    let below = std::mem::take(&mut self.nodes[only]);
                    let name = format!("{}/{}", self.nodes[child].name, below.name);
                    self.nodes[child] = Node { name, ..below };
                }
                todo.push(child);
            }
        }
    }

    /// Opens directories from the top as long as all fits on a page; all of them if `all`.
    pub fn open(&mut self, all: bool) {
        let (mut lines, mut todo) = (self.nodes[0].children.len(), VecDeque::from(self.nodes[0].children.clone()));
        while let Some(node) = todo.pop_front() {
            let children = self.nodes[node].children.clone();
            if all || lines + children.len() <= LINES {
                lines += children.len();
                self.nodes[node].open = true;
                todo.extend(children);
            }
        }
    }

    /// Whether something is folded.
    pub fn is_folded(&self) -> bool {
        let mut todo = vec![0];
        while let Some(node) = todo.pop() {
            if !self.nodes[node].open && !self.nodes[node].children.is_empty() {
                return true;
            }
            todo.extend(&self.nodes[node].children);
        }
        false
    }

    pub fn print(&self) -> String {
        let mut out = String::new();
        for &heading in &self.nodes[0].children {
            out.push_str(&self.line(heading));
            self.print_below(heading, "", &mut out);
        }
        out
    }

    fn print_below(&self, node: usize, before: &str, out: &mut String) {
        if !self.nodes[node].open {
            return;
        }
        let children = &self.nodes[node].children;
        for (index, &child) in children.iter().enumerate() {
            let last = index + 1 == children.len();
            out.push_str(before);
            out.push_str(if last { "└── " } else { "├── " });
            out.push_str(&self.line(child));
            self.print_below(child, &format!("{before}{}", if last { "    " } else { "│   " }), out);
        }
    }

    fn line(&self, number: usize) -> String {
        let node = &self.nodes[number];
        let mut notes = node.notes.clone();
        if !node.open && !node.children.is_empty() {
            notes.push(self.folded(number));
        }
        let notes = notes.join(", ");
        if notes.is_empty() { format!("{}\n", node.name) } else { format!("{}  {notes}\n", node.name) }
    }

    /// What is below, in numbers.
    fn folded(&self, number: usize) -> String {
        let (mut read, mut listed, mut other) = (0, 0, 0);
        let mut todo = self.nodes[number].children.clone();
        while let Some(node) = todo.pop() {
            let node = &self.nodes[node];
            for note in &node.notes {
                match note.as_str() {
                    "read" => read += 1,
                    "listed" => listed += 1,
                    _ => other += 1,
                }
            }
            if node.notes.is_empty() && node.children.is_empty() {
                other += 1;
            }
            todo.extend(&node.children);
        }
        let parts = [(read, "read"), (listed, "listed"), (other, "looked at")];
        let shown: Vec<String> =
            parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        format!("… {}", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_host::{AbsPath, Digest, Durability};
    use firn_memo::kept::ENTRY;

    fn read(path: &str) -> Observation {
        let path = AbsPath::new(path.as_bytes()).expect("absolute");
        Observation::new(Question::File(path), Digest([1; 32]), Durability::Medium)
    }

    fn roles() -> Roles {
        let mut roles = Roles::new();
        roles.assign(ENTRY, AbsPath::new(b"/src").expect("absolute"));
        roles
    }

    #[test]
    fn few_are_shown_by_directory() {
        let variable = Observation::new(Question::Env(b"HOME"[..].into()), Digest([1; 32]), Durability::Low);
        let seen = [read("/src/lib/a.nix"), read("/src/lib/b.nix"), read("/src/x/y/z.nix"), read("/etc/c"), variable];
        let mut layout = Layout::new(&seen, &roles());
        layout.open(false);
        assert!(!layout.is_folded());
        assert_eq!(
            layout.print(),
            "/src\n├── lib\n│   ├── a.nix  read\n│   └── b.nix  read\n└── x/y/z.nix  read\n/\n└── etc/c  read\nenvironment\n└── HOME\n"
        );
    }

    #[test]
    fn many_are_folded_into_counts() {
        let many: Vec<Observation> = (0..100).map(|n| read(&format!("/src/lib/{n}.nix"))).collect();
        let mut layout = Layout::new(&[&many[..], &[read("/src/a.nix")]].concat(), &roles());
        layout.open(false);
        assert!(layout.is_folded());
        assert_eq!(layout.print(), "/src\n├── a.nix  read\n└── lib  … 100 read\n");
        layout.open(true);
        assert!(!layout.is_folded() && layout.print().lines().count() == 103);
    }
}
