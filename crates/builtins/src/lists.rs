//! Lists.

use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, colored, own_cell, place_of};
use firn_source::Pos;
use firn_value::{AttrsBuilder, Each, Function, List, ListBuilder, Row, Thunk, Value};

fn length(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[0], pos, "while evaluating the first argument passed to builtins.length")?;
    Ok(Value::int(list.len() as i64))
}

fn head(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[0], pos, "while evaluating the first argument passed to 'builtins.head'")?;
    if list.is_empty() {
        return Err(Error::new(ErrorKind::Eval, "'builtins.head' called on an empty list").at(pos));
    }
    machine.force(list.get(0), pos)
}

fn tail(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[0], pos, "while evaluating the first argument passed to 'builtins.tail'")?;
    if list.is_empty() {
        return Err(Error::new(ErrorKind::Eval, "'builtins.tail' called on an empty list").at(pos));
    }
    Ok(list.suffix(1))
}

fn elem_at(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let index = machine.force_int(args[1], pos, "while evaluating the second argument passed to 'builtins.elemAt'")?;
    let list = machine.force_list(args[0], pos, "while evaluating the first argument passed to 'builtins.elemAt'")?;
    match usize::try_from(index) {
        Ok(i) if i < list.len() => machine.force(list.get(i), pos),
        _ => Err(beyond_end(index, list, pos)),
    }
}

#[cold]
fn beyond_end(index: i64, list: List, pos: Pos) -> Box<Error> {
    let (index, size) = (colored(index), colored(list.len()));
    let message = format!("'builtins.elemAt' called with index {index} on a list of size {size}");
    Error::new(ErrorKind::Eval, message).at(pos)
}

fn elem(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.elem")?;
    let context = "while searching for the presence of the given element in the list";
    for item in list.iter() {
        if machine.equal(args[0], item, pos, context)? {
            return Ok(Value::TRUE);
        }
    }
    Ok(Value::FALSE)
}

fn map(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.map")?;
    if let Some((guard, Row::Names)) = list.guard()
        && let Some(pairs) = pairs_of(machine, args[0], list.unguarded())
    {
        return Ok(pairs.guarded_by(guard, Row::Pairs));
    }
    if list.is_empty() {
        return Ok(list.value());
    }
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.map")?;
    Ok(applied(function, Each::Cells(list.slots())))
}

/// A list of applications.
fn applied(function: Value, to: Each) -> Value {
    let items = Thunk::apply_to_each(function, to);
    let mut out = ListBuilder::new(items.len());
    items.for_each(|item| out.push(item));
    out.finish()
}

/// What a function makes of names, if it is one of which it is known that it makes of each name a set that has it as its name.
fn pairs_of(machine: &Machine, function: Value, names: List) -> Option<List> {
    // Of an empty list nobody looks at the function, so whether there are names must not show: it is one that is there already.
    let Some(Function::Closure(closure)) = function.as_function() else { return None };
    if !closure.lambda().gives_its_argument_as(machine.names().name) {
        return None;
    }
    applied(function, Each::Cells(names.slots())).as_list()
}

fn filter(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.filter")?;
    if list.is_empty() {
        return Ok(list.value());
    }
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.filter")?;
    let context = "while evaluating the return value of the filtering function passed to builtins.filter";
    let mut kept = Vec::with_capacity(list.len());
    for item in list.iter() {
        let result = machine.call(function, &[item], Pos::NONE)?;
        if machine.force_bool(result, pos, context)? {
            kept.push(item);
        }
    }
    Ok(if kept.len() == list.len() { list.value() } else { ListBuilder::of(&kept) })
}

fn any(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.any")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.any")?;
    for item in list.iter() {
        let result = machine.call(function, &[item], pos)?;
        if machine.force_bool(result, pos, "while evaluating the return value of the function passed to builtins.any")? {
            return Ok(Value::TRUE);
        }
    }
    Ok(Value::FALSE)
}

