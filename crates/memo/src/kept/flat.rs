//! `Flat`: the observations of a record as they travel between machines: one row of nodes under a root.
//!
//! On disk observations are a graph as deep as a run is long. Fetching that node by node would take a round trip for each
//! level, so whoever pushes lays it flat: all observations in order of their paths, cut into nodes where the digest of a
//! *question* says so. Two machines that observed the same make the same nodes however they came to observe it, and an
//! edit changes the one node that its file lies in (spec M5, L3.2).

use super::cbor::{Item, Malformed, Reader};
use super::observation::{Decoded, Node};
use super::roles::{ROOT, Roles};
use super::sets::Nodes;
use firn_host::{AbsPath, Digest, Observation, Question};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// A node ends, on average, after this many observations. A power of two.
const USUAL: u32 = 2048;
/// A node never has more.
const MOST: usize = 4 * USUAL as usize;
/// A record never has more nodes: eight million observations at the most.
pub const MOST_NODES: usize = 1024;
/// Where trees are while they are being rewritten. Nothing real lies there.
const STAND_IN: &str = "/.firn-role";

/// Observations in a row of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flat {
    /// The digest of the root.
    pub root: Digest,
    /// The nodes below, by digest.
    pub nodes: Nodes,
}

impl Flat {
    /// Lays out what hangs under a root. None if a node is missing, cannot be read, or there is too much of it.
    pub fn new(root: Digest, node: &dyn Fn(&Digest) -> Option<Vec<u8>>) -> Option<Flat> {
        let (mut seen, mut todo, mut graph) = (FxHashSet::default(), vec![root], Vec::new());
        while let Some(digest) = todo.pop() {
            if seen.insert(digest) {
                let bytes = node(&digest)?;
                todo.extend(Node::named(&bytes).ok()?);
                graph.push(bytes);
            }
        }
        let roles = stand_ins(&graph)?;
        let mut members: Vec<(Placed, Observation)> = Vec::new();
        let mut known: BTreeMap<(AbsPath, Digest), Digest> = BTreeMap::new();
        for bytes in &graph {
            let Decoded { own, texts, .. } = Node::decode_all(bytes, &roles).ok()?;
            for (path, (text, code)) in texts {
                // Of several texts of the same code any will do, and everybody takes the same.
                known.entry((path, code)).and_modify(|least| *least = text.min(*least)).or_insert(text);
            }
            for observation in own {
                let observation = observation?;
                // What is under a name among places travels as the whole of these places.
                if matches!(observation.question, Question::Member(..)) {
                    continue;
                }
                members.push((Placed::of(&observation, &roles), observation));
            }
        }
        // What stands around the bindings of a file is in its code, and that is in its bytes.
        // PERF: of a NixOS 2,300 files of 4,100 were read both ways.
        let paths = |of: fn(&Observation) -> Option<&AbsPath>| members.iter().filter_map(|(_, seen)| of(seen)).cloned().collect();
        let (codes, files): (BTreeSet<AbsPath>, BTreeSet<AbsPath>) = (paths(code_of), paths(file_of));
        members.retain(|(_, seen)| match &seen.question {
            Question::Outline(path) => !codes.contains(path) && !files.contains(path),
            Question::Code(path) => !files.contains(path),
            _ => true,
        });
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        members.dedup_by(|(a, _), (b, _)| a == b);
        let mut nodes = Vec::new();
        let mut own = Vec::new();
        let last = members.len().saturating_sub(1);
        for (index, (placed, observation)) in members.into_iter().enumerate() {
            own.push(observation);
            if placed.ends() || own.len() >= MOST || index == last {
                let own = std::mem::take(&mut own);
                let texts = own.iter().filter_map(|seen| {
                    let path = code_of(seen)?.clone();
                    Some((path.clone(), *known.get(&(path, seen.digest))?))
                });
                let bytes = Node { texts: texts.collect(), own, ..Node::default() }.encode(&roles);
                nodes.push((Node::digest(&bytes), bytes));
            }
        }
        nodes.sort_unstable();
        (nodes.len() <= MOST_NODES).then(|| {
            let digests: Vec<Digest> = nodes.iter().map(|(digest, _)| *digest).collect();
            Flat { root: Flat::root(&digests).0, nodes }
        })
    }

