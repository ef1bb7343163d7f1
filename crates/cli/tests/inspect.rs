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
        format!("a of . rests on 3 observations ({source})\nTREE\n├── default.nix  read\n└── lib/a.nix  read\nenvironment\n└── home directory\n")
    };
    assert_eq!(project.firn(&["why", "-f", ".", "a"]), tree("evaluated now"));
    assert_eq!(project.firn(&["why", "-f", ".", "a"]), tree("remembered"));
    project.write("lib/a.nix", "2 + 3");
    let changed = "evaluated again, because of what changed since the nearest earlier answer:\n  content of lib/a.nix changed";
    let told = project.firn(&["why", "-f", ".", "a"]);
    assert!(told.starts_with(changed) && told.ends_with(&tree("evaluated now")), "{told}");
    let told = project.firn(&["why", "-f", ".", "--changes", "a"]);
    assert!(told.starts_with("an earlier answer holds no more, because of what changed since:\n  content of"), "{told}");
    // Going back makes the first answer one again, and the second none.
    project.write("lib/a.nix", "1");
    let told = project.firn(&["why", "-f", ".", "a"]);
    assert!(told.contains("content of lib/a.nix changed") && told.ends_with(&tree("remembered")), "{told}");
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
        "  content of a.nix changed (",
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
        text("/default.nix", "file", false),
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
