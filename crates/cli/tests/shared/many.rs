//! Answers that rest on so many files that they are read on several threads: each of them counts.

use crate::{Machine, World, asks, measured, text};

const FILES: usize = 150;
const DIRECTORIES: usize = 60;

/// Reads every file, lists every directory, and asks for what is not there.
const PROGRAM: &str = "let numbers = n: builtins.genList (x: x) n; in { all = builtins.hashString \"sha256\" (builtins.concatStringsSep \",\" ( \
    map (n: builtins.readFile (./files + \"/${toString n}\")) (numbers FILES) \
    ++ map (n: builtins.toJSON (builtins.readDir (./dirs + \"/${toString n}\"))) (numbers DIRS) \
    ++ map (n: builtins.toJSON (builtins.pathExists (./absent + \"/${toString n}\"))) (numbers 20))); }";

fn fill(machine: &Machine) {
    machine.write("default.nix", &PROGRAM.replace("FILES", &FILES.to_string()).replace("DIRS", &DIRECTORIES.to_string()));
    for n in 0..FILES {
        machine.write(&format!("files/{n}"), &format!("{n}\n"));
    }
    for n in 0..DIRECTORIES {
        machine.write(&format!("dirs/{n}/entry"), "");
    }
}

#[test]
fn answers_that_rest_on_many_files_are_verified_to_the_last() {
    let world = World::new();
    let (remote, stats) = (world.directory(), world.dir.path().join("stats"));
    let (a, b) = (world.machine("a"), world.machine("elsewhere/b"));
    fill(&a);
    fill(&b);
    let (said, ..) = measured(a.signing("shared", &remote), &stats, "all", "pushed");
    let (pulled, files, _) = measured(b.firn("shared", &remote), &stats, "all", "asked");
    assert_eq!((&pulled, files), (&said, 0));
    let count = |name: &str| {
        let stats = std::fs::read_to_string(&stats).unwrap();
        let rest = stats.split(&format!("\"{name}\": ")).nth(1).unwrap_or_default();
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<usize>().unwrap()
    };
    assert!(count("read") >= FILES + DIRECTORIES, "{}", count("read"));
    assert!(count("questionsVerified") >= count("read"));
    // One file, one listing, one thing that was not there; each by itself, then all back as they were.
    for edited in ["files/0", "files/77", "files/149", "dirs/0/new", "dirs/59/new", "absent/19"] {
        let before = std::fs::read_to_string(b.src.join(edited)).ok();
        b.write(edited, "other\n");
        b.forget();
        let pulled = asks(b.firn("shared", &remote), "all");
        let fresh = asks(b.firn("off", &remote), "all");
        assert_eq!(text(&pulled.stdout), text(&fresh.stdout), "{edited}");
        assert_ne!(text(&pulled.stdout), said, "{edited}");
        match before {
            Some(before) => b.write(edited, &before),
            None => std::fs::remove_file(b.src.join(edited)).unwrap(),
        }
    }
    let _ = std::fs::remove_dir_all(b.src.join("absent"));
    b.forget();
    let (pulled, files, _) = measured(b.firn("shared", &remote), &stats, "all", "asked");
    assert_eq!((pulled, files), (said, 0));
}
