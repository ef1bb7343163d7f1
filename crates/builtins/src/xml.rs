//! XML: `toXML` and the output of `--xml`.

use firn_eval::{Builtin, Machine, Result, evaluated_value};
use firn_source::{Origin, Pos};
use firn_text::xml;
use firn_value::{Attrs, ContextBuilder, Function, Lambda, Type, Value};
use std::collections::HashSet;

/// Appends a value as an XML document and adds the contexts of its strings to `context`. Forces as it goes if
/// `strict`, otherwise writes `<unevaluated />`; `location` adds where attributes and functions are written.
pub fn value_to_xml(
    machine: &Machine,
    value: Value,
    strict: bool,
    location: bool,
    pos: Pos,
    out: &mut Vec<u8>,
    context: &mut ContextBuilder,
) -> Result<()> {
    let mut document = xml::Writer::new(out);
    document.open("expr", &[]);
    let mut writer = Writer { machine, strict, location, document, context, seen: HashSet::new() };
    writer.write(value, true, pos)?;
    writer.document.finish();
    Ok(())
}

struct Writer<'a> {
    machine: &'a Machine,
    strict: bool,
    location: bool,
    document: xml::Writer<'a>,
    context: &'a mut ContextBuilder,
    /// Derivations written in full, by path.
    seen: HashSet<&'static [u8]>,
}

/// Attributes of an element that say where something is written, to be sorted among the others.
#[derive(Default)]
struct Place {
    column: String,
    line: String,
    path: Option<Vec<u8>>,
}

impl Place {
    fn of(machine: &Machine, pos: Pos) -> Place {
        machine.see_position(pos);
        match pos.resolve() {
            None => Place { column: "0".to_owned(), line: "0".to_owned(), path: None },
            Some(place) => Place {
                column: place.column.to_string(),
                line: place.line.to_string(),
                path: match place.file.origin() {
                    Origin::File(path) => Some(machine.path_text(path).to_vec()),
                    _ => None,
                },
            },
        }
    }

    /// The attributes in the order of their names, with `name` among them if given.
    fn attributes<'a>(&'a self, name: Option<&'a [u8]>) -> Vec<(&'static str, &'a [u8])> {
        let mut all = vec![("column", self.column.as_bytes()), ("line", self.line.as_bytes())];
        all.extend(name.map(|name| ("name", name)));
        all.extend(self.path.as_deref().map(|path| ("path", path)));
        all
    }
}

