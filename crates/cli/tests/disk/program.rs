//! Random programs that look at the outside in every way that is observed.

use crate::random::Random;

/// Files that hold expressions.
pub const EXPRESSIONS: [&str; 4] = ["e0.nix", "e1.nix", "e2.nix", "sub/default.nix"];
/// Files that hold data.
pub const DATA: [&str; 4] = ["d0", "d1", "dir/x", "dir/y"];

/// An expression that gives a string, for a file in the project's own directory (or one below it).
pub fn expression(random: &mut Random, above: &str, depth: usize) -> String {
    if depth == 0 {
        return format!("\"{}\"", random.below(3));
    }
    let inner = |random: &mut Random| expression(random, above, depth - 1);
    let file = format!("{above}{}", random.pick(&DATA));
    match random.below(20) {
        0 => format!("({} + {})", inner(random), inner(random)),
        1 => format!("(if builtins.pathExists {file} then builtins.readFile {file} else {})", inner(random)),
        2 => format!("(toString (builtins.pathExists {file}))"),
        3 => format!("(builtins.concatStringsSep \",\" (builtins.attrNames (builtins.readDir {above}dir)))"),
        4 => format!("(builtins.toJSON (builtins.readDir {above}dir))"),
        5 => format!("(if builtins.pathExists {file} then builtins.readFileType {file} else \"none\")"),
        6 => "(builtins.getEnv \"FIRN_TEST\")".to_owned(),
        7 => format!("(if builtins.getEnv \"FIRN_TEST\" == \"1\" then {} else {})", inner(random), inner(random)),
        8 => format!("(if builtins.pathExists {file} then \"${{{file}}}\" else \"-\")"),
        9 => format!("(toString {file})"),
        10 => format!("(if builtins.pathExists {file} then builtins.hashFile \"sha256\" {file} else {})", inner(random)),
        11 => format!("(builtins.trace \"t{}\" {})", random.below(3), inner(random)),
        12 => format!("(derivation {{ name = \"n\"; system = \"s\"; builder = {}; }}).drvPath", inner(random)),
        13 => format!("(builtins.path {{ path = {above}dir; name = \"dir\"; }})"),
        14 => format!("(builtins.toJSON (builtins.tryEval (if {} == \"1\" then throw \"no\" else 1)))", inner(random)),
        15 => format!(
            "(builtins.path {{ path = {above}dir; name = \"f\"; filter = p: t: baseNameOf p != \"{}\"; }})",
            random.pick(&["x", "y", "z"])
        ),
        16 => "(let at = builtins.unsafeGetAttrPos \"a\" { a = 1; }; in \"${toString at.line}:${toString at.column}\")".to_owned(),
        17 => format!("(if {} == \"1\" then toString __curPos.line else \"here\")", inner(random)),
        18 => format!("(builtins.trace (x: {}) \"traced\")", inner(random)),
        _ => {
            let file = random.pick(&EXPRESSIONS[1..]).trim_end_matches("/default.nix").to_owned();
            // Files import only what comes after them: no circles.
            if above == "./" { format!("(import {above}{file})") } else { inner(random) }
        }
    }
}

/// The content of an expression file, by its place in [`EXPRESSIONS`].
pub fn file(random: &mut Random, index: usize) -> String {
    match index {
        // Only the first imports others.
        0 => expression(random, "./", 3),
        3 => expression(random, "../", 2),
        _ => expression(random, "./", 2).replace("(import ./", "(toString ./"),
    }
}

/// The file that holds a function.
pub const FUNCTION: &str = "f.nix";

/// Its content. Calls of it that are equal are made once in a run (L1.4).
pub fn function(random: &mut Random) -> String {
    let [v, w, g, h] = [(); 4].map(|()| expression(random, "./", 2));
    // Half of the time the call itself looks, not the parts of what it gives.
    let (open, shut) = *random.pick(&[("", ""), ("builtins.fromJSON (builtins.toJSON ", ")")]);
    let parts = format!("g = x: if x == tag then a else {g}; h = n: rec {{ i = {h} + n; j = i + a; }};");
    format!("{{ a, tag ? \"1\" }}: {open}{{ v = a + {v}; w = {w}; }}{shut} // {{ {parts} }}")
}

/// Calls of the function, of which some are equal: `c0`, `c1` by how they are written, others if what they are given is.
pub fn calls(random: &mut Random, given: &[&str]) -> String {
    let mut text = String::from("  c0 = import ./f.nix { a = \"1\"; };\n  c1 = import ./f.nix { a = \"1\"; };\n");
    for i in 2..5 {
        // Small texts, so that some are equal and come from different places.
        let given = match random.below(3) {
            0 => (*random.pick(given)).to_owned(),
            _ => format!("toString (builtins.pathExists ./{})", random.pick(&DATA)),
        };
        let call = format!("import ./f.nix {{ a = a{i}; }}");
        // What the call is given may have been evaluated by others, for their own sake, or on the way, or not at all.
        let call = if random.below(3) == 0 { format!("builtins.seq a{i} ({call})") } else { call };
        text += &format!("  a{i} = {given} + \"\";\n  c{i} = {call};\n");
    }
    text
}

/// Something that a call gives.
pub fn given_by_a_call(random: &mut Random) -> String {
    let call = *random.pick(&[0, 1, 0, 1, 2, 3, 4]);
    match random.below(5) {
        4 => format!("a{}", 2 + random.below(3)),
        0 => format!("c{call}.v"),
        1 => format!("c{call}.w"),
        2 => format!("(c{call}.g \"{}\")", random.below(2)),
        _ => format!("(c{call}.h \"{}\").j", random.below(2)),
    }
}

/// The content of a data file.
pub fn data(random: &mut Random) -> String {
    ["a\n", "b\n", "c\n", "longer text\n"][random.below(4)].to_owned()
}

/// A program of several jobs that share what they read: whichever comes first evaluates it.
pub fn jobs(random: &mut Random) -> String {
    let mut text = String::from("{ arg ? \"\" }: let\n");
    for i in 0..4 {
        let shared = expression(random, "./", 2);
        let before = if i > 0 && random.below(2) == 0 { format!(" + s{}", random.below(i)) } else { String::new() };
        text += &format!("  s{i} = {shared}{before};\n");
    }
    text += &calls(random, &["s0", "s1", "s2", "s3", "arg"]);
    text += "  set = { inherit s0 s1; t = { inherit s2 s3; u = import ./e0.nix; }; };\n";
    text += "  job = name: text: derivation { inherit name; system = \"s\"; builder = text; };\nin {\n";
    let names = ["s0", "s1", "set.s0", "set.t.s2", "set.t.u", "(import ./e0.nix)", "(builtins.head [ set ]).t.s3", "arg"];
    for i in 0..6 {
        let mut part = || match random.below(4) {
            0 => (*random.pick(&names)).to_owned(),
            _ => given_by_a_call(random),
        };
        let (one, other) = (part(), part());
        let own = expression(random, "./", 1);
        text += &format!("  j{i} = job \"j{i}\" ({one} + (if {own} == \"1\" then {other} else {own}));\n");
    }
    text + "  more = { recurseForDerivations = s1 != \"0\"; k = job \"k\" s3; };\n}\n"
}
