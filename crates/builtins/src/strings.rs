//! Strings: conversion, parts, joining, replacing.

use firn_eval::{Builtin, Coercion, Error, ErrorKind, Machine, Pieces, Result};
use firn_source::Pos;
use firn_value::{Context, ContextBuilder, List, Str, Value};
use std::cell::RefCell;
use std::rc::Rc;

fn to_string(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.toString";
    machine.coerce_to_string(args[0], pos, context, Coercion::TO_STRING)
}

/// A value that the builtin coerces as interpolation does.
fn coerced(machine: &Machine, value: Value, pos: Pos, context: &'static str) -> Result<Str> {
    let value = machine.coerce_to_string(value, pos, context, Coercion::INTERPOLATE)?;
    Ok(value.as_str().expect("coercion gives a string"))
}

fn substring(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument (the start offset) passed to builtins.substring";
    let start = machine.force_int(args[0], pos, context)?;
    if start < 0 {
        return Err(Error::new(ErrorKind::Eval, "negative start position in 'substring'").at(pos));
    }
    let context = "while evaluating the second argument (the substring length) passed to builtins.substring";
    let len = machine.force_int(args[1], pos, context)?;
    let context = "while evaluating the third argument (the string) passed to builtins.substring";
    let string = coerced(machine, args[2], pos, context)?;
    let size = string.bytes().len();
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(size);
    // A negative length takes the rest.
    let end = start.saturating_add(usize::try_from(len).unwrap_or(usize::MAX)).min(size);
    Ok(string.slice(start..end, string.context()))
}

fn string_length(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let string = coerced(machine, args[0], pos, "while evaluating the argument passed to builtins.stringLength")?;
    Ok(Value::int(string.bytes().len() as i64))
}

fn concat_strings_sep(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument (the separator string) passed to builtins.concatStringsSep";
    let separator = machine.force_string(args[0], pos, context)?;
    let context =
        "while evaluating the second argument (the list of strings to concat) passed to builtins.concatStringsSep";
    let list = machine.force_list(args[1], pos, context)?;
    let mut out = Pieces::with_capacity(list.len() * 2);
    out.context.add(separator.context());
    let context = "while evaluating one element of the list of strings to concat passed to builtins.concatStringsSep";
    for (i, item) in list.iter().enumerate() {
        if i > 0 && !separator.bytes().is_empty() {
            out.push_bytes(separator.bytes());
        }
        machine.coerce_into(&mut out, item, pos, context, Coercion::INTERPOLATE)?;
    }
    Ok(out.string())
}

/// The strings to replace, found by their first byte, in their order.
struct Needles {
    all: Vec<&'static [u8]>,
    /// Index + 1 of the first needle that begins with the byte; 0 for none.
    first: [u32; 256],
    /// Index + 1 of the next needle that begins with the same byte.
    next: Vec<u32>,
    /// The first needle that is empty: it matches everywhere, so the ones after it never do.
    empty: Option<usize>,
}

const REMEMBERED: usize = 16;

thread_local! {
    /// Needles of recent lists by their identity, which is never reused (M3): most calls are made with a few lists
    /// again and again.
    static NEEDLES: RefCell<Vec<Option<(u64, Rc<Needles>)>>> = const { RefCell::new(Vec::new()) };
}

fn place(identity: u64) -> usize {
    (identity >> 3) as usize % REMEMBERED
}

impl Needles {
    fn new(all: Vec<&'static [u8]>) -> Needles {
        let empty = all.iter().position(|needle| needle.is_empty());
        let mut needles = Needles { first: [0; 256], next: vec![0; all.len()], empty, all };
        for (i, needle) in needles.all[..empty.unwrap_or(needles.all.len())].iter().enumerate().rev() {
            let head = &mut needles.first[usize::from(needle[0])];
            needles.next[i] = *head;
            *head = i as u32 + 1;
        }
        needles
    }

