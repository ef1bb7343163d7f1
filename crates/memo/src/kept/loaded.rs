//! Which files an evaluation read as code, as its record tells: another evaluation of the same question will read most of them too.

use super::observation::Node;
use super::roles::Roles;
use firn_host::{AbsPath, Digest, Observation, Question};
use rustc_hash::FxHashSet;

/// The files of which code was observed under a node but not under `other`, by path. What cannot be read is left out.
pub fn loaded(root: Digest, other: Option<Digest>, roles: &Roles, node: impl Fn(&Digest) -> Option<Vec<u8>>) -> Vec<AbsPath> {
    let (mut met, mut todo): (FxHashSet<Digest>, _) = (other.into_iter().filter(|other| *other != root).collect(), vec![root]);
    let mut paths = Vec::new();
    while let Some(digest) = todo.pop() {
        if !met.insert(digest) {
            continue;
        }
        let Some(Ok((children, own))) = node(&digest).map(|bytes| Node::decode(&bytes, roles)) else { continue };
        todo.extend(children);
        paths.extend(own.into_iter().flatten().filter_map(|Observation { question, .. }| match question {
            Question::Code(path) | Question::Outline(path) => Some(path),
            _ => None,
        }));
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}
