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
    match random.below(26) {
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
        19..=24 => seen_of_a_set(random, above, depth),
        _ => {
            let file = random.pick(&EXPRESSIONS[1..]).trim_end_matches("/default.nix").to_owned();
            // Files import only what comes after them: no circles.
            if above == "./" { format!("(import {above}{file})") } else { inner(random) }
        }
    }
}

/// A set of texts, most names of which come from listings.
fn set(random: &mut Random, above: &str, depth: usize) -> String {
    if depth == 0 {
        return match random.below(6) {
            4 | 5 => format!("(let s = import {above}{BINDINGS} s; in s)"),
            0 => format!("{{ {} = \"own\"; }}", random.pick(&NAMES)),
            1 => format!("(builtins.readDir {above}.)"),
            _ => format!("(builtins.readDir {above}dir)"),
        };
    }
    let [one, other] = [(); 2].map(|()| set(random, above, depth - 1));
    let name = *random.pick(&NAMES);
    match random.below(11) {
        0 | 1 => format!("({one} // {other})"),
        2 => format!("(builtins.mapAttrs (n: v: n + v) {one})"),
        3 => format!("(builtins.mapAttrs (n: v: if n == \"{name}\" then {} else v) {one})", expression(random, above, depth - 1)),
        4 => format!("(removeAttrs {one} [ \"{name}\" ])"),
        5 => format!("(removeAttrs {one} (builtins.attrNames {other}))"),
        6 => format!("(builtins.intersectAttrs {one} {other})"),
        7 => format!("(builtins.listToAttrs (map (name: {{ inherit name; value = name + \"v\"; }}) (builtins.attrNames {one})))"),
        8 => format!("(let s = {other}; in builtins.listToAttrs (map (name: {{ inherit name; value = s.${{name}} or \"no\"; }}) (builtins.attrNames {one})))"),
        // Here a name that is added gives another one.
        9 => format!("(builtins.listToAttrs (map (n: {{ name = if n == \"z\" then \"{name}\" else n; value = n; }}) (builtins.attrNames {one})))"),
        _ => format!("({{ {name} = {}; }} // {one})", expression(random, above, depth - 1)),
    }
}

/// The file that gives a large set, which is seen name by name.
pub const BINDINGS: &str = "all.nix";

/// Its content, one binding to a line.
pub fn bindings(random: &mut Random) -> String {
    let filler: String = (0..70).map(|i| format!("  one_of_many_bindings_that_nobody_asks_for_{i} = \"filler {i}\";\n")).collect();
    let mut text = format!("self: with self; {{\n{filler}");
    for name in NAMES {
        text += &binding(random, name);
    }
    text + "}\n"
}

fn binding(random: &mut Random, name: &str) -> String {
    match random.below(8) {
        0 => String::new(),
        1 => format!("  {name} = {} + \"!\";\n", random.pick(&NAMES)),
        2 => format!("  {name} = with {{ inside = \"1\"; }}; let {name} = inside; in {name};\n"),
        3 => format!("  inherit (self // {{ {name} = \"{}\"; }}) {name};\n", random.below(9)),
        4 => format!("  \"{name}\" = {};\n", outside(random)),
        _ => format!("  {name} = {};\n", outside(random)),
    }
}

/// An expression that imports nothing: no circles.
fn outside(random: &mut Random) -> String {
    let own = format!("(let s = import ./{BINDINGS} s; in s)");
    expression(random, "./", 1).replace("(import ./", "(toString ./").replace(&own, "{ x = \"1\"; }")
}

