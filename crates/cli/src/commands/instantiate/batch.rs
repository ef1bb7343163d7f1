//! Many files to be parsed: by several threads, a batch at a time. What is to be said of a file, an error or a warning, is said in
//! the order of the files, so such a file is left to whoever asks.

use crate::program::STACK;
use firn_eval::{Machine, Shared};
use firn_host::AbsPath;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};

/// So many files are read before what they say is printed.
pub(super) const FILES: usize = 512;

/// The syntax trees of these files as they are printed; none where something is to be said of it.
pub(super) fn trees(shared: &Arc<Shared>, files: &[AbsPath], threads: usize) -> Vec<Option<Vec<u8>>> {
    let trees = Mutex::new(vec![None; files.len()]);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let work = || {
            let machine = Machine::new(Arc::clone(shared));
            let mut own = Vec::new();
            while let Some((at, file)) = take(&next, files) {
                own.push((at, tree(&machine, file)));
            }
            let mut trees = trees.lock().unwrap_or_else(PoisonError::into_inner);
            own.into_iter().for_each(|(at, tree)| trees[at] = tree);
        };
        for _ in 1..threads {
            // Where there is no thread to be had, there is one less.
            let _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        }
        work();
    });
    trees.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn take<'a>(next: &AtomicUsize, files: &'a [AbsPath]) -> Option<(usize, &'a AbsPath)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    files.get(at).map(|file| (at, file))
}

fn tree(machine: &Machine, path: &AbsPath) -> Option<Vec<u8>> {
    let path = machine.host().resolve_expr_path(path).ok()?;
    let (file, base) = machine.source(&path).ok()?;
    let ast = machine.parse_unsaid(file, &base)?;
    let mut text = Vec::new();
    if machine.check_names(&ast).is_ok() {
        firn_syntax::print(&ast, &mut text);
        text.push(b'\n');
    }
    ast.recycle();
    file.forget();
    Some(text).filter(|text| !text.is_empty())
}
