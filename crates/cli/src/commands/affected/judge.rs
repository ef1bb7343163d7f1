//! Which of the remembered questions a change affects.

use super::Change;
use crate::observed;
use firn_cache::Reading;
use firn_host::{AbsPath, Digest, Group, Host, Observation, Question};
use firn_memo::kept::document::digest_key;
use firn_memo::kept::observation::Node;
use firn_memo::kept::{Judged, Record, Roles, Verifier, Witness, Written, WrittenEntry, digest_location};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A question that may have another answer now.
#[derive(Clone, Debug)]
pub(super) struct Affected {
    pub attribute: Vec<u8>,
    pub entry: WrittenEntry,
    pub form: Vec<u8>,
    /// Why, in sentences.
    pub because: Vec<String>,
}

/// What is looked for.
pub(super) struct Survey<'a> {
    pub change: &'a Change,
    /// The roles that every answer's trees have.
    pub base: Roles,
    /// The trees of the search path.
    pub search: Vec<AbsPath>,
    /// The current directory.
    pub here: AbsPath,
    /// The file that questions must be about, if any must.
    pub only: Option<AbsPath>,
}

/// What is known of a node of observations and all below it.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    /// It cannot be read, or speaks of trees that are not known here.
    unknown: bool,
    /// Something in it is no longer so.
    changed: bool,
    /// The change touched something in it.
    touched: bool,
    /// Something in it lies in the checkout.
    inside: bool,
}

impl Facts {
    fn and(self, other: Facts) -> Facts {
        Facts {
            unknown: self.unknown || other.unknown,
            changed: self.changed || other.changed,
            touched: self.touched || other.touched,
            inside: self.inside || other.inside,
        }
    }

    fn is_proof(self) -> bool {
        !self.unknown && !self.changed && !self.touched
    }
}

/// The trees of an answer as far as they are known, by role.
type Trees = Vec<(String, AbsPath)>;

