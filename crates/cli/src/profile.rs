//! What a profiler found, for people and for other programs: tables by function and file, collapsed stacks, a picture.
//! `firn profile` asks for it ([`Request`]), [`report`] is called when the profiled command is done.

mod flame;
mod saved;

use crate::failure::Failure;
use crate::log::Log;
use crate::session::Session;
use firn_eval::{CallTree, Callee, Grain, Machine, Profiler, describe_callee};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// What the user wants of a profile.
#[derive(Clone, Debug)]
pub struct Request {
    /// How it is measured.
    pub grain: Grain,
    /// A file for collapsed stacks.
    pub collapsed: Option<Vec<u8>>,
    /// A file for the picture.
    pub svg: Option<Vec<u8>>,
    /// Rows of the tables.
    pub rows: usize,
}

/// Puts a profiler into the machine, if a profile, counts or traces are asked for.
pub fn install(machine: &mut Machine, request: Option<&Request>, count: bool, traces: bool) {
    let grain = match request {
        Some(request) => request.grain,
        None if count || traces => Grain::Count,
        None => return,
    };
    machine.profile(Profiler::new(grain, traces));
}

/// Tells what the machine's profiler found, and what memory saved. `cpu` is how many seconds the run took.
pub fn report(session: &Session, request: &Request, cpu: f64, log: &Log) -> Result<(), Failure> {
    let Some(profiler) = session.machine.profiler() else { return Ok(()) };
    let tree = profiler.take();
    if request.rows > 0 {
        log.write(tables(&tree, request).as_bytes());
        log.write(saved::tables(session, cpu, request.rows).as_bytes());
    }
    let write = |file: &Option<Vec<u8>>, text: &dyn Fn() -> String| match file {
        None => Ok(()),
        Some(file) => {
            let path = std::ffi::OsStr::from_bytes(file);
            std::fs::write(path, text()).map_err(|error| {
                let shown = path.to_string_lossy();
                Failure::error(format!("writing to '{shown}': {}", firn_host::Errno::from(error)))
            })
        }
    };
    write(&request.collapsed, &|| collapsed(&tree))?;
    write(&request.svg, &|| flame::picture(&tree))
}

/// The label of a callee in stacks.
fn label(callee: Callee) -> String {
    match describe_callee(callee) {
        (name, Some(place)) => format!("{name} {place}"),
        (name, None) => name,
    }
}

fn file_of(callee: Callee) -> String {
    match describe_callee(callee).1 {
        // `path:line:column`
        Some(place) => place.rsplitn(3, ':').nth(2).unwrap_or(&place).to_owned(),
        None => "builtins".to_owned(),
    }
}

fn tables(tree: &CallTree, request: &Request) -> String {
    let all: u64 = tree.nodes.iter().map(|node| node.own).sum();
    let exact = request.grain == Grain::Exact;
    let amount = |own: u64| if exact { format!("{:.1} ms", own as f64 / 1e6) } else { own.to_string() };
    let share = |own: u64| format!("{:.1} %", 100.0 * own as f64 / (all.max(1)) as f64);
    let what = if exact { "time" } else { "samples" };
    let mut text = format!("{} in all\n\n{:>8} {:>12} {:>12} {:>10}  function\n", amount_of(all, exact), "self", what, "total", "calls");
    let mut costs: Vec<_> = tree.costs.iter().collect();
    costs.sort_by_key(|cost| std::cmp::Reverse((cost.own, cost.calls)));
    for cost in costs.iter().take(request.rows) {
        let (own, total) = (amount(cost.own), amount(cost.total));
        let _ = writeln!(text, "{:>8} {own:>12} {total:>12} {:>10}  {}", share(cost.own), cost.calls, label(cost.callee));
    }
    let mut files: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for cost in &tree.costs {
        let entry = files.entry(file_of(cost.callee)).or_default();
        *entry = (entry.0 + cost.own, entry.1 + cost.calls);
    }
    let outside = tree.nodes.first().map_or(0, |root| root.own);
    files.insert("(outside of functions)".to_owned(), (outside, 0));
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(_, (own, calls))| std::cmp::Reverse((*own, *calls)));
    let _ = write!(text, "\n{:>8} {:>12} {:>10}  file\n", "self", what, "calls");
    for (file, (own, calls)) in files.iter().take(request.rows) {
        let _ = writeln!(text, "{:>8} {:>12} {calls:>10}  {file}", share(*own), amount(*own));
    }
    text
}

fn amount_of(all: u64, exact: bool) -> String {
    if exact { format!("{:.1} ms", all as f64 / 1e6) } else { format!("{all} samples") }
}

/// One line per stack: labels from the outermost on, separated by semicolons, and what it cost (microseconds or samples).
fn collapsed(tree: &CallTree) -> String {
    let labels: Vec<String> = tree.costs.iter().map(|cost| label(cost.callee).replace(';', ":")).collect();
    let largest = tree.nodes.iter().map(|node| node.own).max().unwrap_or(0);
    // Nanoseconds are for exact profiles, where a second is 10⁹; samples are small numbers.
    let unit = if largest > 10_000_000 { 1000 } else { 1 };
    let mut lines = Vec::new();
    for (at, node) in tree.nodes.iter().enumerate() {
        if node.own / unit == 0 {
            continue;
        }
        let mut stack = Vec::new();
        let mut here = at;
        while let Some(callee) = tree.nodes[here].callee {
            stack.push(labels[callee].as_str());
            here = tree.nodes[here].parent;
        }
        stack.push("evaluation");
        stack.reverse();
        lines.push(format!("{} {}\n", stack.join(";"), node.own / unit));
    }
    lines.sort();
    lines.concat()
}
