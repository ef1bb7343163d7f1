//! `genericClosure`: a worklist, and the set of keys seen so far.
//!
//! Nix keeps the keys in a red-black tree ordered by `<`, and which keys are compared can be seen: in the error for
//! keys that do not compare, and in what comparing lists forces. So do we, except while all keys are integers, all
//! strings or all paths, where a hash set answers. The first other key builds the tree in the order of arrival, which
//! gives the same tree.

use crate::sets::missing;
use firn_eval::{Builtin, Error, Machine, Result};
use firn_source::Pos;
use firn_value::Value;
use hashbrown::HashSet;
use std::collections::VecDeque;

fn generic_closure(machine: &Machine, _: Pos, args: &[Value]) -> Result<Value> {
    let names = machine.names();
    let set = machine.force_attrs(args[0], Pos::NONE, "while evaluating the first argument passed to builtins.genericClosure")?;
    let attribute = |name| {
        set.get(name).ok_or_else(|| missing(name, "in the attrset passed as argument to builtins.genericClosure"))
    };
    let start = attribute(names.start_set)?;
    let context = "while evaluating the 'startSet' attribute passed as argument to builtins.genericClosure";
    let start = machine.force_list(start, Pos::NONE, context)?;
    if start.is_empty() {
        return Ok(start.value());
    }
    let context = "while evaluating the 'operator' attribute passed as argument to builtins.genericClosure";
    let operator = machine.force_function(attribute(names.operator)?, Pos::NONE, context)?;
    let mut work: VecDeque<Value> = start.iter().collect();
    let mut seen = Seen::default();
    while let Some(element) = work.pop_front() {
        let key = key_of(machine, element)?;
        if !seen.insert(machine, key, element)? {
            continue;
        }
        successors(machine, operator, element, &mut work).map_err(|error| {
            let operator = firn_eval::colored(names.operator);
            let before = format!("while calling {operator} on genericClosure element ");
            error.trace(Pos::NONE, [before.as_bytes(), &machine.show(element)].concat())
        })?;
    }
    Ok(firn_value::ListBuilder::of(&seen.elements))
}

fn key_of(machine: &Machine, element: Value) -> Result<Value> {
    let name = machine.names().key;
    let key = machine.force_attrs(element, Pos::NONE, "").and_then(|set| set.get(name).ok_or_else(|| missing(name, "")));
    let key = key.map_err(|error| about(machine, error, "in genericClosure element ", element))?;
    machine.force(key, Pos::NONE)?;
    Ok(key)
}

fn about(machine: &Machine, error: Box<Error>, before: &str, element: Value) -> Box<Error> {
    error.trace(Pos::NONE, [before.as_bytes(), &machine.show(element)].concat())
}

fn successors(machine: &Machine, operator: Value, element: Value, work: &mut VecDeque<Value>) -> Result<()> {
    let result = machine.call(operator, &[element], Pos::NONE)?;
    let context = "while evaluating the return value of the `operator` passed to builtins.genericClosure";
    let found = machine.force_list(result, Pos::NONE, context)?;
    for item in found.iter() {
        machine.force(item, Pos::NONE)?;
        work.push_back(item);
    }
    Ok(())
}

/// Keys that a hash set can tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Plain {
    Int(i64),
    String(&'static [u8]),
    Path(&'static [u8]),
}

impl Plain {
    /// NIX: keys are ordered, paths by their bytes.
    fn of(machine: &Machine, key: Value) -> Option<Plain> {
        if let Some(n) = key.as_int() {
            return Some(Plain::Int(n));
        }
        key.as_str().map(|s| Plain::String(s.bytes())).or_else(|| key.as_path().map(|path| Plain::Path(machine.path_text(path))))
    }
}

/// The keys seen and the elements they came with, in the order of arrival.
#[derive(Default)]
struct Seen {
    keys: Vec<Value>,
    elements: Vec<Value>,
    plain: HashSet<Plain>,
    /// Once there is a tree, the hash set is no longer used.
    tree: Option<Tree>,
}

impl Seen {
    /// Adds an element unless its key was seen.
    fn insert(&mut self, machine: &Machine, key: Value, element: Value) -> Result<bool> {
        let value = machine.force(key, Pos::NONE)?;
        let new = match &mut self.tree {
            Some(tree) => tree.insert(&self.keys, key, &mut |a, b| machine.less_than(a, b, Pos::NONE, "")),
            None => match (Plain::of(machine, value), self.keys.first()) {
                (Some(plain), first) if first.is_none_or(|&first| same_type(machine, first, value)) => {
                    Ok(self.plain.insert(plain))
                }
                _ => self.insert_into_tree(machine, key),
            },
        };
        let new = new.map_err(|error| self.not_comparable(machine, error, key, element))?;
        if new {
            self.keys.push(key);
            self.elements.push(element);
        }
        Ok(new)
    }

    /// Builds the tree of all keys so far, then adds one.
    fn insert_into_tree(&mut self, machine: &Machine, key: Value) -> Result<bool> {
        let mut less = |a, b| machine.less_than(a, b, Pos::NONE, "");
        let mut tree = Tree::default();
        for (i, &known) in self.keys.iter().enumerate() {
            tree.insert(&self.keys[..i], known, &mut less)?;
        }
        let tree = self.tree.insert(tree);
        tree.insert(&self.keys, key, &mut less)
    }

    /// Names both elements whose keys do not compare.
    #[cold]
    fn not_comparable(&self, machine: &Machine, error: Box<Error>, key: Value, element: Value) -> Box<Error> {
        let order = self.tree.as_ref().map_or_else(Vec::new, Tree::in_order);
        let other = order.into_iter().find(|&i| machine.less_than(key, self.keys[i], Pos::NONE, "").is_err());
        match other {
            Some(i) => {
                let error = about(machine, error, "with element ", self.elements[i]);
                about(machine, error, "while comparing element ", element)
            }
            None => about(machine, error, "while checking key of element ", element),
        }
    }
}

fn same_type(machine: &Machine, known: Value, value: Value) -> bool {
    machine.force(known, Pos::NONE).is_ok_and(|known| known.get_type() == value.get_type())
}

const NONE: usize = usize::MAX;

#[derive(Clone, Copy)]
struct Node {
    /// Left and right.
    child: [usize; 2],
    parent: usize,
    red: bool,
}

/// A red-black tree over indices into a list of keys.
#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    root: usize,
}

