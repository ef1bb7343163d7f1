//! What memory between runs would have done for a run that evaluates everything to be measured.

use super::{Memory, lock};
use crate::observed;
use firn_memo::kept::Asked;
use std::time::Duration;

/// One question of such a run.
#[derive(Clone, Debug)]
pub struct Glance {
    /// The attribute that was asked for; empty if it was the whole value.
    pub attribute: Vec<u8>,
    /// How long it took to find an answer and to verify it, or to find that there is none.
    pub looked: Duration,
    /// What was found.
    pub found: Glanced,
}

/// What memory knows of a question.
#[derive(Clone, Debug)]
pub enum Glanced {
    /// An answer that holds; it took so long when it was found.
    Known(Duration),
    /// Only answers of other times; this is what changed since the nearest of them.
    Outdated(String),
    /// Nothing.
    Unknown,
}

impl Memory {
    /// What memory would have done so far.
    pub fn glances(&self) -> Vec<Glance> {
        lock(&self.glances).clone()
    }

    /// Notes what was found for a question.
    pub(super) fn note_glance(&self, asked: &Asked, looked: Duration, known: Option<u64>) {
        let found = match known {
            Some(microseconds) => Glanced::Known(Duration::from_micros(microseconds)),
            None => self.outdated(asked).map_or(Glanced::Unknown, Glanced::Outdated),
        };
        lock(&self.glances).push(Glance { attribute: asked.attribute.clone(), looked, found });
    }

    fn outdated(&self, asked: &Asked) -> Option<String> {
        let history = self.history(asked);
        let nearest = history.first()?;
        let more = match nearest.changes.len() {
            0 | 1 => String::new(),
            changes => format!(", and {} more", changes - 1),
        };
        let first = nearest.changes.first().map(|change| observed::sentence(change, &self.roles()));
        Some(first.unwrap_or_else(|| "it is not known here".to_owned()) + &more)
    }
}
