//! Attribute sets.
//!
//! Sets come as shapes with cells in symbol order, so most of these walk sorted runs; what keeps all names shares the
//! shape. Positions follow Nix: copied attributes keep theirs, computed ones have none.

use firn_eval::{Builtin, Error, ErrorKind, Machine, Result, colored_name};
use firn_ir::Shape;
use firn_source::{Pos, Symbol, SymbolMap};
use firn_value::{Attrs, AttrsBuilder, Each, List, ListBuilder, Row, Thunk, Value};

/// Finds one attribute in many sets; sets of one shape are looked up once.
struct Finder {
    name: Symbol,
    last: Option<(&'static Shape, usize)>,
}

impl Finder {
    fn new(name: Symbol) -> Finder {
        Finder { name, last: None }
    }

    fn find(&mut self, set: Attrs) -> Option<(Value, Pos)> {
        let Some(shape) = set.flat_shape() else { return set.get_with_pos(self.name) };
        let index = match self.last {
            Some((known, index)) if std::ptr::eq(known, shape) => index,
            _ => {
                let index = shape.index(self.name)?;
                self.last = Some((shape, index));
                index
            }
        };
        Some((set.cell(shape, index), shape.positions()[index]))
    }
}

/// The error for an attribute that a builtin needs.
#[cold]
pub(crate) fn missing(name: Symbol, context: &'static str) -> Box<Error> {
    let error = Error::new(ErrorKind::Type, format!("attribute '{}' missing", colored_name(name)));
    if context.is_empty() { error } else { error.trace(Pos::NONE, context) }
}

fn attr_names(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[0], pos, "while evaluating the argument passed to builtins.attrNames")?;
    let names = set.unguarded().name_list();
    let Some((guard, list)) = set.guard().zip(names.as_list()) else { return Ok(names) };
    Ok(list.guarded_by(guard, Row::Names))
}

fn attr_values(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[0], pos, "while evaluating the argument passed to builtins.attrValues")?;
    let (shape, cells) = set.flat();
    let mut values = ListBuilder::new(shape.len());
    for &i in shape.by_name() {
        values.push(cells[i as usize].get());
    }
    Ok(values.finish())
}

/// The name in the first argument and the set in the second.
fn name_and_set(machine: &Machine, pos: Pos, args: &[Value], contexts: [&'static str; 2]) -> Result<(Symbol, Attrs)> {
    let name = machine.force_string_no_context(args[0], pos, contexts[0])?;
    let set = machine.force_attrs(args[1], pos, contexts[1])?;
    Ok((name.symbol(), set))
}

fn get_attr(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let contexts = [
        "while evaluating the first argument passed to builtins.getAttr",
        "while evaluating the second argument passed to builtins.getAttr",
    ];
    let (name, set) = name_and_set(machine, pos, args, contexts)?;
    match set.get(name) {
        Some(cell) => machine.force(cell, pos),
        None => Err(missing(name, "in the attribute set under consideration")),
    }
}

fn has_attr(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let contexts = [
        "while evaluating the first argument passed to builtins.hasAttr",
        "while evaluating the second argument passed to builtins.hasAttr",
    ];
    let (name, set) = name_and_set(machine, pos, args, contexts)?;
    Ok(Value::bool(set.has(name)))
}

fn get_attr_pos(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let contexts = [
        "while evaluating the first argument passed to builtins.unsafeGetAttrPos",
        "while evaluating the second argument passed to builtins.unsafeGetAttrPos",
    ];
    let (name, set) = name_and_set(machine, pos, args, contexts)?;
    let Some((_, at)) = set.get_with_pos(name) else { return Ok(Value::NULL) };
    machine.look_at(at)?;
    Ok(machine.position(at))
}

fn remove_attrs(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[0], pos, "while evaluating the first argument passed to builtins.removeAttrs")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.removeAttrs")?;
    let context = "while evaluating the values of the second argument passed to builtins.removeAttrs";
    if let Some((_, Row::Names)) = list.guard() {
        return Ok(remove_names(set, list));
    }
    let mut removed = Vec::with_capacity(list.len());
    for item in list.iter() {
        removed.push(machine.force_string_no_context(item, pos, context)?.symbol());
    }
    let all = set.seen_each(&removed);
    removed.retain(|&name| all.has(name));
    if removed.is_empty() {
        return Ok(set.value());
    }
    removed.sort_unstable();
    let mut removed = removed.into_iter().peekable();
    let mut rest = AttrsBuilder::with_capacity(all.len());
    for (name, at, value) in all.iter() {
        while removed.next_if(|&r| r < name).is_some() {}
        if removed.peek() != Some(&name) {
            rest.push(name, at, value);
        }
    }
    Ok(guarded_as(set, rest.finish_first()))
}

