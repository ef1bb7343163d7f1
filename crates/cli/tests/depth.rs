//! Deep programs (E6): what is deep is evaluated, what is endless ends with Nix's error, whatever the memory remembers meanwhile.

use std::process::Command;

fn evaluate(memo: &str, expression: &str) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(["instantiate", "--eval", "--expr", expression]).env_clear().env("HOME", "/homeless").env("FIRN_MEMO", memo);
    let done = command.env("NIX_REMOTE", "dummy://").env("NIX_CONF_DIR", "/nonexistent").output().expect("firn runs");
    let said = if done.status.success() { done.stdout } else { done.stderr };
    (done.status.success(), String::from_utf8_lossy(&said).trim().to_owned())
}

#[test]
fn a_chain_of_a_million_thunks_is_evaluated() {
    let chain = "(builtins.foldl' (a: n: { v = a.v + 1; }) { v = 0; } (builtins.genList (x: x) 1000000)).v";
    for memo in ["off", "run"] {
        assert_eq!(evaluate(memo, chain), (true, "1000000".to_owned()), "{memo}");
    }
}

/// NIX: max-call-depth counts calls; these are one call deep at a time, but one attribute needs the next for ever.
#[test]
fn an_endless_chain_ends_with_an_error() {
    for memo in ["off", "run"] {
        let (succeeded, said) = evaluate(memo, "let f = n: { v = (f (n + 1)).v; }; in (f 0).v");
        assert!(!succeeded && said.ends_with("error: stack overflow (possible infinite recursion)"), "{memo}: {said}");
    }
}
