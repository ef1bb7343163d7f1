//! Regular expressions: `match` and `split`.
//!
//! A pattern is compiled once per machine. In front of the machine's table each thread remembers recent patterns by
//! their string object; those live as long as the process, so an identity is never reused (M3).

use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, color_bytes};
use firn_source::Pos;
use firn_text::regex::{Captures, Error as RegexError, Regex};
use firn_value::{Context, ListBuilder, Str, Value};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::sync::{Arc, Mutex};

/// Compiled patterns of a machine.
#[derive(Debug, Default)]
struct Compiled {
    all: Mutex<HashMap<&'static [u8], Arc<Regex>>>,
}

const RECENT: usize = 128;

thread_local! {
    /// Recent patterns by the identity of their string, direct mapped.
    static LATELY: RefCell<Vec<Option<(u64, Arc<Regex>)>>> = const { RefCell::new(Vec::new()) };
    /// Memory for the groups of one match.
    static CAPTURES: RefCell<Captures> = RefCell::default();
}

fn compile(machine: &Machine, pattern: Str, pos: Pos) -> Result<Arc<Regex>> {
    let identity = pattern.value().identity();
    let place = (identity >> 3) as usize % RECENT;
    let known = LATELY.with_borrow(|table| match table.get(place) {
        Some(Some((of, regex))) if *of == identity => Some(Arc::clone(regex)),
        _ => None,
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    let compiled = machine.shared.extensions.get::<Compiled>();
    let mut all = compiled.all.lock().unwrap_or_else(|e| e.into_inner());
    let regex = match all.get(pattern.bytes()) {
        Some(regex) => Arc::clone(regex),
        None => {
            let regex = Arc::new(Regex::new(pattern.bytes()).map_err(|e| refused(e, pattern, pos))?);
            all.insert(pattern.bytes(), Arc::clone(&regex));
            regex
        }
    };
    drop(all);
    LATELY.with_borrow_mut(|table| {
        if table.is_empty() {
            table.resize_with(RECENT, || None);
        }
        table[place] = Some((identity, Arc::clone(&regex)));
    });
    Ok(regex)
}

#[cold]
fn refused(error: RegexError, pattern: Str, pos: Pos) -> Box<Error> {
    let what: &[u8] = match error {
        RegexError::Invalid => b"invalid regular expression '",
        RegexError::TooLarge => b"memory limit exceeded by regular expression '",
    };
    Error::new(ErrorKind::Eval, [what, &color_bytes(pattern.bytes()), b"'"].concat()).at(pos)
}

/// The groups of a match as a list; `null` for those that took no part. NIX: the context is lost.
fn groups(text: Str, captures: &Captures) -> Value {
    let mut list = ListBuilder::new(captures.len() - 1);
    for index in 1..captures.len() {
        list.push(captures.group(index).map_or(Value::NULL, |range| text.slice(range, Context::EMPTY)));
    }
    list.finish()
}

fn match_(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.match";
    let pattern = machine.force_string_no_context(args[0], pos, context)?;
    let regex = compile(machine, pattern, pos)?;
    let text = machine.force_string(args[1], pos, "while evaluating the second argument passed to builtins.match")?;
    Ok(CAPTURES.with_borrow_mut(|captures| match regex.full_match_into(text.bytes(), captures) {
        true => groups(text, captures),
        false => Value::NULL,
    }))
}

fn split(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.split";
    let pattern = machine.force_string_no_context(args[0], pos, context)?;
    let regex = compile(machine, pattern, pos)?;
    let text = machine.force_string(args[1], pos, "while evaluating the second argument passed to builtins.split")?;
    let mut items = Vec::new();
    let mut from = 0;
    regex.for_each_match(text.bytes(), |captures| {
        let span = captures.span();
        items.push(text.slice(from..span.start, Context::EMPTY));
        items.push(groups(text, captures));
        from = span.end;
    });
    if items.is_empty() {
        // NIX: a string that is not split keeps its context.
        return Ok(ListBuilder::of(&[args[1]]));
    }
    items.push(text.slice(from..text.bytes().len(), Context::EMPTY));
    Ok(ListBuilder::of(&items))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "match", arity: 2, strict: 1, run: match_ },
    Builtin { name: "split", arity: 2, strict: 1, run: split },
];
