//! Plain data as bytes: the values that can leave the process (spec L2.2).
//!
//! ```text
//! datum = [ [string …], [ [string number …] …], value ]     strings ascending; then contexts, ascending
//! value = null | bool | integer | float | [ value … ] | { string number: value … }
//!       | 6(string number) | 7([string number, context number]) | 8([string number of the role, of the rest])
//! ```
//!
//! Functions, partial applications, thunks that were not forced, NaNs, and whatever is too deep or too large (cycles are)
//! make a value [`NotPlain`]: it is not stored. Positions of attributes are not kept: a set that re-enters an evaluation
//! must not be one whose positions anyone asks for.

use super::cbor::{Item, Malformed, Reader, Writer};
use super::roles::Roles;
use firn_host::AbsPath;
use firn_source::{Pos, Symbol};
use firn_value::{AttrsBuilder, Context, ListBuilder, ThunkState, Type, Value};
use std::collections::BTreeMap;

/// Values nested more deeply are not stored.
pub const MAX_DEPTH: usize = 256;
/// Values of more parts are not stored: what is shared inside a value is written out, and could be without end.
pub const MAX_PARTS: usize = 1 << 22;

const STRING: u64 = 6;
const STRING_WITH_CONTEXT: u64 = 7;
const PATH: u64 = 8;

/// The value cannot be stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotPlain;

