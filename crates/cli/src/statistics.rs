//! `NIX_SHOW_STATS`: what the machine counted, as JSON on standard error or in the file that `NIX_SHOW_STATS_PATH` names.

use crate::failure::Failure;
use crate::log::Log;
use crate::memory::{Memory, Outcome};
use crate::profile;
use crate::session::{Session, counts_calls};
use firn_eval::times::Doing;
use firn_eval::{CallTree, Callee, Grain, Machine};
use firn_host::Host;
use firn_text::json::Tree;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

/// The end of a command: what shadow mode found is told and fails the command; then the statistics and the profile, if the
/// user asked for them.
pub fn print(session: &Session, host: &dyn Host, log: &Log) -> Result<(), Failure> {
    let differences = session.machine.compare_shadows();
    for difference in &differences {
        log.line(format!("memo: {difference}").as_bytes());
    }
    // Who begins again tells at the end.
    if !firn_memo::doubt::must_begin_again() {
        show(session, host, log)?;
    }
    if differences.is_empty() { Ok(()) } else { Err(Failure::error("answers from memory differ from a fresh evaluation")) }
}

fn show(session: &Session, host: &dyn Host, log: &Log) -> Result<(), Failure> {
    let machine = &session.machine;
    let calls = machine.profiler().filter(|profiler| profiler.grain() == Grain::Count).map(|profiler| profiler.take());
    if let Some(request) = &session.profile {
        profile::report(session, request, cpu_time(), log)?;
    }
    if !wanted(host) {
        return Ok(());
    }
    let calls = calls.filter(|_| counts_calls(host));
    let text = render(machine, cpu_time(), calls.as_ref(), session.memory.as_ref());
    match host.env(b"NIX_SHOW_STATS_PATH").filter(|path| &**path != b"-") {
        None => log.line(text.as_bytes()),
        Some(path) => {
            let path = std::ffi::OsStr::from_bytes(&path);
            if let Err(error) = std::fs::write(path, text + "\n") {
                let shown = path.to_string_lossy();
                return Err(Failure::error(format!("writing to \"{shown}\": {}", firn_host::Errno::from(error))));
            }
        }
    }
    Ok(())
}

/// Whether the user asked for statistics.
pub fn wanted(host: &dyn Host) -> bool {
    host.env(b"NIX_SHOW_STATS").is_some_and(|value| &*value != b"0")
}

/// Seconds of user time that this process has taken.
fn cpu_time() -> f64 {
    use unix::sys::resource::{UsageWho, getrusage};
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
        let time = usage.user_time();
        time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
    })
}

/// The JSON: Nix's names where firn counts the same thing; what only firn knows is under `firn`.
fn render(machine: &Machine, cpu: f64, calls: Option<&CallTree>, memory: Option<&Memory>) -> String {
    let count = |name: &str| machine.stats.all().iter().find(|(n, _)| *n == name).map_or(0, |(_, n)| *n);
    let number = |name: &str| Tree::Int(count(name) as i64);
    let seconds = |name: &str| Tree::Float(count(name) as f64 / 1e9);
    let heap = Tree::Int(firn_value::heap_bytes() as i64);
    let phases = object(vec![
        ("parse", seconds("parse_time")),
        ("lower", seconds("lower_time")),
        ("derivations", seconds("derivation_time")),
        ("io", Tree::Float(firn_host::io_time().as_secs_f64())),
    ]);
    let firn = vec![
        ("derivations", number("derivations")),
        ("filesPrepared", number("files_prepared")),
        ("filesShared", number("files_shared")),
        ("parsed", number("parsed")),
        ("time", phases),
    ];
    let mut members = vec![
        ("cpuTime", Tree::Float(cpu)),
        ("gc", object(vec![("heapSize", heap.clone()), ("totalBytes", heap)])),
        ("list", object(vec![("concats", number("list_concats"))])),
        ("nrForces", number("forces")),
        ("nrFiles", number("files")),
        ("nrFunctionCalls", number("calls")),
        ("nrLookups", number("lookups")),
        ("nrOpUpdateValuesCopied", number("update_copies")),
        ("nrOpUpdates", number("updates")),
        ("nrPrimOpCalls", number("primop_calls")),
        ("nrThunks", number("thunks")),
        ("time", object(vec![("cpu", Tree::Float(cpu))])),
        ("firn", object(firn)),
    ];
    if let Some(spent) = firn_eval::times::spent() {
        let part = |(nanoseconds, stretches): (u64, u64)| Tree::List(vec![Tree::Int(nanoseconds as i64), Tree::Int(stretches as i64)]);
        members.push(("timeByKind", object(Doing::ALL.iter().zip(spent).map(|((_, name), spent)| (*name, part(spent))).collect())));
    }
    let on_disk = memory.map(|memory| ("disk", disk(&memory.outcome(), machine)));
    let remotes = memory.and_then(Memory::shared).map(|counts| ("shared", shared(&counts)));
    let memo: Vec<(&str, Tree)> =
        run(machine, cpu).map(|run| ("run", run)).into_iter().chain(on_disk).chain(remotes).collect();
    if !memo.is_empty() {
        members.push(("memo", object(memo)));
    }
    if let Some(calls) = calls {
        members.extend(counted(calls));
    }
    let printed = object(members).print(Some(2)).unwrap_or_default();
    String::from_utf8_lossy(&printed).into_owned()
}

