//! Names of listings that are looked up one by one (spec L2.5): a name that comes or goes touches who looked for it, and who went
//! through all of them.

use super::{Project, ask, ask_memory, jobs_command, shown};
use std::path::Path;

/// What is asked, and whether the answer stays when `z` comes, when `q` comes, and when `y` goes. `S` stands for the listing of a directory
/// that has `x` and `y`.
const ASKED: &[(&str, [bool; 3])] = &[
    ("S.x", [true, true, true]),
    ("S.z or \"no\"", [false, true, true]),
    ("S ? y", [true, true, false]),
    ("builtins.attrNames S", [false, false, false]),
    ("(builtins.mapAttrs (n: v: n + v) S).x", [true, true, true]),
    ("builtins.mapAttrs (n: v: n + v) S ? z", [false, true, true]),
    ("(S // { a = \"1\"; }).x", [true, true, true]),
    ("({ a = \"1\"; } // S).z or \"no\"", [false, true, true]),
    ("(removeAttrs S [ \"x\" ]).y", [true, true, false]),
    ("removeAttrs { x = \"1\"; z = \"2\"; } (builtins.attrNames S)", [false, true, true]),
    ("builtins.intersectAttrs { x = 1; z = 1; a = 1; } (S // { b = 1; c = 1; })", [false, true, true]),
    ("builtins.intersectAttrs S { x = 1; }", [true, true, true]),
    ("(builtins.listToAttrs (map (name: { inherit name; value = \"v\"; }) (builtins.attrNames S))).x", [true, true, true]),
    ("(builtins.listToAttrs (map (n: { name = n; value = \"v\"; }) (builtins.attrNames S))) ? z", [false, true, true]),
    // The name that comes gives another one.
    ("(builtins.listToAttrs (map (n: { name = if n == \"z\" then \"x\" else n; value = n; }) (builtins.attrNames S))).x", [false, false, false]),
    ("(builtins.listToAttrs (map (n: { name = \"x\"; value = n; }) (builtins.attrNames S))).x", [false, false, false]),
    ("builtins.length (builtins.attrValues S)", [false, false, false]),
    ("({ x, ... }: x) S", [true, true, true]),
    ("({ x, y }: x) S", [false, false, false]),
    ("with S; x", [true, true, true]),
    ("builtins.toJSON S", [false, false, false]),
    ("S == { }", [false, false, false]),
    ("builtins.typeOf S", [true, true, true]),
    ("builtins.elem \"x\" (builtins.attrNames S)", [false, false, false]),
    // Of an empty list nobody looks at the function, which may print something or fail.
    ("(builtins.listToAttrs (map (builtins.trace \"seen\" (name: { inherit name; value = 1; })) (builtins.attrNames (removeAttrs S [ \"x\" ])))) ? z", [false, false, false]),
    ("(builtins.listToAttrs (map (throw \"seen\") (builtins.attrNames (removeAttrs S [ \"x\" \"y\" ])))) ? x", [false, false, false]),
    ("(S // builtins.readDir ./other).x", [true, true, true]),
    ("(S // builtins.readDir ./other).o", [true, true, true]),
    ("[ S.x ] ++ builtins.attrNames (builtins.intersectAttrs { y = 1; } S)", [true, true, false]),
    // Both take the same value, one of them looks at more.
    ("S.x + builtins.concatStringsSep \",\" (builtins.attrNames S)", [false, false, false]),
];

#[test]
fn a_name_that_comes_or_goes_touches_who_looked_for_it() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let dir = scratch.path().join("project");
    for (index, (asked, stays)) in ASKED.iter().enumerate() {
        let cache = scratch.path().join(format!("cache{index}"));
        let project = Project::plain(&dir, &format!("let S = builtins.readDir ./dir; in {asked}"));
        lay_out(&dir);
        assert!(!ask_memory(&cache, &project).1, "{asked}: nothing is known yet");
        let edits: [(&str, &dyn Fn()); 3] = [
            ("z came", &|| std::fs::write(dir.join("dir/z"), "").expect("written")),
            ("q came", &|| std::fs::write(dir.join("dir/q"), "").expect("written")),
            ("y went", &|| std::fs::remove_file(dir.join("dir/y")).expect("removed")),
        ];
        for ((what, edit), stays) in edits.into_iter().zip(stays) {
            lay_out(&dir);
            assert!(ask_memory(&cache, &project).1, "{asked}: nothing has changed");
            edit();
            let (output, hit) = ask_memory(&cache, &project);
            assert_eq!(shown(&output), shown(&ask(&cache, "off", &project)), "{asked} after {what}");
            assert_eq!(hit, *stays, "{asked} after {what}");
        }
    }
}

