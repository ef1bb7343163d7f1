//! Where the definitions of a NixOS option stand that its error names only by file: for a conflict, a value of the wrong
//! type, or an option that does not exist. The files are parsed, and the binding of the option is looked for in them. For
//! one that does not exist, those named nearly like it are told as well.

use crate::options::Options;
use firn_host::{AbsPath, Follow, Host};
use firn_source::{Origin, Pos, SourceFile, Symbol};
use firn_syntax::ast::{AttrValue, BinOp};
use firn_syntax::{Ast, Expr, ExprId, Features, Home};

/// The option that a message is about, and the files in which it is defined.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    option: Vec<Vec<u8>>,
    files: Vec<Vec<u8>>,
    exists: bool,
}

/// Reads a message of the module system; none if it is another.
fn read(message: &[u8]) -> Option<Named> {
    let text = String::from_utf8_lossy(message);
    let heads = ["The option `", "A definition for option `", "The unique option `", "Cannot merge definitions of `"];
    let head = text.lines().find_map(|line| heads.iter().find_map(|head| Some(&line[line.find(head)? + head.len()..])))?;
    let (name, rest) = head.split_once('\'')?;
    let known = ["conflicting definition", "is not of type", "defined multiple times", "does not exist", "is read-only", ". Definition"];
    if !known.iter().any(|words| rest.contains(words)) {
        return None;
    }
    let option = firn_eval::parse_attr_path(name.as_bytes()).ok()?;
    // Releases before 2021 name the file of what does not exist in the same line.
    let file = |line: &str| {
        let (_, rest) = line.trim_start().split_once("- In `").or_else(|| line.split_once("' defined in `"))?;
        let file = rest.split(['\'', ',']).next()?;
        file.starts_with('/').then(|| file.as_bytes().to_vec())
    };
    let mut files: Vec<Vec<u8>> = text.lines().filter_map(file).collect();
    files.dedup();
    let exists = !rest.contains("does not exist");
    ((!exists || !files.is_empty()) && !option.is_empty()).then_some(Named { option, files, exists })
}

/// The lines to be told after the message; none if there is nothing to add to it.
pub fn notes(message: &[u8], host: &dyn Host) -> Vec<Vec<u8>> {
    let Some(named) = read(message) else { return Vec::new() };
    let mut lines = Vec::new();
    for file in &named.files {
        let Some(pos) = find_in_file(file, &named.option, host) else { continue };
        let Some(at) = pos.resolve() else { continue };
        let line = at.file.line(at.line).unwrap_or_default();
        lines.push([b"  ", &at.show()[..], b": ", String::from_utf8_lossy(&line).trim().as_bytes()].concat());
    }
    if !lines.is_empty() {
        lines.insert(0, b"it is defined here:".to_vec());
    }
    let near = if named.exists { Vec::new() } else { Options::of_run().nearest(&named.option) };
    if !near.is_empty() {
        lines.push(b"these options are named nearly like it:".to_vec());
    }
    for (name, pos) in near {
        let place = pos.resolve().map_or_else(Vec::new, |at| at.show());
        lines.push([b"  ", &place[..], b": ", &name].concat());
    }
    lines
}

fn find_in_file(file: &[u8], option: &[Vec<u8>], host: &dyn Host) -> Option<Pos> {
    let path = AbsPath::new(file).ok()?;
    let real = host.resolve_expr_path(&path).and_then(|path| host.resolve_symlinks(&path, Follow::Full)).ok()?;
    let content = host.read_once(&real).ok()?;
    let source = SourceFile::register(Origin::File(file.to_vec()), content.bytes().to_vec());
    let base = path.parent().unwrap_or_else(AbsPath::root);
    let ast = firn_syntax::parse(source, base.as_bytes(), Home::Dir(b"/homeless-shelter"), Features::default()).ok()?;
    let wanted: Vec<Symbol> = option.iter().map(|name| Symbol::intern(name)).collect();
    find(&ast, &wanted)
}

/// Names under which a module has more of itself.
const INSIDE: [&str; 5] = ["config", "imports", "modules", "content", "contents"];

