//! A graph of dependencies as text for Graphviz and as a picture of its own: nodes in columns by their distance from the
//! result, in the order of their names, lines between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Result,
    File,
    Directory,
    Variable,
    Search,
    Derivation,
}

impl Kind {
    /// Shape for Graphviz, colour for both.
    fn look(self) -> (&'static str, &'static str) {
        match self {
            Kind::Result => ("doubleoctagon", "#ffd98a"),
            Kind::File => ("box", "#dcebff"),
            Kind::Directory => ("folder", "#e4f3dc"),
            Kind::Variable => ("diamond", "#f6dcf0"),
            Kind::Search => ("hexagon", "#f3ecd2"),
            Kind::Derivation => ("ellipse", "#e8e4f5"),
        }
    }
}

/// Nodes and edges.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<(Kind, String)>,
    index: BTreeMap<(Kind, String), usize>,
    edges: BTreeSet<(usize, usize)>,
}

const COLUMN: usize = 300;
const ROW: usize = 26;
const HEIGHT: usize = 18;
/// Letters of a label that fit into a box.
const LETTERS: usize = 36;

impl Graph {
    /// The result.
    pub const ROOT: usize = 0;

    /// A graph that has only the result.
    pub fn new(title: String) -> Graph {
        Graph { nodes: vec![(Kind::Result, title)], index: BTreeMap::new(), edges: BTreeSet::new() }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node of this kind and name.
    pub fn node(&mut self, kind: Kind, name: &str) -> usize {
        let next = self.nodes.len();
        let at = *self.index.entry((kind, name.to_owned())).or_insert(next);
        if at == next {
            self.nodes.push((kind, name.to_owned()));
        }
        at
    }

    /// The first needs the second.
    pub fn edge(&mut self, from: usize, to: usize) {
        self.edges.insert((from, to));
    }

    /// Something that the result depends on in no known place.
    pub fn outside(&mut self, kind: Kind, name: &str) {
        let node = self.node(kind, name);
        self.edge(Graph::ROOT, node);
    }

    /// Graphviz' language.
    pub fn dot(&self) -> String {
        let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut text = "digraph firn {\n  rankdir=LR;\n  node [style=filled, fontname=monospace];\n".to_owned();
        for (at, (kind, name)) in self.nodes.iter().enumerate() {
            let (shape, colour) = kind.look();
            let _ = writeln!(text, "  n{at} [label=\"{}\", shape={shape}, fillcolor=\"{colour}\"];", quote(name));
        }
        for (from, to) in &self.edges {
            let _ = writeln!(text, "  n{from} -> n{to};");
        }
        text.push_str("}\n");
        text
    }

    /// Distance of each node from the result.
    fn columns(&self) -> Vec<usize> {
        let mut columns = vec![usize::MAX; self.nodes.len()];
        columns[Graph::ROOT] = 0;
        let mut todo = VecDeque::from([Graph::ROOT]);
        let mut next: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(from, to) in &self.edges {
            next.entry(from).or_default().push(to);
        }
        while let Some(at) = todo.pop_front() {
            for &to in next.get(&at).into_iter().flatten() {
                if columns[to] == usize::MAX {
                    columns[to] = columns[at] + 1;
                    todo.push_back(to);
                }
            }
        }
        // What only a circle of files leads to stands beside the result.
        columns.iter().map(|&column| if column == usize::MAX { 1 } else { column }).collect()
    }

    /// A picture that needs nothing else.
    pub fn svg(&self) -> String {
        let columns = self.columns();
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); columns.iter().max().map_or(1, |last| last + 1)];
        (0..self.nodes.len()).for_each(|at| rows[columns[at]].push(at));
        let mut places = vec![(0, 0); self.nodes.len()];
        for (column, nodes) in rows.iter_mut().enumerate() {
            nodes.sort_by(|&a, &b| self.nodes[a].cmp(&self.nodes[b]));
            for (row, &at) in nodes.iter().enumerate() {
                places[at] = (20 + column * COLUMN, 20 + row * ROW);
            }
        }
        let (width, height) = (rows.len() * COLUMN + 20, rows.iter().map(Vec::len).max().unwrap_or(1) * ROW + 40);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"monospace\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fffef8\"/>\n"
        );
        let boxed = COLUMN - 50;
        for &(from, to) in &self.edges {
            let ((x1, y1), (x2, y2)) = (places[from], places[to]);
            let (x1, y1, y2) = (x1 + boxed, y1 + HEIGHT / 2, y2 + HEIGHT / 2);
            let _ = writeln!(
                svg,
                "<path d=\"M{x1},{y1} C{},{y1} {},{y2} {x2},{y2}\" fill=\"none\" stroke=\"#999\" stroke-width=\"0.7\"/>",
                x1 + 25,
                x2.saturating_sub(25),
            );
        }
        for (at, (kind, name)) in self.nodes.iter().enumerate() {
            let ((x, y), (_, colour)) = (places[at], kind.look());
            let letters = name.chars().count();
            // The end of a path says more than its beginning.
            let shown: String = match letters > LETTERS {
                true => "…".chars().chain(name.chars().skip(letters - LETTERS + 1)).collect(),
                false => name.clone(),
            };
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{boxed}\" height=\"{HEIGHT}\" rx=\"3\" fill=\"{colour}\" \
                 stroke=\"#777\" stroke-width=\"0.6\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
                escape(name),
                x + 5,
                y + 13,
                escape(&shown),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
