//! Options of NixOS that are named nearly like one that does not exist. They are read from the files that the evaluation has
//! read: what their `options` bind, by name; those of a submodule lie below the option that it is the type of, under a name
//! that the user chooses or right there.
//!
//! A submodule may be written in a file of its own, where nobody says which option it belongs to. Such a file is believed to
//! lie beside the one that declares the option.

use firn_source::{Origin, Pos, SourceFile, Symbol};
use firn_syntax::ast::{AttrValue, BinOp};
use firn_syntax::{Ast, Expr, ExprId, Features, Home};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A name of a declared path; none stands for the name of a submodule, or for nothing.
type Name = Option<Symbol>;

/// Where something is declared.
#[derive(Debug, Default)]
struct Declared {
    /// The places, by the directory of the file; of each the first.
    places: BTreeMap<Rc<[u8]>, Pos>,
    /// It is an option, not a set that options are in.
    is_option: bool,
}

/// All that is declared.
#[derive(Debug, Default)]
pub struct Options(BTreeMap<Vec<Name>, Declared>);

impl Options {
    /// Reads every file that was read.
    pub fn of_run() -> Options {
        let mut options = Options::default();
        SourceFile::all().into_iter().for_each(|file| options.read(file));
        options
    }

    /// Reads one file.
    fn read(&mut self, file: &'static SourceFile) {
        let Origin::File(path) = file.origin() else { return };
        // Most files are no modules, and looking at bytes is cheaper than parsing.
        let Some(text) = file.text().filter(|text| text.windows(7).any(|part| part == b"options")) else { return };
        let dir = path.iter().rposition(|&b| b == b'/').map_or(&[][..], |at| &path[..at]);
        // Positions are those of the text as it is registered: it is not registered again.
        if let Ok(ast) = firn_syntax::parse(file, dir, Home::Dir(b"/homeless-shelter"), Features::default()) {
            Reader { ast: &ast, dir: dir.into(), options: self, name: Symbol::from("options") }.read();
        }
        drop(text);
        file.release();
    }

    fn declare(&mut self, path: &[(Name, Pos)], dir: &Rc<[u8]>) {
        let mut names = Vec::with_capacity(path.len());
        for &(name, pos) in path {
            names.push(name);
            let declared = self.0.entry(names.clone()).or_default();
            declared.places.entry(dir.clone()).or_insert(pos);
            declared.is_option |= names.len() == path.len();
        }
    }

    /// The options whose names come nearest, with the places of their declarations.
    pub fn nearest(&self, wanted: &[Vec<u8>]) -> Vec<(Vec<u8>, Pos)> {
        let mut candidates: BTreeMap<Vec<u8>, Pos> = BTreeMap::new();
        for (path, declared) in &self.0 {
            spell(path, wanted, &mut Vec::new(), &mut |spelled| {
                candidates.extend(declared.places.values().next().map(|&pos| (shown(&spelled), pos)));
            });
        }
        if let Some((length, outer)) = self.outer(wanted) {
            let beside = self.0.iter().filter_map(|(path, declared)| {
                let pos = declared.places.iter().find(|(dir, _)| outer.places.contains_key(*dir))?.1;
                Some((path, *pos))
            });
            for (path, pos) in beside {
                for rest in length..(length + 2).min(wanted.len()) {
                    let (before, after) = wanted.split_at(rest);
                    spell(path, after, &mut Vec::new(), &mut |spelled| {
                        candidates.entry(shown(&[before, &spelled].concat())).or_insert(pos);
                    });
                }
            }
        }
        let near = firn_text::suggest::nearest(candidates.keys().map(Vec::as_slice), &shown(wanted));
        near.into_iter().map(|name| (name.to_vec(), candidates[name])).collect()
    }

    /// The innermost option that the path leads through: its type is a submodule's. How deep it is.
    fn outer(&self, wanted: &[Vec<u8>]) -> Option<(usize, &Declared)> {
        let options = self.0.iter().filter(|(_, declared)| declared.is_option);
        let leads_through = |(path, declared): (&Vec<Name>, _)| {
            let depth = (1..wanted.len()).rev().find(|&length| {
                let mut same = false;
                spell(path, &wanted[..length], &mut Vec::new(), &mut |spelled| same |= spelled == wanted[..length]);
                same
            });
            depth.map(|depth| (depth, declared))
        };
        options.filter_map(leads_through).max_by_key(|(depth, _)| *depth)
    }
}

/// The ways to write a declared path with as many names as are wanted; names of submodules are those that the user chose.
fn spell(path: &[Name], wanted: &[Vec<u8>], before: &mut Vec<Vec<u8>>, found: &mut dyn FnMut(Vec<Vec<u8>>)) {
    let Some((first, rest)) = path.split_first() else {
        if before.len() == wanted.len() {
            found(before.clone());
        }
        return;
    };
    if let (None, true) = (first, path.len() > 1) {
        spell(rest, wanted, before, found);
    }
    if let Some(chosen) = wanted.get(before.len()) {
        before.push(first.map_or_else(|| chosen.clone(), |name| name.as_bytes().to_vec()));
        spell(rest, wanted, before, found);
        before.pop();
    }
}

fn shown(path: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for name in path {
        if !out.is_empty() {
            out.push(b'.');
        }
        firn_text::literal::write_name(&mut out, name);
    }
    out
}

/// What an expression is part of.
#[derive(Clone)]
enum Part {
    /// A module, or anything else that is not inside of an option.
    Module,
    /// The value of `options` or of a set in there.
    Options(Rc<[(Name, Pos)]>),
    /// The arguments of an option: its type may have options of its own.
    Option(Rc<[(Name, Pos)]>),
}

