//! P4: the parser on arbitrary bytes. What parses is printed, and what reads back prints the same from then on.
//!
//! `cargo +nightly fuzz run parse -- -fork=1 -max_len=512 -rss_limit_mb=4000 -max_total_time=600`: source texts live as
//! long as the process, so long runs go in forks.

#![no_main]

use firn_source::{Origin, SourceFile};
use firn_syntax::{Ast, Features, Home, parse, print};
use libfuzzer_sys::fuzz_target;

fn read(text: &[u8]) -> Option<Ast> {
    let file = SourceFile::register(Origin::Expression, text.to_vec());
    let features = Features { pipe_operators: text.len() % 2 == 0, ..Features::default() };
    parse(file, b"/base", Home::Dir(b"/home"), features).ok()
}

fn printed(ast: &Ast) -> Vec<u8> {
    let mut out = Vec::new();
    print(ast, &mut out);
    out
}

fuzz_target!(|text: &[u8]| {
    let Some(ast) = read(text) else { return };
    // NIX: some printed forms do not read back (`assert` without parentheses, names that need quotes).
    let Some(second) = read(&printed(&ast)) else { return };
    let stable = printed(&second);
    if let Some(third) = read(&stable) {
        assert_eq!(printed(&third), stable, "printing a printed program again changes it");
    }
});
