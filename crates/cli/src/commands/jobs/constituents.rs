//! `--constituents`: Hydra's aggregate jobs. A derivation that names other jobs gets their derivations as inputs, once all
//! jobs are known; its line is printed then, and says which of the named jobs are broken.

use super::job::{Line, text};
use firn_eval::{Coercion, Error, ErrorKind, Machine, Result, context_elements, store_error};
use firn_host::Store;
use firn_source::{Pos, Symbol};
use firn_store::content_address::Method;
use firn_store::context::Element;
use firn_store::derivation::{HashModulo, InputNode, Output};
use firn_store::path::StorePath;
use firn_text::json::Tree;
use firn_value::Attrs;
use std::collections::{BTreeMap, BTreeSet};

/// What an aggregate says of its constituents.
#[derive(Debug, Default)]
pub(super) struct Aggregate {
    derivations: Vec<Vec<u8>>,
    named: Vec<Vec<u8>>,
    globs: bool,
}

/// Reads `constituents`; nothing for what is not an aggregate.
pub(super) fn read(machine: &Machine, set: Attrs) -> Result<Aggregate> {
    let mut aggregate = Aggregate::default();
    let flag = |name: &str, context: &'static str| match set.get_with_pos(Symbol::from(name)) {
        Some((cell, pos)) => machine.force_bool(cell, pos, context),
        None => Ok(false),
    };
    if !flag("_hydraAggregate", "while evaluating the `_hydraAggregate` attribute")? {
        return Ok(aggregate);
    }
    let Some((cell, pos)) = set.get_with_pos(Symbol::from("constituents")) else {
        return Err(Error::new(ErrorKind::Eval, "derivation must have a 'constituents' attribute"));
    };
    let context = "while evaluating the `constituents` attribute";
    let string = machine.coerce_to_string(cell, pos, context, Coercion::TO_STRING)?;
    if let Some(string) = string.as_str() {
        for element in context_elements(string.context()) {
            if let Element::Built(built) = element {
                aggregate.derivations.push(machine.store_dir().print(&built.drv));
            }
        }
    }
    for item in machine.force_list(cell, pos, context)?.iter() {
        if let Some(name) = machine.force(item, Pos::NONE)?.as_str() {
            aggregate.named.push(name.bytes().to_vec());
        }
    }
    aggregate.globs = flag("_hydraGlobConstituents", "while evaluating the `_hydraGlobConstituents` attribute")?;
    Ok(aggregate)
}

impl Aggregate {
    /// Adds the members of the line.
    pub fn write(&self, line: &mut Line) {
        let texts = |all: &[Vec<u8>]| Tree::List(all.iter().map(|one| text(one)).collect());
        line.insert(b"constituents".to_vec(), texts(&self.derivations));
        line.insert(b"namedConstituents".to_vec(), texts(&self.named));
        line.insert(b"globConstituents".to_vec(), Tree::Bool(self.globs));
    }
}

/// Whether the line waits for others.
pub(super) fn is_waiting(line: &Tree) -> bool {
    line.get("namedConstituents").and_then(Tree::as_list).is_some_and(|named| !named.is_empty())
}

/// An aggregate whose names are looked up.
struct Resolved {
    dependencies: BTreeSet<String>,
    broken: BTreeMap<String, String>,
}

