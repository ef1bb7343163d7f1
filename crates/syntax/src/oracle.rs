//! Comparison with a real Nix on the files of a tree, and print/parse round trips over it.
//!
//! Nix 2.8 (Debian's) differs from what is matched here in ways that are levelled out before comparing: it prints
//! `inherit (e) x` as `x = (e).x`, keeps names in the order of their symbols, escapes every dollar, quotes no names,
//! and keeps empty parts of indented strings. Both outputs are read back and printed again, which sorts the names.

use crate::ast::{Ast, AttrName, AttrValue, Expr, ExprId, Range};
use crate::apart::tests::shown;
use crate::{Apart, Features, Home, parse, print};
use firn_source::{Origin, SourceFile, SourceText};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of the tree named by `FIRN_NIXPKGS`, every `step`th.
fn tree(step: usize) -> Option<Vec<PathBuf>> {
    let Some(root) = std::env::var_os("FIRN_NIXPKGS") else {
        eprintln!("SKIPPED: FIRN_NIXPKGS does not name a tree of Nix files");
        return None;
    };
    let mut files = Vec::new();
    let mut work = vec![PathBuf::from(root)];
    while let Some(directory) = work.pop() {
        let entries = std::fs::read_dir(&directory).expect("FIRN_NIXPKGS is readable");
        for entry in entries.map(|e| e.expect("FIRN_NIXPKGS is readable")) {
            let kind = entry.file_type().expect("FIRN_NIXPKGS is readable");
            let path = entry.path();
            if kind.is_dir() {
                work.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == "nix") {
                files.push(path);
            }
        }
    }
    files.sort();
    Some(files.into_iter().step_by(step).collect())
}

fn parsed(path: &Path) -> Result<Ast, crate::ParseError> {
    let text = std::fs::read(path).expect("the file is readable");
    let file = SourceFile::register(Origin::File(path.as_os_str().as_bytes().to_vec()), text);
    let base = path.parent().map_or(&b"/"[..], |p| p.as_os_str().as_bytes());
    parse(file, base, Home::Dir(b"/homeless"), Features::default())
}

fn printed(ast: &Ast) -> Vec<u8> {
    let mut out = Vec::new();
    print(ast, &mut out);
    out
}

/// Without empty parts of sums.
fn without_empty_parts(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    for (part, instead) in [("(\"\" + ", "("), (" + \"\" + ", " + "), (" + \"\")", ")")] {
        while let Some(at) = memchr::memmem::find(&text, part.as_bytes()) {
            text.splice(at..at + part.len(), instead.bytes());
        }
    }
    text
}

fn reread(text: &[u8]) -> Option<Vec<u8>> {
    let file = SourceFile::register(Origin::Expression, text.to_vec());
    parse(file, b"/", Home::Pure, Features::default()).ok().map(|ast| printed(&ast))
}

/// `inherit (e) x` as `x = (e).x`, as Nix had it before 2.22.
fn without_inherit_from(ast: &mut Ast) {
    for set in 0..ast.attrs.len() {
        let attrs = ast.attrs[set];
        for i in attrs.defs.start..attrs.defs.start + attrs.defs.len {
            let def = ast.attr_defs[i as usize];
            let AttrValue::InheritedFrom(source) = def.value else { continue };
            let base = ast.inherit_sources(attrs.sources)[source as usize].expr;
            let path = Range { start: ast.paths.len() as u32, len: 1 };
            ast.paths.push(AttrName::Static(def.name));
            let value = ExprId(ast.nodes.len() as u32);
            ast.nodes.push(Expr::Select { base, path, default: None, pos: def.pos });
            ast.attr_defs[i as usize].value = AttrValue::Plain(value);
        }
    }
}

#[test]
fn trees_that_are_placed_later_are_those_that_parsing_makes() {
    let mut apart = Apart::default();
    for path in tree(1).unwrap_or_default() {
        let text = SourceText::new(std::fs::read(&path).expect("the file is readable"));
        let tree = apart.parse(text.clone(), Features::default());
        let file = SourceFile::register(Origin::Expression, text.to_vec());
        let now = parse(file, b"/base", Home::Pure, Features::default()).ok().filter(|ast| ast.warnings().is_empty());
        assert!(now.map(shown) == tree.map(|tree| shown(tree.place(file, b"/base"))), "{}", path.display());
    }
}

#[test]
fn prints_what_nix_prints() {
    let Some(files) = tree(5) else { return };
    if Command::new("nix-instantiate").arg("--version").output().is_err() {
        return eprintln!("SKIPPED: there is no nix-instantiate to compare with");
    }
    let mut different = Vec::new();
    let (mut compared, mut unreadable) = (0, 0);
    for batch in files.chunks(200) {
        let batch: Vec<_> = batch.iter().filter_map(|p| Some((p, parsed(p).ok()?))).collect();
        let output = Command::new("nix-instantiate").arg("--parse").args(batch.iter().map(|(p, _)| p)).output();
        let output = output.expect("nix-instantiate runs");
        let lines: Vec<&[u8]> = output.stdout.split(|&b| b == b'\n').collect();
        for ((path, mut ast), line) in batch.into_iter().zip(lines) {
            without_inherit_from(&mut ast);
            let ours = without_empty_parts(&printed(&ast));
            match (reread(&ours), reread(&without_empty_parts(line))) {
                (Some(ours), Some(theirs)) if ours == theirs => compared += 1,
                // Names without quotes (and `assert` without parentheses) do not read back.
                (_, None) => unreadable += 1,
                _ => different.push(path.clone()),
            }
        }
    }
    eprintln!("{compared} files as Nix prints them, {unreadable} that do not read back, different: {different:#?}");
    assert!(different.is_empty() && unreadable * 100 < compared);
}

#[test]
fn printing_reads_back() {
    let Some(files) = tree(1) else { return };
    let (mut same, mut unreadable, mut refused) = (0, 0, 0);
    for path in files {
        let Ok(ast) = parsed(&path) else {
            refused += 1;
            continue;
        };
        // An interpolated string prints as a sum, which reads back as a nested one: stable from the second time on.
        let Some(once) = reread(&printed(&ast)) else {
            unreadable += 1;
            continue;
        };
        assert_eq!(reread(&once), Some(once), "{}", path.display());
        same += 1;
    }
    eprintln!("{same} files read back, {unreadable} print as what does not, {refused} are not Nix");
    assert!(unreadable * 20 < same && refused * 100 < same);
}