    /// The needles made of this very list not long ago.
    fn recent(list: List) -> Option<Rc<Needles>> {
        let identity = list.value().identity();
        NEEDLES.with_borrow(|table| match table.get(place(identity)) {
            Some(Some((of, needles))) if *of == identity => Some(Rc::clone(needles)),
            _ => None,
        })
    }

    fn remember(self, list: List) -> Rc<Needles> {
        let (identity, needles) = (list.value().identity(), Rc::new(self));
        NEEDLES.with_borrow_mut(|table| {
            if table.is_empty() {
                table.resize_with(REMEMBERED, || None);
            }
            table[place(identity)] = Some((identity, Rc::clone(&needles)));
        });
        needles
    }

    /// The first needle in their order that the text begins with.
    fn at(&self, text: &[u8]) -> Option<usize> {
        let mut link = text.first().map_or(0, |&byte| self.first[usize::from(byte)]);
        while let Some(index) = (link as usize).checked_sub(1) {
            if text.starts_with(self.all[index]) {
                return Some(index);
            }
            link = self.next[index];
        }
        self.empty
    }
}

fn replace_strings(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.replaceStrings";
    let from = machine.force_list(args[0], pos, context)?;
    let context = "while evaluating the second argument passed to builtins.replaceStrings";
    let to = machine.force_list(args[1], pos, context)?;
    if from.len() != to.len() {
        let message = "'from' and 'to' arguments passed to builtins.replaceStrings have different lengths";
        return Err(Error::new(ErrorKind::Eval, message).at(pos));
    }
    let context = "while evaluating one of the strings to replace passed to builtins.replaceStrings";
    let needles = match Needles::recent(from) {
        Some(needles) => needles,
        None => {
            let all = from.iter().map(|item| Ok(machine.force_string(item, pos, context)?.bytes()));
            Needles::new(all.collect::<Result<Vec<_>>>()?).remember(from)
        }
    };
    let context = "while evaluating the third argument passed to builtins.replaceStrings";
    let string = machine.force_string(args[2], pos, context)?;
    let text = string.bytes();

    let mut contexts = ContextBuilder::default();
    contexts.add(string.context());
    let mut out: Vec<u8> = Vec::new();
    // Bytes before `copied` are in `out` or replaced.
    let (mut copied, mut at, mut found_any) = (0, 0, false);
    while at <= text.len() {
        let Some(index) = needles.at(&text[at..]) else {
            at += 1;
            continue;
        };
        if !found_any {
            out.reserve(text.len() + 16);
            found_any = true;
        }
        out.extend_from_slice(&text[copied..at]);
        let context = "while evaluating one of the replacement strings passed to builtins.replaceStrings";
        let replacement = machine.force_string(to.get(index), pos, context)?;
        contexts.add(replacement.context());
        out.extend_from_slice(replacement.bytes());
        let len = needles.all[index].len();
        copied = at + len;
        // After an empty needle one byte is passed over.
        at += len.max(1);
    }
    if !found_any {
        return Ok(string.value());
    }
    out.extend_from_slice(text.get(copied..).unwrap_or_default());
    Ok(Value::string(&out, contexts.finish()))
}

fn placeholder(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let context = "while evaluating the first argument passed to builtins.placeholder";
    let output = machine.force_string_no_context(args[0], pos, context)?;
    Ok(Value::string(firn_store::placeholder::own_output(output.bytes()).as_bytes(), Context::EMPTY))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "toString", arity: 1, strict: 1, run: to_string },
    Builtin { name: "substring", arity: 3, strict: 1, run: substring },
    Builtin { name: "stringLength", arity: 1, strict: 1, run: string_length },
    Builtin { name: "concatStringsSep", arity: 2, strict: 1, run: concat_strings_sep },
    Builtin { name: "replaceStrings", arity: 3, strict: 1, run: replace_strings },
    Builtin { name: "placeholder", arity: 1, strict: 1, run: placeholder },
];