impl Writer<'_> {
    /// The cell's value if it may be shown.
    fn shown(&self, cell: Value, top: bool, pos: Pos) -> Result<Option<Value>> {
        if self.strict { self.machine.force(cell, pos).map(Some) } else { Ok(evaluated_value(self.machine, cell, top)) }
    }

    fn write(&mut self, cell: Value, top: bool, pos: Pos) -> Result<()> {
        self.machine.nested(pos, || self.write_here(cell, top, pos))
    }

    fn write_here(&mut self, cell: Value, top: bool, pos: Pos) -> Result<()> {
        let Some(value) = self.shown(cell, top, pos)? else {
            self.document.empty("unevaluated", &[]);
            return Ok(());
        };
        match value.get_type() {
            None => self.document.empty("unevaluated", &[]),
            Some(Type::Null) => self.document.empty("null", &[]),
            Some(Type::Bool) => {
                let text: &[u8] = if value == Value::TRUE { b"true" } else { b"false" };
                self.document.empty("bool", &[("value", text)]);
            }
            Some(Type::Int) => {
                let text = value.as_int().unwrap_or_default().to_string();
                self.document.empty("int", &[("value", text.as_bytes())]);
            }
            Some(Type::Float) => {
                let mut text = Vec::with_capacity(16);
                firn_text::float::write_general(&mut text, value.as_float().unwrap_or_default());
                self.document.empty("float", &[("value", &text)]);
            }
            Some(Type::String) => {
                let string = value.as_str().expect("its type is string");
                self.context.add(string.context());
                self.document.empty("string", &[("value", string.bytes())]);
            }
            Some(Type::Path) => self.document.empty("path", &[("value", self.machine.path_text(value.as_path().unwrap_or_default()))]),
            Some(Type::List) => {
                self.document.open("list", &[]);
                for item in value.as_list().into_iter().flat_map(|list| list.iter()) {
                    self.write(item, false, pos)?;
                }
                self.document.close();
            }
            Some(Type::Attrs) => self.attrs(value.as_attrs().expect("its type is set"))?,
            Some(Type::Function) => self.function(value),
        }
        Ok(())
    }

    fn attrs(&mut self, set: Attrs) -> Result<()> {
        if !self.machine.is_derivation(set)? {
            self.document.open("attrs", &[]);
            self.attributes(set)?;
            self.document.close();
            return Ok(());
        }
        let names = self.machine.names();
        let mut attributes: Vec<(&str, &[u8])> = Vec::with_capacity(2);
        let mut drv_path: &[u8] = b"";
        for (key, name) in [("drvPath", names.drv_path), ("outPath", names.out_path)] {
            let Some((cell, pos)) = set.get_with_pos(name) else { continue };
            if let Some(string) = self.shown(cell, false, pos)?.and_then(Value::as_str) {
                attributes.push((key, string.bytes()));
                if key == "drvPath" {
                    drv_path = string.bytes();
                }
            }
        }
        self.document.open("derivation", &attributes);
        if !drv_path.is_empty() && self.seen.insert(drv_path) {
            self.attributes(set)?;
        } else {
            self.document.empty("repeated", &[]);
        }
        self.document.close();
        Ok(())
    }

    fn attributes(&mut self, set: Attrs) -> Result<()> {
        for (name, pos, cell) in set.iter_by_name() {
            if self.location && pos.is_some() {
                self.document.open("attr", &Place::of(self.machine, pos).attributes(Some(name.as_bytes())));
            } else {
                self.document.open("attr", &[("name", name.as_bytes())]);
            }
            self.write(cell, false, pos)?;
            self.document.close();
        }
        Ok(())
    }

    fn function(&mut self, value: Value) {
        let closure = match value.as_function() {
            Some(Function::Closure(closure)) => Some((closure, 0)),
            Some(Function::Partial(partial)) => match partial.function().as_function() {
                Some(Function::Closure(closure)) => Some((closure, partial.args().len())),
                _ => None,
            },
            _ => None,
        };
        // NIX: builtins are not shown.
        let Some((closure, done)) = closure else { return self.document.empty("unevaluated", &[]) };
        self.lambda(closure.lambda(), done);
    }

    /// The function that takes argument `done` of a curried chain.
    fn lambda(&mut self, lambda: &'static Lambda, done: usize) {
        if self.location {
            self.document.open("function", &Place::of(self.machine, lambda.pos_at(done)).attributes(None));
        } else {
            self.document.open("function", &[]);
        }
        match (lambda.params.get(done), &lambda.pattern) {
            (Some(param), _) => self.document.empty("varpat", &[("name", param.name.as_bytes())]),
            (None, Some(pattern)) => {
                let mut attributes: Vec<(&str, &[u8])> = Vec::with_capacity(2);
                if pattern.ellipsis {
                    attributes.push(("ellipsis", b"1"));
                }
                attributes.extend(pattern.at.map(|name| ("name", name.as_bytes())));
                self.document.open("attrspat", &attributes);
                let mut names: Vec<&[u8]> = pattern.formals.iter().map(|formal| formal.name.as_bytes()).collect();
                names.sort_unstable();
                for name in names {
                    self.document.empty("attr", &[("name", name)]);
                }
                self.document.close();
            }
            (None, None) => {}
        }
        self.document.close();
    }
}

fn to_xml(machine: &Machine, pos: Pos, args: &[Value]) -> Result<Value> {
    let (mut out, mut context) = (Vec::new(), ContextBuilder::default());
    value_to_xml(machine, args[0], true, false, pos, &mut out, &mut context)?;
    Ok(Value::string(&out, context.finish()))
}

/// The subject's builtins.
pub(crate) const TABLE: &[Builtin] = &[Builtin { name: "toXML", arity: 1, strict: 1, run: to_xml }];