/// A set less the names of another, of which only those names are seen.
fn remove_names(set: Attrs, names: List) -> Value {
    let all = set.unguarded();
    let listed = names.seen_each(all.flat().0.names()).slots();
    let mut rest = AttrsBuilder::with_capacity(all.len());
    for (name, at, value) in all.iter() {
        let has = listed.binary_search_by(|slot| slot.get().as_str().map_or(&[][..], |text| text.bytes()).cmp(name.as_bytes()));
        if has.is_err() {
            rest.push(name, at, value);
        }
    }
    guarded_as(set, rest.finish_first())
}

/// A set that has a name only if this one has it.
fn guarded_as(set: Attrs, made: Value) -> Value {
    made.as_attrs().map_or(made, |made| made.guarded_by(set.guard()))
}

fn list_to_attrs(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let list = machine.force_list(args[0], pos, "while evaluating the argument passed to builtins.listToAttrs")?;
    let pair = "in a {name=...; value=...;} pair";
    let name_context = "while evaluating the `name` attribute of an element of the list passed to builtins.listToAttrs";
    let mut names = Finder::new(machine.names().name);
    // Of pairs for the names of a set each is found under its name, and there are no others.
    let guard = list.guard().filter(|(_, row)| *row == Row::Pairs).map(|(guard, _)| guard);
    let list = if guard.is_some() { list.unguarded() } else { list };
    let mut entries: Vec<(Symbol, Attrs)> = Vec::with_capacity(list.len());
    for item in list.iter() {
        let element = machine.force_attrs(item, pos, "while evaluating an element of the list passed to builtins.listToAttrs")?;
        let (cell, at) = names.find(element).ok_or_else(|| missing(names.name, pair))?;
        let name = machine.force_string_no_context(cell, at, name_context)?;
        entries.push((name.symbol(), element));
    }
    // NIX: values are looked for in symbol order, and of equal names only the first is.
    entries.sort_by_key(|e| e.0);
    entries.dedup_by_key(|e| e.0);
    let mut values = Finder::new(machine.names().value);
    let mut set = AttrsBuilder::with_capacity(entries.len());
    for (name, element) in entries {
        let (cell, at) = values.find(element).ok_or_else(|| missing(values.name, pair))?;
        set.push(name, at, cell);
    }
    let set = set.finish_first();
    Ok(set.as_attrs().map_or(set, |made| made.guarded_by(guard)))
}

fn intersect_attrs(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let left = machine.force_attrs(args[0], pos, "while evaluating the first argument passed to builtins.intersectAttrs")?;
    let right = machine.force_attrs(args[1], pos, "while evaluating the second argument passed to builtins.intersectAttrs")?;
    let lengths = (left.unguarded().len(), right.unguarded().len());
    let mut both = AttrsBuilder::with_capacity(lengths.0.min(lengths.1));
    // The names of one are gone through, and looked up in the other.
    if lengths.0 < lengths.1 {
        let (shape, _) = left.unguarded().flat();
        let right = right.seen_each(shape.names());
        for &name in shape.names() {
            if let Some((value, at)) = right.get_with_pos(name) {
                both.push(name, at, value);
            }
        }
        return Ok(guarded_as(left, both.finish_first()));
    }
    let names = right.unguarded();
    let left = left.seen_each(names.flat().0.names());
    for (name, at, value) in names.iter() {
        if left.has(name) {
            both.push(name, at, value);
        }
    }
    Ok(guarded_as(right, both.finish_first()))
}

