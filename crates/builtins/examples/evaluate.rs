//! Evaluates an expression given as the first argument, walks the value and prints it.
//!
//! `cargo run -p firn-builtins --example evaluate -- 'map (x: x * 2) [ 1 2 3 ]'`

use firn_eval::{Machine, Settings, Shared, print_ambiguous};
use firn_host::{AbsPath, RealHost, RealWorld};
use firn_source::Origin;
use std::sync::Arc;

fn main() {
    let text = std::env::args().nth(1).unwrap_or_else(|| "1 + 1".to_owned());
    let mut shared = Shared::new(Settings::default(), Arc::new(RealHost::new(RealWorld)));
    firn_builtins::install(&mut shared);
    let machine = Machine::new(Arc::new(shared));
    let result = machine.eval_text(text.as_bytes(), Origin::Expression, &AbsPath::root());
    match result.and_then(|value| machine.force_deep(value).map(|()| value)) {
        Ok(value) => {
            if let Some(list) = value.as_list() {
                println!("a list of {} elements", list.len());
            }
            let mut out = Vec::new();
            print_ambiguous(&machine, value, true, &mut out);
            println!("{}", String::from_utf8_lossy(&out));
        }
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
    }
}