/// A value taken apart, all of it seen to be plain.
enum Datum {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(&'static [u8], Context),
    Path(String, Vec<u8>),
    List(Vec<Datum>),
    Set(Vec<(&'static [u8], Datum)>),
}

struct Taking<'a> {
    roles: &'a Roles,
    parts: usize,
}

impl Taking<'_> {
    fn take(&mut self, cell: Value, depth: usize) -> Result<Datum, NotPlain> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return Err(NotPlain);
        }
        let mut value = cell;
        while let Some(thunk) = value.as_thunk() {
            value = match thunk.state() {
                ThunkState::Forced(value) | ThunkState::Labelled(value, _) | ThunkState::Noisy(value, _) | ThunkState::Ahead(value, _) => value,
                _ => return Err(NotPlain),
            };
        }
        Ok(match value.get_type().ok_or(NotPlain)? {
            Type::Null => Datum::Null,
            Type::Bool => Datum::Bool(value == Value::TRUE),
            Type::Int => Datum::Int(value.as_int().ok_or(NotPlain)?),
            Type::Float => Datum::Float(value.as_float().filter(|float| !float.is_nan()).ok_or(NotPlain)?),
            Type::String => {
                let string = value.as_str().ok_or(NotPlain)?;
                Datum::String(string.bytes(), string.context())
            }
            Type::Path => {
                let path = AbsPath::new(value.as_path().ok_or(NotPlain)?).map_err(|_| NotPlain)?;
                let (role, rest) = self.roles.place(&path);
                Datum::Path(role.to_owned(), rest.to_vec())
            }
            Type::List => {
                let list = value.as_list().ok_or(NotPlain)?;
                Datum::List(list.iter().map(|item| self.take(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Type::Attrs => {
                let set = value.as_attrs().ok_or(NotPlain)?;
                let one = |(name, _, item): (Symbol, Pos, Value)| Ok((name.as_bytes(), self.take(item, depth + 1)?));
                Datum::Set(set.iter_by_name().map(one).collect::<Result<_, _>>()?)
            }
            Type::Function => return Err(NotPlain),
        })
    }
}

/// What is shared inside one datum.
#[derive(Default)]
struct Tables<'a> {
    strings: BTreeMap<&'a [u8], u64>,
    contexts: BTreeMap<Vec<&'a [u8]>, u64>,
}

impl<'a> Tables<'a> {
    fn collect(&mut self, datum: &'a Datum) {
        match datum {
            Datum::Null | Datum::Bool(_) | Datum::Int(_) | Datum::Float(_) => {}
            Datum::String(bytes, context) => {
                self.strings.insert(bytes, 0);
                if !context.is_empty() {
                    let elements = elements(*context);
                    self.strings.extend(elements.iter().map(|&element| (element, 0)));
                    self.contexts.insert(elements, 0);
                }
            }
            Datum::Path(role, rest) => {
                self.strings.insert(role.as_bytes(), 0);
                self.strings.insert(rest, 0);
            }
            Datum::List(items) => items.iter().for_each(|item| self.collect(item)),
            Datum::Set(items) => {
                for (name, item) in items {
                    self.strings.insert(name, 0);
                    self.collect(item);
                }
            }
        }
    }

    fn number(&mut self) {
        for (index, number) in self.strings.values_mut().enumerate() {
            *number = index as u64;
        }
        for (index, number) in self.contexts.values_mut().enumerate() {
            *number = index as u64;
        }
    }

    fn write_tables(&self, writer: &mut Writer) {
        writer.array(self.strings.len());
        for string in self.strings.keys() {
            writer.bytes(string);
        }
        writer.array(self.contexts.len());
        for context in self.contexts.keys() {
            writer.array(context.len());
            for element in context {
                writer.unsigned(self.strings[element]);
            }
        }
    }

    fn write(&self, datum: &Datum, writer: &mut Writer) {
        match datum {
            Datum::Null => _ = writer.null(),
            Datum::Bool(truth) => _ = writer.bool(*truth),
            Datum::Int(number) => _ = writer.integer(*number),
            Datum::Float(float) => _ = writer.float(*float),
            Datum::String(bytes, context) if context.is_empty() => _ = writer.tag(STRING).unsigned(self.strings[bytes]),
            Datum::String(bytes, context) => {
                let context = self.contexts[&elements(*context)];
                writer.tag(STRING_WITH_CONTEXT).array(2).unsigned(self.strings[bytes]).unsigned(context);
            }
            Datum::Path(role, rest) => {
                let (role, rest) = (self.strings[role.as_bytes()], self.strings[&rest[..]]);
                writer.tag(PATH).array(2).unsigned(role).unsigned(rest);
            }
            Datum::List(items) => {
                writer.array(items.len());
                items.iter().for_each(|item| self.write(item, writer));
            }
            Datum::Set(items) => {
                writer.map(items.len());
                for (name, item) in items {
                    writer.unsigned(self.strings[name]);
                    self.write(item, writer);
                }
            }
        }
    }
}

fn elements(context: Context) -> Vec<&'static [u8]> {
    context.sorted().into_iter().map(Symbol::as_bytes).collect()
}

/// The bytes of a value. Nothing is forced: a part that has not been is not plain.
pub fn encode(value: Value, roles: &Roles) -> Result<Vec<u8>, NotPlain> {
    let datum = Taking { roles, parts: 0 }.take(value, 0)?;
    let mut tables = Tables::default();
    tables.collect(&datum);
    tables.number();
    let mut writer = Writer::new();
    writer.array(3);
    tables.write_tables(&mut writer);
    tables.write(&datum, &mut writer);
    Ok(writer.finish())
}

/// The tables of a datum being read.
struct Reading<'a> {
    strings: Vec<&'a [u8]>,
    contexts: Vec<Context>,
    /// What of the tables was referred to: all of it must be.
    used_strings: Vec<bool>,
    used_contexts: Vec<bool>,
    roles: &'a Roles,
    parts: usize,
}

