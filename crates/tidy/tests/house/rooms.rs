//! The order of the rooms (decision 0001): each crate depends only on crates before it.

use crate::tree::{File, files, judge};

/// The rooms in order. A room that is planned and not yet built keeps its place.
const ROOMS: [&str; 14] = [
    "source", "text", "syntax", "ir", "store", "host", "value", "memo", "eval", "builtins", "cache", "remote", "flake",
    "cli",
];
/// Crates beside the house: they may look at rooms, no room looks at them.
const BESIDE: [&str; 2] = ["tidy", "bench"];

struct Crate {
    place: String,
    dependencies: Vec<String>,
    has_lints: bool,
}

fn parse(manifest: &File) -> Crate {
    let directory = manifest.path.trim_end_matches("/Cargo.toml");
    let place = directory.rsplit('/').next().unwrap_or_default().to_owned();
    let mut section = String::new();
    let mut dependencies = Vec::new();
    let mut has_lints = false;
    for (_, line) in manifest.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            has_lints |= section.starts_with("lints");
        } else if section.ends_with("dependencies")
            && let Some(name) = line.strip_prefix("firn-")
        {
            dependencies.push(name.split(['.', ' ', '=']).next().unwrap_or_default().to_owned());
        }
    }
    Crate { place, dependencies, has_lints }
}

fn crates() -> Vec<Crate> {
    let files = files();
    let manifests = files.iter().filter(|f| f.path.ends_with("/Cargo.toml") && !f.path.starts_with("fuzz/"));
    manifests.map(parse).collect()
}

#[test]
fn each_room_depends_only_on_rooms_before_it() {
    let order = |name: &str| ROOMS.iter().position(|&room| room == name);
    let mut complaints = Vec::new();
    for krate in crates() {
        let place = order(&krate.place);
        if place.is_none() && !BESIDE.contains(&krate.place.as_str()) {
            complaints.push(format!("crate `{}` has no place in the order of rooms", krate.place));
            continue;
        }
        for dependency in &krate.dependencies {
            let fine = order(dependency).is_some_and(|before| place.is_none_or(|place| before < place));
            if !fine {
                complaints.push(format!("`{}` depends on `{dependency}`, which does not come before it", krate.place));
            }
        }
    }
    judge(&complaints);
}

#[test]
fn the_order_is_the_one_that_is_written_down() {
    let files = files();
    let text = files.iter().find(|f| f.path == "ARCHITECTURE.md").expect("there is an ARCHITECTURE.md");
    let rows: Vec<&str> = text.text.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next()).collect();
    let built: Vec<String> = crates().into_iter().map(|c| c.place).collect();
    let expected: Vec<&str> = ROOMS.into_iter().filter(|room| built.iter().any(|b| b == room)).collect();
    let written: Vec<&str> = rows.into_iter().filter(|row| ROOMS.contains(row)).collect();
    assert_eq!(written, expected, "the table of ARCHITECTURE.md lists the rooms that exist, in order");
}

#[test]
fn every_crate_has_lints_and_documentation() {
    let files = files();
    let mut complaints = Vec::new();
    for krate in crates() {
        if !krate.has_lints {
            complaints.push(format!("`{}` does not take up the workspace's lints", krate.place));
        }
    }
    for file in files.iter().filter(|f| f.is("rs") && f.path.contains("/src/")) {
        if !file.text.starts_with("//!") {
            complaints.push(format!("{}: does not begin with what it is (`//!`)", file.path));
        }
    }
    judge(&complaints);
}