/// The lines of the aggregates, constituents before those that name them; `tell` takes what is wrong.
pub(super) fn finish(
    machine: &Machine,
    store: &dyn Store,
    mut jobs: BTreeMap<String, Tree>,
    tell: &mut dyn FnMut(String),
) -> Result<(Vec<Tree>, Vec<StorePath>)> {
    let mut aggregates = BTreeMap::new();
    for (name, job) in jobs.iter().filter(|(_, job)| is_waiting(job)) {
        aggregates.insert(name.clone(), resolve(name, job, &jobs, tell));
    }
    let (mut lines, mut written) = (Vec::new(), Vec::new());
    let order = match order(&aggregates) {
        Ok(order) => order,
        Err([a, b]) => {
            tell(format!("Found dependency cycle between jobs '{a}' and '{b}'"));
            let message = format!("Dependency cycle: {a} <-> {b}");
            let others = aggregates.keys().filter(|name| **name != a && **name != b);
            let skipped = "Skipping aggregate because of a dependency cycle";
            let all = [(&a, &*message), (&b, &*message)].into_iter().chain(others.map(|name| (name, skipped)));
            for (name, message) in all {
                if let Some(Tree::Object(mut line)) = jobs.get(name).cloned() {
                    line.insert(b"error".to_vec(), Tree::text(message));
                    lines.push(Tree::Object(line));
                }
            }
            return Ok((lines, written));
        }
    };
    for name in order {
        let aggregate = &aggregates[&name];
        let Some(Tree::Object(mut line)) = jobs.get(&name).cloned() else { continue };
        if aggregate.broken.is_empty() {
            written.extend(rewrite(machine, store, &mut line, &aggregate.dependencies, &jobs)?);
        }
        line.remove(b"namedConstituents".as_slice());
        if !aggregate.broken.is_empty() {
            let told: String = aggregate.broken.iter().map(|(job, error)| format!("{job}: {error}\n")).collect();
            line.insert(b"error".to_vec(), Tree::text(&told));
        }
        jobs.insert(name, Tree::Object(line.clone()));
        lines.push(Tree::Object(line));
    }
    Ok((lines, written))
}

/// Finds the jobs that an aggregate names.
fn resolve(name: &str, job: &Tree, jobs: &BTreeMap<String, Tree>, tell: &mut dyn FnMut(String)) -> Resolved {
    let globs = job.get("globConstituents") == Some(&Tree::Bool(true));
    let mut resolved = Resolved { dependencies: BTreeSet::new(), broken: BTreeMap::new() };
    let mut take = |child: &str, found: &Tree, tell: &mut dyn FnMut(String)| -> bool {
        let Some(error) = found.get("error").and_then(Tree::as_text) else {
            resolved.dependencies.insert(child.to_owned());
            return true;
        };
        tell(format!("aggregate job '{name}' references broken job '{child}': {error}"));
        resolved.broken.insert(child.to_owned(), error.to_owned());
        false
    };
    let mut missing = Vec::new();
    for child in job.get("namedConstituents").and_then(Tree::as_list).unwrap_or_default().iter().filter_map(Tree::as_text) {
        if let Some(found) = jobs.get(child) {
            take(child, found, tell);
        } else if !globs {
            tell(format!("aggregate job '{name}' references non-existent job '{child}'"));
            missing.push((child, "does not exist"));
        } else {
            let others = jobs.iter().filter(|(other, _)| *other != name && matches(child.as_bytes(), other.as_bytes()));
            let mut any = false;
            for (other, found) in others {
                any |= take(other, found, tell);
            }
            if !any {
                tell(format!("aggregate job '{name}' references constituent glob pattern '{child}' with no matches"));
                missing.push((child, "constituent glob pattern had no matches"));
            }
        }
    }
    resolved.broken.extend(missing.into_iter().map(|(child, why)| (child.to_owned(), why.to_owned())));
    resolved
}

/// The aggregates, each after those it depends on; two that depend on each other otherwise.
fn order(aggregates: &BTreeMap<String, Resolved>) -> std::result::Result<Vec<String>, [String; 2]> {
    let (mut done, mut order) = (BTreeSet::new(), Vec::new());
    for name in aggregates.keys() {
        visit(name, aggregates, &mut Vec::new(), &mut done, &mut order)?;
    }
    Ok(order)
}

fn visit(
    name: &String,
    aggregates: &BTreeMap<String, Resolved>,
    above: &mut Vec<String>,
    done: &mut BTreeSet<String>,
    order: &mut Vec<String>,
) -> std::result::Result<(), [String; 2]> {
    if let (true, Some(parent)) = (above.contains(name), above.last()) {
        return Err([name.clone(), parent.clone()]);
    }
    let Some(aggregate) = aggregates.get(name).filter(|_| done.insert(name.clone())) else { return Ok(()) };
    above.push(name.clone());
    for dependency in aggregate.dependencies.iter().filter(|dependency| *dependency != name) {
        visit(dependency, aggregates, above, done, order)?;
    }
    above.pop();
    order.push(name.clone());
    Ok(())
}