fn object(members: Vec<(&str, Tree)>) -> Tree {
    Tree::Object(members.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)).collect())
}

/// What memory on disk did.
fn disk(outcome: &Outcome, machine: &Machine) -> Tree {
    let Outcome { hits, misses, kept, verified, spent, saved } = outcome;
    let number = |number: u64| Tree::Int(number as i64);
    object(vec![
        ("hits", number(*hits)),
        ("misses", number(*misses)),
        ("kept", number(*kept)),
        ("questionsVerified", number(verified.questions)),
        ("vouchedByState", number(verified.vouched)),
        ("read", number(verified.read)),
        ("microsecondsSpent", number(*spent)),
        ("microsecondsSaved", number(*saved)),
        ("partsTaken", number(machine.parts_taken())),
    ])
}

/// What remotes did.
fn shared(counts: &firn_remote::Counts) -> Tree {
    object(counts.named().into_iter().map(|(name, number)| (name, Tree::Int(number as i64))).collect())
}

/// How often each function and builtin was called, the most called first.
fn counted(calls: &CallTree) -> [(&'static str, Tree); 3] {
    let mut costs: Vec<_> = calls.costs.iter().filter(|cost| cost.calls > 0).collect();
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.calls));
    let (mut builtins, mut functions) = (BTreeMap::new(), Vec::new());
    for cost in costs {
        let count = Tree::Int(cost.calls as i64);
        match cost.callee {
            Callee::Primop(primop) => drop(builtins.insert(primop.name.as_bytes().to_vec(), count)),
            Callee::Lambda(lambda) => {
                let name = lambda.name.map_or(Tree::Null, |name| Tree::text(&name.to_str()));
                let mut function = BTreeMap::from([(b"name".to_vec(), name), (b"count".to_vec(), count)]);
                if let Some(at) = lambda.pos_at(0).resolve() {
                    let place = firn_eval::show_location(&at);
                    let file = place.rsplitn(3, ':').nth(2).unwrap_or_default();
                    function.insert(b"file".to_vec(), Tree::text(file));
                    function.insert(b"line".to_vec(), Tree::Int(at.line.into()));
                    function.insert(b"column".to_vec(), Tree::Int(at.column.into()));
                }
                functions.push(Tree::Object(function));
            }
        }
    }
    // NIX: selections of attributes are counted as well, into a copy of the list that is printed: it says null.
    [("primops", Tree::Object(builtins)), ("functions", Tree::List(functions)), ("attributes", Tree::Null)]
}

/// What the memo did within the run (O2), and the functions that profited most; nothing if it is off.
fn run(machine: &Machine, cpu: f64) -> Option<Tree> {
    let memo = &machine.shared.memo;
    if !memo.is_on() {
        return None;
    }
    let number = |number: u64| Tree::Int(number as i64);
    let counts = memo.stats.all();
    let sum = |prefix: &str| counts.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, count)| count).sum::<u64>();
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let (hits, saved) = (sum("hits"), sum("steps_saved"));
    let steps = machine.stats.calls.get() + machine.stats.forces.get();
    let mut members = BTreeMap::from([
        (b"entries".to_vec(), number(memo.table.len() as u64)),
        (b"instances".to_vec(), number(memo.instances.count())),
        (b"closedTerms".to_vec(), number(memo.closed.len() as u64)),
        (b"hitRate".to_vec(), Tree::Float(share(hits, hits + sum("misses_")))),
        // A step that was saved is taken to have the cost of one that was made.
        (b"secondsSaved".to_vec(), Tree::Float(cpu * share(saved, steps))),
        (b"best".to_vec(), Tree::List(memo.profits.best(10).iter().map(profiting).collect())),
    ]);
    members.extend(counts.into_iter().map(|(name, count)| (camel(name).into_bytes(), number(count))));
    Some(Tree::Object(members))
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + &part[..1].to_uppercase() + &part[1..])
}

fn profiting(profit: &firn_memo::Profit) -> Tree {
    let place = profit.code.pos_at(0).resolve().map_or_else(String::new, |at| firn_eval::show_location(&at));
    object(vec![
        ("at", Tree::text(&place)),
        ("name", profit.code.name.map_or(Tree::Null, |name| Tree::text(&name.to_str()))),
        ("hits", Tree::Int(profit.hits as i64)),
        ("steps", Tree::Int(profit.steps as i64)),
    ])
}