type Less<'a> = &'a mut dyn FnMut(Value, Value) -> Result<bool>;

impl Tree {
    /// Adds the key that will be number `keys.len()`; false when an equal one is there.
    fn insert(&mut self, keys: &[Value], key: Value, less: Less<'_>) -> Result<bool> {
        if self.nodes.is_empty() {
            self.nodes.push(Node { child: [NONE; 2], parent: NONE, red: false });
            self.root = 0;
            return Ok(true);
        }
        let (mut at, mut parent, mut is_less) = (self.root, NONE, true);
        while at != NONE {
            parent = at;
            is_less = less(key, keys[at])?;
            at = self.nodes[at].child[usize::from(!is_less)];
        }
        let before = if is_less { self.predecessor(parent) } else { parent };
        if before != NONE && !less(keys[before], key)? {
            return Ok(false);
        }
        let new = self.nodes.len();
        self.nodes.push(Node { child: [NONE; 2], parent, red: true });
        self.nodes[parent].child[usize::from(!is_less)] = new;
        self.rebalance(new);
        Ok(true)
    }

    /// The key before that of a node without left child, or `NONE`.
    fn predecessor(&self, node: usize) -> usize {
        let mut at = node;
        while self.nodes[at].parent != NONE && self.side(at) == 0 {
            at = self.nodes[at].parent;
        }
        self.nodes[at].parent
    }

    /// Which child of its parent a node is.
    fn side(&self, node: usize) -> usize {
        usize::from(self.nodes[self.nodes[node].parent].child[1] == node)
    }

    fn is_red(&self, node: usize) -> bool {
        node != NONE && self.nodes[node].red
    }

    fn rebalance(&mut self, new: usize) {
        let mut at = new;
        while at != self.root && self.is_red(self.nodes[at].parent) {
            let parent = self.nodes[at].parent;
            let grandparent = self.nodes[parent].parent;
            let side = self.side(parent);
            let uncle = self.nodes[grandparent].child[1 - side];
            self.nodes[grandparent].red = true;
            if self.is_red(uncle) {
                self.nodes[parent].red = false;
                self.nodes[uncle].red = false;
                at = grandparent;
                continue;
            }
            let top = if self.side(at) == side { parent } else { self.rotate(parent, side) };
            self.nodes[top].red = false;
            self.rotate(grandparent, 1 - side);
            break;
        }
        self.nodes[self.root].red = false;
    }

    /// Turns `node` down to `side`; gives the child that takes its place.
    fn rotate(&mut self, node: usize, side: usize) -> usize {
        let up = self.nodes[node].child[1 - side];
        let (inner, parent) = (self.nodes[up].child[side], self.nodes[node].parent);
        if parent == NONE {
            self.root = up;
        } else {
            let place = self.side(node);
            self.nodes[parent].child[place] = up;
        }
        self.nodes[node].child[1 - side] = inner;
        if inner != NONE {
            self.nodes[inner].parent = node;
        }
        self.nodes[up].child[side] = node;
        self.nodes[up].parent = parent;
        self.nodes[node].parent = up;
        up
    }

    /// Indices in the order of their keys.
    fn in_order(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let (mut path, mut at) = (Vec::new(), if self.nodes.is_empty() { NONE } else { self.root });
        loop {
            while at != NONE {
                path.push(at);
                at = self.nodes[at].child[0];
            }
            let Some(node) = path.pop() else { return order };
            order.push(node);
            at = self.nodes[node].child[1];
        }
    }
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "genericClosure", arity: 1, strict: 1, run: generic_closure }];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every path from the root has as many black nodes, no red node has a red child, and the order is right.
    fn check(tree: &Tree, node: usize) -> usize {
        if node == NONE {
            return 1;
        }
        let [left, right] = tree.nodes[node].child;
        assert!(!tree.is_red(node) || (!tree.is_red(left) && !tree.is_red(right)));
        let (a, b) = (check(tree, left), check(tree, right));
        assert_eq!(a, b);
        a + usize::from(!tree.is_red(node))
    }

    #[test]
    fn the_tree_stays_balanced_and_finds_duplicates() {
        let mut tree = Tree::default();
        let mut keys = Vec::new();
        let mut less = |a: Value, b: Value| Ok(a.as_int() < b.as_int());
        for i in 0..2000_i64 {
            let key = Value::int(i * 7919 % 1009);
            let new = tree.insert(&keys, key, &mut less).expect("integers compare");
            assert_eq!(new, !keys.contains(&key));
            if new {
                keys.push(key);
            }
        }
        check(&tree, tree.root);
        let sorted: Vec<i64> = tree.in_order().into_iter().filter_map(|i| keys[i].as_int()).collect();
        assert_eq!(sorted, (0..1009).collect::<Vec<_>>());
    }
}