fn cat_attrs(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let name = machine.force_string_no_context(args[0], pos, "while evaluating the first argument passed to builtins.catAttrs")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.catAttrs")?;
    let context = "while evaluating an element in the list passed as second argument to builtins.catAttrs";
    let mut finder = Finder::new(name.symbol());
    let mut found = Vec::with_capacity(list.len());
    for item in list.iter() {
        let set = machine.force_attrs(item, pos, context)?;
        found.extend(finder.find(set).map(|(value, _)| value));
    }
    Ok(ListBuilder::of(&found))
}

fn map_attrs(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let set = machine.force_attrs(args[1], pos, "while evaluating the second argument passed to builtins.mapAttrs")?;
    let (shape, cells) = set.unguarded().flat();
    // NIX: the function is not looked at, which traces show: until the first call nothing knows where it is written.
    let function = if args[0].as_function().is_some() { Thunk::apply(args[0], &[]) } else { args[0] };
    let mapped = Thunk::apply_to_each(function, Each::Named(shape.names(), cells));
    Ok(guarded_as(set, AttrsBuilder::of_names(shape, mapped)))
}

fn zip_attrs_with(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.zipAttrsWith")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.zipAttrsWith")?;
    let context = "while evaluating a value of the list passed as second argument to builtins.zipAttrsWith";
    let mut all: Vec<(Symbol, Value)> = Vec::new();
    for item in list.iter() {
        let set = machine.force_attrs(item, Pos::NONE, context)?;
        all.extend(set.iter().map(|(name, _, value)| (name, value)));
    }
    // PERF: the sets are sorted runs, which a stable sort merges without looking at them again.
    all.sort_by_key(|e| e.0);
    let mut zipped = AttrsBuilder::with_capacity(all.len());
    for group in all.chunk_by(|a, b| a.0 == b.0) {
        let mut values = ListBuilder::new(group.len());
        group.iter().for_each(|&(_, value)| values.push(value));
        let name = group[0].0;
        zipped.push(name, Pos::NONE, Thunk::apply(function, &[Value::name(name), values.finish()]));
    }
    Ok(zipped.finish_first())
}

fn group_by(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let function = machine.force_function(args[0], pos, "while evaluating the first argument passed to builtins.groupBy")?;
    let list = machine.force_list(args[1], pos, "while evaluating the second argument passed to builtins.groupBy")?;
    let context = "while evaluating the return value of the grouping function passed to builtins.groupBy";
    let mut places: SymbolMap<usize> = SymbolMap::default();
    let mut groups: Vec<(Symbol, Vec<Value>)> = Vec::new();
    for item in list.iter() {
        let result = machine.call(function, &[item], pos)?;
        let name = machine.force_string_no_context(result, pos, context)?.symbol();
        let place = *places.entry(name).or_insert(groups.len());
        if place == groups.len() {
            groups.push((name, Vec::new()));
        }
        groups[place].1.push(item);
    }
    let mut set = AttrsBuilder::with_capacity(groups.len());
    for (name, items) in &groups {
        set.push(*name, Pos::NONE, ListBuilder::of(items));
    }
    Ok(set.finish_first())
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[
    Builtin { name: "attrNames", arity: 1, strict: 1, run: attr_names },
    Builtin { name: "attrValues", arity: 1, strict: 1, run: attr_values },
    Builtin { name: "getAttr", arity: 2, strict: 0b01, run: get_attr },
    Builtin { name: "hasAttr", arity: 2, strict: 0b01, run: has_attr },
    Builtin { name: "unsafeGetAttrPos", arity: 2, strict: 0b01, run: get_attr_pos },
    Builtin { name: "removeAttrs", arity: 2, strict: 0b01, run: remove_attrs },
    Builtin { name: "listToAttrs", arity: 1, strict: 1, run: list_to_attrs },
    Builtin { name: "intersectAttrs", arity: 2, strict: 0b01, run: intersect_attrs },
    Builtin { name: "catAttrs", arity: 2, strict: 0b01, run: cat_attrs },
    Builtin { name: "mapAttrs", arity: 2, strict: 0b10, run: map_attrs },
    Builtin { name: "zipAttrsWith", arity: 2, strict: 0b01, run: zip_attrs_with },
    Builtin { name: "groupBy", arity: 2, strict: 0b01, run: group_by },
];