/// Walks through one file.
struct Reader<'a> {
    ast: &'a Ast,
    dir: Rc<[u8]>,
    options: &'a mut Options,
    name: Symbol,
}

impl Reader<'_> {
    fn read(&mut self) {
        let ast = self.ast;
        let mut todo = vec![(ast.root(), Part::Module)];
        while let Some((id, part)) = todo.pop() {
            match (ast.expr(id), part) {
                (Expr::Attrs(attrs), part) => {
                    for def in ast.attr_defs(ast.attrs(attrs).defs) {
                        if let AttrValue::Plain(value) = def.value {
                            todo.push((value, self.bound(def.name, def.pos, &part)));
                        }
                    }
                }
                (Expr::Let { attrs, body }, part) => {
                    let values = ast.attr_defs(ast.attrs(attrs).defs).iter().filter_map(|def| match def.value {
                        AttrValue::Plain(value) => Some((value, Part::Module)),
                        AttrValue::Inherited | AttrValue::InheritedFrom(_) => None,
                    });
                    todo.extend(values);
                    todo.push((body, part));
                }
                (Expr::With { body, .. } | Expr::Assert { body, .. }, part) => todo.push((body, part)),
                (Expr::Lambda(lambda), part) => todo.push((ast.lambda(lambda).body, part)),
                (Expr::If { then, other, .. }, part) => todo.extend([(then, part.clone()), (other, part)]),
                (Expr::Binary { op: BinOp::Update | BinOp::ConcatLists, lhs, rhs, .. }, part) => {
                    todo.extend([(lhs, part.clone()), (rhs, part)]);
                }
                (other, part) => self.leave(other, part, &mut todo),
            }
        }
    }

    /// What a binding in such a part is.
    fn bound(&self, name: Symbol, pos: Pos, part: &Part) -> Part {
        let below = |path: &Rc<[(Name, Pos)]>, name| path.iter().copied().chain([(name, pos)]).collect();
        match part {
            Part::Module if name == self.name => Part::Options(Rc::default()),
            Part::Module => Part::Module,
            Part::Options(path) => Part::Options(below(path, Some(name))),
            Part::Option(path) if name == self.name => Part::Options(below(path, None)),
            Part::Option(path) => Part::Option(path.clone()),
        }
    }

    /// What is no set: inside of `options` it is an option.
    fn leave(&mut self, expr: Expr, part: Part, todo: &mut Vec<(ExprId, Part)>) {
        let inner = match part {
            Part::Options(path) if path.last().is_some_and(|(name, _)| name.is_some()) => {
                self.options.declare(&path, &self.dir);
                Part::Option(path)
            }
            Part::Options(..) => return,
            other => other,
        };
        match expr {
            Expr::Call { fun, args, .. } => {
                todo.push((fun, inner.clone()));
                todo.extend(self.ast.exprs(args).iter().map(|&arg| (arg, inner.clone())));
            }
            Expr::List(items) => todo.extend(self.ast.exprs(items).iter().map(|&item| (item, inner.clone()))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (path, text) in files {
            options.read(SourceFile::register(Origin::File(path.as_bytes().to_vec()), text.as_bytes().to_vec()));
        }
        options
    }

    fn near(options: &Options, wanted: &str) -> Vec<String> {
        let wanted: Vec<Vec<u8>> = wanted.split('.').map(|name| name.as_bytes().to_vec()).collect();
        let line = |pos: Pos| pos.resolve().map_or(0, |at| at.line);
        options.nearest(&wanted).into_iter().map(|(name, pos)| format!("{}:{}", String::from_utf8_lossy(&name), line(pos))).collect()
    }

    const SERVER: &str = "{ lib, config, ... }:\nwith lib;\nlet cfg = config.services.web; in {\n  options = {\n    services.web = {\n      \
        enable = mkEnableOption \"it\";\n      ports = mkOption { type = types.listOf types.port; };\n      hosts = mkOption {\n        \
        type = types.attrsOf (types.submodule (import ./host.nix));\n      };\n      users = mkOption {\n        type = types.listOf (types.submodule \
        {\n          options.password = mkOption { };\n        });\n      };\n    };\n  };\n  config = mkIf cfg.enable { networking.ports = [ 1 ]; };\n}\n";
    const HOST: &str = "{ lib, ... }:\n{\n  options = {\n    root = lib.mkOption { };\n    forceSSL = lib.mkOption { };\n  };\n}\n";

    #[test]
    fn options_and_sets_of_options_are_found_by_names_nearly_like_theirs() {
        let options = read(&[("/web/default.nix", SERVER), ("/web/host.nix", HOST)]);
        assert_eq!(near(&options, "services.web.port"), ["services.web.ports:7"]);
        assert_eq!(near(&options, "services.wbe"), ["services.web:5"]);
        assert_eq!(near(&options, "service.web.enable"), ["services.web.enable:6"]);
        assert!(near(&options, "networking.port").is_empty(), "what is defined is not declared");
        assert!(near(&options, "services.web.nothing").is_empty());
    }

    #[test]
    fn submodules_have_options_under_the_names_that_the_user_chose() {
        let options = read(&[("/web/default.nix", SERVER), ("/web/host.nix", HOST)]);
        assert_eq!(near(&options, "services.web.users.me.pasword"), ["services.web.users.me.password:13"]);
        assert_eq!(near(&options, "services.web.hosts.here.forceSsl"), ["services.web.hosts.here.forceSSL:5"]);
        let elsewhere = read(&[("/web/default.nix", SERVER), ("/far/host.nix", HOST)]);
        assert!(near(&elsewhere, "services.web.hosts.here.forceSsl").is_empty());
    }
}