impl Survey<'_> {
    /// The questions that the change affects, in order.
    pub fn run(&self, reading: &Reading<'_>, witness: &dyn Witness, host: &dyn Host) -> Vec<Affected> {
        let places = self.known_places();
        let mut questions: BTreeMap<Vec<u8>, Vec<(Record, Trees)>> = BTreeMap::new();
        for (_, record) in reading.all_records() {
            let trees = trees(&record, &places);
            questions.entry(record.question.clone()).or_default().push((record, trees));
        }
        let distinct: HashMap<Trees, (Roles, Judged)> =
            questions.values().flatten().map(|(_, trees)| (trees.clone(), (self.roles(trees), Judged::default()))).collect();
        let judge = |(roles, judged)| {
            let verifier = Verifier::new(host, witness, roles, judged);
            Judge { survey: self, roles, verifier, witness, host, nodes: HashMap::new() }
        };
        let mut judges: HashMap<&Trees, Judge<'_>> =
            distinct.iter().map(|(trees, (roles, judged))| (trees, judge((roles, judged)))).collect();
        let mut affected = Vec::new();
        for (question, records) in &questions {
            let Ok(written) = Written::decode(question) else { continue };
            if !matches!(written.entry, WrittenEntry::Flake(_)) {
                affected.extend(self.judge(&written, records, &mut judges));
            }
        }
        affected.sort_by(|a, b| (&a.attribute, &a.entry, &a.form).cmp(&(&b.attribute, &b.entry, &b.form)));
        affected
    }

    /// The roles of an answer's trees.
    fn roles(&self, trees: &Trees) -> Roles {
        let mut roles = self.base.clone();
        for (role, tree) in trees {
            roles.assign(role, tree.clone());
        }
        roles
    }

    fn judge(&self, written: &Written, records: &[(Record, Trees)], judges: &mut HashMap<&Trees, Judge<'_>>) -> Option<Affected> {
        let mut best: Option<(&Record, &Trees, Facts)> = None;
        let mut inside = false;
        for (record, trees) in records {
            let judge = judges.get_mut(trees)?;
            if !self.is_wanted(written, judge.roles) {
                continue;
            }
            let facts = judge.facts(record.observations);
            if facts.is_proof() {
                return None;
            }
            inside |= facts.inside || self.is_entry_inside(written, judge.roles);
            // The newest of those that are known in full, and hold, tells most.
            let rank = |record: &Record, facts: Facts| (!facts.unknown, !facts.changed, record.made);
            if best.is_none_or(|(other, _, before)| rank(record, facts) > rank(other, before)) {
                best = Some((record, trees, facts));
            }
        }
        let (record, trees, _) = best.filter(|_| inside)?;
        let because = judges.get(trees)?.reasons(record);
        let (attribute, form) = (written.attribute.clone(), written.form.clone());
        Some(Affected { attribute, entry: written.entry.clone(), form, because })
    }

    fn is_wanted(&self, written: &Written, roles: &Roles) -> bool {
        let Some(only) = &self.only else { return true };
        matches!(&written.entry, WrittenEntry::File(at) if roles.resolve(&at.role, &at.rest).as_ref() == Some(only))
    }

    fn is_entry_inside(&self, written: &Written, roles: &Roles) -> bool {
        let (WrittenEntry::File(at) | WrittenEntry::Expression(_, at)) = &written.entry else { return false };
        roles.resolve(&at.role, &at.rest).is_some_and(|path| path.is_within(&self.change.root))
    }

    /// Directories that a tree of an answer may be, by the digest that says where it lies.
    fn known_places(&self) -> HashMap<Digest, AbsPath> {
        let named = self.change.edits.paths().chain(&self.search).chain([&self.change.root, &self.here]);
        let mut seen: HashSet<AbsPath> = HashSet::new();
        for path in named {
            let above = std::iter::successors(Some(path.clone()), AbsPath::parent);
            above.take_while(|path| seen.insert(path.clone())).for_each(drop);
        }
        seen.into_iter().map(|path| (digest_location(path.as_bytes()), path)).collect()
    }

    /// Whether the answer may be another since the change.
    fn is_touched(&self, observation: &Observation, host: &dyn Host) -> bool {
        if !self.change.edits.touch(&observation.question, host) {
            return false;
        }
        // One key of a document may be as it was.
        if let (Question::Key(path, format, names), Some(git)) = (&observation.question, &self.change.git)
            && let Ok(Some(before)) = git.content_before(path)
        {
            return digest_key(&before, *format, names) != Some(observation.digest);
        }
        true
    }
}

/// Where the trees of an answer lay when it was made, as far as these places are known.
fn trees(record: &Record, places: &HashMap<Digest, AbsPath>) -> Trees {
    let known = |(role, place): &(String, Digest)| Some((role.clone(), places.get(place)?.clone()));
    let mut trees: Trees = record.places.iter().filter_map(known).collect();
    trees.sort();
    trees
}

/// Judges the answers whose trees lie in the same places; each node once.
struct Judge<'a> {
    survey: &'a Survey<'a>,
    roles: &'a Roles,
    verifier: Verifier<'a>,
    witness: &'a dyn Witness,
    host: &'a dyn Host,
    nodes: HashMap<Digest, Facts>,
}

