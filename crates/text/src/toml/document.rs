//! Putting values and tables where keys say, or finding out why they cannot go there.

use std::collections::btree_map::Entry;
use std::ops::Range;

use super::{Array, Error, Origin, Table, Value};

/// A key with where it was written.
pub(super) struct Key {
    pub parts: Vec<Vec<u8>>,
    pub place: Range<usize>,
}

/// A conflict: title, remark at the key, the other place and its remark.
type Conflict = (&'static str, &'static str, Range<usize>, &'static str);

impl Value {
    fn place(&self) -> Option<Range<usize>> {
        match self {
            Value::Array(array) => Some(array.place.clone()),
            Value::Table(table) => Some(table.place.clone()),
            _ => None,
        }
    }
}

impl Table {
    pub(super) fn new(origin: Origin, place: Range<usize>) -> Table {
        Table { origin, place, ..Table::default() }
    }

    pub(super) fn set_inline(&mut self, place: Range<usize>) {
        self.origin = Origin::Inline;
        self.place = place;
    }

    fn place_of(&self, name: &[u8]) -> Range<usize> {
        let nested = self.entries.get(name).and_then(Value::place);
        nested.or_else(|| self.places.get(name).cloned()).unwrap_or(0..1)
    }

    /// The table that a part of a key, not the last, leads to.
    fn descend(&mut self, part: &[u8], place: &Range<usize>, dotted: bool) -> Result<&mut Table, Conflict> {
        let there = self.place_of(part);
        let origin = if dotted { Origin::Dotted } else { Origin::Implied };
        let found =
            self.entries.entry(part.to_vec()).or_insert_with(|| Value::Table(Table::new(origin, place.clone())));
        match found {
            Value::Table(table) if table.origin == Origin::Inline => Err((
                "toml::insert_value: failed to insert a value: inline table is immutable",
                "inserting this",
                there,
                "to this table",
            )),
            Value::Table(table) if dotted && table.origin != Origin::Dotted => Err((
                "toml::insert_value: reopening a table using dotted keys",
                "dotted key cannot reopen a table",
                there,
                "this table is already closed",
            )),
            Value::Table(table) => Ok(table),
            Value::Array(array) if array.of_tables && dotted => Err((
                "toml::insert_value:dotted key cannot reopen an array-of-tables",
                "inserting this",
                there,
                "to this array-of-tables.",
            )),
            Value::Array(Array { items, of_tables: true, .. }) => match items.last_mut() {
                Some(Value::Table(table)) => Ok(table),
                _ => Err(occupied(there)),
            },
            Value::Array(array)
                if !array.items.is_empty() && array.items.iter().all(|item| matches!(item, Value::Table(_))) =>
            {
                Err((
                    "toml::insert_value:inline array of tables are immutable",
                    "inserting this",
                    there,
                    "inline array of tables",
                ))
            }
            _ => Err(occupied(there)),
        }
    }

    fn walk(&mut self, key: &Key, dotted: bool) -> Result<&mut Table, Conflict> {
        let mut table = self;
        for part in &key.parts[..key.parts.len() - 1] {
            table = table.descend(part, &key.place, dotted)?;
        }
        Ok(table)
    }

    /// Puts a value under a key of this table.
    pub(super) fn insert(&mut self, text: &[u8], key: Key, value: Value, place: Range<usize>) -> Result<(), Error> {
        let Key { parts, place: key_place } = &key;
        let Some(last) = parts.last() else { return Ok(()) };
        let conflict = match self.walk(&key, true) {
            Err(conflict) => conflict,
            Ok(table) => {
                let there = table.place_of(last);
                match table.entries.entry(last.clone()) {
                    Entry::Vacant(entry) => {
                        entry.insert(value);
                        table.places.insert(last.clone(), place);
                        return Ok(());
                    }
                    Entry::Occupied(_) => (
                        "toml::insert_value: failed to insert a value, value already exists",
                        "inserting this",
                        there,
                        "but value already exists",
                    ),
                }
            }
        };
        Err(explain(text, key_place, conflict))
    }

    /// The table of a header `[key]`.
    pub(super) fn open(&mut self, text: &[u8], key: &Key) -> Result<&mut Table, Error> {
        let explain = |conflict| explain(text, &key.place, conflict);
        let table = self.walk(key, false).map_err(explain)?;
        let Some(last) = key.parts.last() else { return Ok(table) };
        let there = table.place_of(last);
        // A table that is not there yet is made as if implied, and like those becomes explicit here.
        let fresh = || Value::Table(Table::new(Origin::Implied, key.place.clone()));
        match table.entries.entry(last.clone()).or_insert_with(fresh) {
            Value::Table(table) if table.origin == Origin::Implied => {
                table.origin = Origin::Header;
                table.place = key.place.clone();
                Ok(table)
            }
            _ => Err(explain((
                "toml::insert_value: failed to insert a table, table already defined",
                "inserting this",
                there,
                "this table is explicitly defined",
            ))),
        }
    }

    /// The new table of a header `[[key]]`.
    pub(super) fn append(&mut self, text: &[u8], key: &Key) -> Result<&mut Table, Error> {
        let explain = |conflict| explain(text, &key.place, conflict);
        let table = self.walk(key, false).map_err(explain)?;
        let Some(last) = key.parts.last() else { return Ok(table) };
        let there = table.place_of(last);
        let fresh = || Value::Array(Array { items: Vec::new(), of_tables: true, place: key.place.clone() });
        match table.entries.entry(last.clone()).or_insert_with(fresh) {
            Value::Array(Array { items, of_tables: true, .. }) => {
                items.push(Value::Table(Table::new(Origin::Header, key.place.clone())));
                match items.last_mut() {
                    Some(Value::Table(table)) => Ok(table),
                    _ => Err(explain(occupied(there))),
                }
            }
            Value::Array(array)
                if !array.items.is_empty() && array.items.iter().all(|item| matches!(item, Value::Table(_))) =>
            {
                Err(explain((
                    "toml::insert_value: failed to insert a table, inline array of tables is immutable",
                    "while inserting this",
                    there,
                    "this is inline array-of-tables",
                )))
            }
            _ => Err(explain((
                "toml::insert_value: failed to insert an array of tables, value already exists",
                "while inserting this",
                there,
                "non-table value already exists",
            ))),
        }
    }
}

fn occupied(there: Range<usize>) -> Conflict {
    (
        "toml::insert_value: failed to insert a value, value already exists",
        "while inserting this",
        there,
        "non-table value already exists",
    )
}

fn explain(text: &[u8], key: &Range<usize>, (title, here, there, remark): Conflict) -> Error {
    Error::new(text, title, &[(key.clone(), here), (there, remark)])
}