    /// The root above these nodes and its bytes: it need not travel.
    pub fn root(nodes: &[Digest]) -> (Digest, Vec<u8>) {
        let bytes = Node { children: nodes.to_vec(), ..Node::default() }.encode(&Roles::new());
        (Node::digest(&bytes), bytes)
    }
}

/// The file whose bytes are observed.
fn file_of(seen: &Observation) -> Option<&AbsPath> {
    if let Question::File(path) = &seen.question { Some(path) } else { None }
}

/// The file whose code is observed.
fn code_of(seen: &Observation) -> Option<&AbsPath> {
    if let Question::Code(path) = &seen.question { Some(path) } else { None }
}

/// What orders observations: where, then what.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    role: String,
    rest: Vec<u8>,
    /// The question alone, as a node.
    question: Vec<u8>,
    answer: Digest,
}

impl Placed {
    fn of(observation: &Observation, roles: &Roles) -> Placed {
        let place = observation.question.path().map(|path| roles.place(path));
        let (role, rest) = place.map_or((String::new(), Vec::new()), |(role, rest)| (role.to_owned(), rest.to_vec()));
        let asked = Observation { digest: Digest([0; 32]), ..observation.clone() };
        let question = Node { own: vec![asked], ..Node::default() }.encode(roles);
        Placed { role, rest, question, answer: observation.digest }
    }

    /// Whether a node ends here. The answer has no say, so that an edit moves no border.
    fn ends(&self) -> bool {
        let digest = Node::digest(&self.question).0;
        u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]).is_multiple_of(USUAL)
    }
}

/// Roles that lead every tree named in these nodes to a place of its own, so that they can be read without the trees.
fn stand_ins(graph: &[Vec<u8>]) -> Option<Roles> {
    let mut names = BTreeSet::new();
    for bytes in graph {
        names.extend(role_names(bytes).ok()?);
    }
    let mut roles = Roles::new();
    for (number, name) in names.iter().filter(|name| *name != ROOT).enumerate() {
        roles.assign(name, AbsPath::new(format!("{STAND_IN}/{number}").as_bytes()).ok()?);
    }
    Some(roles)
}

