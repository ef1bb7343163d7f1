//! Many threads, one graph (E7): each has a machine of its own on the same shared state, all force the same cells from
//! different ends, and what they see is what one thread sees. Nothing may hang: a deadline ends each test.

use firn_eval::{ErrorKind, Machine, Settings, Shared, print_ambiguous};
use firn_host::{AbsPath, MemoryHost, MemoryWorld};
use firn_source::{Origin, Pos};
use firn_value::{List, Value};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

const THREADS: usize = 4;
const ROUNDS: usize = 12;

/// Paths and texts of the files that a program sees.
type Files = &'static [(&'static str, &'static str)];

fn shared(files: Files) -> Arc<Shared> {
    firn_value::single_threaded(false);
    let world = MemoryWorld::new();
    files.iter().for_each(|(path, text)| world.write(path, *text));
    let mut shared = Shared::new(Settings::default(), Arc::new(MemoryHost::new(world)));
    firn_builtins::install(&mut shared);
    Arc::new(shared)
}

/// Runs a test that must end.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match ended.recv_timeout(Duration::from_secs(120)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("threads wait for each other"),
        _ => worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

fn list_of(machine: &Machine, text: &str) -> List {
    let value = machine.eval_text(text.as_bytes(), Origin::Expression, &AbsPath::root()).expect("the program gives a list");
    value.as_list().expect("the program gives a list")
}

/// An element as a reader sees it: printed, or the kind and text of its error.
fn outcome(machine: &Machine, cell: Value) -> Result<String, (ErrorKind, String)> {
    let describe = |error: Box<firn_eval::Error>| (error.kind(), error.to_string());
    let value = machine.force(cell, Pos::NONE).map_err(describe)?;
    machine.force_deep(value).map_err(describe)?;
    let mut out = Vec::new();
    print_ambiguous(&machine, value, true, &mut out);
    Ok(String::from_utf8_lossy(&out).into_owned())
}

type Outcomes = Vec<Result<String, (ErrorKind, String)>>;

/// What one thread sees of the elements.
fn alone(files: Files, text: &str) -> Outcomes {
    let machine = Machine::new(shared(files));
    list_of(&machine, text).iter().map(|cell| outcome(&machine, cell)).collect()
}

/// What each of several threads sees: the first goes from the front, the second from the back, others from the middle.
fn together(files: Files, text: &str) -> Vec<Outcomes> {
    let shared = shared(files);
    let list = list_of(&Machine::new(Arc::clone(&shared)), text);
    let start = Barrier::new(THREADS);
    let walk = |thread: usize| {
        let machine = Machine::new(Arc::clone(&shared));
        let count = list.len();
        let order = (0..count).map(|i| match thread {
            0 => i,
            1 => count - 1 - i,
            _ => (i + thread * count / THREADS) % count,
        });
        start.wait();
        let mut seen: Vec<_> = order.map(|i| (i, outcome(&machine, list.get(i)))).collect();
        seen.sort_by_key(|(i, _)| *i);
        seen.into_iter().map(|(_, outcome)| outcome).collect()
    };
    let walk = &walk;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || walk(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    })
}

fn agree(files: Files, text: &'static str) {
    in_time(move || {
        let expected = alone(files, text);
        assert!(!expected.is_empty());
        for _ in 0..ROUNDS {
            for seen in together(files, text) {
                assert_eq!(seen, expected);
            }
        }
    });
}

#[test]
fn a_graph_where_everything_needs_everything_before_it() {
    agree(
        &[],
        r#"let fibs = builtins.genList (n: if n < 2 then n else builtins.elemAt fibs (n - 1) + builtins.elemAt fibs (n - 2)) 90;
           in fibs"#,
    );
}

#[test]
fn sets_layers_strings_and_functions() {
    agree(
        &[],
        r#"let
             names = builtins.genList (n: "n${toString n}") 60;
             base = builtins.listToAttrs (map (name: { inherit name; value = builtins.stringLength name; }) names);
             fix = f: let x = f x; in x;
             layered = fix (self: base // { extra = self.n3 + self.n40; } // { more = "${toString self.extra}!"; });
             big = builtins.mapAttrs (name: value: { inherit name; double = value * 2; again = layered.${name} + 1; }) layered;
             safe = builtins.removeAttrs big [ "more" ];
           in [ layered (builtins.attrNames layered) ]
              ++ map (name: safe.${name}) names
              ++ [ (builtins.sort (a: b: a > b) (map (name: safe.${name}.double) names)) (builtins.concatStringsSep "," names) ]
              ++ builtins.genList (n: builtins.foldl' (a: x: a + safe.${x}.again) n names) 20"#,
    );
}

#[test]
fn failures_are_the_same_for_all() {
    agree(
        &[],
        r#"let
             bad = builtins.genList (n: if n / 3 * 3 == n then throw "no ${toString n}" else n) 30;
             at = builtins.elemAt bad;
           in bad
              ++ builtins.genList (n: builtins.tryEval (at n)) 30
              ++ builtins.genList (n: at n + at (29 - n)) 30
              ++ [ (assert at 1 == 2; 1) (at 1).x (abort "stop") (1 + { }) ]"#,
    );
}

#[test]
fn a_deep_chain_from_both_ends() {
    agree(
        &[],
        r#"let chain = builtins.genList (n: if n == 0 then 0 else 1 + builtins.elemAt chain (n - 1)) 3000;
           in [ (builtins.elemAt chain 2999) (builtins.elemAt chain 1500) (builtins.elemAt chain 10) ] ++ chain"#,
    );
}

#[test]
fn files_are_one_value_for_all() {
    let files: Files = &[
        ("/a.nix", "{ x = (import ./b.nix).y + 1; f = x: x; }"),
        ("/b.nix", "{ y = builtins.length (builtins.genList (n: n) 1000); back = (import ./a.nix).x; }"),
    ];
    agree(
        files,
        r#"let again = builtins.genList (n: if n / 2 * 2 == n then (import /a.nix).x else (import /b.nix).back) 40;
           in again ++ [ ((import /a.nix) == (import /a.nix)) ]"#,
    );
}

#[test]
fn circles_across_threads_are_infinite_recursion() {
    in_time(|| {
        let text = r#"let ring = builtins.genList (n: 1 + builtins.elemAt ring (if n == 0 then 23 else n - 1)) 24; in ring"#;
        for _ in 0..ROUNDS * 4 {
            for seen in together(&[], text) {
                for outcome in seen {
                    assert_eq!(outcome.map_err(|(kind, _)| kind), Err(ErrorKind::InfiniteRecursion));
                }
            }
        }
    });
}

#[test]
fn what_only_touches_a_circle_is_not_one() {
    // Elements that need each other's *shape* only: nobody may take a wait for a circle.
    agree(
        &[],
        r#"let
             nodes = builtins.genList (n: {
               next = builtins.elemAt nodes (if n == 19 then 0 else n + 1);
               weight = if n == 0 then 1 else (builtins.elemAt nodes (n - 1)).weight + 1;
             }) 20;
             sum = k: node: if k == 0 then 0 else node.weight + sum (k - 1) node.next;
           in map (node: sum 45 node) nodes"#,
    );
}
