//! Evaluation control: strictness, errors, traces, warnings.

use firn_eval::{Builtin, Coercion, Error, ErrorKind, Machine, PrintOptions, Result, color_bytes, try_print_value};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Frame, Value};

fn message(machine: &Machine, value: Value, pos: Pos, context: &'static str, how: Coercion) -> Result<&'static [u8]> {
    let text = machine.coerce_to_string(value, pos, context, how)?;
    Ok(text.as_str().map_or(&[], |s| s.bytes()))
}

fn throw(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    // NIX: the context says `builtin.throw`.
    let context = "while evaluating the error message passed to builtin.throw";
    Err(Error::new(ErrorKind::Thrown, message(machine, args[0], pos, context, Coercion::INTERPOLATE)?))
}

fn abort(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the error message passed to builtins.abort";
    let text = color_bytes(message(machine, args[0], pos, context, Coercion::INTERPOLATE)?);
    let text = [b"evaluation aborted with the following error message: '", text.as_slice(), b"'"].concat();
    Err(Error::new(ErrorKind::Abort, text))
}

fn add_error_context(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    machine.force(args[1], pos).or_else(|error| {
        if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Postponed) {
            return Err(error);
        }
        let context = "while evaluating the error message passed to builtins.addErrorContext";
        let text = message(machine, args[0], pos, context, Coercion { canonical_path: false, ..Coercion::PLAIN })?;
        Err(error.frame(Frame { pos: Pos::NONE, text: text.to_vec(), always: true }))
    })
}

fn seq(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    machine.force(args[0], pos)?;
    machine.force(args[1], pos)
}

fn deep_seq(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    machine.force_deep(args[0])?;
    machine.force(args[1], pos)
}

fn try_eval(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let (value, success) = match machine.force(args[0], pos) {
        Ok(_) => (args[0], true),
        Err(error) if error.is_catchable() => (Value::FALSE, false),
        Err(error) => return Err(error),
    };
    let names = machine.names();
    let mut set = AttrsBuilder::with_capacity(2);
    set.push(names.value, Pos::NONE, value);
    set.push(names.success, Pos::NONE, Value::bool(success));
    Ok(set.finish())
}

fn trace(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let value = machine.force(args[0], pos)?;
    let mut line = b"trace: ".to_vec();
    match value.as_str() {
        Some(text) => line.extend_from_slice(text.bytes()),
        None => try_print_value(machine, value, &PrintOptions::default(), &mut line)?,
    }
    line.push(b'\n');
    machine.log(&line)?;
    machine.force(args[1], pos)
}

fn trace_verbose(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    if machine.settings().trace_verbose { trace(machine, pos, args) } else { machine.force(args[1], pos) }
}

fn warn(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument; the message passed to builtins.warn";
    let text = machine.force_string(args[0], pos, context)?;
    machine.log(&warning(text.bytes()))?;
    if machine.settings().abort_on_warn {
        let message = "aborting to reveal stack trace of warning, as abort-on-warn is set";
        return Err(Error::new(ErrorKind::Eval, message));
    }
    machine.force(args[1], pos)
}

/// A warning as Nix's logger writes it: later lines are indented, trailing blanks dropped, an empty one has no prefix.
fn warning(text: &[u8]) -> Vec<u8> {
    const PREFIX: &str = "evaluation warning:";
    let mut out = Vec::with_capacity(text.len() + 32);
    let text = chomp(text);
    if !text.is_empty() {
        out.extend_from_slice(&color_bytes(PREFIX.as_bytes()));
        for (i, line) in text.split(|&b| b == b'\n').enumerate() {
            let line = chomp(line);
            if i > 0 {
                out.push(b'\n');
            }
            if i > 0 && !line.is_empty() {
                out.resize(out.len() + PREFIX.len(), b' ');
            }
            if !line.is_empty() {
                out.push(b' ');
                out.extend_from_slice(line);
            }
        }
    }
    out.push(b'\n');
    out
}

fn chomp(text: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
    &text[..text.iter().rposition(|b| !blank(b)).map_or(0, |last| last + 1)]
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "throw", arity: 1, strict: 1, run: throw },
    Builtin { name: "abort", arity: 1, strict: 1, run: abort },
    Builtin { name: "addErrorContext", arity: 2, strict: 0b10, run: add_error_context },
    // There is no debugger, so there is nothing to break into.
    Builtin { name: "break", arity: 1, strict: 1, run: |machine, pos, args| machine.force(args[0], pos) },
    Builtin { name: "seq", arity: 2, strict: 0b11, run: seq },
    Builtin { name: "deepSeq", arity: 2, strict: 0b01, run: deep_seq },
    Builtin { name: "tryEval", arity: 1, strict: 1, run: try_eval },
    Builtin { name: "trace", arity: 2, strict: 0b01, run: trace },
    Builtin { name: "traceVerbose", arity: 2, strict: 0, run: trace_verbose },
    Builtin { name: "warn", arity: 2, strict: 0b01, run: warn },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_indented_and_chomped() {
        let plain = |text: &[u8]| {
            let text = String::from_utf8(warning(text)).expect("the warnings here are UTF-8");
            text.replace(Error::HIGHLIGHT, "").replace(Error::PLAIN, "")
        };
        assert_eq!(plain(b"one"), "evaluation warning: one\n");
        assert_eq!(plain(b"one \n\n two\n"), "evaluation warning: one\n\n                     two\n");
        assert_eq!(plain(b""), "\n");
    }
}
