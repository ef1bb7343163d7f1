//! `firn flake show`: the outputs of a flake as a tree. How deep an output is looked into depends on its name.

use crate::failure::Failure;
use crate::installable::Opened;
use crate::program::Invocation;
use firn_eval::{Error, ErrorKind, Machine};
use firn_source::{Pos, Symbol};
use firn_text::json::Tree;
use firn_value::{Attrs, Value};
use std::collections::BTreeMap;

/// What is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// What is in `legacyPackages`.
    pub legacy: bool,
    /// Outputs for other systems.
    pub all_systems: bool,
}

struct Show<'a> {
    invocation: &'a mut Invocation,
    machine: &'a Machine,
    system: &'a str,
    options: &'a Options,
    json: bool,
}

/// Where in the tree: names, what stands before this line, what stands before those below.
struct Place<'a> {
    path: &'a [String],
    head: String,
    below: String,
}

type Shown = Result<BTreeMap<Vec<u8>, Tree>, Failure>;

/// Shows the outputs; as JSON they are given back.
pub(super) fn run(invocation: &mut Invocation, opened: &Opened, options: &Options, json: bool) -> Result<Option<Tree>, Failure> {
    let head = format!("\x1b[1m{}\x1b[0m", opened.flake.flake.locked.show());
    let outputs = opened.outputs()?;
    let system = &opened.session.resolved.eval.system;
    let mut show = Show { invocation, machine: &opened.session.machine, system, options, json };
    let entries = show.visit(outputs, &Place { path: &[], head, below: String::new() })?;
    Ok(json.then_some(Tree::Object(entries)))
}

fn one(name: &str, value: &str) -> (Vec<u8>, Tree) {
    (name.as_bytes().to_vec(), Tree::text(value))
}

