//! One run sees one state: edits, removals and faults during a run change no answer already given, from any thread.

use std::sync::Mutex;

use firn_host::{
    AbsPath, Durability, Errno, Faulty, Found, Host, LocalOnly, MemoryHost, MemoryWorld, Observation, Operation,
    Question, Recording, SearchPath, Snapshot,
};

fn path(raw: &str) -> AbsPath {
    AbsPath::new(raw.as_bytes()).expect("no NUL in test paths")
}

#[test]
fn edits_during_a_run_are_not_seen() {
    let world = MemoryWorld::new();
    world.write("/d/f", "old");
    world.symlink("/d/l", "f");
    world.set_env("V", "old");
    world.set_time(1);
    let host = MemoryHost::new(world.clone());
    let ask = |host: &MemoryHost| {
        (
            host.read_file(&path("/d/f")),
            host.read_dir(&path("/d")),
            host.path_exists(&path("/d/new"), false),
            host.read_link(&path("/d/l")),
            host.env(b"V"),
            host.current_time(),
        )
    };
    let first = ask(&host);
    world.write("/d/f", "new");
    world.write("/d/new", "");
    world.symlink("/d/l", "new");
    world.set_env("V", "new");
    world.set_time(2);
    assert_eq!(ask(&host), first);
    let second = ask(&MemoryHost::new(world));
    assert_ne!(second.0, first.0);
    assert_eq!(second.2, Ok(true));
    assert_eq!(second.5, 2);
}

/// Whoever has a view of the world can ask whether it is still the world's.
#[test]
fn a_view_knows_whether_it_still_holds() {
    type Edit = fn(&MemoryWorld);
    let edits: [(&str, Edit); 8] = [
        ("nothing", |_| ()),
        ("what nobody asked for", |world| world.write("/unseen", "2")),
        ("a file beside one that was read", |world| world.write("/d/beside", "2")),
        ("a file", |world| world.write("/d/f", "two")),
        ("a file that is gone", |world| world.remove("/d/f")),
        ("one that appears", |world| world.write("/d/absent", "")),
        ("a listing", |world| world.write("/listed/new", "")),
        ("a link", |world| world.symlink("/d/l", "beside")),
    ];
    for (at, (what, edit)) in edits.into_iter().enumerate() {
        let world = MemoryWorld::new();
        world.write("/d/f", "one");
        world.write("/listed/old", "");
        world.symlink("/d/l", "f");
        let host = MemoryHost::new(world.clone());
        assert!(host.read_once(&path("/d/f")).is_ok() && host.read_dir(&path("/listed")).is_ok());
        assert_eq!(host.path_exists(&path("/d/absent"), false), Ok(false));
        assert!(host.resolve_symlinks(&path("/d/l"), firn_host::Follow::Full).is_ok());
        edit(&world);
        let later = 1_000_000;
        assert_eq!(host.still_holds(later), at < 3, "{what}");
        // All edits of this world are in one second: within two of it, anything may have been written again.
        assert!(!host.still_holds(1), "{what}");
    }
}

/// A file that vanishes between being seen and being read is missing, and stays so.
#[test]
fn vanished_file() {
    let world = MemoryWorld::new();
    world.write("/d/f", "x");
    let faulty = Faulty::new(world.clone());
    faulty.before(&path("/d/f"), Operation::Open, move || world.remove("/d/f"));
    let host = Snapshot::new(faulty);
    let error = host.read_file(&path("/d/f")).expect_err("vanished");
    assert_eq!(error.to_string(), "path '/d/f' does not exist");
    host.world().world().write("/d/f", "back");
    assert_eq!(host.read_file(&path("/d/f")), Err(error));
}

#[test]
fn each_question_reaches_the_disk_once() {
    let world = MemoryWorld::new();
    world.write("/a/b/c/f", "x");
    let faulty = Faulty::new(world);
    faulty.arm(&path("/a/b/closed"), Operation::Stat, Errno::EACCES, 1);
    let host = Snapshot::new(faulty);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(host.read_file(&path("/a/b/c/f")).expect("content").bytes(), b"x");
                    assert_eq!(host.resolve_expr_path(&path("/a/b/c/f")), Ok(path("/a/b/c/f")));
                    assert_eq!(host.path_exists(&path("/a/b/missing/f"), false), Ok(false));
                    assert!(host.path_exists(&path("/a/b/closed"), false).is_err(), "the fault is remembered");
                }
            });
        }
    });
    let mut asked = host.world().asked();
    let total = asked.len();
    asked.sort_by(|a, b| (&a.0, a.1 as u8).cmp(&(&b.0, b.1 as u8)));
    asked.dedup();
    assert_eq!(asked.len(), total, "asked twice");
    // Nothing is asked below a directory that is not there.
    assert!(!asked.iter().any(|(asked, _)| *asked == path("/a/b/missing/f")));
}

#[derive(Default)]
struct Notes(Mutex<Vec<Observation>>);

impl firn_host::Sink for &Notes {
    fn observe(&self, observation: Observation) {
        self.0.lock().expect("notes").push(observation);
    }
}

fn store() -> AbsPath {
    path("/nix/store")
}

