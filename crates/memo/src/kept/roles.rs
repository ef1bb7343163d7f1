//! `Roles`: what the trees of a run are called, so that nothing that is stored names a checkout, a user or a machine.
//!
//! A path is written as a role and the way from there; whoever reads it back, in another checkout or on another machine,
//! puts the tree that plays the role there in its place (spec L3.1). Where a tree lies is itself an answer that results
//! may depend on: [`Question::Location`](firn_host::Question::Location).

use firn_host::AbsPath;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The role of the whole file system: what no tree of the run contains.
pub const ROOT: &str = "root";
/// The role of the store.
pub const STORE: &str = "store";
/// The role of the tree that is evaluated.
pub const ENTRY: &str = "entry";
/// The role of the directory that expressions on the command line are seen from.
pub const HERE: &str = "here";

/// The trees of a run by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    by_name: BTreeMap<Arc<str>, AbsPath>,
    /// The same, inner trees before outer ones, then by name.
    by_depth: Vec<(Arc<str>, AbsPath)>,
}

impl Default for Roles {
    fn default() -> Roles {
        let root = (Arc::from(ROOT), AbsPath::root());
        Roles { by_name: BTreeMap::from([root.clone()]), by_depth: vec![root] }
    }
}

impl Roles {
    /// Only the root.
    pub fn new() -> Roles {
        Roles::default()
    }

    /// Gives a tree a role. The first tree to have it keeps it.
    pub fn assign(&mut self, role: &str, tree: AbsPath) {
        self.by_name.entry(Arc::from(role)).or_insert(tree);
        self.by_depth = self.by_name.iter().map(|(role, tree)| (role.clone(), tree.clone())).collect();
        self.by_depth.sort_by_key(|(_, tree)| std::cmp::Reverse(tree.as_bytes().len()));
    }

    /// The tree that has a role.
    pub fn tree(&self, role: &str) -> Option<&AbsPath> {
        self.by_name.get(role)
    }

    /// All roles by name, with their trees.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AbsPath)> {
        self.by_name.iter().map(|(role, tree)| (&**role, tree))
    }

    /// The path as a role and what follows it: the innermost tree counts, of several roles the first by name.
    pub fn place<'a>(&'a self, path: &'a AbsPath) -> (&'a str, &'a [u8]) {
        let found = self.by_depth.iter().find(|(_, tree)| path.is_within(tree));
        let (role, tree) = found.map_or((ROOT, path), |(role, tree)| (&**role, tree));
        let from = if tree.is_root() { 0 } else { tree.as_bytes().len() };
        (role, path.as_bytes().get(from..).unwrap_or_default())
    }

    /// The path that a role and what follows it mean in this run; none if nothing has the role.
    pub fn resolve(&self, role: &str, rest: &[u8]) -> Option<AbsPath> {
        let tree = self.by_depth.iter().find(|(name, _)| **name == *role).map(|(_, tree)| tree)?;
        let path = tree.beneath(rest).ok()?;
        // Only what `place` writes is read: one path, one name.
        (self.place(&path) == (role, if rest.is_empty() && tree.is_root() { b"/" } else { rest })).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> AbsPath {
        AbsPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn the_innermost_tree_names_a_path() {
        let mut roles = Roles::new();
        roles.assign(ENTRY, path("/home/a/src"));
        roles.assign("search:nixpkgs", path("/home/a/src/nixpkgs"));
        assert_eq!(roles.place(&path("/home/a/src/nixpkgs/lib")), ("search:nixpkgs", &b"/lib"[..]));
        assert_eq!(roles.place(&path("/home/a/src")), (ENTRY, &b""[..]));
        assert_eq!(roles.place(&path("/home/a/srcs")), (ROOT, &b"/home/a/srcs"[..]));
        assert_eq!(roles.place(&path("/")), (ROOT, &b"/"[..]));
        for text in ["/home/a/src/nixpkgs/lib", "/home/a/src", "/home/a/srcs", "/"] {
            let path = path(text);
            let (role, rest) = roles.place(&path);
            assert_eq!(roles.resolve(role, rest), Some(path.clone()));
        }
        assert_eq!(roles.resolve(ROOT, b"/home/a/src"), None);
        assert_eq!(roles.resolve("other", b"/x"), None);
    }
}
