//! Why two `.drv` files differ: their structural difference, followed through inputs of the same name down to those whose
//! difference is not the consequence of another.

use firn_eval::{Machine, Result, store_error};
use firn_host::AbsPath;
use firn_store::derivation::{Derivation, Difference};
use firn_store::path::StorePath;
use std::collections::HashSet;

/// Derivations shown per explanation; more would hide the first.
const SHOWN: usize = 5;
/// Bytes shown on each side of a place where texts part.
const AROUND: usize = 40;

/// Looks for reasons. One of them serves a whole run: what it has explained once it does not explain again.
#[derive(Debug)]
pub struct Explainer {
    other: AbsPath,
    seen: HashSet<(StorePath, StorePath)>,
}

impl Explainer {
    /// `other` is the directory with the other side's `.drv` files.
    pub fn new(other: AbsPath) -> Explainer {
        Explainer { other, seen: HashSet::new() }
    }

    /// Explains why `ours` is not `theirs` (both printed store paths).
    pub fn explain(&mut self, machine: &Machine, ours: &[u8], theirs: &[u8]) -> Vec<String> {
        let dir = machine.store_dir();
        let (Ok(ours), Ok(theirs)) = (dir.parse(ours), dir.parse(theirs)) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        let mut todo = vec![(ours, theirs)];
        let mut shown = 0;
        while let Some(pair) = todo.pop() {
            if !self.seen.insert(pair.clone()) {
                continue;
            }
            if shown == SHOWN {
                lines.push("… and more".to_owned());
                break;
            }
            match self.one(machine, &pair, &mut lines) {
                Ok((inputs, told)) => {
                    shown += usize::from(told);
                    todo.extend(inputs);
                }
                Err(error) => lines.push(format!("{}: {error}", pair.1)),
            }
        }
        if lines.is_empty() {
            lines.push("the reason has been shown above".to_owned());
        }
        lines
    }

    /// Shows the reasons in one pair; the inputs to look into, and whether anything was shown.
    fn one(
        &self,
        machine: &Machine,
        (ours, theirs): &(StorePath, StorePath),
        lines: &mut Vec<String>,
    ) -> Result<(Vec<(StorePath, StorePath)>, bool)> {
        let left = firn_builtins::derivation_at(machine, ours)?;
        let right = self.read(machine, theirs)?;
        let found = left.differences(&right);
        let mut reasons: Vec<&Difference> = found.reasons().collect();
        // Nothing but digests and no input to blame: then the digests are what there is to show.
        if reasons.is_empty() && found.inputs.is_empty() {
            reasons = found.parts.iter().collect();
        }
        if !reasons.is_empty() {
            lines.push(format!("{ours} (here), {theirs} (other)"));
            lines.extend(reasons.iter().flat_map(|difference| show(difference)));
        }
        Ok((found.inputs.clone(), !reasons.is_empty()))
    }

    fn read(&self, machine: &Machine, path: &StorePath) -> Result<Derivation> {
        let place = self.other.join(path.as_bytes()).map_err(|e| machine.host_error(e))?;
        let content = machine.host().read_file(&place).map_err(|e| machine.host_error(e))?;
        let name = path.derivation_name().map_err(|e| store_error(&e))?.as_bytes();
        Derivation::parse_aterm(machine.store_dir(), name, content.bytes()).map_err(|e| store_error(&e))
    }
}

/// The lines for one difference: `-` is the other side, `+` is here.
fn show(difference: &Difference) -> Vec<String> {
    let mut lines = vec![format!("  {}", difference.part)];
    let (left, right) = (difference.left.as_deref(), difference.right.as_deref());
    let (start, end) = match (left, right) {
        (Some(left), Some(right)) => common(left, right),
        _ => (0, 0),
    };
    for (mark, side) in [('-', right), ('+', left)] {
        if let Some(text) = side {
            lines.push(format!("    {mark} {}", excerpt(text, start, end)));
        }
    }
    lines
}

/// How many bytes two texts share at their beginning, and how many at their end.
fn common(left: &[u8], right: &[u8]) -> (usize, usize) {
    let start = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    let end = left[start..].iter().rev().zip(right[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    (start, end)
}

/// The part of a text that is not shared, with some of what surrounds it.
fn excerpt(text: &[u8], start: usize, end: usize) -> String {
    let from = start.saturating_sub(AROUND);
    let to = (text.len() - end + AROUND).min(text.len()).min(from + 20 * AROUND);
    let shown = String::from_utf8_lossy(&text[from..to]);
    let dots = |cut: bool| if cut { "…" } else { "" };
    format!("{}{:?}{}", dots(from > 0), shown, dots(to < text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shown_around_the_difference() {
        let text = |middle: &str| [&b"a".repeat(500)[..], middle.as_bytes(), &b"z".repeat(500)].concat();
        let difference = Difference { part: "env.x".to_owned(), left: Some(text("new")), right: Some(text("old")) };
        let lines = show(&difference);
        assert_eq!(lines[0], "  env.x");
        let around = |middle: &str| format!("…\"{}{middle}{}\"…", "a".repeat(AROUND), "z".repeat(AROUND));
        assert_eq!(lines[1..], [format!("    - {}", around("old")), format!("    + {}", around("new"))]);
    }
}