#[test]
fn answers_are_recorded_absence_included() {
    let world = MemoryWorld::new();
    world.write("/d/default.nix", "1");
    world.write("/nix/store/x/f", "2");
    let notes = Notes::default();
    let host = Recording::new(MemoryHost::new(world), &notes, store());
    assert_eq!(host.path_exists(&path("/d/x"), false), Ok(false));
    assert!(host.read_file(&path("/d/y")).is_err());
    assert_eq!(host.env(b"UNSET"), None);
    host.resolve_expr_path(&path("/d")).expect("a directory");
    host.read_file(&path("/nix/store/x/f")).expect("content");
    host.read_dir(&store()).expect("listing");
    let notes = notes.0.into_inner().expect("notes");
    let seen: Vec<_> = notes.iter().map(|note| (note.question.clone(), note.durability)).collect();
    assert_eq!(
        seen,
        [
            (Question::Exists(path("/d/x"), false), Durability::Medium),
            (Question::File(path("/d/y")), Durability::Medium),
            (Question::Env(b"UNSET"[..].into()), Durability::Low),
            (Question::ExprPath(path("/d")), Durability::Medium),
            (Question::File(path("/nix/store/x/f")), Durability::High),
            (Question::Directory(store()), Durability::Medium),
        ]
    );
    assert_eq!(notes[4].digest, firn_host::Digest::of_content(b"2"));
}

/// Every question, asked again: same digest if nothing changed, another if its answer did, the same if only
/// something it did not look at changed.
#[test]
fn asking_again_tells_what_changed() {
    let world = MemoryWorld::new();
    let set_up = |world: &MemoryWorld, content: &str| {
        world.write("/d/f", content);
        world.write("/d/default.nix", "x");
        world.symlink("/d/l", "f");
        world.set_env("V", "1");
        world.set_current_dir("/d");
        world.set_env("HOME", "/h");
    };
    set_up(&world, "x");
    let notes = Notes::default();
    let host = Recording::new(MemoryHost::new(world.clone()), &notes, store());
    ask_everything(&host);
    let notes = notes.0.into_inner().expect("notes");
    let changed = |world: &MemoryWorld| -> Vec<String> {
        let host = MemoryHost::new(world.clone());
        let differs = |note: &&Observation| note.question.ask(&host) != Some(note.digest);
        notes.iter().filter(differs).map(|note| kind(&note.question)).collect()
    };
    assert_eq!(changed(&world), Vec::<String>::new());
    world.write("/d/f", "y");
    assert_eq!(changed(&world), ["File"]);
    world.write_executable("/d/f", "x");
    assert_eq!(changed(&world), ["Stat"]);
    set_up(&world, "x");
    world.write("/d/new", "");
    assert_eq!(changed(&world), ["Directory"], "one name and the rest of the listing are told apart");
    world.remove("/d/new");
    world.write("/d/missing", "");
    assert_eq!(changed(&world), ["Directory", "DirectoryEntry", "Exists"]);
    world.remove("/d/missing");
    world.symlink("/d/l", "default.nix");
    assert_eq!(changed(&world), ["Link", "Resolve"]);
    set_up(&world, "x");
    world.remove("/d/default.nix");
    world.unset_env("V");
    world.set_time(7);
    assert_eq!(changed(&world), ["Directory", "Env", "SearchPath", "Time"]);
}

fn kind(question: &Question) -> String {
    let text = format!("{question:?}");
    text.split('(').next().unwrap_or_default().to_string()
}

fn ask_everything(host: &dyn Host) {
    host.read_file(&path("/d/f")).expect("content");
    host.read_dir(&path("/d")).expect("listing");
    host.dir_entry(&path("/d"), b"missing").expect("entry");
    host.file_type(&path("/d/f")).expect("type");
    host.lstat(&path("/d/f")).expect("stat");
    host.read_link(&path("/d/l")).expect("link");
    host.resolve_symlinks(&path("/d/l"), firn_host::Follow::Full).expect("resolved");
    host.resolve_expr_path(&path("/d")).expect("import");
    host.path_exists(&path("/d/missing"), false).expect("exists");
    host.env(b"V");
    let search = SearchPath::parse_nix_path(b"p=/d");
    let found = host.find_file(&search, b"p/default.nix", &LocalOnly);
    assert_eq!(found, Ok(Found::Path(path("/d/default.nix"))));
    host.current_time();
    host.home().expect("home");
    host.current_dir().expect("cwd");
}

/// The same tree at two places gives the same digests (spec M5, L3.1).
#[test]
fn digests_name_no_checkout() {
    let digests = |base: &str| {
        let world = MemoryWorld::new();
        world.write(format!("{base}/src/f"), "x");
        world.symlink(format!("{base}/l"), "src");
        let host = MemoryHost::new(world);
        let at = |sub: &str| path(&format!("{base}{sub}"));
        [
            Question::Resolve(at("/l/f"), firn_host::Follow::Full),
            Question::ExprPath(at("/l")),
            Question::File(at("/missing")),
            Question::File(at("/l/f")),
            Question::Directory(at("")),
        ]
        .map(|question| question.ask(&host).expect("answerable"))
    };
    assert_eq!(digests("/home/a/checkout"), digests("/b"));
}