/// Gives the aggregate's derivation the constituents as inputs, and the line its new paths.
fn rewrite(
    machine: &Machine,
    store: &dyn Store,
    line: &mut Line,
    dependencies: &BTreeSet<String>,
    jobs: &BTreeMap<String, Tree>,
) -> Result<Option<StorePath>> {
    let dir = machine.store_dir();
    let parse = |tree: Option<&Tree>| dir.parse(tree.and_then(Tree::as_text).unwrap_or_default().as_bytes());
    let own = parse(line.get(b"drvPath".as_slice())).map_err(|e| store_error(&e))?;
    let mut drv = firn_builtins::derivation_at(machine, &own)?;
    for child in dependencies {
        let path = parse(jobs.get(child).and_then(|job| job.get("drvPath"))).map_err(|e| store_error(&e))?;
        let outputs = firn_builtins::derivation_at(machine, &path)?.outputs;
        let first = outputs.keys().next().cloned().into_iter().collect();
        *drv.input_drvs.entry(path.clone()) = InputNode { outputs: first, ..InputNode::default() };
        if let Some(Tree::List(all)) = line.get_mut(b"constituents".as_slice()) {
            all.push(text(&dir.print(&path)));
        }
    }
    let mut modulo = |path: &StorePath| -> std::result::Result<HashModulo, firn_store::Error> {
        firn_builtins::hash_modulo_at(machine, path)
            .map_err(|e| firn_store::Error::new(firn_store::ErrorKind::Other, &[e.message()]))
    };
    let name = b"out".as_slice();
    if !matches!(drv.outputs.get(name), Some(Output::InputAddressed(_))) {
        return Ok(None);
    }
    drv.outputs.insert(name.into(), Output::Deferred);
    drv.env.insert(name, b"");
    drv.fill_output_paths(dir, &mut modulo).map_err(|e| store_error(&e))?;
    let Some(Output::InputAddressed(out)) = drv.outputs.get(name).cloned() else { return Ok(None) };
    let file = drv.to_file(dir).map_err(|e| store_error(&e))?;
    let path = file.path;
    let references = file.references.into();
    store.add_text(&path, file.contents.into(), references, Method::Text).map_err(|e| store_error(&e))?;
    line.insert(b"drvPath".to_vec(), text(&dir.print(&path)));
    if let Some(Tree::Object(outputs)) = line.get_mut(b"outputs".as_slice()) {
        outputs.insert(name.to_vec(), text(&dir.print(&out)));
    }
    Ok(Some(path))
}

/// A shell pattern (`*`, `?`, `[a-z]`) against a whole name.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|at| matches(rest, &name[at..])),
        ([b'?', rest @ ..], [_, after @ ..]) => matches(rest, after),
        ([b'[', rest @ ..], [byte, after @ ..]) => match class(rest, *byte) {
            Some((found, rest)) => found && matches(rest, after),
            None => *byte == b'[' && matches(rest, after),
        },
        ([b'\\', plain, rest @ ..], [byte, after @ ..]) => plain == byte && matches(rest, after),
        ([plain, rest @ ..], [byte, after @ ..]) => plain == byte && matches(rest, after),
        _ => false,
    }
}

/// Whether a bracket's characters have `byte`, and what follows the bracket; none if it is not closed.
fn class(pattern: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let negated = matches!(pattern.first(), Some(b'!' | b'^'));
    let body = &pattern[usize::from(negated)..];
    // A bracket in first place stands for itself.
    let end = 1 + body.get(1..)?.iter().position(|&b| b == b']')?;
    let (set, mut found, mut at) = (&body[..end], false, 0);
    while at < set.len() {
        if let Some([low, b'-', high]) = set.get(at..at + 3) {
            found |= (*low..=*high).contains(&byte);
            at += 3;
        } else {
            found |= set[at] == byte;
            at += 1;
        }
    }
    Some((found != negated, &body[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_the_shell_says() {
        for (pattern, name, expected) in [
            ("a*", "abc", true),
            ("*.x86_64-linux", "hello.x86_64-linux", true),
            ("tests.?", "tests.ab", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
