//! Parses and prints many files in one process, to measure the parser and to compare it with Nix.
//!
//! `parse_many [-q] FILE…` (or `-` for a list of files on standard input) writes what `nix-instantiate --parse FILE…`
//! writes; `-q` parses and prints without writing. Errors go to standard error, one line each.

use firn_source::{Origin, SourceFile};
use firn_syntax::{Features, Home, parse, print};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn main() -> std::io::Result<()> {
    let mut quiet = false;
    let mut files: Vec<PathBuf> = Vec::new();
    for arg in std::env::args_os().skip(1) {
        match arg.as_bytes() {
            b"-q" => quiet = true,
            b"-" => {
                let mut list = Vec::new();
                std::io::stdin().read_to_end(&mut list)?;
                let names = list.split(|&b| b == b'\n').filter(|l| !l.is_empty());
                files.extend(names.map(|l| PathBuf::from(std::ffi::OsString::from_vec(l.to_vec()))));
            }
            _ => files.push(arg.into()),
        }
    }
    let (mut parsing, mut printing) = (Duration::ZERO, Duration::ZERO);
    let (mut bytes, mut failed) = (0, 0);
    let mut out = Vec::new();
    for path in &files {
        let text = std::fs::read(path)?;
        bytes += text.len();
        let origin = Origin::File(path.as_os_str().as_bytes().to_vec());
        let file = SourceFile::register(origin, text);
        let base = path.parent().map(|p| p.as_os_str().as_bytes()).unwrap_or(b"/");
        let started = Instant::now();
        let parsed = parse(file, base, Home::Dir(b"/root"), Features::default());
        parsing += started.elapsed();
        match parsed {
            Ok(ast) => {
                let started = Instant::now();
                print(&ast, &mut out);
                out.push(b'\n');
                printing += started.elapsed();
            }
            Err(error) => {
                failed += 1;
                eprintln!("error: {error}");
            }
        }
        if !quiet {
            std::io::stdout().write_all(&out)?;
        }
        out.clear();
    }
    let count = files.len();
    eprintln!("{count} files, {bytes} bytes, {failed} failed, parse {parsing:?}, print {printing:?}");
    Ok(())
}
