//! What memory saved, as tables beside the profile: within the run by function, between runs by question.

use super::label;
use crate::memory::{Glance, Glanced};
use crate::session::Session;
use firn_eval::{Callee, Machine};
use std::fmt::Write;
use std::time::Duration;

/// The tables; nothing where there is no memory. `cpu` is how many seconds the run took.
pub(super) fn tables(session: &Session, cpu: f64, rows: usize) -> String {
    let between = session.memory.as_ref().map(|memory| between_runs(&memory.glances(), rows)).unwrap_or_default();
    within_the_run(&session.machine, cpu, rows) + &between
}

/// By function: calls that were answered. A step that was saved is taken to have cost what one that was made did.
fn within_the_run(machine: &Machine, cpu: f64, rows: usize) -> String {
    let memo = &machine.shared.memo;
    if !memo.is_on() {
        return String::new();
    }
    let best = memo.profits.best(rows);
    let mut text = "\nsaved within the run".to_owned();
    if best.is_empty() {
        return text + ": nothing, no call was answered from memory\n";
    }
    let steps = (machine.stats.calls.get() + machine.stats.forces.get()).max(1);
    let _ = write!(text, ", about\n\n{:>12} {:>12} {:>10}  function\n", "time", "steps", "answered");
    for profit in best {
        let time = milliseconds(Duration::from_secs_f64(cpu * profit.steps as f64 / steps as f64));
        let _ = writeln!(text, "{time:>12} {:>12} {:>10}  {}", profit.steps, profit.hits, label(Callee::Lambda(profit.code)));
    }
    text
}

/// By question: what evaluating it took when it was last found, and what it takes to know that it is still so.
fn between_runs(glances: &[Glance], rows: usize) -> String {
    let known = glances.iter().filter(|glance| matches!(glance.found, Glanced::Known(_))).count();
    let mut text = format!("\nfrom earlier runs {known} of {} answers would have been given\n", glances.len());
    let _ = write!(text, "\n{:>12} {:>12}  question\n", "saved", "looking");
    for glance in glances.iter().take(rows) {
        let question = if glance.attribute.is_empty() { "the whole value".into() } else { String::from_utf8_lossy(&glance.attribute) };
        let (saved, why) = match &glance.found {
            Glanced::Known(took) => (milliseconds(took.saturating_sub(glance.looked)), String::new()),
            Glanced::Outdated(change) => ("-".to_owned(), format!(": {change}")),
            Glanced::Unknown => ("-".to_owned(), ": not asked before".to_owned()),
        };
        let _ = writeln!(text, "{saved:>12} {:>12}  {question}{why}", milliseconds(glance.looked));
    }
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
