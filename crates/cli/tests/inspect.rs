//! `firn why`, `firn affected` and `firn watch` on trees that change: what they say of each change, in text and JSON.
#![allow(clippy::disallowed_methods, reason = "a test changes files itself; the door is for the evaluator")]

#[path = "inspect/project.rs"]
mod project;

use project::Project;

#[test]
fn what_an_answer_rests_on_is_a_tree_and_what_changed_comes_first() {
    let project = Project::new();
    project.write("default.nix", "{ a = import ./lib/a.nix; c = builtins.pathExists ./x; }");
    project.write("lib/a.nix", "1");
    let tree = |source: &str| {
        format!("a of . rests on 2 observations ({source})\nTREE\n├── default.nix  code\n└── lib/a.nix  code\n")
    };
    assert_eq!(project.firn(&["why", "-f", ".", "a"]), tree("evaluated now"));
    assert_eq!(project.firn(&["why", "-f", ".", "a"]), tree("remembered"));
    project.write("lib/a.nix", "2 + 3");
    let changed = "evaluated again, because of what changed since the nearest earlier answer:\n  code in lib/a.nix changed";
    let told = project.firn(&["why", "-f", ".", "a"]);
    assert!(told.starts_with(changed) && told.ends_with(&tree("evaluated now")), "{told}");
    let told = project.firn(&["why", "-f", ".", "--changes", "a"]);
    assert!(told.starts_with("an earlier answer holds no more, because of what changed since:\n  code in"), "{told}");
    // Going back makes the first answer one again, and the second none.
    project.write("lib/a.nix", "1");
    let told = project.firn(&["why", "-f", ".", "a"]);
    assert!(told.contains("code in lib/a.nix changed") && told.ends_with(&tree("remembered")), "{told}");
}

#[test]
fn everything_that_changed_is_named() {
    let project = Project::new();
    let text = "{ all = [ (import ./a.nix) (builtins.attrNames (builtins.readDir ./d)) (builtins.pathExists ./x)
        (builtins.pathExists ./y) (builtins.getEnv \"V\") (builtins.readFileType ./t) (import ./dir) ]; }";
    project.write("default.nix", text);
    for (file, text) in [("a.nix", "1"), ("d/one", ""), ("y", ""), ("t", ""), ("dir/default.nix", "1")] {
        project.write(file, text);
    }
    project.firn(&["why", "-f", ".", "all"]);
    project.write("a.nix", "22");
    project.write("d/two", "");
    project.write("x", "");
    project.remove("y");
    project.remove("t");
    project.write("t/inside", "");
    project.remove("dir/default.nix");
    project.write("dir/default.nix/default.nix", "1");
    let told = project.firn_with(&["why", "-f", ".", "--changes", "--all", "all"], &[("V", "1")]);
    for line in [
        "  code in a.nix changed (",
        "  listing of d changed (",
        "  x appeared\n",
        "  y disappeared\n",
        "  variable V was set\n",
        "  type of t changed",
        "dir",
    ] {
        assert!(told.contains(line), "{line:?} in {told}");
    }
}

#[test]
fn files_and_paths_are_lists_and_json_says_the_same() {
    let project = Project::new();
    project.write("default.nix", "{ a = import ./lib/a.nix; b = builtins.pathExists ./none; c = builtins.readDir ./lib; }");
    project.write("lib/a.nix", "1");
    project.write("lib/unused.nix", "1");
    assert_eq!(project.firn(&["why", "-f", ".", "--files"]), "TREE/default.nix\nTREE/lib/a.nix\n");
    assert_eq!(
        project.firn(&["why", "-f", ".", "--paths"]),
        "TREE/default.nix\nTREE/lib\nTREE/lib/a.nix\nTREE/none\n"
    );
    let json = project.firn(&["why", "-f", ".", "--json"]);
    let text = |path: &str, kind: &str, absent: bool| {
        format!("\"absent\":{absent},") + "\"digest\":\"" + &format!("…\",\"durability\":\"medium\",\"kind\":\"{kind}\",\"path\":\"TREE{path}\",\"place\":\"{path}\",\"role\":\"entry\"")
    };
    let json = project::without_digests(&json);
    for expected in [
        text("/default.nix", "code", false),
        text("/lib", "directory", false),
        text("/none", "existence", true),
        "\"error\":null".to_owned(),
        "\"source\":\"remembered\"".to_owned(),
        "\"outdated\":[]".to_owned(),
        "\"trees\":{\"entry\":\"TREE\",\"root\":\"/\",\"store\":\"/nix/store\"},\"version\":1}".to_owned(),
    ] {
        assert!(json.contains(&expected), "{expected} in {json}");
    }
}

#[test]
fn what_fails_has_been_looking_too() {
    let project = Project::new();
    project.write("default.nix", "{ a = import ./missing.nix; }");
    let output = project.command(&["why", "-f", ".", "--paths", "a"]).output().expect("firn runs");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stdout).replace(&project.tree(), "TREE");
    assert_eq!(told, "TREE/default.nix\nTREE/missing.nix\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.nix' does not exist"));
}