/// The roles that a node names: in its table, and in search paths.
fn role_names(bytes: &[u8]) -> Result<Vec<String>, Malformed> {
    let mut reader = Reader::new(bytes);
    reader.tuple(5)?;
    let mut names = (0..reader.array()?).map(|_| reader.text().map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    // What is left is paths, children, groups and observations: of all arrays there only `[role, rest]` begins with text.
    while reader.left() > 0 {
        if let Item::Text(name) = reader.item()? {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::roles::{ENTRY, STORE};
    use firn_host::{Durability, Question};


    fn roles(entry: &str) -> Roles {
        let mut roles = Roles::new();
        roles.assign(ENTRY, AbsPath::new(entry.as_bytes()).unwrap());
        roles.assign(STORE, AbsPath::new(b"/nix/store").unwrap());
        roles
    }

    fn file(base: &str, number: usize, answer: u8) -> Observation {
        let path = AbsPath::new(format!("{base}/d{}/f{number}", number % 7).as_bytes()).unwrap();
        Observation::new(Question::File(path), Digest([answer; 32]), Durability::Medium)
    }

    /// A chain of nodes, each with some of the files, and the digest of the last.
    fn chain(base: &str, orders: &[Vec<usize>], answer: impl Fn(usize) -> u8) -> (Digest, BTreeMap<Digest, Vec<u8>>) {
        let mut nodes = BTreeMap::new();
        let mut last = None;
        for part in orders {
            let own = part.iter().map(|&number| file(base, number, answer(number))).collect();
            let bytes = Node { children: last.into_iter().collect(), own, ..Node::default() }.encode(&roles(base));
            last = Some(Node::digest(&bytes));
            nodes.insert(Node::digest(&bytes), bytes);
        }
        (last.unwrap(), nodes)
    }

    fn flat(chain: &(Digest, BTreeMap<Digest, Vec<u8>>)) -> Flat {
        Flat::new(chain.0, &|digest| chain.1.get(digest).cloned()).unwrap()
    }

    #[test]
    fn the_same_observations_are_the_same_nodes_wherever_and_however_they_were_made() {
        let all: Vec<usize> = (0..9000).collect();
        let parts: Vec<Vec<usize>> = all.rchunks(700).map(|part| part.iter().rev().copied().collect()).collect();
        let one = flat(&chain("/home/a/src", &[all], |_| 1));
        let other = flat(&chain("/srv/ci/7", &parts, |_| 1));
        assert_eq!(one, other);
        assert!(one.nodes.len() > 3 && one.nodes.len() < 40, "{}", one.nodes.len());
        let digests: Vec<Digest> = one.nodes.iter().map(|(digest, _)| *digest).collect();
        assert_eq!(Flat::root(&digests).0, one.root);
    }

    #[test]
    fn an_edit_changes_one_node() {
        let all: Vec<usize> = (0..9000).collect();
        let before = flat(&chain("/a", std::slice::from_ref(&all), |_| 1));
        let after = flat(&chain("/a", &[all], |number| if number == 4321 { 2 } else { 1 }));
        let changed = after.nodes.iter().filter(|node| !before.nodes.contains(node)).count();
        assert_eq!((changed, before.nodes.len()), (1, after.nodes.len()));
    }

    #[test]
    fn code_travels_with_its_bytes_and_bytes_for_the_code_and_what_stands_around_its_bindings() {
        let at = |name: &str| AbsPath::new(format!("/a/{name}").as_bytes()).unwrap();
        let seen = |question, answer: u8| Observation::new(question, Digest([answer; 32]), Durability::Medium);
        let own = vec![
            seen(Question::Code(at("x")), 1),
            seen(Question::Outline(at("x")), 2),
            seen(Question::Outline(at("y")), 3),
            seen(Question::File(at("z")), 4),
            seen(Question::Code(at("z")), 5),
            seen(Question::Outline(at("z")), 6),
        ];
        let texts = BTreeMap::from([(at("x"), Digest([9; 32]))]);
        let bytes = Node { own: own.clone(), texts, ..Node::default() }.encode(&roles("/a"));
        let flat = Flat::new(Node::digest(&bytes), &|_| Some(bytes.clone())).unwrap();
        let [(_, node)] = &flat.nodes[..] else { panic!("one node") };
        let read = Node::decode_all(node, &roles("/a")).unwrap();
        let mut found: Vec<Observation> = read.own.into_iter().map(Option::unwrap).collect();
        found.sort_by_key(|seen| seen.digest);
        assert_eq!(found, [own[0].clone(), own[2].clone(), own[3].clone()]);
        assert_eq!(read.texts, [(at("x"), (Digest([9; 32]), Digest([1; 32])))]);
    }

    #[test]
    fn what_is_not_all_there_does_not_travel() {
        let (root, mut nodes) = chain("/a", &[vec![1], vec![2]], |_| 1);
        nodes.retain(|digest, _| *digest == root);
        assert_eq!(Flat::new(root, &|digest| nodes.get(digest).cloned()), None);
        // A real path where trees stand in.
        let path = AbsPath::new(format!("{STAND_IN}/0/x").as_bytes()).unwrap();
        let own = vec![
            Observation::new(Question::File(path), Digest([0; 32]), Durability::Medium),
            file("/a", 1, 1),
        ];
        let bytes = Node { own, ..Node::default() }.encode(&roles("/a"));
        assert_eq!(Flat::new(Node::digest(&bytes), &|_| Some(bytes.clone())), None);
    }
}
