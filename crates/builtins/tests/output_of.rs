//! `outputOf` (E2, E3), which Nix 2.8 does not have to compare with.

use firn_eval::{Machine, Settings, Shared};
use firn_host::{AbsPath, MemoryHost, MemoryWorld};
use firn_source::Origin;
use firn_value::Value;
use std::sync::Arc;

fn eval(text: &str) -> firn_value::Result<Value> {
    let mut settings = Settings::default();
    settings.features.dynamic_derivations = true;
    let mut shared = Shared::new(settings, Arc::new(MemoryHost::new(MemoryWorld::new())));
    firn_builtins::install(&mut shared);
    let machine = Machine::new(Arc::new(shared));
    let program = format!(
        "let d = derivation {{ name = \"x\"; system = \"s\"; builder = \"b\"; }}; p = builtins.unsafeDiscardOutputDependency d.drvPath; in {text}"
    );
    machine.eval_text(program.as_bytes(), Origin::Expression, &AbsPath::root())
}

#[test]
fn an_output_known_beforehand_is_its_path() {
    assert_eq!(eval("builtins.outputOf p \"out\" == d.outPath").ok(), Some(Value::TRUE));
    assert_eq!(eval("builtins.getContext (builtins.outputOf p \"out\") == builtins.getContext d.outPath").ok(), Some(Value::TRUE));
}

#[test]
fn an_output_of_an_output_is_a_placeholder() {
    let text = eval("builtins.outputOf (builtins.outputOf p \"out\") \"lib\"").expect("it evaluates");
    let text = text.as_str().expect("a string");
    assert_eq!(text.bytes().first(), Some(&b'/'));
    assert!(!text.bytes().starts_with(b"/nix/store"));
    assert_eq!(text.context().elements().len(), 1);
    assert!(text.context().elements()[0].as_bytes().starts_with(b"!lib!out!"));
}

#[test]
fn what_refers_to_nothing_or_to_too_much_is_refused() {
    for (program, message) in [
        ("builtins.outputOf \"x\" \"out\"", "has 0 entries in its context"),
        ("builtins.outputOf d.drvPath \"out\"", "complete source and binary closure"),
        ("builtins.outputOf (p + \"x\") \"out\"", "has context with the different path"),
        ("builtins.outputOf p \"lib\"", "does not have output 'lib'"),
    ] {
        let error = eval(program).expect_err(program).to_string();
        assert!(error.contains(message), "{program}: {error}");
    }
}