fn git(project: &Project, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.arg("-C").arg(project.root()).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let done = command.output().expect("git runs");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A checkout with four attributes that were asked for.
fn asked() -> Project {
    let project = Project::new();
    let text = "{ a = import ./a.nix; b = import ./b.nix; list = builtins.attrNames (builtins.readDir ./d);
        there = builtins.pathExists ./maybe/deep.nix; linked = import ./link; const = 1; }";
    project.write("default.nix", text);
    for (file, text) in [("a.nix", "1"), ("b.nix", "2"), ("d/one", ""), ("far/l.nix", "3")] {
        project.write(file, text);
    }
    std::os::unix::fs::symlink("far/l.nix", project.root().join("link")).expect("a link");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    ask_all(&project);
    project
}

const ALL: [&str; 6] = ["a", "b", "const", "linked", "list", "there"];

fn ask_all(project: &Project) {
    for attribute in ALL {
        project.firn(&["eval", "--memo", "disk", "-f", ".", attribute]);
    }
}

fn affected(project: &Project, arguments: &[&str]) -> Vec<String> {
    let told = project.firn(&[&["affected"], arguments].concat());
    told.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_change_affects_what_looked_at_it() {
    let project = asked();
    assert_eq!(affected(&project, &["--since", "HEAD"]), [""; 0]);
    project.write("a.nix", "11");
    assert_eq!(affected(&project, &["--since", "HEAD"]), ["a"]);
    assert_eq!(affected(&project, &["--files", "a.nix"]), ["a"]);
    assert_eq!(project.firn(&["affected", "--since", "HEAD"]), "a\t.\teval\n");
    project.write("d/two", "");
    assert_eq!(affected(&project, &["--since", "HEAD"]), ["a", "list"]);
    project.write("maybe/deep.nix", "");
    assert_eq!(affected(&project, &["--since", "HEAD"]), ["a", "list", "there"]);
    project.write("far/l.nix", "4");
    assert_eq!(affected(&project, &["--since", "HEAD"]), ["a", "linked", "list", "there"]);
    let told = project.firn(&["affected", "--since", "HEAD", "--why"]);
    for reason in ["  code in a.nix changed", "  listing of d changed", "  maybe/deep.nix appeared\n", "  code in far/l.nix"] {
        assert!(told.contains(reason), "{reason:?} in {told}");
    }
    // Asked again, and committed: the answers hold now, and may have been others before.
    ask_all(&project);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "second"]);
    assert_eq!(affected(&project, &["--since", "HEAD"]), [""; 0]);
    assert_eq!(affected(&project, &["--since", "HEAD~1"]), ["a", "linked", "list", "there"]);
    let json = project.firn(&["affected", "--since", "HEAD~1", "--json"]);
    // Of the two answers that are known, either says why.
    assert!(json.starts_with("[{\"asked\":\"eval\",\"attribute\":\"a\",\"because\":[\""), "{json}");
    assert!(json.contains("a.nix was touched (code)") || json.contains("code in a.nix changed"), "{json}");
    project.write("default.nix", "{ a = 1; b = 2; const = 1; linked = 1; list = 1; there = 1; }");
    assert_eq!(affected(&project, &["--since", "HEAD"]), ALL);
}

#[test]
fn what_is_known_no_more_is_listed() {
    let project = asked();
    // An old answer that looked at less than a new one would is no proof.
    project.write("b.nix", "import ./c.nix");
    project.write("c.nix", "5");
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "b looks further"]);
    project.write("c.nix", "66");
    assert_eq!(affected(&project, &["--since", "HEAD"]), ["b"]);
    assert_eq!(affected(&project, &["--files", "c.nix"]), ["b"]);
    // Another checkout's answers are not this one's.
    let other = Project::new();
    other.write("x.nix", "1");
    assert_eq!(affected(&other, &["--files", "x.nix"]), [""; 0]);
    let told = project.command(&["affected"]).output().expect("firn runs");
    assert!(String::from_utf8_lossy(&told.stderr).contains("what changed? Give either '--since' or '--files'"));
    let told = project.command(&["affected", "--since", "nowhere"]).output().expect("firn runs");
    assert_eq!(told.status.code(), Some(1));
}

#[test]
fn affected_is_never_too_little_over_random_edits() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % end
    };
    let project = asked();
    let answer = |attribute: &str| {
        let output = project.command(&["eval", "--memo", "off", "-f", ".", attribute]).output().expect("firn runs");
        (output.status.code(), output.stdout)
    };
    for _ in 0..12 {
        let before: Vec<_> = ALL.iter().map(|attribute| answer(attribute)).collect();
        for _ in 0..=random(2) {
            match random(7) {
                0 => project.write("a.nix", &random(5).to_string()),
                1 => project.write("b.nix", ["1", "import ./a.nix", "import ./d/one"][random(3)]),
                2 => project.write(&format!("d/{}", random(3)), "7"),
                3 => project.write("far/l.nix", &random(3).to_string()),
                4 if project.root().join("maybe").exists() => project.remove("maybe"),
                4 => project.write("maybe/deep.nix", "1"),
                5 => project.write("unrelated", "x"),
                _ => project.write("d/one", "8"),
            }
        }
        let listed = affected(&project, &["--since", "HEAD"]);
        for (attribute, before) in ALL.iter().zip(before) {
            let now = answer(attribute);
            assert!(now == before || listed.iter().any(|one| one == attribute), "{attribute} in {listed:?}: {before:?}, now {now:?}");
        }
        if random(2) == 0 {
            for attribute in ALL {
                drop(project.command(&["eval", "--memo", "disk", "-f", ".", attribute]).output());
            }
        }
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "--allow-empty", "-m", "next"]);
    }
}