/// The same with one name bound to something else, or no longer bound; now and then something else about it is different.
#[allow(dead_code, reason = "tests that edit nothing have no use for it")]
pub fn rebound(random: &mut Random, text: &str) -> String {
    let name = *random.pick(&NAMES);
    let binds = |line: &&str| {
        let line = line.trim_start();
        let bound = line.strip_prefix("inherit").map_or(line, |rest| rest.rsplit(' ').next().unwrap_or(rest));
        bound.trim_start_matches('"').strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '"', ';']))
    };
    let kept: Vec<&str> = text.lines().filter(|line| !binds(line)).collect();
    let whole = kept.join("\n");
    let Some(end) = whole.rfind('}') else { return bindings(random) };
    let more = match random.below(12) {
        0 => "  one_of_many_bindings_that_nobody_asks_for_1 = 2;\n".to_owned(),
        1 => "  broken = ;\n".to_owned(),
        2 => "  late = 1;\n".to_owned(),
        3 => {
            let over = *random.pick(&["with builtins;", "with self // { };", "", "with { x = \"with\"; };"]);
            return text.replacen("with self;", over, 1);
        }
        4 => return bindings(random),
        _ => binding(random, name),
    };
    format!("{}{more}}}\n", &whole[..end])
}

/// Names that listings have or may come to have.
const NAMES: [&str; 5] = ["x", "y", "z", "w", "d0"];

/// A text that says something of such a set.
fn seen_of_a_set(random: &mut Random, above: &str, depth: usize) -> String {
    let deep = random.below(3).min(depth);
    let one = set(random, above, deep);
    let name = *random.pick(&NAMES);
    let inner = |random: &mut Random| expression(random, above, depth - 1);
    match random.below(14) {
        0..=2 => format!("({one}.{name} or \"none\")"),
        3 => format!("(toString ({one} ? {name}))"),
        4 => format!("(let s = {one}; in if s ? {name} then s.{name} else {})", inner(random)),
        5 => format!("(builtins.concatStringsSep \",\" (builtins.attrNames {one}))"),
        6 => format!("(toString (builtins.length (builtins.attrValues {one})))"),
        7 => format!("(({{ {name} ? \"absent\", ... }}: {name}) {one})"),
        8 => format!("(({{ x ? \"no x\", y ? \"no y\" }}: x + y) (builtins.intersectAttrs {{ x = 1; y = 1; }} {one}))"),
        9 => format!("(toString ({one} == {}))", set(random, above, 0)),
        10 => format!("(let {name} = \"outer\"; in with {one}; {name} + (if builtins.isAttrs {one} then \"set\" else \"\"))"),
        11 => format!("(toString (builtins.elem \"{name}\" (builtins.attrNames {one})))"),
        12 => format!("(with {{ {name} = \"outer\"; }}; with {one}; {name})"),
        _ => format!("(toString (builtins.hasAttr \"{name}\" {one}) + toString (builtins.length (builtins.attrNames {one})))"),
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
    let d = set(random, "./", 1);
    // Half of the time the call itself looks, not the parts of what it gives.
    let (open, shut) = *random.pick(&[("", ""), ("builtins.fromJSON (builtins.toJSON ", ")")]);
    let parts = format!("g = x: if x == tag then a else {g}; h = n: rec {{ i = {h} + n; j = i + a; }}; d = {d}; names = builtins.attrNames {d};");
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
    match random.below(9) {
        4 => format!("a{}", 2 + random.below(3)),
        5..=7 => format!("(c{call}.d.{} or \"none\")", random.pick(&NAMES)),
        8 => format!("(builtins.concatStringsSep \",\" c{call}.names)"),
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
    let listed = set(random, "./", 1);
    text += &format!("  listed = {{ recurseForDerivations = true; }} // builtins.mapAttrs (n: v: job \"l\" (n + v)) {listed};\n");
    text += "  more = { recurseForDerivations = s1 != \"0\"; k = job \"k\" s3; };\n}\n";
    // Half of the time the outermost set has names from outside, too.
    match random.below(2) {
        0 => text.replacen("in {\n", &format!("in builtins.mapAttrs (n: v: job \"o\" (n + v)) {} // {{\n", set(random, "./", 1)), 1),
        _ => text,
    }
}