/// The binding of the option, or the one that comes nearest to it from outside.
fn find(ast: &Ast, wanted: &[Symbol]) -> Option<Pos> {
    let inside = INSIDE.map(Symbol::from);
    let mut best: Option<(usize, Pos)> = None;
    let mut todo: Vec<(ExprId, usize)> = vec![(ast.root(), 0)];
    while let Some((id, matched)) = todo.pop() {
        match ast.expr(id) {
            Expr::Attrs(id) => {
                for def in ast.attr_defs(ast.attrs(id).defs).iter().rev() {
                    let value = match def.value {
                        AttrValue::Plain(value) => Some(value),
                        AttrValue::Inherited | AttrValue::InheritedFrom(_) => None,
                    };
                    if def.name == wanted[matched] {
                        if matched + 1 == wanted.len() {
                            return Some(def.pos);
                        }
                        if best.is_none_or(|(depth, _)| depth <= matched) {
                            best = Some((matched + 1, def.pos));
                        }
                        todo.extend(value.map(|value| (value, matched + 1)));
                    } else if matched == 0 && inside.contains(&def.name) {
                        todo.extend(value.map(|value| (value, 0)));
                    }
                }
            }
            Expr::Lambda(id) => todo.push((ast.lambda(id).body, matched)),
            Expr::Let { body, .. } | Expr::With { body, .. } | Expr::Assert { body, .. } => todo.push((body, matched)),
            Expr::If { then, other, .. } => todo.extend([(other, matched), (then, matched)]),
            Expr::Binary { op: BinOp::Update | BinOp::ConcatLists, lhs, rhs, .. } => {
                todo.extend([(lhs, matched), (rhs, matched)]);
            }
            // `mkIf`, `mkMerge`, `mkForce` and the like.
            Expr::Call { args, .. } => todo.extend(ast.exprs(args).iter().map(|&arg| (arg, matched))),
            Expr::List(items) => todo.extend(ast.exprs(items).iter().rev().map(|&item| (item, matched))),
            _ => {}
        }
    }
    best.map(|(_, pos)| pos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use firn_host::{MemoryHost, MemoryWorld};

    fn told(message: &str) -> String {
        let world = MemoryWorld::new();
        world.write("/a.nix", "{ lib, ... }:\n{\n  services.x = {\n    enable = true;\n    port = 1;\n  };\n}\n");
        world.write("/b.nix", "{ lib, ... }: {\n  config = lib.mkIf true {\n    services.x.port = lib.mkMerge [ 2 ];\n  };\n}\n");
        world.write("/c.nix", "{ services = import ./x.nix; }\n");
        let lines = notes(message.as_bytes(), &MemoryHost::new(world));
        lines.iter().map(|line| String::from_utf8_lossy(line).into_owned() + "\n").collect()
    }

    #[test]
    fn both_sides_of_a_conflict_are_found() {
        let message = "The option `services.x.port' has conflicting definition values:\n- In `/a.nix': 1\n- In `/b.nix': 2\n- In \
                       `/c.nix': 3\n- In `<unknown-file>': 4\nUse `lib.mkForce value` or `lib.mkDefault value` to change the priority";
        assert_eq!(
            told(message),
            "it is defined here:\n  /a.nix:5:5: port = 1;\n  /b.nix:3:5: services.x.port = lib.mkMerge [ 2 ];\n  \
             /c.nix:1:3: { services = import ./x.nix; }\n"
        );
    }

    #[test]
    fn types_and_options_that_do_not_exist_have_places_too() {
        let message = "A definition for option `services.x.enable' is not of type `boolean'. Definition values:\n- In `/a.nix': \"yes\"";
        assert_eq!(told(message), "it is defined here:\n  /a.nix:4:5: enable = true;\n");
        let message = "The option `services.x.enable' does not exist. Definition values:\n- In `/a.nix': true";
        assert_eq!(told(message), "it is defined here:\n  /a.nix:4:5: enable = true;\n");
        assert_eq!(told("The option `services.x.enable' is used but not defined."), "");
        assert_eq!(told("attribute 'x' missing"), "");
    }
}