impl Judge<'_> {
    fn facts(&mut self, root: Digest) -> Facts {
        let mut todo = vec![(root, None::<(Facts, Vec<Digest>)>)];
        while let Some((digest, own)) = todo.pop() {
            if let Some((own, children)) = own {
                let all = children.iter().fold(own, |facts, child| facts.and(self.nodes.get(child).copied().unwrap_or_default()));
                self.nodes.insert(digest, all);
                continue;
            }
            if self.nodes.contains_key(&digest) {
                continue;
            }
            let read = self.witness.node(&digest).filter(|bytes| Node::digest(bytes) == digest);
            let Some((children, own)) = read.and_then(|bytes| Node::decode(&bytes, self.roles).ok()) else {
                self.nodes.insert(digest, Facts { unknown: true, ..Facts::default() });
                continue;
            };
            let mut facts = Facts { unknown: own.iter().any(Option::is_none), ..Facts::default() };
            let own: Vec<Observation> = own.into_iter().flatten().collect();
            facts.changed = !self.verifier.changes(&own).is_empty();
            facts.touched = own.iter().any(|seen| self.is_touched(seen));
            let is_inside = |seen: &Observation| match &seen.question {
                Question::Member(Group::Kept(group), _) => self.verifier.places(*group).is_some_and(|places| places.iter().any(|place| self.is_inside(place))),
                _ => self.is_inside(seen),
            };
            facts.inside = own.iter().any(is_inside);
            todo.push((digest, Some((facts, children.clone()))));
            todo.extend(children.into_iter().map(|child| (child, None)));
        }
        self.nodes.get(&root).copied().unwrap_or(Facts { unknown: true, ..Facts::default() })
    }

    fn is_inside(&self, seen: &Observation) -> bool {
        seen.question.path().is_some_and(|path| path.is_within(&self.survey.change.root))
    }

    /// Whether the answer may be another since the change. A name among places may be if one of them was touched there.
    fn is_touched(&self, seen: &Observation) -> bool {
        let Question::Member(Group::Kept(group), name) = &seen.question else { return self.survey.is_touched(seen, self.host) };
        let Some(places) = self.verifier.places(*group) else { return true };
        places.iter().any(|place| match &place.question {
            Question::Directory(path) => {
                let entry = Question::DirectoryEntry(path.clone(), name.clone());
                self.survey.change.edits.touch(&entry, self.host)
            }
            _ => self.survey.is_touched(place, self.host),
        })
    }

    /// Everything under a node that keeps it from being a proof.
    fn reasons(&self, record: &Record) -> Vec<String> {
        let Some(ground) = self.verifier.ground(record.observations) else { return vec!["its observations cannot be read".to_owned()] };
        let changes = self.verifier.changes(&ground.observations);
        let mut reasons: Vec<String> = changes.iter().map(|change| observed::sentence(change, self.roles)).collect();
        let changed: HashSet<Question> = changes.into_iter().map(|change| change.before.question).collect();
        let touched = ground.observations.iter().filter(|seen| !changed.contains(&seen.question));
        for seen in touched.filter(|seen| self.is_touched(seen)) {
            let path = match &seen.question {
                Question::Member(_, name) => format!("what is called {}", String::from_utf8_lossy(name)),
                question => question.path().map_or_else(|| "the search path".to_owned(), |path| observed::shown(path, self.roles)),
            };
            reasons.push(format!("{path} was touched ({})", observed::about_path(seen)));
        }
        if ground.elsewhere > 0 {
            let known: Vec<&str> = self.roles.iter().map(|(role, _)| role).collect();
            let missing = record.places.iter().map(|(role, _)| role).filter(|role| !known.contains(&role.as_str()));
            reasons.extend(missing.map(|role| format!("the tree called {role} is not known here")));
        }
        reasons.sort();
        reasons.dedup();
        reasons
    }
}

/// How a question was asked, as one would type it.
pub(super) fn command(form: &[u8]) -> String {
    let form = String::from_utf8_lossy(form);
    let mut words = form.split(' ');
    let mut said = vec![words.next().unwrap_or_default().to_owned()];
    for (index, word) in words.enumerate() {
        match (said[0].as_str(), index, word) {
            ("eval", _, "raw=true") => said.push("--raw".to_owned()),
            ("eval", _, "json=true") => said.push("--json".to_owned()),
            ("eval", _, "apply") => {
                said.push("--apply".to_owned());
                break;
            }
            ("instantiate", 0, "Evaluate") => said.push("--eval".to_owned()),
            ("instantiate", 1, "Raw" | "Xml" | "Json") => said.push(format!("--{}", word.to_lowercase())),
            ("instantiate", _, "strict=true") => said.push("--strict".to_owned()),
            _ => {}
        }
    }
    said.join(" ")
}