/// The value that bytes stand for.
pub fn decode(bytes: &[u8], roles: &Roles) -> Result<Value, Malformed> {
    let mut reader = Reader::new(bytes);
    reader.tuple(3)?;
    let strings = (0..reader.array()?).map(|_| reader.bytes()).collect::<Result<Vec<_>, _>>()?;
    ascending(&strings)?;
    let count = reader.array()?;
    let mut sets: Vec<Vec<&[u8]>> = Vec::with_capacity(count);
    let mut used_strings = vec![false; strings.len()];
    for _ in 0..count {
        let numbers = (0..reader.array()?).map(|_| reader.index()).collect::<Result<Vec<_>, _>>()?;
        let elements: Option<Vec<&[u8]>> = numbers.iter().map(|&number| strings.get(number).copied()).collect();
        let elements = elements.filter(|elements| !elements.is_empty()).ok_or(Malformed::Unexpected)?;
        ascending(&elements)?;
        numbers.iter().for_each(|&number| used_strings[number] = true);
        sets.push(elements);
    }
    ascending(&sets)?;
    let contexts = sets.iter().map(|set| Context::of(set.iter().map(|element| Symbol::intern(element)).collect()));
    let contexts: Vec<Context> = contexts.collect();
    let used_contexts = vec![false; contexts.len()];
    let mut reading = Reading { contexts, strings, used_strings, used_contexts, roles, parts: 0 };
    let value = reading.value(&mut reader, 0)?;
    reader.end()?;
    let all_used = reading.used_strings.iter().chain(&reading.used_contexts).all(|used| *used);
    if all_used { Ok(value) } else { Err(Malformed::NotCanonical) }
}

fn ascending<T: Ord>(items: &[T]) -> Result<(), Malformed> {
    if items.is_sorted_by(|a, b| a < b) { Ok(()) } else { Err(Malformed::NotCanonical) }
}

impl<'a> Reading<'a> {
    fn string(&mut self, reader: &mut Reader<'_>) -> Result<&'a [u8], Malformed> {
        let number = reader.index()?;
        let string = self.strings.get(number).copied().ok_or(Malformed::Unexpected)?;
        self.used_strings[number] = true;
        Ok(string)
    }

    fn value(&mut self, reader: &mut Reader<'_>, depth: usize) -> Result<Value, Malformed> {
        self.parts += 1;
        if depth > MAX_DEPTH || self.parts > MAX_PARTS {
            return Err(Malformed::TooLarge);
        }
        Ok(match reader.item()? {
            Item::Null => Value::NULL,
            Item::Bool(truth) => Value::bool(truth),
            Item::Integer(number) => Value::int(number),
            Item::Float(float) if !float.is_nan() => Value::float(float),
            Item::Tag(STRING) => Value::string(self.string(reader)?, Context::EMPTY),
            Item::Tag(STRING_WITH_CONTEXT) => {
                reader.tuple(2)?;
                let string = self.string(reader)?;
                let number = reader.index()?;
                let context = *self.contexts.get(number).ok_or(Malformed::Unexpected)?;
                self.used_contexts[number] = true;
                Value::string(string, context)
            }
            Item::Tag(PATH) => {
                reader.tuple(2)?;
                let role = std::str::from_utf8(self.string(reader)?).map_err(|_| Malformed::Unexpected)?;
                let path = self.roles.resolve(role, self.string(reader)?).ok_or(Malformed::Unexpected)?;
                Value::path(path.as_bytes())
            }
            Item::Array(len) => {
                let mut list = ListBuilder::new(len);
                for _ in 0..len {
                    list.push(self.value(reader, depth + 1)?);
                }
                list.finish()
            }
            Item::Map(len) => self.set(reader, len, depth)?,
            _ => return Err(Malformed::Unexpected),
        })
    }

    fn set(&mut self, reader: &mut Reader<'_>, len: usize, depth: usize) -> Result<Value, Malformed> {
        let mut set = AttrsBuilder::with_capacity(len);
        let mut before = None;
        for _ in 0..len {
            let number = reader.index()?;
            if before.is_some_and(|before| number <= before) {
                return Err(Malformed::NotCanonical);
            }
            before = Some(number);
            let name = Symbol::intern(self.strings.get(number).ok_or(Malformed::Unexpected)?);
            self.used_strings[number] = true;
            set.push(name, Pos::NONE, self.value(reader, depth + 1)?);
        }
        Ok(set.finish())
    }
}