fn all(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.all")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.all")?;
    for item in list.iter() {
        let result = machine.call(function, &[item], pos)?;
        if !machine.force_bool(result, pos, "while evaluating the return value of the function passed to builtins.all")? {
            return Ok(Value::FALSE);
        }
    }
    Ok(Value::TRUE)
}

fn concat_lists(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let lists = machine.force_list(args[0], pos, "while evaluating the first argument passed to builtins.concatLists")?;
    let lists: Vec<Value> = lists.iter().collect();
    machine.concat_lists(&lists, pos, "while evaluating a value of the list passed to builtins.concatLists")
}

fn concat_map(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.concatMap")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.concatMap")?;
    let context = "while evaluating the return value of the function passed to builtins.concatMap";
    // NIX: a result that is no list is reported at the function, or at the result when that is a function.
    let mut all = Vec::with_capacity(list.len());
    for item in list.iter() {
        let result = machine.call(function, &[item], pos)?;
        let at = if result.as_function().is_some() { place_of(result) } else { place_of(function) };
        let part = machine.force_list(result, at, context)?;
        all.extend(part.iter());
    }
    Ok(ListBuilder::of(&all))
}

fn foldl(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.foldlStrict")?;
    let list = machine.force_list(args[2], pos, "while evaluating the third argument passed to builtins.foldlStrict")?;
    let mut accumulator = args[1];
    for item in list.iter() {
        accumulator = own_cell(machine.call(function, &[accumulator, item], pos)?);
    }
    machine.force(accumulator, pos)
}

/// More elements than any machine's memory holds.
const TOO_LONG: i64 = 1 << 40;

fn gen_list(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let count = machine.force_int(args[1], pos, "while evaluating the second argument passed to builtins.genList")?;
    if !(0..TOO_LONG).contains(&count) {
        return Err(Error::new(ErrorKind::Eval, format!("cannot create list of size {}", colored(count))).at(pos));
    }
    let function = machine.force_function(args[0], Pos::NONE, "while evaluating the first argument passed to builtins.genList")?;
    Ok(applied(function, Each::Numbers(count as usize)))
}

fn partition(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.partition")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.partition")?;
    let context = "while evaluating the return value of the partition function passed to builtins.partition";
    let (mut right, mut wrong) = (Vec::new(), Vec::new());
    for item in list.iter() {
        machine.force(item, pos)?;
        let result = machine.call(function, &[item], pos)?;
        let side = if machine.force_bool(result, pos, context)? { &mut right } else { &mut wrong };
        side.push(item);
    }
    let mut set = AttrsBuilder::with_capacity(2);
    set.push(machine.names().right, Pos::NONE, ListBuilder::of(&right));
    set.push(machine.names().wrong, Pos::NONE, ListBuilder::of(&wrong));
    Ok(set.finish())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "length", arity: 1, strict: 1, run: length },
    Builtin { name: "head", arity: 1, strict: 1, run: head },
    Builtin { name: "tail", arity: 1, strict: 1, run: tail },
    Builtin { name: "elemAt", arity: 2, strict: 0b10, run: elem_at },
    Builtin { name: "elem", arity: 2, strict: 0b10, run: elem },
    Builtin { name: "map", arity: 2, strict: 0b10, run: map },
    Builtin { name: "filter", arity: 2, strict: 0b10, run: filter },
    Builtin { name: "any", arity: 2, strict: 0b01, run: any },
    Builtin { name: "all", arity: 2, strict: 0b01, run: all },
    Builtin { name: "concatLists", arity: 1, strict: 1, run: concat_lists },
    Builtin { name: "concatMap", arity: 2, strict: 0b01, run: concat_map },
    Builtin { name: "foldl'", arity: 3, strict: 0b001, run: foldl },
    Builtin { name: "genList", arity: 2, strict: 0b10, run: gen_list },
    Builtin { name: "partition", arity: 2, strict: 0b01, run: partition },
];
