//! Parses and lowers every file named on the command line (or on standard input, one per line) and reports what fails.
//!
//! With `--all` first, also what is otherwise lowered when it first runs.

use firn_eval::{Machine, Settings, Shared};
use firn_host::{AbsPath, RealHost, RealWorld};
use firn_ir::CodeDigests;
use std::io::BufRead;
use std::sync::Arc;

fn main() {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let all = files.first().is_some_and(|word| word == "--all");
    files.drain(..usize::from(all));
    if files.is_empty() {
        files = std::io::stdin().lock().lines().map_while(Result::ok).collect();
    }
    let mut shared = Shared::new(Settings::default(), Arc::new(RealHost::new(RealWorld)));
    firn_builtins::install(&mut shared);
    let machine = Machine::new(Arc::new(shared));
    let mut failed = 0;
    for file in &files {
        let loaded = AbsPath::new(file.as_bytes()).map_err(|e| machine.host_error(e)).and_then(|path| machine.load(&path, &[]));
        match loaded {
            // A digest is of all code.
            Ok(program) if all => {
                CodeDigests::default().body(&program.body, &|_, _| ());
            }
            Ok(_) => {}
            Err(error) => {
                failed += 1;
                println!("{file}: {error}");
            }
        }
    }
    println!("{} files, {failed} failed", files.len());
}