impl Show<'_> {
    fn set(&self, cell: Value) -> Result<Attrs, Failure> {
        Ok(self.machine.force_attrs(cell, Pos::NONE, "while evaluating a flake output")?)
    }

    fn text(&self, cell: Value) -> Result<String, Failure> {
        let text = self.machine.force_string(cell, Pos::NONE, "while evaluating a flake output")?;
        Ok(String::from_utf8_lossy(text.bytes()).into_owned())
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        if self.json { Ok(()) } else { self.invocation.tell(text.as_bytes()) }
    }

    /// What is left out is said where it would stand, or to the user beside the JSON.
    fn omit(&mut self, place: &Place<'_>, why: &str) -> Shown {
        if self.json {
            self.invocation.log.warn(format!("{} {why}", place.path.join(".")).as_bytes());
        }
        let text = match why.strip_prefix("omitted") {
            Some(rest) => format!("{} \x1b[35;1momitted\x1b[0m{rest}", place.head),
            None => format!("{} {why}", place.head),
        };
        self.line(&text)?;
        Ok(BTreeMap::new())
    }

    fn is_derivation(&self, cell: Value) -> Result<bool, Failure> {
        let value = self.machine.force(cell, Pos::NONE)?;
        let Some(kind) = value.as_attrs().and_then(|set| set.get(self.machine.names().type_)) else { return Ok(false) };
        let kind = self.machine.force(kind, Pos::NONE)?;
        Ok(kind.as_str().is_some_and(|text| text.bytes() == b"derivation"))
    }

    fn visit(&mut self, cell: Value, place: &Place<'_>) -> Shown {
        match self.visit_output(cell, place) {
            // NIX: what fails in a legacy set is passed over.
            Err(Failure::Error(_)) if place.path.first().is_some_and(|name| name == "legacyPackages") => {
                Ok(BTreeMap::new())
            }
            other => other,
        }
    }

    fn visit_output(&mut self, cell: Value, place: &Place<'_>) -> Shown {
        let names: Vec<&str> = place.path.iter().map(String::as_str).collect();
        match names[..] {
            []
            | ["defaultPackage" | "devShell" | "formatter" | "nixosConfigurations" | "nixosModules" | "defaultApp"
            | "templates" | "overlays" | "checks" | "packages" | "devShells" | "apps"]
            | ["checks" | "packages" | "devShells" | "apps", _] => self.recurse(cell, place),
            ["defaultPackage" | "devShell" | "formatter", system]
            | ["checks" | "packages" | "devShells", system, _] => {
                if !self.options.all_systems && system != self.system {
                    return self.omit(place, "omitted (use '--all-systems' to show)");
                }
                if self.is_derivation(cell)? {
                    return self.derivation(cell, place);
                }
                self.invocation.log.warn(format!("{} is not a derivation", place.path.join(".")).as_bytes());
                Ok(BTreeMap::new())
            }
            ["hydraJobs", ..] if self.is_derivation(cell)? => self.derivation(cell, place),
            ["hydraJobs", ..] | ["legacyPackages"] => self.recurse(cell, place),
            ["legacyPackages", ..] if !self.options.legacy => self.omit(place, "omitted (use '--legacy' to show)"),
            ["legacyPackages", system, ..] if !self.options.all_systems && system != self.system => {
                self.omit(place, "omitted (use '--all-systems' to show)")
            }
            ["legacyPackages", ..] if self.is_derivation(cell)? => self.derivation(cell, place),
            ["legacyPackages", _] => self.recurse(cell, place),
            ["legacyPackages", ..] => Ok(BTreeMap::new()),
            ["defaultApp", _] | ["apps", _, _] => self.app(cell, place),
            ["defaultTemplate"] | ["templates", _] => self.template(cell, place),
            ["overlay"] | ["overlays", _] => self.plain(place, "nixpkgs-overlay", "Nixpkgs overlay"),
            ["nixosConfigurations", _] => self.plain(place, "nixos-configuration", "NixOS configuration"),
            ["nixosModule"] | ["nixosModules", _] => self.plain(place, "nixos-module", "NixOS module"),
            _ => self.plain(place, "unknown", "unknown"),
        }
    }

    fn recurse(&mut self, cell: Value, place: &Place<'_>) -> Shown {
        self.line(&place.head)?;
        let set = self.set(cell)?;
        let mut entries = Vec::new();
        for (name, _, cell) in set.iter_by_name() {
            let path = [place.path, &[String::from_utf8_lossy(name.as_bytes()).into_owned()]].concat();
            if self.has_content(cell, &path) {
                entries.push((path, cell));
            }
        }
        let mut json = BTreeMap::new();
        let count = entries.len();
        for (index, (path, cell)) in entries.into_iter().enumerate() {
            let last = index + 1 == count;
            let name = path.last().cloned().unwrap_or_default();
            let branch = if last { "└───" } else { "├───" };
            let head = format!("\x1b[32;1m{}{branch}\x1b[0m\x1b[1m{name}\x1b[0m", place.below);
            let below = format!("{}{}", place.below, if last { "    " } else { "│   " });
            let shown = self.visit(cell, &Place { path: &path, head, below })?;
            json.insert(name.into_bytes(), Tree::Object(shown));
        }
        Ok(json)
    }

    /// Outputs that are only there to be empty are not shown. What cannot be told is.
    fn has_content(&self, cell: Value, path: &[String]) -> bool {
        let first = path.first().map_or("", String::as_str);
        let looked_into = match path.len() {
            1 => matches!(
                first,
                "apps" | "checks" | "devShells" | "legacyPackages" | "packages" | "formatter" | "nixosConfigurations"
                    | "nixosModules" | "overlays"
            ),
            2 => matches!(first, "apps" | "checks" | "devShells" | "legacyPackages" | "packages"),
            _ => false,
        };
        if !looked_into {
            return true;
        }
        match self.set(cell) {
            Ok(set) => set.iter_by_name().any(|(name, _, cell)| {
                self.has_content(cell, &[path, &[String::from_utf8_lossy(name.as_bytes()).into_owned()]].concat())
            }),
            Err(_) => true,
        }
    }

    fn description(&self, set: Attrs) -> Result<Option<String>, Failure> {
        let Some(meta) = set.get(Symbol::from("meta")) else { return Ok(None) };
        let meta = self.machine.force(meta, Pos::NONE)?;
        let description = meta.as_attrs().and_then(|meta| meta.get(Symbol::from("description")));
        description.map(|cell| self.text(cell)).transpose()
    }

    fn derivation(&mut self, cell: Value, place: &Place<'_>) -> Shown {
        let set = self.set(cell)?;
        let name = match set.get(self.machine.names().name) {
            Some(name) => self.text(name)?,
            None => return Err(Error::new(ErrorKind::Eval, "attribute 'name' missing").into()),
        };
        let names: Vec<&str> = place.path.iter().map(String::as_str).collect();
        let kind = match names[..] {
            ["devShell", _] | ["devShells", _, ..] => "development environment",
            ["checks", _, _] | ["hydraJobs", ..] => "derivation",
            _ => "package",
        };
        self.line(&format!("{}: {kind} '{name}'", place.head))?;
        if !self.json {
            return Ok(BTreeMap::new());
        }
        let description = self.description(set)?.unwrap_or_default();
        Ok(BTreeMap::from([one("type", "derivation"), one("name", &name), one("description", &description)]))
    }

    fn app(&mut self, cell: Value, place: &Place<'_>) -> Shown {
        let set = self.set(cell)?;
        let kind = set.get(self.machine.names().type_).map(|kind| self.text(kind)).transpose()?;
        let description = self.description(set)?;
        if kind.as_deref() != Some("app") {
            return Err(Error::new(ErrorKind::Eval, "not an app definition").into());
        }
        let shown = description.as_deref().unwrap_or("no description");
        self.line(&format!("{}: app: \x1b[1m{shown}\x1b[0m", place.head))?;
        let mut json = BTreeMap::from([one("type", "app")]);
        json.extend(description.map(|text| one("description", &text)));
        Ok(json)
    }

    fn template(&mut self, cell: Value, place: &Place<'_>) -> Shown {
        let set = self.set(cell)?;
        let description = match set.get(Symbol::from("description")) {
            Some(text) => self.text(text)?,
            None => return Err(Error::new(ErrorKind::Eval, "attribute 'description' missing").into()),
        };
        self.line(&format!("{}: template: \x1b[1m{description}\x1b[0m", place.head))?;
        Ok(BTreeMap::from([one("type", "template"), one("description", &description)]))
    }

    fn plain(&mut self, place: &Place<'_>, kind: &str, words: &str) -> Shown {
        self.line(&format!("{}: \x1b[35;1m{words}\x1b[0m", place.head))?;
        Ok(BTreeMap::from([one("type", kind)]))
    }
}