/// A `firn watch` that runs, and what it has printed so far on both streams.
struct Watching {
    child: std::process::Child,
    heard: std::sync::mpsc::Receiver<String>,
    /// Lines that nobody has waited for yet: the two streams come in any order.
    waiting: Vec<String>,
}

impl Watching {
    fn start(project: &Project, arguments: &[&str]) -> Watching {
        let mut child = project.command(&[&["watch"], arguments].concat()).spawn().expect("firn starts");
        let (send, heard) = std::sync::mpsc::channel();
        let streams: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("piped")), Box::new(child.stderr.take().expect("piped"))];
        for stream in streams {
            let send = send.clone();
            std::thread::spawn(move || {
                use std::io::BufRead;
                for line in std::io::BufReader::new(stream).lines().map_while(Result::ok) {
                    if send.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Watching { child, heard, waiting: Vec::new() }
    }

    /// Waits for a line that begins so.
    fn expect(&mut self, begins: &str) {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            if let Some(at) = self.waiting.iter().position(|line| line.starts_with(begins)) {
                self.waiting.remove(at);
                return;
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            let line = self.heard.recv_timeout(left).unwrap_or_else(|_| panic!("no {begins:?} in {:?}", self.waiting));
            self.waiting.push(line);
        }
    }

    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let done = std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
        assert!(done.success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // Nothing to do where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watching_tells_what_changed_and_the_new_answer() {
    let project = Project::new();
    project.write("default.nix", "{ a = import ./a.nix; l = { x = 1; y = import ./a.nix; z = 3; }; }");
    project.write("a.nix", "1");
    let mut watching = Watching::start(&project, &["-f", ".", "a"]);
    watching.expect("1");
    watching.expect("watching");
    project.write("a.nix", "22");
    watching.expect("code in a.nix changed");
    watching.expect("22");
    watching.expect("watching");
    project.write("a.nix", "throw \"no\"");
    watching.expect("code in a.nix changed");
    watching.expect("       error: no");
    watching.expect("watching");
    project.remove("a.nix");
    watching.expect("file a.nix disappeared");
    watching.expect("       error: path '");
    watching.expect("watching");
    project.write("a.nix", "22");
    watching.expect("a.nix appeared");
    watching.expect("22");
    watching.expect("watching");
    project.write("a.nix", "20 + 2");
    watching.expect("code in a.nix changed");
    watching.expect("the answer is the same");
    watching.expect("watching");
    assert_eq!(watching.interrupt(), Some(130));

    let mut watching = Watching::start(&project, &["--json", "--pretty", "-f", ".", "l"]);
    watching.expect("}");
    watching.expect("watching");
    project.write("a.nix", "5");
    watching.expect("code in a.nix changed");
    watching.expect("-  \"y\": 22,");
    watching.expect("+  \"y\": 5,");
    watching.expect("watching");
    assert_eq!(watching.interrupt(), Some(130));
}

#[test]
fn watching_a_flake_sees_its_files() {
    let project = Project::new();
    project.write("flake.nix", "{ outputs = _: { v = import ./v.nix; }; }");
    project.write("v.nix", "1");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    let mut watching = Watching::start(&project, &[".#v"]);
    watching.expect("1");
    watching.expect("watching");
    project.write("v.nix", "2");
    watching.expect("file v.nix changed");
    watching.expect("2");
    watching.expect("watching");
    project.write("flake.nix", "{ outputs = _: { v = }; }");
    watching.expect("file flake.nix changed");
    watching.expect("error: syntax error");
    watching.expect("watching");
    project.write("flake.nix", "{ outputs = _: { v = 3; }; }");
    watching.expect("3");
    assert_eq!(watching.interrupt(), Some(130));
}

#[test]
fn files_of_a_flake_are_named_where_they_lie() {
    let project = Project::new();
    project.write("flake.nix", "{ outputs = _: { v = import ./sub/v.nix; w = 1; }; }");
    project.write("sub/v.nix", "1");
    project.write("unused.nix", "1");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    assert_eq!(project.firn(&["why", "--files", ".#v"]), "TREE/flake.nix\nTREE/sub/v.nix\n");
    assert_eq!(project.firn(&["why", "--files", ".#w"]), "TREE/flake.nix\n");
    let told = project.firn(&["why", ".#v"]);
    assert!(told.contains("TREE\n├── flake.nix  read\n└── sub/v.nix  read\n"), "{told}");
}