/// What is asked of a file of bindings, and whether the answer stays when `z` is bound, when `q` is, when `y` is bound to something else, and
/// when something is written that is an error. `S` stands for what the file gives.
const ASKED_OF_BINDINGS: &[(&str, [bool; 4])] = &[
    ("S.x", [true, true, true, false]),
    ("S.x + S.y", [true, true, false, false]),
    ("S.z or \"no\"", [false, true, true, false]),
    ("(S // { a = 1; }).x", [true, true, true, false]),
    ("(builtins.mapAttrs (n: v: v) S).x", [true, true, true, false]),
    ("builtins.length (builtins.attrNames S)", [false, false, false, false]),
    // By way of the scope.
    ("S.from_y", [true, true, false, false]),
    ("S.from_z", [false, true, true, false]),
    ("(builtins.unsafeGetAttrPos \"x\" S).line", [false, false, false, false]),
    ("builtins.hashFile \"sha256\" ./all.nix", [false, false, false, false]),
];

#[test]
fn a_binding_that_comes_or_goes_touches_who_looked_for_it() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let dir = scratch.path().join("project");
    let filler: String = (0..80).map(|i| format!("  one_of_many_bindings_that_nobody_asks_for_{i} = {i};\n")).collect();
    let file = |more: &str, y: u32| {
        format!(
            "# A file.\n{{ }}: self: with self; {{\n{filler}  from_y = y + 1; from_z = self.z or \"none\"; # A remark.\n{more}  x = \"x\"; y = {y};\n}}\n"
        )
    };
    let write = |text: String| std::fs::write(dir.join("all.nix"), text).expect("written");
    for (index, (asked, stays)) in ASKED_OF_BINDINGS.iter().enumerate() {
        let cache = scratch.path().join(format!("cache{index}"));
        let asked_of = asked.replace("S.y", "toString S.y");
        let project = Project::plain(&dir, &format!("let S = import ./all.nix {{ }} S; in {asked_of}"));
        write(file("", 1));
        assert!(!ask_memory(&cache, &project).1, "{asked}: nothing is known yet");
        let edits = [
            ("z is bound", file("  z = 1;\n", 1)),
            ("q is bound", file("  q = 1;\n", 1)),
            ("y is bound to something else", file("", 2)),
            ("there is an error", file("  q = ;\n", 1)),
        ];
        for ((what, text), stays) in edits.into_iter().zip(stays) {
            write(file("", 1));
            assert!(ask_memory(&cache, &project).1, "{asked}: nothing has changed");
            write(text);
            let (output, hit) = ask_memory(&cache, &project);
            assert_eq!(shown(&output), shown(&ask(&cache, "off", &project)), "{asked} after {what}");
            assert_eq!(hit, *stays, "{asked} after {what}");
        }
        // The same bindings elsewhere.
        write(format!("# Another remark.\n\n{}", file("  # A remark.\n", 1)));
        let (output, hit) = ask_memory(&cache, &project);
        assert_eq!(shown(&output), shown(&ask(&cache, "off", &project)), "{asked} after remarks");
        assert_eq!(hit, !asked.contains("Pos") && !asked.contains("hash"), "{asked} after remarks");
    }
}

fn lay_out(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir.join("dir"));
    for name in ["dir/x", "dir/y", "other/o"] {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().expect("below")).expect("made");
        std::fs::write(path, "").expect("written");
    }
}

#[test]
fn a_large_set_that_is_no_longer_of_the_language_vouches_for_nothing() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (cache, root) = (scratch.path().join("cache"), scratch.path().join("project"));
    let project = Project::plain(&root, "{ }");
    let program = r#"{ arg ? "" }: let set = import ./all.nix { }; job = name: builder: derivation { inherit name builder; system = "s"; };
      in { one = job "one" set.n1; none = job "none" (builtins.seq set "none"); }"#;
    std::fs::write(root.join("default.nix"), program).expect("written");
    let write = |last: &str| {
        let bindings: String = (0..400).map(|n| format!("  n{n} = \"{n}\";\n")).collect();
        std::fs::write(root.join("all.nix"), format!("self: with self; {{\n{bindings}  last = {last};\n}}\n")).expect("written");
        // States vouch for what is old enough.
        std::thread::sleep(std::time::Duration::from_millis(2100));
    };
    let lines = |memo, flags: &[&str]| {
        let output = jobs_command(&cache, memo, 1, &project).args(flags).output().expect("firn runs");
        String::from_utf8(output.stdout).expect("JSON")
    };
    for last in ["1", "1 +", "2", "1 +", "1"] {
        write(last);
        // Each form is a question of its own, and all see the same file.
        for flags in [&["--meta"][..], &[], &["--meta"], &[]] {
            assert_eq!(lines("disk", flags), lines("off", flags), "{last}, {flags:?}");
        }
        assert_eq!(lines("off", &[]).contains("error"), last == "1 +");
    }
}
